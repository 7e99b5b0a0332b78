/* A backend that outlives its device: see ndt_backend_open_lasting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"

enum { REOPENINGS = 1 };

struct lasting_backend {
    struct ndt_backend base;
    struct ndt_backend_ops ops; /* base.ops: the inner one's name and abilities */
    struct ndt_backend *inner;
    const struct ndt_backend_ops *first; /* what was asked for */
    struct ndt_backend_config config;
    struct ndt_map *map; /* in use; one that is offered is offered again by whoever did, until it is taken */
    struct ndt_cloud scan;
    int has_scan;
    int failures;
    char history[512];                    /* for describe */
    struct ndt_backend_counters finished; /* of the backends closed so far */
};

/* `into` += `from`, member by member. */
static void add_counters(struct ndt_backend_counters *into, const struct ndt_backend_counters *from)
{
    into->evaluations += from->evaluations;
    into->h2d_bytes += from->h2d_bytes;
    into->d2h_bytes += from->d2h_bytes;
    into->h2d_copies += from->h2d_copies;
    into->d2h_copies += from->d2h_copies;
    into->launches += from->launches;
    into->synchronisations += from->synchronisations;
    into->allocations += from->allocations;
    into->kernel_us += from->kernel_us;
}

static void lasting_counters(const struct ndt_backend *backend, struct ndt_backend_counters *out)
{
    const struct lasting_backend *lasting = (const struct lasting_backend *)backend;
    struct ndt_backend_counters inner = {0};
    *out = lasting->finished;
    if (lasting->inner && lasting->inner->ops->counters)
        lasting->inner->ops->counters(lasting->inner, &inner);
    add_counters(out, &inner);
}

static void lasting_describe(const struct ndt_backend *backend, char *text, size_t size)
{
    const struct lasting_backend *lasting = (const struct lasting_backend *)backend;
    snprintf(text, size, "%s", lasting->ops.name);
    if (lasting->inner && lasting->inner->ops->describe)
        lasting->inner->ops->describe(lasting->inner, text, size);
    const size_t used = strlen(text);
    if (lasting->failures)
        snprintf(text + used, size - used, "; %s", lasting->history);
}

static void close_inner(struct lasting_backend *lasting)
{
    lasting_counters(&lasting->base, &lasting->finished);
    if (lasting->inner)
        lasting->inner->ops->close(lasting->inner);
    lasting->inner = NULL;
}

/* Puts another backend in place, with map and scan. */
static enum ndt_status replace(struct lasting_backend *lasting, const struct ndt_backend_ops *ops,
                               struct ndt_error *err)
{
    close_inner(lasting);
    enum ndt_status status = ops->open(&lasting->inner, &lasting->config, err);
    if (status != NDT_OK)
        return status;
    lasting->ops.name = ops->name;
    if (lasting->map)
        status = ops->set_map(lasting->inner, lasting->map, err);
    if (status == NDT_OK && lasting->has_scan)
        status = ops->set_scan(lasting->inner, &lasting->scan, err);
    return status;
}

static void tell(struct lasting_backend *lasting, const char *what, const char *why)
{
    snprintf(lasting->history, sizeof(lasting->history), "%s after: %.400s", what, why);
    fprintf(stderr, "ndtd: warning: backend %s: %s; %s\n", lasting->first->name, why, what);
}

/* After NDT_ERR_DEVICE: the same backend again, then the CPU. */
static enum ndt_status recover(struct lasting_backend *lasting, const struct ndt_error *why, struct ndt_error *err)
{
    struct ndt_error failure = *why;
    while (lasting->failures++ < REOPENINGS) {
        tell(lasting, "opened again", failure.text);
        enum ndt_status status = replace(lasting, lasting->first, &failure);
        if (status == NDT_OK)
            return status;
    }
    tell(lasting, "the CPU took over", failure.text);
    return replace(lasting, &ndt_cpu_backend, err);
}

/* A call of the inner backend, repeated on another one when the device is lost. `call` names what to do. */
struct call {
    enum ndt_status (*act)(struct ndt_backend *inner, const struct call *call, struct ndt_error *err);
    struct ndt_map *map;
    int *taken;
    const struct ndt_cloud *scan;
    const struct ndt_eval_request *request;
    struct ndt_eval *sums;
};

static enum ndt_status perform(struct lasting_backend *lasting, const struct call *call, struct ndt_error *err)
{
    struct ndt_error why = {""};
    enum ndt_status status = NDT_ERR_DEVICE;
    for (int tries = 0; tries < REOPENINGS + 2; tries++) {
        status = lasting->inner ? call->act(lasting->inner, call, &why) : NDT_ERR_DEVICE;
        if (status != NDT_ERR_DEVICE)
            break;
        enum ndt_status recovered = recover(lasting, &why, err);
        if (recovered != NDT_OK)
            return recovered;
    }
    if (status != NDT_OK && err)
        *err = why;
    return status;
}

static enum ndt_status act_set_map(struct ndt_backend *inner, const struct call *call, struct ndt_error *err)
{
    return inner->ops->set_map(inner, call->map, err);
}

/* The CPU, once it has taken over, takes a map at once. */
static enum ndt_status act_offer_map(struct ndt_backend *inner, const struct call *call, struct ndt_error *err)
{
    if (inner->ops->offer_map)
        return inner->ops->offer_map(inner, call->map, call->taken, err);
    enum ndt_status status = inner->ops->set_map(inner, call->map, err);
    *call->taken = status == NDT_OK;
    return status;
}

static enum ndt_status act_set_scan(struct ndt_backend *inner, const struct call *call, struct ndt_error *err)
{
    return inner->ops->set_scan(inner, call->scan, err);
}

static enum ndt_status act_eval(struct ndt_backend *inner, const struct call *call, struct ndt_error *err)
{
    return inner->ops->eval(inner, call->request, call->sums, err);
}

static void use_map(struct lasting_backend *lasting, struct ndt_map *map)
{
    ndt_map_retain(map);
    ndt_map_release(lasting->map);
    lasting->map = map;
}

static enum ndt_status lasting_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    const struct call call = {.act = act_set_map, .map = map};
    enum ndt_status status = perform(lasting, &call, err);
    if (status == NDT_OK)
        use_map(lasting, map);
    return status;
}

static enum ndt_status lasting_offer_map(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                         struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    const struct call call = {.act = act_offer_map, .map = map, .taken = taken};
    *taken = 0;
    enum ndt_status status = perform(lasting, &call, err);
    *taken = status == NDT_OK && *taken;
    if (*taken)
        use_map(lasting, map);
    return status;
}

static enum ndt_status lasting_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                        struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    const struct call call = {.act = act_set_scan, .scan = scan};
    lasting->has_scan = 0;
    enum ndt_status status = perform(lasting, &call, err);
    if (status == NDT_OK)
        status = ndt_cloud_copy(&lasting->scan, scan, err);
    lasting->has_scan = status == NDT_OK;
    return status;
}

static enum ndt_status lasting_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                    struct ndt_eval *out, struct ndt_error *err)
{
    const struct call call = {.act = act_eval, .request = request, .sums = out};
    return perform((struct lasting_backend *)backend, &call, err);
}

static size_t lasting_search_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct lasting_backend *)backend)->inner;
    return inner && inner->ops->search_limit ? inner->ops->search_limit(inner) : 0;
}

/* Scans are not kept for another try: whoever asked for searches has them, and is told to ask again. */
static enum ndt_status after_search(struct lasting_backend *lasting, enum ndt_status status,
                                    const struct ndt_error *why, struct ndt_error *err)
{
    if (status != NDT_ERR_DEVICE) {
        if (status != NDT_OK && err)
            *err = *why;
        return status;
    }
    lasting->has_scan = 0;
    status = recover(lasting, why, err);
    return status == NDT_OK ? ndt_fail(err, NDT_ERR_UNSUPPORTED, "the device was lost: %.400s", why->text) : status;
}

static enum ndt_status lasting_set_scans(struct ndt_backend *backend, const struct ndt_cloud *const *scans,
                                         size_t count, struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    struct ndt_error why = {""};
    lasting->has_scan = 0;
    enum ndt_status status = lasting_search_limit(backend) > 0
                                 ? lasting->inner->ops->set_scans(lasting->inner, scans, count, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_search(lasting, status, &why, err);
}

static enum ndt_status lasting_search(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                                      struct ndt_search_item *items, size_t count, double until_us,
                                      struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    struct ndt_error why = {""};
    enum ndt_status status = lasting_search_limit(backend) > 0
                                 ? lasting->inner->ops->search(lasting->inner, rules, items, count, until_us, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_search(lasting, status, &why, err);
}

static size_t lasting_front_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct lasting_backend *)backend)->inner;
    return inner && inner->ops->front_limit ? inner->ops->front_limit(inner) : 0;
}

static enum ndt_status lasting_front(struct ndt_backend *backend, const struct ndt_front *front,
                                     const struct ndt_cloud *raw, struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    struct ndt_error why = {"the backend has no preprocessing"};
    lasting->has_scan = 0;
    enum ndt_status status = lasting_front_limit(backend) > 0
                                 ? lasting->inner->ops->front(lasting->inner, front, raw, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_search(lasting, status, &why, err);
}

static enum ndt_status lasting_front_again(struct ndt_backend *backend, const struct ndt_front *front,
                                           struct ndt_error *err)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    struct ndt_error why = {"the backend has no preprocessing"};
    lasting->has_scan = 0;
    enum ndt_status status = lasting_front_limit(backend) > 0
                                 ? lasting->inner->ops->front_again(lasting->inner, front, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_search(lasting, status, &why, err);
}

static enum ndt_status lasting_dump(struct ndt_backend *backend, const struct ndt_eval_request *request, FILE *file,
                                    struct ndt_error *err)
{
    struct ndt_backend *inner = ((struct lasting_backend *)backend)->inner;
    if (!inner || !inner->ops->dump)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s keeps no intermediates", backend->ops->name);
    return inner->ops->dump(inner, request, file, err);
}

static void lasting_close(struct ndt_backend *backend)
{
    struct lasting_backend *lasting = (struct lasting_backend *)backend;
    if (!lasting)
        return;
    close_inner(lasting);
    ndt_map_release(lasting->map);
    ndt_cloud_free(&lasting->scan);
    free(lasting);
}

static enum ndt_status wrap(struct ndt_backend **backend, const struct ndt_backend_config *config,
                            struct ndt_error *err)
{
    struct ndt_backend *inner = *backend;
    struct lasting_backend *lasting = calloc(1, sizeof(*lasting));
    *backend = NULL;
    if (!lasting) {
        inner->ops->close(inner);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for backend %s", inner->ops->name);
    }
    lasting->inner = inner;
    lasting->first = inner->ops;
    lasting->config = *config;
    lasting->ops = *inner->ops;
    lasting->ops.close = lasting_close;
    lasting->ops.set_map = lasting_set_map;
    lasting->ops.set_scan = lasting_set_scan;
    lasting->ops.eval = lasting_eval;
    lasting->ops.counters = lasting_counters;
    lasting->ops.describe = lasting_describe;
    lasting->ops.dump = lasting_dump;
    lasting->ops.search_limit = lasting_search_limit;
    lasting->ops.set_scans = lasting_set_scans;
    lasting->ops.search = lasting_search;
    lasting->ops.offer_map = inner->ops->offer_map ? lasting_offer_map : NULL;
    lasting->ops.front_limit = lasting_front_limit;
    lasting->ops.front = lasting_front;
    lasting->ops.front_again = lasting_front_again;
    lasting->ops.overheads = NULL; /* would be measured on whatever is there now */
    lasting->base.ops = &lasting->ops;
    ndt_cloud_init(&lasting->scan);
    *backend = &lasting->base;
    return NDT_OK;
}

enum ndt_status ndt_backend_open_lasting(struct ndt_backend **out, const char *name,
                                         const struct ndt_backend_config *config, struct ndt_error *err)
{
    enum ndt_status status = ndt_backend_open(out, name, config, err);
    if (status != NDT_OK || (*out)->ops == &ndt_cpu_backend || (*out)->ops == &ndt_reference_backend)
        return status;
    return wrap(out, config, err);
}

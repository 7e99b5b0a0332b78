/* A backend that outlives its device: see ndt_backend_open_lasting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"

enum { REOPENINGS = 1 };

struct failover_backend {
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

static void failover_counters(const struct ndt_backend *backend, struct ndt_backend_counters *out)
{
    const struct failover_backend *failover = (const struct failover_backend *)backend;
    struct ndt_backend_counters inner = {0};
    *out = failover->finished;
    if (failover->inner && failover->inner->ops->counters)
        failover->inner->ops->counters(failover->inner, &inner);
    add_counters(out, &inner);
}

static void failover_describe(const struct ndt_backend *backend, char *text, size_t size)
{
    const struct failover_backend *failover = (const struct failover_backend *)backend;
    snprintf(text, size, "%s", failover->ops.name);
    if (failover->inner && failover->inner->ops->describe)
        failover->inner->ops->describe(failover->inner, text, size);
    const size_t used = strlen(text);
    if (failover->failures)
        snprintf(text + used, size - used, "; %s", failover->history);
}

static void close_inner(struct failover_backend *failover)
{
    failover_counters(&failover->base, &failover->finished);
    if (failover->inner)
        failover->inner->ops->close(failover->inner);
    failover->inner = NULL;
}

/* Puts another backend in place, with map and scan. */
static enum ndt_status replace(struct failover_backend *failover, const struct ndt_backend_ops *ops,
                               struct ndt_error *err)
{
    close_inner(failover);
    enum ndt_status status = ops->open(&failover->inner, &failover->config, err);
    if (status != NDT_OK)
        return status;
    failover->ops.name = ops->name;
    if (failover->map)
        status = ops->set_map(failover->inner, failover->map, err);
    if (status == NDT_OK && failover->has_scan)
        status = ops->set_scan(failover->inner, &failover->scan, err);
    return status;
}

static void tell(struct failover_backend *failover, const char *what, const char *why)
{
    snprintf(failover->history, sizeof(failover->history), "%s after: %.400s", what, why);
    fprintf(stderr, "ndtd: warning: backend %s: %s; %s\n", failover->first->name, why, what);
}

/* After NDT_ERR_DEVICE: the same backend again, then the CPU. */
static enum ndt_status recover(struct failover_backend *failover, const struct ndt_error *why,
                               struct ndt_error *err)
{
    struct ndt_error failure = *why;
    while (failover->failures++ < REOPENINGS) {
        tell(failover, "opened again", failure.text);
        enum ndt_status status = replace(failover, failover->first, &failure);
        if (status == NDT_OK)
            return status;
    }
    tell(failover, "the CPU took over", failure.text);
    return replace(failover, &ndt_cpu_backend, err);
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

static enum ndt_status perform(struct failover_backend *failover, const struct call *call, struct ndt_error *err)
{
    struct ndt_error why = {""};
    enum ndt_status status = NDT_ERR_DEVICE;
    for (int tries = 0; tries < REOPENINGS + 2; tries++) {
        status = failover->inner ? call->act(failover->inner, call, &why) : NDT_ERR_DEVICE;
        if (status != NDT_ERR_DEVICE)
            break;
        enum ndt_status recovered = recover(failover, &why, err);
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
static enum ndt_status act_set_map_async(struct ndt_backend *inner, const struct call *call, struct ndt_error *err)
{
    if (inner->ops->set_map_async)
        return inner->ops->set_map_async(inner, call->map, call->taken, err);
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

static void use_map(struct failover_backend *failover, struct ndt_map *map)
{
    ndt_map_retain(map);
    ndt_map_release(failover->map);
    failover->map = map;
}

static enum ndt_status failover_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    const struct call call = {.act = act_set_map, .map = map};
    enum ndt_status status = perform(failover, &call, err);
    if (status == NDT_OK)
        use_map(failover, map);
    return status;
}

static enum ndt_status failover_set_map_async(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                              struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    const struct call call = {.act = act_set_map_async, .map = map, .taken = taken};
    *taken = 0;
    enum ndt_status status = perform(failover, &call, err);
    *taken = status == NDT_OK && *taken;
    if (*taken)
        use_map(failover, map);
    return status;
}

static enum ndt_status failover_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                         struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    const struct call call = {.act = act_set_scan, .scan = scan};
    failover->has_scan = 0;
    enum ndt_status status = perform(failover, &call, err);
    if (status == NDT_OK)
        status = ndt_cloud_copy(&failover->scan, scan, err);
    failover->has_scan = status == NDT_OK;
    return status;
}

static enum ndt_status failover_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                     struct ndt_eval *out, struct ndt_error *err)
{
    const struct call call = {.act = act_eval, .request = request, .sums = out};
    return perform((struct failover_backend *)backend, &call, err);
}

static size_t failover_solve_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct failover_backend *)backend)->inner;
    return inner && inner->ops->solve_limit ? inner->ops->solve_limit(inner) : 0;
}

/* Scans are not kept for another try: whoever asked for searches has them, and is told to ask again. */
static enum ndt_status after_solve(struct failover_backend *failover, enum ndt_status status,
                                   const struct ndt_error *why, struct ndt_error *err)
{
    if (status != NDT_ERR_DEVICE) {
        if (status != NDT_OK && err)
            *err = *why;
        return status;
    }
    failover->has_scan = 0;
    status = recover(failover, why, err);
    return status == NDT_OK ? ndt_fail(err, NDT_ERR_UNSUPPORTED, "the device was lost: %.400s", why->text) : status;
}

static enum ndt_status failover_set_scans(struct ndt_backend *backend, const struct ndt_cloud *const *scans,
                                          size_t count, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct ndt_error why = {""};
    failover->has_scan = 0;
    enum ndt_status status = failover_solve_limit(backend) > 0
                                 ? failover->inner->ops->set_scans(failover->inner, scans, count, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_solve(failover, status, &why, err);
}

static enum ndt_status failover_solve(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                                      struct ndt_solve_item *items, size_t count, double until_us,
                                      struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct ndt_error why = {""};
    enum ndt_status status = failover_solve_limit(backend) > 0
                                 ? failover->inner->ops->solve(failover->inner, rules, items, count, until_us, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_solve(failover, status, &why, err);
}

static size_t failover_preprocess_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct failover_backend *)backend)->inner;
    return inner && inner->ops->preprocess_limit ? inner->ops->preprocess_limit(inner) : 0;
}

static enum ndt_status failover_preprocess(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                           const struct ndt_cloud *raw, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct ndt_error why = {"the backend has no preprocessing"};
    failover->has_scan = 0;
    enum ndt_status status = failover_preprocess_limit(backend) > 0
                                 ? failover->inner->ops->preprocess(failover->inner, plan, raw, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_solve(failover, status, &why, err);
}

static enum ndt_status failover_preprocess_again(struct ndt_backend *backend,
                                                 const struct ndt_preprocess_plan *plan, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct ndt_error why = {"the backend has no preprocessing"};
    failover->has_scan = 0;
    enum ndt_status status = failover_preprocess_limit(backend) > 0
                                 ? failover->inner->ops->preprocess_again(failover->inner, plan, &why)
                                 : NDT_ERR_UNSUPPORTED;
    return after_solve(failover, status, &why, err);
}

static enum ndt_status failover_dump(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                     FILE *file, struct ndt_error *err)
{
    struct ndt_backend *inner = ((struct failover_backend *)backend)->inner;
    if (!inner || !inner->ops->dump)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s keeps no intermediates", backend->ops->name);
    return inner->ops->dump(inner, request, file, err);
}

static void failover_close(struct ndt_backend *backend)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    if (!failover)
        return;
    close_inner(failover);
    ndt_map_release(failover->map);
    ndt_cloud_free(&failover->scan);
    free(failover);
}

static enum ndt_status wrap(struct ndt_backend **backend, const struct ndt_backend_config *config,
                            struct ndt_error *err)
{
    struct ndt_backend *inner = *backend;
    struct failover_backend *failover = calloc(1, sizeof(*failover));
    *backend = NULL;
    if (!failover) {
        inner->ops->close(inner);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for backend %s", inner->ops->name);
    }
    failover->inner = inner;
    failover->first = inner->ops;
    failover->config = *config;
    failover->ops = *inner->ops;
    failover->ops.close = failover_close;
    failover->ops.set_map = failover_set_map;
    failover->ops.set_scan = failover_set_scan;
    failover->ops.eval = failover_eval;
    failover->ops.counters = failover_counters;
    failover->ops.describe = failover_describe;
    failover->ops.dump = failover_dump;
    failover->ops.solve_limit = failover_solve_limit;
    failover->ops.set_scans = failover_set_scans;
    failover->ops.solve = failover_solve;
    failover->ops.set_map_async = inner->ops->set_map_async ? failover_set_map_async : NULL;
    failover->ops.preprocess_limit = failover_preprocess_limit;
    failover->ops.preprocess = failover_preprocess;
    failover->ops.preprocess_again = failover_preprocess_again;
    failover->ops.overheads = NULL; /* would be measured on whatever is there now */
    failover->base.ops = &failover->ops;
    ndt_cloud_init(&failover->scan);
    *backend = &failover->base;
    return NDT_OK;
}

enum ndt_status ndt_backend_open_failover(struct ndt_backend **out, const char *name,
                                          const struct ndt_backend_config *config, struct ndt_error *err)
{
    enum ndt_status status = ndt_backend_open(out, name, config, err);
    if (status != NDT_OK || (*out)->ops == &ndt_cpu_backend || (*out)->ops == &ndt_reference_backend)
        return status;
    return wrap(out, config, err);
}

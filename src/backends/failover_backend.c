/** @file
 * @brief The failover backend: see ndt_backend_open_failover. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"

/* Number of scans without a failure after which earlier failures are forgotten: 100 s at 10 Hz. */
enum { REOPENINGS = 1, GOOD_SCANS = 1000 };

struct failover_backend {
    struct ndt_backend base;
    struct ndt_backend_ops ops; /* base.ops: name and abilities of the inner backend */
    struct ndt_backend *inner;
    const struct ndt_backend_ops *first; /* the requested backend */
    struct ndt_backend_config config;
    struct ndt_map *map; /* map in use; the caller of set_map_async repeats the call until its map is taken */
    struct ndt_cloud scan;
    int has_scan;
    int failures, good_scans;             /* failures that are not forgotten; scans since the last one */
    char history[512];                    /* text for describe; empty: no failure ever */
    struct ndt_backend_counters finished; /* sum of the backends closed so far */
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
    into->graphs += from->graphs;
    into->graph_bytes += from->graph_bytes;
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
    if (*failover->history)
        snprintf(text + used, size - used, "; %s", failover->history);
}

static void close_inner(struct failover_backend *failover)
{
    failover_counters(&failover->base, &failover->finished);
    if (failover->inner)
        failover->inner->ops->close(failover->inner);
    failover->inner = NULL;
}

/* Replaces the inner backend and gives map and scan to the new one. */
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

static void warn(struct failover_backend *failover, const char *what, const char *why)
{
    snprintf(failover->history, sizeof(failover->history), "%s after: %.400s", what, why);
    fprintf(stderr, "ndtd: warning: backend %s: %s; %s\n", failover->first->name, why, what);
}

/* Recovers from the loss of a device: opens the same backend again, then the CPU. */
static enum ndt_status recover(struct failover_backend *failover, const struct ndt_error *why,
                               struct ndt_error *err)
{
    struct ndt_error failure = *why;
    failover->good_scans = 0;
    while (failover->failures++ < REOPENINGS) {
        warn(failover, "opened again", failure.text);
        enum ndt_status status = replace(failover, failover->first, &failure);
        if (status == NDT_OK)
            return status;
    }
    warn(failover, "the CPU took over", failure.text);
    return replace(failover, &ndt_cpu_backend, err);
}

/* Counts a scan after a call that sets it. Once the CPU has taken over, it stays: opening the device again takes
 * longer than the time between two scans. */
static void count_scan(struct failover_backend *failover, enum ndt_status status)
{
    const int is_counted = status == NDT_OK && failover->failures > 0 && failover->inner->ops == failover->first;
    if (is_counted && ++failover->good_scans >= GOOD_SCANS)
        failover->failures = failover->good_scans = 0;
}

/* A call of the inner backend. Every operation that may lose the device is written as
 *     struct attempt call = {.failover = ..., .repeats = ...};
 *     while (next(&call))
 *         call.status = inner_of(...)->ops->OPERATION(..., &call.why);
 *     return finish(&call, err);
 * With `repeats` the call is made again on the backend that replaces a lost one. Without it, because its input
 * (several scans, raw points) is not kept, the error makes the caller check the limits again. */
enum { MOST_ATTEMPTS = REOPENINGS + 2 };
struct attempt {
    struct failover_backend *failover;
    int repeats, made;
    enum ndt_status status;
    struct ndt_error why;
};

/* Whether the device is lost. A device without memory for its work counts as lost; a CPU without memory does not.
 */
static int is_lost(const struct attempt *call)
{
    return call->status == NDT_ERR_DEVICE ||
           (call->status == NDT_ERR_MEMORY && call->failover->inner->ops != &ndt_cpu_backend);
}

/* Whether to make the call now. Replaces the backend when the device is lost. */
static int next(struct attempt *call)
{
    struct failover_backend *failover = call->failover;
    if (call->made > 0 && !is_lost(call))
        return 0;
    if (call->made > 0 || !failover->inner) {
        struct ndt_error cause = call->why;
        failover->has_scan &= call->repeats;
        call->status = recover(failover, &cause, &call->why);
        if (call->status == NDT_OK && !call->repeats)
            call->status = ndt_fail(&call->why, NDT_ERR_UNSUPPORTED, "the device was lost: %.400s", cause.text);
        if (call->status != NDT_OK)
            return 0;
    }
    call->status = NDT_ERR_DEVICE;
    return call->made++ < MOST_ATTEMPTS;
}

static enum ndt_status finish(const struct attempt *call, struct ndt_error *err)
{
    if (call->status != NDT_OK && err)
        *err = call->why;
    return call->status;
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
    struct attempt call = {.failover = failover, .repeats = 1};
    while (next(&call))
        call.status = failover->inner->ops->set_map(failover->inner, map, &call.why);
    if (call.status == NDT_OK)
        use_map(failover, map);
    return finish(&call, err);
}

/* Sets the map; after a failover to the CPU, at once. */
static enum ndt_status failover_set_map_async(struct ndt_backend *backend, struct ndt_map *map, int *taken,
                                              struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct attempt call = {.failover = failover, .repeats = 1};
    while (next(&call)) {
        const struct ndt_backend_ops *ops = failover->inner->ops;
        *taken = 1;
        call.status = ops->set_map_async ? ops->set_map_async(failover->inner, map, taken, &call.why)
                                         : ops->set_map(failover->inner, map, &call.why);
    }
    *taken = call.status == NDT_OK && *taken;
    if (*taken)
        use_map(failover, map);
    return finish(&call, err);
}

static enum ndt_status failover_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                         struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct attempt call = {.failover = failover, .repeats = 1};
    failover->has_scan = 0;
    while (next(&call))
        call.status = failover->inner->ops->set_scan(failover->inner, scan, &call.why);
    if (call.status == NDT_OK)
        call.status = ndt_cloud_copy(&failover->scan, scan, &call.why);
    failover->has_scan = call.status == NDT_OK;
    count_scan(failover, call.status);
    return finish(&call, err);
}

static enum ndt_status failover_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                     struct ndt_eval *out, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct attempt call = {.failover = failover, .repeats = 1};
    while (next(&call))
        call.status = failover->inner->ops->eval(failover->inner, request, out, &call.why);
    return finish(&call, err);
}

static enum ndt_status failover_inform(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                       struct ndt_information *out, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct attempt call = {.failover = failover, .repeats = 1};
    while (next(&call))
        call.status = failover->inner->ops->inform(failover->inner, request, out, &call.why);
    return finish(&call, err);
}

/* Scores poses. After set_scans the scans are not kept: the caller sets them again. */
static enum ndt_status failover_score_poses(struct ndt_backend *backend, const struct ndt_score_request *request,
                                            struct ndt_pose_score *out, size_t *done, struct ndt_error *err)
{
    struct failover_backend *failover = (struct failover_backend *)backend;
    struct attempt call = {.failover = failover, .repeats = failover->has_scan};
    *done = 0;
    while (next(&call))
        call.status = failover->inner->ops->score_poses(failover->inner, request, out, done, &call.why);
    return finish(&call, err);
}

static size_t failover_solve_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct failover_backend *)backend)->inner;
    return inner && inner->ops->solve_limit ? inner->ops->solve_limit(inner) : 0;
}

static size_t failover_lane_count(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct failover_backend *)backend)->inner;
    return inner && inner->ops->lane_count ? inner->ops->lane_count(inner) : 0;
}

static size_t failover_preprocess_limit(const struct ndt_backend *backend)
{
    const struct ndt_backend *inner = ((const struct failover_backend *)backend)->inner;
    return inner && inner->ops->preprocess_limit ? inner->ops->preprocess_limit(inner) : 0;
}

/* An attempt that is not repeated; `limit` 0: the current backend does not support the call. */
static struct attempt attempt_once(struct ndt_backend *backend, size_t limit, const char *what)
{
    struct attempt call = {.failover = (struct failover_backend *)backend};
    if (limit == 0) {
        call.made = 1;
        call.status = ndt_fail(&call.why, NDT_ERR_UNSUPPORTED, "the backend has no %s", what);
    }
    return call;
}

static enum ndt_status failover_set_scans(struct ndt_backend *backend, const struct ndt_cloud *const *scans,
                                          size_t count, struct ndt_error *err)
{
    struct attempt call = attempt_once(backend, failover_solve_limit(backend), "alignments");
    struct failover_backend *failover = call.failover;
    failover->has_scan = 0;
    while (next(&call))
        call.status = failover->inner->ops->set_scans(failover->inner, scans, count, &call.why);
    count_scan(failover, call.status);
    return finish(&call, err);
}

static enum ndt_status failover_solve(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                                      struct ndt_solve_item *items, size_t count, double until_us,
                                      struct ndt_error *err)
{
    struct attempt call = attempt_once(backend, failover_solve_limit(backend), "alignments");
    struct failover_backend *failover = call.failover;
    while (next(&call))
        call.status = failover->inner->ops->solve(failover->inner, rules, items, count, until_us, &call.why);
    return finish(&call, err);
}

static enum ndt_status failover_run_lanes(struct ndt_backend *backend, size_t points, ndt_lane_work *work,
                                          void *context, struct ndt_error *err)
{
    struct attempt call = attempt_once(backend, failover_lane_count(backend), "lanes");
    struct failover_backend *failover = call.failover;
    while (next(&call))
        call.status = failover->inner->ops->run_lanes(failover->inner, points, work, context, &call.why);
    return finish(&call, err);
}

static enum ndt_status failover_preprocess(struct ndt_backend *backend, const struct ndt_preprocess_plan *plan,
                                           const struct ndt_cloud *raw, struct ndt_error *err)
{
    struct attempt call = attempt_once(backend, failover_preprocess_limit(backend), "preprocessing");
    struct failover_backend *failover = call.failover;
    failover->has_scan = 0;
    while (next(&call))
        call.status = failover->inner->ops->preprocess(failover->inner, plan, raw, &call.why);
    count_scan(failover, call.status);
    return finish(&call, err);
}

static enum ndt_status failover_preprocess_again(struct ndt_backend *backend,
                                                 const struct ndt_preprocess_plan *plan, struct ndt_error *err)
{
    struct attempt call = attempt_once(backend, failover_preprocess_limit(backend), "preprocessing");
    struct failover_backend *failover = call.failover;
    failover->has_scan = 0;
    while (next(&call))
        call.status = failover->inner->ops->preprocess_again(failover->inner, plan, &call.why);
    return finish(&call, err);
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

/* Operations that replace those of the inner backend; the others are inherited from it (name, about, probe, open,
 * pipelines, plan). check_device_loss fails when an operation is forgotten. `overheads` stays NULL: it would
 * measure whatever backend is current. */
static const struct ndt_backend_ops failover_ops = {
    .close = failover_close,
    .set_map = failover_set_map,
    .set_map_async = failover_set_map_async,
    .set_scan = failover_set_scan,
    .eval = failover_eval,
    .inform = failover_inform,
    .score_poses = failover_score_poses,
    .counters = failover_counters,
    .describe = failover_describe,
    .dump = failover_dump,
    .solve_limit = failover_solve_limit,
    .set_scans = failover_set_scans,
    .solve = failover_solve,
    .lane_count = failover_lane_count,
    .run_lanes = failover_run_lanes,
    .preprocess_limit = failover_preprocess_limit,
    .preprocess = failover_preprocess,
    .preprocess_again = failover_preprocess_again,
};

static enum ndt_status wrap(struct ndt_backend **backend, const struct ndt_backend_config *config,
                            struct ndt_error *err)
{
    struct ndt_backend *inner = *backend;
    const struct ndt_backend_ops *ops = inner->ops;
    struct failover_backend *failover = calloc(1, sizeof(*failover));
    *backend = NULL;
    if (!failover) {
        ops->close(inner);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for backend %s", ops->name);
    }
    failover->inner = inner;
    failover->first = ops;
    failover->config = *config;
    failover->ops = failover_ops;
    failover->ops.name = ops->name;
    failover->ops.about = ops->about;
    failover->ops.probe = ops->probe;
    failover->ops.open = ops->open;
    failover->ops.pipelines = ops->pipelines;
    failover->ops.plan = ops->plan;
    if (!ops->set_map_async)
        failover->ops.set_map_async = NULL;
    if (!ops->inform)
        failover->ops.inform = NULL;
    if (!ops->score_poses)
        failover->ops.score_poses = NULL;
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

#include "bench_overheads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"

enum { MOST_CANDIDATES = 16, MOST_ROUNDS = 1000 };
static const double JITTER_M = 0.02;

/* One backend and pipeline, open while its rows are measured. */
struct candidate {
    char name[BENCH_OVERHEAD_NAME];
    const struct ndt_backend_ops *ops;
    const char *pipeline;
    struct ndt_backend *backend; /* NULL: does not work here */
    struct ndt_error why;
    double *eval_us, *kernel_us; /* one per round */
};
struct candidates {
    struct candidate items[MOST_CANDIDATES];
    size_t count;
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(double), ascending);
    return values[count / 2];
}

const char *bench_overhead_kind_name(enum bench_overhead_kind kind)
{
    static const char *const names[BENCH_OVERHEAD_KINDS] = {"evaluation", "kernel-only", "copy-only", "launch-only",
                                                            "synchronise-only"};
    return names[kind];
}

/* splitmix64 */
static float jitter(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(((double)(z >> 11) * 0x1p-52 - 1) * JITTER_M);
}

enum ndt_status bench_overheads_scan(struct ndt_cloud *out, const struct ndt_cloud *from, size_t count,
                                     uint64_t seed, struct ndt_error *err)
{
    uint64_t state = seed;
    out->count = 0;
    if (from->count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a scan without points cannot be measured");
    enum ndt_status status = ndt_cloud_reserve(out, count, 0, err);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        const int is_repeat = i >= from->count;
        const size_t k = count <= from->count ? i * from->count / count : i % from->count;
        out->x_m[i] = from->x_m[k] + (is_repeat ? jitter(&state) : 0);
        out->y_m[i] = from->y_m[k] + (is_repeat ? jitter(&state) : 0);
        out->z_m[i] = from->z_m[k] + (is_repeat ? jitter(&state) : 0);
        out->count++;
    }
    return status;
}

static void close_candidate(struct candidate *candidate)
{
    if (candidate->backend)
        candidate->ops->close(candidate->backend);
    candidate->backend = NULL;
}

/* Pipelines with whole searches differ in those only: an evaluation of one is that of all of them. */
static int has_solves(const struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->backend && candidate->ops->solve_limit &&
            candidate->ops->solve_limit(candidate->backend) > 0)
            return 1;
    }
    return 0;
}

static void open_candidate(struct candidates *candidates, const struct bench_overheads_request *request,
                           const struct ndt_backend_ops *ops, const char *pipeline)
{
    if (candidates->count == MOST_CANDIDATES)
        return;
    struct candidate *candidate = &candidates->items[candidates->count++];
    struct ndt_backend_config config = request->config;
    *candidate = (struct candidate){.ops = ops, .pipeline = pipeline};
    snprintf(candidate->name, sizeof(candidate->name), "%s%s%s", ops->name, pipeline ? " " : "",
             pipeline ? pipeline : "");
    config.pipeline = pipeline;
    config.max_points = 1;
    for (size_t i = 0; i < request->size_count; i++)
        if (config.max_points < request->sizes[i])
            config.max_points = request->sizes[i];
    const int is_covered = has_solves(candidates);
    if (ops->probe(&candidate->why) != NDT_OK || ops->open(&candidate->backend, &config, &candidate->why) != NDT_OK)
        candidate->backend = NULL;
    if (is_covered && (!candidate->backend || (ops->solve_limit && ops->solve_limit(candidate->backend) > 0))) {
        close_candidate(candidate);
        candidates->count--;
    }
}

static enum ndt_status open_candidates(struct candidates *candidates, const struct bench_overheads_request *request,
                                       struct ndt_error *err)
{
    const struct ndt_backend_ops *ops;
    open_candidate(candidates, request, &ndt_cpu_backend, NULL);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->overheads ? ops->pipelines : NULL; name && *name; name++)
            open_candidate(candidates, request, ops, *name);
    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->items[i];
        candidate->eval_us = calloc((size_t)request->rounds, sizeof(double));
        candidate->kernel_us = calloc((size_t)request->rounds, sizeof(double));
        if (!candidate->eval_us || !candidate->kernel_us)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d rounds", request->rounds);
        if (candidate->backend &&
            candidate->ops->set_map(candidate->backend, request->map, &candidate->why) != NDT_OK)
            close_candidate(candidate);
    }
    return NDT_OK;
}

static enum ndt_status evaluate(struct candidate *candidate, const struct ndt_eval_request *where, size_t round)
{
    struct ndt_backend_counters before = {0}, after = {0};
    struct ndt_eval sums;
    if (candidate->ops->counters)
        candidate->ops->counters(candidate->backend, &before);
    const double start_us = now_us();
    enum ndt_status status = candidate->ops->eval(candidate->backend, where, &sums, &candidate->why);
    candidate->eval_us[round] = now_us() - start_us;
    if (candidate->ops->counters)
        candidate->ops->counters(candidate->backend, &after);
    candidate->kernel_us[round] = after.kernel_us - before.kernel_us;
    return status;
}

/* One evaluation of each in turn. A way that fails is out from then on, with the reason in its rows. */
static void measure_evaluations(struct candidates *candidates, const struct bench_overheads_request *request,
                                const struct ndt_cloud *scan)
{
    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->items[i];
        enum ndt_status status =
            candidate->backend ? candidate->ops->set_scan(candidate->backend, scan, &candidate->why) : NDT_OK;
        for (int warm = 0; candidate->backend && status == NDT_OK && warm < 3; warm++)
            status = evaluate(candidate, &request->where, 0);
        if (status != NDT_OK)
            close_candidate(candidate);
    }
    for (size_t round = 0; round < (size_t)request->rounds; round++)
        for (size_t i = 0; i < candidates->count; i++) {
            struct candidate *candidate = &candidates->items[(i + round) % candidates->count];
            /* Twice: the first finds caches that others have used and workers asleep. */
            if (candidate->backend && (evaluate(candidate, &request->where, round) != NDT_OK ||
                                       evaluate(candidate, &request->where, round) != NDT_OK))
                close_candidate(candidate);
        }
}

static enum ndt_status add_row(struct bench_overheads *out, const struct bench_overhead *row, struct ndt_error *err)
{
    if (out->count == BENCH_OVERHEAD_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d rows", BENCH_OVERHEAD_ROWS);
    out->rows[out->count++] = *row;
    return NDT_OK;
}

static enum ndt_status add_rows(struct bench_overheads *out, struct candidate *candidate,
                                const struct bench_overheads_request *request, size_t points, struct ndt_error *err)
{
    struct ndt_overheads cost = {0};
    double took_us[BENCH_OVERHEAD_KINDS] = {0};
    const int kinds = candidate->ops->overheads ? BENCH_OVERHEAD_KINDS : 1;
    if (candidate->backend && kinds > 1 &&
        candidate->ops->overheads(candidate->backend, request->rounds, &cost, &candidate->why) != NDT_OK)
        close_candidate(candidate);
    if (candidate->backend) {
        took_us[BENCH_EVALUATION] = median(candidate->eval_us, (size_t)request->rounds);
        took_us[BENCH_KERNEL_ONLY] = median(candidate->kernel_us, (size_t)request->rounds);
        took_us[BENCH_COPY_ONLY] = cost.copies_us;
        took_us[BENCH_LAUNCH_ONLY] = cost.launch_us;
        took_us[BENCH_SYNCHRONISE_ONLY] = cost.synchronise_us;
    }
    enum ndt_status status = NDT_OK;
    for (int kind = 0; status == NDT_OK && kind < kinds; kind++) {
        struct bench_overhead row = {.kind = (enum bench_overhead_kind)kind,
                                     .points = points,
                                     .measured_points = request->points->count,
                                     .is_here = candidate->backend != NULL,
                                     .median_us = took_us[kind],
                                     .why = candidate->why};
        memcpy(row.what, candidate->name, sizeof(row.what));
        status = add_row(out, &row, err);
    }
    return status;
}

enum ndt_status bench_overheads_run(struct bench_overheads *out, const struct bench_overheads_request *request,
                                    struct ndt_error *err)
{
    static struct candidates candidates;
    struct ndt_cloud scan;
    if (request->rounds < 1 || request->rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d rounds; 1 to %d are possible", request->rounds, MOST_ROUNDS);
    out->count = candidates.count = 0;
    ndt_cloud_init(&scan);
    enum ndt_status status = open_candidates(&candidates, request, err);
    out->is_lacking_device = candidates.count == 1;
    for (size_t i = 0; status == NDT_OK && i < request->size_count; i++) {
        status = bench_overheads_scan(&scan, request->points, request->sizes[i], request->seed, err);
        if (status == NDT_OK)
            measure_evaluations(&candidates, request, &scan);
        for (size_t k = 0; status == NDT_OK && k < candidates.count; k++)
            status = add_rows(out, &candidates.items[k], request, request->sizes[i], err);
    }
    for (size_t i = 0; i < candidates.count; i++) {
        close_candidate(&candidates.items[i]);
        free(candidates.items[i].eval_us);
        free(candidates.items[i].kernel_us);
    }
    ndt_cloud_free(&scan);
    return status;
}

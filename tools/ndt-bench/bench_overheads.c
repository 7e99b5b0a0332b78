#include "bench_overheads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"

enum { MOST_WAYS = 16, MOST_ROUNDS = 1000 };
static const double JITTER_M = 0.02;

/* One backend and pipeline, open while its rows are measured. */
struct way {
    char name[BENCH_OVERHEAD_NAME];
    const struct ndt_backend_ops *ops;
    const char *pipeline;
    struct ndt_backend *backend; /* NULL: does not work here */
    struct ndt_error why;
    double *eval_us, *kernel_us; /* one per round */
};
struct ways {
    struct way items[MOST_WAYS];
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

static void close_way(struct way *way)
{
    if (way->backend)
        way->ops->close(way->backend);
    way->backend = NULL;
}

/* Pipelines with whole searches differ in those only: an evaluation of one is that of all of them. */
static int has_searches(const struct ways *ways)
{
    for (size_t i = 0; i < ways->count; i++) {
        const struct way *way = &ways->items[i];
        if (way->backend && way->ops->search_limit && way->ops->search_limit(way->backend) > 0)
            return 1;
    }
    return 0;
}

static void open_way(struct ways *ways, const struct bench_overheads_request *request,
                     const struct ndt_backend_ops *ops, const char *pipeline)
{
    if (ways->count == MOST_WAYS)
        return;
    struct way *way = &ways->items[ways->count++];
    struct ndt_backend_config config = request->config;
    *way = (struct way){.ops = ops, .pipeline = pipeline};
    snprintf(way->name, sizeof(way->name), "%s%s%s", ops->name, pipeline ? " " : "", pipeline ? pipeline : "");
    config.pipeline = pipeline;
    config.max_points = 1;
    for (size_t i = 0; i < request->size_count; i++)
        if (config.max_points < request->sizes[i])
            config.max_points = request->sizes[i];
    const int is_covered = has_searches(ways);
    if (ops->probe(&way->why) != NDT_OK || ops->open(&way->backend, &config, &way->why) != NDT_OK)
        way->backend = NULL;
    if (is_covered && (!way->backend || (ops->search_limit && ops->search_limit(way->backend) > 0))) {
        close_way(way);
        ways->count--;
    }
}

static enum ndt_status open_ways(struct ways *ways, const struct bench_overheads_request *request,
                                 struct ndt_error *err)
{
    const struct ndt_backend_ops *ops;
    open_way(ways, request, &ndt_cpu_backend, NULL);
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        for (const char *const *name = ops->overheads ? ops->pipelines : NULL; name && *name; name++)
            open_way(ways, request, ops, *name);
    for (size_t i = 0; i < ways->count; i++) {
        struct way *way = &ways->items[i];
        way->eval_us = calloc((size_t)request->rounds, sizeof(double));
        way->kernel_us = calloc((size_t)request->rounds, sizeof(double));
        if (!way->eval_us || !way->kernel_us)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d rounds", request->rounds);
        if (way->backend && way->ops->set_map(way->backend, request->map, &way->why) != NDT_OK)
            close_way(way);
    }
    return NDT_OK;
}

static enum ndt_status evaluate(struct way *way, const struct ndt_eval_request *where, size_t round)
{
    struct ndt_backend_counters before = {0}, after = {0};
    struct ndt_eval sums;
    if (way->ops->counters)
        way->ops->counters(way->backend, &before);
    const double start_us = now_us();
    enum ndt_status status = way->ops->eval(way->backend, where, &sums, &way->why);
    way->eval_us[round] = now_us() - start_us;
    if (way->ops->counters)
        way->ops->counters(way->backend, &after);
    way->kernel_us[round] = after.kernel_us - before.kernel_us;
    return status;
}

/* One evaluation of each in turn. A way that fails is out from then on, with the reason in its rows. */
static void measure_evaluations(struct ways *ways, const struct bench_overheads_request *request,
                                const struct ndt_cloud *scan)
{
    for (size_t i = 0; i < ways->count; i++) {
        struct way *way = &ways->items[i];
        enum ndt_status status = way->backend ? way->ops->set_scan(way->backend, scan, &way->why) : NDT_OK;
        for (int warm = 0; way->backend && status == NDT_OK && warm < 3; warm++)
            status = evaluate(way, &request->where, 0);
        if (status != NDT_OK)
            close_way(way);
    }
    for (size_t round = 0; round < (size_t)request->rounds; round++)
        for (size_t i = 0; i < ways->count; i++) {
            struct way *way = &ways->items[(i + round) % ways->count];
            /* Twice: the first finds caches that others have used and workers asleep. */
            if (way->backend && (evaluate(way, &request->where, round) != NDT_OK ||
                                 evaluate(way, &request->where, round) != NDT_OK))
                close_way(way);
        }
}

static enum ndt_status add_row(struct bench_overheads *out, const struct bench_overhead *row, struct ndt_error *err)
{
    if (out->count == BENCH_OVERHEAD_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d rows", BENCH_OVERHEAD_ROWS);
    out->rows[out->count++] = *row;
    return NDT_OK;
}

static enum ndt_status add_rows(struct bench_overheads *out, struct way *way,
                                const struct bench_overheads_request *request, size_t points, struct ndt_error *err)
{
    struct ndt_overheads cost = {0};
    double took_us[BENCH_OVERHEAD_KINDS] = {0};
    const int kinds = way->ops->overheads ? BENCH_OVERHEAD_KINDS : 1;
    if (way->backend && kinds > 1 && way->ops->overheads(way->backend, request->rounds, &cost, &way->why) != NDT_OK)
        close_way(way);
    if (way->backend) {
        took_us[BENCH_EVALUATION] = median(way->eval_us, (size_t)request->rounds);
        took_us[BENCH_KERNEL_ONLY] = median(way->kernel_us, (size_t)request->rounds);
        took_us[BENCH_COPY_ONLY] = cost.copies_us;
        took_us[BENCH_LAUNCH_ONLY] = cost.launch_us;
        took_us[BENCH_SYNCHRONISE_ONLY] = cost.synchronise_us;
    }
    enum ndt_status status = NDT_OK;
    for (int kind = 0; status == NDT_OK && kind < kinds; kind++) {
        struct bench_overhead row = {.kind = (enum bench_overhead_kind)kind,
                                     .points = points,
                                     .measured_points = request->points->count,
                                     .is_here = way->backend != NULL,
                                     .median_us = took_us[kind],
                                     .why = way->why};
        memcpy(row.what, way->name, sizeof(row.what));
        status = add_row(out, &row, err);
    }
    return status;
}

enum ndt_status bench_overheads_run(struct bench_overheads *out, const struct bench_overheads_request *request,
                                    struct ndt_error *err)
{
    static struct ways ways;
    struct ndt_cloud scan;
    if (request->rounds < 1 || request->rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d rounds; 1 to %d are possible", request->rounds, MOST_ROUNDS);
    out->count = ways.count = 0;
    ndt_cloud_init(&scan);
    enum ndt_status status = open_ways(&ways, request, err);
    out->is_lacking_device = ways.count == 1;
    for (size_t i = 0; status == NDT_OK && i < request->size_count; i++) {
        status = bench_overheads_scan(&scan, request->points, request->sizes[i], request->seed, err);
        if (status == NDT_OK)
            measure_evaluations(&ways, request, &scan);
        for (size_t k = 0; status == NDT_OK && k < ways.count; k++)
            status = add_rows(out, &ways.items[k], request, request->sizes[i], err);
    }
    for (size_t i = 0; i < ways.count; i++) {
        close_way(&ways.items[i]);
        free(ways.items[i].eval_us);
        free(ways.items[i].kernel_us);
    }
    ndt_cloud_free(&scan);
    return status;
}

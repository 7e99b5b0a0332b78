#define _GNU_SOURCE /* CPU sets */
#include "ndtd/calibration.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/probe_scan.h"
#include "ndtd/samples.h"
#include "ndtd/stopwatch.h"
#include "ndtd/trials.h"

enum {
    SAMPLES = 60,
    SAMPLES_ALONE = 15,
    SAMPLES_MOST = 1000,
    GUESSES = 8,
    COST_ROUNDS = 6,
    POINTS_UNKNOWN = 10000
};
/* What opens faster is closed after its turn, so that its idle workers do not spin beside the others. */
static const double QUICK_US = 5e3;
/* Workers that spin longer than this after their work are taken to be awake when a scan comes. */
static const double SLEEPY_US = 1000, ASLEEP_US = 50;
/* An alignment takes about ten evaluations, a turn six alignments: what cannot do this many in the time is left
 * out. */
static const double EVALUATIONS_LEAST = 100;

struct candidate {
    const struct ndt_backend_ops *ops;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    double open_us;
    double align_us; /* the last one */
    struct ndt_align_costs seen;
    double *evaluation_us;
    size_t evaluation_count;
};

struct bench {
    const struct ndtd_calibration *request;
    struct ndtd_route *route;
    struct ndt_align_params params;
    struct ndt_cloud drawn, quarter;
    const struct ndt_cloud *scan;
    struct ndt_pose T_map_sensor;
    double end_us;
    enum ndt_status gate_status; /* a failure of the gate is nobody's fault */
    struct candidate candidates[NDTD_ROUTE_ROWS];
};

/* ---- ways ---- */

size_t ndtd_calibration_points(const struct ndtd_settings *settings)
{
    return settings->preprocess.sample_count ? settings->preprocess.sample_count : POINTS_UNKNOWN;
}

static void add_way(struct ndtd_route_row *rows, size_t *count, const char *backend, const char *pipeline,
                    int threads)
{
    if (*count == NDTD_ROUTE_ROWS)
        return;
    struct ndtd_route_row *row = &rows[(*count)++];
    *row = (struct ndtd_route_row){.way = {.threads = threads, .batch = 1}};
    snprintf(row->way.backend, sizeof(row->way.backend), "%s", backend);
    snprintf(row->way.pipeline, sizeof(row->way.pipeline), "%s", pipeline);
}

static int most_threads(const struct ndtd_settings *settings)
{
    cpu_set_t cores;
    if (settings->max_threads > 0)
        return settings->max_threads;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

static void add_cpu(const struct ndtd_settings *settings, struct ndtd_route_row *rows, size_t *count)
{
    static const int steps[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    const char *name = ndt_cpu_backend.name;
    if (settings->compute.threads > 0) {
        add_way(rows, count, name, "", settings->compute.threads);
        return;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (i == 0 || steps[i] <= most_threads(settings))
            add_way(rows, count, name, "", steps[i]);
}

static void add_device(const struct ndtd_settings *settings, const struct ndt_backend_ops *ops,
                       struct ndtd_route_row *rows, size_t *count)
{
    const char *wanted = settings->compute.pipeline;
    if (!ops->pipelines)
        add_way(rows, count, ops->name, "", 0);
    for (const char *const *name = ops->pipelines; name && *name; name++)
        if (!wanted || strcmp(*name, wanted) == 0)
            add_way(rows, count, ops->name, *name, 0);
}

/* One that was named: as it would be opened without any calibration. */
static void add_named(const struct ndtd_settings *settings, const struct ndt_backend_ops *ops,
                      struct ndtd_route_row *rows, size_t *count)
{
    const char *pipeline = settings->compute.pipeline;
    if (ops->pipelines && !pipeline)
        pipeline = ops->pipelines[0];
    add_way(rows, count, ops->name, ops->pipelines ? pipeline : "",
            ops == &ndt_cpu_backend ? settings->compute.threads : 0);
}

size_t ndtd_calibration_ways(const struct ndtd_settings *settings, struct ndtd_route_row rows[NDTD_ROUTE_ROWS])
{
    const int is_auto = strcmp(settings->backend, "auto") == 0;
    const struct ndt_backend_ops *ops;
    size_t count = 0;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        if (!is_auto && strcmp(settings->backend, ops->name) == 0)
            add_named(settings, ops, rows, &count);
        if (!is_auto || ops == &ndt_reference_backend)
            continue;
        if (ops == &ndt_cpu_backend)
            add_cpu(settings, rows, &count);
        else
            add_device(settings, ops, rows, &count);
    }
    return count;
}

const struct ndt_backend_ops *ndtd_way_config(const struct ndtd_way *way, struct ndt_backend_config *config)
{
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        if (strcmp(ops->name, way->backend) == 0)
            break;
    if (!ops)
        return NULL;
    config->threads = way->threads;
    config->pipeline = NULL;
    for (const char *const *name = ops->pipelines; name && *name; name++)
        if (strcmp(*name, way->pipeline) == 0)
            config->pipeline = *name;
    return *way->pipeline && !config->pipeline ? NULL : ops;
}

/* ---- one candidate ---- */

static void close_candidate(struct candidate *candidate)
{
    ndt_aligner_destroy(candidate->aligner);
    if (candidate->backend)
        candidate->ops->close(candidate->backend);
    candidate->aligner = NULL;
    candidate->backend = NULL;
}

/* One evaluation: whether there is time for many. */
static enum ndt_status check_speed(struct bench *bench, struct candidate *candidate, struct ndt_error *err)
{
    const struct ndt_align_level *level = &bench->params.levels[bench->params.level_count - 1];
    const struct ndt_map *map = bench->request->map;
    struct ndt_eval_request where = {.level = ndt_map_find_level(map, level->leaf_m),
                                     .neighbours = level->neighbours};
    struct ndt_eval sums;
    for (int i = 0; i < 3; i++)
        where.p[i] = bench->T_map_sensor.t_m[i] - map->origin_m[i];
    enum ndt_status status = candidate->ops->set_scan(candidate->backend, bench->scan, err);
    const double start_us = ndtd_now_us();
    if (status == NDT_OK)
        status = candidate->ops->eval(candidate->backend, &where, &sums, err);
    const double took_us = ndtd_now_us() - start_us;
    if (status == NDT_OK && took_us * EVALUATIONS_LEAST > bench->request->time_us)
        return ndt_fail(err, NDT_ERR_LIMIT, "one evaluation takes %.4g ms: too slow to be measured in %g ms",
                        took_us * 1e-3, bench->request->time_us * 1e-3);
    return status;
}

static enum ndt_status open_backend(struct bench *bench, struct candidate *candidate, const struct ndtd_way *way,
                                    struct ndt_error *err)
{
    struct ndt_backend_config config = bench->request->settings->compute;
    candidate->ops = ndtd_way_config(way, &config);
    if (!candidate->ops)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no such backend");
    config.max_points = bench->scan->count; /* devices allocate for so many */
    enum ndt_status status = candidate->ops->probe(err);
    if (status == NDT_OK)
        status = candidate->ops->open(&candidate->backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&candidate->aligner, candidate->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(candidate->aligner, bench->request->map, err);
    return status;
}

static enum ndt_status wait_for_gate(struct bench *bench, double expected_us, struct ndt_error *err)
{
    const struct ndtd_calibration_gate *gate = &bench->request->gate;
    if (gate->wait)
        bench->gate_status = gate->wait(gate->context, expected_us, err);
    return bench->gate_status;
}

static enum ndt_status open_way(void *context, size_t row, struct ndt_error *err)
{
    struct bench *bench = context;
    struct candidate *candidate = &bench->candidates[row];
    if (candidate->backend)
        return NDT_OK;
    const int is_first = candidate->open_us == 0;
    enum ndt_status status = wait_for_gate(bench, candidate->open_us, err);
    if (status != NDT_OK)
        return status;
    const double start_us = ndtd_now_us();
    status = open_backend(bench, candidate, &bench->route->rows[row].way, err);
    candidate->open_us = ndtd_now_us() - start_us;
    if (status == NDT_OK && is_first)
        status = check_speed(bench, candidate, err);
    if (status != NDT_OK)
        close_candidate(candidate);
    return status;
}

static void close_way(void *context, size_t row)
{
    struct bench *bench = context;
    if (bench->candidates[row].open_us < QUICK_US)
        close_candidate(&bench->candidates[row]);
}

static void let_workers_sleep(const struct bench *bench)
{
    const double spin_us = bench->request->settings->compute.spin_us;
    if (spin_us <= SLEEPY_US)
        nanosleep(&(struct timespec){.tv_nsec = (long)((spin_us + ASLEEP_US) * 1e3)}, NULL);
}

static int was_disturbed(const struct bench *bench)
{
    const struct ndtd_calibration_gate *gate = &bench->request->gate;
    return gate->was_disturbed && gate->was_disturbed(gate->context);
}

static enum ndt_status align(struct bench *bench, struct candidate *candidate, const struct ndt_cloud *scan,
                             size_t number, struct ndt_align_result *result, struct ndt_error *err)
{
    const struct ndt_pose guess = ndtd_probe_guess(&bench->T_map_sensor, number % GUESSES);
    do {
        enum ndt_status status = wait_for_gate(bench, candidate->align_us, err);
        if (status != NDT_OK)
            return status;
        let_workers_sleep(bench);
        status = ndt_align(candidate->aligner, &bench->params, scan, &guess, result, err);
        if (status != NDT_OK)
            return status;
        candidate->align_us = result->align_us;
    } while (was_disturbed(bench));
    return NDT_OK;
}

static enum ndt_status sample(void *context, size_t row, size_t number, double *us, struct ndt_error *err)
{
    struct bench *bench = context;
    struct candidate *candidate = &bench->candidates[row];
    struct ndt_align_result result;
    enum ndt_status status = align(bench, candidate, bench->scan, number, &result, err);
    if (status != NDT_OK)
        return status;
    *us = result.align_us;
    ndt_aligner_costs(candidate->aligner, &candidate->seen);
    if (result.evaluations > 0 && candidate->evaluation_count < SAMPLES_MOST)
        candidate->evaluation_us[candidate->evaluation_count++] = result.align_us / result.evaluations;
    return NDT_OK;
}

static double now_us(void *context)
{
    (void)context;
    return ndtd_now_us();
}

/* ---- what its parts cost ---- */

static enum ndt_status seen_costs(struct bench *bench, struct candidate *candidate, const struct ndt_cloud *scan,
                                  struct ndt_align_costs *out, struct ndt_error *err)
{
    struct ndt_align_result result;
    enum ndt_status status = NDT_OK;
    ndt_aligner_set_costs(candidate->aligner, &(struct ndt_align_costs){0});
    for (size_t i = 0; status == NDT_OK && i < COST_ROUNDS; i++)
        status = align(bench, candidate, scan, i, &result, err);
    ndt_aligner_costs(candidate->aligner, out);
    return status;
}

/* A line through two sizes; neither part is negative. */
static struct ndt_cost fit(double small_us, double small, double large_us, double large)
{
    struct ndt_cost cost = {.point_us =
                                large > small && small_us > 0 ? (large_us - small_us) / (large - small) : 0};
    cost.point_us = fmin(fmax(cost.point_us, 0), large_us / large);
    cost.fixed_us = fmax(large_us - cost.point_us * large, 0);
    return cost;
}

static enum ndt_status take_quarter(struct bench *bench, struct ndt_error *err)
{
    struct ndt_cloud *to = &bench->quarter;
    const struct ndt_cloud *from = bench->scan;
    enum ndt_status status = ndt_cloud_reserve(to, from->count / 4 + 1, 0, err);
    to->count = 0;
    for (size_t i = 0; status == NDT_OK && i < from->count; i += 4) {
        to->x_m[to->count] = from->x_m[i];
        to->y_m[to->count] = from->y_m[i];
        to->z_m[to->count++] = from->z_m[i];
    }
    return status;
}

static enum ndt_status measure_sizes(struct bench *bench, size_t row, struct ndt_align_costs *small,
                                     struct ndt_align_costs *large, struct ndt_error *err)
{
    enum ndt_status status = open_way(bench, row, err);
    if (status == NDT_OK)
        status = seen_costs(bench, &bench->candidates[row], bench->scan, large, err);
    if (status == NDT_OK)
        status = seen_costs(bench, &bench->candidates[row], &bench->quarter, small, err);
    return status;
}

/* Where the time is over, what was seen on the way has to do: then all is taken to grow with the points. */
static enum ndt_status measure_costs(struct bench *bench, size_t row, struct ndt_error *err)
{
    struct candidate *candidate = &bench->candidates[row];
    struct ndt_align_costs large = candidate->seen, small = {0}, *out = &bench->route->costs;
    enum ndt_status status = take_quarter(bench, err);
    if (status == NDT_OK && ndtd_now_us() < bench->end_us)
        status = measure_sizes(bench, row, &small, &large, err);
    if (status != NDT_OK)
        return status;
    const double points = (double)bench->scan->count, quarter = (double)bench->quarter.count;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->levels[i] = fit(small.levels[i].fixed_us, quarter, large.levels[i].fixed_us, points);
    out->judge = fit(small.judge.fixed_us, quarter, large.judge.fixed_us, points);
    struct ndtd_samples evaluations = {.values = candidate->evaluation_us, .count = candidate->evaluation_count};
    bench->route->evaluation_us = ndtd_samples_quantile(&evaluations, 0.5);
    return NDT_OK;
}

/* ---- all ---- */

static enum ndt_status prepare(struct bench *bench, struct ndt_error *err)
{
    const struct ndtd_calibration *request = bench->request;
    const struct ndtd_settings *settings = request->settings;
    bench->params = settings->align;
    bench->params.deadline_s = 0;
    bench->params.has_gnss = 0;
    bench->scan = request->scan;
    bench->T_map_sensor = request->T_map_sensor;
    for (size_t i = 0; i < NDTD_ROUTE_ROWS; i++) {
        bench->candidates[i].evaluation_us = malloc(SAMPLES_MOST * sizeof(double));
        if (!bench->candidates[i].evaluation_us)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for measuring");
    }
    if (bench->scan && bench->scan->count > 0)
        return NDT_OK;
    bench->scan = &bench->drawn;
    return ndtd_probe_scan(&bench->drawn, &bench->T_map_sensor, request->map,
                           settings->has_initial_pose ? settings->initial_pose : NULL,
                           request->points ? request->points : ndtd_calibration_points(settings), err);
}

static enum ndt_status measure(struct bench *bench, struct ndt_error *err)
{
    static const struct ndtd_trial_ops ops = {open_way, close_way, sample, now_us};
    const struct ndtd_calibration *request = bench->request;
    struct ndtd_route *route = bench->route;
    const struct ndtd_trial_limits limits = {.time_us = request->time_us,
                                             .samples = request->samples       ? request->samples
                                                        : route->row_count > 1 ? SAMPLES
                                                                               : SAMPLES_ALONE};
    struct ndt_error why = {""};
    enum ndt_status status = ndtd_trials_run(route->rows, route->row_count, &ops, bench, &limits, err);
    for (;;) {
        if (status == NDT_OK && bench->gate_status != NDT_OK)
            return ndt_fail(err, bench->gate_status, "no quiet moment to measure in");
        route->choice = ndtd_route_decide(route->rows, route->row_count, route->budget_us);
        if (status != NDT_OK || route->choice.row < 0)
            return status;
        struct ndtd_route_row *chosen = &route->rows[route->choice.row];
        if (measure_costs(bench, (size_t)route->choice.row, &why) == NDT_OK)
            return NDT_OK;
        chosen->is_here = 0; /* the next best then */
        snprintf(chosen->why, sizeof(chosen->why), "%.*s", (int)sizeof(chosen->why) - 1, why.text);
    }
}

enum ndt_status ndtd_calibrate(const struct ndtd_calibration *request, struct ndtd_route *out,
                               struct ndt_error *err)
{
    const double start_us = ndtd_now_us();
    struct bench *bench = calloc(1, sizeof(*bench));
    memset(out, 0, sizeof(*out));
    out->choice.row = -1;
    if (!bench)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for measuring");
    bench->request = request;
    bench->end_us = start_us + 1.1 * request->time_us; /* a little for the parts of the chosen way */
    bench->route = out;
    out->source = NDTD_ROUTE_MEASURED;
    out->measured_s = (int64_t)time(NULL);
    out->map_id = request->map->id;
    out->budget_us = request->settings->budget_s * 1e6;
    out->row_count = ndtd_calibration_ways(request->settings, out->rows);
    enum ndt_status status = prepare(bench, err);
    if (status == NDT_OK) {
        out->points = bench->scan->count;
        status = measure(bench, err);
    }
    for (size_t i = 0; i < NDTD_ROUTE_ROWS; i++) {
        close_candidate(&bench->candidates[i]);
        free(bench->candidates[i].evaluation_us);
    }
    ndt_cloud_free(&bench->drawn);
    ndt_cloud_free(&bench->quarter);
    free(bench);
    out->took_us = ndtd_now_us() - start_us;
    return status;
}

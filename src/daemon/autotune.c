#define _GNU_SOURCE /* CPU sets */
#include "ndtd/autotune.h"

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
#include "ndtd/autotune_sampler.h"

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

struct subject {
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
    const struct ndtd_autotune_request *request;
    struct ndtd_autotune_result *tuned;
    struct ndt_align_params params;
    struct ndt_cloud drawn, quarter;
    const struct ndt_cloud *scan;
    struct ndt_pose T_map_sensor;
    double end_us;
    enum ndt_status gate_status; /* a failure of the gate is nobody's fault */
    struct subject subjects[NDTD_AUTOTUNE_ROWS];
};

/* ---- ways ---- */

size_t ndtd_autotune_points(const struct ndtd_settings *settings)
{
    return settings->preprocess.sample_count ? settings->preprocess.sample_count : POINTS_UNKNOWN;
}

static void add_candidate(struct ndtd_autotune_row *rows, size_t *count, const char *backend, const char *pipeline,
                          int threads)
{
    if (*count == NDTD_AUTOTUNE_ROWS)
        return;
    struct ndtd_autotune_row *row = &rows[(*count)++];
    *row = (struct ndtd_autotune_row){.candidate = {.threads = threads, .batch = 1}};
    snprintf(row->candidate.backend, sizeof(row->candidate.backend), "%s", backend);
    snprintf(row->candidate.pipeline, sizeof(row->candidate.pipeline), "%s", pipeline);
}

static int most_threads(const struct ndtd_settings *settings)
{
    cpu_set_t cores;
    if (settings->max_threads > 0)
        return settings->max_threads;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

static void add_cpu(const struct ndtd_settings *settings, struct ndtd_autotune_row *rows, size_t *count)
{
    static const int steps[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    const char *name = ndt_cpu_backend.name;
    if (settings->compute.threads > 0) {
        add_candidate(rows, count, name, "", settings->compute.threads);
        return;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (i == 0 || steps[i] <= most_threads(settings))
            add_candidate(rows, count, name, "", steps[i]);
}

static void add_device(const struct ndtd_settings *settings, const struct ndt_backend_ops *ops,
                       struct ndtd_autotune_row *rows, size_t *count)
{
    const char *wanted = settings->compute.pipeline;
    if (!ops->pipelines)
        add_candidate(rows, count, ops->name, "", 0);
    for (const char *const *name = ops->pipelines; name && *name; name++)
        if (!wanted || strcmp(*name, wanted) == 0)
            add_candidate(rows, count, ops->name, *name, 0);
}

/* One that was named: as it would be opened without any calibration. */
static void add_named(const struct ndtd_settings *settings, const struct ndt_backend_ops *ops,
                      struct ndtd_autotune_row *rows, size_t *count)
{
    const char *pipeline = settings->compute.pipeline;
    if (ops->pipelines && !pipeline)
        pipeline = ops->pipelines[0];
    add_candidate(rows, count, ops->name, ops->pipelines ? pipeline : "",
                  ops == &ndt_cpu_backend ? settings->compute.threads : 0);
}

size_t ndtd_autotune_candidates(const struct ndtd_settings *settings,
                                struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS])
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

const struct ndt_backend_ops *ndtd_backend_candidate_config(const struct ndtd_backend_candidate *candidate,
                                                            struct ndt_backend_config *config)
{
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        if (strcmp(ops->name, candidate->backend) == 0)
            break;
    if (!ops)
        return NULL;
    config->threads = candidate->threads;
    config->pipeline = NULL;
    for (const char *const *name = ops->pipelines; name && *name; name++)
        if (strcmp(*name, candidate->pipeline) == 0)
            config->pipeline = *name;
    return *candidate->pipeline && !config->pipeline ? NULL : ops;
}

/* ---- one candidate ---- */

static void close_subject(struct subject *subject)
{
    ndt_aligner_destroy(subject->aligner);
    if (subject->backend)
        subject->ops->close(subject->backend);
    subject->aligner = NULL;
    subject->backend = NULL;
}

/* One evaluation: whether there is time for many. */
static enum ndt_status check_speed(struct bench *bench, struct subject *subject, struct ndt_error *err)
{
    const struct ndt_align_level *level = &bench->params.levels[bench->params.level_count - 1];
    const struct ndt_map *map = bench->request->map;
    struct ndt_eval_request where = {.level = ndt_map_find_level(map, level->leaf_m),
                                     .neighbours = level->neighbours};
    struct ndt_eval sums;
    for (int i = 0; i < 3; i++)
        where.p[i] = bench->T_map_sensor.t_m[i] - map->origin_m[i];
    enum ndt_status status = subject->ops->set_scan(subject->backend, bench->scan, err);
    const double start_us = ndtd_now_us();
    if (status == NDT_OK)
        status = subject->ops->eval(subject->backend, &where, &sums, err);
    const double took_us = ndtd_now_us() - start_us;
    if (status == NDT_OK && took_us * EVALUATIONS_LEAST > bench->request->time_us)
        return ndt_fail(err, NDT_ERR_LIMIT, "one evaluation takes %.4g ms: too slow to be measured in %g ms",
                        took_us * 1e-3, bench->request->time_us * 1e-3);
    return status;
}

static enum ndt_status open_backend(struct bench *bench, struct subject *subject,
                                    const struct ndtd_backend_candidate *candidate, struct ndt_error *err)
{
    struct ndt_backend_config config = bench->request->settings->compute;
    subject->ops = ndtd_backend_candidate_config(candidate, &config);
    if (!subject->ops)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no such backend");
    config.max_points = bench->scan->count; /* devices allocate for so many */
    enum ndt_status status = subject->ops->probe(err);
    if (status == NDT_OK)
        status = subject->ops->open(&subject->backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&subject->aligner, subject->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(subject->aligner, bench->request->map, err);
    return status;
}

static enum ndt_status wait_for_gate(struct bench *bench, double expected_us, struct ndt_error *err)
{
    const struct ndtd_autotune_gate *gate = &bench->request->gate;
    if (gate->wait)
        bench->gate_status = gate->wait(gate->context, expected_us, err);
    return bench->gate_status;
}

static enum ndt_status open_candidate(void *context, size_t row, struct ndt_error *err)
{
    struct bench *bench = context;
    struct subject *subject = &bench->subjects[row];
    if (subject->backend)
        return NDT_OK;
    const int is_first = subject->open_us == 0;
    enum ndt_status status = wait_for_gate(bench, subject->open_us, err);
    if (status != NDT_OK)
        return status;
    const double start_us = ndtd_now_us();
    status = open_backend(bench, subject, &bench->tuned->rows[row].candidate, err);
    subject->open_us = ndtd_now_us() - start_us;
    if (status == NDT_OK && is_first)
        status = check_speed(bench, subject, err);
    if (status != NDT_OK)
        close_subject(subject);
    return status;
}

static void close_candidate(void *context, size_t row)
{
    struct bench *bench = context;
    if (bench->subjects[row].open_us < QUICK_US)
        close_subject(&bench->subjects[row]);
}

static void let_workers_sleep(const struct bench *bench)
{
    const double spin_us = bench->request->settings->compute.spin_us;
    if (spin_us <= SLEEPY_US)
        nanosleep(&(struct timespec){.tv_nsec = (long)((spin_us + ASLEEP_US) * 1e3)}, NULL);
}

static int was_disturbed(const struct bench *bench)
{
    const struct ndtd_autotune_gate *gate = &bench->request->gate;
    return gate->was_disturbed && gate->was_disturbed(gate->context);
}

static enum ndt_status align(struct bench *bench, struct subject *subject, const struct ndt_cloud *scan,
                             size_t number, struct ndt_align_result *result, struct ndt_error *err)
{
    const struct ndt_pose guess = ndtd_probe_guess(&bench->T_map_sensor, number % GUESSES);
    do {
        enum ndt_status status = wait_for_gate(bench, subject->align_us, err);
        if (status != NDT_OK)
            return status;
        let_workers_sleep(bench);
        status = ndt_align(subject->aligner, &bench->params, scan, &guess, result, err);
        if (status != NDT_OK)
            return status;
        subject->align_us = result->align_us;
    } while (was_disturbed(bench));
    return NDT_OK;
}

static enum ndt_status sample(void *context, size_t row, size_t number, double *us, struct ndt_error *err)
{
    struct bench *bench = context;
    struct subject *subject = &bench->subjects[row];
    struct ndt_align_result result;
    enum ndt_status status = align(bench, subject, bench->scan, number, &result, err);
    if (status != NDT_OK)
        return status;
    *us = result.align_us;
    ndt_aligner_costs(subject->aligner, &subject->seen);
    if (result.evaluations > 0 && subject->evaluation_count < SAMPLES_MOST)
        subject->evaluation_us[subject->evaluation_count++] = result.align_us / result.evaluations;
    return NDT_OK;
}

static double now_us(void *context)
{
    (void)context;
    return ndtd_now_us();
}

/* ---- what its parts cost ---- */

static enum ndt_status seen_costs(struct bench *bench, struct subject *subject, const struct ndt_cloud *scan,
                                  struct ndt_align_costs *out, struct ndt_error *err)
{
    struct ndt_align_result result;
    enum ndt_status status = NDT_OK;
    ndt_aligner_set_costs(subject->aligner, &(struct ndt_align_costs){0});
    for (size_t i = 0; status == NDT_OK && i < COST_ROUNDS; i++)
        status = align(bench, subject, scan, i, &result, err);
    ndt_aligner_costs(subject->aligner, out);
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
    enum ndt_status status = open_candidate(bench, row, err);
    if (status == NDT_OK)
        status = seen_costs(bench, &bench->subjects[row], bench->scan, large, err);
    if (status == NDT_OK)
        status = seen_costs(bench, &bench->subjects[row], &bench->quarter, small, err);
    return status;
}

/* Where the time is over, what was seen on the way has to do: then all is taken to grow with the points. */
static enum ndt_status measure_costs(struct bench *bench, size_t row, struct ndt_error *err)
{
    struct subject *subject = &bench->subjects[row];
    struct ndt_align_costs large = subject->seen, small = {0}, *out = &bench->tuned->costs;
    enum ndt_status status = take_quarter(bench, err);
    if (status == NDT_OK && ndtd_now_us() < bench->end_us)
        status = measure_sizes(bench, row, &small, &large, err);
    if (status != NDT_OK)
        return status;
    const double points = (double)bench->scan->count, quarter = (double)bench->quarter.count;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->levels[i] = fit(small.levels[i].fixed_us, quarter, large.levels[i].fixed_us, points);
    out->assess = fit(small.assess.fixed_us, quarter, large.assess.fixed_us, points);
    struct ndtd_samples evaluations = {.values = subject->evaluation_us, .count = subject->evaluation_count};
    bench->tuned->evaluation_us = ndtd_samples_quantile(&evaluations, 0.5);
    return NDT_OK;
}

/* ---- all ---- */

static enum ndt_status prepare(struct bench *bench, struct ndt_error *err)
{
    const struct ndtd_autotune_request *request = bench->request;
    const struct ndtd_settings *settings = request->settings;
    bench->params = settings->align;
    bench->params.deadline_s = 0;
    bench->params.has_gnss = 0;
    bench->scan = request->scan;
    bench->T_map_sensor = request->T_map_sensor;
    for (size_t i = 0; i < NDTD_AUTOTUNE_ROWS; i++) {
        bench->subjects[i].evaluation_us = malloc(SAMPLES_MOST * sizeof(double));
        if (!bench->subjects[i].evaluation_us)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for measuring");
    }
    if (bench->scan && bench->scan->count > 0)
        return NDT_OK;
    bench->scan = &bench->drawn;
    return ndtd_probe_scan(&bench->drawn, &bench->T_map_sensor, request->map,
                           settings->has_initial_pose ? settings->initial_pose : NULL,
                           request->points ? request->points : ndtd_autotune_points(settings), err);
}

static enum ndt_status measure(struct bench *bench, struct ndt_error *err)
{
    static const struct ndtd_autotune_sampler_ops ops = {open_candidate, close_candidate, sample, now_us};
    const struct ndtd_autotune_request *request = bench->request;
    struct ndtd_autotune_result *tuned = bench->tuned;
    const struct ndtd_autotune_sampler_limits limits = {.time_us = request->time_us,
                                                        .samples = request->samples       ? request->samples
                                                                   : tuned->row_count > 1 ? SAMPLES
                                                                                          : SAMPLES_ALONE};
    struct ndt_error why = {""};
    enum ndt_status status = ndtd_autotune_sample(tuned->rows, tuned->row_count, &ops, bench, &limits, err);
    for (;;) {
        if (status == NDT_OK && bench->gate_status != NDT_OK)
            return ndt_fail(err, bench->gate_status, "no quiet moment to measure in");
        tuned->choice = ndtd_autotune_decide(tuned->rows, tuned->row_count, tuned->budget_us);
        if (status != NDT_OK || tuned->choice.row < 0)
            return status;
        struct ndtd_autotune_row *chosen = &tuned->rows[tuned->choice.row];
        if (measure_costs(bench, (size_t)tuned->choice.row, &why) == NDT_OK)
            return NDT_OK;
        chosen->is_here = 0; /* the next best then */
        snprintf(chosen->why, sizeof(chosen->why), "%.*s", (int)sizeof(chosen->why) - 1, why.text);
    }
}

enum ndt_status ndtd_autotune(const struct ndtd_autotune_request *request, struct ndtd_autotune_result *out,
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
    bench->tuned = out;
    out->source = NDTD_AUTOTUNE_MEASURED;
    out->measured_s = (int64_t)time(NULL);
    out->map_id = request->map->id;
    out->budget_us = request->settings->budget_s * 1e6;
    out->row_count = ndtd_autotune_candidates(request->settings, out->rows);
    enum ndt_status status = prepare(bench, err);
    if (status == NDT_OK) {
        out->points = bench->scan->count;
        status = measure(bench, err);
    }
    for (size_t i = 0; i < NDTD_AUTOTUNE_ROWS; i++) {
        close_subject(&bench->subjects[i]);
        free(bench->subjects[i].evaluation_us);
    }
    ndt_cloud_free(&bench->drawn);
    ndt_cloud_free(&bench->quarter);
    free(bench);
    out->took_us = ndtd_now_us() - start_us;
    return status;
}

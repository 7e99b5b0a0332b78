/* Times the candidates on this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndtd/autotune.h"
#include "ndtd/probe_scan.h"
#include "ndt/clock.h"

/* Points of a drawn scan where all points are used: their number is unknown before the first scan. */
enum { GUESSES = 8, COST_ROUNDS = 6, POINTS_UNKNOWN = 10000 };
/* An alignment may take this part of the time limit, else the candidate is left out. */
static const double PART = 0.25;
/* The expected costs of the chosen row are measured until this multiple of the time limit. */
static const double EXTRA = 1.1;
/* Workers that spin longer than this after their work are taken to be awake when a scan arrives. */
static const double SLEEPY_US = 1000, ASLEEP_US = 50;

struct subject {
    const struct ndt_backend_ops *ops;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    double align_us; /* of the last alignment */
};

struct measurement {
    const struct ndtd_autotune_request *request;
    struct ndtd_autotune_result *result;
    struct ndt_align_params params;
    struct ndt_cloud drawn;
    const struct ndt_cloud *scan;
    struct ndt_pose T_map_sensor;
    enum ndt_status wait_status; /* a failure of `wait` concerns all rows */
    size_t last_row;
    struct subject subjects[NDTD_AUTOTUNE_ROWS];
};

static void close_subject(struct subject *subject)
{
    ndt_aligner_destroy(subject->aligner);
    if (subject->backend)
        subject->ops->close(subject->backend);
    subject->aligner = NULL;
    subject->backend = NULL;
}

static enum ndt_status wait_for_turn(struct measurement *all, double expected_us, struct ndt_error *err)
{
    const struct ndtd_autotune_request *request = all->request;
    if (request->wait && all->wait_status == NDT_OK)
        all->wait_status = request->wait(request->context, expected_us, err);
    return all->wait_status;
}

static enum ndt_status open_subject(struct measurement *all, size_t row, struct ndt_error *err)
{
    struct subject *subject = &all->subjects[row];
    struct ndt_backend_config config = all->request->settings->compute;
    /* Threads of another CPU candidate would spin beside this one. */
    if (all->last_row != row && all->subjects[all->last_row].ops == &ndt_cpu_backend)
        close_subject(&all->subjects[all->last_row]);
    all->last_row = row;
    if (subject->aligner)
        return NDT_OK;
    enum ndt_status status = wait_for_turn(all, all->result->rows[row].open_us, err);
    if (status != NDT_OK)
        return status;
    const double start_us = ndt_clock_us();
    subject->ops = ndtd_backend_candidate_config(&all->result->rows[row].candidate, &config);
    config.max_points = all->scan->count; /* devices allocate for so many */
    status = subject->ops->probe(err);
    if (status == NDT_OK)
        status = subject->ops->open(&subject->backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&subject->aligner, subject->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(subject->aligner, all->request->map, err);
    if (status != NDT_OK)
        close_subject(subject);
    all->result->rows[row].open_us = ndt_clock_us() - start_us;
    return status;
}

/* Lets the workers fall asleep first, as they are when a scan arrives. */
static enum ndt_status align(struct measurement *all, size_t row, const struct ndt_cloud *scan, size_t number,
                             struct ndt_align_result *result, struct ndt_error *err)
{
    const struct ndtd_autotune_request *request = all->request;
    const struct ndt_pose guess = ndtd_probe_guess(&all->T_map_sensor, number % GUESSES);
    const double spin_us = request->settings->compute.spin_us;
    struct subject *subject = &all->subjects[row];
    do {
        enum ndt_status status = wait_for_turn(all, subject->align_us, err);
        if (status != NDT_OK)
            return status;
        if (spin_us <= SLEEPY_US)
            nanosleep(&(struct timespec){.tv_nsec = (long)((spin_us + ASLEEP_US) * 1e3)}, NULL);
        status = ndt_align(subject->aligner, &all->params, scan, &guess, result, err);
        if (status != NDT_OK)
            return status;
        if (result->outcome == NDT_DEADLINE)
            return ndt_fail(err, NDT_ERR_LIMIT, "one alignment takes more than %.4g ms: too slow to be measured",
                            all->params.deadline_s * 1e3);
        subject->align_us = result->align_us;
    } while (request->was_disturbed && request->was_disturbed(request->context));
    return NDT_OK;
}

static enum ndt_status sample(void *context, size_t row, size_t number, double *us, struct ndt_error *err)
{
    struct measurement *all = context;
    struct ndt_align_result result;
    enum ndt_status status = open_subject(all, row, err);
    if (status == NDT_OK)
        status = align(all, row, all->scan, number, &result, err);
    if (status == NDT_OK)
        *us = result.align_us;
    return status;
}

static double now_us(void *context)
{
    (void)context;
    return ndt_clock_us();
}

/* ---- expected costs ---- */

/* Costs of the first `points` points of the scan; returns the time per evaluation as well. */
static enum ndt_status measure_size(struct measurement *all, size_t row, size_t points, double end_us,
                                    struct ndt_align_costs *costs, double *evaluation_us, struct ndt_error *err)
{
    struct ndt_cloud part = *all->scan;
    struct ndt_align_result result;
    double sum_us = 0;
    int evaluations = 0;
    part.count = points;
    ndt_aligner_set_costs(all->subjects[row].aligner, &(struct ndt_align_costs){0});
    for (size_t i = 0; i < COST_ROUNDS && (i == 0 || ndt_clock_us() < end_us); i++) {
        enum ndt_status status = align(all, row, &part, i, &result, err);
        if (status != NDT_OK)
            return status;
        sum_us += result.align_us;
        evaluations += result.evaluations;
    }
    ndt_aligner_costs(all->subjects[row].aligner, costs);
    *evaluation_us = evaluations > 0 ? sum_us / evaluations : 0;
    return NDT_OK;
}

/* A line through two sizes; neither part is negative. */
static struct ndt_cost fit(const struct ndt_cost *at_small, double small, const struct ndt_cost *at_large,
                           double large)
{
    const double slope_us = large > small ? (at_large->fixed_us - at_small->fixed_us) / (large - small) : 0;
    struct ndt_cost cost = {.point_us = fmin(fmax(slope_us, 0), at_large->fixed_us / large)};
    cost.fixed_us = at_large->fixed_us - cost.point_us * large;
    return cost;
}

static enum ndt_status measure_costs(struct measurement *all, size_t row, double end_us, struct ndt_error *err)
{
    struct ndtd_autotune_result *out = all->result;
    struct ndt_align_costs small = {0}, large = {0};
    const size_t points = all->scan->count, quarter = points / 4 + 1;
    double unused_us;
    enum ndt_status status = open_subject(all, row, err);
    if (status == NDT_OK)
        status = measure_size(all, row, quarter, end_us, &small, &unused_us, err);
    if (status == NDT_OK)
        status = measure_size(all, row, points, end_us, &large, &out->evaluation_us, err);
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->costs.levels[i] = fit(&small.levels[i], (double)quarter, &large.levels[i], (double)points);
    out->costs.assess = fit(&small.assess, (double)quarter, &large.assess, (double)points);
    return status;
}

/* ---- all ---- */

static enum ndt_status measure(struct measurement *all, double start_us, struct ndt_error *err)
{
    const struct ndtd_autotune_request *request = all->request;
    struct ndtd_autotune_result *out = all->result;
    const struct ndtd_autotune_target target = {all, sample, now_us};
    struct ndt_error why = {""};
    if (!all->scan || all->scan->count == 0) {
        const struct ndtd_settings *settings = request->settings;
        const size_t points = settings->preprocess.sample_count;
        all->scan = &all->drawn;
        enum ndt_status status = ndtd_probe_scan(&all->drawn, &all->T_map_sensor, request->map,
                                                 settings->has_initial_pose ? settings->initial_pose : NULL,
                                                 points ? points : POINTS_UNKNOWN, err);
        if (status != NDT_OK)
            return status;
    }
    out->points = all->scan->count;
    ndtd_autotune_take_samples(out->rows, out->row_count, &target, request->time_us);
    for (;;) {
        if (all->wait_status != NDT_OK)
            return ndt_fail(err, all->wait_status, "no quiet moment to measure in");
        out->choice = ndtd_autotune_decide(out->rows, out->row_count, out->budget_us);
        if (out->choice.row < 0)
            return NDT_OK;
        struct ndtd_autotune_row *chosen = &out->rows[out->choice.row];
        if (measure_costs(all, (size_t)out->choice.row, start_us + EXTRA * request->time_us, &why) == NDT_OK)
            return NDT_OK;
        chosen->samples = 0; /* then the next best */
        snprintf(chosen->why, sizeof(chosen->why), "%.*s", (int)sizeof(chosen->why) - 1, why.text);
    }
}

enum ndt_status ndtd_autotune_measure(const struct ndtd_autotune_request *request, struct ndtd_autotune_result *out,
                                      struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    struct measurement *all = calloc(1, sizeof(*all));
    *out = (struct ndtd_autotune_result){.source = NDTD_AUTOTUNE_MEASURED,
                                         .measured_s = (int64_t)time(NULL),
                                         .map_id = request->map->id,
                                         .budget_us = request->settings->budget_s * 1e6,
                                         .choice.row = -1};
    if (!all)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for the autotuner");
    *all = (struct measurement){.request = request,
                                .result = out,
                                .params = request->settings->align,
                                .scan = request->scan,
                                .T_map_sensor = request->T_map_sensor};
    all->params.deadline_s = PART * request->time_us * 1e-6;
    all->params.has_gnss = 0;
    out->row_count = ndtd_autotune_candidates(request->settings, out->rows);
    enum ndt_status status = measure(all, start_us, err);
    for (size_t i = 0; i < out->row_count; i++)
        close_subject(&all->subjects[i]);
    ndt_cloud_free(&all->drawn);
    free(all);
    out->took_us = ndt_clock_us() - start_us;
    return status;
}

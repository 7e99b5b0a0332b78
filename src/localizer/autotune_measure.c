/** @file
 * @brief Times the candidates on this machine with a scan that is drawn from the map. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "ndt/clock.h"
#include "ndt/random.h"
#include "ndtd/autotune.h"
#include "ndtd/samples.h"

/* POINTS_UNKNOWN: points of a drawn scan where the settings use all points, whose number is unknown before the
 * first scan. */
enum { GUESSES = 8, BATCH_ROUNDS = 6, POINTS_UNKNOWN = 10000 };
/* Part of the time limit above which an alignment takes too long and its candidate is left out; also the limit of
 * all batches together. */
static const double MAX_PART = 0.25;
/* Spin time of CPU workers above which they are assumed to be awake when a scan arrives. */
static const double MAX_SPIN_US = 1000, ASLEEP_US = 50;
/* Drawn scans: reach, height of the sensor, range at which the density is halved, and distance and part of the
 * stray points. */
static const double REACH_M = 60, HEIGHT_M = 1.8, NEAR_M = 15, STRAY_M = 3, STRAY_PART = 0.1;
enum { PLACES = 16, VOXELS_LOOKED_AT = 4096 };
static const double GUESS_M = 0.2, GUESS_RAD = 0.01;

/* ---- drawn scans ---- */

/* Mean of a voxel relative to the map's origin. */
static void voxel_mean(const struct ndt_map_level *level, uint32_t voxel, double out_m[3])
{
    for (int i = 0; i < 3; i++)
        out_m[i] = level->voxels[voxel].cell[i] * level->leaf_m + (double)level->voxels[voxel].mean_m[i];
}

/* Finds every `step`th voxel within reach of a place, fewer with distance, since a sensor's beams spread. `out` may
 * be NULL. Returns their number. */
static size_t find_around(const struct ndt_map_level *level, const double place_m[3], uint32_t step,
                          struct ndt_random *random, uint32_t *out)
{
    size_t count = 0;
    for (uint32_t v = 1; v < level->voxel_count; v += step) {
        double mean_m[3];
        voxel_mean(level, v, mean_m);
        const double range_m = hypot(mean_m[0] - place_m[0], mean_m[1] - place_m[1]);
        const double part = 1 / (1 + (range_m / NEAR_M) * (range_m / NEAR_M));
        if (hypot(range_m, mean_m[2] - place_m[2]) >= REACH_M || ndt_random_unit(random) >= part)
            continue;
        if (out)
            out[count] = v;
        count++;
    }
    return count;
}

/* `near_m` if there are voxels around it, else the random place with the most voxels around it. */
static void find_place(const struct ndt_map *map, const struct ndt_map_level *level, const double near_m[3],
                       struct ndt_random *random, double out_m[3])
{
    const uint32_t step = 1 + level->voxel_count / VOXELS_LOOKED_AT;
    size_t most = 0;
    for (int i = 0; near_m && i < 3; i++)
        out_m[i] = near_m[i] - map->origin_m[i];
    if (near_m && find_around(level, out_m, step, random, NULL) > 0)
        return;
    for (int k = 0; k < PLACES; k++) {
        double place_m[3];
        voxel_mean(level, 1 + (uint32_t)(ndt_random_unit(random) * (level->voxel_count - 1)), place_m);
        place_m[2] += HEIGHT_M;
        const size_t count = find_around(level, place_m, step, random, NULL);
        if (k > 0 && count <= most)
            continue;
        most = count;
        memcpy(out_m, place_m, 3 * sizeof(double));
    }
}

/* Draws a point from the voxel's Gaussian: with icov = U^T U, mean + U^-1 n has the covariance icov^-1. */
static void draw_point(const struct ndt_map_level *level, uint32_t voxel, struct ndt_random *random,
                       double out_m[3])
{
    const float *c = level->voxels[voxel].icov; /* xx xy xz yy yz zz */
    const double u00 = sqrt(fmax((double)c[0], 1e-6)), u01 = (double)c[1] / u00, u02 = (double)c[2] / u00;
    const double u11 = sqrt(fmax((double)c[3] - u01 * u01, 1e-6)), u12 = ((double)c[4] - u01 * u02) / u11;
    const double u22 = sqrt(fmax((double)c[5] - u02 * u02 - u12 * u12, 1e-6));
    const double z_m = ndt_random_normal(random) / u22;
    const double y_m = (ndt_random_normal(random) - u12 * z_m) / u11;
    const double offset_m[3] = {(ndt_random_normal(random) - u01 * y_m - u02 * z_m) / u00, y_m, z_m};
    voxel_mean(level, voxel, out_m);
    for (int i = 0; i < 3; i++)
        out_m[i] += fmax(-level->leaf_m, fmin(level->leaf_m, offset_m[i]));
}

enum ndt_status ndtd_probe_scan(struct ndt_cloud *scan, struct ndt_pose *T_map_sensor, const struct ndt_map *map,
                                const double near_m[3], size_t count, struct ndt_error *err)
{
    const struct ndt_map_level *level = &map->levels[map->level_count - 1];
    struct ndt_random random = {1};
    double place_m[3] = {0}, point_m[3];
    if (level->voxel_count < 2)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no voxels to measure with");
    find_place(map, level, near_m, &random, place_m);
    uint32_t *around = malloc(level->voxel_count * sizeof(*around));
    if (!around)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for a list of %u voxels", level->voxel_count);
    size_t around_count = find_around(level, place_m, 1, &random, around);
    if (around_count == 0)
        around[around_count++] = 1;
    scan->count = 0;
    enum ndt_status status = ndt_cloud_reserve(scan, count, 0, err);
    for (size_t i = 0; status == NDT_OK && i < count; i++, scan->count++) {
        const uint32_t voxel = around[(size_t)(ndt_random_unit(&random) * (double)around_count)];
        draw_point(level, voxel, &random, point_m);
        const double stray_m = ndt_random_unit(&random) < STRAY_PART ? STRAY_M : 0;
        scan->x_m[i] = (float)(point_m[0] - place_m[0] + ndt_random_between(&random, -stray_m, stray_m));
        scan->y_m[i] = (float)(point_m[1] - place_m[1] + ndt_random_between(&random, -stray_m, stray_m));
        scan->z_m[i] = (float)(point_m[2] - place_m[2] + ndt_random_between(&random, 0, stray_m));
    }
    free(around);
    *T_map_sensor = ndt_pose_identity();
    for (int i = 0; i < 3; i++)
        T_map_sensor->t_m[i] = map->origin_m[i] + place_m[i];
    return status;
}

struct ndt_pose ndtd_probe_guess(const struct ndt_pose *T_map_sensor, size_t number)
{
    struct ndt_random random = {1000 + number};
    struct ndt_twist offset;
    for (int i = 0; i < 3; i++) {
        offset.v_mps[i] = ndt_random_between(&random, -GUESS_M, GUESS_M) / sqrt(3);
        offset.w_radps[i] = ndt_random_between(&random, -GUESS_RAD, GUESS_RAD) / sqrt(3);
    }
    const struct ndt_pose step = ndt_pose_exp(&offset, 1);
    return ndt_pose_compose(T_map_sensor, &step);
}

/* ---- alignments ---- */

struct subject {
    const struct ndt_backend_ops *ops;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    int alignments, evaluations;
    struct ndt_align_costs costs; /* costs that the aligner measured */
};

struct measurement {
    const struct ndtd_autotune_request *request;
    struct ndtd_autotune_result *result;
    struct ndt_align_params params;
    struct ndt_cloud scan;
    struct ndt_pose T_map_sensor;
    size_t last_row;
    struct subject subjects[NDTD_AUTOTUNE_ROWS];
};

static void close_subject(struct subject *subject)
{
    ndt_aligner_destroy(subject->aligner);
    if (subject->backend)
        subject->backend->ops->close(subject->backend);
    subject->aligner = NULL;
    subject->backend = NULL;
}

/* Largest number of scans that may be aligned together. */
static size_t most_together(const struct ndtd_settings *settings)
{
    return settings->batch_together && settings->batch_max > 1 ? (size_t)settings->batch_max : 1;
}

/* Number of points in whole blocks: each scan of a batch begins with its own block. */
static size_t whole_blocks(size_t points)
{
    return (points + 127) / 128 * 128;
}

static enum ndt_status open_subject(struct measurement *all, size_t row, struct ndt_error *err)
{
    struct subject *subject = &all->subjects[row];
    const struct ndtd_settings *settings = all->request->settings;
    struct ndt_backend_config config = settings->compute;
    /* Threads of another CPU candidate would spin beside this one. */
    if (all->last_row != row && all->subjects[all->last_row].ops == &ndt_cpu_backend)
        close_subject(&all->subjects[all->last_row]);
    all->last_row = row;
    if (subject->aligner)
        return NDT_OK;
    subject->ops = ndtd_backend_candidate_config(&all->result->rows[row].candidate, &config);
    config.max_points =
        most_together(settings) * whole_blocks(all->scan.count); /* devices allocate for this many */
    enum ndt_status status = subject->ops->probe(config.device, err);
    if (status == NDT_OK)
        status = subject->ops->open(&subject->backend, &config, err);
    if (status == NDT_OK)
        status = ndt_aligner_create(&subject->aligner, subject->backend, err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(subject->aligner, all->request->map, err);
    if (status != NDT_OK)
        close_subject(subject);
    return status;
}

/* Waits until workers sleep, as they do when a scan arrives. */
static void let_workers_sleep(const struct ndtd_settings *settings)
{
    const double spin_us = settings->compute.spin_us;
    if (spin_us <= MAX_SPIN_US)
        nanosleep(&(struct timespec){.tv_nsec = (long)((spin_us + ASLEEP_US) * 1e3)}, NULL);
}

static enum ndt_status align(struct measurement *all, size_t row, size_t number, struct ndt_align_result *result,
                             struct ndt_error *err)
{
    const struct ndt_pose guess = ndtd_probe_guess(&all->T_map_sensor, number % GUESSES);
    let_workers_sleep(all->request->settings);
    enum ndt_status status = ndt_align(all->subjects[row].aligner, &all->params, &all->scan, &guess, result, err);
    if (status == NDT_OK && result->outcome == NDT_DEADLINE)
        return ndt_fail(err, NDT_ERR_LIMIT, "one alignment takes more than %.4g ms: too slow to be measured",
                        all->params.deadline_s * 1e3);
    return status;
}

static enum ndt_status sample(void *context, size_t row, size_t number, double *us, struct ndt_error *err)
{
    struct measurement *all = context;
    struct subject *subject = &all->subjects[row];
    struct ndt_align_result result;
    enum ndt_status status = open_subject(all, row, err);
    if (status == NDT_OK)
        status = align(all, row, number, &result, err);
    if (status != NDT_OK)
        return status;
    subject->alignments++;
    subject->evaluations += result.evaluations;
    ndt_aligner_costs(subject->aligner, &subject->costs);
    *us = result.align_us;
    return NDT_OK;
}

static double now_us(void *context)
{
    (void)context;
    return ndt_clock_us();
}

static void rest(void *context)
{
    (void)context;
    nanosleep(&(struct timespec){.tv_nsec = (long)(NDTD_SCAN_PERIOD_S * 1e9)}, NULL);
}

/* Costs in proportion to the points; the aligner corrects them with the first scans. */
static struct ndt_align_costs costs_per_point(const struct ndt_align_costs *seen, size_t points)
{
    struct ndt_align_costs costs = {.assess = {.point_us = seen->assess.fixed_us / (double)points}};
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        costs.levels[i].point_us = seen->levels[i].fixed_us / (double)points;
    return costs;
}

/* ---- scans at once ---- */

/* Aligns a group as waiting scans are aligned: one scan as always, several in a batch. The scans are equal, which a
 * backend does not know. */
static enum ndt_status align_group(struct measurement *all, size_t row, size_t count, size_t round, double *us,
                                   struct ndt_error *err)
{
    struct ndt_align_result results[NDTD_AUTOTUNE_BATCHES];
    struct ndt_align_item items[NDTD_AUTOTUNE_BATCHES];
    struct ndt_cloud scans[NDTD_AUTOTUNE_BATCHES];
    if (count == 1) {
        const enum ndt_status status = align(all, row, round, results, err);
        *us = status == NDT_OK ? results->align_us : 0;
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        scans[i] = all->scan;
        items[i] = (struct ndt_align_item){
            .scan = &scans[i], .T_map_guess = ndtd_probe_guess(&all->T_map_sensor, (round + i) % GUESSES)};
    }
    let_workers_sleep(all->request->settings);
    const double start_us = ndt_clock_us();
    const enum ndt_status status =
        ndt_align_batch(all->subjects[row].aligner, &all->params, items, count, results, err);
    *us = ndt_clock_us() - start_us;
    return status;
}

/* Number of rounds of groups of 1, 2 .. `most` scans that the time suffices for; one more precedes them, for cold
 * caches. */
static size_t batch_rounds(const struct measurement *all, size_t row, size_t most)
{
    const double round_us = all->result->rows[row].p50_us * (double)(most * (most + 1) / 2);
    const double rounds = MAX_PART * all->request->time_us / fmax(round_us, 1) - 1;
    return (size_t)fmax(0, fmin(rounds, BATCH_ROUNDS));
}

/* Measures groups of scans. The result stays 0, which means any size, where scans do not go together or the time
 * does not suffice. */
static enum ndt_status measure_batches(struct measurement *all, size_t row, struct ndt_error *err)
{
    const struct ndt_backend *backend = all->subjects[row].backend;
    const struct ndt_backend_ops *ops = backend->ops;
    const int has_lanes = ops->lane_count && ops->lane_count(backend) > 1;
    const int at_once = has_lanes || (ops->solve_limit && ops->solve_limit(backend) > 1);
    const size_t most = most_together(all->request->settings), rounds = batch_rounds(all, row, most);
    double us[NDTD_AUTOTUNE_BATCHES][BATCH_ROUNDS], took_us = 0;
    if (most < 2 || rounds == 0 || !at_once || ndt_aligner_raw_limit(all->subjects[row].aligner) > 0)
        return NDT_OK;
    for (size_t round = 0; round <= rounds; round++)
        for (size_t k = 1; k <= most; k++) {
            const enum ndt_status status = align_group(all, row, k, round, &took_us, err);
            if (status != NDT_OK)
                return status;
            if (round > 0)
                us[k - 1][round - 1] = took_us;
        }
    for (size_t k = 1; k <= most; k++) {
        struct ndtd_samples samples = {.values = us[k - 1], .count = rounds};
        all->result->batch_us[k - 1] = ndtd_samples_quantile(&samples, 0.5);
    }
    all->result->together = ndtd_autotune_together(all->result->batch_us, most, has_lanes);
    return NDT_OK;
}

/* ---- measurement ---- */

static enum ndt_status draw_scan(struct measurement *all, struct ndt_error *err)
{
    const struct ndtd_settings *settings = all->request->settings;
    size_t points = all->request->points ? all->request->points : settings->preprocess.sample_count;
    if (points == 0)
        points = POINTS_UNKNOWN;
    return ndtd_probe_scan(&all->scan, &all->T_map_sensor, all->request->map,
                           settings->has_initial_pose ? settings->initial_pose : NULL, points, err);
}

static enum ndt_status measure(struct measurement *all, struct ndt_error *err)
{
    const struct ndtd_autotune_target target = {all, sample, now_us, rest};
    struct ndtd_autotune_result *out = all->result;
    struct ndt_error why = {""};
    enum ndt_status status = draw_scan(all, err);
    if (status != NDT_OK)
        return status;
    out->points = all->scan.count;
    ndtd_autotune_take_samples(out->rows, out->row_count, &target, all->request->time_us);
    for (size_t i = 0; i < out->row_count; i++)
        if (all->subjects[i].evaluations > 0)
            out->rows[i].evaluation_us =
                out->rows[i].p50_us * all->subjects[i].alignments / all->subjects[i].evaluations;
    do {
        out->choice = ndtd_autotune_decide(out->rows, out->row_count, out->budget_us);
        if (out->choice.row < 0)
            break;
        const size_t row = (size_t)out->choice.row;
        struct ndtd_autotune_row *chosen = &out->rows[row];
        out->costs = costs_per_point(&all->subjects[row].costs, out->points);
        status = open_subject(all, row, &why);
        if (status == NDT_OK)
            status = measure_batches(all, row, &why);
        if (status != NDT_OK) { /* the next best is tried */
            chosen->samples = 0;
            snprintf(chosen->why, sizeof(chosen->why), "%.*s", (int)sizeof(chosen->why) - 1, why.text);
        }
    } while (status != NDT_OK);
    return NDT_OK;
}

enum ndt_status ndtd_autotune_measure(const struct ndtd_autotune_request *request, struct ndtd_autotune_result *out,
                                      struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    struct measurement *all = calloc(1, sizeof(*all));
    *out = (struct ndtd_autotune_result){.measured_s = (int64_t)time(NULL),
                                         .map_id = request->map->id,
                                         .budget_us = ndtd_settings_budget_s(request->settings) * 1e6,
                                         .choice.row = -1};
    if (!all)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for the autotuner");
    *all = (struct measurement){.request = request, .result = out, .params = request->settings->align};
    all->params.deadline_s = MAX_PART * request->time_us * 1e-6;
    all->params.has_gnss = 0;
    out->row_count = ndtd_autotune_candidates(request->settings, out->rows);
    enum ndt_status status = measure(all, err);
    for (size_t i = 0; i < out->row_count; i++)
        close_subject(&all->subjects[i]);
    ndt_cloud_free(&all->scan);
    free(all);
    out->took_us = ndt_clock_us() - start_us;
    return status;
}

/* Other places that explain a scan as well as the one where it was aligned. */
#include "scan_rivals.h"

#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/pose_scores.h"
#include "ndt_track/confidence.h"

/* A direction is weak where the scan holds the pose to no better than this (0.017 m / sqrt(ratio), see
 * ndt_track/confidence.h). */
static const double WEAK_RATIO = 0.0125;
/* Places nearer than this are not told apart; a step hits every peak, which is as wide as half a voxel of 1 m. */
static const double NEAREST_M = 1, STEP_M = 0.4;
/* How far other places are looked for: so many deviations of the prediction, and between these limits. Beyond the
 * farthest, the prediction leaves more open than can be tried. */
static const double SIGMAS = 5, LEAST_REACH_M = 3, MOST_REACH_M = 10;
/* Edge of a block: that of a voxel of the finest level, usually. */
static const float BLOCK_M = 1;
enum { LINES_MOST = 2, PLACES_MOST = 64, ALIGNED_MOST = 3 };

/* A weak direction of the scan, and places along it. */
struct line {
    double axis[6], step[6]; /* see ndt_observation_directions, ndt_observation_step */
    int is_weak;             /* the scan hardly observes it; otherwise the pose is the first one */
    double reach_m;
    size_t count;
    struct ndt_pose T_map_sensor[PLACES_MOST];
    struct ndt_pose_score score[PLACES_MOST];
};

/* Deviation of the position alone: a turn that is not known is no way along the direction. */
static double deviation_along(const double axis[6], const double covariance[36])
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += axis[i] * covariance[6 * i + j] * axis[j];
    return sqrt(fmax(sum, 0));
}

static double distance_along(const double axis[6], const struct ndt_pose *from, const struct ndt_pose *to)
{
    const struct ndt_pose off = ndt_pose_between(to, from);
    return fabs(axis[0] * off.t_m[0] + axis[1] * off.t_m[1] + axis[2] * off.t_m[2]);
}

static struct ndt_pose moved(const struct ndt_pose *T, const double step[6], double by_m)
{
    const struct ndt_twist along = {.v_mps = {step[0], step[1], step[2]}, .w_radps = {step[3], step[4], step[5]}};
    const struct ndt_pose D = ndt_pose_exp(&along, by_m);
    return ndt_pose_compose(T, &D);
}

/* ---- which of two places fits better ---- */

static void score_points(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                         const struct ndt_pose *T_map_sensor, size_t stride, float *values)
{
    const struct ndt_align_level *finest =
        &pipeline->settings->align.levels[pipeline->settings->align.level_count - 1];
    struct ndt_score_pose pose;
    ndt_pose_rotation(T_map_sensor, pose.R);
    for (int k = 0; k < 3; k++)
        pose.t_m[k] = T_map_sensor->t_m[k] - pipeline->map->origin_m[k];
    ndt_score_points(pipeline->map, ndt_map_find_level(pipeline->map, finest->leaf_m), finest->neighbours,
                     job->points, stride, &pose, values);
}

/* The block of a point: points of a block lie on the same voxels and share their errors. */
static size_t block_of(const struct ndt_cloud *points, size_t i)
{
    const uint32_t x = (uint32_t)(int32_t)floorf(points->x_m[i] / BLOCK_M),
                   y = (uint32_t)(int32_t)floorf(points->y_m[i] / BLOCK_M),
                   z = (uint32_t)(int32_t)floorf(points->z_m[i] / BLOCK_M);
    return (x * 73856093u ^ y * 19349663u ^ z * 83492791u) % NDTD_FIT_BLOCKS;
}

/* By how many deviations the scan fits better at a than at b: the mean of the differences of its points over its
 * deviation, with blocks of points as what is independent (a cluster-robust variance; Liang and Zeger 1986). What
 * both places explain alike says nothing. */
double ndtd_scan_lead(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job, const struct ndt_pose *a,
                      const struct ndt_pose *b)
{
    struct ndtd_point_fits *fits = &pipeline->fits;
    const struct ndt_cloud *points = job->points;
    const size_t stride = 1 + (points->count - 1) / NDTD_POINT_FITS;
    const size_t count = (points->count + stride - 1) / stride;
    double sum = 0, squares = 0;
    memset(fits->blocks, 0, sizeof(fits->blocks));
    score_points(pipeline, job, a, stride, fits->of_one);
    score_points(pipeline, job, b, stride, fits->of_other);
    for (size_t i = 0; i < count; i++) {
        const double d = (double)fits->of_one[i] - (double)fits->of_other[i];
        struct ndtd_fit_block *block = &fits->blocks[block_of(points, i * stride)];
        sum += d;
        block->sum += d;
        block->count++;
    }
    for (size_t i = 0; i < NDTD_FIT_BLOCKS; i++) {
        const double rest = fits->blocks[i].sum - fits->blocks[i].count * sum / (double)count;
        squares += rest * rest;
    }
    return squares > 0 ? sum / sqrt(squares) : 0;
}

/* ---- the places along a line ---- */

/* Places of even number lie ahead, those of odd number behind, the nearest first. */
static void set_places(const struct ndtd_scan_job *job, struct line *line)
{
    const struct ndt_pose *T_map_sensor = &job->record->result.T_map_sensor;
    line->count = 0;
    for (double by_m = NEAREST_M; by_m <= line->reach_m && line->count + 2 <= PLACES_MOST; by_m += STEP_M) {
        line->T_map_sensor[line->count++] = moved(T_map_sensor, line->step, by_m);
        line->T_map_sensor[line->count++] = moved(T_map_sensor, line->step, -by_m);
    }
}

static enum ndt_status score_line(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                                  const struct ndt_align_level *level, struct line *line, struct ndt_error *err)
{
    const struct ndt_score_job scoring = {.leaf_m = level->leaf_m,
                                          .neighbours = level->neighbours,
                                          .scan = job->points,
                                          .count = line->count,
                                          .T_map_sensor = line->T_map_sensor};
    size_t done;
    return ndt_aligner_score(pipeline->aligner, &scoring, line->score, &done, err);
}

static int is_peak(const struct line *line, size_t i)
{
    const double score = line->score[i].score;
    return (i < 2 || score >= line->score[i - 2].score) &&
           (i + 2 >= line->count || score >= line->score[i + 2].score);
}

/* The highest peak that was not taken before; line->count: there is none. */
static size_t next_peak(const struct line *line, int is_taken[PLACES_MOST])
{
    size_t best = line->count;
    for (size_t i = 0; i < line->count; i++)
        if (!is_taken[i] && is_peak(line, i) &&
            (best == line->count || line->score[i].score > line->score[best].score))
            best = i;
    if (best < line->count)
        is_taken[best] = 1;
    return best;
}

/* The highest peaks of a level that may fit as well as the result once they are aligned, as further priors of
 * pipeline->many. */
static enum ndt_status choose_peaks(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                    const struct ndt_align_level *level, struct line *line, size_t *count,
                                    struct ndt_error *err)
{
    const struct ndt_pose *result = &job->record->result.T_map_sensor;
    int is_taken[PLACES_MOST] = {0};
    const enum ndt_status status = score_line(pipeline, job, level, line, err);
    for (size_t tried = 0; status == NDT_OK && tried < ALIGNED_MOST; tried++) {
        const size_t i = next_peak(line, is_taken);
        if (i == line->count)
            break;
        if (line->reach_m > LEAST_REACH_M ||
            ndtd_scan_lead(pipeline, job, result, &line->T_map_sensor[i]) < NDTD_SIGNIFICANT)
            pipeline->many.priors[(*count)++].T_map_sensor = line->T_map_sensor[i];
    }
    return status;
}

/* Near the result the finest level shows all peaks. Farther away the line may miss those that are narrow across it:
 * they show on the level before, and all are aligned. */
static enum ndt_status choose_all_peaks(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                        struct line *line, size_t *count, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndt_align_level *finest = &settings->align.levels[settings->align.level_count - 1];
    *count = 0;
    set_places(job, line);
    enum ndt_status status = choose_peaks(pipeline, job, finest, line, count, err);
    if (status == NDT_OK && line->reach_m > LEAST_REACH_M && settings->align.level_count > 1)
        status = choose_peaks(pipeline, job, finest - 1, line, count, err);
    return status;
}

/* ---- the result ---- */

static void forget_direction(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, const struct line *line)
{
    struct ndtd_direction *blind = &job->blind[job->blind_count++];
    memcpy(blind->axis, line->axis, sizeof(blind->axis));
    memcpy(blind->step, line->step, sizeof(blind->step));
    if (job->is_updated)
        ndtd_scan_update(pipeline, job, job->last);
}

/* The result becomes that of an alignment from a peak. */
static void move_result(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, size_t number)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndt_align_result before = *result;
    *result = pipeline->many.results[number];
    result->iterations += before.iterations;
    result->evaluations += before.evaluations;
    result->align_us += before.align_us;
    result->upload_us += before.upload_us;
    job->prior = pipeline->many.priors[number];
    job->has_trace = 0;
    ndtd_scan_update(pipeline, job, job->last);
    ndtd_scan_keep_points(pipeline, job);
}

/* Aligns from the peaks. *is_alone: the result fits significantly better than all of them. Where one of them fits
 * significantly better than the result, it becomes the result and *is_moved is set. */
static enum ndt_status try_peaks(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, size_t count,
                                 int *is_alone, int *is_moved, struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    const struct ndt_align_result *found = pipeline->many.results;
    const struct ndt_pose before = job->record->result.T_map_sensor;
    size_t best = count;
    double most = NDTD_SIGNIFICANT;
    *is_alone = count == 0;
    *is_moved = 0;
    if (count == 0)
        return NDT_OK;
    if (!ndtd_scan_has_time(pipeline, &params)) {
        job->is_cut = 1;
        return NDT_OK;
    }
    for (size_t i = 0; i < count; i++)
        ndtd_scan_wide_covariance(pipeline, job, pipeline->many.priors[i].covariance);
    const enum ndt_status status = ndtd_scan_align_many(pipeline, job, &params, count, err);
    if (status != NDT_OK)
        return status;
    *is_alone = 1;
    for (size_t i = 0; i < count; i++) {
        if (!ndtd_scan_is_trusted(found[i].outcome) || !ndtd_are_distinct(&found[i].T_map_sensor, &before))
            continue;
        const double lead = ndtd_scan_lead(pipeline, job, &before, &found[i].T_map_sensor);
        *is_alone = *is_alone && lead >= NDTD_SIGNIFICANT;
        if (-lead < most)
            continue;
        most = -lead;
        best = i;
    }
    if (best == count)
        return NDT_OK;
    *is_moved = *is_alone = 1;
    for (size_t i = 0; i < count; i++)
        if (i != best && ndtd_scan_is_trusted(found[i].outcome) &&
            ndtd_are_distinct(&found[i].T_map_sensor, &found[best].T_map_sensor) &&
            ndtd_scan_lead(pipeline, job, &found[best].T_map_sensor, &found[i].T_map_sensor) < NDTD_SIGNIFICANT)
            *is_alone = 0;
    move_result(pipeline, job, best);
    return NDT_OK;
}

/* How far along the direction the vehicle may be from the result, as a state leaves it open. */
static double reach_from(const struct ndtd_scan_job *job, const struct ndt_track_state *state, const double axis[6])
{
    double covariance[36];
    const struct ndt_pose T_map_sensor = ndt_pose_compose(&state->T_map_base, job->T_base_sensor);
    ndt_track_pose_covariance(state, job->T_base_sensor, covariance);
    return fmax(LEAST_REACH_M, NEAREST_M + SIGMAS * deviation_along(axis, covariance) +
                                   distance_along(axis, &T_map_sensor, &job->record->result.T_map_sensor));
}

/* The pose as the last verified one tells it, or the one that was given: what the estimator, or a place that it
 * follows, made of scans that were not confirmed since then does not count. 0: neither is known. */
static int predict_from_known(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                              struct ndt_track_state *expected)
{
    if (!pipeline->is_verified && !pipeline->has_told)
        return 0;
    ndt_track_predict_from(&pipeline->track, pipeline->is_verified ? &pipeline->verified : &pipeline->told,
                           job->predicted.stamp_ns, expected);
    return 1;
}

/* Whether it vouches for the pose along a direction. */
static int is_held(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                   const struct ndt_track_state *expected, const double axis[6])
{
    double covariance[36];
    ndt_track_pose_covariance(expected, job->T_base_sensor, covariance);
    return erf(NDT_CONFIDENCE_RIGHT_M / (sqrt(2) * fmax(deviation_along(axis, covariance), 1e-6))) >=
           pipeline->settings->min_confidence;
}

/* Decides whether the scan tells its place along a direction; *is_moved: the result is another one now. */
static enum ndt_status examine(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct line *line,
                               int *is_moved, struct ndt_error *err)
{
    struct ndt_track_state expected;
    const int is_known = predict_from_known(pipeline, job, &expected);
    const double open_m = is_known ? reach_from(job, &expected, line->axis) : INFINITY;
    int is_alone = 0;
    *is_moved = 0;
    line->reach_m = reach_from(job, &job->predicted, line->axis);
    if (open_m <= MOST_REACH_M)
        line->reach_m = fmax(line->reach_m, open_m);
    else if (line->is_weak)
        job->is_open = 1;
    if (!line->is_weak)
        line->reach_m = fmin(line->reach_m, MOST_REACH_M);
    if (line->reach_m <= MOST_REACH_M) {
        size_t count;
        enum ndt_status status = choose_all_peaks(pipeline, job, line, &count, err);
        if (status == NDT_OK)
            status = try_peaks(pipeline, job, count, &is_alone, is_moved, err);
        if (status != NDT_OK)
            return status;
    }
    if (is_alone)
        return NDT_OK;
    forget_direction(pipeline, job, line);
    if (pipeline->recovery.is_active && !(is_known && is_held(pipeline, job, &expected, line->axis)))
        job->is_open = 1;
    return NDT_OK;
}

/* A rotation that is held weakly has no places along it. */
static int is_translation(const double axis[6])
{
    return axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2] > 0.5;
}

enum ndt_status ndtd_scan_rivals(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndt_align_result *result = &job->record->result;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    double ratio[6], axes[36];
    int rounds = 2;
    if (!ndtd_scan_has_prior(pipeline) || !result->has_observation || !job->is_updated)
        return NDT_OK;
    ndt_observation_directions(&result->observation, ratio, axes);
    enum ndt_status status = NDT_OK;
    for (int k = 0, examined = 0; k < 6 && status == NDT_OK; k++) {
        struct line line = {.is_weak = ratio[k] < WEAK_RATIO};
        int is_moved = 0;
        memcpy(line.axis, axes + 6 * k, sizeof(line.axis));
        if (!is_translation(line.axis) || (!line.is_weak && (pipeline->is_verified || examined >= LINES_MOST)))
            continue;
        ndt_observation_step(axes, k, line.step);
        examined++;
        job->is_cut = job->is_cut || !ndtd_scan_has_time(pipeline, &params);
        if (examined > LINES_MOST || job->is_cut) {
            forget_direction(pipeline, job, &line);
            continue;
        }
        status = ndtd_scan_points_needed(pipeline, job, err);
        if (status == NDT_OK)
            status = examine(pipeline, job, &line, &is_moved, err);
        if (is_moved && --rounds > 0 && status == NDT_OK) { /* there, everything begins anew */
            ndt_observation_directions(&result->observation, ratio, axes);
            k = -1;
            examined = 0;
        }
    }
    return status;
}

#include "matcher.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/pose_scores.h"

/* Least number of points that are read of a late scan, and the part of the time for reading and preprocessing. */
static const double LEAST_POINTS = 10000, READ_PART = 0.5;
/* Least score where no confidence judges it: correct poses reach 0.44 and more in good maps. */
static const double UNJUDGED_SCORE = 0.35;

struct ndt_scan_header ndtd_matcher_thinned(const struct ndtd_matcher *matcher,
                                            const struct ndt_scan_header *header, size_t together)
{
    struct ndt_scan_header thinned = *header;
    double most = matcher->settings->max_points;
    if (matcher->deadline_us > 0) {
        const double left_us = READ_PART * (matcher->deadline_us - ndt_clock_us());
        most = fmin(most, fmax(LEAST_POINTS, left_us / (matcher->point_us * (double)together)));
    }
    (void)ndt_scan_thin(&thinned, (uint64_t)most);
    return thinned;
}

void ndtd_matcher_begin(struct ndtd_matcher *matcher)
{
    const struct ndtd_scan *scan = &matcher->scan;
    matcher->preprocessed = NOT_PREPROCESSED;
    matcher->points = NULL;
    matcher->pass = FIRST_PASS;
    matcher->is_aligned_ahead = 0;
    matcher->preprocess_us = 0;
    matcher->points_used = 0;
    matcher->guesses = 0;
    matcher->beside = (struct ndt_align_result){0};
    ndtd_scan_motion(scan, matcher->track, &scan->predicted, &matcher->motion[FIRST_PASS]);
}

int ndtd_has_prior(const struct ndtd_settings *settings)
{
    return settings->prior == NDTD_PRIOR_AUTO && settings->align.variant == NDT_ROBUST;
}

/* Whether the confidence judges the fit of a scan. */
static int has_confidence(const struct ndtd_settings *settings)
{
    return ndtd_has_prior(settings) && settings->map.covariance == NDT_COVARIANCE_UNBIASED &&
           settings->min_confidence > 0;
}

struct ndt_align_params ndtd_matcher_params(const struct ndtd_matcher *matcher, const struct ndt_prior *prior)
{
    struct ndt_align_params params = matcher->settings->align;
    if (!(params.score_threshold > 0) && !has_confidence(matcher->settings))
        params.score_threshold = UNJUDGED_SCORE;
    if (ndtd_has_prior(matcher->settings)) {
        params.prior = prior;
        params.wants_observation = 1;
    }
    params.has_gnss = matcher->settings->use_gnss && ndtd_gnss_reaches(matcher->gnss, matcher->scan.stamp_ns);
    memcpy(params.gnss_position_m, matcher->gnss->message.position_m, sizeof(params.gnss_position_m));
    return params;
}

void ndtd_use_finest_level(struct ndt_align_params *params)
{
    params->levels[0] = params->levels[params->level_count - 1];
    params->level_count = 1;
}

/* The expected time of an evaluation is halved each time it prevents an alignment, so that one slow scan cannot
 * prevent all following ones. */
int ndtd_matcher_has_time(struct ndtd_matcher *matcher, struct ndt_align_params *params)
{
    if (matcher->deadline_us <= 0)
        return 1;
    const double left_us = matcher->deadline_us - ndt_clock_us();
    if (params->deadline_s <= 0 || left_us * 1e-6 < params->deadline_s)
        params->deadline_s = left_us * 1e-6;
    if (left_us > matcher->evaluation_us)
        return 1;
    matcher->evaluation_us /= 2;
    return 0;
}

/* ---- preprocessing ---- */

static enum ndt_status preprocess_on_host(struct ndtd_matcher *matcher, struct ndt_error *err)
{
    const struct ndtd_scan *scan = &matcher->scan;
    matcher->preprocessed = ON_HOST;
    const enum ndt_status status =
        ndt_preprocess(matcher->preprocessor, &scan->preprocess, &matcher->raw, &scan->sweep, scan->seq,
                       &matcher->motion[FIRST_PASS].sensor, &matcher->points, err);
    if (status == NDT_OK)
        matcher->points_used = matcher->points->count;
    return status;
}

enum ndt_status ndtd_matcher_preprocess(struct ndtd_matcher *matcher, struct ndt_error *err)
{
    const struct ndtd_scan *scan = &matcher->scan;
    const size_t backend_limit = ndt_aligner_raw_limit(matcher->aligner);
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    if (matcher->preprocessed != NOT_PREPROCESSED)
        return NDT_OK;
    if (backend_limit == 0 || matcher->raw.count > backend_limit) {
        status = preprocess_on_host(matcher, err);
    } else {
        ndt_preprocess_plan_set(&matcher->plan, &scan->preprocess, &scan->sweep, scan->seq,
                                &matcher->motion[FIRST_PASS].sensor);
        matcher->preprocessed = ON_BACKEND;
    }
    matcher->preprocess_us += ndt_clock_us() - start_us;
    return status;
}

enum ndt_status ndtd_matcher_deskew_again(struct ndtd_matcher *matcher, struct ndt_error *err)
{
    const struct ndt_sweep_motion *motion = &matcher->motion[SECOND_PASS].sensor;
    if (matcher->preprocessed == ON_HOST)
        return ndt_preprocess_again(matcher->preprocessor, motion, &matcher->points, err);
    ndt_preprocess_plan_set_motion(&matcher->plan, &matcher->scan.sweep, &matcher->motion[FIRST_PASS].sensor,
                                   motion);
    return NDT_OK;
}

enum ndt_status ndtd_matcher_need_points(struct ndtd_matcher *matcher, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    if (matcher->preprocessed == ON_HOST)
        return NDT_OK;
    enum ndt_status status = preprocess_on_host(matcher, err);
    if (status == NDT_OK && matcher->pass == SECOND_PASS)
        status = ndtd_matcher_deskew_again(matcher, err);
    matcher->preprocess_us += ndt_clock_us() - start_us;
    return status;
}

/* ---- alignment ---- */

static enum ndt_status align_raw(struct ndtd_matcher *matcher, const struct ndt_align_params *params,
                                 const struct ndt_pose *guess, struct ndt_align_result *result,
                                 struct ndt_error *err)
{
    return matcher->pass == FIRST_PASS
               ? ndt_align_raw(matcher->aligner, params, &matcher->plan, &matcher->raw, guess, result, err)
               : ndt_align_raw_again(matcher->aligner, params, &matcher->plan, guess, result, err);
}

enum ndt_status ndtd_matcher_align(struct ndtd_matcher *matcher, enum ndtd_pass pass,
                                   const struct ndt_align_params *params, const struct ndt_pose *guess,
                                   struct ndtd_alignment *alignment, struct ndt_error *err)
{
    matcher->pass = pass;
    matcher->guesses += pass == FIRST_PASS;
    alignment->has_trace = 1;
    if (matcher->preprocessed == ON_BACKEND) {
        enum ndt_status status = align_raw(matcher, params, guess, &alignment->result, err);
        if (status != NDT_ERR_UNSUPPORTED)
            return status;
        status = ndtd_matcher_need_points(matcher, err);
        if (status != NDT_OK)
            return status;
    }
    return ndt_align(matcher->aligner, params, matcher->points, guess, &alignment->result, err);
}

/* Adds the costs of a batch, in evaluations of all points. */
static void add_costs(struct ndtd_matcher *matcher, size_t count)
{
    const struct ndt_align_result *results = matcher->batch.results;
    double took_us = 0; /* each counts from the call to its end, and those that were not begun have none */
    for (size_t i = 0; i < count; i++) {
        matcher->beside.evaluations += results[i].evaluations;
        took_us = fmax(took_us, results[i].align_us);
    }
    matcher->beside.align_us += took_us;
}

enum ndt_status ndtd_matcher_align_batch(struct ndtd_matcher *matcher, const struct ndt_align_params *params,
                                         size_t count, struct ndt_error *err)
{
    struct ndtd_batch *batch = &matcher->batch;
    enum ndt_status status = ndtd_matcher_need_points(matcher, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        batch->items[i] = (struct ndt_align_item){
            .scan = matcher->points, .T_map_guess = batch->priors[i].T_map_sensor, .prior = &batch->priors[i]};
    matcher->guesses += (int32_t)count;
    status = ndt_align_batch(matcher->aligner, params, batch->items, count, batch->results, err);
    if (status == NDT_OK)
        add_costs(matcher, count);
    return status;
}

void ndtd_matcher_wide_covariance(const struct ndtd_matcher *matcher, double covariance[36])
{
    const struct ndt_track_params *track = &matcher->track->params;
    struct ndt_track_state wide = matcher->scan.predicted;
    memset(wide.P, 0, sizeof(wide.P));
    for (int i = 0; i < 6; i++)
        wide.P[(NDT_TRACK_STATES + 1) * i] = pow(i < 3 ? track->pose_deviation_m : track->pose_deviation_rad, 2);
    ndt_track_pose_covariance(&wide, &matcher->scan.T_base_sensor, covariance);
}

/* ---- which of two poses fits better ---- */

/* Edge of a block; usually that of a voxel of the finest level. */
static const float BLOCK_M = 1;

static struct ndt_score_pose score_pose(const struct ndtd_matcher *matcher, const struct ndt_pose *T_map_sensor)
{
    struct ndt_score_pose pose;
    ndt_pose_rotation(T_map_sensor, pose.R);
    for (int k = 0; k < 3; k++)
        pose.t_m[k] = T_map_sensor->t_m[k] - matcher->map->origin_m[k];
    return pose;
}

double ndtd_matcher_share(const struct ndtd_matcher *matcher, const struct ndt_pose *T_map_sensor)
{
    const struct ndt_align_params *align = &matcher->settings->align;
    const struct ndt_align_level *finest = &align->levels[align->level_count - 1];
    struct ndt_pose_score score = {.matched = 0};
    struct ndt_error ignored;
    size_t done;
    if (!matcher->map || matcher->points->count == 0)
        return 0;
    const struct ndt_score_pose pose = score_pose(matcher, T_map_sensor);
    const struct ndt_score_request request = {.level = ndt_map_find_level(matcher->map, finest->leaf_m),
                                              .neighbours = finest->neighbours,
                                              .count = 1,
                                              .poses = &pose};
    const enum ndt_status status =
        ndt_score_poses_plain(matcher->map, matcher->points, &request, &score, &done, &ignored);
    return status == NDT_OK ? (double)score.matched / (double)matcher->points->count : 0;
}

static void score_points(const struct ndtd_matcher *matcher, const struct ndt_pose *T_map_sensor, size_t stride,
                         float *values)
{
    const struct ndt_align_params *align = &matcher->settings->align;
    const struct ndt_align_level *finest = &align->levels[align->level_count - 1];
    const struct ndt_score_pose pose = score_pose(matcher, T_map_sensor);
    ndt_score_points(matcher->map, ndt_map_find_level(matcher->map, finest->leaf_m), finest->neighbours,
                     matcher->points, stride, &pose, matcher->settings->compute.isa, values);
}

/* The block of a point: points of a block lie on the same voxels and share their errors. */
static size_t block_of(const struct ndt_cloud *points, size_t i)
{
    const uint32_t x = (uint32_t)(int32_t)floorf(points->x_m[i] / BLOCK_M),
                   y = (uint32_t)(int32_t)floorf(points->y_m[i] / BLOCK_M),
                   z = (uint32_t)(int32_t)floorf(points->z_m[i] / BLOCK_M);
    return (x * 73856093u ^ y * 19349663u ^ z * 83492791u) % NDTD_FIT_BLOCKS;
}

/* Step at which points are scored: every stride-th one. */
static size_t stride_of(const struct ndt_cloud *points)
{
    return 1 + (points->count - 1) / NDTD_POINT_FITS;
}

void ndtd_matcher_keep_fits(struct ndtd_matcher *matcher, const struct ndt_pose *a)
{
    score_points(matcher, a, stride_of(matcher->points), matcher->fits.at_a);
}

/* Mean of the differences of the points over its deviation, where blocks of points are the independent samples (a
 * cluster-robust variance; Liang and Zeger 1986). Points that both poses explain alike add nothing. */
double ndtd_matcher_lead_of_kept(struct ndtd_matcher *matcher, const struct ndt_pose *b)
{
    struct ndtd_point_fits *fits = &matcher->fits;
    const struct ndt_cloud *points = matcher->points;
    const size_t stride = stride_of(points), count = (points->count + stride - 1) / stride;
    double sum = 0, squares = 0;
    memset(fits->blocks, 0, sizeof(fits->blocks));
    score_points(matcher, b, stride, fits->at_b);
    for (size_t i = 0; i < count; i++) {
        const double d = (double)fits->at_a[i] - (double)fits->at_b[i];
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

double ndtd_matcher_log_odds(const struct ndtd_matcher *matcher, double lead)
{
    const double z = matcher->scan.distorted_s > 0 ? lead / 2 : lead;
    return 0.5 * z * fabs(z);
}

double ndtd_matcher_significance(struct ndtd_matcher *matcher, const struct ndt_pose *a, const struct ndt_pose *b)
{
    ndtd_matcher_keep_fits(matcher, a);
    return ndtd_matcher_lead_of_kept(matcher, b);
}

#include "odometry_match.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/quantile.h"

static const double DEG = 0.017453292519943295;
/* Range of a typical point [m], and its movement by a second pass that is worth the time. */
static const double TYPICAL_RANGE_M = 15, SECOND_PASS_M = 0.01;
/* Parts of the usual fit: below the first a fit is in doubt, below the second it is no pose. */
static const double DOUBTFUL_PART = 0.85, LEAST_PART = 0.5;
/* Innovation above which a pose is in doubt: chi-square with 6 degrees of freedom, 99.9 %. */
static const double DOUBTFUL_INNOVATION = 22;
/* Weight of a fit against the squared distance from the prediction, and the upper limit of that distance. */
static const double FIT_WEIGHT = 25, MOST_DISTANCE = 3;
/* Upper limit of the squared distance of the position: a head turns at once, but a body does not move at once, and
 * where rooms are alike, the next one fits as well. */
static const double MOST_MOVE_DISTANCE = 20;
/* Squared distance of the position above which a match is refused: no body moves ten standard deviations. No pose
 * is better, until the prediction has become less certain. */
static const double IMPOSSIBLE_DISTANCE = 100;
/* Largest change of the pose by another motion within the sweep. */
static const double NEAR_M = 0.3, NEAR_RAD = 5 * 0.017453292519943295;
/* Longest time over which a velocity counts as changing evenly. */
static const double MOST_EVEN_S = 1;
/* Part of the information below which wheels tell the way along a direction better than a scan: in corridors and
 * tunnels, and in front of a wall, its own comes from the noise of normals and from the edges of what was seen, and
 * pulls. From 0.02 to 0.04 twelve simulated corridors come out with the scale of the wheels, 0.4 to 0.8 %; without
 * it they are up to 7 % too short; at 0.1 rows of houses follow the wheels, too. */
static const double WHEELS_PART = 0.03;
/* Number of points below which a pose is hardly determined. */
enum { LEAST_POINTS = 500, HALVINGS_MAX = 2 };
/* Largest number of motions that are tried in a row. */
enum { MOTIONS_MAX = 4 };

/* Prediction of a scan. */
struct ndt_odometry_prediction {
    const struct ndt_track_state *state;
    struct ndt_prior prior;
    int is_trusted; /* 0: the prediction is contradicted, and would pull */
};

int ndt_odometry_has_wheels(const struct ndt_track_state *state)
{
    return state->source == NDT_TRACK_ODOMETRY || state->source == NDT_TRACK_ODOMETRY_TWIST;
}

void ndt_recent_fits_add(struct ndt_recent_fits *fits, double fit)
{
    fits->values[fits->next] = fit;
    fits->next = (fits->next + 1) % NDT_ODOMETRY_FITS;
    if (fits->count < NDT_ODOMETRY_FITS)
        fits->count++;
}

static double median_of(const struct ndt_recent_fits *fits)
{
    double values[NDT_ODOMETRY_FITS];
    memcpy(values, fits->values, fits->count * sizeof(*values));
    return ndt_quantile(values, fits->count, 0.5);
}

/* ---- the points of a scan ---- */

/* Thins the points for the alignment from those for keyframes, whose times are relative to the reference moment:
 * the motion is not undone twice. In front of a wall few points of a scan are left; then the cells of the filter
 * are halved. */
static enum ndt_status thin_for_match(struct ndt_odometry_scan *scan, struct ndt_error *err)
{
    struct ndt_preprocess_params thin = scan->preprocess;
    struct ndt_sweep sweep = scan->sweep;
    const size_t wanted = scan->map_points->count < LEAST_POINTS ? scan->map_points->count : LEAST_POINTS;
    enum ndt_status status = NDT_OK;
    if (thin.range_offset_m != 0) { /* the points are corrected; the limits are those of measured ranges */
        thin.range_offset_m = thin.min_range_m = 0;
        thin.max_range_m = 2 * thin.max_range_m + 1;
    }
    thin.deskew = scan->preprocess.deskew == NDT_DESKEW_OFF ? NDT_DESKEW_OFF : NDT_DESKEW_TIME;
    sweep.reference_s = 0;
    for (int halvings = 0; halvings <= HALVINGS_MAX && status == NDT_OK; halvings++) {
        status = ndt_preprocess(scan->for_match, &thin, scan->map_points, &sweep, scan->sequence, NULL,
                                &scan->points, err);
        if (status == NDT_OK && scan->points->count >= wanted)
            break;
        thin.voxel_m /= 2;
    }
    return status;
}

enum ndt_status ndt_odometry_scan_prepare(struct ndt_odometry_scan *scan, const struct ndt_odometry_params *params,
                                          const struct ndt_track *track, const struct ndt_track_state *state,
                                          const struct ndt_cloud *raw, struct ndt_error *err)
{
    struct ndt_preprocess_params dense = scan->preprocess;
    dense.voxel_m = params->map_voxel_m;
    dense.sample_count = 0;
    scan->twist = state->twist;
    ndt_track_sweep_motion(track, state, &scan->sweep, &params->T_base_sensor, &scan->motion);
    enum ndt_status status = ndt_preprocess(scan->for_map, &dense, raw, &scan->sweep, scan->sequence, &scan->motion,
                                            &scan->map_points, err);
    return status == NDT_OK ? thin_for_match(scan, err) : status;
}

static double moved_m(const struct ndt_sweep *sweep, const struct ndt_twist *a, const struct ndt_twist *b)
{
    double v2 = 0, w2 = 0;
    for (int i = 0; i < 3; i++) {
        v2 += pow(a->v_mps[i] - b->v_mps[i], 2);
        w2 += pow(a->w_radps[i] - b->w_radps[i], 2);
    }
    return fmax(sweep->end_s, -sweep->begin_s) * (sqrt(v2) + TYPICAL_RANGE_M * sqrt(w2));
}

/* Deskews again where the twist of the state moves a typical point by a centimetre. *changed: whether it did. */
static enum ndt_status deskew_again(struct ndt_odometry_scan *scan, const struct ndt_odometry_params *params,
                                    const struct ndt_track *track, const struct ndt_track_state *state,
                                    int *changed, struct ndt_error *err)
{
    *changed = moved_m(&scan->sweep, &scan->twist, &state->twist) > SECOND_PASS_M;
    if (!*changed)
        return NDT_OK;
    scan->twist = state->twist;
    ndt_track_sweep_motion(track, state, &scan->sweep, &params->T_base_sensor, &scan->motion);
    enum ndt_status status = ndt_preprocess_again(scan->for_map, &scan->motion, &scan->map_points, err);
    return status == NDT_OK ? thin_for_match(scan, err) : status;
}

/* ---- one alignment ---- */

static double fit_of(const struct ndt_align_result *result)
{
    const int is_optimum = result->outcome == NDT_CONVERGED || result->outcome == NDT_ITERATION_LIMIT;
    return is_optimum ? result->scores.nvtl_normalized * result->scores.match_ratio : 0;
}

/* Removes from an observation the directions that are left to the wheels. Returns whether there are any; *weakest:
 * the least part of the information before. */
static int leave_to_wheels(const struct ndt_track_state *predicted, struct ndt_observation *of_base,
                           double *weakest)
{
    double ratio[6], axes[36], step[6];
    if (!ndt_odometry_has_wheels(predicted))
        return 0;
    ndt_observation_directions(of_base, ratio, axes);
    *weakest = ratio[0];
    for (int k = 0; k < 6 && ratio[k] < WHEELS_PART; k++) {
        ndt_observation_step(axes, k, step);
        ndt_observation_forget(of_base, axes + 6 * k, step);
    }
    return ratio[0] < WHEELS_PART;
}

/* Updates the estimate with an alignment and judges it. */
static void weigh(const struct ndt_odometry_matcher *matcher, const struct ndt_odometry_scan *scan,
                  const struct ndt_track_state *predicted, struct ndt_odometry_match *match)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&matcher->params->T_base_sensor);
    const struct ndt_align_result *result = &match->result;
    struct ndt_observation of_base;
    const struct ndt_track_measurement measurement = {.T_map_base =
                                                          ndt_pose_compose(&result->T_map_sensor, &T_sensor_base),
                                                      .observation = &of_base,
                                                      .twist = scan->twist,
                                                      .sweep_s = scan->sweep.end_s - scan->sweep.begin_s,
                                                      .is_converged = result->outcome == NDT_CONVERGED};
    match->fit = fit_of(result);
    match->is_usable = match->fit > 0 && result->has_observation;
    match->updated = *predicted;
    match->innovation = INFINITY;
    match->weakest = 0;
    if (!match->is_usable)
        return;
    ndt_observation_to_body(&result->observation, &matcher->params->T_base_sensor, &of_base);
    double weakest = 0;
    const int is_left = leave_to_wheels(predicted, &of_base, &weakest);
    ndt_track_update(matcher->track, predicted, &measurement, &match->updated, &match->innovation, &match->weakest);
    if (is_left)
        match->weakest = weakest;
    match->is_usable = ndt_track_state_is_plausible(&match->updated);
}

static void set_prior(const struct ndt_odometry_matcher *matcher, const struct ndt_track_state *predicted,
                      struct ndt_prior *prior)
{
    prior->T_map_sensor = ndt_pose_compose(&predicted->T_map_base, &matcher->params->T_base_sensor);
    ndt_track_pose_covariance(predicted, &matcher->params->T_base_sensor, prior->covariance);
}

static enum ndt_status align(const struct ndt_odometry_matcher *matcher, const struct ndt_odometry_scan *scan,
                             const struct ndt_odometry_prediction *prediction, const struct ndt_pose *guess,
                             struct ndt_odometry_match *match, struct ndt_error *err)
{
    struct ndt_align_params params = matcher->params->align;
    struct ndt_prior near = {.T_map_sensor = *guess};
    for (int i = 0; i < 6; i++)
        near.covariance[7 * i] = i < 3 ? NEAR_M * NEAR_M : NEAR_RAD * NEAR_RAD;
    params.prior = prediction->is_trusted ? &prediction->prior : &near;
    params.wants_observation = 1;
    const enum ndt_status status = ndt_align(matcher->aligner, &params, scan->points, guess, &match->result, err);
    if (status == NDT_OK)
        weigh(matcher, scan, prediction->state, match);
    match->guesses++;
    return status;
}

/* ---- many guesses ---- */

/* Makes guesses: turns and steps to the sides from the predicted pose, and from the previous pose of the base,
 * because a person who looks around does not keep turning. */
static size_t make_guesses(const struct ndt_odometry_matcher *matcher, const struct ndt_track_state *predicted,
                           struct ndt_pose *guesses)
{
    static const double YAWS_DEG[] = {0, 20, -20, 40, -40, 60, -60};
    static const double STEPS_M[][2] = {{2, 0}, {-2, 0}, {0, 2}, {0, -2}};
    const struct ndt_pose *bases[] = {&predicted->T_map_base, &matcher->track->state.T_map_base};
    size_t count = 0;
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < sizeof(YAWS_DEG) / sizeof(YAWS_DEG[0]); i++) {
            const struct ndt_pose turn =
                ndt_pose_from_rpy((double[3]){0, 0, 0}, (double[3]){0, 0, YAWS_DEG[i] * DEG});
            guesses[count++] = ndt_pose_compose(bases[b], &turn);
        }
        for (size_t i = 0; i < sizeof(STEPS_M) / sizeof(STEPS_M[0]); i++) {
            struct ndt_pose step = ndt_pose_identity();
            memcpy(step.t_m, STEPS_M[i], sizeof(STEPS_M[i]));
            guesses[count++] = ndt_pose_compose(bases[b], &step);
        }
    }
    for (size_t i = 0; i < count; i++)
        guesses[i] = ndt_pose_compose(&guesses[i], &matcher->params->T_base_sensor);
    return count;
}

/* Squared Mahalanobis distance of z[count] from zero, by the covariance of a prior of its first `count` errors. */
static double distance2(const struct ndt_prior *prior, int count, const double *z)
{
    double factor[36], solved[6], sum = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            factor[count * i + j] = prior->covariance[6 * i + j];
    memcpy(solved, z, (size_t)count * sizeof(*z));
    if (!ndt_factor_cholesky(count, factor))
        return INFINITY;
    ndt_solve_cholesky(count, factor, solved);
    for (int i = 0; i < count; i++)
        sum += z[i] * solved[i];
    return sum;
}

/* Merit of a result: the weighted fit, less the squared distance of its pose from the prediction. */
static double merit(const struct ndt_prior *prior, const struct ndt_align_result *result)
{
    const struct ndt_pose off = ndt_pose_between(&prior->T_map_sensor, &result->T_map_sensor);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    double z[6];
    memcpy(z, error.v_mps, sizeof(error.v_mps));
    memcpy(z + 3, error.w_radps, sizeof(error.w_radps));
    const double moved = distance2(prior, 3, z), both = fmin(distance2(prior, 6, z), MOST_DISTANCE);
    if (moved > IMPOSSIBLE_DISTANCE)
        return -INFINITY;
    return FIT_WEIGHT * fit_of(result) - 0.5 * fmax(fmin(moved, MOST_MOVE_DISTANCE), both);
}

/* Replaces the match by a better one from other guesses, aligned without the prediction. */
static enum ndt_status try_guesses(const struct ndt_odometry_matcher *matcher, const struct ndt_odometry_scan *scan,
                                   const struct ndt_odometry_prediction *prediction,
                                   struct ndt_odometry_match *match, struct ndt_error *err)
{
    const struct ndt_prior *prior = &prediction->prior;
    struct ndt_odometry_batch *batch = matcher->batch;
    struct ndt_pose guesses[NDT_ODOMETRY_GUESSES];
    struct ndt_align_params params = matcher->params->align;
    const size_t count = make_guesses(matcher, prediction->state, guesses);
    double best = match->is_usable ? merit(prior, &match->result) : -INFINITY;
    params.prior = NULL;
    params.wants_observation = 1;
    for (size_t i = 0; i < count; i++)
        batch->items[i] = (struct ndt_align_item){.scan = scan->points, .T_map_guess = guesses[i]};
    const enum ndt_status status =
        ndt_align_batch(matcher->aligner, &params, batch->items, count, batch->results, err);
    if (status != NDT_OK)
        return status;
    match->guesses += (int)count;
    for (size_t i = 0; i < count; i++) {
        const double value = merit(prior, &batch->results[i]);
        if (fit_of(&batch->results[i]) <= 0 || !(value > best))
            continue;
        best = value;
        match->result = batch->results[i];
    }
    weigh(matcher, scan, prediction->state, match);
    match->is_usable = match->is_usable && best > -INFINITY;
    return NDT_OK;
}

static int is_doubtful(const struct ndt_odometry_matcher *matcher, const struct ndt_odometry_match *match)
{
    return !match->is_usable || match->result.outcome != NDT_CONVERGED ||
           match->fit < DOUBTFUL_PART * median_of(matcher->fits) || match->innovation > DOUBTFUL_INNOVATION;
}

/* ---- the motion within the sweep ---- */

/* Deskews with the twist of the state and aligns again from there. *changed: whether the twist differs. */
static enum ndt_status align_again(const struct ndt_odometry_matcher *matcher, struct ndt_odometry_scan *scan,
                                   const struct ndt_odometry_prediction *prediction,
                                   const struct ndt_track_state *state, struct ndt_odometry_match *match,
                                   int *changed, struct ndt_error *err)
{
    enum ndt_status status = deskew_again(scan, matcher->params, matcher->track, state, changed, err);
    if (status != NDT_OK || !*changed)
        return status;
    const struct ndt_pose guess = ndt_pose_compose(&state->T_map_base, &matcher->params->T_base_sensor);
    return align(matcher, scan, prediction, &guess, match, err);
}

/* Tries another motion and keeps it only if the scan fits better. */
static enum ndt_status try_motion(const struct ndt_odometry_matcher *matcher, struct ndt_odometry_scan *scan,
                                  const struct ndt_odometry_prediction *prediction,
                                  const struct ndt_track_state *state, struct ndt_odometry_match *match,
                                  int *is_better, struct ndt_error *err)
{
    const struct ndt_odometry_match before = *match;
    struct ndt_track_state used = *state;
    used.twist = scan->twist;
    enum ndt_status status = align_again(matcher, scan, prediction, state, match, is_better, err);
    if (status != NDT_OK || !*is_better)
        return status;
    *is_better = match->is_usable && match->fit > before.fit;
    if (*is_better)
        return NDT_OK;
    const int guesses = match->guesses;
    int changed;
    *match = before;
    match->guesses = guesses;
    return deskew_again(scan, matcher->params, matcher->track, &used, &changed, err);
}

/* Sets the velocity at the scan if it has changed evenly since the previous scan: part 1; or its mean: part 0. */
static int even_motion(const struct ndt_track_state *before, struct ndt_track_state *state, double part)
{
    const double dt_s = ndt_track_seconds(before->stamp_ns, state->stamp_ns);
    const struct ndt_pose step = ndt_pose_between(&before->T_map_base, &state->T_map_base);
    if (!(dt_s > 0 && dt_s <= MOST_EVEN_S))
        return 0;
    const struct ndt_twist mean = ndt_pose_log(&step, dt_s);
    for (int i = 0; i < 3; i++) {
        state->twist.v_mps[i] = mean.v_mps[i] + part * (mean.v_mps[i] - before->twist.v_mps[i]);
        state->twist.w_radps[i] = mean.w_radps[i] + part * (mean.w_radps[i] - before->twist.w_radps[i]);
    }
    return 1;
}

/* Finds another motion for a doubtful scan, which may have been deskewed with a wrong one: the motion that its
 * alignment found, again as long as the fit improves, and those that lead to it from the previous scan. */
static enum ndt_status find_motion(const struct ndt_odometry_matcher *matcher, struct ndt_odometry_scan *scan,
                                   const struct ndt_odometry_prediction *prediction,
                                   struct ndt_odometry_match *match, struct ndt_error *err)
{
    static const double PARTS[] = {0, 1};
    enum ndt_status status = NDT_OK;
    if (!match->is_usable || scan->preprocess.deskew == NDT_DESKEW_OFF ||
        ndt_odometry_has_wheels(prediction->state)) /* wheels measure the motion better */
        return NDT_OK;
    for (size_t i = 0; i < 3 && status == NDT_OK; i++) {
        int is_better = 1;
        struct ndt_track_state state = match->updated;
        if (i > 0 && !even_motion(&matcher->track->state, &state, PARTS[i - 1]))
            continue;
        for (int tries = 0; tries < MOTIONS_MAX && is_better && status == NDT_OK; tries++) {
            status = try_motion(matcher, scan, prediction, &state, match, &is_better, err);
            state = match->updated;
        }
    }
    return status;
}

/* ---- the scan ---- */

static enum ndt_status resolve_doubt(const struct ndt_odometry_matcher *matcher, struct ndt_odometry_scan *scan,
                                     struct ndt_odometry_prediction *prediction, struct ndt_odometry_match *match,
                                     struct ndt_error *err)
{
    enum ndt_status status = find_motion(matcher, scan, prediction, match, err);
    if (status != NDT_OK || !is_doubtful(matcher, match))
        return status;
    status = try_guesses(matcher, scan, prediction, match, err);
    prediction->is_trusted = match->innovation <= DOUBTFUL_INNOVATION;
    return status == NDT_OK ? find_motion(matcher, scan, prediction, match, err) : status;
}

enum ndt_status ndt_odometry_match(const struct ndt_odometry_matcher *matcher, struct ndt_odometry_scan *scan,
                                   const struct ndt_track_state *predicted, struct ndt_odometry_match *out,
                                   struct ndt_error *err)
{
    struct ndt_odometry_prediction prediction = {.state = predicted, .is_trusted = 1};
    const double usual = median_of(matcher->fits);
    int changed;
    out->guesses = 0;
    set_prior(matcher, predicted, &prediction.prior);
    enum ndt_status status = align(matcher, scan, &prediction, &prediction.prior.T_map_sensor, out, err);
    if (status == NDT_OK && is_doubtful(matcher, out)) {
        status = resolve_doubt(matcher, scan, &prediction, out, err);
    } else if (status == NDT_OK) {
        const struct ndt_track_state found = out->updated;
        status = align_again(matcher, scan, &prediction, &found, out, &changed, err);
    }
    out->is_doubtful = out->fit < DOUBTFUL_PART * usual && out->innovation > DOUBTFUL_INNOVATION;
    if (out->fit < LEAST_PART * usual)
        out->is_usable = 0;
    return status;
}

#include "redeskew.h"

#include <math.h>

#include "ndt/clock.h"

/* Distance [m] at the ends of the sweep by which a pass has to move a typical point for another one to pay. */
static const double ANOTHER_PASS_M = 0.05;
/* Largest number of motions that follow from one that fits better, and of all that are tried at one place. */
enum { MOTIONS_MAX = 4, TRIES_MAX = 32 };
/* Largest number of further passes for a scan whose motion is unknown. */
enum { UNKNOWN_MOTION_PASSES = 4 };
/* Part of the usual fit below which a scan may have been deskewed with a wrong turn. */
static const double USUAL_PART = 0.9;
/* Differences of rates of turn: those that are tried first, and the least one between two that are tried. */
static const double TURNS_RADPS[] = {0, 0.6, -0.6, 1.2, -1.2}, LEAST_TURN_RADPS = 0.1;
/* Largest number of turns that are tried between those. */
enum { BETWEEN_MAX = 3 };
/* Distance of an update from the optimum it follows from, beyond which its motion is no motion of the scan. */
static const double LEFT_M = 1, LEFT_RAD = 20 * 0.017453292519943295;
/* Part of the fit of an alignment below which another place, with the same deskewing, is no rival. */
static const double RIVAL_PART = 0.25;

void ndtd_add_costs(struct ndt_align_result *result, const struct ndt_align_result *before)
{
    result->iterations += before->iterations;
    result->evaluations += before->evaluations;
    result->align_us += before->align_us;
    result->upload_us += before->upload_us;
}

void ndtd_set_costs(struct ndt_align_result *result, const struct ndt_align_result *costs)
{
    result->iterations = costs->iterations;
    result->evaluations = costs->evaluations;
    result->align_us = costs->align_us;
    result->upload_us = costs->upload_us;
}

/* The motion that has deskewed the points. */
static const struct ndt_twist *motion_in_use(const struct ndtd_matcher *matcher)
{
    return &matcher->motion[matcher->pass].twist;
}

/* Aligns on the finest level only, because the pose is nearly right already. */
static enum ndt_status align_again(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                   struct ndt_align_params *params, struct ndt_error *err)
{
    const struct ndtd_scan *scan = &matcher->scan;
    const struct ndt_align_result first = alignment->result;
    ndtd_scan_motion(scan, matcher->track, &alignment->updated, &matcher->motion[SECOND_PASS]);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_matcher_deskew_again(matcher, err);
    matcher->preprocess_us += ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    ndtd_use_finest_level(params);
    const struct ndt_pose guess = ndt_pose_compose(&alignment->updated.T_map_base, &scan->T_base_sensor);
    status = ndtd_matcher_align(matcher, SECOND_PASS, params, &guess, alignment, err);
    if (status == NDT_OK && ndtd_outcome_is_usable(alignment->result.outcome))
        ndtd_alignment_update(alignment, scan, matcher->track, motion_in_use(matcher));
    ndtd_add_costs(&alignment->result, &first);
    return status;
}

/* Whether the motion that was found moves points away from where the motion in use has put them. The estimator
 * accounts for a small error of the motion to first order; then another pass finds the same pose. */
static int motion_differs(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    return ndtd_scan_motion_difference_m(&matcher->scan.sweep, &alignment->updated.twist, motion_in_use(matcher)) >
           ANOTHER_PASS_M;
}

/* Number of passes after the first. A scan whose motion is unknown, as the first one, was deskewed with none. A
 * pass finds about half of what is missing, since points that lie far off hardly count; an evaluation or two each.
 */
static int passes_left(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    if (matcher->scan.preprocess.deskew == NDT_DESKEW_OFF)
        return 0;
    if (ndtd_has_prior(matcher->settings) && (!alignment->before->has_twist || !alignment->predicted.has_twist))
        return UNKNOWN_MOTION_PASSES;
    return matcher->settings->deskew_passes - 1;
}

enum ndt_status ndtd_deskew_passes(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                   struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const int passes = passes_left(matcher, alignment), asked_for = matcher->settings->deskew_passes - 1;
    for (int pass = 1; pass <= passes && status == NDT_OK; pass++) {
        struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
        if (alignment->result.outcome != NDT_CONVERGED || !alignment->updated.has_twist ||
            (ndtd_has_prior(matcher->settings) && !motion_differs(matcher, alignment)))
            return NDT_OK;
        if (!ndtd_matcher_has_time(matcher, &params)) {
            if (pass <= asked_for) /* otherwise a slow machine would refuse every scan: no motion is ever known */
                ndtd_refuse(&alignment->result, NDT_DEADLINE, "no time left for another pass of deskewing");
            return NDT_OK;
        }
        status = align_again(matcher, alignment, &params, err);
    }
    return status;
}

struct ndtd_deskewing ndtd_deskewing_now(const struct ndtd_matcher *matcher)
{
    return (struct ndtd_deskewing){matcher->pass, matcher->points, *motion_in_use(matcher), 0};
}

void ndtd_deskewing_use(struct ndtd_matcher *matcher, const struct ndtd_deskewing *first)
{
    matcher->pass = first->pass;
    matcher->points = first->points;
}

/* Deskews the points as at an earlier moment. *state: an estimate at the scan. */
static enum ndt_status deskew_back(struct ndtd_matcher *matcher, const struct ndtd_deskewing *then,
                                   const struct ndt_track_state *state, struct ndt_error *err)
{
    struct ndt_track_state moved = *state;
    ndtd_deskewing_use(matcher, then);
    if (then->pass == FIRST_PASS)
        return NDT_OK;
    moved.twist = then->motion; /* the points of that pass were overwritten */
    ndtd_scan_motion(&matcher->scan, matcher->track, &moved, &matcher->motion[SECOND_PASS]);
    return ndtd_matcher_deskew_again(matcher, err);
}

/* The rates of turn that were tried at one place, about the vertical axis of the base, and their fits. */
struct turns {
    size_t count;
    int is_cut_short; /* no time was left for a motion */
    double radps[TRIES_MAX], fit[TRIES_MAX];
};

static void add_turn(struct turns *turns, double radps, double fit)
{
    turns->radps[turns->count] = radps;
    turns->fit[turns->count++] = fit;
}

/* The pose of the base at the optimum. */
static struct ndt_pose aligned_base(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&matcher->scan.T_base_sensor);
    return ndt_pose_compose(&alignment->result.T_map_sensor, &T_sensor_base);
}

/* Whether the update follows from the optimum: far from the right motion, the linear model may lead anywhere. */
static int is_at_optimum(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    const struct ndt_pose aligned = aligned_base(matcher, alignment);
    return ndt_pose_distance_m(&aligned, &alignment->updated.T_map_base) <= LEFT_M &&
           ndt_pose_angle_rad(&aligned, &alignment->updated.T_map_base) <= LEFT_RAD;
}

/* Deskews with the motion of alignment->updated and aligns again; keeps the result only if the scan fits better.
 * Returns whether it does. */
static int try_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment, struct turns *turns,
                      enum ndt_status *status, struct ndt_error *err)
{
    const struct ndtd_alignment before = *alignment;
    const struct ndtd_deskewing used = ndtd_deskewing_now(matcher);
    struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    if (turns->count == TRIES_MAX || !motion_differs(matcher, alignment) || !is_at_optimum(matcher, alignment))
        return 0;
    turns->is_cut_short |= !ndtd_matcher_has_time(matcher, &params);
    if (turns->is_cut_short)
        return 0;
    *status = align_again(matcher, alignment, &params, err);
    if (*status != NDT_OK)
        return 0;
    turns->is_cut_short |= alignment->result.outcome == NDT_DEADLINE;
    if (ndtd_outcome_is_usable(alignment->result.outcome) || !ndtd_outcome_is_usable(before.result.outcome)) {
        add_turn(turns, before.updated.twist.w_radps[2], ndtd_fit(&alignment->result));
        if (ndtd_fit(&alignment->result) > ndtd_fit(&before.result))
            return 1;
    }
    const struct ndt_align_result costs = alignment->result;
    *alignment = before;
    alignment->has_trace = 0; /* the trace was overwritten */
    ndtd_set_costs(&alignment->result, &costs);
    *status = deskew_back(matcher, &used, &before.updated, err);
    return 0;
}

/* Tries the motion of alignment->updated, and those that the estimator finds from there. Without success the
 * estimate becomes `otherwise`. */
static int try_motions(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment, struct turns *turns,
                       const struct ndt_track_state *otherwise, enum ndt_status *status, struct ndt_error *err)
{
    int tries = 0;
    if (!try_motion(matcher, alignment, turns, status, err)) {
        alignment->updated = *otherwise;
        return 0;
    }
    while (tries < MOTIONS_MAX && try_motion(matcher, alignment, turns, status, err))
        tries++;
    return 1;
}

/* Returns an update that has left its optimum there. Otherwise the update is better: along a corridor the optimum
 * is anywhere. */
static void keep_at_optimum(const struct ndtd_matcher *matcher, struct ndtd_alignment *alignment)
{
    if (!is_at_optimum(matcher, alignment))
        alignment->updated.T_map_base = aligned_base(matcher, alignment);
}

/* Sets the velocity at the scan as the mean since the previous scan, extrapolated by `part` of its change since
 * then. */
static int set_even_motion(const struct ndtd_matcher *matcher, struct ndtd_alignment *alignment, double part)
{
    const struct ndt_track_state *before = alignment->before;
    const double dt_s = ndt_track_seconds(before->stamp_ns, alignment->predicted.stamp_ns);
    if (dt_s <= 0 || dt_s > matcher->track->params.max_prediction_s)
        return 0;
    keep_at_optimum(matcher, alignment);
    const struct ndt_pose step = ndt_pose_between(&before->T_map_base, &alignment->updated.T_map_base);
    const struct ndt_twist mean = ndt_pose_log(&step, dt_s);
    for (int i = 0; i < 3; i++) {
        struct ndt_twist *twist = &alignment->updated.twist;
        twist->v_mps[i] = mean.v_mps[i] + part * (mean.v_mps[i] - before->twist.v_mps[i]);
        twist->w_radps[i] = mean.w_radps[i] + part * (mean.w_radps[i] - before->twist.w_radps[i]);
    }
    return 1;
}

/* Whether another motion within the sweep may be tried. */
static int may_move_otherwise(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    const enum ndt_track_source source = alignment->predicted.source;
    return matcher->scan.preprocess.deskew != NDT_DESKEW_OFF && alignment->result.has_observation &&
           source != NDT_TRACK_ODOMETRY && source != NDT_TRACK_ODOMETRY_TWIST; /* odometry measures it better */
}

/* Whether the scan fits worse than usual, so that its turn may be another. */
static int may_turn_otherwise(const struct ndtd_matcher *matcher, const struct ndtd_alignment *alignment)
{
    return alignment->is_updated && ndtd_fit(&alignment->result) < USUAL_PART * matcher->scan.usual_fit &&
           alignment->predicted.source != NDT_TRACK_GYRO; /* which measures the turn */
}

/* Tries the turn of the estimate, and faster and slower ones. */
static enum ndt_status try_turns_around(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                        struct turns *turns, struct ndt_error *err)
{
    const struct ndt_twist from =
        is_at_optimum(matcher, alignment) ? alignment->updated.twist : *motion_in_use(matcher);
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < sizeof(TURNS_RADPS) / sizeof(TURNS_RADPS[0]) && status == NDT_OK; i++) {
        const struct ndt_track_state updated = alignment->updated;
        if (!may_turn_otherwise(matcher, alignment))
            break;
        keep_at_optimum(matcher, alignment);
        alignment->updated.twist = from;
        alignment->updated.twist.w_radps[2] += TURNS_RADPS[i];
        (void)try_motions(matcher, alignment, turns, &updated, &status, err);
    }
    return status;
}

/* The number of the nearest turn tried on one side of another (sign: 1 faster, -1 slower); of equal ones, with
 * other velocities, the one that fits best. count: there is none. */
static size_t neighbour_of(const struct turns *turns, size_t number, double sign)
{
    size_t nearest = turns->count;
    for (size_t i = 0; i < turns->count; i++) {
        const double away_radps = sign * (turns->radps[i] - turns->radps[number]);
        const double nearer_radps =
            nearest == turns->count ? INFINITY : sign * (turns->radps[nearest] - turns->radps[number]);
        if (away_radps >= LEAST_TURN_RADPS &&
            (away_radps < nearer_radps || (away_radps == nearer_radps && turns->fit[i] > turns->fit[nearest])))
            nearest = i;
    }
    return nearest;
}

/* The turn at the vertex of the parabola through the best turn and its neighbours. Returns whether there is one
 * that was not tried. */
static int turn_between(const struct turns *turns, double *radps)
{
    size_t best = 0;
    for (size_t i = 1; i < turns->count; i++)
        if (turns->fit[i] > turns->fit[best])
            best = i;
    const size_t slower = neighbour_of(turns, best, -1), faster = neighbour_of(turns, best, 1);
    if (slower == turns->count || faster == turns->count)
        return 0;
    const double w[3] = {turns->radps[slower], turns->radps[best], turns->radps[faster]};
    const double rise = (turns->fit[best] - turns->fit[slower]) / (w[1] - w[0]),
                 fall = (turns->fit[faster] - turns->fit[best]) / (w[2] - w[1]);
    *radps = rise > fall ? 0.5 * (w[0] + w[1]) + 0.5 * (w[2] - w[0]) * rise / (rise - fall) : w[1];
    for (size_t i = 0; i < turns->count; i++)
        if (fabs(*radps - turns->radps[i]) < LEAST_TURN_RADPS)
            return 0;
    return 1;
}

/* Tries turns between those that were tried. */
static enum ndt_status try_turns_between(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                         struct turns *turns, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    double radps;
    for (int i = 0; i < BETWEEN_MAX && status == NDT_OK; i++) {
        const struct ndt_track_state updated = alignment->updated;
        if (!may_turn_otherwise(matcher, alignment) || !turn_between(turns, &radps))
            break;
        keep_at_optimum(matcher, alignment);
        alignment->updated.twist = *motion_in_use(matcher);
        alignment->updated.twist.w_radps[2] = radps;
        (void)try_motions(matcher, alignment, turns, &updated, &status, err);
    }
    return status;
}

enum ndt_status ndtd_find_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment, int *is_cut_short,
                                 struct ndt_error *err)
{
    static const double PARTS[] = {0, 1};
    enum ndt_status status = NDT_OK;
    struct turns turns = {.count = 0};
    *is_cut_short = 0;
    if (!may_move_otherwise(matcher, alignment))
        return NDT_OK;
    if (!alignment->is_updated)
        ndtd_alignment_update(alignment, &matcher->scan, matcher->track, motion_in_use(matcher));
    add_turn(&turns, motion_in_use(matcher)->w_radps[2], ndtd_fit(&alignment->result));
    const struct ndt_track_state updated = alignment->updated;
    (void)try_motions(matcher, alignment, &turns, &updated, &status, err);
    for (size_t i = 0; i < 2 && status == NDT_OK; i++) {
        const struct ndt_track_state before = alignment->updated;
        if (set_even_motion(matcher, alignment, PARTS[i]))
            (void)try_motions(matcher, alignment, &turns, &before, &status, err);
    }
    alignment->is_updated = ndtd_outcome_is_usable(alignment->result.outcome);
    if (status == NDT_OK)
        status = try_turns_around(matcher, alignment, &turns, err);
    if (status == NDT_OK)
        status = try_turns_between(matcher, alignment, &turns, err);
    alignment->is_updated = ndtd_outcome_is_usable(alignment->result.outcome);
    *is_cut_short = turns.is_cut_short;
    return status;
}

/* Aligns from the prior of the alignment, on the finest level, and finds the motion there unless the scan fits
 * worse than `least_fit`. */
static enum ndt_status align_with_motion(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                         double least_fit, int *is_cut_short, struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    *is_cut_short = !ndtd_matcher_has_time(matcher, &params);
    if (*is_cut_short) {
        ndtd_refuse(&alignment->result, NDT_DEADLINE, "no time left for another place");
        return NDT_OK;
    }
    ndtd_use_finest_level(&params);
    enum ndt_status status =
        ndtd_matcher_align(matcher, matcher->pass, &params, &alignment->prior.T_map_sensor, alignment, err);
    *is_cut_short = alignment->result.outcome == NDT_DEADLINE;
    if (status != NDT_OK || !ndtd_outcome_is_usable(alignment->result.outcome))
        return status;
    ndtd_alignment_update(alignment, &matcher->scan, matcher->track, motion_in_use(matcher));
    return ndtd_fit(&alignment->result) < least_fit ? NDT_OK
                                                    : ndtd_find_motion(matcher, alignment, is_cut_short, err);
}

enum ndt_status ndtd_lead_with_motions(struct ndtd_matcher *matcher, struct ndtd_alignment *alignment,
                                       const struct ndtd_deskewing *first, const struct ndt_pose *other,
                                       double *lead, struct ndt_error *err)
{
    const struct ndtd_deskewing here = ndtd_deskewing_now(matcher);
    struct ndtd_alignment there = *alignment;
    int is_cut_short = 0;
    ndtd_matcher_keep_fits(matcher, &alignment->result.T_map_sensor);
    there.prior.T_map_sensor = *other;
    ndtd_matcher_wide_covariance(matcher, there.prior.covariance);
    there.result = (struct ndt_align_result){0};
    enum ndt_status status = deskew_back(matcher, first, &alignment->updated, err);
    if (status == NDT_OK)
        status = align_with_motion(matcher, &there, RIVAL_PART * first->fit, &is_cut_short, err);
    if (status != NDT_OK)
        return status;
    const int is_same = !ndtd_are_distinct(&there.result.T_map_sensor, &alignment->result.T_map_sensor);
    *lead = is_same ? INFINITY : ndtd_matcher_lead_of_kept(matcher, &there.result.T_map_sensor);
    if (is_cut_short)
        *lead = 0;
    ndtd_add_costs(&alignment->result, &there.result);
    alignment->has_trace = 0; /* the trace was overwritten */
    return deskew_back(matcher, &here, &alignment->updated, err);
}

/* Recovery: the places of the vehicle, from view to view, since it was verified last or its pose was given. */
#include <math.h>

#include "ndt_search/hypothesis_test.h"
#include "relocalizer_state.h"

static const double DEG = 0.017453292519943295;
/* Extent of a place, and the distance that searches reach beyond the likely one. */
static const double PLACE_M = 1, SEARCHED_M = 5;
/* Way since the pose was verified up to which guesses and windows have tried all places that the vehicle can have
 * reached: that of a walker in half a second. */
static const double SHORT_M = 2;
/* Usual turn between views: an angle that every vehicle turns, and a rate. */
static const double USUAL_RAD = 0.1, USUAL_RADPS = 1;
/* Error of a motion between views by odometry: largest and usual, and the parts of the way and of the turn in them.
 */
static const double MEASURED_MOST_M = 1, MEASURED_MOST_RAD = 0.3, MEASURED_MOST_PART = 0.2;
static const double MEASURED_USUAL_M = 0.2, MEASURED_USUAL_RAD = 0.05, MEASURED_USUAL_PART = 0.04;
/* A given pose: logarithm of the probability that it is wrong altogether; its largest error otherwise, unless its
 * deviation is larger; the age up to which it says where the vehicle is; and the time after which a velocity that
 * was given wrong no longer moves the poses. */
static const double GIVEN_WRONG = -2.3, GIVEN_M = 5, GIVEN_S = 10, SETTLED_S = 0.95;

/* Age up to which the places of an earlier scan tell where the vehicle may be. */
static const double RECENT_S = 1;

void ndtd_places_begin(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    recovery->has_places = 0;
    recovery->against_odometry = 0;
    recovery->views = 0;
    recovery->has_view =
        from &&
        (relocalizer->is_verified ||
         fabs(ndt_track_seconds(from->stamp_ns, relocalizer->parts.matcher->scan.predicted.stamp_ns)) <= GIVEN_S);
    if (!recovery->has_view)
        return;
    ndtd_belief_begin(&recovery->view, &from->T_map_base, relocalizer->is_verified ? -INFINITY : GIVEN_WRONG);
    recovery->view_ns = from->stamp_ns;
    recovery->T_map_view = from->T_map_base;
    recovery->view_state = *from;
}

/* ---- the scan ---- */

/* Adds a place with its fit relative to that of the alignment, whose fits the matcher keeps. */
static void add_place(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&now->scan->T_base_sensor);
    const struct ndt_pose T_map_base = ndt_pose_compose(T_map_sensor, &T_sensor_base);
    const double lead = ndtd_matcher_lead_of_kept(now->matcher, T_map_sensor);
    ndtd_belief_add(&now->relocalizer->recovery.places, &T_map_base, -ndtd_matcher_log_odds(now->matcher, lead));
}

static void add_places(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_hypotheses *others = &relocalizer->recovery.others;
    const struct ndt_pose *aligned = &now->alignment->result.T_map_sensor;
    ndtd_matcher_keep_fits(now->matcher, aligned);
    add_place(now, aligned);
    for (size_t i = 0; i < relocalizer->optima.count; i++)
        add_place(now, &relocalizer->optima.T_map_sensor[i]);
    for (size_t i = 0; i < others->count; i++) {
        const struct ndt_track_state *state = &others->list[i].state;
        const struct ndt_pose T_map_sensor = ndt_pose_compose(&state->T_map_base, &now->scan->T_base_sensor);
        if (state->stamp_ns == now->alignment->predicted.stamp_ns)
            add_place(now, &T_map_sensor);
    }
}

/* Motion since the last view, if none was measured. */
static struct ndtd_motion_limit unmeasured_limit(const struct ndtd_relocalizer *relocalizer, double dt_s)
{
    const double speed_mps = ndtd_likely_speed_mps(relocalizer);
    return (struct ndtd_motion_limit){.most_m = PLACE_M + ndtd_reach_m(relocalizer->settings, speed_mps, dt_s),
                                      .most_rad = ndtd_turn_reach_rad(dt_s),
                                      .usual_m = ndtd_usual_way_m(relocalizer, dt_s),
                                      .usual_rad = USUAL_RAD + USUAL_RADPS * dt_s};
}

/* Limits the motion to the one that odometry has measured, if there is any: *T_before_now. */
static void measure(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns, struct ndt_pose *T_before_now,
                    struct ndtd_motion_limit *limit)
{
    const struct ndt_track_state *before = &relocalizer->recovery.view_state;
    struct ndt_track_state predicted;
    ndt_track_predict_from(relocalizer->parts.track, before, stamp_ns, &predicted);
    if (!predicted.is_of_scans && (!ndtd_has_odometry(&predicted) || ndtd_is_odometry_contradicted(relocalizer)))
        return;
    const double way_m = ndt_pose_distance_m(&before->T_map_base, &predicted.T_map_base);
    const double turn_rad = ndt_pose_angle_rad(&before->T_map_base, &predicted.T_map_base);
    *T_before_now = ndt_pose_between(&before->T_map_base, &predicted.T_map_base);
    *limit = (struct ndtd_motion_limit){.most_m = MEASURED_MOST_M + MEASURED_MOST_PART * way_m,
                                        .most_rad = MEASURED_MOST_RAD + MEASURED_MOST_PART * turn_rad,
                                        .usual_m = MEASURED_USUAL_M + MEASURED_USUAL_PART * way_m,
                                        .usual_rad = MEASURED_USUAL_RAD + MEASURED_USUAL_PART * turn_rad,
                                        .T_before_now = T_before_now,
                                        .is_exact = 1};
}

/* Motion since the last view. The error of a given pose counts as motion to the first view. */
static struct ndtd_motion_limit motion_limit(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns,
                                             struct ndt_pose *T_before_now)
{
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    struct ndtd_motion_limit limit =
        unmeasured_limit(relocalizer, fabs(ndt_track_seconds(recovery->view_ns, stamp_ns)));
    measure(relocalizer, stamp_ns, T_before_now, &limit);
    if (relocalizer->is_verified || recovery->views > 0)
        return limit;
    const double deviation_m = ndt_track_position_deviation(&relocalizer->given);
    limit.most_m += fmax(GIVEN_M, 3 * deviation_m);
    limit.most_rad += NDTD_GIVEN_USUAL_RAD;
    limit.usual_m += fmax(NDTD_GIVEN_USUAL_M, deviation_m);
    limit.usual_rad += NDTD_GIVEN_USUAL_RAD;
    limit.is_exact = 0;
    return limit;
}

/* Whether all places that the vehicle can have reached since its pose was verified were tried: no other view lies
 * in between, and the window of this scan contains them. */
static int is_short_way(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const double dt_s = fabs(ndt_track_seconds(relocalizer->recovery.view_ns, now->alignment->predicted.stamp_ns));
    const double reach_m = ndtd_reach_m(relocalizer->settings, ndtd_likely_speed_mps(relocalizer), dt_s);
    return relocalizer->is_verified && relocalizer->recovery.views == 0 && reach_m <= SHORT_M &&
           reach_m <= ndtd_window_radius_m(relocalizer, now->alignment);
}

/* Distance from the last verified or given pose within which a place that was not found may be. */
static double searched_m(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns)
{
    return SEARCHED_M + (relocalizer->is_verified ? 0 : GIVEN_M) + ndtd_likely_reach_m(relocalizer, stamp_ns);
}

void ndtd_places_update(const struct ndtd_relocalization *now)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    const int64_t stamp_ns = now->alignment->predicted.stamp_ns;
    struct ndt_align_params params = ndtd_matcher_params(now->matcher, &now->alignment->prior);
    const int is_settled =
        relocalizer->is_verified ||
        (relocalizer->has_given && fabs(ndt_track_seconds(relocalizer->given.stamp_ns, stamp_ns)) >= SETTLED_S);
    recovery->has_places = recovery->has_view && is_settled && now->has_first &&
                           relocalizer->proposals.is_searched && !now->decision->is_cut_short &&
                           ndtd_matcher_has_time(now->matcher, &params) &&
                           ndtd_outcome_is_usable(now->alignment->result.outcome);
    if (!recovery->has_places)
        return;
    struct ndt_pose T_before_now;
    struct ndtd_motion_limit limit = motion_limit(relocalizer, stamp_ns, &T_before_now);
    limit.is_short = is_short_way(now);
    const struct ndtd_motion_limit region = {.most_m = searched_m(relocalizer, stamp_ns), .most_rad = M_PI};
    recovery->places.count = 0;
    recovery->places_ns = stamp_ns;
    recovery->places.log_missed_again = ndtd_log_missed_again(relocalizer);
    add_places(now);
    ndtd_belief_arrive(&recovery->places, &recovery->view, &limit, &region);
    recovery->places.log_fit_unfound = ndtd_log_fit_unfound(now, ndtd_belief_stands_out(&recovery->places));
    ndtd_belief_weigh(&recovery->places);
}

/* The hypotheses that fit this scan, and the pose itself, as places of the same weight. */
static struct ndtd_belief belief_of_hypotheses(const struct ndtd_hypotheses *hypotheses,
                                               const struct ndt_pose *T_map_base, int64_t stamp_ns)
{
    struct ndtd_belief alike = {.log_unfound = -INFINITY};
    ndtd_belief_add(&alike, T_map_base, 0);
    for (size_t i = 0; i < hypotheses->count; i++) {
        const struct ndtd_hypothesis *other = &hypotheses->list[i];
        if (other->state.stamp_ns == stamp_ns && other->misses == 0)
            ndtd_belief_add(&alike, &other->state.T_map_base, 0);
    }
    for (size_t i = 0; i < alike.count; i++)
        alike.places[i].log_weight = -log((double)alike.count);
    return alike;
}

void ndtd_relocalizer_spread(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base,
                             int64_t stamp_ns, double covariance[36])
{
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    if (!recovery->is_active)
        return;
    if (from && recovery->has_places && fabs(ndt_track_seconds(recovery->places_ns, stamp_ns)) <= RECENT_S) {
        ndtd_belief_spread(&recovery->places, T_map_base, from->T_map_base.t_m, searched_m(relocalizer, stamp_ns),
                           covariance);
        return;
    }
    const struct ndtd_belief alike = belief_of_hypotheses(&recovery->others, T_map_base, stamp_ns);
    ndtd_belief_spread(&alike, T_map_base, T_map_base->t_m, 0, covariance);
}

/* ---- the proof ---- */

/* Logarithm of the weight of a place by its whole fit, which tells more than the limited evidence against it: the
 * right place may fit badly because the points are deskewed with the motion of another one. */
static double whole_weight(const struct ndtd_place *place)
{
    return place->log_fit + place->log_arrival;
}

/* Logarithm of the weight of a place with the limited evidence against it: where the vehicle is expected counts
 * more, because no motion but its own lets the right place fit. */
static double limited_weight(const struct ndtd_place *place)
{
    return place->log_weight;
}

/* The place of the largest weight besides `here` that was not deskewed with its own motion yet; NULL: there is
 * none. */
static struct ndtd_place *next_rival(struct ndtd_belief *places, const struct ndtd_place *here, const int *is_moved,
                                     double (*weight_of)(const struct ndtd_place *place))
{
    struct ndtd_place *next = NULL;
    for (size_t i = 0; i < places->count; i++)
        if (&places->places[i] != here && !is_moved[i] && !places->places[i].is_carried &&
            (!next || weight_of(&places->places[i]) > weight_of(next)))
            next = &places->places[i];
    return next;
}

enum ndt_status ndtd_places_weigh(const struct ndtd_relocalization *now, double *margin, struct ndt_error *err)
{
    struct ndtd_belief *places = &now->relocalizer->recovery.places;
    const struct ndtd_place *here = ndtd_belief_at(places, &now->relocalizer->recovery.leading.state.T_map_base);
    int is_moved[NDTD_PLACES_MAX] = {0};
    *margin = here ? ndtd_belief_margin(places, here) : -INFINITY;
    for (int k = 0; here && k < 2 * NDTD_RIVALS_MOVED && *margin >= NDTD_LEAST_MARGIN; k++) {
        struct ndtd_place *rival = next_rival(places, here, is_moved, k % 2 == 0 ? whole_weight : limited_weight);
        if (!rival)
            break;
        const struct ndt_pose T_map_sensor = ndt_pose_compose(&rival->T_map_base, &now->scan->T_base_sensor);
        double lead;
        const enum ndt_status status =
            ndtd_lead_with_motions(now->matcher, now->alignment, &now->first, &T_map_sensor, &lead, err);
        if (status != NDT_OK)
            return status;
        is_moved[rival - places->places] = 1;
        rival->log_fit = here->log_fit - ndtd_matcher_log_odds(now->matcher, lead);
        ndtd_belief_weigh(places);
        *margin = ndtd_belief_margin(places, here);
    }
    return NDT_OK;
}

int ndtd_places_is_new_view(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_base)
{
    const struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const int is_narrow = now->relocalizer->proposals.found->view.sectors < NDT_HYPOTHESIS_NARROW;
    const int is_turned =
        is_narrow && ndt_pose_angle_rad(&recovery->T_map_view, T_map_base) > NDT_HYPOTHESIS_TURN_DEG * DEG;
    return is_turned || ndt_pose_distance_m(&recovery->T_map_view, T_map_base) >= NDT_HYPOTHESIS_STEP_M;
}

void ndtd_places_keep(const struct ndtd_relocalization *now)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    if (!recovery->has_places || recovery->places.log_fit_unfound >= 0) /* a view that fits nowhere tells nothing */
        return;
    const int is_first = recovery->views == 0 && !now->relocalizer->is_verified; /* a given pose is no view */
    const struct ndt_pose *best = &ndtd_belief_best(&recovery->places)->T_map_base;
    if (!is_first && !ndtd_places_is_new_view(now, best))
        return;
    recovery->views++;
    recovery->view = recovery->places;
    recovery->view_ns = now->alignment->predicted.stamp_ns;
    recovery->T_map_view = *best;
    recovery->view_state = recovery->leading.state;
}

/* Recovery: finding the pose again after it was lost, or for the first time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "relocalizer_state.h"
#include "search_request.h"

/* Least radius that is searched: a pose set by a person is off by this much at times. */
static const double LEAST_RADIUS_M = 20;
/* Number of candidates of one search that are followed. */
enum { CANDIDATES_FOLLOWED = 5 };
/* Factor by which the fit of a hypothesis has to be better for it to become the leading one. */
static const double BETTER_FIT = 1.1;
/* Distance from a given pose, and time after it, beyond which a pose has to be proven by searches unless the first
 * scan confirms it. */
static const double GIVEN_M = 3, GIVEN_S = 2;
/* Distance from a given pose beyond which a scan whose surroundings were not searched is no proof: in an office one
 * was accepted 2.2 m away, where the searches before it had found better places. */
static const double UNSEARCHED_M = 1;
/* Distance beyond the error of a given pose within which the first scan confirms it. Farther away, it needs proof:
 * in a street of equal houses, with a pose 3 m and a velocity 5 m/s wrong, the next house fits best. */
static const double BESIDE_GIVEN_M = 0.5;
/* Distance from where odometry leads to beyond which a pose that is not accepted has left the track, turn beyond
 * which none is accepted, and turn since the last scan beyond which a scan speaks against odometry. */
static const double ODOMETRY_M = 0.4, ODOMETRY_RAD = 0.06, ODOMETRY_STEP_RAD = 0.1;
/* Time since the verified pose up to which the measured turn decides; wheels and gyros may be mounted otherwise
 * than told. */
static const double TURN_S = 2;
/* Number of searches near GNSS positions without an accepted hypothesis after which the positions may be wrong:
 * from then on every GNSS_EVERY-th search is near them, and the others are of the whole map. */
enum { GNSS_SEARCHES = 8, GNSS_EVERY = 3 };
/* Distortion of a sweep by the uncertainty of the velocity above which a wrong pose and a wrong velocity may
 * compensate each other; the part of the gate that the innovation has to stay within then, and the part of the
 * usual fit that the scan has to reach. */
static const double OPEN_SWEEP_M = 1, OPEN_SWEEP_PART = 0.1, SWEPT_FIT_PART = 0.9;
/* Distance within which a vehicle counts as still being where it was verified. */
static const double HARDLY_M = 1.25;
/* Deviations from the usual fit within which a scan fits as usual, and the time after which it no longer tells that
 * a vehicle has stayed where it was verified. */
static const double AS_USUAL = 1, STAYED_S = 10;
/* Least logarithm of the odds, 999 : 1, of a place over all others by one scan that no odometry predicts, and after
 * several views: of 13 000 scans in offices and dormitories one was 3.9 m off with odds of 101 : 1. */
static const double CERTAIN_MARGIN = 6.9;
/* Least logarithm of the odds, 10 : 1, of a place that searches prove as well. */
static const double LEAST_MARGIN_OF_SEARCHES = 2.3;
/* Largest distortion at the ends of a sweep by a velocity that does not fit the path. */
static const double MOST_SWEPT_M = 0.75;
/* Part of the usual nvtl_normalized below which a place is wrong. */
static const double LEAST_MATCHED_PART = 0.85;
/* Radius of a search around a GNSS position, in standard deviations. */
static const double GNSS_DEVIATIONS = 3.5;
/* Searches near the verified pose: every FAR_SEARCH_EVERY-th reaches as far as the vehicle can have come at all,
 * the others BEYOND_LIKELY_M farther than it has likely come. */
enum { FAR_SEARCH_EVERY = 4 };
static const double BEYOND_LIKELY_M = 5;
/* Probability of a pose that something speaks against. */
static const double EVEN = 0.5;
/* Tilt of an alignment, against the one that was known, that a scan need not tell. */
static const double LITTLE_TILT_RAD = 5 * 0.017453292519943295;
/* Turn of the estimate against its alignment beyond which the two contradict each other. Of 1559 right scans of
 * handheld drives 99.9 % are within 3 deg; estimates that were turned by 5 deg and more had left by 4.5 and 9 deg.
 */
static const double LEFT_RAD = 3.5 * 0.017453292519943295;
/* Purpose of a search. */
enum { ALL_POSSIBLE, NEAR_DOUBTED_GNSS };

/* Motion from scan to scan that odometry has to tell for a scan to speak for it. */
static const double TOLD_M = 0.1, TOLD_RAD = 0.05;

/* ---- following ---- */

/* Distance from the prediction at which a pose that is not accepted has left the track. */
static double leaving_m(const struct ndt_track_state *predicted)
{
    return ndtd_has_odometry(predicted) ? ODOMETRY_M : GIVEN_M;
}

/* Whether odometry tells a motion since the scan before: wheels that stand still agree with every slow walk. */
static int tells_motion(const struct ndt_pose *before, const struct ndt_pose *predicted)
{
    return ndt_pose_distance_m(before, predicted) >= TOLD_M || ndt_pose_angle_rad(before, predicted) >= TOLD_RAD;
}

/* Counts the scans that fit away from where odometry leads, and nowhere else, less those that fit there. */
static void count_against_odometry(const struct ndtd_relocalization *now, int fits)
{
    const struct ndtd_alignment *alignment = now->alignment;
    const struct ndt_pose *predicted = &alignment->predicted.T_map_base, *updated = &alignment->updated.T_map_base;
    uint32_t *count = &now->relocalizer->recovery.against_odometry;
    if (!fits || !alignment->is_updated || !now->relocalizer->is_verified ||
        !(now->decision->margin >= NDTD_LEAST_MARGIN) || !ndtd_has_odometry(&alignment->predicted))
        return;
    if (ndt_pose_distance_m(predicted, updated) > ODOMETRY_M ||
        ndt_pose_angle_rad(predicted, updated) > ODOMETRY_STEP_RAD)
        ++*count;
    else if (*count > 0 && tells_motion(&alignment->before->T_map_base, predicted))
        --*count;
}

/* Updates the leading hypothesis, which the estimator follows, with the alignment of the scan. */
static void follow_leading(const struct ndtd_relocalization *now)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const struct ndtd_alignment *alignment = now->alignment;
    int fits;
    const double confidence = ndtd_confidence_now(now, &fits);
    if (!alignment->before)
        return;
    if (!recovery->is_active)
        recovery->leading = (struct ndtd_hypothesis){.state = *alignment->before};
    count_against_odometry(now, fits);
    if (alignment->is_updated &&
        ndt_pose_distance_m(&alignment->predicted.T_map_base, &alignment->updated.T_map_base) >
            leaving_m(&alignment->predicted)) {
        /* The pose has left the track that was followed, which goes on as another one. */
        (void)ndtd_hypotheses_insert(&recovery->others, &recovery->leading);
        recovery->leading.is_found = 1;
    }
    recovery->leading.before = alignment->predicted;
    ndtd_hypothesis_follow(&recovery->leading,
                           fits && alignment->is_updated ? &alignment->updated : &alignment->predicted,
                           ndtd_fit(&alignment->result), fits ? confidence : 0);
}

/* Updates one of the other hypotheses with the result of the scan there. */
static void follow_one(const struct ndtd_relocalizer *relocalizer, struct ndtd_hypothesis *hypothesis,
                       const struct ndt_align_result *result)
{
    const struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    struct ndtd_alignment alignment = {.result = *result};
    int fits;
    ndtd_alignment_begin(&alignment, &matcher->scan, &hypothesis->state, &hypothesis->before);
    if (ndtd_outcome_is_usable(result->outcome))
        ndtd_alignment_update(&alignment, &matcher->scan, matcher->track, &matcher->motion[matcher->pass].twist);
    const double confidence = ndtd_alignment_confidence(&alignment, &matcher->scan, relocalizer->settings, &fits);
    ndtd_hypothesis_follow(hypothesis, fits && alignment.is_updated ? &alignment.updated : &alignment.predicted,
                           ndtd_fit(result), fits ? confidence : 0);
}

enum ndt_status ndtd_follow_hypotheses(struct ndtd_relocalizer *relocalizer, struct ndtd_hypotheses *hypotheses,
                                       struct ndt_error *err)
{
    struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &matcher->batch.priors[0]);
    if (hypotheses->count == 0 || !ndtd_matcher_has_time(matcher, &params))
        return NDT_OK;
    for (size_t i = 0; i < hypotheses->count; i++) {
        struct ndtd_hypothesis *hypothesis = &hypotheses->list[i];
        ndt_track_predict_from(matcher->track, &hypothesis->state, matcher->scan.predicted.stamp_ns,
                               &hypothesis->before);
        ndtd_scan_prior(&matcher->scan, &hypothesis->before, &matcher->batch.priors[i]);
    }
    const enum ndt_status status = ndtd_matcher_align_batch(matcher, &params, hypotheses->count, err);
    for (size_t i = 0; status == NDT_OK && i < hypotheses->count; i++)
        follow_one(relocalizer, &hypotheses->list[i], &matcher->batch.results[i]);
    ndtd_hypotheses_prune(hypotheses);
    return status;
}

/* ---- searching ---- */

/* Distance that the vehicle can have come since it was verified. */
static double farthest_m(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns)
{
    const double dt_s = fabs(ndt_track_seconds(relocalizer->verified.stamp_ns, stamp_ns));
    return ndtd_reach_m(relocalizer->settings, ndtd_likely_speed_mps(relocalizer), dt_s);
}

static int is_likely(const struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state)
{
    const struct ndt_track_state *verified = &relocalizer->verified;
    const double dt_s = fabs(ndt_track_seconds(verified->stamp_ns, state->stamp_ns));
    return !relocalizer->is_verified ||
           (ndt_pose_distance_m(&verified->T_map_base, &state->T_map_base) <=
                ndtd_likely_reach_m(relocalizer, state->stamp_ns) &&
            fabs(verified->T_map_base.t_m[2] - state->T_map_base.t_m[2]) <= ndtd_likely_climb_m(relocalizer, dt_s));
}

/* Whether the vehicle has likely come to a state since it was verified, or its pose was given. */
static int is_near_reference(const struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state)
{
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    return !from || ndt_pose_distance_m(&from->T_map_base, &state->T_map_base) <=
                        ndtd_likely_reach_m(relocalizer, state->stamp_ns) + 3 * ndt_track_position_deviation(from);
}

static int set_gnss_region(const struct ndtd_relocalizer *relocalizer, int64_t stamp_ns,
                           struct ndt_search_region *region)
{
    const struct ndt_gnss_message *gnss = &relocalizer->parts.gnss->message;
    const double *antenna_m = ndtd_antenna_m(relocalizer);
    const double reach_m =
        GNSS_DEVIATIONS * hypot(gnss->deviation_m[0], gnss->deviation_m[1]) + hypot(antenna_m[0], antenna_m[1]);
    if (!ndtd_gnss_reaches(relocalizer->parts.gnss, stamp_ns) || !gnss->has_deviation)
        return 0;
    region->has_position = 1;
    memcpy(region->position_m, gnss->position_m, sizeof(region->position_m));
    region->radius_m = fmax(LEAST_RADIUS_M, reach_m);
    return 1;
}

/* Forgets agreements of searches near a doubted position, which tell no more than the position itself. */
static void forget_agreements(struct ndtd_recovery *recovery)
{
    recovery->leading.agreements = 0;
    for (size_t i = 0; i < recovery->others.count; i++)
        recovery->others.list[i].agreements = 0;
}

/* Limits the region to the GNSS position, as long as that may be right. Returns the purpose of the search. */
static int set_hinted_region(struct ndtd_relocalizer *relocalizer, int64_t stamp_ns,
                             struct ndt_search_region *region)
{
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    if (!set_gnss_region(relocalizer, stamp_ns, region))
        return ALL_POSSIBLE;
    if (recovery->gnss_searches == GNSS_SEARCHES)
        forget_agreements(recovery);
    recovery->gnss_searches++;
    if (recovery->gnss_searches <= GNSS_SEARCHES)
        return ALL_POSSIBLE;
    if ((recovery->gnss_searches - GNSS_SEARCHES) % GNSS_EVERY == 0)
        return NEAR_DOUBTED_GNSS;
    *region = (struct ndt_search_region){0};
    return ALL_POSSIBLE;
}

/* Sets the region of all possible poses: within reach of the last verified or given pose, near the GNSS position,
 * or the whole map. Returns the purpose of the search. */
static int set_region(struct ndtd_relocalizer *relocalizer, int64_t stamp_ns, struct ndt_search_region *region)
{
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    double radius_m = LEAST_RADIUS_M;
    *region = (struct ndt_search_region){0};
    if (relocalizer->is_verified)
        radius_m = recovery->searches % FAR_SEARCH_EVERY == FAR_SEARCH_EVERY - 1
                       ? fmax(LEAST_RADIUS_M, farthest_m(relocalizer, stamp_ns))
                       : BEYOND_LIKELY_M + ndtd_likely_reach_m(relocalizer, stamp_ns);
    else if (from)
        radius_m = fmax(LEAST_RADIUS_M, 3 * ndt_track_position_deviation(from)) + 2.0 * recovery->searches;
    if (from && radius_m <= relocalizer->settings->recovery.radius_m) {
        region->has_position = 1;
        memcpy(region->position_m, from->T_map_base.t_m, sizeof(region->position_m));
        region->radius_m = radius_m;
        return ALL_POSSIBLE;
    }
    return set_hinted_region(relocalizer, stamp_ns, region);
}

static void take_candidates(const struct ndtd_relocalization *now)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const struct ndtd_search_answer *answer =
        ndtd_searcher_take(now->relocalizer->parts.searcher, NDTD_SEARCH_RECOVERY);
    if (!answer || answer->status != NDT_OK || answer->result.count == 0)
        return;
    const struct ndtd_found found = {&answer->result, answer->request.stamp_ns, answer->request.T_base_sensor,
                                     answer->request.purpose == NEAR_DOUBTED_GNSS ? &answer->request.region : NULL};
    ndtd_hypotheses_take(&recovery->others, now->alignment->before ? &recovery->leading : NULL, now->matcher->track,
                         &found, CANDIDATES_FOLLOWED);
}

static enum ndt_status start_search(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndtd_searcher *searcher = relocalizer->parts.searcher;
    struct ndtd_search_request request =
        ndtd_search_request_of(now->matcher, relocalizer->settings, NDTD_SEARCH_RECOVERY);
    if (relocalizer->localize.is_active)
        return NDT_OK;
    (void)ndtd_searcher_take(searcher, NDTD_SEARCH_LOCALIZE); /* of a request that has ended */
    if (!ndtd_searcher_claim(searcher, NDTD_SEARCH_RECOVERY))
        return NDT_OK;
    request.purpose = set_region(relocalizer, now->alignment->predicted.stamp_ns, &request.region);
    request.region.above_ground_m = ndtd_above_ground_m(relocalizer);
    relocalizer->recovery.searches++;
    return ndtd_searcher_start(searcher, &request, err);
}

/* ---- the choice ---- */

/* Aligns the scan at the leading hypothesis, where the alignment now starts. */
static enum ndt_status align_at_leading(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_matcher *matcher = now->matcher;
    struct ndtd_alignment *alignment = now->alignment;
    struct ndtd_hypothesis *leading = &now->relocalizer->recovery.leading;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &alignment->prior);
    int fits, is_cut_short;
    if (now->has_first)
        ndtd_deskewing_use(matcher, &now->first);
    if (!ndtd_matcher_has_time(matcher, &params)) {
        alignment->result.T_map_sensor = alignment->prior.T_map_sensor;
        alignment->has_trace = 0;
        ndtd_refuse(&alignment->result, NDT_DEADLINE,
                    "no time left to align it at another place: the pose is the prediction");
        return NDT_OK;
    }
    const struct ndt_align_result before = alignment->result;
    enum ndt_status status =
        ndtd_matcher_align(matcher, matcher->pass, &params, &alignment->prior.T_map_sensor, alignment, err);
    if (status == NDT_OK)
        ndtd_add_costs(&alignment->result, &before);
    if (status == NDT_OK && ndtd_outcome_is_usable(alignment->result.outcome))
        ndtd_alignment_update(alignment, now->scan, matcher->track, &matcher->motion[matcher->pass].twist);
    /* The motion of the previous leading one does not fit here. */
    if (status == NDT_OK && now->has_first && alignment->is_updated)
        status = ndtd_find_motion(matcher, alignment, &is_cut_short, err);
    if (status == NDT_OK)
        status = ndtd_resolve_degeneracy(now, err);
    leading->confidence = ndtd_confidence_now(now, &fits);
    if (!fits)
        leading->confidence = 0;
    if (alignment->is_updated)
        leading->state = alignment->updated;
    return status;
}

enum ndt_status ndtd_change_leading(struct ndtd_relocalization *now, struct ndtd_hypothesis *next,
                                    struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    struct ndtd_decision *decision = now->decision;
    const struct ndtd_hypothesis previous = recovery->leading;
    recovery->leading = *next;
    if (now->alignment->before)
        *next = previous;
    else
        *next = recovery->others.list[--recovery->others.count];
    decision->replacement = recovery->leading.before;
    decision->is_replaced = 1;
    decision->margin = NAN; /* the margin was that of the previous pose */
    decision->is_ambiguous = decision->is_cut_short = 0;
    ndtd_alignment_begin(now->alignment, now->scan, &decision->replacement, &decision->replacement);
    return align_at_leading(now, err);
}

static enum ndt_status choose_leading(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    struct ndtd_hypothesis *other = ndtd_hypotheses_best(&recovery->others);
    const struct ndtd_hypothesis *leading = &recovery->leading;
    if (!other || other->before.stamp_ns != now->alignment->predicted.stamp_ns)
        return NDT_OK;
    const int is_convincing =
        is_near_reference(now->relocalizer, &other->state) ? other->agreements >= 1 : other->agreements >= 3;
    if (now->alignment->before &&
        (!is_convincing || other->agreements <= leading->agreements || other->fit < BETTER_FIT * leading->fit))
        return NDT_OK;
    return ndtd_change_leading(now, other, err);
}

/* Whether the scan fits significantly better at the leading hypothesis than at any other: point by point, which
 * tells more than the means of the fits where aisles and houses repeat. */
static int leads_all(const struct ndtd_relocalization *now)
{
    const struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const struct ndt_pose *leading = &recovery->leading.state.T_map_base;
    const struct ndt_pose T_map_leading = ndt_pose_compose(leading, &now->scan->T_base_sensor);
    for (size_t i = 0; i < recovery->others.count; i++) {
        const struct ndt_pose *other = &recovery->others.list[i].state.T_map_base;
        const struct ndt_pose T_map_other = ndt_pose_compose(other, &now->scan->T_base_sensor);
        if (ndtd_are_distinct(leading, other) &&
            ndtd_matcher_significance(now->matcher, &T_map_leading, &T_map_other) < NDTD_SIGNIFICANT)
            return 0;
    }
    return 1;
}

/* The hypothesis at a place, which is added if there is none. */
static struct ndtd_hypothesis *hypothesis_at(const struct ndtd_relocalization *now, const struct ndtd_place *place)
{
    const struct ndt_pose *T_map_base = &place->T_map_base;
    struct ndtd_hypotheses *others = &now->relocalizer->recovery.others;
    const int64_t stamp_ns = now->alignment->predicted.stamp_ns;
    struct ndtd_hypothesis fresh = {.scans = 1, .is_found = !place->is_carried};
    for (size_t i = 0; i < others->count; i++)
        if (others->list[i].before.stamp_ns == stamp_ns &&
            !ndtd_are_distinct(&others->list[i].state.T_map_base, T_map_base))
            return &others->list[i];
    ndt_track_start_state(now->matcher->track, stamp_ns, T_map_base, NULL, NULL, &fresh.state);
    fresh.before = fresh.state;
    fresh.fit = place->is_carried ? 0 : ndtd_fit(&now->alignment->result);
    return ndtd_hypotheses_insert(others, &fresh);
}

/* Makes the most probable place the leading hypothesis, if it is far more probable than the current one. */
static enum ndt_status lead_at_best_place(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const struct ndt_pose *leading = &recovery->leading.state.T_map_base;
    const struct ndtd_place *best = ndtd_belief_best(&recovery->places);
    const struct ndtd_place *here = ndtd_belief_at(&recovery->places, leading);
    if (here == best || (here && best->log_weight - here->log_weight < NDTD_LEAST_MARGIN) ||
        !ndtd_are_distinct(leading, &best->T_map_base))
        return NDT_OK;
    return ndtd_change_leading(now, hypothesis_at(now, best), err);
}

/* Whether the velocity agrees with the path from an earlier pose: in a long sweep a wrong pose and a wrong velocity
 * compensate each other. */
static int moves_as_it_came(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_before,
                            int64_t before_ns)
{
    const struct ndt_sweep *sweep = &now->scan->sweep;
    const struct ndt_track_state *updated = &now->alignment->updated;
    const double dt_s = fabs(ndt_track_seconds(before_ns, updated->stamp_ns));
    const double moved_m = ndt_pose_distance_m(T_map_before, &updated->T_map_base);
    return fabs(moved_m - dt_s * ndtd_speed_mps(&updated->twist)) * fmax(sweep->end_s, -sweep->begin_s) <=
           dt_s * MOST_SWEPT_M;
}

/* Whether a wrong pose and a wrong velocity may compensate each other in this sweep, and the scan does not confirm
 * its prediction, or fits worse than usual. */
static int is_doubtful_sweep(const struct ndtd_relocalization *now)
{
    const struct ndt_sweep *sweep = &now->scan->sweep;
    const struct ndtd_alignment *alignment = now->alignment;
    return (alignment->innovation > OPEN_SWEEP_PART * now->matcher->track->params.gate ||
            ndtd_fit(&alignment->result) < SWEPT_FIT_PART * now->scan->usual_fit) &&
           ndt_track_velocity_deviation(&alignment->predicted) * (sweep->end_s - sweep->begin_s) > OPEN_SWEEP_M;
}

/* Whether a scan that sees half of the circle or more fits as usual where the vehicle was verified: it has hardly
 * moved. */
static int is_where_verified(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const double dt_s = fabs(ndt_track_seconds(relocalizer->verified.stamp_ns, now->alignment->predicted.stamp_ns));
    return dt_s <= STAYED_S && ndtd_is_wide_view(relocalizer) && ndtd_usual_fit_is_known(&relocalizer->usual) &&
           ndtd_fit_deficit(&relocalizer->usual, ndtd_fit(&now->alignment->result)) <= AS_USUAL &&
           ndt_pose_distance_m(&relocalizer->verified.T_map_base,
                               &relocalizer->recovery.leading.state.T_map_base) <= NDT_HYPOTHESIS_STEP_M;
}

/* Whether there are several views, or the vehicle can hardly have left the place where it was verified. Until the
 * usual fit is known, two besides that place have to differ: two rooms in a row were alike. A given pose is no
 * view: three besides have to differ. */
static int has_several_views(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const double dt_s = fabs(ndt_track_seconds(relocalizer->verified.stamp_ns, now->alignment->predicted.stamp_ns));
    if (!relocalizer->is_verified)
        return relocalizer->recovery.views > 2 ||
               (relocalizer->recovery.views == 2 &&
                ndtd_places_is_new_view(now, &relocalizer->recovery.leading.state.T_map_base));
    const unsigned besides = ndtd_usual_fit_is_known(&relocalizer->usual) ? 0 : 1;
    return relocalizer->recovery.views > besides || ndtd_likely_speed_mps(relocalizer) * dt_s <= HARDLY_M ||
           is_where_verified(now);
}

/* Whether the odds from the views are too low for the leading hypothesis to be accepted by searches. */
static int is_improbable(const struct ndtd_relocalization *now)
{
    struct ndtd_recovery *recovery = &now->relocalizer->recovery;
    const struct ndtd_place *place =
        recovery->has_places ? ndtd_belief_at(&recovery->places, &recovery->leading.state.T_map_base) : NULL;
    return place && ndtd_belief_margin(&recovery->places, place) < LEAST_MARGIN_OF_SEARCHES;
}

/* Accepts the leading hypothesis where the views leave no other place: each view may fit elsewhere, but not all of
 * them at the same other place. */
static enum ndt_status prove_by_places(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_hypothesis *leading = &relocalizer->recovery.leading;
    double margin;
    if (!relocalizer->recovery.has_places || now->decision->is_ambiguous || !now->alignment->is_updated ||
        !has_several_views(now) || !is_likely(relocalizer, &leading->state) ||
        leading->confidence < relocalizer->settings->min_confidence ||
        !moves_as_it_came(now, &relocalizer->recovery.T_map_view, relocalizer->recovery.view_ns) ||
        is_doubtful_sweep(now))
        return NDT_OK;
    const enum ndt_status status = ndtd_places_weigh(now, &margin, err);
    now->decision->is_unproven = status != NDT_OK || margin < CERTAIN_MARGIN;
    now->decision->margin = margin;
    now->decision->certainty = 1 / (1 + exp(-margin));
    return status;
}

/* Whether the points that meet the map fit it far worse than usual. At the edge of a map fewer points meet it, but
 * those fit as usual; the usual fit of the whole scan has fallen there, and beyond the edge a wrong street fits
 * half as well as the right one. */
static int fits_another(const struct ndtd_relocalization *now)
{
    return now->alignment->result.scores.nvtl_normalized < LEAST_MATCHED_PART * now->relocalizer->usual.matched;
}

/* Whether odometry or a gyro, which nothing contradicts, tell another turn since the verified pose than one that
 * leads to the leading hypothesis: it is where the vehicle is at best, and tilted by a scan that shows no ground.
 */
static int is_turned_otherwise(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndt_track_state expected;
    if (!relocalizer->is_verified || ndtd_is_odometry_contradicted(relocalizer))
        return 0;
    ndt_track_predict_from(now->matcher->track, &relocalizer->verified, now->alignment->predicted.stamp_ns,
                           &expected);
    return (ndtd_has_odometry(&expected) || expected.source == NDT_TRACK_GYRO) &&
           fabs(ndt_track_seconds(relocalizer->verified.stamp_ns, expected.stamp_ns)) <= TURN_S &&
           ndt_pose_angle_rad(&expected.T_map_base, &relocalizer->recovery.leading.state.T_map_base) >
               ODOMETRY_RAD + 3 * ndt_track_attitude_deviation(&expected);
}

/* Whether the estimate is turned away from the alignment that it follows from: prediction and scan contradict each
 * other, and their mean may lie far from both. */
static int leaves_alignment(const struct ndtd_relocalization *now)
{
    const struct ndtd_alignment *alignment = now->alignment;
    const struct ndt_pose T_map_sensor =
        ndt_pose_compose(&alignment->updated.T_map_base, &now->scan->T_base_sensor);
    return alignment->is_updated && ndt_pose_angle_rad(&T_map_sensor, &alignment->result.T_map_sensor) > LEFT_RAD;
}

/* The pose of the alignment, tilted as predicted, or in recovery as it was verified: what was declined since may be
 * tilted as well. *turned_rad: the angle between. */
static struct ndt_pose tilted_as_known(const struct ndtd_relocalization *now, double *turned_rad)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_pose *aligned = &now->alignment->result.T_map_sensor;
    const struct ndt_track_state *known = relocalizer->is_verified && relocalizer->recovery.is_active
                                              ? &relocalizer->verified
                                              : &now->alignment->predicted;
    const struct ndt_pose T_map_known = ndt_pose_compose(&known->T_map_base, &now->scan->T_base_sensor);
    double R[9], P[9];
    ndt_pose_rotation(aligned, R);
    ndt_pose_rotation(&T_map_known, P);
    const double *up = R + 6, *expected = P + 6; /* the vertical in the frame of the sensor */
    struct ndt_twist turn = {.w_radps = {expected[1] * up[2] - expected[2] * up[1],
                                         expected[2] * up[0] - expected[0] * up[2],
                                         expected[0] * up[1] - expected[1] * up[0]}};
    const double *w = turn.w_radps, sine = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    *turned_rad = atan2(sine, up[0] * expected[0] + up[1] * expected[1] + up[2] * expected[2]);
    for (int i = 0; i < 3; i++)
        turn.w_radps[i] *= sine > 0 ? *turned_rad / sine : 0;
    const struct ndt_pose back = ndt_pose_exp(&turn, 1);
    return ndt_pose_compose(aligned, &back);
}

/* Sets whether the scan itself tells the tilt of the alignment, if another one was known: near walls it may fit as
 * well with that one. */
static enum ndt_status examine_tilt(const struct ndtd_relocalization *now, int *is_told, struct ndt_error *err)
{
    double turned_rad;
    *is_told = 1;
    if (!now->alignment->before || !ndtd_outcome_is_usable(now->alignment->result.outcome))
        return NDT_OK;
    const struct ndt_pose tilted = tilted_as_known(now, &turned_rad);
    if (turned_rad <= LITTLE_TILT_RAD)
        return NDT_OK;
    const enum ndt_status status = ndtd_matcher_need_points(now->matcher, err);
    *is_told = 0;
    if (status == NDT_ERR_CANCELLED) /* no time left */
        return NDT_OK;
    if (status == NDT_OK) {
        const double lead = ndtd_matcher_significance(now->matcher, &now->alignment->result.T_map_sensor, &tilted);
        *is_told = ndtd_matcher_log_odds(now->matcher, lead) >= CERTAIN_MARGIN;
    }
    return status;
}

/* Accepts the leading hypothesis, or leaves it unproven. */
static enum ndt_status prove_leading(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    const double second = ndtd_hypotheses_second(&recovery->others, &recovery->leading.state.T_map_base);
    const int is_near = relocalizer->is_verified && is_likely(relocalizer, &recovery->leading.state);
    now->decision->is_unproven =
        !now->alignment->before ||
        !ndtd_hypothesis_is_accepted(&recovery->leading, second, relocalizer->settings->min_confidence, is_near);
    now->decision->certainty = ndt_hypothesis_test_probability(&recovery->leading.test);
    /* Searches count the points that fit at a few places; the odds, where other poses were tried, compare every
     * point. Both have to hold: in a hall of equal aisles the next aisle passes the searches of one view. After a
     * change of the leading hypothesis the margin is NAN: there are no odds, and the searches alone decide. */
    if (now->decision->margin < NDTD_LEAST_MARGIN)
        now->decision->is_unproven = 1;
    const enum ndt_status status = ndtd_matcher_need_points(now->matcher, err);
    if (status != NDT_OK)
        return status;
    if (!now->decision->is_unproven)
        now->decision->is_unproven = !leads_all(now) || is_improbable(now);
    return now->decision->is_unproven ? prove_by_places(now, err) : NDT_OK;
}

/* Whether the vehicle can have reached the pose since the last verified scan; unverified scans in between do not
 * count. Where that scan leaves the pose uncertain, no other optimum may come near. */
static int is_near_verified(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_track *track = now->matcher->track;
    struct ndt_track_state expected;
    double block[36];
    ndt_track_predict_from(track, &relocalizer->verified, now->alignment->predicted.stamp_ns, &expected);
    const double deviation_m = ndt_track_position_deviation(&expected);
    for (int i = 0; i < 6; i++)
        memcpy(block + 6 * i, expected.P + NDT_TRACK_STATES * i, 6 * sizeof(*block));
    if (!is_likely(relocalizer, &now->alignment->updated) || is_doubtful_sweep(now))
        return 0;
    if (ndtd_has_odometry(&expected) && relocalizer->recovery.is_active &&
        ndtd_is_odometry_contradicted(relocalizer)) /* wheels that stand still lead to where it was */
        return 0;
    if (deviation_m <= track->params.lost_deviation_m &&
        ndt_pose_squared_mahalanobis(&expected.T_map_base, block, &now->alignment->updated.T_map_base) <=
            track->params.gate)
        return 1;
    if (ndtd_has_odometry(&expected) &&
        ndt_pose_angle_rad(&expected.T_map_base, &now->alignment->updated.T_map_base) > ODOMETRY_RAD)
        return 0;
    return !relocalizer->recovery.is_active && now->decision->is_multistart &&
           moves_as_it_came(now, &relocalizer->verified.T_map_base, relocalizer->verified.stamp_ns);
}

/* Whether a given pose, with no scan verified yet, accounts for the alignment: for a while, near where it leads and
 * with its heading. A pose that a search has found is never accepted this way. */
static int is_near_given(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_track_state *given = &relocalizer->given;
    const int64_t stamp_ns = now->alignment->predicted.stamp_ns;
    const struct ndt_pose *T_map_base = &now->alignment->updated.T_map_base;
    const double dt_s = fabs(ndt_track_seconds(given->stamp_ns, stamp_ns));
    struct ndt_track_state expected;
    if (!relocalizer->has_given || !ndtd_heads_as_given(relocalizer, T_map_base))
        return 0;
    if (!relocalizer->recovery.is_active)
        return ndt_pose_distance_m(&now->alignment->predicted.T_map_base, T_map_base) <=
               BESIDE_GIVEN_M + fmax(GIVEN_M, 3 * ndt_track_position_deviation(given)) +
                   ndtd_likely_speed_mps(relocalizer) * dt_s;
    if (relocalizer->recovery.leading.is_found) /* in a street of equal houses a wrong pose is as near */
        return 0;
    /* Without a window nobody has looked at the next house, where the vehicle may be while its wheels stand still.
     */
    if (!relocalizer->proposals.is_searched && ndtd_has_odometry(&now->alignment->predicted) &&
        ndtd_likely_speed_mps(relocalizer) * dt_s > GIVEN_M)
        return 0;
    ndt_track_predict_from(now->matcher->track, given, stamp_ns, &expected);
    const double most_m = relocalizer->proposals.is_searched ? GIVEN_M : UNSEARCHED_M;
    const double reach_m = fmin(most_m, 3 * ndt_track_position_deviation(given) +
                                            relocalizer->settings->recovery.max_speed_mps * dt_s);
    return dt_s <= GIVEN_S && ndt_pose_distance_m(&expected.T_map_base, T_map_base) <= reach_m;
}

/* Whether the alignment itself is accepted: the scan fits there and nowhere else, and the vehicle can be there. */
static int is_accepted(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_alignment *alignment = now->alignment;
    const struct ndtd_decision *decision = now->decision;
    int fits;
    const double confidence = ndtd_confidence_now(now, &fits);
    const double least = ndtd_has_odometry(&alignment->predicted) ? NDTD_LEAST_MARGIN : CERTAIN_MARGIN;
    if (!alignment->before || !fits || !alignment->is_updated || confidence < relocalizer->settings->min_confidence)
        return 0;
    if (relocalizer->recovery.is_active && relocalizer->recovery.has_view && relocalizer->is_verified &&
        relocalizer->proposals.is_searched) /* the views decide */
        return 0;
    if (relocalizer->recovery.is_active && fits_another(now))
        return 0;
    if (decision->is_ambiguous || (decision->is_multistart && decision->margin < least))
        return 0;
    if (ndtd_speed_mps(&alignment->updated.twist) > relocalizer->settings->recovery.max_speed_mps)
        return 0;
    return relocalizer->is_verified ? is_near_verified(now) : is_near_given(now);
}

enum ndt_status ndtd_recover(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    int is_tilt_told;
    if (!ndtd_relocalizer_can_recover(relocalizer, now->alignment->before != NULL))
        return NDT_OK;
    enum ndt_status status = examine_tilt(now, &is_tilt_told, err);
    if (status != NDT_OK)
        return status;
    if (is_tilt_told && !leaves_alignment(now) && is_accepted(now)) {
        recovery->is_active = 0;
        return NDT_OK;
    }
    if (!recovery->is_active) {
        recovery->others.count = recovery->scans = recovery->searches = recovery->gnss_searches = 0;
        ndtd_places_begin(relocalizer);
        (void)ndtd_searcher_take(relocalizer->parts.searcher, NDTD_SEARCH_RECOVERY);
    }
    take_candidates(now);
    follow_leading(now);
    recovery->is_active = 1;
    recovery->scans++;
    status = ndtd_follow_hypotheses(relocalizer, &recovery->others, err);
    if (status == NDT_OK)
        status = start_search(now, err);
    if (status != NDT_OK)
        return status;
    take_candidates(now);
    status = ndtd_matcher_need_points(now->matcher, err);
    if (status == NDT_OK) {
        ndtd_places_update(now);
        status = recovery->has_places ? lead_at_best_place(now, err) : choose_leading(now, err);
    }
    if (status == NDT_OK)
        status = prove_leading(now, err);
    if (status == NDT_OK)
        status = examine_tilt(now, &is_tilt_told, err);
    if (fits_another(now) || is_turned_otherwise(now) || leaves_alignment(now) || !is_tilt_told) {
        now->decision->is_unproven = 1;
        now->decision->certainty = fmin(now->decision->certainty, EVEN); /* whatever the views say */
    }
    if (status == NDT_OK && now->decision->is_unproven)
        ndtd_places_keep(now);
    recovery->is_active = now->decision->is_unproven;
    return status;
}

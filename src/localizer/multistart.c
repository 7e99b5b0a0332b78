/* Multi-start: aligns the scan from several guesses where the prediction may not lead to the right optimum.
 *
 * A window search proposes poses within reach; where the prediction is not trusted it comes first, and the
 * alignment begins at its best candidate on the finest level. Other candidates are aligned only where the scan does
 * not fit significantly worse there. Obvious guesses (the prediction, no motion, constant velocity, the last
 * verified pose) follow where the candidates leave the pose open: a narrow view may hide the right place from a
 * search. */
#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "points_view.h"
#include "redeskew.h"
#include "relocalizer_state.h"

/* Logarithm of the odds that another pose needs over a confirmed one, where the scan may slide, as in a tunnel. */
static const double CLEARLY_BETTER = NDTD_LEAST_MARGIN;
/* Largest logarithm of the odds that the followed motion holds an optimum with. */
static const double MOST_HELD = 8;
/* Standard deviations in the likely change of height. */
static const double CLIMB_DEVIATIONS = 3;
/* Distance beyond which an optimum is another place; nearer ones are turned, or badly deskewed. */
static const double PLACE_APART_M = 1;
/* Squared Mahalanobis distances of a pose from the prediction: the mean of good predictions, and 95 % of the
 * predictions for people who carry a sensor. */
static const double EXPECTED = 6, LIKELY = 22;
/* Logarithm of the odds that the right pose is among those found, for a window of one place and a scan that fits as
 * usual; at most STANDS_OUT more where one place stands out. A window of more places hides the right one better,
 * and an alignment that has not converged speaks against it. Of 161 alignments at wrong places that fitted well
 * enough to be accepted (offices, dormitories and halls, views of 70 to 360 deg, 20 seeds), one stood out by 12 or
 * more; of 4623 at the right ones while the pose was known, 4508 did. */
static const double FOUND_WIDE = 12, FOUND_NARROW = 4.5, STANDS_OUT = 20, NOT_CONVERGED = 6;
/* Logarithm of the probability that the right place is not among those found for one view, and its largest
 * reduction where one of them stands out. */
static const double MISSED_WIDE = -4, MISSED_NARROW = -2.5, STANDS_OUT_PART = 0.5, LESS_MOST = 6;
/* After a view that has missed it: logarithm of the factor of that probability, which stays below one half. */
static const double MISSED_AGAIN = 3, MISSED_AGAIN_MOST = -0.7;
/* Gain of the fit that a result at the same optimum needs: another guess ends elsewhere within the last step. */
static const double SAME_GAIN = 0.01;
/* Distance of points, three sigma, within which a prediction leaves one optimum on the finest level. */
static const double TRUSTED_M = 1.3;
/* Deviation of a prediction above which several places are possible. */
static const double OPEN_M = 1;
/* Part of the time left for one list of guesses: hypotheses that are followed need time, too. */
static const double TIME_PART = 0.3;

/* Candidates of the window that are aligned: their number, their fit relative to the best candidate, and the lead
 * of the alignment above which a candidate is left out. */
enum { CONTENDERS_MOST = 4 };
static const double NEAR_BEST = 0.7, FAR_BEHIND = 6;
/* Radius beside the place that is followed within which it is searched at any heading, and radius of a window up to
 * which that one does it. */
static const double BESIDE_M = 2.5, BESIDE_FROM_M = 3;
/* Distance of the window beyond the reach of the vehicle, and its largest radius. No pose is accepted farther away
 * than the vehicle has likely come: a larger window only hides the right place. The first verified scans look
 * farther: they may have verified a pose that was given wrong. */
static const double LEAST_REACH_M = 1, MOST_REACH_M = 20;
enum { FIRST_SCANS = 8 };
/* Distance of the window beyond the reach around a given pose, which is off by 5 m at times: the house next door
 * has to be tried. */
static const double GIVEN_REACH_M = 6;
/* Rate at which a person turns a sensor, and the angle that a prediction leaves open in any case. */
static const double TURN_RADPS = 2.5, LEAST_TURN_RAD = 20 * 0.017453292519943295;
/* Largest error of a height that was given, which may be that of the ground. */
static const double HEIGHT_REACH_M = 6;
/* Part of the circle, and points of the dense score, below which a view hides the right place from a search now and
 * then. */
static const double WIDE_VIEW = 0.5;
enum { WIDE_POINTS = 100 };
/* Points of the dense score below which a scan's candidate is not used as the initial guess. */
enum { PROPOSED_POINTS = 60 };

/* Whether the prediction determines the optimum; otherwise another one may be as near. */
static int is_trusted_prediction(const struct ndt_track_state *predicted)
{
    double move_m2 = 0, turn_rad2 = 0;
    for (int i = 0; i < 3; i++) {
        move_m2 += predicted->P[(NDT_TRACK_STATES + 1) * i];
        turn_rad2 += predicted->P[(NDT_TRACK_STATES + 1) * (3 + i)];
    }
    return 3 * sqrt(move_m2 + NDTD_TYPICAL_RANGE_M * NDTD_TYPICAL_RANGE_M * turn_rad2) < TRUSTED_M;
}

/* ---- the window ---- */

/* Whether enough scans are verified for the velocity to be right, whatever was given at first. */
static int is_known(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->is_verified && relocalizer->usual.scans >= FIRST_SCANS;
}

/* Sets the height of the region: a carrier climbs slowly, and floors look alike. While the pose is not accepted, it
 * may be followed on a wrong floor. */
static void set_height(const struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *predicted,
                       struct ndt_search_region *region)
{
    const double dt_s = fabs(ndt_track_seconds(relocalizer->verified.stamp_ns, predicted->stamp_ns));
    region->has_height = 1;
    region->height_reach_m = relocalizer->is_verified
                                 ? ndtd_likely_climb_m(relocalizer, dt_s)
                                 : HEIGHT_REACH_M + 3 * ndt_track_position_deviation(predicted);
    if (relocalizer->is_verified && relocalizer->recovery.is_active)
        region->position_m[2] += relocalizer->verified.T_map_base.t_m[2] - predicted->T_map_base.t_m[2];
}

/* The region that the vehicle can have reached, in position and heading, since the known state. */
static struct ndt_search_region region_of(const struct ndtd_relocalizer *relocalizer,
                                          const struct ndtd_alignment *alignment)
{
    const struct ndt_track_state *before = alignment->before, *predicted = &alignment->predicted;
    const double dt_s = fabs(ndt_track_seconds(before->stamp_ns, predicted->stamp_ns));
    const double reach_m = ndtd_reach_m(relocalizer->settings, ndtd_speed_mps(&before->twist), dt_s);
    const double deviation_m = ndt_track_position_deviation(predicted);
    const double least_m = relocalizer->is_verified ? LEAST_REACH_M : GIVEN_REACH_M;
    const double most_m =
        is_known(relocalizer) ? LEAST_REACH_M + ndtd_likely_way_m(relocalizer, dt_s) : MOST_REACH_M;
    struct ndt_prior prior;
    struct ndt_search_region region = {
        .has_position = 1,
        .radius_m = fmin(fmax(reach_m + least_m, 3 * deviation_m), fmin(most_m, MOST_REACH_M)),
        .has_heading = 1,
        .heading_rad = ndt_pose_heading_rad(&predicted->T_map_base),
        .heading_reach_rad = fmax(ndtd_turn_reach_rad(dt_s), 3 * ndt_track_attitude_deviation(predicted))};
    ndtd_scan_prior(&relocalizer->parts.matcher->scan, predicted, &prior);
    memcpy(region.position_m, prior.T_map_sensor.t_m, sizeof(region.position_m));
    set_height(relocalizer, predicted, &region);
    region.above_ground_m = ndtd_above_ground_m(relocalizer);
    return region;
}

double ndtd_window_radius_m(const struct ndtd_relocalizer *relocalizer, const struct ndtd_alignment *alignment)
{
    return region_of(relocalizer, alignment).radius_m;
}

int ndtd_is_wide_view(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_proposals *proposals = &relocalizer->proposals;
    return proposals->is_searched && proposals->found->view.sectors >= WIDE_VIEW &&
           proposals->found->view.dense_points >= WIDE_POINTS;
}

/* Whether the pose is not known, or no longer: after a pause of the scans the window is that of a whole room. */
static int is_open(const struct ndtd_relocalizer *relocalizer, const struct ndtd_alignment *alignment)
{
    return relocalizer->recovery.is_active || ndt_track_position_deviation(&alignment->predicted) > OPEN_M;
}

/* Searches beside the place that is followed: in a large window others may hide it, after a turn above all. */
static enum ndt_status search_beside(struct ndtd_relocalizer *relocalizer, const struct ndtd_alignment *alignment,
                                     const struct ndt_search_region *window, struct ndt_error *err)
{
    struct ndtd_proposals *proposals = &relocalizer->proposals;
    struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    struct ndt_search_region beside = *window;
    const struct ndt_search_result *found;
    int is_searched;
    if (window->radius_m <= BESIDE_FROM_M)
        return NDT_OK;
    const struct ndt_pose T_map_sensor =
        ndt_pose_compose(&alignment->before->T_map_base, &matcher->scan.T_base_sensor);
    memcpy(beside.position_m, T_map_sensor.t_m, sizeof(beside.position_m));
    beside.radius_m = BESIDE_M;
    const enum ndt_status status = ndtd_window_search(relocalizer->window, relocalizer->parts.searcher, matcher,
                                                      &beside, 1, NDTD_WINDOW_FEW, &found, &is_searched, err);
    if (status != NDT_OK || !is_searched)
        return status;
    for (uint32_t i = 0; i < found->count && proposals->near_count < NDTD_NEAR_MOST; i++)
        proposals->T_map_near[proposals->near_count++] = found->candidates[i].T_map_sensor;
    matcher->beside.evaluations += (int)(found->evaluated_points / (matcher->points->count + 1));
    return NDT_OK;
}

/* Searches the window, once for a scan. */
static enum ndt_status search_window(struct ndtd_relocalizer *relocalizer, const struct ndtd_alignment *alignment,
                                     struct ndt_error *err)
{
    struct ndtd_proposals *proposals = &relocalizer->proposals;
    struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    if (!relocalizer->window || proposals->is_searched)
        return NDT_OK;
    const struct ndt_search_region region = region_of(relocalizer, alignment);
    const enum ndtd_window_effort effort =
        is_open(relocalizer, alignment) ? NDTD_WINDOW_THOROUGH : NDTD_WINDOW_USUAL;
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_matcher_need_points(matcher, err);
    if (status == NDT_OK)
        status = search_beside(relocalizer, alignment, &region, err);
    if (status == NDT_OK)
        status = ndtd_window_search(relocalizer->window, relocalizer->parts.searcher, matcher, &region,
                                    is_known(relocalizer), effort, &proposals->found, &proposals->is_searched, err);
    if (status != NDT_OK || !proposals->is_searched)
        return status;
    matcher->beside.align_us += ndt_clock_us() - start_us;
    matcher->beside.evaluations += (int)(proposals->found->evaluated_points / (matcher->points->count + 1));
    return NDT_OK;
}

enum ndt_status ndtd_relocalizer_propose(struct ndtd_relocalizer *relocalizer,
                                         const struct ndtd_alignment *alignment, struct ndt_pose *T_map_sensor,
                                         int *is_proposed, struct ndt_error *err)
{
    const struct ndtd_proposals *proposals = &relocalizer->proposals;
    *is_proposed = 0;
    if (!ndtd_has_prior(relocalizer->settings) || relocalizer->recovery.is_active || !relocalizer->is_verified ||
        is_trusted_prediction(&alignment->predicted))
        return NDT_OK;
    const enum ndt_status status = search_window(relocalizer, alignment, err);
    if (status != NDT_OK || !proposals->is_searched || proposals->found->count == 0 ||
        proposals->found->view.dense_points < PROPOSED_POINTS)
        return status;
    *T_map_sensor = proposals->found->candidates[0].T_map_sensor;
    *is_proposed = 1;
    return NDT_OK;
}

/* ---- guesses ---- */

/* Sets the guesses as priors of the batch. Returns their number. */
static size_t set_priors(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_guesses *guesses = &relocalizer->guesses;
    double wide[36];
    size_t count = 0;
    ndtd_matcher_wide_covariance(now->matcher, wide);
    for (size_t i = 0; i < guesses->count; i++) {
        struct ndt_prior *prior = &now->matcher->batch.priors[count];
        if (!ndtd_heads_as_given(relocalizer, &guesses->T_map_base[i]))
            continue;
        count++;
        prior->T_map_sensor = ndt_pose_compose(&guesses->T_map_base[i], &now->scan->T_base_sensor);
        memcpy(prior->covariance, wide, sizeof(wide));
    }
    return count;
}

/* ---- odds ---- */

/* Whether the prediction is evidence: it is where a verified pose leads to it. A given pose may be wrong by metres,
 * and so may one that is followed in recovery. */
static void set_evidence(struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    now->has_evidence = relocalizer->is_verified && !relocalizer->recovery.is_active;
}

/* Evidence of the prediction against a sensor pose; 0 where the prediction is no evidence. */
static double surprise_of(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    if (!now->has_evidence)
        return 0;
    return ndtd_surprise(
        ndt_pose_squared_mahalanobis(&now->expected.T_map_sensor, now->expected.covariance, T_map_sensor));
}

/* Logarithm of the odds of sensor pose a over b, from the difference of the fits of the scan. */
static double log_odds_of_scan(const struct ndtd_relocalization *now, const struct ndt_pose *a,
                               const struct ndt_pose *b)
{
    return ndtd_matcher_log_odds(now->matcher, ndtd_matcher_significance(now->matcher, a, b));
}

/* Logarithm of the odds of a over b with the prediction, whose error has the tails of a t distribution. */
static double log_odds(const struct ndtd_relocalization *now, const struct ndt_pose *a, const struct ndt_pose *b)
{
    return log_odds_of_scan(now, a, b) + surprise_of(now, b) - surprise_of(now, a);
}

/* Evidence against a sensor pose of the motion that is followed, or of a given pose. */
static double surprise_of_motion(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    const double given_m = NDTD_GIVEN_USUAL_M, given_rad = NDTD_GIVEN_USUAL_RAD;
    double covariance[36];
    memcpy(covariance, now->expected.covariance, sizeof(covariance));
    if (!now->relocalizer->is_verified)
        for (int i = 0; i < 6; i++)
            covariance[7 * i] += i < 3 ? given_m * given_m : given_rad * given_rad;
    return ndtd_surprise(ndt_pose_squared_mahalanobis(&now->expected.T_map_sensor, covariance, T_map_sensor));
}

/* Evidence against a sensor pose of the way from the last verified or given pose. */
static double surprise_of_way(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_track_state *from = ndtd_relocalizer_reference(relocalizer);
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&now->scan->T_base_sensor);
    const struct ndt_pose to = ndt_pose_compose(T_map_sensor, &T_sensor_base);
    if (!from)
        return 0;
    const double dt_s = fabs(ndt_track_seconds(from->stamp_ns, now->alignment->predicted.stamp_ns));
    const double usual_m =
        ndtd_usual_way_m(relocalizer, dt_s) + (relocalizer->is_verified ? 0 : NDTD_GIVEN_USUAL_M);
    const double climbs_m = to.t_m[2] - from->T_map_base.t_m[2];
    return ndtd_surprise(pow(ndt_pose_distance_m(&from->T_map_base, &to) / usual_m, 2) +
                         pow(CLIMB_DEVIATIONS * climbs_m / ndtd_likely_climb_m(relocalizer, dt_s), 2));
}

/* Evidence against a sensor pose that decides which optimum is followed, and proves none. Wheels, which may stand
 * still, hold no pose that way. */
static double held_by_motion(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    if (ndtd_has_odometry(&now->alignment->predicted))
        return 0;
    return (now->has_evidence ? 0 : fmin(MOST_HELD, surprise_of_motion(now, T_map_sensor))) +
           fmin(MOST_HELD, surprise_of_way(now, T_map_sensor));
}

/* Logarithm of the odds that a pose needs over the alignment. In recovery one of another place needs clear ones:
 * the views decide between places, and a pose that changes its place with every scan has no past. */
static double least_odds(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor, double better)
{
    const int is_elsewhere =
        ndt_pose_distance_m(&now->alignment->result.T_map_sensor, T_map_sensor) > PLACE_APART_M;
    return now->relocalizer->recovery.is_active && is_elsewhere && !ndtd_has_odometry(&now->alignment->predicted)
               ? fmax(better, CLEARLY_BETTER)
               : better;
}

/* Whether the scan speaks clearly enough for another optimum than the one that is kept. */
static int is_better_place(const struct ndtd_relocalization *now, const struct ndt_pose *found,
                           const struct ndt_pose *kept, double least)
{
    return log_odds(now, found, kept) > fmax(least, held_by_motion(now, found) - held_by_motion(now, kept));
}

/* The number of the best result whose log odds over the alignment exceed `better`; `count`: there is none. */
static size_t choose_best(struct ndtd_relocalization *now, size_t count, double better)
{
    const struct ndt_align_result *found = now->matcher->batch.results;
    const struct ndt_align_result *kept = &now->alignment->result;
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        const int is_same = !ndtd_are_distinct(&kept->T_map_sensor, &found[i].T_map_sensor);
        if (!(ndtd_fit(&found[i]) > 0) ||
            (ndtd_outcome_is_usable(kept->outcome) && !ndtd_outcome_is_usable(found[i].outcome)))
            continue;
        ndtd_optima_add(&now->relocalizer->optima, &found[i].T_map_sensor);
        const double least = best == count ? least_odds(now, &found[i].T_map_sensor, better) : 0;
        if (is_same
                ? ndtd_fit(&found[i]) <= ndtd_fit(kept) + SAME_GAIN
                : ndtd_fit(kept) > 0 && !is_better_place(now, &found[i].T_map_sensor, &kept->T_map_sensor, least))
            continue;
        best = i;
        kept = &found[i];
    }
    return best;
}

/* Aligns from all guesses; the best may become the alignment. is_near: the guesses are optima already, but for the
 * last steps. */
static enum ndt_status try_guesses(struct ndtd_relocalization *now, int is_near, double better,
                                   struct ndt_error *err)
{
    struct ndtd_matcher *matcher = now->matcher;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &now->alignment->prior);
    const size_t count = set_priors(now);
    if (count == 0 || !ndtd_matcher_has_time(matcher, &params))
        return NDT_OK;
    if (is_near)
        ndtd_use_finest_level(&params);
    params.deadline_s *= TIME_PART;
    const enum ndt_status status = ndtd_matcher_align_batch(matcher, &params, count, err);
    if (status != NDT_OK)
        return status;
    if (now->relocalizer->view)
        ndtd_points_view_tried(now->relocalizer->view, &now->scan->T_base_sensor, matcher->batch.results, count);
    const size_t best = choose_best(now, count, better);
    if (best < count)
        ndtd_take_from_batch(now, best);
    return NDT_OK;
}

/* Makes candidates of the window guesses where the scan may fit as well as at the alignment; all candidates are
 * optima. */
static void guess_contenders(struct ndtd_relocalization *now)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_search_result *found = relocalizer->proposals.found;
    const struct ndt_pose *aligned = &now->alignment->result.T_map_sensor;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&now->scan->T_base_sensor);
    const int is_usable = ndtd_outcome_is_usable(now->alignment->result.outcome);
    relocalizer->guesses.count = 0;
    for (size_t i = 0; i < relocalizer->proposals.near_count; i++)
        relocalizer->guesses.T_map_base[relocalizer->guesses.count++] =
            ndt_pose_compose(&relocalizer->proposals.T_map_near[i], &T_sensor_base);
    const size_t most = relocalizer->guesses.count + CONTENDERS_MOST;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct ndt_search_candidate *candidate = &found->candidates[i];
        if (is_usable && !ndtd_are_distinct(&candidate->T_map_sensor, aligned))
            continue;
        ndtd_optima_add(&relocalizer->optima, &candidate->T_map_sensor);
        if (relocalizer->guesses.count < most &&
            candidate->gaussian_fit >= NEAR_BEST * found->candidates[0].gaussian_fit &&
            (!is_usable || ndtd_matcher_significance(now->matcher, aligned, &candidate->T_map_sensor) < FAR_BEHIND))
            relocalizer->guesses.T_map_base[relocalizer->guesses.count++] =
                ndt_pose_compose(&candidate->T_map_sensor, &T_sensor_base);
    }
}

/* Shows the candidates of the window to a viewer. */
static void show_candidates(const struct ndtd_relocalization *now)
{
    const struct ndt_search_result *found = now->relocalizer->proposals.found;
    for (uint32_t i = 0; now->relocalizer->view && i < found->count; i++) {
        struct ndt_align_result result = found->candidates[i].alignment;
        result.T_map_sensor = found->candidates[i].T_map_sensor;
        ndtd_points_view_tried(now->relocalizer->view, &now->scan->T_base_sensor, &result, 1);
    }
}

static enum ndt_status try_contenders(struct ndtd_relocalization *now, struct ndt_error *err)
{
    const enum ndt_status status = search_window(now->relocalizer, now->alignment, err);
    if (status != NDT_OK || !now->relocalizer->proposals.is_searched)
        return status;
    show_candidates(now);
    guess_contenders(now);
    return try_guesses(now, 1, 0, err);
}

static enum ndt_status try_obvious(struct ndtd_relocalization *now, double better, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_guess_sources sources = {.before = now->alignment->before,
                                               .predicted = &now->alignment->predicted,
                                               .verified = ndtd_relocalizer_verified(relocalizer)};
    ndtd_guesses_obvious(&relocalizer->guesses, &sources);
    return try_guesses(now, 0, better, err);
}

/* ---- the scan ---- */

static int is_found(const struct ndtd_relocalization *now)
{
    int fits;
    return ndtd_confidence_now(now, &fits) >= now->relocalizer->settings->min_confidence && fits;
}

static int is_confirmed(const struct ndtd_relocalization *now)
{
    return ndtd_alignment_is_confirmed(now->alignment, now->scan, now->relocalizer->settings);
}

/* Number of places in the window, in position and heading. */
static double places_of(const struct ndtd_relocalization *now)
{
    const struct ndt_search_region region = region_of(now->relocalizer, now->alignment);
    return ndtd_places_within(region.radius_m, region.heading_reach_rad);
}

/* Log odds of a place that was not found against the alignment. They rise where the scan fits worse than usual,
 * where the vehicle is not expected, and with the places of the window; they fall where the alignment stands out
 * among the found places by `margin`, as wrong ones do not. */
static double log_odds_unfound(const struct ndtd_relocalization *now, double margin)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_align_result *result = &now->alignment->result;
    const double deficit = ndtd_fit_deficit(&relocalizer->usual, ndtd_fit(result));
    const int is_wide = ndtd_is_wide_view(relocalizer);
    const double unexpected = fmax(0, surprise_of(now, &result->T_map_sensor) - ndtd_surprise(EXPECTED));
    return ndtd_surprise(deficit * deficit) + unexpected + log(places_of(now)) +
           (result->outcome == NDT_CONVERGED ? 0 : NOT_CONVERGED) - (is_wide ? FOUND_WIDE : FOUND_NARROW) -
           fmin(fmax(margin, 0), STANDS_OUT);
}

double ndtd_log_fit_unfound(const struct ndtd_relocalization *now, double stands_out)
{
    const int is_wide = ndtd_is_wide_view(now->relocalizer);
    const double deficit = ndtd_fit_deficit(&now->relocalizer->usual, ndtd_fit(&now->alignment->result));
    return ndtd_surprise(deficit * deficit) + (is_wide ? MISSED_WIDE : MISSED_NARROW) -
           fmin(STANDS_OUT_PART * fmax(stands_out, 0), LESS_MOST);
}

double ndtd_log_missed_again(const struct ndtd_relocalizer *relocalizer)
{
    return fmin(MISSED_AGAIN, MISSED_AGAIN_MOST - (ndtd_is_wide_view(relocalizer) ? MISSED_WIDE : MISSED_NARROW));
}

double ndtd_turn_reach_rad(double dt_s)
{
    return LEAST_TURN_RAD + TURN_RADPS * dt_s;
}

/* Odds of the other optima against the alignment, with and without the prediction: of all together, and of each. */
struct rivals {
    double odds, odds_of_scan;
    double each[NDTD_OPTIMA_MAX], each_of_scan[NDTD_OPTIMA_MAX]; /* 0: not distinct from the alignment */
};

/* Sets the odds of an optimum; of_scan: log odds of the alignment over it from the scan. */
static void set_odds(const struct ndtd_relocalization *now, struct rivals *rivals, size_t number, double of_scan)
{
    const struct ndt_pose *aligned = &now->alignment->result.T_map_sensor;
    const struct ndt_pose *other = &now->relocalizer->optima.T_map_sensor[number];
    rivals->each_of_scan[number] = exp(-of_scan);
    rivals->each[number] = exp(-of_scan - surprise_of(now, other) + surprise_of(now, aligned));
}

/* Whether another optimum is the better one of the same place, which candidates of the window and guesses may both
 * lead to. */
static int is_found_better(const struct ndtd_optima *optima, const struct rivals *rivals, size_t number)
{
    for (size_t i = 0; i < optima->count; i++)
        if ((rivals->each_of_scan[i] > rivals->each_of_scan[number] ||
             (rivals->each_of_scan[i] == rivals->each_of_scan[number] && i < number)) &&
            !ndtd_are_distinct(&optima->T_map_sensor[i], &optima->T_map_sensor[number]))
            return 1;
    return 0;
}

static void add_odds(const struct ndtd_relocalization *now, struct rivals *rivals)
{
    const struct ndtd_optima *optima = &now->relocalizer->optima;
    rivals->odds = rivals->odds_of_scan = 0;
    for (size_t i = 0; i < optima->count; i++) {
        if (is_found_better(optima, rivals, i))
            continue;
        rivals->odds += rivals->each[i];
        rivals->odds_of_scan += rivals->each_of_scan[i];
    }
}

static struct rivals rivals_of(const struct ndtd_relocalization *now)
{
    const struct ndtd_optima *optima = &now->relocalizer->optima;
    const struct ndt_pose *aligned = &now->alignment->result.T_map_sensor;
    struct rivals rivals = {0};
    for (size_t i = 0; i < optima->count; i++)
        if (ndtd_are_distinct(&optima->T_map_sensor[i], aligned))
            set_odds(now, &rivals, i, log_odds_of_scan(now, aligned, &optima->T_map_sensor[i]));
    add_odds(now, &rivals);
    return rivals;
}

/* Log odds of the alignment over its rivals and over a place that was not found. */
static double margin_over(const struct ndtd_relocalization *now, const struct rivals *rivals)
{
    if (!ndtd_outcome_is_usable(now->alignment->result.outcome))
        return -INFINITY;
    return -log(rivals->odds + exp(log_odds_unfound(now, -log(rivals->odds_of_scan))));
}

static double margin_of(const struct ndtd_relocalization *now)
{
    const struct rivals rivals = rivals_of(now);
    return margin_over(now, &rivals);
}

/* Whether the alignment is where the prediction leads, and the prediction leaves one place; otherwise the window
 * may have missed the right one. */
static int is_expected(const struct ndtd_relocalization *now)
{
    return ndt_track_position_deviation(&now->alignment->predicted) <= OPEN_M &&
           surprise_of(now, &now->alignment->result.T_map_sensor) <= ndtd_surprise(LIKELY);
}

/* Whether the window leaves the obvious guesses nothing to find: a scan where it is expected; in recovery a view
 * that hides no place. */
static int is_settled(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    return relocalizer->proposals.is_searched &&
           (relocalizer->recovery.is_active ? ndtd_is_wide_view(relocalizer) : is_expected(now)) && is_found(now) &&
           margin_of(now) >= NDTD_LEAST_MARGIN;
}

/* Whether the prediction leaves one place. With odometry every prediction does: while a given pose is followed that
 * was never verified, the window has to show the places that the views then exclude. */
static int is_decisive_prediction(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_track_state *predicted = &now->alignment->predicted;
    return is_trusted_prediction(predicted) && (relocalizer->is_verified || !relocalizer->recovery.is_active ||
                                                !ndtd_has_odometry(predicted) || !ndtd_observes_all(now));
}

static enum ndt_status try_all(struct ndtd_relocalization *now, struct ndt_error *err)
{
    const int was_confirmed = is_confirmed(now), is_trusted = is_trusted_prediction(&now->alignment->predicted);
    const int is_first = now->relocalizer->proposals.is_searched ||
                         (now->relocalizer->recovery.is_active && now->relocalizer->is_verified && !is_trusted);
    enum ndt_status status = NDT_OK;
    if (is_first)
        status = try_contenders(now, err);
    if (status != NDT_OK || is_settled(now))
        return status;
    const int is_searched = now->relocalizer->proposals.is_searched;
    status = try_obvious(now, was_confirmed ? CLEARLY_BETTER : 0, err);
    if (status != NDT_OK || is_searched ||
        (is_decisive_prediction(now) && (is_found(now) || was_confirmed) && margin_of(now) >= NDTD_LEAST_MARGIN))
        return status;
    return try_contenders(now, err);
}

/* Deskews the strongest rivals with their own motion, as the alignment was; the odds of the others stay. */
static enum ndt_status move_rivals(struct ndtd_relocalization *now, const struct ndtd_deskewing *first,
                                   struct rivals *rivals, struct ndt_error *err)
{
    const struct ndtd_optima *optima = &now->relocalizer->optima;
    int is_moved[NDTD_OPTIMA_MAX] = {0};
    for (int k = 0; k < NDTD_RIVALS_MOVED && margin_over(now, rivals) < NDTD_LEAST_MARGIN; k++) {
        size_t most = optima->count;
        double lead;
        for (size_t i = 0; i < optima->count; i++)
            if (!is_moved[i] && rivals->each[i] > (most < optima->count ? rivals->each[most] : 0))
                most = i;
        if (most == optima->count)
            break;
        const enum ndt_status status =
            ndtd_lead_with_motions(now->matcher, now->alignment, first, &optima->T_map_sensor[most], &lead, err);
        if (status != NDT_OK)
            return status;
        is_moved[most] = 1;
        set_odds(now, rivals, most, ndtd_matcher_log_odds(now->matcher, lead));
        add_odds(now, rivals);
        if (-log(rivals->each[most]) < NDTD_LEAST_MARGIN)
            break;
    }
    return NDT_OK;
}

/* Finds the motion within the sweep and weighs the rivals. A rival is compared with the points that it was aligned
 * with, or with its own motion: points deskewed again to fit the alignment fit nowhere else. Where another motion
 * leads to another place, the odds are at most even. */
static enum ndt_status weigh(struct ndtd_relocalization *now, struct ndt_error *err)
{
    const struct ndt_pose aligned = now->alignment->result.T_map_sensor;
    struct ndtd_deskewing first = ndtd_deskewing_now(now->matcher);
    struct rivals rivals = rivals_of(now);
    first.fit = ndtd_fit(&now->alignment->result);
    now->has_first = 1;
    now->first = first;
    int is_cut_short; /* the alignment stays what it was */
    enum ndt_status status = ndtd_find_motion(now->matcher, now->alignment, &is_cut_short, err);
    const struct ndtd_deskewing last = ndtd_deskewing_now(now->matcher);
    if (status == NDT_OK && ndtd_are_distinct(&aligned, &now->alignment->result.T_map_sensor))
        now->decision->margin = fmin(margin_over(now, &rivals), 0);
    else if (status == NDT_OK) {
        const int is_moved = memcmp(&first.motion, &last.motion, sizeof(first.motion)) != 0;
        if (is_moved &&
            margin_of(now) >= NDTD_LEAST_MARGIN) /* otherwise the rivals win even with the alignment's motion */
            status = move_rivals(now, &first, &rivals, err);
        now->decision->margin = margin_over(now, &rivals);
    }
    return status;
}

enum ndt_status ndtd_try_multistart(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    if (!ndtd_has_prior(relocalizer->settings) ||
        (!relocalizer->recovery.is_active && is_confirmed(now) && is_found(now) &&
         (is_trusted_prediction(&now->alignment->predicted) || !relocalizer->is_verified)))
        return NDT_OK;
    now->decision->is_multistart = 1;
    now->expected = now->alignment->prior;
    set_evidence(now);
    relocalizer->optima.count = 0;
    if (ndtd_fit(&now->alignment->result) > 0) /* a rival, where another one becomes the alignment */
        ndtd_optima_add(&relocalizer->optima, &now->alignment->result.T_map_sensor);
    enum ndt_status status = ndtd_matcher_need_points(now->matcher, err);
    if (status == NDT_OK)
        status = try_all(now, err);
    return status == NDT_OK ? weigh(now, err) : status;
}

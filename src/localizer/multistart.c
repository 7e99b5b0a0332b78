/* Multi-start: the scan is aligned from many guesses, where the prediction may not lead to the right optimum. */
#include <math.h>
#include <string.h>

#include "points_view.h"
#include "redeskew.h"
#include "relocalizer_state.h"

/* Where the scan may slide, as in a tunnel, a pose elsewhere along it counts only if so much more speaks for it. */
static const double CLEARLY_BETTER = 1;
/* The same optimum from another guess ends elsewhere within the last step: it counts only if it fits clearly
 * better. */
static const double SAME_GAIN = 0.25;
/* A prediction whose points are within this (three sigma) leaves one optimum on the finest level. */
static const double TRUSTED_M = 1.3;
/* Part of the time that is left for one list of guesses: hypotheses that are followed need some, too. */
static const double TIME_PART = 0.3;
/* Lost for more scans than these, guesses around a lost pose are left to the searches. */
enum { LOST_SCANS = 3 };
/* Guesses all around, and how far they go. */
enum { SPREAD_COUNT = 24 };
static const double LEAST_SPREAD_M = 1, MOST_SPREAD_M = 20;

/* The prediction itself, with a wide prior: it corrects what the narrow one has held. */
static int is_prediction(const struct ndtd_relocalization *now, const struct ndt_prior *guess)
{
    return memcmp(&guess->T_map_sensor, &now->expected.T_map_sensor, sizeof(guess->T_map_sensor)) == 0;
}

/* The guesses of a list as priors, which go on where the last scan had no more time. Returns how many. */
static size_t choose_guesses(const struct ndtd_relocalization *now, enum ndtd_guess_list list)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_guesses *guesses = &relocalizer->guesses;
    double wide[36];
    size_t count = 0;
    ndtd_matcher_wide_covariance(now->matcher, wide);
    for (size_t i = 0; i < guesses->count; i++) {
        const struct ndt_pose *T_map_base = &guesses->T_map_base[(i + relocalizer->tried[list]) % guesses->count];
        struct ndt_prior *prior = &now->matcher->batch.priors[count];
        if (!ndtd_heads_as_given(relocalizer, T_map_base))
            continue;
        count++;
        prior->T_map_sensor = ndt_pose_compose(T_map_base, &now->scan->T_base_sensor);
        memcpy(prior->covariance, wide, sizeof(wide));
    }
    return count;
}

/* A list that was cut by the deadline begins at the next scan with those that it has not tried. */
static void go_on_next_time(struct ndtd_relocalizer *relocalizer, enum ndtd_guess_list list,
                            const struct ndt_align_result *found, size_t count)
{
    size_t begun = 0;
    while (begun < count && !(found[begun].outcome == NDT_DEADLINE && found[begun].evaluations == 0))
        begun++;
    relocalizer->tried[list] = begun < count ? relocalizer->tried[list] + begun : 0;
}

/* The number of the best result, where more than `better` speaks for it over the alignment; `count`: there is none.
 */
static size_t choose_best(struct ndtd_relocalization *now, size_t count, double better)
{
    const struct ndt_align_result *found = now->matcher->batch.results;
    const struct ndt_pose *kept = &now->alignment->result.T_map_sensor;
    double best_score = ndtd_optimum_score(&now->alignment->result, &now->expected) + better;
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        const double score = ndtd_optimum_score(&found[i], &now->expected);
        const int is_same =
            !ndtd_are_distinct(kept, &found[i].T_map_sensor) && !is_prediction(now, &now->matcher->batch.priors[i]);
        ndtd_optima_add(&now->relocalizer->optima, &found[i], &now->expected);
        if (score <= best_score + (is_same ? SAME_GAIN : 0))
            continue;
        best_score = score;
        best = i;
        kept = &found[i].T_map_sensor;
    }
    return best;
}

/* Aligns from all guesses; the best may become the alignment, which then stands for the costs of all. */
static enum ndt_status try_guesses(struct ndtd_relocalization *now, enum ndtd_guess_list list, double better,
                                   struct ndt_error *err)
{
    struct ndtd_matcher *matcher = now->matcher;
    struct ndt_align_result *result = &now->alignment->result;
    const struct ndt_align_result *found = matcher->batch.results;
    struct ndt_align_params params = ndtd_matcher_params(matcher, &now->alignment->prior);
    const size_t count = choose_guesses(now, list);
    if (count == 0 || !ndtd_matcher_has_time(matcher, &params))
        return NDT_OK;
    params.deadline_s *= TIME_PART;
    const enum ndt_status status = ndtd_matcher_align_batch(matcher, &params, count, err);
    if (status != NDT_OK)
        return status;
    go_on_next_time(now->relocalizer, list, found, count);
    if (now->relocalizer->view)
        ndtd_points_view_tried(now->relocalizer->view, &now->scan->T_base_sensor, found, count);
    struct ndt_align_result costs = *result;
    for (size_t i = 0; i < count; i++) {
        costs.iterations += found[i].iterations;
        costs.evaluations += found[i].evaluations;
    }
    const size_t best = choose_best(now, count, better);
    if (best < count)
        ndtd_take_from_batch(now, best);
    result->iterations = costs.iterations;
    result->evaluations = costs.evaluations;
    result->align_us = costs.align_us + found[count - 1].align_us;
    result->upload_us = costs.upload_us;
    return NDT_OK;
}

static enum ndt_status try_list(struct ndtd_relocalization *now, enum ndtd_guess_list list, double better,
                                struct ndt_error *err)
{
    const enum ndt_status status = try_guesses(now, list, better, err);
    return status == NDT_OK ? ndtd_find_motion(now->matcher, now->alignment, err) : status;
}

/* How far from the state before guesses are spread: farther away searches find the place. */
static double spread_m(const struct ndtd_relocalization *now)
{
    const struct ndt_track_state *before = now->alignment->before;
    const double dt_s = fabs(ndt_track_seconds(before->stamp_ns, now->alignment->predicted.stamp_ns));
    const double reach_m = ndtd_reach_m(now->relocalizer->settings, ndtd_speed_mps(&before->twist), dt_s);
    return fmin(reach_m + LEAST_SPREAD_M, MOST_SPREAD_M);
}

static int is_found(const struct ndtd_relocalization *now)
{
    int fits;
    return ndtd_confidence_now(now, &fits) >= now->relocalizer->settings->min_confidence && fits;
}

/* Whether the prediction says where the scan must fit: otherwise another optimum may be as near. */
static int is_trusted_prediction(const struct ndt_track_state *predicted)
{
    double move_m2 = 0, turn_rad2 = 0;
    for (int i = 0; i < 3; i++) {
        move_m2 += predicted->P[(NDT_TRACK_STATES + 1) * i];
        turn_rad2 += predicted->P[(NDT_TRACK_STATES + 1) * (3 + i)];
    }
    return 3 * sqrt(move_m2 + NDTD_TYPICAL_RANGE_M * NDTD_TYPICAL_RANGE_M * turn_rad2) < TRUSTED_M;
}

static int is_confirmed(const struct ndtd_relocalization *now)
{
    return ndtd_alignment_is_confirmed(now->alignment, now->scan, now->relocalizer->settings);
}

static enum ndt_status try_lists(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_recovery *recovery = &relocalizer->recovery;
    const struct ndt_track_state *predicted = &now->alignment->predicted;
    const struct ndtd_guess_sources sources = {.before = now->alignment->before,
                                               .predicted = predicted,
                                               .verified = ndtd_relocalizer_verified(relocalizer)};
    const int is_gap = ndt_track_position_deviation(predicted) > relocalizer->settings->track.lost_deviation_m;
    const int was_confirmed = is_confirmed(now), is_trusted = is_trusted_prediction(predicted);
    ndtd_guesses_obvious(&relocalizer->guesses, &sources);
    enum ndt_status status = try_list(now, NDTD_GUESSES_OBVIOUS, was_confirmed ? CLEARLY_BETTER : 0, err);
    if (status != NDT_OK || ((is_found(now) || was_confirmed) && is_trusted))
        return status;
    ndtd_guesses_near(&relocalizer->guesses, &sources);
    status = try_list(now, NDTD_GUESSES_NEAR, 0, err);
    const int is_lost = recovery->is_active && recovery->scans > LOST_SCANS;
    if (status != NDT_OK || is_lost || (is_found(now) && !is_gap))
        return status;
    ndtd_guesses_spread(&relocalizer->guesses, &sources, spread_m(now), SPREAD_COUNT);
    return try_list(now, NDTD_GUESSES_SPREAD, 0, err);
}

enum ndt_status ndtd_try_multistart(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndt_align_result *result = &now->alignment->result;
    if (!ndtd_has_prior(relocalizer->settings) ||
        (is_confirmed(now) && is_found(now) &&
         (is_trusted_prediction(&now->alignment->predicted) || !relocalizer->is_verified)))
        return NDT_OK;
    now->decision->is_multistart = 1;
    now->expected = now->alignment->prior;
    relocalizer->optima.count = 0;
    ndtd_optima_add(&relocalizer->optima, result, &now->expected);
    const enum ndt_status status = try_lists(now, err);
    const double margin =
        ndtd_optima_margin(&relocalizer->optima, &result->T_map_sensor, ndtd_optimum_score(result, &now->expected));
    now->decision->margin = isnan(margin) ? 0 : margin; /* nothing is an optimum */
    return status;
}

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relocalizer_state.h"

/* Sum of leads that a verified pose leaves: the next scan against odometry contradicts it again. */
static const double VERIFIED_LEAD_SUM = NDTD_CONTRADICTION - 1;

/* Running mean of the height above the ground: its gain, and the largest difference of a height from it. */
static const double HEIGHT_GAIN = 0.1, SAME_HEIGHT_M = 0.5;

enum ndt_status ndtd_relocalizer_create(struct ndtd_relocalizer **out, const struct ndtd_relocalizer_parts *parts,
                                        struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = calloc(1, sizeof(*relocalizer));
    enum ndt_status status = NDT_OK;
    *out = NULL;
    if (!relocalizer)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the relocaliser");
    relocalizer->parts = *parts;
    if (parts->searcher)
        status = ndtd_window_create(&relocalizer->window, parts->compute, err);
    if (status == NDT_OK)
        *out = relocalizer;
    else
        ndtd_relocalizer_destroy(relocalizer);
    return status;
}

void ndtd_relocalizer_destroy(struct ndtd_relocalizer *relocalizer)
{
    if (!relocalizer)
        return;
    ndtd_window_destroy(relocalizer->window);
    free(relocalizer);
}

void ndtd_relocalizer_set_map(struct ndtd_relocalizer *relocalizer, const struct ndt_map *before,
                              struct ndt_map *map)
{
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    if (!(before && map && before->id == map->id)) {
        recovery->others.count = recovery->searches = 0;
        recovery->has_places = 0;
        relocalizer->localize.hypotheses.count = 0;
        relocalizer->localize.scans = 0;
        relocalizer->watch.rivals.count = 0;
        ndtd_hypothesis_forget(&recovery->leading);
        relocalizer->usual = (struct ndtd_usual_fit){0};
        relocalizer->odometry_lead_sum = 0;
        relocalizer->grounds = 0;
    }
    if (relocalizer->parts.searcher)
        ndtd_searcher_set_map(relocalizer->parts.searcher, map);
}

void ndtd_relocalizer_set_settings(struct ndtd_relocalizer *relocalizer, const struct ndtd_settings *settings)
{
    relocalizer->settings = settings;
    relocalizer->usual = (struct ndtd_usual_fit){0}; /* levels and filters may have changed */
}

/* ---- a scan ---- */

enum ndt_status ndtd_relocalizer_begin(struct ndtd_relocalizer *relocalizer, struct ndtd_decision *decision,
                                       struct ndt_error *err)
{
    memset(decision, 0, sizeof(*decision));
    decision->margin = decision->certainty = NAN;
    relocalizer->proposals = (struct ndtd_proposals){0};
    return ndtd_follow_previous_track(relocalizer, err);
}

static struct ndtd_relocalization relocalization_of(struct ndtd_relocalizer *relocalizer,
                                                    struct ndtd_alignment *alignment,
                                                    struct ndtd_decision *decision)
{
    return (struct ndtd_relocalization){.relocalizer = relocalizer,
                                        .matcher = relocalizer->parts.matcher,
                                        .scan = &relocalizer->parts.matcher->scan,
                                        .alignment = alignment,
                                        .decision = decision};
}

const struct ndtd_watch_report *ndtd_relocalizer_watch(const struct ndtd_relocalizer *relocalizer)
{
    return &relocalizer->watch.report;
}

enum ndt_status ndtd_relocalizer_decide(struct ndtd_relocalizer *relocalizer, struct ndtd_alignment *alignment,
                                        struct ndtd_decision *decision, struct ndt_error *err)
{
    struct ndtd_relocalization now = relocalization_of(relocalizer, alignment, decision);
    enum ndt_status status = NDT_OK;
    if (alignment->before)
        status = ndtd_try_multistart(&now, err);
    if (status == NDT_OK && alignment->before)
        status = ndtd_resolve_degeneracy(&now, err);
    if (status == NDT_OK && alignment->before)
        status = ndtd_compare_previous_track(&now, err);
    if (status == NDT_OK && !relocalizer->is_extending)
        status = ndtd_recover(&now, err);
    if (alignment->before) /* otherwise nothing was aligned but places that may be right */
        ndtd_add_costs(&alignment->result, &relocalizer->parts.matcher->beside);
    return status;
}

enum ndt_status ndtd_relocalizer_decide_unaligned(struct ndtd_relocalizer *relocalizer,
                                                  struct ndtd_alignment *alignment, struct ndtd_decision *decision,
                                                  struct ndt_error *err)
{
    struct ndtd_relocalization now = relocalization_of(relocalizer, alignment, decision);
    return ndtd_compare_previous_track(&now, err);
}

void ndtd_relocalizer_report(const struct ndtd_relocalizer *relocalizer, const struct ndtd_decision *decision,
                             struct ndt_align_result *result)
{
    const struct ndtd_hypothesis *leading = &relocalizer->recovery.leading;
    if (result->outcome != NDT_CONVERGED && result->outcome != NDT_ITERATION_LIMIT)
        return;
    if (decision->is_ambiguous && !ndtd_relocalizer_can_recover(relocalizer, 1)) {
        ndtd_refuse(result, NDT_LOW_SCORE, "another place may fit as well, and no search can tell");
        return;
    }
    if (!decision->is_unproven)
        return;
    result->outcome = NDT_LOST;
    snprintf(result->reason, sizeof(result->reason),
             "recovering: %u searches agree, probability %.3f, %zu other places", leading->agreements,
             ndt_hypothesis_test_probability(&leading->test), relocalizer->recovery.others.count);
}

/* ---- what happened to the estimate ---- */

/* Takes in the height of a verified base. Where it changes, as on a ladder, the mean begins anew. */
static void add_ground(struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base)
{
    const struct ndt_pose T_map_sensor =
        ndt_pose_compose(T_map_base, &relocalizer->parts.matcher->scan.T_base_sensor);
    const double above_m =
        ndtd_window_above_ground_m(relocalizer->window, relocalizer->parts.matcher->map, T_map_sensor.t_m);
    const double base_m = above_m + T_map_base->t_m[2] - T_map_sensor.t_m[2];
    if (above_m == 0)
        return;
    if (fabs(base_m - relocalizer->above_ground_m) > SAME_HEIGHT_M)
        relocalizer->grounds = 0;
    relocalizer->grounds++;
    relocalizer->above_ground_m +=
        fmax(1.0 / relocalizer->grounds, HEIGHT_GAIN) * (base_m - relocalizer->above_ground_m);
}

void ndtd_relocalizer_verify(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state,
                             const struct ndt_align_result *result)
{
    ndtd_usual_fit_add(&relocalizer->usual, ndtd_fit(result), result->scores.nvtl_normalized);
    relocalizer->verified = *state;
    relocalizer->is_verified = 1;
    add_ground(relocalizer, &state->T_map_base);
    relocalizer->odometry_lead_sum = fmin(relocalizer->odometry_lead_sum, VERIFIED_LEAD_SUM);
    relocalizer->fastest_mps = fmax(relocalizer->fastest_mps, fmin(ndtd_speed_mps(&state->twist),
                                                                   relocalizer->settings->recovery.max_speed_mps));
    relocalizer->has_given = 0;
    relocalizer->previous.track.count = 0;
}

const struct ndt_twist *ndtd_relocalizer_keep_track(struct ndtd_relocalizer *relocalizer, int64_t stamp_ns,
                                                    int is_trusted)
{
    struct ndtd_previous_track *previous = &relocalizer->previous;
    const struct ndt_track *track = relocalizer->parts.track;
    const double age_s = ndt_track_seconds(relocalizer->verified.stamp_ns, stamp_ns);
    if (relocalizer->is_verified && is_trusted && fabs(age_s) <= track->params.max_prediction_s) {
        previous->track.count = 1;
        previous->track.list[0] = (struct ndtd_hypothesis){.state = track->state};
        previous->verified = relocalizer->verified;
    }
    return previous->track.count > 0 ? &previous->track.list[0].state.twist : NULL;
}

void ndtd_relocalizer_extend(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state)
{
    relocalizer->is_extending = state != NULL;
    if (!state)
        return;
    relocalizer->verified = *state;
    relocalizer->recovery.is_active = 0;
    relocalizer->odometry_lead_sum = 0;
    relocalizer->previous.track.count = 0;
}

void ndtd_relocalizer_start_at(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *given)
{
    relocalizer->is_verified = relocalizer->recovery.is_active = 0;
    relocalizer->odometry_lead_sum = 0;
    relocalizer->has_given = given != NULL;
    if (given)
        relocalizer->given = *given;
}

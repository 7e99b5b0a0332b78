#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redeskew.h"
#include "relocalizer_state.h"

/* A heading that was given without a covariance is wrong by this much at most; turns since then are not known. */
static const double GIVEN_RAD = 45 * 0.017453292519943295, SIGMAS = 5;

enum ndt_status ndtd_relocalizer_create(struct ndtd_relocalizer **out, const struct ndtd_relocalizer_parts *parts,
                                        struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = *out = calloc(1, sizeof(*relocalizer));
    if (!relocalizer)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the relocaliser");
    relocalizer->parts = *parts;
    return NDT_OK;
}

void ndtd_relocalizer_destroy(struct ndtd_relocalizer *relocalizer)
{
    free(relocalizer);
}

void ndtd_relocalizer_set_map(struct ndtd_relocalizer *relocalizer, const struct ndt_map *before,
                              struct ndt_map *map)
{
    struct ndtd_recovery *recovery = &relocalizer->recovery;
    if (!(before && map && before->id == map->id)) {
        recovery->others.count = recovery->searches = 0;
        relocalizer->localize.hypotheses.count = 0;
        relocalizer->localize.scans = 0;
        ndtd_hypothesis_forget(&recovery->leading);
    }
    if (relocalizer->parts.searcher)
        ndtd_searcher_set_map(relocalizer->parts.searcher, map);
}

void ndtd_relocalizer_set_settings(struct ndtd_relocalizer *relocalizer, const struct ndtd_settings *settings)
{
    relocalizer->settings = settings;
}

void ndtd_relocalizer_set_view(struct ndtd_relocalizer *relocalizer, struct ndtd_points_view *view)
{
    relocalizer->view = view;
}

/* ---- a scan ---- */

int ndtd_relocalizer_can_recover(const struct ndtd_relocalizer *relocalizer, int has_pose)
{
    const struct ndtd_settings *settings = relocalizer->settings;
    const int is_wanted = settings->recovery.enable && (has_pose || settings->initial_pose_mode != NDTD_POSE_GIVEN);
    return is_wanted && relocalizer->parts.searcher && ndtd_has_prior(settings);
}

enum ndt_status ndtd_relocalizer_begin(struct ndtd_relocalizer *relocalizer, struct ndtd_decision *decision,
                                       struct ndt_error *err)
{
    memset(decision, 0, sizeof(*decision));
    decision->margin = NAN;
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
    return status == NDT_OK ? ndtd_recover(&now, err) : status;
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
    if (result->outcome != NDT_CONVERGED)
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
             ndt_evidence_probability(&leading->evidence), relocalizer->recovery.others.count);
}

/* ---- what happened to the estimate ---- */

void ndtd_relocalizer_verify(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *state)
{
    relocalizer->verified = *state;
    relocalizer->is_verified = 1;
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

void ndtd_relocalizer_start_at(struct ndtd_relocalizer *relocalizer, const struct ndt_track_state *given)
{
    relocalizer->is_verified = relocalizer->recovery.is_active = 0;
    relocalizer->has_given = given != NULL;
    if (given)
        relocalizer->given = *given;
}

/* ---- for others ---- */

const struct ndt_track_state *ndtd_relocalizer_verified(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->is_verified ? &relocalizer->verified : NULL;
}

const struct ndt_track_state *ndtd_relocalizer_reference(const struct ndtd_relocalizer *relocalizer)
{
    if (relocalizer->is_verified)
        return &relocalizer->verified;
    return relocalizer->has_given ? &relocalizer->given : NULL;
}

int ndtd_relocalizer_is_active(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.is_active;
}

int ndtd_relocalizer_has_hypotheses(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.others.count > 0 || relocalizer->recovery.leading.agreements > 0;
}

const struct ndtd_hypotheses *ndtd_relocalizer_alternatives(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->recovery.is_active ? &relocalizer->recovery.others : NULL;
}

const struct ndtd_hypotheses *ndtd_relocalizer_requested(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->localize.is_active ? &relocalizer->localize.hypotheses : NULL;
}

/* ---- used by several steps ---- */

void ndtd_take_from_batch(struct ndtd_relocalization *now, size_t number)
{
    struct ndtd_matcher *matcher = now->matcher;
    struct ndtd_alignment *alignment = now->alignment;
    const struct ndt_align_result before = alignment->result;
    alignment->result = matcher->batch.results[number];
    ndtd_add_costs(&alignment->result, &before);
    alignment->prior = matcher->batch.priors[number];
    alignment->has_trace = alignment->is_updated = 0;
    if (ndtd_outcome_is_usable(alignment->result.outcome))
        ndtd_alignment_update(alignment, now->scan, matcher->track, &matcher->motion[matcher->pass].twist);
}

double ndtd_confidence_now(const struct ndtd_relocalization *now, int *fits)
{
    return ndtd_alignment_confidence(now->alignment, now->scan, now->relocalizer->settings, fits);
}

int ndtd_heads_as_given(const struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base)
{
    const struct ndt_track_state *given = &relocalizer->given;
    if (relocalizer->is_verified || !relocalizer->has_given)
        return 1;
    const double deviation_rad = sqrt(given->P[(NDT_TRACK_STATES + 1) * 5]);
    return ndt_pose_angle_rad(&given->T_map_base, T_map_base) <= fmax(GIVEN_RAD, SIGMAS * deviation_rad);
}

double ndtd_reach_m(const struct ndtd_settings *settings, double speed_mps, double dt_s)
{
    return fmin(speed_mps * dt_s + 0.5 * settings->recovery.max_acceleration_mps2 * dt_s * dt_s,
                settings->recovery.max_speed_mps * dt_s);
}

const double *ndtd_antenna_m(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_gnss_fix *gnss = relocalizer->parts.gnss;
    return gnss->is_known ? gnss->antenna_m : relocalizer->settings->frames.gnss_antenna_m;
}

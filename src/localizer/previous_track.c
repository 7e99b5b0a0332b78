/* The track that an initial pose in the middle of a drive has ended.
 *
 * A given pose is a claim, which may be a mistake, late, or of another map. The previous track goes on beside it
 * until scans tell which of the two is right. */

#include "relocalizer_state.h"

enum ndt_status ndtd_follow_previous_track(struct ndtd_relocalizer *relocalizer, struct ndt_error *err)
{
    return ndtd_follow_hypotheses(relocalizer, &relocalizer->previous.track, err);
}

/* Returns the estimator to the previous track, as if no pose had been given. */
static enum ndt_status return_to_it(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndtd_hypothesis track = relocalizer->previous.track.list[0];
    now->decision->is_refused = 1;
    now->decision->refused_m = ndt_pose_distance_m(&relocalizer->given.T_map_base, &track.state.T_map_base);
    now->decision->is_multistart = 0;
    relocalizer->verified = relocalizer->previous.verified;
    relocalizer->is_verified = 1;
    relocalizer->has_given = 0;
    relocalizer->previous.track.count = 0;
    relocalizer->recovery.has_view = relocalizer->recovery.has_places = 0; /* they began at the given pose */
    return ndtd_change_leading(now, &track, err);
}

/* Standard deviations by which the scan fits better at the previous track. */
static double significance_of_track(const struct ndtd_relocalization *now, const struct ndtd_hypothesis *track)
{
    const struct ndt_pose T_map_sensor = ndt_pose_compose(&track->state.T_map_base, &now->scan->T_base_sensor);
    return ndtd_matcher_significance(now->matcher, &T_map_sensor, &now->alignment->result.T_map_sensor);
}

enum ndt_status ndtd_compare_previous_track(struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_hypotheses *previous = &now->relocalizer->previous.track;
    const struct ndtd_hypothesis *track = &previous->list[0];
    const struct ndtd_alignment *alignment = now->alignment;
    const double least = now->relocalizer->settings->min_confidence;
    if (previous->count == 0)
        return NDT_OK;
    if (alignment->is_updated && !ndtd_are_distinct(&track->state.T_map_base, &alignment->updated.T_map_base)) {
        previous->count = 0; /* the given pose is that of the track */
        return NDT_OK;
    }
    int fits;
    const double confidence = ndtd_confidence_now(now, &fits);
    const int fits_there = track->before.stamp_ns == alignment->predicted.stamp_ns && track->confidence >= least;
    const int fits_here = fits && alignment->is_updated && confidence >= least;
    if (fits_there && (!fits_here || significance_of_track(now, track) >= NDTD_SIGNIFICANT))
        return return_to_it(now, err);
    if (fits_here && (!fits_there || significance_of_track(now, track) <= -NDTD_SIGNIFICANT))
        previous->count = 0;
    else if (fits_here)
        now->decision->is_ambiguous = 1;
    return NDT_OK;
}

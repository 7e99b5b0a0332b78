#include "scan_former.h"

#include <math.h>

#include "ndtd/scan_state.h"
#include "scan_rivals.h"

void ndtd_former_forget(struct ndtd_pipeline *pipeline)
{
    pipeline->former.track.count = 0;
}

void ndtd_former_keep(struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    struct ndtd_former *former = &pipeline->former;
    const double age_s = ndt_track_seconds(pipeline->verified.stamp_ns, stamp_ns);
    if (pipeline->is_verified && ndtd_state_is_trusted(pipeline->state) &&
        fabs(age_s) <= pipeline->track.params.max_prediction_s) {
        former->track.count = 1;
        former->track.list[0] = (struct ndtd_candidate){.state = pipeline->track.state};
        former->verified = pipeline->verified;
    }
}

/* The estimator goes on with the former track, as if no pose had been given. */
static enum ndt_status return_to_it(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                    struct ndt_error *err)
{
    struct ndtd_former *former = &pipeline->former;
    const double *told = pipeline->told.T_map_base.t_m, *at = former->track.list[0].state.T_map_base.t_m;
    struct ndtd_candidate lead = former->track.list[0];
    pipeline->events.refused_poses++;
    pipeline->events.refused_m = hypot(hypot(told[0] - at[0], told[1] - at[1]), told[2] - at[2]);
    pipeline->verified = former->verified;
    pipeline->is_verified = 1;
    pipeline->has_told = job->is_sought = 0;
    former->track.count = 0;
    return ndtd_scan_change_lead(pipeline, job, &lead, err);
}

/* By how many deviations the scan fits better at the former track. */
static double lead_of_former(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_pose T_map_sensor =
        ndt_pose_compose(&pipeline->former.track.list[0].state.T_map_base, job->T_base_sensor);
    return ndtd_scan_lead(pipeline, job, &T_map_sensor, &job->record->result.T_map_sensor);
}

enum ndt_status ndtd_scan_follow_former(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                        struct ndt_error *err)
{
    return ndtd_scan_follow_places(pipeline, job, &pipeline->former.track, err);
}

enum ndt_status ndtd_scan_compare_former(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                         struct ndt_error *err)
{
    struct ndtd_candidates *track = &pipeline->former.track;
    const double least = pipeline->settings->min_confidence;
    if (track->count == 0)
        return NDT_OK;
    if (job->is_updated && !ndtd_are_distinct(&track->list[0].state.T_map_base, &job->updated.T_map_base)) {
        ndtd_former_forget(pipeline); /* the pose that was given is that of the track */
        return NDT_OK;
    }
    const struct ndtd_candidate *former = &track->list[0];
    int fits;
    const double confidence = ndtd_scan_confidence(pipeline, job, &fits);
    const int fits_there = former->before.stamp_ns == job->predicted.stamp_ns && former->confidence >= least;
    const int fits_here = fits && job->is_updated && confidence >= least;
    if (fits_there && (!fits_here || lead_of_former(pipeline, job) >= NDTD_SIGNIFICANT))
        return return_to_it(pipeline, job, err);
    if (fits_here && (!fits_there || lead_of_former(pipeline, job) <= -NDTD_SIGNIFICANT))
        track->count = 0;
    else if (fits_here)
        job->is_open = 1;
    return NDT_OK;
}

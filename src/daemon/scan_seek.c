/* What is tried for a scan that the first pass did not confirm. */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "scan_seek.h"

/* A guess is worth as much as an initial pose without a covariance. */
static void set_wide_prior(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                           double covariance[36])
{
    const struct ndt_track_params *track = &pipeline->track.params;
    struct ndt_track_state wide = job->predicted;
    memset(wide.P, 0, sizeof(wide.P));
    for (int i = 0; i < 6; i++)
        wide.P[(NDT_TRACK_STATES + 1) * i] = pow(i < 3 ? track->pose_deviation_m : track->pose_deviation_rad, 2);
    ndt_track_pose_covariance(&wide, job->T_base_sensor, covariance);
}

/* The counts and times of all that was tried. */
static void add_costs(struct ndt_align_result *result, const struct ndt_align_result *first,
                      const struct ndtd_many *many, size_t count)
{
    result->iterations = first->iterations;
    result->evaluations = first->evaluations;
    for (size_t i = 0; i < count; i++) {
        result->iterations += many->results[i].iterations;
        result->evaluations += many->results[i].evaluations;
    }
    result->align_us = first->align_us + (count > 0 ? many->results[count - 1].align_us : 0);
    result->upload_us = first->upload_us;
}

/* Aligns from all of pipeline->hypotheses; a better fit than that of the result replaces it. */
static enum ndt_status try_all(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndt_align_result first = *result;
    const struct ndtd_hypotheses *list = &pipeline->hypotheses;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    double wide[36];
    if (list->count == 0 || !ndtd_scan_has_time(pipeline, &params))
        return NDT_OK;
    set_wide_prior(pipeline, job, wide);
    const enum ndt_status status = ndtd_scan_align_many(pipeline, job, &params, list->T_map_base, list->count,
                                                        params.prior ? wide : NULL, err);
    if (status != NDT_OK)
        return status;
    const struct ndtd_choice choice = ndtd_hypotheses_choose(pipeline->many.results, list->count);
    job->record->hypotheses += (int)list->count;
    if (choice.best >= 0 && ndtd_fit(&pipeline->many.results[choice.best]) > ndtd_fit(&first)) {
        *result = pipeline->many.results[choice.best];
        job->prior = pipeline->many.priors[choice.best];
        job->is_updated = 0;
        if (ndtd_scan_is_trusted(result->outcome))
            ndtd_scan_update(pipeline, job, FIRST_PASS);
        ndtd_scan_keep_points(pipeline, job);
    }
    add_costs(result, &first, &pipeline->many, list->count);
    return NDT_OK;
}

/* How far the vehicle can have come since the state before. */
static double reach_m(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_track_state *before = &pipeline->track.state;
    const double dt_s = fabs(ndt_track_seconds(before->stamp_ns, job->predicted.stamp_ns));
    const double speed = sqrt(before->twist.v_mps[0] * before->twist.v_mps[0] +
                              before->twist.v_mps[1] * before->twist.v_mps[1] +
                              before->twist.v_mps[2] * before->twist.v_mps[2]);
    return fmin(speed * dt_s + 0.5 * 3.0 * dt_s * dt_s + 1.0, 20);
}

enum ndt_status ndtd_scan_seek(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndtd_hypothesis_sources sources = {.before = &pipeline->track.state,
                                                    .predicted = &job->predicted,
                                                    .verified = pipeline->is_verified ? &pipeline->verified : NULL};
    int fits;
    if (!ndtd_scan_has_prior(pipeline) || ndtd_scan_is_confirmed(pipeline, job))
        return NDT_OK;
    ndtd_hypotheses_obvious(&pipeline->hypotheses, &sources);
    enum ndt_status status = try_all(pipeline, job, err);
    const double confidence = ndtd_scan_confidence(pipeline, job, &fits);
    if (status != NDT_OK || (fits && confidence >= pipeline->settings->min_confidence))
        return status;
    ndtd_hypotheses_spread(&pipeline->hypotheses, &sources, reach_m(pipeline, job), 24);
    return try_all(pipeline, job, err);
}

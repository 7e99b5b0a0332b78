/* From an alignment to the estimate, and what speaks for it. */
#include <math.h>
#include <stdio.h>

#include "ndt/linalg.h"
#include "ndt_track/confidence.h"
#include "scan_estimate.h"

int ndtd_scan_is_trusted(enum ndt_outcome outcome)
{
    return outcome == NDT_CONVERGED || outcome == NDT_ITERATION_LIMIT || outcome == NDT_DEADLINE;
}

/* Updates the estimate with what a pass found. Both passes start from the prediction: they see the same scan. */
void ndtd_scan_update(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(job->T_base_sensor);
    struct ndt_observation of_base;
    struct ndt_track_measurement measurement = {.T_map_base =
                                                    ndt_pose_compose(&result->T_map_sensor, &T_sensor_base),
                                                .twist = job->twist[pass],
                                                .is_converged = result->outcome == NDT_CONVERGED};
    if (result->has_observation) {
        for (int i = 0; i < job->blind_count; i++)
            ndt_observation_forget(&result->observation, job->blind[i].axis, job->blind[i].step);
        ndt_observation_to_body(&result->observation, job->T_base_sensor, &of_base);
        measurement.observation = &of_base;
    }
    ndt_track_update_from(&pipeline->track, job->before ? job->before : &pipeline->track.state, &job->predicted,
                          &measurement, &job->updated, &job->record->innovation, &job->record->weakest);
    job->is_updated = ndt_track_state_is_plausible(&job->updated);
    job->record->has_innovation = measurement.observation != NULL && job->is_updated;
    if (!job->is_updated)
        ndtd_scan_refuse(job->record, NDT_LOST, "the estimate that follows from it is not plausible");
}

/* For the autotuner. */
void ndtd_scan_keep_points(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_align_result *result = &job->record->result;
    pipeline->last_points = job->preprocessed == ON_HOST && result->outcome == NDT_CONVERGED ? job->points : NULL;
    pipeline->T_map_last = result->T_map_sensor;
}

/* The features of the result; fits: whether the scan fits there, along whatever it may slide and however far it is
 * from the prediction. */
double ndtd_scan_confidence(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job, int *fits)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndt_align_result *result = &job->record->result;
    struct ndt_confidence_features features;
    struct ndt_pose moved = ndt_pose_identity();
    *fits = ndtd_scan_is_trusted(result->outcome);
    if (!result->has_observation || settings->map.covariance != NDT_COVARIANCE_UNBIASED)
        return NAN;
    ndt_confidence_set_scores(&features, &result->scores, &settings->align);
    if (job->is_updated) {
        const struct ndt_pose estimate = ndt_pose_compose(&job->updated.T_map_base, job->T_base_sensor);
        moved = ndt_pose_between(&result->T_map_sensor, &estimate);
        features.innovation = job->record->innovation;
    }
    const struct ndt_twist step = ndt_pose_log(&moved, 1);
    ndt_confidence_set_hold(&features, &result->observation, job->prior.covariance, &step);
    const double confidence = ndt_confidence(&features);
    features.slack_m = 0;
    features.innovation = 0;
    *fits = *fits && ndt_confidence(&features) >= settings->min_confidence;
    return confidence;
}

int ndtd_scan_is_confirmed(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    int fits;
    const double confidence = ndtd_scan_confidence(pipeline, job, &fits);
    const int is_held = !(confidence < pipeline->settings->min_confidence) ||
                        ndt_track_position_deviation(&job->predicted) < NDT_CONFIDENCE_RIGHT_M;
    return fits && is_held && job->is_updated && job->record->result.outcome == NDT_CONVERGED &&
           job->record->innovation <= pipeline->track.params.gate;
}

/* The probability that the prediction alone is right: an alignment that was cut short tells no more. */
static double confidence_of_prediction(const struct ndtd_scan_job *job)
{
    return erf(NDT_CONFIDENCE_RIGHT_M / (sqrt(2) * fmax(ndt_track_position_deviation(&job->predicted), 1e-6)));
}

void ndtd_scan_assess(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const double least = pipeline->settings->min_confidence;
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    int fits;
    record->confidence = ndtd_scan_confidence(pipeline, job, &fits);
    if (result->outcome == NDT_DEADLINE) /* NaN stays NaN */
        record->confidence *= fmin(1, confidence_of_prediction(job) / fmax(record->confidence, 1e-9));
    record->is_doubted = record->confidence < least;
    if (!record->is_doubted)
        return;
    job->is_updated = job->is_updated && fits;
    if (result->outcome != NDT_CONVERGED)
        return;
    if (job->is_cut) {
        result->outcome = NDT_DEADLINE;
        snprintf(result->reason, sizeof(result->reason),
                 "confidence %.3f: no time left to compare the pose with other places", record->confidence);
    } else {
        result->outcome = NDT_LOW_SCORE;
        snprintf(result->reason, sizeof(result->reason), "confidence %.3f is below the minimum %.3f",
                 record->confidence, least);
    }
}

/* From the prediction of a scan to its pose: preprocessing, alignment and update of the estimate. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "drain.h"
#include "scan_former.h"
#include "scan_match.h"
#include "scan_order.h"
#include "scan_recover.h"
#include "scan_rivals.h"
#include "scan_seek.h"

/* Sets the result to the predicted pose. Returns 0 when the scan is answered with it: no pose is known yet, or the
 * deadline has passed. */
static int predict(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    struct ndtd_scan_record *record = job->record;
    if (!ndtd_scan_predict(pipeline, job)) {
        record->result.T_map_sensor = ndt_pose_identity();
        ndtd_scan_refuse(record, NDT_NO_GUESS, "no initial pose yet");
        if (!ndtd_scan_can_recover(pipeline) && !pipeline->localize.is_active)
            return 0;
        ndtd_scan_predict_nothing(pipeline, job);
    }
    job->is_late = ndt_track_is_late(&pipeline->track, job->predicted.stamp_ns);
    if (pipeline->deadline_us > 0 && ndt_clock_us() >= pipeline->deadline_us) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return 0;
    }
    return 1;
}

/* sensor_points.required_distance. Returns 0 when the scan is refused. */
static int reaches_far(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const double required_m = pipeline->settings->required_distance_m;
    const struct ndt_cloud *scan = &pipeline->scan;
    double farthest_m = 0;
    char reason[96];
    if (required_m <= 0)
        return 1;
    for (size_t i = 0; i < scan->count; i++) {
        const double of_sensor[3] = {(double)scan->x_m[i], (double)scan->y_m[i], (double)scan->z_m[i]};
        double of_base[3];
        ndt_pose_apply(job->T_base_sensor, of_sensor, of_base);
        farthest_m =
            fmax(farthest_m, sqrt(of_base[0] * of_base[0] + of_base[1] * of_base[1] + of_base[2] * of_base[2]));
        if (farthest_m >= required_m)
            return 1;
    }
    snprintf(reason, sizeof(reason), "the farthest point is %.2f m away, sensor_points.required_distance is %g m",
             farthest_m, required_m);
    ndtd_scan_refuse(job->record, NDT_REJECTED, reason);
    return 0;
}

/* debug.align_delay_ms: simulates a slow machine, but not beyond the deadline. Returns how long it took [us]. */
static double delay(const struct ndtd_pipeline *pipeline)
{
    const double start_us = ndt_clock_us();
    double delay_us = pipeline->settings->align_delay_s * 1e6;
    if (delay_us <= 0)
        return 0;
    if (pipeline->deadline_us > 0)
        delay_us = fmin(delay_us, pipeline->deadline_us - start_us);
    const long long ns = (long long)(fmax(delay_us, 0) * 1e3);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}, NULL);
    return ndt_clock_us() - start_us;
}

/* For as many points as there are now. */
static void scale_evaluation(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record)
{
    if (pipeline->evaluation_points == 0 || record->points_used == 0)
        return;
    pipeline->evaluation_us *= (double)record->points_used / (double)pipeline->evaluation_points;
    pipeline->evaluation_points = record->points_used;
}

static enum ndt_status first_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                  const struct ndt_align_params *params, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    const enum ndt_status status =
        ndtd_scan_align(pipeline, job, FIRST_PASS, params, &job->prior.T_map_sensor, err);
    if (job->preprocessed == ON_BACKEND)
        record->points_used = result->points;
    if (result->evaluations > 0) {
        pipeline->evaluation_us = result->align_us / result->evaluations;
        pipeline->evaluation_points = record->points_used;
    }
    ndtd_scan_keep_points(pipeline, job);
    if (status == NDT_OK && ndtd_scan_is_trusted(result->outcome))
        ndtd_scan_update(pipeline, job, FIRST_PASS);
    return status;
}

/* The covariance of the alignment that counts, where it is not the estimator's. Without time it is the fixed one.
 */
static enum ndt_status estimate_covariance(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                           struct ndt_error *err)
{
    struct ndt_pose_covariance_params how = pipeline->settings->pose_covariance;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    struct ndt_align_result *result = &job->record->result;
    const int is_multi =
        how.kind == NDT_POSE_COVARIANCE_MULTI_NDT || how.kind == NDT_POSE_COVARIANCE_MULTI_NDT_SCORE;
    enum ndt_status status = NDT_OK;
    if (how.kind == NDT_POSE_COVARIANCE_POSTERIOR || !job->is_updated)
        return NDT_OK;
    if (is_multi && !ndtd_scan_has_time(pipeline, &params)) {
        how.kind = NDT_POSE_COVARIANCE_FIXED;
    } else if (is_multi) {
        status = ndtd_scan_points_needed(pipeline, job, err);
        if (status == NDT_ERR_CANCELLED) {
            how.kind = NDT_POSE_COVARIANCE_FIXED;
            status = NDT_OK;
        }
    }
    const struct ndt_aligned_pose pose = {&params, job->points, job->T_base_sensor};
    if (status == NDT_OK)
        status = ndt_pose_covariance_estimate(pipeline->aligner, &how, &pose, result, err);
    memcpy(job->covariance, result->covariance, sizeof(job->covariance));
    job->has_covariance = status == NDT_OK;
    return status;
}

/* Where the first pass does not settle it: guesses, other places, the former track, searches. */
static enum ndt_status look_elsewhere(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                      struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (pipeline->track.has_pose)
        status = ndtd_scan_seek(pipeline, job, err);
    if (status == NDT_OK && pipeline->track.has_pose)
        status = ndtd_scan_rivals(pipeline, job, err);
    if (status == NDT_OK && pipeline->track.has_pose)
        status = ndtd_scan_compare_former(pipeline, job, err);
    return status == NDT_OK ? ndtd_scan_recover(pipeline, job, err) : status;
}

/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_scan_record *record = job->record;
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_scan_find_sweep(pipeline, job, err);
    record->preprocess_us = ndt_clock_us() - start_us;
    if (status != NDT_OK)
        job->sweep = (struct ndt_sweep){0};
    record->reference_s = job->sweep.reference_s;
    if (!predict(pipeline, job) || !reaches_far(pipeline, job))
        return NDT_OK;
    if (status == NDT_OK)
        status = ndtd_drain_take(pipeline, job, err);
    if (status == NDT_OK)
        status = ndtd_scan_preprocess(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    const double delay_us = delay(pipeline);
    scale_evaluation(pipeline, record);
    status = ndtd_scan_follow_former(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (!ndtd_scan_has_time(pipeline, &params)) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return ndtd_scan_compare_former(pipeline, job, err);
    }
    if (pipeline->track.has_pose)
        status = first_pass(pipeline, job, &params, err);
    if (status == NDT_OK && job->is_late)
        ndtd_scan_end_late(pipeline, job);
    else if (status == NDT_OK)
        status = look_elsewhere(pipeline, job, err);
    if (status != NDT_OK || !pipeline->track.has_pose)
        return status;
    if (status == NDT_OK && settings->deskew_passes > 1 && job->preprocess.deskew != NDT_DESKEW_OFF)
        status = ndtd_scan_second_pass(pipeline, job, err);
    if (status == NDT_OK)
        status = estimate_covariance(pipeline, job, err);
    ndtd_scan_assess(pipeline, job);
    ndtd_scan_doubt(pipeline, job);
    record->is_ahead = job->is_aligned && job->last == FIRST_PASS && !job->is_sought;
    if (job->has_trace)
        record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    record->result.align_us += delay_us;
    record->upload_us = record->result.upload_us;
    record->align_us = record->result.align_us - record->upload_us;
    return status;
}

/* From the prediction of a scan to its pose: preprocessing, alignment and update of the estimate. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "scan_match.h"
#include "scan_seek.h"

/* A second pass pays where the first one moves points at this range by more than this at the ends of the sweep. */
static const double TYPICAL_RANGE_M = 15, SECOND_PASS_M = 0.05;

/* Sets the outcome of a scan without an alignment; the pose stays the prediction. */
void ndtd_scan_refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason)
{
    record->result.outcome = outcome;
    snprintf(record->result.reason, sizeof(record->result.reason), "%.*s", (int)sizeof(record->result.reason) - 1,
             reason);
}

/* The twist of a frame that the base carries. */
static struct ndt_twist twist_of(const struct ndt_pose *T_base_sensor, const struct ndt_twist *twist)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    double Ad[36], in[6], out[6];
    struct ndt_twist moved;
    ndt_pose_adjoint(&T_sensor_base, Ad);
    memcpy(in, twist->v_mps, sizeof(twist->v_mps));
    memcpy(in + 3, twist->w_radps, sizeof(twist->w_radps));
    ndt_multiply(6, 6, 1, Ad, in, out);
    memcpy(moved.v_mps, out, sizeof(moved.v_mps));
    memcpy(moved.w_radps, out + 3, sizeof(moved.w_radps));
    return moved;
}

/* Piece by piece with the gyro, otherwise as a constant twist. */
static void set_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass,
                       const struct ndt_track_state *state)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(job->T_base_sensor);
    struct ndt_sweep_motion *motion = &pipeline->motion[pass];
    double time_s[NDT_PREPROCESS_SEGMENTS + 1];
    job->twist[pass] = state->twist;
    motion->twist = twist_of(job->T_base_sensor, &state->twist);
    motion->is_piecewise = 0;
    if (state->source != NDT_TRACK_GYRO || pipeline->settings->preprocess.deskew == NDT_DESKEW_OFF)
        return;
    for (int i = 0; i <= NDT_PREPROCESS_SEGMENTS; i++)
        time_s[i] = ndt_sweep_boundary_s(&job->sweep, i);
    motion->is_piecewise =
        ndt_track_motion(&pipeline->track, state, time_s, NDT_PREPROCESS_SEGMENTS + 1, motion->T_reference_at);
    for (int i = 0; motion->is_piecewise && i <= NDT_PREPROCESS_SEGMENTS; i++) {
        const struct ndt_pose moved = ndt_pose_compose(&T_sensor_base, &motion->T_reference_at[i]);
        motion->T_reference_at[i] = ndt_pose_compose(&moved, job->T_base_sensor);
    }
}

/* Sets the result to the predicted pose. Returns 0 when the scan is answered with it: no pose is known yet, or the
 * deadline has passed. */
static int predict(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    struct ndtd_scan_record *record = job->record;
    const int64_t reference_ns = record->stamp_ns + llround(job->sweep.reference_s * 1e9);
    if (!ndt_track_predict(&pipeline->track, reference_ns, &job->predicted)) {
        record->result.T_map_sensor = ndt_pose_identity();
        ndtd_scan_refuse(record, NDT_NO_GUESS, "no initial pose yet");
        return 0;
    }
    if (ndtd_scan_has_prior(pipeline))
        (void)ndt_track_use_gnss(&pipeline->track, &job->predicted);
    set_motion(pipeline, job, FIRST_PASS, &job->predicted);
    job->prior.T_map_sensor = ndt_pose_compose(&job->predicted.T_map_base, job->T_base_sensor);
    ndt_track_pose_covariance(&job->predicted, job->T_base_sensor, job->prior.covariance);
    if (pipeline->deadline_us > 0 && ndt_clock_us() >= pipeline->deadline_us) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return 0;
    }
    return 1;
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

static enum ndt_status first_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                  const struct ndt_align_params *params, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    const enum ndt_status status = ndtd_scan_align(pipeline, job, FIRST_PASS, params, &job->prior.T_map_sensor, err);
    if (job->preprocessed == ON_BACKEND)
        record->points_used = result->points;
    if (result->evaluations > 0)
        pipeline->evaluation_us = result->align_us / result->evaluations;
    ndtd_scan_keep_points(pipeline, job);
    if (status == NDT_OK && ndtd_scan_is_trusted(result->outcome))
        ndtd_scan_update(pipeline, job, FIRST_PASS);
    return status;
}

/* The estimator accounts for a small error of the motion to first order already; then a second pass finds the same
 * pose. */
static int second_pass_pays(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const double *v0 = job->predicted.twist.v_mps, *v1 = job->updated.twist.v_mps;
    const double *w0 = job->predicted.twist.w_radps, *w1 = job->updated.twist.w_radps;
    double v2 = 0, w2 = 0;
    for (int i = 0; i < 3; i++) {
        v2 += (v1[i] - v0[i]) * (v1[i] - v0[i]);
        w2 += (w1[i] - w0[i]) * (w1[i] - w0[i]);
    }
    const double half_s = fmax(job->sweep.end_s, -job->sweep.begin_s);
    return !ndtd_scan_has_prior(pipeline) || half_s * (sqrt(v2) + TYPICAL_RANGE_M * sqrt(w2)) > SECOND_PASS_M;
}

/* Deskews with the motion that the first pass found and aligns again, on the finest level only: the pose is nearly
 * right already. Counts and times of the first pass are added to the result. */
static enum ndt_status second_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    const struct ndt_align_result first = *result;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (first.outcome != NDT_CONVERGED || !job->updated.has_twist || !second_pass_pays(pipeline, job))
        return NDT_OK;
    if (!ndtd_scan_has_time(pipeline, &params)) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left for the second pass");
        return NDT_OK;
    }
    set_motion(pipeline, job, SECOND_PASS, &job->updated);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_scan_preprocess_again(pipeline, job, err);
    record->preprocess_us += ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    params.levels[0] = params.levels[params.level_count - 1];
    params.level_count = 1;
    const struct ndt_pose guess = ndt_pose_compose(&job->updated.T_map_base, job->T_base_sensor);
    status = ndtd_scan_align(pipeline, job, SECOND_PASS, &params, &guess, err);
    if (status == NDT_OK && ndtd_scan_is_trusted(result->outcome))
        ndtd_scan_update(pipeline, job, SECOND_PASS);
    result->iterations += first.iterations;
    result->evaluations += first.evaluations;
    result->align_us += first.align_us;
    result->upload_us += first.upload_us;
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
    } else if (is_multi && job->preprocessed == ON_BACKEND) {
        status = ndtd_scan_preprocess_on_host(pipeline, job, err);
        if (status == NDT_OK && job->last == SECOND_PASS)
            status = ndtd_scan_preprocess_again(pipeline, job, err);
    }
    const struct ndt_aligned_pose pose = {&params, job->points, job->T_base_sensor};
    if (status == NDT_OK)
        status = ndt_pose_covariance_estimate(pipeline->aligner, &how, &pose, result, err);
    memcpy(job->covariance, result->covariance, sizeof(job->covariance));
    job->has_covariance = status == NDT_OK;
    return status;
}

/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_scan_record *record = job->record;
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_preprocess_sweep(&job->preprocess, &pipeline->scan, &job->sweep, err);
    record->preprocess_us = ndt_clock_us() - start_us;
    if (status != NDT_OK)
        job->sweep = (struct ndt_sweep){0};
    record->reference_s = job->sweep.reference_s;
    if (!predict(pipeline, job))
        return NDT_OK;
    if (status == NDT_OK)
        status = ndtd_scan_preprocess(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    const double delay_us = delay(pipeline);
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (!ndtd_scan_has_time(pipeline, &params)) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return NDT_OK;
    }
    status = first_pass(pipeline, job, &params, err);
    if (status == NDT_OK)
        status = ndtd_scan_seek(pipeline, job, err);
    if (status == NDT_OK && settings->deskew_passes > 1 && settings->preprocess.deskew != NDT_DESKEW_OFF)
        status = second_pass(pipeline, job, err);
    if (status == NDT_OK)
        status = estimate_covariance(pipeline, job, err);
    ndtd_scan_assess(pipeline, job);
    record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    record->result.align_us += delay_us;
    record->upload_us = record->result.upload_us;
    record->align_us = record->result.align_us - record->upload_us;
    return status;
}

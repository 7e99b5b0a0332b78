/* From the prediction of a scan to its pose: preprocessing, alignment and update of the estimate. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "ndt_track/confidence.h"
#include "scan_match.h"

/* A GNSS position is used for scans at most this much older or newer. */
static const double GNSS_REACH_S = 1.0;

/* A second pass pays where the first one moves points at this range by more than this at the ends of the sweep. */
static const double TYPICAL_RANGE_M = 15, SECOND_PASS_M = 0.05;

/* Otherwise the prediction is where the search starts, and the estimator takes the pose that is found. */
int ndtd_scan_has_prior(const struct ndtd_pipeline *pipeline)
{
    return pipeline->settings->prior == NDTD_PRIOR_AUTO && pipeline->settings->align.variant == NDT_ROBUST;
}

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

static enum ndt_status preprocess_on_host(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                          struct ndt_error *err)
{
    job->preprocessed = ON_HOST;
    const enum ndt_status status =
        ndt_preprocess(pipeline->preprocessor, &job->preprocess, &pipeline->scan, &job->sweep, job->record->seq,
                       &pipeline->motion[FIRST_PASS], &job->points, err);
    if (status == NDT_OK)
        job->record->points_used = job->points->count;
    return status;
}

static enum ndt_status preprocess(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const size_t backend_limit = ndt_aligner_raw_limit(pipeline->aligner);
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    if (backend_limit == 0 || pipeline->scan.count > backend_limit) {
        status = preprocess_on_host(pipeline, job, err);
    } else {
        ndt_preprocess_plan_set(&pipeline->plan, &job->preprocess, &job->sweep, job->record->seq,
                                &pipeline->motion[FIRST_PASS]);
        job->preprocessed = ON_BACKEND;
    }
    job->record->preprocess_us += ndt_clock_us() - start_us;
    return status;
}

/* Deskews the points of the first pass again, with the motion of the second. */
static enum ndt_status preprocess_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                        struct ndt_error *err)
{
    if (job->preprocessed == ON_HOST)
        return ndt_preprocess_again(pipeline->preprocessor, &pipeline->motion[SECOND_PASS], &job->points, err);
    ndt_preprocess_plan_set_motion(&pipeline->plan, &job->sweep, &pipeline->motion[FIRST_PASS],
                                   &pipeline->motion[SECOND_PASS]);
    return NDT_OK;
}

/* The configured parameters, with the prior and the GNSS position that are valid for this scan. */
static struct ndt_align_params params_for(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndt_align_params params = pipeline->settings->align;
    const double age_s = ((double)job->record->stamp_ns - (double)pipeline->gnss.stamp_ns) * 1e-9;
    if (ndtd_scan_has_prior(pipeline)) {
        params.prior = &job->prior;
        params.wants_observation = 1;
    }
    params.has_gnss = pipeline->settings->use_gnss && pipeline->has_gnss && fabs(age_s) <= GNSS_REACH_S;
    memcpy(params.gnss_position_m, pipeline->gnss.position_m, sizeof(params.gnss_position_m));
    return params;
}

/* Sets the time left for the aligner. Returns 0 when it is less than an evaluation takes. The estimate is halved
 * each time it prevents an alignment, so that one slow scan cannot prevent all following ones. */
static int has_time(struct ndtd_pipeline *pipeline, struct ndt_align_params *params)
{
    if (pipeline->deadline_us <= 0)
        return 1;
    const double left_us = pipeline->deadline_us - ndt_clock_us();
    if (params->deadline_s <= 0 || left_us * 1e-6 < params->deadline_s)
        params->deadline_s = left_us * 1e-6;
    if (left_us > pipeline->evaluation_us)
        return 1;
    pipeline->evaluation_us /= 2;
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

/* Aligns the preprocessed scan. If the backend can no longer preprocess (its device was lost), the host
 * preprocesses now. */
static enum ndt_status align(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass,
                             const struct ndt_align_params *params, const struct ndt_pose *guess,
                             struct ndt_error *err)
{
    struct ndt_align_result *result = &job->record->result;
    job->record->hypotheses += pass == FIRST_PASS;
    if (job->preprocessed == ON_BACKEND) {
        enum ndt_status status =
            pass == FIRST_PASS
                ? ndt_align_raw(pipeline->aligner, params, &pipeline->plan, &pipeline->scan, guess, result, err)
                : ndt_align_raw_again(pipeline->aligner, params, &pipeline->plan, guess, result, err);
        if (status != NDT_ERR_UNSUPPORTED)
            return status;
        const double start_us = ndt_clock_us();
        status = preprocess_on_host(pipeline, job, err);
        if (status == NDT_OK && pass == SECOND_PASS)
            status = preprocess_again(pipeline, job, err);
        job->record->preprocess_us += ndt_clock_us() - start_us;
        if (status != NDT_OK)
            return status;
    }
    return ndt_align(pipeline->aligner, params, job->points, guess, result, err);
}

static int is_trusted(enum ndt_outcome outcome)
{
    return outcome == NDT_CONVERGED || outcome == NDT_ITERATION_LIMIT || outcome == NDT_DEADLINE;
}

/* Updates the estimate with what a pass found. Both passes start from the prediction: they see the same scan. */
static void update(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass)
{
    const struct ndt_align_result *result = &job->record->result;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(job->T_base_sensor);
    struct ndt_observation of_base;
    struct ndt_track_measurement measurement = {.T_map_base =
                                                    ndt_pose_compose(&result->T_map_sensor, &T_sensor_base),
                                                .twist = job->twist[pass],
                                                .is_converged = result->outcome == NDT_CONVERGED};
    if (result->has_observation) {
        ndt_observation_to_body(&result->observation, job->T_base_sensor, &of_base);
        measurement.observation = &of_base;
    }
    ndt_track_update(&pipeline->track, &job->predicted, &measurement, &job->updated, &job->record->innovation,
                     &job->record->weakest);
    job->is_updated = 1;
    job->record->has_innovation = measurement.observation != NULL;
}

/* For the autotuner. */
static void keep_points(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_align_result *result = &job->record->result;
    pipeline->last_points = job->preprocessed == ON_HOST && result->outcome == NDT_CONVERGED ? job->points : NULL;
    pipeline->T_map_last = result->T_map_sensor;
}

static enum ndt_status first_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                  const struct ndt_align_params *params, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    const enum ndt_status status = align(pipeline, job, FIRST_PASS, params, &job->prior.T_map_sensor, err);
    if (job->preprocessed == ON_BACKEND)
        record->points_used = result->points;
    if (result->evaluations > 0)
        pipeline->evaluation_us = result->align_us / result->evaluations;
    keep_points(pipeline, job);
    if (status == NDT_OK && is_trusted(result->outcome))
        update(pipeline, job, FIRST_PASS);
    return status;
}

static double fit_of(const struct ndt_align_result *result)
{
    return result->scores.nvtl_normalized * result->scores.match_ratio;
}

/* Searches once more where the alignment contradicts the prediction: that may have held it in a wrong place. The
 * prediction is then worth as much as an initial pose without a covariance. The better fit counts. */
static enum ndt_status search_wider(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                    struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    const struct ndt_align_result first = *result;
    const struct ndt_prior narrow = job->prior;
    struct ndt_align_params params = params_for(pipeline, job);
    const struct ndt_track_params *track = &pipeline->track.params;
    struct ndt_track_state wide = job->predicted;
    if (!job->is_updated || record->innovation <= track->gate || !has_time(pipeline, &params))
        return NDT_OK;
    memset(wide.P, 0, sizeof(wide.P));
    for (int i = 0; i < 6; i++)
        wide.P[(NDT_TRACK_STATES + 1) * i] = pow(i < 3 ? track->pose_deviation_m : track->pose_deviation_rad, 2);
    ndt_track_pose_covariance(&wide, job->T_base_sensor, job->prior.covariance);
    const enum ndt_status status = align(pipeline, job, FIRST_PASS, &params, &job->prior.T_map_sensor, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_align_result second = *result;
    if (is_trusted(second.outcome) && fit_of(&second) > fit_of(&first)) {
        update(pipeline, job, FIRST_PASS);
        keep_points(pipeline, job);
    } else {
        *result = first;
        job->prior = narrow;
    }
    result->iterations = first.iterations + second.iterations;
    result->evaluations = first.evaluations + second.evaluations;
    result->align_us = first.align_us + second.align_us;
    result->upload_us = first.upload_us + second.upload_us;
    return NDT_OK;
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
    struct ndt_align_params params = params_for(pipeline, job);
    if (first.outcome != NDT_CONVERGED || !job->updated.has_twist || !second_pass_pays(pipeline, job))
        return NDT_OK;
    if (!has_time(pipeline, &params)) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left for the second pass");
        return NDT_OK;
    }
    set_motion(pipeline, job, SECOND_PASS, &job->updated);
    const double start_us = ndt_clock_us();
    enum ndt_status status = preprocess_again(pipeline, job, err);
    record->preprocess_us += ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    params.levels[0] = params.levels[params.level_count - 1];
    params.level_count = 1;
    const struct ndt_pose guess = ndt_pose_compose(&job->updated.T_map_base, job->T_base_sensor);
    status = align(pipeline, job, SECOND_PASS, &params, &guess, err);
    if (status == NDT_OK && is_trusted(result->outcome))
        update(pipeline, job, SECOND_PASS);
    result->iterations += first.iterations;
    result->evaluations += first.evaluations;
    result->align_us += first.align_us;
    result->upload_us += first.upload_us;
    return status;
}

/* The confidence of the result; with less than the minimum it is not believed. The estimator is updated where
 * the scan fits, along whatever it may slide and however far it is from the prediction: a tunnel informs it, and a
 * sudden turn does, but a wrong match must not. */
static void assess(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const struct ndtd_settings *settings = pipeline->settings;
    struct ndtd_scan_record *record = job->record;
    struct ndt_align_result *result = &record->result;
    struct ndt_confidence_features features;
    struct ndt_pose moved = ndt_pose_identity();
    if (!result->has_observation || settings->map.covariance != NDT_COVARIANCE_UNBIASED)
        return;
    ndt_confidence_set_scores(&features, &result->scores, &settings->align);
    if (job->is_updated) {
        const struct ndt_pose estimate = ndt_pose_compose(&job->updated.T_map_base, job->T_base_sensor);
        moved = ndt_pose_between(&result->T_map_sensor, &estimate);
        features.innovation = record->innovation;
    }
    const struct ndt_twist step = ndt_pose_log(&moved, 1);
    ndt_confidence_set_hold(&features, &result->observation, job->prior.covariance, &step);
    record->confidence = ndt_confidence(&features);
    record->is_doubted = record->confidence < settings->min_confidence;
    if (!record->is_doubted)
        return;
    features.slack_m = 0;
    features.innovation = 0;
    job->is_updated = job->is_updated && ndt_confidence(&features) >= settings->min_confidence;
    if (result->outcome == NDT_CONVERGED) {
        result->outcome = NDT_LOW_SCORE;
        snprintf(result->reason, sizeof(result->reason), "confidence %.3f is below the minimum %.3f",
                 record->confidence, settings->min_confidence);
    }
}

/* The covariance of the alignment that counts, where it is not the estimator's. Without time it is the fixed one.
 */
static enum ndt_status estimate_covariance(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                           struct ndt_error *err)
{
    struct ndt_pose_covariance_params how = pipeline->settings->pose_covariance;
    struct ndt_align_params params = params_for(pipeline, job);
    struct ndt_align_result *result = &job->record->result;
    const int is_multi =
        how.kind == NDT_POSE_COVARIANCE_MULTI_NDT || how.kind == NDT_POSE_COVARIANCE_MULTI_NDT_SCORE;
    enum ndt_status status = NDT_OK;
    if (how.kind == NDT_POSE_COVARIANCE_POSTERIOR || !job->is_updated)
        return NDT_OK;
    if (is_multi && !has_time(pipeline, &params)) {
        how.kind = NDT_POSE_COVARIANCE_FIXED;
    } else if (is_multi && job->preprocessed == ON_BACKEND) {
        status = preprocess_on_host(pipeline, job, err);
        if (status == NDT_OK && job->last == SECOND_PASS)
            status = preprocess_again(pipeline, job, err);
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
        status = preprocess(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    const double delay_us = delay(pipeline);
    struct ndt_align_params params = params_for(pipeline, job);
    if (!has_time(pipeline, &params)) {
        ndtd_scan_refuse(record, NDT_DEADLINE, "no time left to align it: the pose is the prediction");
        return NDT_OK;
    }
    status = first_pass(pipeline, job, &params, err);
    if (status == NDT_OK)
        status = search_wider(pipeline, job, err);
    if (status == NDT_OK && settings->deskew_passes > 1 && settings->preprocess.deskew != NDT_DESKEW_OFF)
        status = second_pass(pipeline, job, err);
    if (status == NDT_OK)
        status = estimate_covariance(pipeline, job, err);
    assess(pipeline, job);
    record->trace = ndt_aligner_trace(pipeline->aligner, &record->trace_count);
    record->result.align_us += delay_us;
    record->upload_us = record->result.upload_us;
    record->align_us = record->result.align_us - record->upload_us;
    return status;
}

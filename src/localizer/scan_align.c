/* A scan on its way through preprocessor and aligner: with which parameters, where, within which time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "scan_align.h"

/* Points of a scan that are read however late it is, and the part of the time for reading and preprocessing. */
static const double LEAST_POINTS = 10000, READ_PART = 0.5;

struct ndt_scan_header ndtd_scan_thinned(const struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan,
                                         size_t together)
{
    struct ndt_scan_header thinned = *scan;
    double most = pipeline->settings->max_points;
    if (pipeline->deadline_us > 0) {
        const double left_us = READ_PART * (pipeline->deadline_us - ndt_clock_us());
        most = fmin(most, fmax(LEAST_POINTS, left_us / (pipeline->point_us * (double)together)));
    }
    (void)ndt_scan_thin(&thinned, (uint64_t)most);
    return thinned;
}

enum ndt_status ndtd_scan_find_sweep(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     struct ndt_error *err)
{
    const struct ndtd_timed_scan scan = {
        .frame_id = job->frame_id, .stamp_ns = job->record->stamp_ns, .points = &pipeline->scan};
    if (job->frame_id)
        return ndtd_scan_times_find(&pipeline->times, &scan, &job->preprocess, &job->sweep, &pipeline->events.times,
                                    err);
    job->preprocess.deskew = ndt_deskew_mode_of(job->preprocess.deskew, &pipeline->scan);
    return ndt_preprocess_sweep(&job->preprocess, &pipeline->scan, &job->sweep, err);
}

/* Sets the outcome of a scan without an alignment; the pose stays the prediction. */
void ndtd_scan_refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason)
{
    record->result.outcome = outcome;
    snprintf(record->result.reason, sizeof(record->result.reason), "%.*s", (int)sizeof(record->result.reason) - 1,
             reason);
}

/* Piece by piece with the gyro, otherwise as a constant twist. */
void ndtd_scan_set_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass,
                          const struct ndt_track_state *state)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(job->T_base_sensor);
    struct ndt_sweep_motion *motion = &pipeline->motion[pass];
    double time_s[NDT_PREPROCESS_SEGMENTS + 1];
    job->twist[pass] = state->twist;
    motion->twist = ndt_pose_carried_twist(job->T_base_sensor, &state->twist);
    motion->is_piecewise = 0;
    if (state->source != NDT_TRACK_GYRO || job->preprocess.deskew == NDT_DESKEW_OFF)
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

/* Where the prediction is, deskewing and the prior follow it. */
static void use_prediction(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    ndtd_scan_set_motion(pipeline, job, FIRST_PASS, &job->predicted);
    job->prior.T_map_sensor = ndt_pose_compose(&job->predicted.T_map_base, job->T_base_sensor);
    ndt_track_pose_covariance(&job->predicted, job->T_base_sensor, job->prior.covariance);
}

static int64_t reference_ns(const struct ndtd_scan_job *job)
{
    return job->record->stamp_ns + llround(job->sweep.reference_s * 1e9);
}

int ndtd_scan_predict(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    if (!ndt_track_predict(&pipeline->track, reference_ns(job), &job->predicted))
        return 0;
    if (ndtd_scan_has_prior(pipeline))
        (void)ndt_track_use_gnss(&pipeline->track, &job->predicted);
    use_prediction(pipeline, job);
    return 1;
}

void ndtd_scan_predict_nothing(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const struct ndt_pose anywhere = ndt_pose_identity();
    ndt_track_start_state(&pipeline->track, reference_ns(job), &anywhere, NULL, NULL, &job->predicted);
    use_prediction(pipeline, job);
}

/* Otherwise the prediction is where the search starts, and the estimator takes the pose that is found. */
int ndtd_scan_has_prior(const struct ndtd_pipeline *pipeline)
{
    return pipeline->settings->prior == NDTD_PRIOR_AUTO && pipeline->settings->align.variant == NDT_ROBUST;
}

enum ndt_status ndtd_scan_preprocess_on_host(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
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

enum ndt_status ndtd_scan_preprocess(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     struct ndt_error *err)
{
    const size_t backend_limit = ndt_aligner_raw_limit(pipeline->aligner);
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    if (job->is_preprocessed)
        return NDT_OK;
    if (backend_limit == 0 || pipeline->scan.count > backend_limit) {
        status = ndtd_scan_preprocess_on_host(pipeline, job, err);
    } else {
        ndt_preprocess_plan_set(&pipeline->plan, &job->preprocess, &job->sweep, job->record->seq,
                                &pipeline->motion[FIRST_PASS]);
        job->preprocessed = ON_BACKEND;
    }
    job->record->preprocess_us += ndt_clock_us() - start_us;
    return status;
}

/* Deskews the points of the first pass again, with the motion of the second. */
enum ndt_status ndtd_scan_preprocess_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                           struct ndt_error *err)
{
    if (job->preprocessed == ON_HOST)
        return ndt_preprocess_again(pipeline->preprocessor, &pipeline->motion[SECOND_PASS], &job->points, err);
    ndt_preprocess_plan_set_motion(&pipeline->plan, &job->sweep, &pipeline->motion[FIRST_PASS],
                                   &pipeline->motion[SECOND_PASS]);
    return NDT_OK;
}

int ndtd_scan_has_gnss(const struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    return pipeline->has_gnss &&
           fabs(ndt_track_seconds(pipeline->gnss.stamp_ns, stamp_ns)) <= NDT_TRACK_GNSS_REACH_S;
}

double ndtd_scan_motion_difference_m(const struct ndtd_scan_job *job, const struct ndt_twist *a,
                                     const struct ndt_twist *b)
{
    double v2 = 0, w2 = 0;
    for (int i = 0; i < 3; i++) {
        v2 += pow(a->v_mps[i] - b->v_mps[i], 2);
        w2 += pow(a->w_radps[i] - b->w_radps[i], 2);
    }
    return fmax(job->sweep.end_s, -job->sweep.begin_s) * (sqrt(v2) + NDTD_TYPICAL_RANGE_M * sqrt(w2));
}

/* The configured parameters, with the prior and the GNSS position that are valid for this scan. */
struct ndt_align_params ndtd_scan_params(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndt_align_params params = pipeline->settings->align;
    if (ndtd_scan_has_prior(pipeline)) {
        params.prior = &job->prior;
        params.wants_observation = 1;
    }
    params.has_gnss = pipeline->settings->use_gnss && ndtd_scan_has_gnss(pipeline, job->record->stamp_ns);
    memcpy(params.gnss_position_m, pipeline->gnss.position_m, sizeof(params.gnss_position_m));
    return params;
}

/* Sets the time left for the aligner. Returns 0 when it is less than an evaluation takes. The estimate is halved
 * each time it prevents an alignment, so that one slow scan cannot prevent all following ones. */
int ndtd_scan_has_time(struct ndtd_pipeline *pipeline, struct ndt_align_params *params)
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

/* Aligns the preprocessed scan. If the backend can no longer preprocess (its device was lost), the host
 * preprocesses now. */
enum ndt_status ndtd_scan_align(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass,
                                const struct ndt_align_params *params, const struct ndt_pose *guess,
                                struct ndt_error *err)
{
    struct ndt_align_result *result = &job->record->result;
    job->last = pass;
    job->record->hypotheses += pass == FIRST_PASS;
    job->has_trace = !(job->is_aligned && pass == FIRST_PASS); /* a batch has none */
    if (!job->has_trace)
        return NDT_OK;
    if (job->preprocessed == ON_BACKEND) {
        enum ndt_status status =
            pass == FIRST_PASS
                ? ndt_align_raw(pipeline->aligner, params, &pipeline->plan, &pipeline->scan, guess, result, err)
                : ndt_align_raw_again(pipeline->aligner, params, &pipeline->plan, guess, result, err);
        if (status != NDT_ERR_UNSUPPORTED)
            return status;
        const double start_us = ndt_clock_us();
        status = ndtd_scan_preprocess_on_host(pipeline, job, err);
        if (status == NDT_OK && pass == SECOND_PASS)
            status = ndtd_scan_preprocess_again(pipeline, job, err);
        job->record->preprocess_us += ndt_clock_us() - start_us;
        if (status != NDT_OK)
            return status;
    }
    return ndt_align(pipeline->aligner, params, job->points, guess, result, err);
}

double ndtd_scan_reach_m(const struct ndtd_pipeline *pipeline, double speed_mps, double dt_s)
{
    const struct ndtd_settings *settings = pipeline->settings;
    return fmin(speed_mps * dt_s + 0.5 * settings->recovery.max_acceleration_mps2 * dt_s * dt_s,
                settings->recovery.max_speed_mps * dt_s);
}

/* A heading that was given without a covariance is wrong by this much at most; turns since then are not known. */
static const double TOLD_RAD = 45 * 0.017453292519943295, SIGMAS = 5;

int ndtd_scan_heads_as_told(const struct ndtd_pipeline *pipeline, const struct ndt_pose *T_map_base)
{
    const struct ndt_track_state *told = &pipeline->told;
    if (pipeline->is_verified || !pipeline->has_told)
        return 1;
    const double *P = told->P;
    const double deviation_rad = sqrt(P[(NDT_TRACK_STATES + 1) * 5]);
    return ndt_pose_angle_rad(&told->T_map_base, T_map_base) <= fmax(TOLD_RAD, SIGMAS * deviation_rad);
}

enum ndt_status ndtd_scan_points_needed(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                        struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    if (job->preprocessed == ON_HOST)
        return NDT_OK;
    enum ndt_status status = ndtd_scan_preprocess_on_host(pipeline, job, err);
    if (status == NDT_OK && job->last == SECOND_PASS)
        status = ndtd_scan_preprocess_again(pipeline, job, err);
    job->record->preprocess_us += ndt_clock_us() - start_us;
    return status;
}

void ndtd_scan_wide_covariance(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                               double covariance[36])
{
    const struct ndt_track_params *track = &pipeline->track.params;
    struct ndt_track_state wide = job->predicted;
    memset(wide.P, 0, sizeof(wide.P));
    for (int i = 0; i < 6; i++)
        wide.P[(NDT_TRACK_STATES + 1) * i] = pow(i < 3 ? track->pose_deviation_m : track->pose_deviation_rad, 2);
    ndt_track_pose_covariance(&wide, job->T_base_sensor, covariance);
}

enum ndt_status ndtd_scan_align_many(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     const struct ndt_align_params *params, size_t count, struct ndt_error *err)
{
    struct ndtd_many *many = &pipeline->many;
    const enum ndt_status status = ndtd_scan_points_needed(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        many->items[i] = (struct ndt_align_item){
            .scan = job->points, .T_map_guess = many->priors[i].T_map_sensor, .prior = &many->priors[i]};
    job->record->hypotheses += (int)count;
    return ndt_align_batch(pipeline->aligner, params, many->items, count, many->results, err);
}

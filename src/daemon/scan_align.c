/* A scan on its way through preprocessor and aligner: with which parameters, where, within which time. */
#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "scan_align.h"

/* A GNSS position is used for scans at most this much older or newer. */
static const double GNSS_REACH_S = 1.0;

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

enum ndt_status ndtd_scan_preprocess(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const size_t backend_limit = ndt_aligner_raw_limit(pipeline->aligner);
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
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

/* The configured parameters, with the prior and the GNSS position that are valid for this scan. */
struct ndt_align_params ndtd_scan_params(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
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


enum ndt_status ndtd_scan_align_many(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     const struct ndt_align_params *params, const struct ndt_pose *T_map_base,
                                     size_t count, const double prior_covariance[36], struct ndt_error *err)
{
    struct ndtd_many *many = &pipeline->many;
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    if (job->preprocessed == ON_BACKEND)
        status = ndtd_scan_preprocess_on_host(pipeline, job, err);
    job->record->preprocess_us += ndt_clock_us() - start_us;
    for (size_t i = 0; i < count; i++) {
        const struct ndt_pose guess = ndt_pose_compose(&T_map_base[i], job->T_base_sensor);
        many->priors[i].T_map_sensor = guess;
        if (prior_covariance)
            memcpy(many->priors[i].covariance, prior_covariance, sizeof(many->priors[i].covariance));
        many->items[i] = (struct ndt_align_item){
            .scan = job->points, .T_map_guess = guess, .prior = prior_covariance ? &many->priors[i] : NULL};
    }
    if (status == NDT_OK)
        status = ndt_align_batch(pipeline->aligner, params, many->items, count, many->results, err);
    return status;
}

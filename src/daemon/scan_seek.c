/* What follows the first pass: a second one, and other guesses where it was not confirmed. */
#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "scan_seek.h"

/* A second pass pays where the first one moves points at this range by more than this at the ends of the sweep. */
static const double TYPICAL_RANGE_M = 15, SECOND_PASS_M = 0.05;
/* Times that a scan is deskewed anew while its motion is sought. */
enum { MOTIONS_TRIED = 3 };

/* The result stands for everything that was tried. */
static void set_costs(struct ndt_align_result *result, const struct ndt_align_result *costs)
{
    result->iterations = costs->iterations;
    result->evaluations = costs->evaluations;
    result->align_us = costs->align_us;
    result->upload_us = costs->upload_us;
}

static void add_costs(struct ndt_align_result *result, const struct ndt_align_result *before)
{
    result->iterations += before->iterations;
    result->evaluations += before->evaluations;
    result->align_us += before->align_us;
    result->upload_us += before->upload_us;
}

/* Deskews with the motion that was found and aligns again, on the finest level only: the pose is nearly right
 * already. */
static enum ndt_status align_again(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                   struct ndt_align_params *params, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    const struct ndt_align_result first = record->result;
    ndtd_scan_set_motion(pipeline, job, SECOND_PASS, &job->updated);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_scan_preprocess_again(pipeline, job, err);
    record->preprocess_us += ndt_clock_us() - start_us;
    if (status != NDT_OK)
        return status;
    params->levels[0] = params->levels[params->level_count - 1];
    params->level_count = 1;
    const struct ndt_pose guess = ndt_pose_compose(&job->updated.T_map_base, job->T_base_sensor);
    status = ndtd_scan_align(pipeline, job, SECOND_PASS, params, &guess, err);
    if (status == NDT_OK && ndtd_scan_is_trusted(record->result.outcome))
        ndtd_scan_update(pipeline, job, SECOND_PASS);
    add_costs(&record->result, &first);
    return status;
}

/* The estimator accounts for a small error of the motion to first order already; then a second pass finds the same
 * pose. */
static int second_pass_pays(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const double *v0 = job->twist[FIRST_PASS].v_mps, *v1 = job->updated.twist.v_mps;
    const double *w0 = job->twist[FIRST_PASS].w_radps, *w1 = job->updated.twist.w_radps;
    double v2 = 0, w2 = 0;
    for (int i = 0; i < 3; i++) {
        v2 += (v1[i] - v0[i]) * (v1[i] - v0[i]);
        w2 += (w1[i] - w0[i]) * (w1[i] - w0[i]);
    }
    const double half_s = fmax(job->sweep.end_s, -job->sweep.begin_s);
    return !ndtd_scan_has_prior(pipeline) || half_s * (sqrt(v2) + TYPICAL_RANGE_M * sqrt(w2)) > SECOND_PASS_M;
}

enum ndt_status ndtd_scan_second_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                      struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (job->record->result.outcome != NDT_CONVERGED || !job->updated.has_twist || job->is_sought ||
        !second_pass_pays(pipeline, job))
        return NDT_OK;
    if (!ndtd_scan_has_time(pipeline, &params)) {
        ndtd_scan_refuse(job->record, NDT_DEADLINE, "no time left for the second pass");
        return NDT_OK;
    }
    return align_again(pipeline, job, &params, err);
}

/* A scan that was deskewed with a wrong motion fits nowhere: the motion that its alignment suggests, and again, as
 * long as the fit improves. */
static enum ndt_status seek_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndt_align_result *result = &job->record->result;
    enum ndt_status status = NDT_OK;
    for (int i = 0; i < MOTIONS_TRIED && status == NDT_OK && result->has_observation; i++) {
        const struct ndt_align_result before = *result;
        struct ndt_align_params params = ndtd_scan_params(pipeline, job);
        if (!ndtd_scan_has_time(pipeline, &params))
            return NDT_OK;
        if (!job->is_updated)
            ndtd_scan_update(pipeline, job, job->last);
        const struct ndt_track_state updated = job->updated;
        status = align_again(pipeline, job, &params, err);
        if (status == NDT_OK && ndtd_fit(result) > ndtd_fit(&before))
            continue;
        const struct ndt_align_result costs = *result;
        *result = before;
        set_costs(result, &costs);
        job->updated = updated;
        job->is_updated = ndtd_scan_is_trusted(before.outcome);
        break;
    }
    return status;
}

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

/* Aligns from all of pipeline->hypotheses; a better fit than that of the result replaces it. */
static enum ndt_status try_all(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    const struct ndtd_hypotheses *list = &pipeline->hypotheses;
    const struct ndt_align_result *found = pipeline->many.results;
    struct ndt_align_result costs = record->result;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    double wide[36];
    if (list->count == 0 || !ndtd_scan_has_time(pipeline, &params))
        return NDT_OK;
    set_wide_prior(pipeline, job, wide);
    const enum ndt_status status =
        ndtd_scan_align_many(pipeline, job, &params, list->T_map_base, list->count, wide, err);
    if (status != NDT_OK)
        return status;
    const struct ndtd_choice choice = ndtd_hypotheses_choose(found, list->count);
    record->hypotheses += (int)list->count;
    for (size_t i = 0; i < list->count; i++) {
        costs.iterations += found[i].iterations;
        costs.evaluations += found[i].evaluations;
    }
    costs.align_us += found[list->count - 1].align_us;
    if (choice.best >= 0 && ndtd_fit(&found[choice.best]) > ndtd_fit(&record->result)) {
        record->result = found[choice.best];
        job->prior = pipeline->many.priors[choice.best];
        job->is_updated = 0;
        if (ndtd_scan_is_trusted(record->result.outcome))
            ndtd_scan_update(pipeline, job, job->last);
        ndtd_scan_keep_points(pipeline, job);
    }
    set_costs(&record->result, &costs);
    return NDT_OK;
}

/* How far the vehicle can have come since the state before. */
static double reach_m(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_track_state *before = &pipeline->track.state;
    const double dt_s = fabs(ndt_track_seconds(before->stamp_ns, job->predicted.stamp_ns));
    const double speed =
        sqrt(before->twist.v_mps[0] * before->twist.v_mps[0] + before->twist.v_mps[1] * before->twist.v_mps[1] +
             before->twist.v_mps[2] * before->twist.v_mps[2]);
    return fmin(speed * dt_s + 0.5 * 3.0 * dt_s * dt_s + 1.0, 20);
}

static int is_found(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    int fits;
    return ndtd_scan_confidence(pipeline, job, &fits) >= pipeline->settings->min_confidence && fits;
}

enum ndt_status ndtd_scan_seek(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndtd_hypothesis_sources sources = {.before = &pipeline->track.state,
                                                    .predicted = &job->predicted,
                                                    .verified = pipeline->is_verified ? &pipeline->verified : NULL};
    if (!ndtd_scan_has_prior(pipeline) || ndtd_scan_is_confirmed(pipeline, job))
        return NDT_OK;
    job->is_sought = 1;
    ndtd_hypotheses_obvious(&pipeline->hypotheses, &sources);
    enum ndt_status status = try_all(pipeline, job, err);
    if (status == NDT_OK && !is_found(pipeline, job))
        status = seek_motion(pipeline, job, err);
    if (status != NDT_OK || is_found(pipeline, job))
        return status;
    ndtd_hypotheses_spread(&pipeline->hypotheses, &sources, reach_m(pipeline, job), 24);
    status = try_all(pipeline, job, err);
    if (status == NDT_OK && !is_found(pipeline, job))
        status = seek_motion(pipeline, job, err);
    return status;
}

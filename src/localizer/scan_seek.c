/* Steps after the first pass: a second one, and other guesses where it was not confirmed. */
#include <math.h>
#include <string.h>

#include "ndt/clock.h"
#include "scan_seek.h"
#include "scan_points.h"

/* A second pass pays where the first one moves a typical point by more than this at the ends of the sweep. */
static const double SECOND_PASS_M = 0.05;
/* Where the scan may slide, as in a tunnel, a place elsewhere along it counts only if so much more speaks for it.
 */
static const double CLEARLY_BETTER = 1;
/* The same optimum from another guess ends elsewhere within the last step: it counts only if it fits clearly
 * better. */
static const double SAME_GAIN = 0.25;
/* A prediction whose points are within this (three sigma) leaves one optimum on the finest level. */
static const double TRUSTED_M = 1.3;
/* Part of the time that is left for one list of guesses: places that are followed need some, too. */
static const double TIME_PART = 0.3;
/* Lost for more scans than these, guesses around a lost pose are left to the searches. */
enum { LOST_SCANS = 3 };
/* Guesses all around, and how far they go. */
enum { SPREAD_COUNT = 24 };
static const double LEAST_SPREAD_M = 1, MOST_SPREAD_M = 20;
/* Times that a scan is deskewed anew while its motion is sought. */
enum { MOTIONS_TRIED = 4 };

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

/* Whether the motion that was found moves points from where deskewing with the one before has put them. The
 * estimator accounts for a small error of the motion to first order already; then another pass finds the same pose.
 */
static int motion_differs(const struct ndtd_scan_job *job)
{
    return ndtd_scan_motion_difference_m(job, &job->updated.twist, &job->twist[job->last]) > SECOND_PASS_M;
}

enum ndt_status ndtd_scan_second_pass(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                      struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (job->record->result.outcome != NDT_CONVERGED || !job->updated.has_twist || job->is_sought ||
        (ndtd_scan_has_prior(pipeline) && !motion_differs(job)))
        return NDT_OK;
    if (!ndtd_scan_has_time(pipeline, &params)) {
        ndtd_scan_refuse(job->record, NDT_DEADLINE, "no time left for the second pass");
        return NDT_OK;
    }
    return align_again(pipeline, job, &params, err);
}

/* Deskews with the motion of job->updated and aligns again; keeps that only if the scan fits better. Returns
 * whether it does. */
static int try_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum ndt_status *status,
                      struct ndt_error *err)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndt_align_result before = *result;
    const struct ndt_track_state updated = job->updated;
    const struct ndt_twist used = job->twist[job->last];
    const enum pass last = job->last;
    const struct ndt_cloud *points = job->points;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (!motion_differs(job) || !ndtd_scan_has_time(pipeline, &params))
        return 0;
    *status = align_again(pipeline, job, &params, err);
    if (*status != NDT_OK || ndtd_fit(result) > ndtd_fit(&before))
        return *status == NDT_OK;
    const struct ndt_align_result costs = *result;
    *result = before;
    job->has_trace = 0; /* it was written over */
    set_costs(result, &costs);
    job->updated = updated;
    job->last = last;
    job->points = points;
    if (last == SECOND_PASS) { /* its points were written over */
        struct ndt_track_state kept = updated;
        kept.twist = used;
        ndtd_scan_set_motion(pipeline, job, SECOND_PASS, &kept);
        *status = ndtd_scan_preprocess_again(pipeline, job, err);
    }
    return 0;
}

/* The velocity at the scan if it has changed evenly since the scan before. */
static int set_even_motion(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, double part)
{
    const struct ndt_track_state *before = job->before ? job->before : &pipeline->track.state;
    const double dt_s = ndt_track_seconds(before->stamp_ns, job->predicted.stamp_ns);
    const struct ndt_pose step = ndt_pose_between(&before->T_map_base, &job->updated.T_map_base);
    if (dt_s <= 0 || dt_s > pipeline->track.params.max_prediction_s || job->predicted.source == NDT_TRACK_ODOMETRY)
        return 0;
    const struct ndt_twist mean = ndt_pose_log(&step, dt_s);
    for (int i = 0; i < 3; i++) {
        job->updated.twist.v_mps[i] = mean.v_mps[i] + part * (mean.v_mps[i] - before->twist.v_mps[i]);
        job->updated.twist.w_radps[i] = mean.w_radps[i] + part * (mean.w_radps[i] - before->twist.w_radps[i]);
    }
    return 1;
}

/* A scan that contradicts the prediction was deskewed with a wrong motion. Tried are the motion that its alignment
 * suggests, again as long as the fit improves, and those that lead there from the scan before. Odometry knows
 * better. */
static enum ndt_status seek_motion(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    static const double PARTS[] = {0, 1};
    struct ndt_align_result *result = &job->record->result;
    enum ndt_status status = NDT_OK;
    int tries = 0;
    const int is_measured =
        job->predicted.source == NDT_TRACK_ODOMETRY || job->predicted.source == NDT_TRACK_ODOMETRY_TWIST;
    if (job->preprocess.deskew == NDT_DESKEW_OFF || !result->has_observation || is_measured)
        return NDT_OK;
    if (!job->is_updated)
        ndtd_scan_update(pipeline, job, job->last);
    while (tries < MOTIONS_TRIED && try_motion(pipeline, job, &status, err))
        tries++;
    for (size_t i = 0; i < 2 && status == NDT_OK; i++) {
        const struct ndt_track_state updated = job->updated;
        if (!set_even_motion(pipeline, job, PARTS[i]) || !try_motion(pipeline, job, &status, err)) {
            job->updated = updated;
            continue;
        }
        while (tries < MOTIONS_TRIED && try_motion(pipeline, job, &status, err))
            tries++;
    }
    job->is_updated = ndtd_scan_is_trusted(result->outcome);
    return status;
}

/* The prediction itself, with a wide prior: it corrects what the narrow one has held. */
static int is_prediction(const struct ndtd_scan_job *job, const struct ndt_prior *guess)
{
    return memcmp(&guess->T_map_sensor, &job->expected.T_map_sensor, sizeof(guess->T_map_sensor)) == 0;
}

/* The guesses of a list as priors, which go on where the last scan had no more time. Returns how many. */
static size_t choose_guesses(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job, enum ndtd_list list)
{
    const struct ndtd_hypotheses *guesses = &pipeline->hypotheses;
    double wide[36];
    size_t count = 0;
    ndtd_scan_wide_covariance(pipeline, job, wide);
    for (size_t i = 0; i < guesses->count; i++) {
        const struct ndt_pose *T_map_base = &guesses->T_map_base[(i + pipeline->tried[list]) % guesses->count];
        struct ndt_prior *prior = &pipeline->many.priors[count];
        if (!ndtd_scan_heads_as_told(pipeline, T_map_base))
            continue;
        count++;
        prior->T_map_sensor = ndt_pose_compose(T_map_base, job->T_base_sensor);
        memcpy(prior->covariance, wide, sizeof(wide));
    }
    return count;
}

/* A list that was cut by the deadline begins at the next scan with those that it has not tried. */
static void go_on_next_time(struct ndtd_pipeline *pipeline, enum ndtd_list list,
                            const struct ndt_align_result *found, size_t count)
{
    size_t begun = 0;
    while (begun < count && !(found[begun].outcome == NDT_DEADLINE && found[begun].evaluations == 0))
        begun++;
    pipeline->tried[list] = begun < count ? pipeline->tried[list] + begun : 0;
}

/* Aligns from all of pipeline->hypotheses; where more than `better` speaks for the best of them over the result, it
 * becomes the result. */
static enum ndt_status try_all(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum ndtd_list list,
                               double better, struct ndt_error *err)
{
    struct ndtd_scan_record *record = job->record;
    size_t count = choose_guesses(pipeline, job, list);
    const struct ndt_align_result *found = pipeline->many.results, *best = NULL;
    struct ndt_align_result costs = record->result;
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    double best_score = ndtd_optimum_score(&record->result, &job->expected) + better;
    if (count == 0 || !ndtd_scan_has_time(pipeline, &params))
        return NDT_OK;
    params.deadline_s *= TIME_PART;
    const enum ndt_status status = ndtd_scan_align_many(pipeline, job, &params, count, err);
    if (status != NDT_OK)
        return status;
    go_on_next_time(pipeline, list, found, count);
    if (pipeline->is_watched)
        ndtd_scan_points_tried(pipeline, job, found, count);
    for (size_t i = 0; i < count; i++) {
        const double score = ndtd_optimum_score(&found[i], &job->expected);
        ndtd_optima_add(&pipeline->optima, &found[i], &job->expected);
        costs.iterations += found[i].iterations;
        costs.evaluations += found[i].evaluations;
        const struct ndt_pose *kept = best ? &best->T_map_sensor : &record->result.T_map_sensor;
        const int is_same =
            !ndtd_are_distinct(kept, &found[i].T_map_sensor) && !is_prediction(job, &pipeline->many.priors[i]);
        if (score > best_score + (is_same ? SAME_GAIN : 0)) {
            best_score = score;
            best = &found[i];
        }
    }
    costs.align_us += found[count - 1].align_us;
    if (best) {
        record->result = *best;
        job->has_trace = 0;
        job->prior = pipeline->many.priors[best - found];
        job->is_updated = 0;
        if (ndtd_scan_is_trusted(best->outcome))
            ndtd_scan_update(pipeline, job, job->last);
        ndtd_scan_keep_points(pipeline, job);
    }
    set_costs(&record->result, &costs);
    return NDT_OK;
}

/* How far from the state before guesses are spread: farther away searches find the place. */
static double spread_m(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_track_state *before = &pipeline->track.state;
    const double dt_s = fabs(ndt_track_seconds(before->stamp_ns, job->predicted.stamp_ns));
    const double reach_m = ndtd_scan_reach_m(pipeline, ndtd_speed_mps(&before->twist), dt_s);
    return fmin(reach_m + LEAST_SPREAD_M, MOST_SPREAD_M);
}

static int is_found(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    int fits;
    return ndtd_scan_confidence(pipeline, job, &fits) >= pipeline->settings->min_confidence && fits;
}

/* Whether the prediction says where the scan must fit: otherwise another optimum may be as near. */
static int is_trusted_prediction(const struct ndtd_scan_job *job)
{
    const double *P = job->predicted.P;
    double move_m2 = 0, turn_rad2 = 0;
    for (int i = 0; i < 3; i++) {
        move_m2 += P[(NDT_TRACK_STATES + 1) * i];
        turn_rad2 += P[(NDT_TRACK_STATES + 1) * (3 + i)];
    }
    return 3 * sqrt(move_m2 + NDTD_TYPICAL_RANGE_M * NDTD_TYPICAL_RANGE_M * turn_rad2) < TRUSTED_M;
}

static enum ndt_status try_list(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum ndtd_list list,
                                double better, struct ndt_error *err)
{
    enum ndt_status status = try_all(pipeline, job, list, better, err);
    return status == NDT_OK ? seek_motion(pipeline, job, err) : status;
}

static enum ndt_status try_lists(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndtd_hypothesis_sources sources = {.before = &pipeline->track.state,
                                                    .predicted = &job->predicted,
                                                    .verified = pipeline->is_verified ? &pipeline->verified : NULL};
    const int is_gap = ndt_track_position_deviation(&job->predicted) > pipeline->track.params.lost_deviation_m;
    const int is_confirmed = ndtd_scan_is_confirmed(pipeline, job), is_trusted = is_trusted_prediction(job);
    ndtd_hypotheses_obvious(&pipeline->hypotheses, &sources);
    enum ndt_status status = try_list(pipeline, job, NDTD_LIST_OBVIOUS, is_confirmed ? CLEARLY_BETTER : 0, err);
    if (status != NDT_OK || ((is_found(pipeline, job) || is_confirmed) && is_trusted))
        return status;
    ndtd_hypotheses_near(&pipeline->hypotheses, &sources);
    status = try_list(pipeline, job, NDTD_LIST_NEAR, 0, err);
    const int is_lost = pipeline->recovery.is_active && pipeline->recovery.scans > LOST_SCANS;
    if (status != NDT_OK || is_lost || (is_found(pipeline, job) && !is_gap))
        return status;
    ndtd_hypotheses_spread(&pipeline->hypotheses, &sources, spread_m(pipeline, job), SPREAD_COUNT);
    return try_list(pipeline, job, NDTD_LIST_SPREAD, 0, err);
}

enum ndt_status ndtd_scan_seek(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    const struct ndt_align_result *result = &job->record->result;
    if (!ndtd_scan_has_prior(pipeline) || (ndtd_scan_is_confirmed(pipeline, job) && is_found(pipeline, job) &&
                                           (is_trusted_prediction(job) || !pipeline->is_verified)))
        return NDT_OK;
    job->is_sought = 1;
    pipeline->optima.count = 0;
    job->expected = job->prior;
    ndtd_optima_add(&pipeline->optima, result, &job->expected);
    const enum ndt_status status = try_lists(pipeline, job, err);
    job->margin =
        ndtd_optima_margin(&pipeline->optima, &result->T_map_sensor, ndtd_optimum_score(result, &job->expected));
    job->record->margin = 1 - exp(-fmax(job->margin, 0)); /* of the odds */
    return status;
}

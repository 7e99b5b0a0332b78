/* The way back after the pose was lost, or to the first one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/linalg.h"
#include "scan_recover.h"
#include "scan_rivals.h"
#include "scan_search.h"

/* The least radius that is searched: a pose that someone has set is off by so much at times. */
static const double LEAST_RADIUS_M = 20;
/* Places of one search that are followed. */
enum { PLACES_PER_SEARCH = 5 };
/* A place is followed in favour of the present one where it fits so much better. */
static const double BETTER_FIT = 1.1;
/* Room for what a vehicle does beyond its speed so far. */
static const double LIKELY_M = 3, LEAST_SPEED_MPS = 2;
/* Odds of a pose over the next best one, as a logarithm. */
static const double LEAST_MARGIN = 1.0;
/* Farther than this from a pose that was given, or later, and not confirmed at once, a pose needs the evidence of
 * searches. */
static const double TOLD_M = 3, TOLD_S = 2;
/* Searches near GNSS positions that leave no place believed, after which the positions may be wrong: from then on
 * one search of GNSS_EVERY is near them, the others are of the whole map. */
enum { GNSS_SEARCHES = 8, GNSS_EVERY = 3 };
/* Purpose of a search. */
enum { ALL_POSSIBLE, NEAR_DOUBTED_GNSS };

int ndtd_scan_can_recover(const struct ndtd_pipeline *pipeline)
{
    const int is_wanted = pipeline->settings->recovery.enable &&
                          (pipeline->track.has_pose || pipeline->settings->initial_pose_mode != NDTD_POSE_GIVEN);
    return is_wanted && pipeline->recovery.searcher && ndtd_scan_has_prior(pipeline);
}

/* ---- following ---- */

/* The place of the estimator itself: the scan has been aligned there. */
static void follow_lead(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    struct ndtd_candidate *lead = &pipeline->recovery.lead;
    int fits;
    const double confidence = ndtd_scan_confidence(pipeline, job, &fits);
    if (!pipeline->track.has_pose)
        return;
    if (!pipeline->recovery.is_active)
        *lead = (struct ndtd_candidate){.state = pipeline->track.state};
    lead->before = job->predicted;
    ndtd_candidate_follow(lead, fits && job->is_updated ? &job->updated : &job->predicted,
                          ndtd_fit(&job->record->result), fits ? confidence : 0);
}

/* One of the other places. */
static void follow_one(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndtd_candidate *candidate,
                       const struct ndt_align_result *result)
{
    struct ndtd_scan_record record = {.result = *result};
    struct ndtd_scan_job other = *job;
    int fits;
    other.record = &record;
    other.predicted = candidate->before;
    other.before = &candidate->state;
    other.prior.T_map_sensor = ndt_pose_compose(&candidate->before.T_map_base, job->T_base_sensor);
    ndt_track_pose_covariance(&candidate->before, job->T_base_sensor, other.prior.covariance);
    other.is_updated = other.blind_count = 0;
    if (ndtd_scan_is_trusted(result->outcome))
        ndtd_scan_update(pipeline, &other, job->last);
    const double confidence = ndtd_scan_confidence(pipeline, &other, &fits);
    ndtd_candidate_follow(candidate, fits && other.is_updated ? &other.updated : &candidate->before,
                          ndtd_fit(result), fits ? confidence : 0);
}

enum ndt_status ndtd_scan_follow_places(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                        struct ndtd_candidates *others, struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_scan_params(pipeline, job);
    if (others->count == 0 || !ndtd_scan_has_time(pipeline, &params))
        return NDT_OK;
    for (size_t i = 0; i < others->count; i++) {
        struct ndtd_candidate *candidate = &others->list[i];
        struct ndt_prior *prior = &pipeline->many.priors[i];
        ndt_track_predict_from(&pipeline->track, &candidate->state, job->predicted.stamp_ns, &candidate->before);
        prior->T_map_sensor = ndt_pose_compose(&candidate->before.T_map_base, job->T_base_sensor);
        ndt_track_pose_covariance(&candidate->before, job->T_base_sensor, prior->covariance);
    }
    const enum ndt_status status = ndtd_scan_align_many(pipeline, job, &params, others->count, err);
    for (size_t i = 0; status == NDT_OK && i < others->count; i++)
        follow_one(pipeline, job, &others->list[i], &pipeline->many.results[i]);
    ndtd_candidates_prune(others);
    return status;
}

/* ---- searching ---- */

/* Half as fast again as ever before. */
static double likely_speed_mps(const struct ndtd_pipeline *pipeline)
{
    return fmax(1.5 * pipeline->fastest_mps, LEAST_SPEED_MPS);
}

/* How far the vehicle can have come since it was last seen. */
static double reach_m(const struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    const double dt_s = fabs(ndt_track_seconds(pipeline->verified.stamp_ns, stamp_ns));
    return ndtd_scan_reach_m(pipeline, likely_speed_mps(pipeline), dt_s);
}

/* How far it has probably come. */
static double likely_reach_m(const struct ndtd_pipeline *pipeline, int64_t stamp_ns)
{
    const double dt_s = fabs(ndt_track_seconds(pipeline->verified.stamp_ns, stamp_ns));
    return LIKELY_M + likely_speed_mps(pipeline) * dt_s;
}

static int is_likely(const struct ndtd_pipeline *pipeline, const struct ndt_track_state *state)
{
    const double *a = pipeline->verified.T_map_base.t_m, *b = state->T_map_base.t_m;
    return !pipeline->is_verified ||
           hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]) <= likely_reach_m(pipeline, state->stamp_ns);
}

static int set_gnss_window(const struct ndtd_pipeline *pipeline, int64_t stamp_ns, struct ndt_search_window *window)
{
    const struct ndt_gnss_message *gnss = &pipeline->gnss;
    const double *antenna = ndtd_pipeline_antenna_m(pipeline);
    const double reach_m = 3.5 * hypot(gnss->deviation_m[0], gnss->deviation_m[1]) + hypot(antenna[0], antenna[1]);
    if (!ndtd_scan_has_gnss(pipeline, stamp_ns) || !gnss->has_deviation)
        return 0;
    window->has_position = 1;
    memcpy(window->position_m, gnss->position_m, sizeof(window->position_m));
    window->radius_m = fmax(LEAST_RADIUS_M, reach_m);
    return 1;
}

/* A place that searches near a doubted position have found best counts as one that they were told. */
static void forget_agreements(struct ndtd_recovery *recovery)
{
    recovery->lead.agreements = 0;
    for (size_t i = 0; i < recovery->others.count; i++)
        recovery->others.list[i].agreements = 0;
}

/* The hint of GNSS, as long as it may be right. Returns what the search is for. */
static int set_hinted_window(struct ndtd_pipeline *pipeline, int64_t stamp_ns, struct ndt_search_window *window)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    if (!set_gnss_window(pipeline, stamp_ns, window))
        return ALL_POSSIBLE;
    if (recovery->gnss_searches == GNSS_SEARCHES)
        forget_agreements(recovery);
    recovery->gnss_searches++;
    if (recovery->gnss_searches <= GNSS_SEARCHES)
        return ALL_POSSIBLE;
    if ((recovery->gnss_searches - GNSS_SEARCHES) % GNSS_EVERY == 0)
        return NEAR_DOUBTED_GNSS;
    *window = (struct ndt_search_window){0};
    return ALL_POSSIBLE;
}

/* Everything that is possible: within reach of the pose that was verified or set last, near the GNSS position, or
 * the whole map. Returns what the search is for. */
static int set_window(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                      struct ndt_search_window *window)
{
    const struct ndtd_recovery *recovery = &pipeline->recovery;
    const double most_m = pipeline->settings->recovery.radius_m;
    const struct ndt_track_state *from = pipeline->is_verified ? &pipeline->verified : NULL;
    double radius_m = LEAST_RADIUS_M;
    *window = (struct ndt_search_window){0};
    if (from) {
        radius_m = recovery->searches % 4 == 3 ? fmax(LEAST_RADIUS_M, reach_m(pipeline, job->predicted.stamp_ns))
                                               : 5 + likely_reach_m(pipeline, job->predicted.stamp_ns);
    } else if (pipeline->has_told) {
        from = &pipeline->told;
        radius_m = fmax(LEAST_RADIUS_M, 3 * ndt_track_position_deviation(from)) + 2.0 * recovery->searches;
    }
    if (from && radius_m <= most_m) {
        window->has_position = 1;
        memcpy(window->position_m, from->T_map_base.t_m, sizeof(window->position_m));
        window->radius_m = radius_m;
        return ALL_POSSIBLE;
    }
    return set_hinted_window(pipeline, job->predicted.stamp_ns, window);
}

static void take_places(struct ndtd_pipeline *pipeline)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    const struct ndtd_search_answer *answer = ndtd_searcher_take(recovery->searcher, NDTD_SEARCH_RECOVERY);
    if (!answer || answer->status != NDT_OK || answer->result.count == 0)
        return;
    const struct ndtd_found found = {&answer->result, answer->request.stamp_ns, answer->request.T_base_sensor,
                                     answer->request.purpose == NEAR_DOUBTED_GNSS ? &answer->request.window : NULL};
    ndtd_candidates_take(&recovery->others, pipeline->track.has_pose ? &recovery->lead : NULL, &pipeline->track,
                         &found, PLACES_PER_SEARCH);
}

static enum ndt_status start_search(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                                    struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    struct ndtd_search_request request = ndtd_scan_search_request(pipeline, job, NDTD_SEARCH_RECOVERY);
    if (pipeline->localize.is_active || !ndtd_searcher_is_free(recovery->searcher, NDTD_SEARCH_RECOVERY))
        return NDT_OK;
    request.purpose = set_window(pipeline, job, &request.window);
    recovery->searches++;
    return ndtd_searcher_start(recovery->searcher, &request, err);
}

/* ---- the choice ---- */

/* The estimator goes on from another place; the scan is aligned there again, as its result. */
enum ndt_status ndtd_scan_change_lead(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                      struct ndtd_candidate *next, struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    struct ndt_align_params params;
    const struct ndtd_candidate previous = recovery->lead;
    recovery->lead = *next;
    if (pipeline->track.has_pose)
        *next = previous;
    else
        *next = recovery->others.list[--recovery->others.count];
    ndt_track_adopt(&pipeline->track, &recovery->lead.before, 0);
    job->predicted = recovery->lead.before;
    job->prior.T_map_sensor = ndt_pose_compose(&job->predicted.T_map_base, job->T_base_sensor);
    ndt_track_pose_covariance(&job->predicted, job->T_base_sensor, job->prior.covariance);
    params = ndtd_scan_params(pipeline, job);
    job->is_updated = job->is_open = job->is_cut = job->blind_count = 0;
    if (!ndtd_scan_has_time(pipeline, &params)) {
        job->record->result.T_map_sensor = job->prior.T_map_sensor;
        job->has_trace = 0;
        ndtd_scan_refuse(job->record, NDT_DEADLINE,
                         "no time left to align it at another place: the pose is the prediction");
        return NDT_OK;
    }
    enum ndt_status status = ndtd_scan_align(pipeline, job, job->last, &params, &job->prior.T_map_sensor, err);
    if (status == NDT_OK && ndtd_scan_is_trusted(job->record->result.outcome))
        ndtd_scan_update(pipeline, job, job->last);
    if (status == NDT_OK)
        status = ndtd_scan_rivals(pipeline, job, err);
    int fits;
    recovery->lead.confidence = ndtd_scan_confidence(pipeline, job, &fits);
    if (!fits)
        recovery->lead.confidence = 0;
    if (job->is_updated)
        recovery->lead.state = job->updated;
    return status;
}

static enum ndt_status choose_lead(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    struct ndtd_candidate *other = ndtd_candidates_best(&recovery->others);
    const struct ndtd_candidate *lead = &recovery->lead;
    if (!other || other->before.stamp_ns != job->predicted.stamp_ns)
        return NDT_OK;
    const int is_convincing = is_likely(pipeline, &other->state) ? other->agreements >= 1 : other->agreements >= 3;
    if (pipeline->track.has_pose &&
        (!is_convincing || other->agreements <= lead->agreements || other->fit < BETTER_FIT * lead->fit))
        return NDT_OK;
    return ndtd_scan_change_lead(pipeline, job, other, err);
}

/* Whether the scan fits better at the lead than at any other place that is followed, by far: point by point, which
 * tells more than the means of the fits where aisles and houses repeat. */
static int leads_all(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndtd_candidates *others = &pipeline->recovery.others;
    const struct ndt_pose *lead = &pipeline->recovery.lead.state.T_map_base;
    const struct ndt_pose T_map_lead = ndt_pose_compose(lead, job->T_base_sensor);
    for (size_t i = 0; i < others->count; i++) {
        const struct ndt_pose *other = &others->list[i].state.T_map_base;
        const struct ndt_pose T_map_other = ndt_pose_compose(other, job->T_base_sensor);
        if (ndtd_are_distinct(lead, other) &&
            ndtd_scan_lead(pipeline, job, &T_map_lead, &T_map_other) < NDTD_SIGNIFICANT)
            return 0;
    }
    return 1;
}

static enum ndt_status decide_belief(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                     struct ndt_error *err)
{
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndtd_recovery *recovery = &pipeline->recovery;
    const double second = ndtd_candidates_second(&recovery->others, &recovery->lead.state.T_map_base);
    const int is_near = pipeline->is_verified && is_likely(pipeline, &recovery->lead.state);
    job->is_unbelieved = !pipeline->track.has_pose ||
                         !ndtd_candidate_is_believed(&recovery->lead, second, settings->min_confidence, is_near);
    if (job->is_unbelieved)
        return NDT_OK;
    const enum ndt_status status = ndtd_scan_points_needed(pipeline, job, err);
    job->is_unbelieved = status != NDT_OK || !leads_all(pipeline, job);
    return status;
}

/* Whether the pose is where the vehicle can be after the last scan that was verified: what unverified scans told in
 * between does not count. Where that is uncertain, no other optimum may come near. */
static int is_near_verified(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndt_track_state expected;
    double block[36];
    ndt_track_predict_from(&pipeline->track, &pipeline->verified, job->predicted.stamp_ns, &expected);
    const double deviation_m = ndt_track_position_deviation(&expected);
    for (int i = 0; i < 6; i++)
        memcpy(block + 6 * i, expected.P + NDT_TRACK_STATES * i, 6 * sizeof(*block));
    if (deviation_m <= pipeline->track.params.lost_deviation_m &&
        ndtd_squared_mahalanobis(&expected.T_map_base, block, &job->updated.T_map_base) <=
            pipeline->track.params.gate)
        return 1;
    return !pipeline->recovery.is_active && job->is_sought;
}

/* Before any scan was verified: a pose that was given counts for a while, near where it leads and with its heading,
 * and one that a search has found never. */
static int is_near_told(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    const struct ndt_track_state *told = &pipeline->told;
    const double dt_s = fabs(ndt_track_seconds(told->stamp_ns, job->predicted.stamp_ns));
    struct ndt_track_state expected;
    if (!pipeline->has_told || !ndtd_scan_heads_as_told(pipeline, &job->updated.T_map_base))
        return 0;
    if (!pipeline->recovery.is_active)
        return 1;
    ndt_track_predict_from(&pipeline->track, told, job->predicted.stamp_ns, &expected);
    const double reach_m =
        3 * ndt_track_position_deviation(told) + pipeline->settings->recovery.max_speed_mps * dt_s;
    const double *a = expected.T_map_base.t_m, *b = job->updated.T_map_base.t_m;
    return dt_s <= TOLD_S && hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]) <= fmin(reach_m, TOLD_M);
}

/* Confirmed near the last verified pose. */
static int is_tracking(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    int fits;
    const double confidence = ndtd_scan_confidence(pipeline, job, &fits);
    if (!pipeline->track.has_pose || !fits || !job->is_updated || confidence < pipeline->settings->min_confidence)
        return 0;
    if (job->is_open || (job->is_sought && job->margin < LEAST_MARGIN))
        return 0;
    if (ndtd_speed_mps(&job->updated.twist) > pipeline->settings->recovery.max_speed_mps)
        return 0;
    return pipeline->is_verified ? is_near_verified(pipeline, job) : is_near_told(pipeline, job);
}

enum ndt_status ndtd_scan_recover(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, struct ndt_error *err)
{
    struct ndtd_recovery *recovery = &pipeline->recovery;
    if (!ndtd_scan_can_recover(pipeline))
        return NDT_OK;
    if (is_tracking(pipeline, job)) {
        recovery->is_active = 0;
        return NDT_OK;
    }
    if (!recovery->is_active) {
        recovery->others.count = recovery->scans = recovery->searches = recovery->gnss_searches = 0;
        (void)ndtd_searcher_take(recovery->searcher, NDTD_SEARCH_RECOVERY);
    }
    take_places(pipeline);
    follow_lead(pipeline, job);
    recovery->is_active = 1;
    recovery->scans++;
    enum ndt_status status = ndtd_scan_follow_places(pipeline, job, &recovery->others, err);
    if (status == NDT_OK)
        status = start_search(pipeline, job, err);
    if (status != NDT_OK)
        return status;
    take_places(pipeline);
    status = choose_lead(pipeline, job, err);
    if (status == NDT_OK)
        status = decide_belief(pipeline, job, err);
    recovery->is_active = job->is_unbelieved;
    return status;
}

void ndtd_scan_doubt(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    struct ndt_align_result *result = &job->record->result;
    const struct ndtd_candidate *lead = &pipeline->recovery.lead;
    if (job->is_open && !ndtd_scan_can_recover(pipeline) && result->outcome == NDT_CONVERGED) {
        ndtd_scan_refuse(job->record, NDT_LOW_SCORE, "another place may fit as well, and no search can tell");
        return;
    }
    if (!job->is_unbelieved || result->outcome != NDT_CONVERGED)
        return;
    result->outcome = NDT_LOST;
    snprintf(result->reason, sizeof(result->reason),
             "recovering: %u searches agree, probability %.3f, %zu other places", lead->agreements,
             ndt_evidence_probability(&lead->evidence), pipeline->recovery.others.count);
}

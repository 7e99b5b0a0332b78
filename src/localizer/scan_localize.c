/* The search for the pose on request. */
#include "scan_localize.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndtd/scan_state.h"
#include "scan_recover.h"
#include "scan_search.h"

/* Windows reach this many deviations, and never less than the radius or the angle. */
static const double SIGMAS = 3.5, LEAST_RADIUS_M = 20, LEAST_HEADING_RAD = 10 * 0.017453292519943295;
/* Reach of a heading without a deviation. */
static const double HEADING_REACH_RAD = 30 * 0.017453292519943295;
/* Scans after the first place was found, and searches that find nothing, after which there is no answer. */
enum { SCANS_MOST = 15, EMPTY_MOST = 3 };
/* After this time without a scan a search ends with what it has: scanners of 1 Hz miss one now and then. */
static const double SILENCE_US = 5e6;

/* A scan that was answered. */
struct ndtd_localize_scan {
    struct ndtd_scan_job job;
    struct ndtd_scan_record record; /* of the job */
};

/* ---- the request ---- */

static void set_position(struct ndt_search_window *window, const double position_m[3], double deviation_m,
                         double arm_m)
{
    window->has_position = 1;
    memcpy(window->position_m, position_m, sizeof(window->position_m));
    window->radius_m = fmax(LEAST_RADIUS_M, SIGMAS * deviation_m) + arm_m;
}

/* heading_rad: of the base. */
static void set_heading(struct ndt_search_window *window, double heading_rad, double reach_rad)
{
    window->has_heading = reach_rad < M_PI;
    window->heading_rad = remainder(heading_rad, 2 * M_PI);
    window->heading_reach_rad = fmax(LEAST_HEADING_RAD, reach_rad);
}

static void set_window(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                       struct ndt_search_window *window)
{
    const struct ndt_request_message *request = &pipeline->localize.request;
    const struct ndt_localize_hint *hint = &request->hint;
    const double *antenna_m = ndtd_pipeline_antenna_m(pipeline);
    double sensor_m[3];
    ndtd_scan_viewpoint(pipeline, job, sensor_m);
    *window = (struct ndt_search_window){0};
    if (request->pose.has_pose) {
        const double *P = request->pose.has_covariance ? request->pose.covariance : NULL;
        set_position(window, request->pose.pose.t_m, P ? sqrt(fmax(P[0], P[7])) : 0,
                     hypot(sensor_m[0], sensor_m[1]));
        if (P)
            set_heading(window, ndt_pose_heading_rad(&request->pose.pose), SIGMAS * sqrt(P[35]));
    } else if (hint->has_position) {
        set_position(window, hint->position_m,
                     hint->has_deviation ? hypot(hint->deviation_m[0], hint->deviation_m[1]) : 0,
                     hypot(antenna_m[0] - sensor_m[0], antenna_m[1] - sensor_m[1]));
    }
    if (hint->has_heading)
        set_heading(window, hint->heading_rad,
                    hint->has_heading_deviation ? SIGMAS * hint->heading_deviation_rad : HEADING_REACH_RAD);
}

/* ---- the result ---- */

static void end(struct ndtd_localize *localize, const char *why)
{
    struct ndt_localize_report *report = &localize->report;
    localize->is_active = 0;
    report->has_result = 1;
    report->elapsed_ms = (ndt_clock_us() - localize->begun_us) * 1e-3;
    report->queue_ms =
        localize->started_us > 0 ? (localize->started_us - localize->begun_us) * 1e-3 : report->elapsed_ms;
    report->search_ms = localize->search_us * 1e-3;
    report->verification_ms = fmax(0, report->elapsed_ms - report->queue_ms - report->search_ms);
    snprintf(report->reason, sizeof(report->reason), "%s", why);
}

void ndtd_pipeline_localize(struct ndtd_pipeline *pipeline, const struct ndt_request_message *request)
{
    const int serial = pipeline->localize.serial < INT_MAX ? pipeline->localize.serial + 1 : 1;
    struct ndtd_localize_scan *scan = pipeline->localize.scan;
    if (!scan)
        scan = calloc(1, sizeof(*scan));
    pipeline->localize = (struct ndtd_localize){
        .scan = scan, .is_active = 1, .serial = serial, .request = *request, .begun_us = ndt_clock_us()};
    if (!scan)
        end(&pipeline->localize, "no memory");
    else if (!pipeline->map)
        end(&pipeline->localize, "there is no map");
    else if (!pipeline->recovery.searcher || !ndtd_scan_has_prior(pipeline))
        end(&pipeline->localize, "a search needs ndt.prior auto and ndt.variant robust");
}

void ndtd_pipeline_cancel_localize(struct ndtd_pipeline *pipeline)
{
    if (!pipeline->localize.is_active)
        return;
    end(&pipeline->localize, "cancelled");
    ndtd_searcher_cancel(pipeline->recovery.searcher);
}

int ndtd_pipeline_localize_report(const struct ndtd_pipeline *pipeline, struct ndt_localize_report *out)
{
    *out = pipeline->localize.report;
    return !pipeline->localize.is_active && out->has_result;
}

/* Probability that the scan was taken there: from the searches, and from how well the last scan fits. */
static double probability_of(const struct ndtd_candidate *place)
{
    return fmin(place->confidence, ndt_evidence_probability(&place->evidence));
}

/* Probabilities of places that exclude each other sum up to 1 at most. */
static double total_confidence(const struct ndtd_candidates *places)
{
    double sum = 0;
    for (size_t i = 0; i < places->count; i++)
        sum += probability_of(&places->list[i]);
    return fmax(1, sum);
}

static struct ndt_localize_pose pose_of(const struct ndtd_pipeline *pipeline, const struct ndtd_candidate *place,
                                        double reference_s, double total)
{
    struct ndt_track_state at_stamp;
    ndt_track_shift(&pipeline->track, &place->state, -reference_s, &at_stamp);
    return (struct ndt_localize_pose){.T_map_base = at_stamp.T_map_base,
                                      .confidence = probability_of(place) / total};
}

/* The places, best first; `scan` names the moment. */
static void report_places(struct ndtd_pipeline *pipeline, uint64_t seq, int64_t stamp_ns, double reference_s)
{
    struct ndtd_candidates places = pipeline->localize.places;
    struct ndt_localize_report *report = &pipeline->localize.report;
    const double total = total_confidence(&places);
    report->seq = seq;
    report->stamp_ns = stamp_ns;
    for (int is_best = 1; places.count > 0; is_best = 0) {
        struct ndtd_candidate *next = ndtd_candidates_best(&places);
        const struct ndt_localize_pose pose = pose_of(pipeline, next, reference_s, total);
        if (is_best) {
            report->has_pose = report->has_covariance = 1;
            report->best = pose;
            ndt_track_map_covariance(&next->state, report->covariance);
        } else if (report->alternative_count < NDT_LOCALIZE_MAX_ALTERNATIVES) {
            report->alternatives[report->alternative_count++] = pose;
        }
        *next = places.list[--places.count];
    }
}

/* The estimator goes on from the place, unless it is there already. */
static void apply(struct ndtd_pipeline *pipeline, const struct ndtd_candidate *place)
{
    const int is_there = ndtd_state_is_trusted(pipeline->state) &&
                         !ndtd_are_distinct(&pipeline->track.state.T_map_base, &place->state.T_map_base);
    pipeline->localize.report.applied = 1;
    if (is_there)
        return;
    ndt_track_adopt(&pipeline->track, &place->state, 1);
    pipeline->verified = place->state;
    pipeline->is_verified = 1;
    pipeline->has_told = pipeline->has_start = pipeline->recovery.is_active = 0;
}

static void conclude(struct ndtd_pipeline *pipeline, const struct ndtd_candidate *best, int is_accepted,
                     const char *why)
{
    struct ndtd_localize *localize = &pipeline->localize;
    localize->report.accepted = is_accepted;
    if (is_accepted && localize->request.hint.apply)
        apply(pipeline, best);
    end(localize, is_accepted ? "" : why);
}

/* ---- scans ---- */

static void take_places(struct ndtd_pipeline *pipeline, const struct ndtd_search_answer *answer)
{
    struct ndtd_localize *localize = &pipeline->localize;
    const struct ndtd_found found = {&answer->result, answer->request.stamp_ns, answer->request.T_base_sensor,
                                     NULL};
    localize->search_us += answer->search_us;
    localize->seq = answer->request.seq;
    ndtd_candidates_take(&localize->places, NULL, &pipeline->track, &found, NDT_SEARCH_CANDIDATES);
}

static void take_answer(struct ndtd_pipeline *pipeline)
{
    struct ndtd_localize *localize = &pipeline->localize;
    const struct ndtd_search_answer *answer = ndtd_searcher_take(pipeline->recovery.searcher, NDTD_SEARCH_LOCALIZE);
    if (!answer || answer->request.purpose != localize->serial)
        return; /* none yet, or that of a request which was cancelled */
    localize->is_searching = 0;
    localize->silent_us = 0;
    if (answer->status != NDT_OK)
        conclude(pipeline, NULL, 0, answer->why.text);
    else if (answer->result.count > 0)
        take_places(pipeline, answer);
    else if (!answer->result.is_cancelled && ++localize->empty >= EMPTY_MOST && localize->places.count == 0)
        conclude(pipeline, NULL, 0,
                 localize->is_near ? "the scan fits nowhere near the position that was told"
                                   : "the scan fits nowhere"); /* cancelled: another map has come; once more */
}

static enum ndt_status start_search(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                                    struct ndt_error *err)
{
    struct ndtd_localize *localize = &pipeline->localize;
    struct ndtd_searcher *searcher = pipeline->recovery.searcher;
    struct ndtd_search_request request = ndtd_scan_search_request(pipeline, job, NDTD_SEARCH_LOCALIZE);
    request.purpose = localize->serial;
    (void)ndtd_searcher_take(searcher, NDTD_SEARCH_RECOVERY); /* the place of the request comes first */
    if (!ndtd_searcher_is_free(searcher, NDTD_SEARCH_LOCALIZE))
        return NDT_OK;
    set_window(pipeline, job, &request.window);
    localize->is_near = request.window.has_position;
    localize->is_searching = 1;
    if (localize->started_us <= 0)
        localize->started_us = ndt_clock_us();
    return ndtd_searcher_start(searcher, &request, err);
}

/* The best fit of what speaks against a place: the others, and the pose of the estimator while that is trusted. */
static double second_fit(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                         const struct ndtd_candidate *best)
{
    const double second = ndtd_candidates_second(&pipeline->localize.places, &best->state.T_map_base);
    const int is_tracked = job->record->state == NDT_STATE_TRACKING && job->is_updated &&
                           ndtd_are_distinct(&job->updated.T_map_base, &best->state.T_map_base);
    return is_tracked ? fmax(second, ndtd_fit(&job->record->result)) : second;
}

static void decide(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndtd_localize *localize = &pipeline->localize;
    const struct ndtd_settings *settings = pipeline->settings;
    const struct ndtd_candidate *best = ndtd_candidates_best(&localize->places);
    char why[128];
    if (!best)
        return;
    const double second = second_fit(pipeline, job, best);
    const int is_accepted = ndtd_candidate_is_believed(best, second, settings->min_confidence, 0);
    if (!is_accepted && ++localize->scans < SCANS_MOST)
        return;
    snprintf(why, sizeof(why),
             "%u searches agree, probability %.3f, confidence %.3f, the second best fits %.0f %% as well",
             best->agreements, ndt_evidence_probability(&best->evidence), best->confidence,
             100 * second / fmax(best->fit, 1e-9));
    report_places(pipeline, job->record->seq, job->record->stamp_ns, job->sweep.reference_s);
    conclude(pipeline, best, is_accepted, why);
}

void ndtd_scan_keep(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job)
{
    struct ndtd_localize *localize = &pipeline->localize;
    const int has_points = job->points != NULL || job->preprocessed == ON_BACKEND;
    if (!localize->is_active || !has_points || !localize->scan)
        return;
    localize->has_scan = 1;
    localize->scan->job = *job;
    localize->scan->record = *job->record;
    localize->scan->job.record = &localize->scan->record;
    localize->scan->job.preprocess.deadline_us = 0; /* its answer is due, the search is not */
}

enum ndt_status ndtd_pipeline_follow_up(struct ndtd_pipeline *pipeline, struct ndt_error *err)
{
    struct ndtd_localize *localize = &pipeline->localize;
    enum ndt_status status = NDT_OK;
    if (!localize->is_active || !localize->has_scan)
        return NDT_OK;
    struct ndtd_scan_job *job = &localize->scan->job;
    localize->has_scan = 0;
    take_answer(pipeline);
    if (localize->is_active && !localize->is_searching)
        status = start_search(pipeline, job, err);
    if (status == NDT_OK && localize->is_active)
        take_answer(pipeline); /* at once where searches do not run beside */
    if (status != NDT_OK || !localize->is_active || localize->places.count == 0)
        return status;
    status = ndtd_scan_follow_places(pipeline, job, &localize->places, err);
    if (status == NDT_OK)
        decide(pipeline, job);
    return status;
}

/* ---- without scans ---- */

void ndtd_pipeline_idle(struct ndtd_pipeline *pipeline)
{
    struct ndtd_localize *localize = &pipeline->localize;
    unsigned percent;
    if (!localize->is_active || !localize->is_searching ||
        ndtd_searcher_progress(pipeline->recovery.searcher, &percent))
        return;
    if (localize->silent_us <= 0)
        localize->silent_us = ndt_clock_us();
    if (ndt_clock_us() - localize->silent_us < SILENCE_US)
        return;
    take_answer(pipeline);
    const struct ndtd_candidate *best = ndtd_candidates_best(&localize->places);
    if (!localize->is_active || !best)
        return;
    report_places(pipeline, localize->seq, best->state.stamp_ns, 0);
    conclude(pipeline, best, 0, "no other scan came to confirm it");
}

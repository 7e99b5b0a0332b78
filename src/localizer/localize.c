/* Localize: the search for the pose on request. It uses scans beside the estimator, in every state, and changes the
 * estimate only at its end. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/clock.h"
#include "relocalizer_state.h"
#include "search_request.h"

/* Deviations that a region reaches, and its least radius and angle. */
static const double SIGMAS = 3.5, LEAST_RADIUS_M = 20, LEAST_HEADING_RAD = 10 * 0.017453292519943295;
/* Reach of a heading without a deviation. */
static const double HEADING_REACH_RAD = 30 * 0.017453292519943295;
/* Limits after which there is no answer: scans after the first candidate was found, and searches that find nothing.
 */
enum { SCANS_MOST = 15, EMPTY_MOST = 3 };
/* Time without a scan after which a search ends with its results so far: scanners of 1 Hz miss a scan now and then.
 */
static const double SILENCE_US = 5e6;

/* ---- the request ---- */

static void set_position(struct ndt_search_region *region, const double position_m[3], double deviation_m,
                         double arm_m)
{
    region->has_position = 1;
    memcpy(region->position_m, position_m, sizeof(region->position_m));
    region->radius_m = fmax(LEAST_RADIUS_M, SIGMAS * deviation_m) + arm_m;
}

/* Limits the heading of a region; heading_rad: of the base. */
static void set_heading(struct ndt_search_region *region, double heading_rad, double reach_rad)
{
    region->has_heading = reach_rad < M_PI;
    region->heading_rad = remainder(heading_rad, 2 * M_PI);
    region->heading_reach_rad = fmax(LEAST_HEADING_RAD, reach_rad);
}

static void set_region(const struct ndtd_relocalizer *relocalizer, struct ndt_search_region *region)
{
    const struct ndt_request_message *request = &relocalizer->localize.request;
    const struct ndt_localize_hint *hint = &request->hint;
    const double *antenna_m = ndtd_antenna_m(relocalizer);
    double sensor_m[3];
    ndtd_scan_viewpoint(&relocalizer->parts.matcher->scan, &relocalizer->settings->frames, sensor_m);
    *region = (struct ndt_search_region){0};
    if (request->pose.has_pose) {
        const double *P = request->pose.has_covariance ? request->pose.covariance : NULL;
        set_position(region, request->pose.pose.t_m, P ? sqrt(fmax(P[0], P[7])) : 0,
                     hypot(sensor_m[0], sensor_m[1]));
        if (P)
            set_heading(region, ndt_pose_heading_rad(&request->pose.pose), SIGMAS * sqrt(P[35]));
    } else if (hint->has_position) {
        set_position(region, hint->position_m,
                     hint->has_deviation ? hypot(hint->deviation_m[0], hint->deviation_m[1]) : 0,
                     hypot(antenna_m[0] - sensor_m[0], antenna_m[1] - sensor_m[1]));
    }
    if (hint->has_heading)
        set_heading(region, hint->heading_rad,
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

void ndtd_relocalizer_request(struct ndtd_relocalizer *relocalizer, const struct ndt_request_message *request)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    const int serial = localize->serial < INT_MAX ? localize->serial + 1 : 1;
    *localize =
        (struct ndtd_localize){.is_active = 1, .serial = serial, .request = *request, .begun_us = ndt_clock_us()};
    if (!relocalizer->parts.matcher->map)
        end(localize, "there is no map");
    else if (!relocalizer->parts.searcher || !ndtd_has_prior(relocalizer->settings))
        end(localize, "a search needs ndt.prior auto and ndt.variant robust");
}

void ndtd_relocalizer_cancel(struct ndtd_relocalizer *relocalizer)
{
    if (!relocalizer->localize.is_active)
        return;
    end(&relocalizer->localize, "cancelled");
    ndtd_searcher_cancel(relocalizer->parts.searcher);
}

int ndtd_relocalizer_is_searching(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->localize.is_active && relocalizer->localize.is_searching;
}

int ndtd_relocalizer_is_requested(const struct ndtd_relocalizer *relocalizer)
{
    return relocalizer->localize.is_active;
}

int ndtd_relocalizer_answer(const struct ndtd_relocalizer *relocalizer, struct ndt_localize_report *out)
{
    *out = relocalizer->localize.report;
    return !relocalizer->localize.is_active && out->has_result;
}

/* Probability that the scan was taken at the hypothesis: from the searches, and from the fit of the last scan. */
static double probability_of(const struct ndtd_hypothesis *hypothesis)
{
    return fmin(hypothesis->confidence, ndt_hypothesis_test_probability(&hypothesis->test));
}

/* Probabilities of poses that exclude each other sum up to 1 at most. */
static double total_confidence(const struct ndtd_hypotheses *hypotheses)
{
    double sum = 0;
    for (size_t i = 0; i < hypotheses->count; i++)
        sum += probability_of(&hypotheses->list[i]);
    return fmax(1, sum);
}

static struct ndt_localize_pose pose_of(const struct ndt_track *track, const struct ndtd_hypothesis *hypothesis,
                                        double reference_s, double total)
{
    struct ndt_track_state at_stamp;
    ndt_track_shift(track, &hypothesis->state, -reference_s, &at_stamp);
    return (struct ndt_localize_pose){.T_map_base = at_stamp.T_map_base,
                                      .confidence = probability_of(hypothesis) / total};
}

/* Reports the hypotheses, best first; the scan tells the time. */
static void report_hypotheses(struct ndtd_relocalizer *relocalizer, uint64_t seq, int64_t stamp_ns,
                              double reference_s)
{
    struct ndtd_hypotheses left = relocalizer->localize.hypotheses;
    struct ndt_localize_report *report = &relocalizer->localize.report;
    const double total = total_confidence(&left);
    report->seq = seq;
    report->stamp_ns = stamp_ns;
    for (int is_best = 1; left.count > 0; is_best = 0) {
        struct ndtd_hypothesis *next = ndtd_hypotheses_best(&left);
        const struct ndt_localize_pose pose = pose_of(relocalizer->parts.track, next, reference_s, total);
        if (is_best) {
            report->has_pose = report->has_covariance = 1;
            report->best = pose;
            ndt_track_map_covariance(&next->state, report->covariance);
        } else if (report->alternative_count < NDT_LOCALIZE_MAX_ALTERNATIVES) {
            report->alternatives[report->alternative_count++] = pose;
        }
        *next = left.list[--left.count];
    }
}

/* Lets the estimator go on from the pose, unless it is there already. */
static void apply(struct ndtd_relocalizer *relocalizer, const struct ndtd_answered_scan *scan,
                  const struct ndtd_hypothesis *hypothesis)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    const struct ndt_track *track = relocalizer->parts.track;
    localize->report.applied = 1;
    if (scan->is_trusted && !ndtd_are_distinct(&track->state.T_map_base, &hypothesis->state.T_map_base))
        return;
    localize->is_applied = 1;
    localize->applied = hypothesis->state;
    relocalizer->verified = hypothesis->state;
    relocalizer->is_verified = 1;
    relocalizer->has_given = relocalizer->recovery.is_active = 0;
}

/* ---- scans ---- */

static void take_candidates(struct ndtd_relocalizer *relocalizer, const struct ndtd_search_answer *answer)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    const struct ndtd_found found = {&answer->result, answer->request.stamp_ns, answer->request.T_base_sensor,
                                     NULL};
    localize->search_us += answer->search_us;
    localize->seq = answer->request.seq;
    ndtd_hypotheses_take(&localize->hypotheses, NULL, relocalizer->parts.track, &found, NDT_SEARCH_CANDIDATES);
}

static void take_answer(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    const struct ndtd_search_answer *answer = ndtd_searcher_take(relocalizer->parts.searcher, NDTD_SEARCH_LOCALIZE);
    if (!answer || answer->request.purpose != localize->serial)
        return; /* no answer yet, or that of a cancelled request */
    localize->is_searching = 0;
    localize->silent_us = 0;
    if (answer->status != NDT_OK)
        end(localize, answer->why.text);
    else if (answer->result.count > 0)
        take_candidates(relocalizer, answer);
    else if (!answer->result.is_cancelled && ++localize->empty >= EMPTY_MOST && localize->hypotheses.count == 0)
        end(localize, localize->is_near ? "the scan fits nowhere near the position that was told"
                                        : "the scan fits nowhere"); /* cancelled by a new map: once more */
}

static enum ndt_status start_search(struct ndtd_relocalizer *relocalizer, struct ndt_error *err)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    struct ndtd_searcher *searcher = relocalizer->parts.searcher;
    struct ndtd_search_request request =
        ndtd_search_request_of(relocalizer->parts.matcher, relocalizer->settings, NDTD_SEARCH_LOCALIZE);
    request.purpose = localize->serial;
    (void)ndtd_searcher_take(searcher, NDTD_SEARCH_RECOVERY); /* the request comes first */
    if (!ndtd_searcher_claim(searcher, NDTD_SEARCH_LOCALIZE))
        return NDT_OK;
    set_region(relocalizer, &request.region);
    localize->is_near = request.region.has_position;
    localize->is_searching = 1;
    if (localize->started_us <= 0)
        localize->started_us = ndt_clock_us();
    return ndtd_searcher_start(searcher, &request, err);
}

/* The best fit that competes with a hypothesis: of the other hypotheses, and of the estimator's pose while it
 * tracks. */
static double second_fit(const struct ndtd_localize *localize, const struct ndtd_answered_scan *scan,
                         const struct ndtd_hypothesis *best)
{
    const double second = ndtd_hypotheses_second(&localize->hypotheses, &best->state.T_map_base);
    const int is_elsewhere = scan->is_tracked && ndtd_are_distinct(&scan->T_map_base, &best->state.T_map_base);
    return is_elsewhere ? fmax(second, scan->fit) : second;
}

static void decide(struct ndtd_relocalizer *relocalizer, const struct ndtd_answered_scan *scan)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    const struct ndtd_hypothesis *best = ndtd_hypotheses_best(&localize->hypotheses);
    char why[128];
    if (!best)
        return;
    const double second = second_fit(localize, scan, best);
    const int is_accepted = ndtd_hypothesis_is_accepted(best, second, relocalizer->settings->min_confidence, 0);
    if (!is_accepted && ++localize->scans < SCANS_MOST)
        return;
    snprintf(why, sizeof(why),
             "%u searches agree, probability %.3f, confidence %.3f, the second best fits %.0f %% as well",
             best->agreements, ndt_hypothesis_test_probability(&best->test), best->confidence,
             100 * second / fmax(best->fit, 1e-9));
    report_hypotheses(relocalizer, scan->seq, scan->stamp_ns, scan->reference_s);
    localize->report.accepted = is_accepted;
    if (is_accepted && localize->request.hint.apply)
        apply(relocalizer, scan, best);
    end(localize, is_accepted ? "" : why);
}

enum ndt_status ndtd_relocalizer_follow_up(struct ndtd_relocalizer *relocalizer,
                                           const struct ndtd_answered_scan *scan,
                                           const struct ndt_track_state **applied, struct ndt_error *err)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    enum ndt_status status = NDT_OK;
    *applied = NULL;
    if (!localize->is_active)
        return NDT_OK;
    take_answer(relocalizer);
    if (localize->is_active && !localize->is_searching)
        status = start_search(relocalizer, err);
    if (status == NDT_OK && localize->is_active)
        take_answer(relocalizer); /* there is an answer already where searches have no thread */
    if (status != NDT_OK || !localize->is_active || localize->hypotheses.count == 0)
        return status;
    status = ndtd_follow_hypotheses(relocalizer, &localize->hypotheses, err);
    if (status == NDT_OK)
        decide(relocalizer, scan);
    *applied = localize->is_applied ? &localize->applied : NULL;
    return status;
}

/* ---- without scans ---- */

void ndtd_relocalizer_idle(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_localize *localize = &relocalizer->localize;
    unsigned percent;
    if (!localize->is_active || !localize->is_searching ||
        ndtd_searcher_progress(relocalizer->parts.searcher, &percent))
        return;
    if (localize->silent_us <= 0)
        localize->silent_us = ndt_clock_us();
    if (ndt_clock_us() - localize->silent_us < SILENCE_US)
        return;
    take_answer(relocalizer);
    const struct ndtd_hypothesis *best = ndtd_hypotheses_best(&localize->hypotheses);
    if (!localize->is_active || !best)
        return;
    report_hypotheses(relocalizer, localize->seq, best->state.stamp_ns, 0);
    end(localize, "no other scan came to confirm it");
}

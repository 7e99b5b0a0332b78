/* Looks, while the pose is accepted, for a place of the map that the scans fit better: a drive that began at the
 * wrong one of two places that look alike goes on there, scan after scan, and nothing along the track tells.
 *
 * Now and then the whole map is searched for a scan, beside the matching. What is found elsewhere are rivals, which
 * move as the vehicle does. Each following scan is aligned with them after its answer, in the time that is left,
 * and a rival is dropped at the first such scan that does not fit it significantly better than the accepted pose,
 * point by point. One that outlives SCANS_TO_DOUBT scans is told; the pose is not changed by it. */
#include "relocalizer_state.h"

#include <math.h>

#include "ndt/clock.h"

/* Rivals that are followed, and scans that have to fit a rival better. */
enum { RIVALS = 3, SCANS_TO_DOUBT = 3 };
/* Evaluations that an alignment of a rival may take, and the part of the time until the deadline for all of them.
 */
static const double EVALUATIONS = 20, TIME_PART = 0.5;

/* Whether the scan that the matcher holds was accepted, and is a new one. */
static int is_watching(const struct ndtd_relocalizer *relocalizer)
{
    const int64_t stamp_ns = relocalizer->parts.matcher->scan.predicted.stamp_ns;
    return relocalizer->parts.is_watched && relocalizer->settings->recovery.check_s > 0 &&
           ndtd_relocalizer_can_recover(relocalizer, 1) && !relocalizer->is_extending &&
           !relocalizer->recovery.is_active && !relocalizer->localize.is_active && relocalizer->is_verified &&
           relocalizer->verified.stamp_ns == stamp_ns &&
           !(relocalizer->watch.has_seen && relocalizer->watch.seen_ns == stamp_ns);
}

/* Adds a place of the searched scan as a rival that has come as far since as the vehicle, at its velocity. */
static void add_rival(struct ndtd_relocalizer *relocalizer, const struct ndt_pose *T_map_base_then)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    const struct ndt_track_state *accepted = &relocalizer->verified;
    const struct ndt_pose moved = ndt_pose_between(&watch->T_map_searched, &accepted->T_map_base);
    const struct ndt_pose T_map_base = ndt_pose_compose(T_map_base_then, &moved);
    struct ndtd_hypothesis rival = {.is_found = 1};
    ndt_track_start_state(relocalizer->parts.track, accepted->stamp_ns, &T_map_base, &accepted->twist, NULL,
                          &rival.state);
    rival.before = rival.state;
    ndtd_hypotheses_add(&watch->rivals, &rival);
}

/* Takes the places that a search has found elsewhere. Rivals that scans have confirmed since the last search stay.
 */
static void take_rivals(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    const struct ndtd_search_answer *answer = ndtd_searcher_take(relocalizer->parts.searcher, NDTD_SEARCH_WATCH);
    if (!answer || answer->status != NDT_OK || answer->result.is_cancelled)
        return;
    watch->report.checks++;
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(&answer->request.T_base_sensor);
    for (uint32_t i = 0; i < answer->result.count && watch->rivals.count < RIVALS; i++) {
        const struct ndt_pose T_map_base =
            ndt_pose_compose(&answer->result.candidates[i].T_map_sensor, &T_sensor_base);
        if (ndtd_are_distinct(&T_map_base, &watch->T_map_searched))
            add_rival(relocalizer, &T_map_base);
    }
}

/* Drops the rivals that the scan does not fit significantly better than the accepted pose. */
static void compare_rivals(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_hypotheses *rivals = &relocalizer->watch.rivals;
    struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    const struct ndt_pose *T_map_base = &relocalizer->verified.T_map_base;
    const struct ndt_pose T_map_sensor = ndt_pose_compose(T_map_base, &matcher->scan.T_base_sensor);
    size_t kept = 0;
    for (size_t i = 0; i < rivals->count; i++) {
        const struct ndtd_hypothesis *rival = &rivals->list[i];
        const struct ndt_pose T_map_there =
            ndt_pose_compose(&rival->state.T_map_base, &matcher->scan.T_base_sensor);
        const int is_aligned = rival->scans > 0 && rival->before.stamp_ns == relocalizer->verified.stamp_ns;
        if (!is_aligned || (rival->misses == 0 && ndtd_are_distinct(&rival->state.T_map_base, T_map_base) &&
                            ndtd_matcher_significance(matcher, &T_map_there, &T_map_sensor) >= NDTD_SIGNIFICANT))
            rivals->list[kept++] = *rival;
    }
    rivals->count = kept;
}

static void report(struct ndtd_relocalizer *relocalizer)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    const struct ndtd_hypothesis *convincing = NULL;
    for (size_t i = 0; i < watch->rivals.count; i++)
        if (watch->rivals.list[i].scans >= SCANS_TO_DOUBT)
            convincing = &watch->rivals.list[i];
    if (convincing && !watch->is_doubted) {
        watch->report.elsewhere++;
        watch->report.elsewhere_m =
            ndt_pose_distance_m(&relocalizer->verified.T_map_base, &convincing->state.T_map_base);
    }
    watch->is_doubted = convincing != NULL;
}

static int has_time(const struct ndtd_relocalizer *relocalizer)
{
    const struct ndtd_matcher *matcher = relocalizer->parts.matcher;
    const double needed_us = EVALUATIONS * matcher->evaluation_us * (double)relocalizer->watch.rivals.count;
    return matcher->deadline_us <= 0 || needed_us < TIME_PART * (matcher->deadline_us - ndt_clock_us());
}

static enum ndt_status follow_rivals(struct ndtd_relocalizer *relocalizer, struct ndt_error *err)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    if (watch->rivals.count == 0 || !has_time(relocalizer))
        return NDT_OK;
    enum ndt_status status = ndtd_matcher_need_points(relocalizer->parts.matcher, err);
    if (status == NDT_OK)
        status = ndtd_follow_hypotheses(relocalizer, &watch->rivals, err);
    if (status == NDT_OK)
        compare_rivals(relocalizer);
    return status;
}

static enum ndt_status start_check(struct ndtd_relocalizer *relocalizer, struct ndt_error *err)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    struct ndtd_searcher *searcher = relocalizer->parts.searcher;
    const double since_s = ndt_track_seconds(watch->started_ns, relocalizer->verified.stamp_ns);
    if (watch->has_started && fabs(since_s) < relocalizer->settings->recovery.check_s)
        return NDT_OK;
    (void)ndtd_searcher_take(searcher, NDTD_SEARCH_RECOVERY); /* answers that nobody waits for any more */
    (void)ndtd_searcher_take(searcher, NDTD_SEARCH_LOCALIZE);
    if (!ndtd_searcher_claim(searcher, NDTD_SEARCH_WATCH))
        return NDT_OK;
    watch->has_started = 1;
    watch->started_ns = relocalizer->verified.stamp_ns;
    watch->T_map_searched = relocalizer->verified.T_map_base;
    const struct ndtd_search_request request =
        ndtd_search_request_of(relocalizer->parts.matcher, relocalizer->settings, NDTD_SEARCH_WATCH);
    return ndtd_searcher_start(searcher, &request, err);
}

enum ndt_status ndtd_relocalizer_watch_scan(struct ndtd_relocalizer *relocalizer, struct ndt_error *err)
{
    struct ndtd_watch *watch = &relocalizer->watch;
    if (!is_watching(relocalizer)) {
        watch->rivals.count = 0;
        watch->is_doubted = 0;
        if (relocalizer->parts.searcher)
            (void)ndtd_searcher_take(relocalizer->parts.searcher, NDTD_SEARCH_WATCH); /* too old by then */
        return NDT_OK;
    }
    watch->has_seen = 1;
    watch->seen_ns = relocalizer->verified.stamp_ns;
    take_rivals(relocalizer);
    const enum ndt_status status = follow_rivals(relocalizer, err);
    report(relocalizer);
    return status == NDT_OK ? start_check(relocalizer, err) : status;
}

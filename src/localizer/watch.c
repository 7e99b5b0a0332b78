/* Looks, while the pose is accepted, for a place of the map that the scans fit better: a drive that began at the
 * wrong one of two places that look alike goes on there, scan after scan, and nothing along the track tells.
 *
 * Now and then the whole map is searched for a scan, beside the matching. What is found elsewhere are rivals. Each
 * following scan is aligned with them, and a rival is dropped at the first scan that does not fit it significantly
 * better than the accepted pose, point by point. One that outlives SCANS_TO_DOUBT scans is told; the pose is not
 * changed by it. */
#include "relocalizer_state.h"

#include <math.h>

/* Rivals that a search may add, and scans in a row that have to fit a rival better. */
enum { RIVALS = 3, SCANS_TO_DOUBT = 3 };

static int is_watching(const struct ndtd_relocalization *now)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const struct ndtd_settings *settings = relocalizer->settings;
    return relocalizer->parts.is_watched && relocalizer->parts.searcher && settings->recovery.enable &&
           settings->recovery.check_s > 0 && relocalizer->is_verified && !relocalizer->is_extending &&
           !relocalizer->recovery.is_active && !relocalizer->localize.is_active && now->alignment->is_updated &&
           !now->decision->is_replaced && !now->decision->is_unproven;
}

static void take_rivals(const struct ndtd_relocalization *now)
{
    struct ndtd_watch *watch = &now->relocalizer->watch;
    const struct ndtd_search_answer *answer =
        ndtd_searcher_take(now->relocalizer->parts.searcher, NDTD_SEARCH_WATCH);
    if (!answer || answer->status != NDT_OK || answer->result.count == 0)
        return;
    struct ndtd_hypothesis accepted = {.state = now->alignment->updated};
    const struct ndtd_found found = {&answer->result, answer->request.stamp_ns, answer->request.T_base_sensor,
                                     NULL};
    ndtd_hypotheses_take(&watch->rivals, &accepted, now->matcher->track, &found, RIVALS);
    watch->report.checks++;
}

/* Drops the rivals that the scan does not fit significantly better than the accepted pose. */
static void compare_rivals(const struct ndtd_relocalization *now)
{
    struct ndtd_hypotheses *rivals = &now->relocalizer->watch.rivals;
    const struct ndt_pose *T_map_base = &now->alignment->updated.T_map_base;
    const struct ndt_pose T_map_sensor = ndt_pose_compose(T_map_base, &now->scan->T_base_sensor);
    size_t kept = 0;
    for (size_t i = 0; i < rivals->count; i++) {
        const struct ndtd_hypothesis *rival = &rivals->list[i];
        const int is_aligned = rival->before.stamp_ns == now->alignment->predicted.stamp_ns; /* there was time */
        const struct ndt_pose T_map_there = ndt_pose_compose(&rival->state.T_map_base, &now->scan->T_base_sensor);
        if (!is_aligned ||
            (rival->misses == 0 && ndtd_are_distinct(&rival->state.T_map_base, T_map_base) &&
             ndtd_matcher_significance(now->matcher, &T_map_there, &T_map_sensor) >= NDTD_SIGNIFICANT))
            rivals->list[kept++] = *rival;
    }
    rivals->count = kept;
}

static void report(struct ndtd_watch *watch, const struct ndt_pose *T_map_base)
{
    const struct ndtd_hypothesis *convincing = NULL;
    for (size_t i = 0; i < watch->rivals.count; i++)
        if (watch->rivals.list[i].scans > SCANS_TO_DOUBT)
            convincing = &watch->rivals.list[i];
    if (convincing && !watch->is_doubted) {
        watch->report.elsewhere++;
        watch->report.elsewhere_m = ndt_pose_distance_m(T_map_base, &convincing->state.T_map_base);
    }
    watch->is_doubted = convincing != NULL;
}

static enum ndt_status follow_rivals(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_watch *watch = &now->relocalizer->watch;
    if (watch->rivals.count == 0)
        return NDT_OK;
    enum ndt_status status = ndtd_follow_hypotheses(now->relocalizer, &watch->rivals, err);
    if (status == NDT_OK)
        status = ndtd_matcher_need_points(now->matcher, err);
    if (status != NDT_OK)
        return status;
    compare_rivals(now);
    report(watch, &now->alignment->updated.T_map_base);
    return NDT_OK;
}

static enum ndt_status start_check(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const int64_t stamp_ns = now->alignment->predicted.stamp_ns;
    const double period_s = relocalizer->settings->recovery.check_s;
    const double since_s = ndt_track_seconds(relocalizer->watch.started_ns, stamp_ns);
    if (relocalizer->watch.has_started && fabs(since_s) < period_s)
        return NDT_OK;
    if (!ndtd_searcher_is_free(relocalizer->parts.searcher, NDTD_SEARCH_WATCH))
        return NDT_OK;
    relocalizer->watch.has_started = 1;
    relocalizer->watch.started_ns = stamp_ns;
    const struct ndtd_search_request request =
        ndtd_search_request_of(now->matcher, relocalizer->settings, NDTD_SEARCH_WATCH);
    return ndtd_searcher_start(relocalizer->parts.searcher, &request, err);
}

enum ndt_status ndtd_watch_places(const struct ndtd_relocalization *now, struct ndt_error *err)
{
    struct ndtd_watch *watch = &now->relocalizer->watch;
    if (!is_watching(now)) {
        watch->rivals.count = 0;
        watch->is_doubted = 0;
        return NDT_OK;
    }
    take_rivals(now);
    const enum ndt_status status = follow_rivals(now, err);
    return status == NDT_OK ? start_check(now, err) : status;
}

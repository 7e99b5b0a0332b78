#include "scan_order.h"

#include <stdio.h>
#include <string.h>

int ndtd_scan_is_repeated(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan,
                          struct ndtd_scan_record *record)
{
    const struct ndtd_last_scan *last = &pipeline->last_scan;
    if (!last->is_known || pipeline->has_start || ndtd_relocalizer_is_requested(pipeline->relocalizer) ||
        pipeline->settings->frames.merge_sensors || scan->stamp_ns != last->stamp_ns ||
        strcmp(scan->frame_id, last->frame_id) != 0)
        return 0;
    pipeline->events.repeated++;
    ndtd_refuse(&record->result, NDT_REJECTED, "its stamp is that of the scan before");
    return 1;
}

void ndtd_scan_order_keep(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan)
{
    struct ndtd_last_scan *last = &pipeline->last_scan;
    last->is_known = 1;
    last->stamp_ns = scan->stamp_ns;
    memcpy(last->frame_id, scan->frame_id, sizeof(last->frame_id));
}

void ndtd_scan_order_forget(struct ndtd_pipeline *pipeline)
{
    pipeline->last_scan.is_known = 0;
}

void ndtd_scan_end_late(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment)
{
    const double late_s = -ndt_track_seconds(pipeline->track.state.stamp_ns, alignment->predicted.stamp_ns);
    char reason[96];
    pipeline->events.late++;
    pipeline->events.late_s = late_s;
    const int fits = ndtd_has_prior(pipeline->settings)
                         ? ndtd_alignment_is_confirmed(alignment, &pipeline->matcher.scan, pipeline->settings)
                         : alignment->result.outcome == NDT_CONVERGED;
    if (fits && !ndtd_relocalizer_is_active(pipeline->relocalizer))
        return;
    snprintf(reason, sizeof(reason), "%.3f s older than the estimate, %s", late_s,
             fits ? "which is not certain" : "and it does not fit there");
    ndtd_refuse(&alignment->result, NDT_REJECTED, reason);
    alignment->is_updated = 0;
}

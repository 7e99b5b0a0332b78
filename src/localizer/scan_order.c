#include "scan_order.h"

#include <stdio.h>
#include <string.h>

#include "scan_estimate.h"

int ndtd_scan_is_repeated(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan,
                          struct ndtd_scan_record *record)
{
    const struct ndtd_last_scan *last = &pipeline->last_scan;
    if (!last->is_known || pipeline->has_start || pipeline->localize.is_active ||
        pipeline->settings->frames.merge_sensors || scan->stamp_ns != last->stamp_ns ||
        strcmp(scan->frame_id, last->frame_id) != 0)
        return 0;
    pipeline->events.repeated++;
    ndtd_scan_refuse(record, NDT_REJECTED, "its stamp is that of the scan before");
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

void ndtd_scan_end_late(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job)
{
    const double late_s = -ndt_track_seconds(pipeline->track.state.stamp_ns, job->predicted.stamp_ns);
    char reason[96];
    pipeline->events.late++;
    pipeline->events.late_s = late_s;
    const int fits = ndtd_scan_has_prior(pipeline) ? ndtd_scan_is_confirmed(pipeline, job)
                                                   : job->record->result.outcome == NDT_CONVERGED;
    if (fits && !pipeline->recovery.is_active)
        return;
    snprintf(reason, sizeof(reason), "%.3f s older than the estimate, %s", late_s,
             fits ? "which is not certain" : "and it does not fit there");
    ndtd_scan_refuse(job->record, NDT_REJECTED, reason);
    job->is_updated = 0;
}

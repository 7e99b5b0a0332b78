/* Private: scans whose stamps do not go forward.
 *
 * A clock that stands still, a sender that sends everything twice, messages out of order: such scans tell nothing
 * new about the estimate, and guesses or searches for them would cost the time of the scans that do. */
#ifndef NDTD_SCAN_ORDER_H
#define NDTD_SCAN_ORDER_H

#include "pipeline_state.h"

/* Whether the last scan of its sensor had the same stamp: then the scan is counted, answered `rejected`, and not
 * processed. Always 0 after a new pose, with merged sensors, and while a search for the pose was asked for. */
int ndtd_scan_is_repeated(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan,
                          struct ndtd_scan_record *record);
/* Remembers a scan that was matched. */
void ndtd_scan_order_keep(struct ndtd_pipeline *pipeline, const struct ndt_scan_header *scan);
/* Forgets the last scan, so that the next one may have any stamp. */
void ndtd_scan_order_forget(struct ndtd_pipeline *pipeline);
/* Ends a scan that is older than the estimate (ndt_track_is_late) after its first pass, the only one: it is refused
 * where it does not fit. Counted. */
void ndtd_scan_end_late(struct ndtd_pipeline *pipeline, struct ndtd_alignment *alignment);

#endif

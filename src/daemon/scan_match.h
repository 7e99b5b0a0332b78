/* Private: one scan while it is processed, and its way from the prediction to the pose. */
#ifndef NDTD_SCAN_MATCH_H
#define NDTD_SCAN_MATCH_H

#include "scan_align.h"

/* Sets the outcome of a scan without an alignment; the pose stays the prediction. */
void ndtd_scan_refuse(struct ndtd_scan_record *record, enum ndt_outcome outcome, const char *reason);
/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               struct ndt_error *err);

#endif

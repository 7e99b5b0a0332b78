/* Private: one scan while it is processed, and its way from the prediction to the pose. */
#ifndef NDTD_SCAN_MATCH_H
#define NDTD_SCAN_MATCH_H

#include "scan_align.h"

/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               struct ndt_error *err);
/* Sets the state after a scan, of the pipeline and in the record, and the guess of the record. In scan_state.c. */
void ndtd_scan_follow_state(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);

#endif

/* Private: one scan while it is processed, and its way from the prediction to the pose. */
#ifndef NDTD_SCAN_MATCH_H
#define NDTD_SCAN_MATCH_H

#include "scan_align.h"

/* From the prediction to the pose. A failure concerns the scan, memory or the device. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_match(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               struct ndt_error *err);

#endif

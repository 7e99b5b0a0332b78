/* Private: signs that an input or a setting is wrong, which take several scans to see. Counted as events; they
 * change no result. */
#ifndef NDTD_DOUBTS_H
#define NDTD_DOUBTS_H

#include "ndtd/pipeline.h"

/* Gives a scan without a usable point that reason. */
void ndtd_explain_no_points(const struct ndtd_pipeline *pipeline, struct ndt_align_result *result);
/* Looks at a scan that was answered. */
void ndtd_doubt_scan(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record);

#endif

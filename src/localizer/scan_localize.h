/* Private: the search for the pose on request, see ndtd_pipeline_localize. It looks at scans beside the estimator,
 * in every state, and changes it only when it has ended. */
#ifndef NDTD_SCAN_LOCALIZE_H
#define NDTD_SCAN_LOCALIZE_H

#include "scan_align.h"

/* Keeps a scan whose state is known for ndtd_pipeline_follow_up. Does nothing without a request. */
void ndtd_scan_keep(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);

#endif

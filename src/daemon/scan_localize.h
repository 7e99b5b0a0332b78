/* Private: the search for the pose on request, see ndtd_pipeline_localize. It looks at scans beside the estimator,
 * in every state, and changes it only when it has ended. */
#ifndef NDTD_SCAN_LOCALIZE_H
#define NDTD_SCAN_LOCALIZE_H

#include "scan_align.h"

/* After the state of a scan is known: a search begins or ends, its places follow the scan, and one is believed or
 * none. Does nothing without a request. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_localize(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                  struct ndt_error *err);

#endif

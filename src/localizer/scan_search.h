/* Private: a scan as it is searched with, whatever way its sensor is mounted. */
#ifndef NDTD_SCAN_SEARCH_H
#define NDTD_SCAN_SEARCH_H

#include "scan_align.h"

/* The points of the scan, put upright by the mounting of the sensor and, where the base itself leans, by gravity;
 * without a window. */
struct ndtd_search_request ndtd_scan_search_request(const struct ndtd_pipeline *pipeline,
                                                    const struct ndtd_scan_job *job, enum ndtd_search_owner owner);
/* Where the points were measured from, in the base frame: windows are about that place. */
void ndtd_scan_viewpoint(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job,
                         double viewpoint_m[3]);

#endif

/* Private: a search request for the scan of a matcher, for any mounting of the sensor. */
#ifndef NDTD_SEARCH_REQUEST_H
#define NDTD_SEARCH_REQUEST_H

#include "matcher.h"
#include "ndtd/searcher.h"

/* The request for the matcher's scan, without a region: the points are put upright by the mounting of the sensor
 * and, where the base itself leans, by gravity. */
struct ndtd_search_request ndtd_search_request_of(const struct ndtd_matcher *matcher,
                                                  const struct ndtd_settings *settings,
                                                  enum ndtd_search_owner owner);
/* The viewpoint of the points in the base frame, about which regions are. */
void ndtd_scan_viewpoint(const struct ndtd_scan *scan, const struct ndtd_extrinsics *frames, double viewpoint_m[3]);

#endif

/* Written by tools/confidence/fit_confidence.py from tools/confidence/features.csv.gz; see
 * ndt_track/confidence.h. */
#ifndef NDT_CONFIDENCE_FIT_H
#define NDT_CONFIDENCE_FIT_H

static const double FIT_ONE = -6.858;
static const double FIT_QUALITY = 21.354;
static const double FIT_LEAF = -3.180;
static const double FIT_SLACK = -3.593;
static const double FIT_INNOVATION = -1.794;

#endif

/* Written by tools/dev/fits/fit.py confidence from tools/dev/fits/confidence.csv.gz; see
 * ndt_track/confidence.h. */
#ifndef NDT_CONFIDENCE_FIT_H
#define NDT_CONFIDENCE_FIT_H

static const double FIT_ONE = -8.358;
static const double FIT_QUALITY = 25.501;
static const double FIT_LEAF = -4.304;
static const double FIT_SLACK = -4.196;
static const double FIT_INNOVATION = -0.450;

#endif

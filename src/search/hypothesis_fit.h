/* Written by tools/dev/fits/fit.py hypothesis from tools/dev/fits/hypothesis.csv.gz; see
 * ndt_search/hypothesis_test.h. */
#ifndef NDT_HYPOTHESIS_FIT_H
#define NDT_HYPOTHESIS_FIT_H

static const double FIT_ONE = -6.417;
static const double FIT_SIGNIFICANCE = 2.415;
static const double FIT_UNEXPLAINED = -15.421;

#endif

/* Written by tools/evidence/fit_evidence.py from tools/evidence/features.csv.gz; see
 * ndt_search/evidence.h. */
#ifndef NDT_EVIDENCE_FIT_H
#define NDT_EVIDENCE_FIT_H

static const double FIT_ONE = -5.971;
static const double FIT_SIGNIFICANCE = 1.476;
static const double FIT_UNEXPLAINED = -10.707;

#endif

/* Written by tools/evidence/fit_evidence.py from tools/evidence/features.csv.gz; see
 * ndt_search/evidence.h. */
#ifndef NDT_EVIDENCE_FIT_H
#define NDT_EVIDENCE_FIT_H

static const double FIT_ONE = -6.008;
static const double FIT_SIGNIFICANCE = 2.112;
static const double FIT_UNEXPLAINED = -12.717;

#endif

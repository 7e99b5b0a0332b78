/** @file
 * @brief Whether a result is believed: its confidence, and the outcome that follows from it. */
#ifndef NDTD_CONFIDENCE_CHECK_H
#define NDTD_CONFIDENCE_CHECK_H

#include "ndtd/pipeline.h"

/** Sets record->confidence, if the alignment was observed; below score_estimation.min_confidence `converged`
 * becomes low_score. prior: covariance of the prediction, as in struct ndt_prior. estimate: pose of the sensor
 * after the update of the estimator; NULL: not updated, the result is the aligned pose. Returns 0 when the
 * estimator must not follow: the scan does not fit there, along whatever it may slide. In a tunnel a pose may be
 * too uncertain to be believed, and inform the estimator nevertheless. */
int ndtd_check_confidence(const struct ndtd_settings *settings, const double prior[36],
                          const struct ndt_pose *estimate, struct ndtd_scan_record *record);

#endif

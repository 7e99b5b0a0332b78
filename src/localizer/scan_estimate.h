/* Private: from an alignment to the estimate, and what speaks for it. */
#ifndef NDTD_SCAN_ESTIMATE_H
#define NDTD_SCAN_ESTIMATE_H

#include "scan_align.h"

/* Whether an alignment may update the estimate. */
int ndtd_scan_is_trusted(enum ndt_outcome outcome);
/* Updates the estimate with what a pass found. Both passes start from the prediction: they see the same scan. */
void ndtd_scan_update(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job, enum pass pass);
/* Keeps the points for the autotuner. */
void ndtd_scan_keep_points(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);
/* The confidence of the result; NAN: unknown. *fits: whether the scan fits the map there, along whatever it may
 * slide and however far it is from the prediction. */
double ndtd_scan_confidence(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job, int *fits);
/* Whether the scan fits and agrees with the prediction: then nothing else has to be tried. */
int ndtd_scan_is_confirmed(const struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job);
/* Sets the confidence of the result; with less than the minimum it is not believed. The estimator is updated where
 * the scan fits, along whatever it may slide and however far it is from the prediction: a tunnel informs it, and a
 * sudden turn does, but a wrong match must not. */
void ndtd_scan_assess(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job);

#endif

/* Private: what follows when a scan could not be confirmed near the prediction: places where the vehicle may be are
 * searched, followed from scan to scan, and one is believed only when nothing else is left. */
#ifndef NDTD_SCAN_RECOVER_H
#define NDTD_SCAN_RECOVER_H

#include "scan_estimate.h"

/* Whether there is a way to a first pose, or back to one. */
int ndtd_scan_can_recover(const struct ndtd_pipeline *pipeline);
/* Aligns the scan at all these places; those that it does not fit any more are removed. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_follow_places(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                       struct ndtd_candidates *places, struct ndt_error *err);
/* The estimator goes on from another place; the scan is aligned there again, as its result. *next becomes the place
 * before, or without one is taken off the list of places. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_change_lead(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                     struct ndtd_candidate *next, struct ndt_error *err);
/* After the passes of a scan. While the estimator tracks: nothing. Otherwise the places follow the scan, a search
 * begins or ends, and the best place becomes the estimate; job->is_unbelieved is set until it is believed. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_recover(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                 struct ndt_error *err);
/* After the assessment: a place that is not believed yet is reported as lost, however well the scan fits. */
void ndtd_scan_doubt(const struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job);

#endif

/* Private: the track that an initial pose in the middle of a drive has ended.
 *
 * A pose that somebody gives is a claim: by mistake, late, or from another map. The track before it goes on beside
 * it until scans tell which of them is right. */
#ifndef NDTD_SCAN_FORMER_H
#define NDTD_SCAN_FORMER_H

#include "scan_recover.h"

/* Before the estimator begins anew at an initial pose: keeps its track, if scans have confirmed it up to now. */
void ndtd_former_keep(struct ndtd_pipeline *pipeline, int64_t stamp_ns);
/* A scan has confirmed a pose: the former track ends. */
void ndtd_former_forget(struct ndtd_pipeline *pipeline);
/* Aligns the scan with the former track: before anything else, so that it has time whatever the pose that was given
 * costs. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_follow_former(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                       struct ndt_error *err);
/* Where the scan fits at the former track and not at the pose that was given, or significantly better, the
 * estimator returns to it; where it fits here only, the former track ends. Where both fit alike, job->is_open is
 * set. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_compare_former(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                        struct ndt_error *err);

#endif

/* Private: scans that wait in the queue, aligned together ahead of their turn.
 *
 * All of them are decoded and preprocessed, at once where the backend has lanes, each with the motion and the pose
 * that are predicted from the state before the first of them. One batch aligns them. When its turn comes, a scan
 * has its real prediction, and ndtd_drain_take decides whether the alignment counts. */
#ifndef NDTD_DRAIN_H
#define NDTD_DRAIN_H

#include "scan_align.h"

NDT_MUST_CHECK enum ndt_status ndtd_drain_create(struct ndtd_drain **out, struct ndt_error *err);
void ndtd_drain_destroy(struct ndtd_drain *drain);
/* After a change of the estimator, the map, the backend or the settings: what was done ahead does not count. */
void ndtd_drain_forget(struct ndtd_drain *drain);
/* The same, and gives the memory of the largest scans back. */
void ndtd_drain_release(struct ndtd_drain *drain);

/* Decodes the scans among `frames`, up to one that cannot go together with the first. Returns how many frames from
 * the first on go together: 0 when that does not pay, at most as many scans as was measured to pay. Then each of
 * them is predicted or, if it is no scan, processed, and ndtd_drain_align follows. */
size_t ndtd_drain_begin(struct ndtd_pipeline *pipeline, struct ndtd_frame *const *frames, size_t count);
/* Predicts the scan, and makes the prediction the state. */
void ndtd_drain_predict(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame);
/* Aligns all that were predicted and restores the estimator. */
void ndtd_drain_align(struct ndtd_pipeline *pipeline);

/* Moves the points of a scan that was decoded ahead into pipeline->scan; 0: it was not. */
int ndtd_drain_take_points(struct ndtd_pipeline *pipeline, const struct ndtd_frame *frame,
                           struct ndtd_scan_record *record);
/* For the scan of ndtd_drain_take_points, predicted: takes over the points that were preprocessed ahead, and the
 * alignment where it counts; otherwise the points are deskewed with the real motion. */
NDT_MUST_CHECK enum ndt_status ndtd_drain_take(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                               struct ndt_error *err);

#endif

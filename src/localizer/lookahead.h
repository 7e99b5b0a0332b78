/* Private: aligns scans that wait in the queue together, ahead of their turn.
 *
 * Waiting scans are decoded and preprocessed, in parallel where the backend has lanes, each with the motion and the
 * pose that are predicted from the state before the first of them. One batch aligns them. When its turn comes,
 * a scan has its real prediction, and ndtd_lookahead_take decides whether the alignment counts. */
#ifndef NDTD_LOOKAHEAD_H
#define NDTD_LOOKAHEAD_H

#include "matcher.h"
#include "ndtd/pipeline.h"

struct ndtd_lookahead;

NDT_MUST_CHECK enum ndt_status ndtd_lookahead_create(struct ndtd_lookahead **out, struct ndt_error *err);
void ndtd_lookahead_destroy(struct ndtd_lookahead *lookahead);
/* Drops the work done ahead, after a change of the estimator, the map, the backend or the settings. */
void ndtd_lookahead_forget(struct ndtd_lookahead *lookahead);
/* Drops the work done ahead and gives the memory of the largest scans back. */
void ndtd_lookahead_release(struct ndtd_lookahead *lookahead);

/* Decodes the scans among `frames`, up to one that cannot go together with the first. Returns the number of frames,
 * from the first on, that go together: 0 when a batch does not pay, at most as many scans as was measured to pay.
 * The caller then predicts each of them, or takes it in if it is no scan, and calls ndtd_lookahead_align. */
size_t ndtd_lookahead_begin(struct ndtd_pipeline *pipeline, struct ndtd_message *const *frames, size_t count);
/* Predicts the scan, and makes the prediction the state. */
void ndtd_lookahead_predict(struct ndtd_pipeline *pipeline, const struct ndtd_message *frame);
/* Aligns all predicted scans and restores the estimator. */
void ndtd_lookahead_align(struct ndtd_pipeline *pipeline);

/* Moves the points of a scan that was decoded ahead into matcher->raw; 0: it was not decoded ahead. */
int ndtd_lookahead_take_points(struct ndtd_lookahead *lookahead, const struct ndtd_message *frame,
                               struct ndtd_matcher *matcher, struct ndtd_scan_record *record);
/* Takes over the points of a predicted scan that were preprocessed ahead (see ndtd_lookahead_take_points), and the
 * alignment where it counts; otherwise the points are deskewed with the real motion. */
NDT_MUST_CHECK enum ndt_status ndtd_lookahead_take(struct ndtd_lookahead *lookahead, struct ndtd_matcher *matcher,
                                                   struct ndtd_alignment *alignment, struct ndt_error *err);

#endif

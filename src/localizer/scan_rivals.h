/* Private: whether the scan itself tells the place where it was aligned from others that it could slide to.
 *
 * Along a corridor the curvature of the score is that of the lattice of voxels as much as of the doors: it says how
 * sharp an optimum is, and not whether it is the right one. So the scan is scored along each direction that it
 * hardly observes, as far as the prediction leaves open, and what it says along the direction counts only where
 * every other place fits significantly worse. Otherwise nothing but the prediction holds the pose along it. */
#ifndef NDTD_SCAN_RIVALS_H
#define NDTD_SCAN_RIVALS_H

#include "scan_estimate.h"

/* Deviations by which a place must fit better than another to count as the right one. */
#define NDTD_SIGNIFICANT 3.0
/* By how many deviations the scan fits better at a than at b. The points are on the host. */
double ndtd_scan_lead(struct ndtd_pipeline *pipeline, const struct ndtd_scan_job *job, const struct ndt_pose *a,
                      const struct ndt_pose *b);
/* Moves the result to a place along a weak direction that fits significantly better, and removes from its
 * observation the directions along which other places fit as well. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_rivals(struct ndtd_pipeline *pipeline, struct ndtd_scan_job *job,
                                                struct ndt_error *err);

#endif

/* Private: LiDAR odometry as an input of the estimator, while scans are hard to localise.
 *
 * Where neither wheels nor an IMU tell the motion, the prediction of a sensor that a person carries is off by more
 * than an alignment bears, and every scan is aligned from many guesses. A scan tells the motion since the scan
 * before by itself: both show the same walls, on the same day. While scans need more than one guess, or the pose is
 * not known, odometry (ndt_odometry) runs beside the estimator, and its poses are odometry to it. After some scans
 * in a row that one guess sufficed for it ends: a vehicle that is tracked never pays for it.
 *
 * Only motions that odometry is sure of count: short intervals, points around the sensor, a good fit and a small
 * deviation; a narrow view finds its match in the next room as well. One owner, one thread. */
#ifndef NDTD_SCAN_ODOMETRY_H
#define NDTD_SCAN_ODOMETRY_H

#include "ndtd/pipeline.h"

struct ndtd_scan_odometry;
struct ndtd_pipeline;

NDT_MUST_CHECK enum ndt_status ndtd_scan_odometry_create(struct ndtd_scan_odometry **out,
                                                         const struct ndtd_settings *settings,
                                                         struct ndt_error *err);
/* `odometry` may be NULL. */
void ndtd_scan_odometry_destroy(struct ndtd_scan_odometry *odometry);
int ndtd_scan_odometry_runs(const struct ndtd_scan_odometry *odometry);
/* Gives the scan of the matcher to odometry, and the motion to the estimator; before the prediction, once the sweep
 * is known. Returns the time that it took [us]. */
double ndtd_scan_odometry_follow(struct ndtd_pipeline *pipeline);
/* Gives the memory of the largest scan back. */
void ndtd_scan_odometry_release(struct ndtd_pipeline *pipeline);
/* Starts or ends odometry after the answer to a scan. */
void ndtd_scan_odometry_watch(struct ndtd_pipeline *pipeline, const struct ndtd_scan_record *record);

#endif

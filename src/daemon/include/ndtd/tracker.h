/** @file
 * @brief Predicts the pose of the sensor at a stamp from earlier results: by odometry if available, otherwise with
 * constant velocity in SE(3). Only data stamps count: no clock, no allocation, one thread.
 *
 * A scan at or before the last stamp (duplicate, out of order) gets a prediction and does not change the state. A
 * gap above max_prediction_s keeps the pose and resets the velocity. A stamp that is more than max_prediction_s
 * earlier is not a late scan: time restarted (a recording plays again, one stamp was far in the future). The last
 * pose is then the prediction, the result becomes the state, without velocity, and the first odometry of the new
 * time replaces the older samples. Source: tracker.c. */
#ifndef NDTD_TRACKER_H
#define NDTD_TRACKER_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TRACKER_ODOMETRY 256 /**< odometry samples kept */

/** One odometry sample. */
struct ndtd_odometry {
    int64_t stamp_ns;
    int has_pose, has_twist;
    struct ndt_pose T_odom_sensor;
    struct ndt_twist twist;
};

/** The state: last pose, velocity and odometry. */
struct ndtd_tracker {
    double max_prediction_s;
    int has_pose;
    int64_t stamp_ns;
    struct ndt_pose T_map_sensor;
    int has_twist;
    struct ndt_twist twist;
    struct ndtd_odometry odometry[NDTD_TRACKER_ODOMETRY]; /**< ring */
    uint32_t odometry_head, odometry_count;
};

/** Clears the state. */
void ndtd_tracker_init(struct ndtd_tracker *tracker, double max_prediction_s);
/** Sets a pose, and a velocity unless `twist` is NULL (unknown). */
void ndtd_tracker_reset(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_pose *T_map_sensor,
                        const struct ndt_twist *twist);
/** Stores a sample. Samples that are not newer than the last one are ignored. */
void ndtd_tracker_odometry(struct ndtd_tracker *tracker, const struct ndtd_odometry *odometry);
/** Predicts the pose at a stamp. Returns 0 when no pose is known yet. twist: the velocity there, zero when unknown.
 */
int ndtd_tracker_predict(const struct ndtd_tracker *tracker, int64_t stamp_ns, struct ndt_pose *T_map_sensor,
                         struct ndt_twist *twist);
/** The velocity after ndtd_tracker_update with this result, without changing the state. Returns 0 when unknown. */
int ndtd_tracker_motion(const struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_align_result *result,
                        struct ndt_twist *twist);
/** Updates the state with a result. Only converged, iteration_limit and deadline set pose and velocity; after other
 * outcomes the state follows the prediction. */
void ndtd_tracker_update(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_align_result *result);

#ifdef __cplusplus
}
#endif
#endif

/* Where the sensor should be at a stamp, from what was found before: constant velocity in SE(3) by data
 * stamps, or odometry where it comes. Pure state machine: no clock, no allocation, one thread.
 *
 * Stamps: a scan at or before the last one (duplicate, out of order) is answered with a prediction from the
 * state as it is and does not change it; a gap above max_prediction_s keeps the pose and forgets the velocity. A
 * stamp that lies back by more than max_prediction_s is no late scan: time began anew (a recording was started
 * again, one stamp was far in the future). The last pose is the guess, what is found there is taken over, without
 * velocity; odometry from before is forgotten with the first odometry of the new time. */
#ifndef NDTD_TRACKER_H
#define NDTD_TRACKER_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TRACKER_ODOMETRY 256 /* odometry samples kept */

struct ndtd_odometry {
    int64_t stamp_ns;
    int has_pose, has_twist;
    struct ndt_pose T_odom_sensor;
    struct ndt_twist twist;
};

struct ndtd_tracker {
    double max_prediction_s;
    int has_pose;
    int64_t stamp_ns;
    struct ndt_pose T_map_sensor;
    int has_twist;
    struct ndt_twist twist;
    struct ndtd_odometry odometry[NDTD_TRACKER_ODOMETRY]; /* ring */
    uint32_t odometry_head, odometry_count;
};

void ndtd_tracker_init(struct ndtd_tracker *tracker, double max_prediction_s);
/* A new start: position, and velocity when it is known (twist may be NULL). */
void ndtd_tracker_reset(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_pose *T_map_sensor,
                        const struct ndt_twist *twist);
void ndtd_tracker_odometry(struct ndtd_tracker *tracker, const struct ndtd_odometry *odometry);
/* 0 when there is no initial pose yet. twist: the motion at that stamp (zero when unknown). */
int ndtd_tracker_guess(const struct ndtd_tracker *tracker, int64_t stamp_ns, struct ndt_pose *T_map_sensor,
                       struct ndt_twist *twist);
/* Takes over what the matcher found; only outcomes that can be trusted change the velocity. */
void ndtd_tracker_update(struct ndtd_tracker *tracker, int64_t stamp_ns, const struct ndt_align_result *result);

#ifdef __cplusplus
}
#endif
#endif

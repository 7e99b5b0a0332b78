/** @file
 * @brief Samples of the estimator from messages of odometry and IMU, in the base frame. Pure but for the
 * transforms. */
#ifndef NDTD_MOTION_SAMPLE_H
#define NDTD_MOTION_SAMPLE_H

#include "ndt_track/track.h"
#include "ndtd/transforms.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The sample of an odometry message, which is in the base frame already. */
struct ndt_track_odometry_sample ndtd_odometry_sample(const struct ndt_pose_message *message);
/** The sample of an IMU message, turned from the frame of the IMU to that of the base. */
struct ndt_track_imu_sample ndtd_imu_sample(const struct ndt_imu_message *message,
                                            struct ndtd_transforms *transforms,
                                            const struct ndtd_extrinsics *frames);

#ifdef __cplusplus
}
#endif
#endif

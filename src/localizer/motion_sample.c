#include "ndtd/motion_sample.h"

#include <string.h>

struct ndt_track_odometry_sample ndtd_odometry_sample(const struct ndt_pose_message *message)
{
    return (struct ndt_track_odometry_sample){.stamp_ns = message->stamp_ns,
                                              .has_pose = message->has_pose,
                                              .has_twist = message->has_twist,
                                              .T_odom_base = message->pose,
                                              .twist = message->twist};
}

struct ndt_track_imu_sample ndtd_imu_sample(const struct ndt_imu_message *message,
                                            struct ndtd_transforms *transforms,
                                            const struct ndtd_extrinsics *frames)
{
    struct ndt_track_imu_sample sample = {.stamp_ns = message->stamp_ns,
                                          .has_acceleration = message->has_acceleration};
    struct ndt_pose turn = *ndtd_transforms_imu(transforms, frames, message->frame_id);
    memset(turn.t_m, 0, sizeof(turn.t_m));
    ndt_pose_apply(&turn, message->angular_velocity_radps, sample.angular_velocity_radps);
    ndt_pose_apply(&turn, message->linear_acceleration_mps2, sample.acceleration_mps2);
    return sample;
}

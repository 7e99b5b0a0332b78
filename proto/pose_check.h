/* What a pose from outside must be. */
#ifndef NDT_POSE_CHECK_H
#define NDT_POSE_CHECK_H

#include "ndt/pose.h"
#include "ndt/status.h"

/* Scales the quaternion to unit length. One that is off by more than 1 % was never meant as one and is refused;
 * one within 1e-12 keeps its bits, so that decoding what was encoded gives the same pose. */
NDT_MUST_CHECK enum ndt_status ndt_pose_check(struct ndt_pose *pose, struct ndt_error *err);

#endif

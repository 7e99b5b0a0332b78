/** @file
 * @brief Checks of the numbers in messages against ndt/limits.h. */
#include <math.h>

#include "ndt/limits.h"
#include "wire.h"

enum ndt_status ndt_wire_check_sizes(const char *key, const double *values, size_t count, double limit,
                                     struct ndt_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return ndt_fail(err, NDT_ERR_FORMAT, "field '%s': number %zu is not finite", key, i);
        else if (fabs(values[i]) > limit)
            return ndt_fail(err, NDT_ERR_LIMIT, "field '%s': number %zu is %.6g, the limit is %.6g", key, i,
                            values[i], limit);
    return NDT_OK;
}

enum ndt_status ndt_wire_check_stamp(int64_t stamp_ns, struct ndt_error *err)
{
    if (stamp_ns > NDT_LIMIT_STAMP_NS || stamp_ns < -NDT_LIMIT_STAMP_NS)
        return ndt_fail(err, NDT_ERR_LIMIT, "stamp %lld ns is beyond the limit of %lld ns", (long long)stamp_ns,
                        (long long)NDT_LIMIT_STAMP_NS);
    return NDT_OK;
}

enum ndt_status ndt_wire_check_pose(const char *key, struct ndt_pose *pose, struct ndt_error *err)
{
    const double *q = pose->q_xyzw;
    const double square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    const double length = sqrt(square);
    if (!(fabs(length - 1.0) <= 0.01))
        return ndt_fail(err, NDT_ERR_FORMAT, "field '%s': the quaternion has length %.6g, not 1", key, length);
    if (fabs(square - 1.0) > 1e-12)
        for (int i = 0; i < 4; i++)
            pose->q_xyzw[i] /= length;
    return ndt_wire_check_sizes(key, pose->t_m, 3, NDT_LIMIT_POSITION_M, err);
}

enum ndt_status ndt_wire_check_motion(struct ndt_pose_message *message, int uses_covariance, struct ndt_error *err)
{
    enum ndt_status status = message->has_pose ? ndt_wire_check_pose("pose", &message->pose, err) : NDT_OK;
    if (status == NDT_OK && message->has_twist)
        status = ndt_wire_check_sizes("twist", message->twist.v_mps, 3, NDT_LIMIT_SPEED_MPS, err);
    if (status == NDT_OK && message->has_twist)
        status = ndt_wire_check_sizes("twist", message->twist.w_radps, 3, NDT_LIMIT_TURN_RADPS, err);
    if (status == NDT_OK && message->has_covariance && uses_covariance)
        status = ndt_wire_check_sizes("covariance", message->covariance, 36, NDT_LIMIT_VARIANCE, err);
    return status;
}

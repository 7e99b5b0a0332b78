#include "pose_check.h"

#include <math.h>

enum ndt_status ndt_pose_check(struct ndt_pose *pose, struct ndt_error *err)
{
    const double *q = pose->q_xyzw;
    const double square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    const double length = sqrt(square);
    if (!(fabs(length - 1.0) <= 0.01))
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'pose': the quaternion has length %.6g, not 1", length);
    if (fabs(square - 1.0) > 1e-12)
        for (int i = 0; i < 4; i++)
            pose->q_xyzw[i] /= length;
    return NDT_OK;
}

/* Turns a scan into an upright frame, and results back into that of the sensor. */
#include <math.h>
#include <string.h>

#include "scan_view.h"

/* Lean below which a frame is upright: its points need not be moved. */
static const double UPRIGHT_RAD = 1e-6;
static const double PI = 3.14159265358979323846;

int ndt_search_upright(const double up_in_sensor[3], struct ndt_pose *T_upright_sensor)
{
    const double length = hypot(hypot(up_in_sensor[0], up_in_sensor[1]), up_in_sensor[2]);
    *T_upright_sensor = ndt_pose_identity();
    if (!(length > 0 && isfinite(length)))
        return 0;
    const double z[3] = {up_in_sensor[0] / length, up_in_sensor[1] / length, up_in_sensor[2] / length};
    /* The level part of the x axis, or of the z axis where x is upright: columns of the rotation. */
    const double *along = fabs(z[0]) < 0.99 ? (double[3]){1, 0, 0} : (double[3]){0, 0, z[0] < 0 ? 1 : -1};
    const double rise = along[0] * z[0] + along[2] * z[2];
    double x[3] = {along[0] - rise * z[0], -rise * z[1], along[2] - rise * z[2]};
    const double size = hypot(hypot(x[0], x[1]), x[2]);
    for (int i = 0; i < 3; i++)
        x[i] /= size;
    const double R[9] = {
        x[0], x[1], x[2], z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0],
        z[0], z[1], z[2]};
    *T_upright_sensor = ndt_pose_from_rotation(R, (double[3]){0});
    return 1;
}

static enum ndt_status turn_points(struct ndt_upright *upright, const struct ndt_cloud *scan, struct ndt_error *err)
{
    struct ndt_cloud *out = &upright->points;
    const double *t_m = upright->T_upright_sensor.t_m;
    double R[9];
    const enum ndt_status status = ndt_cloud_reserve(out, scan->count + 1, 0, err);
    if (status != NDT_OK)
        return status;
    ndt_pose_rotation(&upright->T_upright_sensor, R);
    for (size_t i = 0; i < scan->count; i++) {
        const double x = (double)scan->x_m[i], y = (double)scan->y_m[i], z = (double)scan->z_m[i];
        out->x_m[i] = (float)(R[0] * x + R[1] * y + R[2] * z + t_m[0]);
        out->y_m[i] = (float)(R[3] * x + R[4] * y + R[5] * z + t_m[1]);
        out->z_m[i] = (float)(R[6] * x + R[7] * y + R[8] * z + t_m[2]);
    }
    out->count = scan->count;
    return NDT_OK;
}

enum ndt_status ndt_upright_set(struct ndt_upright *upright, const struct ndt_cloud *scan,
                                const struct ndt_pose *T_upright_sensor, const struct ndt_cloud **out,
                                struct ndt_error *err)
{
    double R[9];
    upright->T_upright_sensor = T_upright_sensor ? *T_upright_sensor : ndt_pose_identity();
    upright->is_turned = 0;
    *out = scan;
    if (!ndt_pose_is_finite(&upright->T_upright_sensor))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "search: the pose of the sensor in the upright frame is not finite");
    const double *t_m = upright->T_upright_sensor.t_m;
    ndt_pose_rotation(&upright->T_upright_sensor, R);
    if (R[8] > 0 && hypot(R[6], R[7]) <= UPRIGHT_RAD && t_m[0] == 0 && t_m[1] == 0 && t_m[2] == 0)
        return NDT_OK;
    upright->is_turned = 1;
    *out = &upright->points;
    return turn_points(upright, scan, err);
}

void ndt_upright_region(const struct ndt_upright *upright, struct ndt_search_region *region)
{
    const double own_rad = ndt_pose_heading_rad(&upright->T_upright_sensor);
    if (!upright->is_turned && own_rad != 0)
        region->heading_rad = remainder(region->heading_rad + own_rad, 2 * PI);
}

void ndt_upright_result(const struct ndt_upright *upright, struct ndt_search_result *result)
{
    double up[3], R[9];
    if (!upright->is_turned)
        return;
    for (uint32_t i = 0; i < result->count; i++) {
        struct ndt_pose *pose = &result->candidates[i].T_map_sensor;
        *pose = ndt_pose_compose(pose, &upright->T_upright_sensor);
    }
    ndt_pose_rotation(&upright->T_upright_sensor, R);
    memcpy(up, result->view.up_in_sensor, sizeof(up));
    for (int i = 0; i < 3; i++)
        result->view.up_in_sensor[i] = R[i] * up[0] + R[3 + i] * up[1] + R[6 + i] * up[2];
}

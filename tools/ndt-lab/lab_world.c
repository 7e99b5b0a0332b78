#include <math.h>

#include "lab.h"

static const double SPACING_M = 0.68, SENSOR_M = 1.8, PI = 3.14159265358979323846;

double lab_world_height_m(double x_m, double y_m)
{
    return 1.2 * sin(x_m / 17) * cos(y_m / 23) + 0.3 * sin(x_m / 3.1 + y_m / 4.3);
}

enum ndt_status lab_world_cloud(struct ndt_cloud *out, double side_m, struct ndt_error *err)
{
    const size_t side = (size_t)(side_m / SPACING_M);
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, side * side, 0, err);
    for (size_t i = 0; status == NDT_OK && i < side * side; i++) {
        const double x_m = ((double)(i % side) + 0.5) * SPACING_M - side_m / 2;
        const double y_m = ((double)(i / side) + 0.5) * SPACING_M - side_m / 2;
        out->x_m[i] = (float)x_m;
        out->y_m[i] = (float)y_m;
        out->z_m[i] = (float)lab_world_height_m(x_m, y_m);
        out->count++;
    }
    return status;
}

enum ndt_status lab_world_build(struct ndt_map **out, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = 2;
    return ndt_map_from_cloud(out, &config, cloud, err);
}

enum ndt_status lab_world_map(struct ndt_map **out, double side_m, struct ndt_error *err)
{
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    *out = NULL;
    enum ndt_status status = lab_world_cloud(&cloud, side_m, err);
    if (status == NDT_OK)
        status = lab_world_build(out, &cloud, err);
    ndt_cloud_free(&cloud);
    return status;
}

struct ndt_pose lab_world_pose(const double at_m[2])
{
    struct ndt_pose pose = ndt_pose_identity();
    pose.t_m[0] = at_m[0];
    pose.t_m[1] = at_m[1];
    pose.t_m[2] = SENSOR_M;
    return pose;
}

enum ndt_status lab_world_scan(struct ndt_cloud *out, size_t points, const double at_m[2], double radius_m,
                               uint64_t seed, struct ndt_error *err)
{
    uint64_t state = seed;
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, points, 0, err);
    for (size_t i = 0; status == NDT_OK && i < points; i++) {
        const double range_m = radius_m * sqrt(lab_uniform(&state)), azimuth_rad = 2 * PI * lab_uniform(&state);
        const double x_m = range_m * cos(azimuth_rad), y_m = range_m * sin(azimuth_rad);
        const double noise_m = 0.1 * (lab_uniform(&state) - 0.5);
        out->x_m[i] = (float)x_m;
        out->y_m[i] = (float)y_m;
        out->z_m[i] = (float)(lab_world_height_m(at_m[0] + x_m, at_m[1] + y_m) + noise_m - SENSOR_M);
        out->count++;
    }
    return status;
}

#include "guard_world.h"

#include <math.h>

#include "street_world.h"

static const struct world street = {.kind = WORLD_STREET, .seed = 6, .length_m = 120.0, .noise_m = 0.02};
static const double ORIGIN_M[3] = {0, 0, 0};
static const double RANGE_M = 50.0;
static const double PI = 3.14159265358979323846;

void guard_work_init(struct guard_work *work, const struct guard_case *item)
{
    *work = (struct guard_work){.item = item};
    ndt_cloud_init(&work->map_points);
    ndt_cloud_init(&work->scan);
    ndt_frame_init(&work->frame);
}

void guard_work_free(struct guard_work *work)
{
    ndt_aligner_destroy(work->aligner);
    if (work->backend)
        work->backend->ops->close(work->backend);
    ndt_map_release(work->map);
    ndt_map_builder_destroy(work->builder);
    ndt_preprocessor_destroy(work->preprocessor);
    ndt_cloud_free(&work->map_points);
    ndt_cloud_free(&work->scan);
    ndt_frame_free(&work->frame);
}

enum ndt_status guard_street_map(struct guard_work *work, size_t count, struct ndt_error *err)
{
    return world_map(&work->map_points, &street, count, ORIGIN_M, err);
}

enum ndt_status guard_street_scan(struct guard_work *work, size_t count, struct ndt_error *err)
{
    struct ndt_random random = {1};
    work->T_map_sensor = world_pose(&street, 0.5, 0.1);
    for (int i = 0; i < GUARD_STARTS; i++)
        work->T_map_guess[i] = world_perturb(&random, &work->T_map_sensor, 0.5, 2 * PI / 180);
    return world_scan(&work->scan, &street, 1, count, &work->T_map_sensor, RANGE_M, err);
}

/* Distance along a unit direction from the sensor, 1.7 m above the floor of a yard of 80 m x 30 m with high walls.
 */
static double yard_range_m(const double direction[3])
{
    const double half_m[2] = {40.0, 15.0};
    double range_m = direction[2] < 0 ? 1.7 / -direction[2] : INFINITY;
    for (int i = 0; i < 2; i++)
        range_m = fmin(range_m, half_m[i] / fmax(fabs(direction[i]), 1e-9));
    return range_m;
}

enum ndt_status guard_lidar_turn(struct guard_work *work, struct ndt_error *err)
{
    enum { RINGS = 64, COLUMNS = 1875 };
    struct ndt_cloud *scan = &work->scan;
    struct ndt_random random = {2};
    enum ndt_status status = ndt_cloud_reserve(scan, RINGS * COLUMNS, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    for (int ring = 0; ring < RINGS; ring++) {
        const double elevation = (-25.0 + 28.0 * ring / (RINGS - 1)) * PI / 180;
        for (int column = 0; column < COLUMNS; column++) {
            const double part = (double)column / COLUMNS, azimuth = PI - 2 * PI * part;
            const double direction[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth),
                                         sin(elevation)};
            const double range_m = yard_range_m(direction) + 0.02 * world_normal(&random);
            const size_t at = scan->count++;
            scan->x_m[at] = (float)(range_m * direction[0]);
            scan->y_m[at] = (float)(range_m * direction[1]);
            scan->z_m[at] = (float)(range_m * direction[2]);
            scan->time_s[at] = (float)(0.1 * part);
        }
    }
    work->twist = (struct ndt_twist){.v_mps = {10.0, 0.1, 0.0}, .w_radps = {0.0, 0.02, 0.3}};
    return NDT_OK;
}

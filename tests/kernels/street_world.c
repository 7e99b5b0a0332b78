#include "street_world.h"

#include <math.h>

static const double SLOPE = 0.02;   /* slope of the ground along x */
static const double BAY_M = 7.0;    /* length of a facade of one depth */
static const double HEIGHT_M = 8.0; /* height of a facade */

double world_normal(struct ndt_random *random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += ndt_random_between(random, 0.0, 1.0);
    return sum;
}

/* Distance that the facade is set back in the bay at x: 0 to 1.6 m, different on both sides. */
static double facade_y(double x, int side)
{
    struct ndt_random bay = {(uint64_t)(int64_t)floor(x / BAY_M) * 2u + (side > 0)};
    return side * (9.0 + ndt_random_between(&bay, 0.0, 1.6));
}

static void put(double out[3], double x, double y, double z)
{
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

/* A point of a thing that stands at every multiple of `every_m` along x: radius and height of a cylinder. */
static void cylinder_point(struct ndt_random *random, double x, double every_m, double y, double radius_m,
                           double height_m, double out[3])
{
    const double foot = (floor(x / every_m) + 0.5) * every_m;
    double dx, dy, norm2;
    do {
        dx = ndt_random_between(random, -1.0, 1.0);
        dy = ndt_random_between(random, -1.0, 1.0);
        norm2 = dx * dx + dy * dy;
    } while (norm2 > 1.0 || norm2 < 0.01);
    const double scale = radius_m / sqrt(norm2);
    put(out, foot + dx * scale, y + dy * scale, SLOPE * foot + ndt_random_between(random, 0.0, height_m));
}

static void street_point(struct ndt_random *random, double x, double out[3])
{
    const double part = ndt_random_between(random, 0.0, 1.0);
    const int side = ndt_random_next(random) & 1 ? 1 : -1;
    if (part < 0.35) {
        put(out, x, ndt_random_between(random, -9.0, 9.0), SLOPE * x);
    } else if (part < 0.75) {
        put(out, x, facade_y(x, side), SLOPE * x + ndt_random_between(random, 0.0, HEIGHT_M));
    } else if (part < 0.85) { /* the step between two bays */
        const double corner = floor(x / BAY_M) * BAY_M;
        const double y = ndt_random_between(random, facade_y(corner - 0.1, side), facade_y(corner + 0.1, side));
        put(out, corner, y, SLOPE * corner + ndt_random_between(random, 0.0, HEIGHT_M));
    } else if (part < 0.93) {
        cylinder_point(random, x, 11.0, side * 6.0, 0.12, 5.0, out);
    } else {
        cylinder_point(random, x, 13.0, side * 7.5, 0.8, 1.6, out);
    }
}

static void corridor_point(struct ndt_random *random, double x, double out[3])
{
    const double part = ndt_random_between(random, 0.0, 1.0);
    if (part < 0.3)
        put(out, x, ndt_random_between(random, -2.0, 2.0), 0.0);
    else if (part < 0.5)
        put(out, x, ndt_random_between(random, -2.0, 2.0), 3.0);
    else
        put(out, x, part < 0.75 ? -2.0 : 2.0, ndt_random_between(random, 0.0, 3.0));
}

static void measured_point(const struct world *world, struct ndt_random *random, double low_m, double high_m,
                           double out[3])
{
    const double x = ndt_random_between(random, fmax(low_m, 0.0), fmin(high_m, world->length_m));
    if (world->kind == WORLD_STREET)
        street_point(random, x, out);
    else
        corridor_point(random, x, out);
    for (int i = 0; i < 3; i++)
        out[i] += world->noise_m * world_normal(random);
}

static void store(struct ndt_cloud *cloud, const double point[3])
{
    cloud->x_m[cloud->count] = (float)point[0];
    cloud->y_m[cloud->count] = (float)point[1];
    cloud->z_m[cloud->count] = (float)point[2];
    cloud->count++;
}

enum ndt_status world_map(struct ndt_cloud *out, const struct world *world, size_t count, const double origin_m[3],
                          struct ndt_error *err)
{
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, count, 0, err);
    if (status != NDT_OK)
        return status;
    struct ndt_random random = {world->seed};
    double point[3];
    for (size_t i = 0; i < count; i++) {
        measured_point(world, &random, 0.0, world->length_m, point);
        store(out, point);
    }
    for (int i = 0; i < 3; i++)
        out->origin_m[i] = origin_m[i];
    return NDT_OK;
}

enum ndt_status world_build_map(struct ndt_map **out, const struct world *world, size_t count,
                                struct ndt_error *err)
{
    static const double zero[3];
    struct ndt_map_config config;
    struct ndt_cloud cloud;
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    enum ndt_status status = world_map(&cloud, world, count, zero, err);
    if (status == NDT_OK)
        status = ndt_map_from_cloud(out, &config, &cloud, err);
    ndt_cloud_free(&cloud);
    return status;
}

enum ndt_status world_scan(struct ndt_cloud *out, const struct world *world, uint64_t seed, size_t count,
                           const struct ndt_pose *T_world_sensor, double range_m, struct ndt_error *err)
{
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, count, 0, err);
    if (status != NDT_OK)
        return status;
    struct ndt_random random = {world->seed * 977u + seed + 1u};
    const struct ndt_pose T_sensor_world = ndt_pose_inverse(T_world_sensor);
    const double x = T_world_sensor->t_m[0];
    for (size_t i = 0; i < count; i++) {
        double point[3], seen[3];
        measured_point(world, &random, x - range_m, x + range_m, point);
        ndt_pose_apply(&T_sensor_world, point, seen);
        store(out, seen);
    }
    for (int i = 0; i < 3; i++)
        out->origin_m[i] = 0.0;
    return NDT_OK;
}

struct ndt_pose world_pose(const struct world *world, double s, double heading_rad)
{
    const double x = s * world->length_m;
    const double p[6] = {x, 0.4, world->kind == WORLD_STREET ? SLOPE * x + 1.7 : 1.2, 0.02, -0.02, heading_rad};
    return ndt_pose_from_euler(p);
}

static void random_direction(struct ndt_random *random, double out[3])
{
    double norm2;
    do {
        norm2 = 0.0;
        for (int i = 0; i < 3; i++) {
            out[i] = ndt_random_between(random, -1.0, 1.0);
            norm2 += out[i] * out[i];
        }
    } while (norm2 > 1.0 || norm2 < 0.01);
    for (int i = 0; i < 3; i++)
        out[i] /= sqrt(norm2);
}

struct ndt_pose world_perturb(struct ndt_random *random, const struct ndt_pose *pose, double shift_m,
                              double turn_rad)
{
    struct ndt_twist turn = {{0}, {0}};
    random_direction(random, turn.w_radps);
    const struct ndt_pose rotation = ndt_pose_exp(&turn, ndt_random_between(random, 0.0, turn_rad));
    struct ndt_pose moved = ndt_pose_compose(pose, &rotation);
    double direction[3];
    random_direction(random, direction);
    const double shift = ndt_random_between(random, 0.0, shift_m);
    for (int i = 0; i < 3; i++)
        moved.t_m[i] += shift * direction[i];
    return moved;
}

enum ndt_status world_sweep(struct ndt_cloud *scan, const struct ndt_twist *twist, double sweep_s,
                            struct ndt_error *err)
{
    const enum ndt_status status = ndt_cloud_reserve(scan, scan->count, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < scan->count; i++) {
        const double at_s = sweep_s * ((double)i / (double)scan->count - 0.5);
        const struct ndt_pose back = ndt_pose_exp(twist, -at_s);
        const double x[3] = {scan->x_m[i], scan->y_m[i], scan->z_m[i]};
        double moved[3];
        ndt_pose_apply(&back, x, moved);
        scan->x_m[i] = (float)moved[0];
        scan->y_m[i] = (float)moved[1];
        scan->z_m[i] = (float)moved[2];
        scan->time_s[i] = (float)at_s;
    }
    return NDT_OK;
}

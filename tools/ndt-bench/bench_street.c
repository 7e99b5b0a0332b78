#include <math.h>

#include "bench.h"
#include "ndt/random.h"

enum { POSITIONS = 100 };
static const double PI = 3.14159265358979323846, NOISE_M = 0.02;
static const double HEIGHT_M = 1.8, SIDE_M = 5, HOUSE_M = 5, FARTHEST_M = 90, NEAR_M = 25, STEP_M = 0.5;

/* Distance of the facade of house `number` from the middle of the street. */
static double depth_m(double number)
{
    return SIDE_M + 8 * fabs(remainder(0.618 * number, 1));
}

/* Range from (x_m, 0, HEIGHT_M) along a unit direction of the map to the ground, a facade or the side of a
 * protruding house, or FARTHEST_M. */
static double range_along(double x_m, const double direction[3])
{
    const double ground_m = direction[2] < 0 ? fmin(FARTHEST_M, -HEIGHT_M / direction[2]) : FARTHEST_M;
    const double along = fmax(1e-6, fabs(direction[0])), side = fmax(1e-6, fabs(direction[1]));
    const double step = direction[0] < 0 ? -1 : 1;
    double number = floor(x_m / HOUSE_M);
    for (;;) {
        const double border_m = HOUSE_M * (step > 0 ? number + 1 : number);
        const double to_border_m = fabs(border_m - x_m) / along;
        if (depth_m(number) / side <= to_border_m)
            return fmin(ground_m, depth_m(number) / side);
        number += step;
        if (to_border_m >= ground_m || side * to_border_m >= depth_m(number))
            return fmin(ground_m, to_border_m);
    }
}

static void put(struct ndt_cloud *out, double range_m, const double direction[3], const double from_m[3])
{
    const size_t at = out->count++;
    out->x_m[at] = (float)(from_m[0] + range_m * direction[0]);
    out->y_m[at] = (float)(from_m[1] + range_m * direction[1]);
    out->z_m[at] = (float)(from_m[2] + range_m * direction[2]);
}

/* A random direction of the map with a hit. */
static double random_ray(struct ndt_random *random, double x_m, double direction[3])
{
    for (;;) {
        const double azimuth_rad = ndt_random_between(random, -PI, PI),
                     elevation_rad = ndt_random_between(random, -0.4, 0.3);
        direction[0] = cos(elevation_rad) * cos(azimuth_rad);
        direction[1] = cos(elevation_rad) * sin(azimuth_rad);
        direction[2] = sin(elevation_rad);
        const double range_m = range_along(x_m, direction);
        if (range_m <= NEAR_M)
            return range_m + ndt_random_between(random, -NOISE_M, NOISE_M);
    }
}

enum ndt_status bench_street_map(struct ndt_cloud *out, size_t points, struct ndt_error *err)
{
    struct ndt_random random = {1};
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, points, 0, err);
    for (size_t i = 0; status == NDT_OK && i < points; i++) {
        const double from_m[3] = {ndt_random_between(&random, -NEAR_M, STEP_M * POSITIONS + NEAR_M), 0, HEIGHT_M};
        double direction[3];
        const double range_m = random_ray(&random, from_m[0], direction);
        put(out, range_m, direction, from_m);
    }
    return status;
}

enum ndt_status bench_street_scan(struct ndt_cloud *out, struct ndt_pose *T_map_sensor, size_t number,
                                  size_t points, struct ndt_error *err)
{
    const double at = (double)(number % POSITIONS), heading_rad = 0.05 * sin(0.3 * at);
    const double zero_m[3] = {0, 0, 0};
    struct ndt_random random = {1000 + number};
    *T_map_sensor = ndt_pose_identity();
    T_map_sensor->t_m[0] = STEP_M * at;
    T_map_sensor->t_m[2] = HEIGHT_M;
    T_map_sensor->q_xyzw[2] = sin(0.5 * heading_rad);
    T_map_sensor->q_xyzw[3] = cos(0.5 * heading_rad);
    struct ndt_pose turn = ndt_pose_inverse(T_map_sensor);
    for (int i = 0; i < 3; i++)
        turn.t_m[i] = 0;
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, points, 0, err);
    for (size_t i = 0; status == NDT_OK && i < points; i++) {
        double direction[3], turned[3];
        const double range_m = random_ray(&random, T_map_sensor->t_m[0], direction);
        ndt_pose_apply(&turn, direction, turned);
        put(out, range_m, turned, zero_m);
    }
    return status;
}

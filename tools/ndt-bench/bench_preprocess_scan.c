#include "bench_preprocess_scan.h"

#include <math.h>

enum { BEAMS = 64 };
static const double PI = 3.14159265358979323846, SWEEP_S = 0.1, NOISE_M = 0.02;
static const double HEIGHT_M = 1.8, SIDE_M = 8, FARTHEST_M = 90;

/* splitmix64; -1 .. 1 */
static double noise(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

/* The way to the ground, to a facade whose depth changes every 7 m, or to the end of the street. */
static double range_along(const double direction[3])
{
    double range_m = FARTHEST_M;
    if (direction[2] < 0)
        range_m = fmin(range_m, -HEIGHT_M / direction[2]);
    const double side_m = fmax(1e-6, fabs(direction[1]));
    const double along_m = direction[0] * SIDE_M / side_m;
    const double depth_m = SIDE_M + 1.5 * fabs(sin(12.9 * floor(along_m / 7)));
    return fmin(range_m, depth_m / side_m);
}

enum ndt_status bench_preprocess_scan(struct ndt_cloud *out, size_t points, uint64_t seed, struct ndt_error *err)
{
    uint64_t state = seed;
    out->count = 0;
    enum ndt_status status = ndt_cloud_reserve(out, points, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    const size_t columns = (points + BEAMS - 1) / BEAMS;
    for (size_t i = 0; i < points; i++) {
        const double turn = (double)(i / BEAMS) / (double)columns, azimuth_rad = PI - 2 * PI * turn;
        const double elevation_rad = (-24.8 + 26.8 * (double)(i % BEAMS) / (BEAMS - 1)) * PI / 180;
        const double direction[3] = {cos(elevation_rad) * cos(azimuth_rad), cos(elevation_rad) * sin(azimuth_rad),
                                     sin(elevation_rad)};
        const double range_m = range_along(direction) + NOISE_M * noise(&state);
        out->x_m[i] = (float)(range_m * direction[0]);
        out->y_m[i] = (float)(range_m * direction[1]);
        out->z_m[i] = (float)(range_m * direction[2]);
        out->time_s[i] = (float)((turn - 0.5) * SWEEP_S);
    }
    out->count = points;
    return NDT_OK;
}

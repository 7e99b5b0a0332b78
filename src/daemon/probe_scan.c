#include "ndtd/probe_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double REACH_M = 60, HEIGHT_M = 1.8, NEAR_M = 15, STRAY_M = 3, STRAY_PART = 0.1;
static const double GUESS_M = 0.2, GUESS_RAD = 0.01;
enum { PLACES = 16, LOOKED_AT = 4096, DRAWS = 16 };

/* splitmix64 (Steele, Lea, Flood 2014); uniform in [0, 1). */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * uniform(state);
}

static double normal(uint64_t *state)
{
    const double radius = sqrt(-2 * log(1 - uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* Relative to the map's origin. */
static void voxel_mean(const struct ndt_map_level *level, uint32_t voxel, double out_m[3])
{
    for (int i = 0; i < 3; i++)
        out_m[i] = level->voxels[voxel].cell[i] * level->leaf_m + (double)level->voxels[voxel].mean_m[i];
}

/* Every `step`th voxel within reach of a place; `out` may be NULL. */
static size_t find_around(const struct ndt_map_level *level, const double place_m[3], uint32_t step, uint32_t *out)
{
    size_t count = 0;
    for (uint32_t v = 1; v < level->voxel_count; v += step) {
        double mean_m[3];
        voxel_mean(level, v, mean_m);
        if (hypot(hypot(mean_m[0] - place_m[0], mean_m[1] - place_m[1]), mean_m[2] - place_m[2]) >= REACH_M)
            continue;
        if (out)
            out[count] = v;
        count++;
    }
    return count;
}

/* `near_m` if there is something around it, else the random place with the most voxels around it. */
static void find_place(const struct ndt_map *map, const struct ndt_map_level *level, const double near_m[3],
                       uint64_t *state, double out_m[3])
{
    const uint32_t step = 1 + level->voxel_count / LOOKED_AT;
    size_t most = 0;
    for (int i = 0; near_m && i < 3; i++)
        out_m[i] = near_m[i] - map->origin_m[i];
    if (near_m && find_around(level, out_m, step, NULL) > 0)
        return;
    for (int k = 0; k < PLACES; k++) {
        double place_m[3];
        voxel_mean(level, 1 + (uint32_t)(uniform(state) * (level->voxel_count - 1)), place_m);
        place_m[2] += HEIGHT_M;
        const size_t count = find_around(level, place_m, step, NULL);
        if (count < most)
            continue;
        most = count;
        memcpy(out_m, place_m, 3 * sizeof(double));
    }
}

/* A voxel around the place, the more often the nearer it is, since a sensor's beams spread. */
static uint32_t choose(const struct ndt_map_level *level, const uint32_t *around, size_t count,
                       const double place_m[3], uint64_t *state)
{
    uint32_t voxel = around[0];
    for (int k = 0; k < DRAWS; k++) {
        double mean_m[3];
        voxel = around[(size_t)(uniform(state) * (double)count)];
        voxel_mean(level, voxel, mean_m);
        const double range = hypot(mean_m[0] - place_m[0], mean_m[1] - place_m[1]) / NEAR_M;
        if (uniform(state) < 1 / (1 + range * range))
            break;
    }
    return voxel;
}

/* A draw from the voxel's Gaussian: with icov = U^T U, mean + U^-1 z has the covariance icov^-1. */
static void draw(const struct ndt_map_level *level, uint32_t voxel, uint64_t *state, double out_m[3])
{
    const float *c = level->voxels[voxel].icov; /* xx xy xz yy yz zz */
    const double u00 = sqrt(fmax((double)c[0], 1e-6)), u01 = (double)c[1] / u00, u02 = (double)c[2] / u00;
    const double u11 = sqrt(fmax((double)c[3] - u01 * u01, 1e-6)), u12 = ((double)c[4] - u01 * u02) / u11;
    const double u22 = sqrt(fmax((double)c[5] - u02 * u02 - u12 * u12, 1e-6));
    const double z = normal(state) / u22, y = (normal(state) - u12 * z) / u11;
    const double x = (normal(state) - u01 * y - u02 * z) / u00, by_m[3] = {x, y, z};
    voxel_mean(level, voxel, out_m);
    for (int i = 0; i < 3; i++)
        out_m[i] += fmax(-level->leaf_m, fmin(level->leaf_m, by_m[i]));
}

enum ndt_status ndtd_probe_scan(struct ndt_cloud *scan, struct ndt_pose *T_map_sensor, const struct ndt_map *map,
                                const double near_m[3], size_t count, struct ndt_error *err)
{
    const struct ndt_map_level *level = &map->levels[map->level_count - 1];
    uint64_t state = 1;
    double place_m[3] = {0}, at_m[3];
    if (level->voxel_count < 2)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no voxels to measure with");
    find_place(map, level, near_m, &state, place_m);
    uint32_t *around = malloc(level->voxel_count * sizeof(*around));
    if (!around)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for a list of %u voxels", level->voxel_count);
    size_t around_count = find_around(level, place_m, 1, around);
    if (around_count == 0)
        around[around_count++] = 1;
    scan->count = 0;
    enum ndt_status status = ndt_cloud_reserve(scan, count, 0, err);
    for (size_t i = 0; status == NDT_OK && i < count; i++, scan->count++) {
        draw(level, choose(level, around, around_count, place_m, &state), &state, at_m);
        const double stray_m = uniform(&state) < STRAY_PART ? STRAY_M : 0;
        scan->x_m[i] = (float)(at_m[0] - place_m[0] + between(&state, -stray_m, stray_m));
        scan->y_m[i] = (float)(at_m[1] - place_m[1] + between(&state, -stray_m, stray_m));
        scan->z_m[i] = (float)(at_m[2] - place_m[2] + between(&state, 0, stray_m));
    }
    free(around);
    *T_map_sensor = ndt_pose_identity();
    for (int i = 0; i < 3; i++)
        T_map_sensor->t_m[i] = map->origin_m[i] + place_m[i];
    return status;
}

struct ndt_pose ndtd_probe_guess(const struct ndt_pose *T_map_sensor, size_t number)
{
    uint64_t state = 1000 + number;
    struct ndt_twist off;
    for (int i = 0; i < 3; i++) {
        off.v_mps[i] = between(&state, -GUESS_M, GUESS_M) / sqrt(3);
        off.w_radps[i] = between(&state, -GUESS_RAD, GUESS_RAD) / sqrt(3);
    }
    const struct ndt_pose step = ndt_pose_exp(&off, 1);
    return ndt_pose_compose(T_map_sensor, &step);
}

/* gaussian_fit: how well points sit in the Gaussians of the map. */
#include "search_state.h"

#include <math.h>
#include <string.h>

static const double INLIER = 0.1;

/* The largest exp(-d^2 / 2) over the voxels whose mean is within a leaf of the point. */
static double value_at(const struct ndt_map_level *level, const double at_m[3])
{
    int32_t cell[3];
    float inside_m[3];
    double least2 = INFINITY;
    for (int k = 0; k < 3; k++) {
        const double place = floor(at_m[k] / level->leaf_m);
        if (!(fabs(place) < 1 << 20))
            return 0;
        cell[k] = (int32_t)place;
        inside_m[k] = (float)(at_m[k] - place * level->leaf_m);
    }
    const struct ndt_cell_ref ref = ndt_map_lookup(level, cell);
    const float *means = (const float *)level->lists + (size_t)ref.offset * 8;
    const uint32_t *voxels = level->lists + (size_t)ref.offset * 8 + 3 * (size_t)ref.padded;
    const float leaf2 = (float)(level->leaf_m * level->leaf_m);
    for (uint32_t i = 0; i < ref.n27; i++) {
        const float x = inside_m[0] - means[i], y = inside_m[1] - means[ref.padded + i];
        const float z = inside_m[2] - means[2 * ref.padded + i];
        if (x * x + y * y + z * z > leaf2)
            continue;
        const float *b = level->voxels[voxels[i]].icov;
        const double d2 =
            (double)(x * (b[0] * x + 2 * (b[1] * y + b[2] * z)) + y * (b[3] * y + 2 * b[4] * z) + b[5] * z * z);
        least2 = d2 < least2 ? d2 : least2;
    }
    return exp(-0.5 * fmax(least2, 0));
}

void ndt_search_gaussian_fit(const struct ndt_map *map, const struct ndt_map_level *level,
                             const struct ndt_cloud *points, size_t count, const struct ndt_pose *T_map_sensor,
                             double *gaussian_fit, double *inliers)
{
    double R[9], t_m[3], sum = 0;
    size_t inside = 0;
    ndt_pose_rotation(T_map_sensor, R);
    for (int k = 0; k < 3; k++)
        t_m[k] = T_map_sensor->t_m[k] - map->origin_m[k];
    for (size_t i = 0; i < count; i++) {
        const double p[3] = {(double)points->x_m[i], (double)points->y_m[i], (double)points->z_m[i]};
        double at_m[3];
        for (int k = 0; k < 3; k++)
            at_m[k] = R[3 * k] * p[0] + R[3 * k + 1] * p[1] + R[3 * k + 2] * p[2] + t_m[k];
        const double value = value_at(level, at_m);
        sum += value;
        inside += value > INLIER;
    }
    *gaussian_fit = count ? sum / (double)count : 0;
    *inliers = count ? (double)inside / (double)count : 0;
}

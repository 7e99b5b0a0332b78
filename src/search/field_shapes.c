/* Shapes of voxels: their mean and long axes, and whether they are flat. */
#include "field_build.h"

#include <math.h>
#include <stdlib.h>

#include "ndt/linalg.h"

/* Limits of a flat voxel: how vertical its normal is, and how thin it is vertically. */
static const double FLAT_NORMAL = 0.9, FLAT_DEVIATION_M = 0.2;
static const double SAMPLE_DEVIATIONS = 1.2, LONGEST_DEVIATION_M = 0.5;

static void set_shape(struct ndt_shape *out, const struct ndt_voxel *voxel, double leaf_m)
{
    double upper[6], values[3], V[9];
    for (int i = 0; i < 6; i++)
        upper[i] = (double)voxel->icov[i];
    ndt_eigen_symmetric(3, upper, values, V); /* of the inverse covariance: longest axis first */
    double vertical_m2 = 0;
    for (int k = 0; k < 3; k++)
        vertical_m2 += V[6 + k] * V[6 + k] / fmax(values[k], 1e-6);
    for (int i = 0; i < 3; i++) {
        out->mean_m[i] = (float)(voxel->cell[i] * leaf_m + (double)voxel->mean_m[i]);
        for (int k = 0; k < 2; k++) {
            const double deviation_m = fmin(1 / sqrt(fmax(values[k], 1e-6)), LONGEST_DEVIATION_M);
            out->axes_m[k][i] = (float)(SAMPLE_DEVIATIONS * deviation_m * V[3 * i + k]);
        }
    }
    out->is_flat = fabs(V[8]) > FLAT_NORMAL && sqrt(vertical_m2) < FLAT_DEVIATION_M;
}

enum ndt_status ndt_shapes_from_level(struct ndt_shapes *out, const struct ndt_map_level *level,
                                      struct ndt_error *err)
{
    *out = (struct ndt_shapes){.items = malloc(((size_t)level->voxel_count + 1) * sizeof(*out->items))};
    if (!out->items)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field of %u voxels", level->voxel_count);
    for (uint32_t v = 1; v < level->voxel_count; v++) {
        struct ndt_shape *shape = &out->items[out->count++];
        set_shape(shape, &level->voxels[v], level->leaf_m);
        out->flat_count += shape->is_flat != 0;
    }
    return NDT_OK;
}

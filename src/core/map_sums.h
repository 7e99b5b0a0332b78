/* Private to the core: from the sums of cells to a level of a map. */
#ifndef NDT_MAP_SUMS_H
#define NDT_MAP_SUMS_H

#include "ndt/map.h"
#include "pool.h"
#include "sum_table.h"

/* The sums of a cell in metres relative to its centre. */
struct ndt_moments {
    int32_t cell[3];
    double n;
    double s_m[3];
    double q_m2[6];
};

/* Builds one level (voxels and index) from its moments, in the order of their cells (z, y, x), with the threads of
 * the pool. The arrays are owned by the level and freed with ndt_map_level_free. */
NDT_MUST_CHECK enum ndt_status ndt_map_level_build(struct ndt_map_level *out, const struct ndt_map_config *config,
                                                   double leaf_m, const struct ndt_moments *moments, size_t count,
                                                   struct ndt_pool *pool, struct ndt_error *err);
void ndt_map_level_free(struct ndt_map_level *level);

/* One Gaussian from its moments; 0 when the voxel is rejected. */
int ndt_voxel_from_moments(struct ndt_voxel *out, const struct ndt_map_config *config, double leaf_m,
                           const struct ndt_moments *moments);

#endif

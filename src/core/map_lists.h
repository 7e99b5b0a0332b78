/* Private to the core: the neighbour lists of a level (see ndt/map.h), brick by brick. */
#ifndef NDT_MAP_LISTS_H
#define NDT_MAP_LISTS_H

#include "ndt/map.h"
#include "pool.h"

enum { NDT_BRICK_CELLS = 512 };

/* A brick and the voxels whose 3x3x3 surroundings touch it. */
struct ndt_brick {
    int32_t low[3]; /* its lowest cell */
    uint32_t count;
    size_t first;   /* in ndt_brick_plan.voxels; ascending from there */
    uint64_t words; /* of its lists; later where they start */
};
struct ndt_brick_plan {
    struct ndt_brick *bricks; /* by number; 0 is the empty brick */
    uint32_t *voxels;
};

/* Allocates and fills the cells and lists of a level whose voxels and bricks are known. A brick's lists depend on
 * its own voxels alone, so every thread of the pool takes bricks, and where the lists lie does not depend on who
 * did what. After a failure the caller frees the level. */
NDT_MUST_CHECK enum ndt_status ndt_map_lists_build(struct ndt_map_level *level, struct ndt_brick_plan *plan,
                                                   struct ndt_pool *pool, struct ndt_error *err);

#endif

/** @file
 * @brief The surface of a finished map: a flat patch per voxel, found by place. */
#ifndef MAP_PATCHES_H
#define MAP_PATCHES_H

#include "ndt/map.h"

enum { MAP_PATCH_SAMPLES = 16, MAP_PATCH_TILE_M = 16 };

/** The plane of the two long axes of a voxel; metres relative to the origin of the map. */
struct map_patch {
    float mean_m[3];
    float axes_m[2][3]; /**< axes of one deviation each */
};

struct map_patches {
    double origin_m[3];
    double min_m[3], max_m[3]; /**< bounds of the means, absolute */
    struct map_patch *items;   /**< sorted by tile (y, x) */
    int64_t *keys;             /**< key of the tile of each patch */
    size_t count;
};

/** The voxels of the level nearest to 1 m. */
NDT_MUST_CHECK enum ndt_status map_patches_open(struct map_patches *out, const struct ndt_map *map,
                                                struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_patches_close(struct map_patches *patches);
/** Sample `i` of MAP_PATCH_SAMPLES, relative to the origin. */
void map_patch_sample(const struct map_patch *patch, int i, float point_m[3]);
/** The patches [*begin, *end) of the tile (x, y), in tiles of MAP_PATCH_TILE_M from the origin. */
void map_patches_tile(const struct map_patches *patches, int32_t x, int32_t y, size_t *begin, size_t *end);

#endif

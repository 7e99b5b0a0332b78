/* Private to the search: the steps that build a field.
 *
 *     voxels -> shapes (field_shapes.c) -> ground of a layer (field_ground.c) -> bits (field_build.c) */
#ifndef NDT_FIELD_BUILD_H
#define NDT_FIELD_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt_search/field.h"

enum { NDT_TILE_CELLS = NDT_FIELD_TILE_M * NDT_FIELD_TILE_M };

/* The facts of a voxel that a field uses; relative to the origin of the map. */
struct ndt_shape {
    float mean_m[3];
    float axes_m[2][3]; /* the two long axes, 1.2 deviations long, at most 0.6 m */
    int is_flat;        /* may be ground */
};

struct ndt_shapes {
    struct ndt_shape *items; /* in the order of the voxels */
    size_t count;
    size_t flat_count;
};
/* Sets the shapes of a level; the caller frees items, also after a failure. */
NDT_MUST_CHECK enum ndt_status ndt_shapes_from_level(struct ndt_shapes *out, const struct ndt_map_level *level,
                                                     struct ndt_error *err);

/* A layer under construction: tiles first .. first + count - 1 of the field, with values of their own. */
struct ndt_layer {
    struct ndt_field field; /* tiles of this layer only */
    float *ground_m;        /* NDT_TILE_CELLS per tile; NAN: none */
    uint8_t *is_measured;   /* NDT_TILE_CELLS per tile */
    size_t last;            /* tile that was found last */
};

/* Makes the layer above `below` (NULL: the ground): tiles, sorted, with keys, ground and known cells, without bits.
 * A layer without ground has no tiles. The caller frees the layer, also after a failure. */
NDT_MUST_CHECK enum ndt_status ndt_layer_ground(struct ndt_layer *out, const struct ndt_shapes *shapes,
                                                struct ndt_layer *below, struct ndt_error *err);
void ndt_layer_free(struct ndt_layer *layer);
/* Finds the tile of a place and its cell of 1 m; 0 where there is no tile. */
int ndt_layer_find(struct ndt_layer *layer, float x_m, float y_m, size_t *tile, size_t *cell);

#endif

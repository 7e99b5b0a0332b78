/* Builds a field from a map: layer by layer, ground first, then the bits of the objects above it. */
#include "field_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"

enum { FINE = 2 * NDT_FIELD_TILE_M, HALO = 4, AROUND = FINE + 2 * HALO }; /* cells of 0.5 m */

/* The band of a height above the ground; -1: ground. */
static int band_of(float height_m)
{
    int band = -1;
    while (band + 1 < NDT_FIELD_BANDS && (double)height_m >= ndt_field_band_edges_m[band + 1])
        band++;
    return band;
}

/* ---- samples of the voxels, in cells of 0.5 m ---- */

static void set_sample(struct ndt_layer *layer, const float at_m[3], uint8_t *raw)
{
    size_t tile, cell;
    if (!ndt_layer_find(layer, at_m[0], at_m[1], &tile, &cell))
        return;
    const int band = band_of(at_m[2] - layer->ground_m[tile * NDT_TILE_CELLS + cell]); /* NAN: -1 */
    const int32_t x = (int32_t)floorf(2 * at_m[0]) & (FINE - 1), y = (int32_t)floorf(2 * at_m[1]) & (FINE - 1);
    if (band >= 0)
        raw[tile * FINE * FINE + (size_t)(y * FINE + x)] |= (uint8_t)(1 << band);
}

static void set_samples(struct ndt_layer *layer, const struct ndt_shapes *shapes, uint8_t *raw)
{
    for (size_t i = 0; i < shapes->count; i++)
        for (int k = 0; k < 9; k++) {
            const struct ndt_shape *shape = &shapes->items[i];
            const float a = (float)(k / 3 - 1), b = (float)(k % 3 - 1);
            float at_m[3];
            for (int d = 0; d < 3; d++)
                at_m[d] = shape->mean_m[d] + a * shape->axes_m[0][d] + b * shape->axes_m[1][d];
            set_sample(layer, at_m, raw);
        }
}

/* ---- levels ---- */

/* Halves a square of `side` cells: 2x2 cells become one. */
static void halve(const uint8_t *from, int side, uint8_t *to)
{
    for (int y = 0; y < side / 2; y++)
        for (int x = 0; x < side / 2; x++) {
            const uint8_t *at = from + 2 * y * side + 2 * x;
            to[y * (side / 2) + x] = at[0] | at[1] | at[side] | at[side + 1];
        }
}

/* Gives each of the inner cells the bits of the 3x3 cells around it. */
static void dilate(const uint8_t *from, int side, int halo, uint8_t *to)
{
    const int inner = side - 2 * halo;
    for (int y = 0; y < inner; y++)
        for (int x = 0; x < inner; x++) {
            const uint8_t *at = from + (y + halo - 1) * side + x + halo - 1;
            uint8_t bits = 0;
            for (int r = 0; r < 3; r++)
                bits |= at[r * side] | at[r * side + 1] | at[r * side + 2];
            to[y * inner + x] = bits;
        }
}

static void store_bits(struct ndt_layer *layer, const uint8_t *raw)
{
    uint8_t fine[AROUND * AROUND], middle[AROUND * AROUND / 4], coarse[AROUND * AROUND / 16];
    const struct ndt_cell_array array = {raw, FINE * FINE, FINE, 1};
    const uint8_t none = 0;
    for (size_t i = 0; i < layer->field.tile_count; i++) {
        struct ndt_field_tile *tile = (struct ndt_field_tile *)layer->field.tiles + i;
        const struct ndt_window window = {tile->layer, tile->y * FINE - HALO, tile->x * FINE - HALO, AROUND, AROUND,
                                          AROUND};
        ndt_window_copy(&layer->field, &array, &window, &none, fine);
        halve(fine, AROUND, middle);
        halve(middle, AROUND / 2, coarse);
        dilate(fine, AROUND, HALO, tile->bits_05m);
        dilate(middle, AROUND / 2, HALO / 2, tile->bits_1m);
        dilate(coarse, AROUND / 4, HALO / 4, tile->bits_2m);
    }
}

static enum ndt_status add_bits(struct ndt_layer *layer, const struct ndt_shapes *shapes, struct ndt_error *err)
{
    uint8_t *raw = calloc(layer->field.tile_count + 1, FINE * FINE);
    if (!raw)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field of %u tiles", layer->field.tile_count);
    layer->last = 0;
    set_samples(layer, shapes, raw);
    store_bits(layer, raw);
    free(raw);
    return NDT_OK;
}

/* ---- layers ---- */

static enum ndt_status append(struct ndt_field *field, const struct ndt_layer *layer, struct ndt_error *err)
{
    const size_t count = (size_t)field->tile_count + layer->field.tile_count;
    if (count > NDT_FIELD_TILES_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "the map covers %zu tiles of %d m in all layers; the limit is %d",
                        count, NDT_FIELD_TILE_M, NDT_FIELD_TILES_MAX);
    struct ndt_field_tile *tiles = realloc((void *)field->tiles, (count + 1) * sizeof(*tiles));
    if (!tiles)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field of %zu tiles", count);
    memcpy(tiles + field->tile_count, layer->field.tiles, layer->field.tile_count * sizeof(*tiles));
    field->tiles = tiles;
    field->tile_count = (uint32_t)count;
    field->layer_count++;
    return NDT_OK;
}

static enum ndt_status build_layers(struct ndt_field *field, const struct ndt_shapes *shapes, struct ndt_error *err)
{
    struct ndt_layer below = {0}, layer;
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < NDT_FIELD_LAYERS; i++) {
        status = ndt_layer_ground(&layer, shapes, i > 0 ? &below : NULL, err);
        const int is_last = layer.field.tile_count == 0;
        if (status == NDT_OK && !is_last)
            status = add_bits(&layer, shapes, err);
        if (status == NDT_OK && !is_last)
            status = append(field, &layer, err);
        ndt_layer_free(&below);
        below = layer;
        if (is_last)
            break;
    }
    ndt_layer_free(&below);
    return status;
}

/* The level nearest to 1 m. */
static const struct ndt_map_level *choose_level(const struct ndt_map *map)
{
    const struct ndt_map_level *best = NULL;
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        if (level->leaf_m >= 0.5 && level->leaf_m <= 2 &&
            (!best || fabs(log(level->leaf_m)) < fabs(log(best->leaf_m))))
            best = level;
    }
    return best;
}

enum ndt_status ndt_field_build(struct ndt_field **out, const struct ndt_map *map, struct ndt_error *err)
{
    const struct ndt_map_level *level = choose_level(map);
    struct ndt_shapes shapes = {0};
    *out = NULL;
    if (!level)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "a field needs a level of the map between 0.5 and 2 m");
    struct ndt_field *field = calloc(1, sizeof(*field));
    if (!field)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field");
    field->references = 1;
    field->map_id = map->id;
    memcpy(field->origin_m, map->origin_m, sizeof(field->origin_m));
    enum ndt_status status = ndt_shapes_from_level(&shapes, level, err);
    if (status == NDT_OK)
        status = build_layers(field, &shapes, err);
    free(shapes.items);
    if (status == NDT_OK)
        *out = field;
    else
        ndt_field_release(field);
    return status;
}

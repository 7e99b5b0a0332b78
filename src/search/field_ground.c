/* The ground of a layer: its tiles, the height of each square metre, and where it was measured. */
#include "field_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"

/* Ground lies within NEAR_M of the 30th percentile of the lowest flat voxels of 12 x 12 m, taken for 4 x 4 m at
 * once; a floor above it is HEADROOM_M higher, covers a part of these 12 x 12 m and has something standing on it.
 */
enum { GROUP = 4, GROUPS = NDT_FIELD_TILE_M / GROUP, LEAST_VALUES = 3, FLOOR_VALUES = 36, FLOOR_OBJECTS = 8 };
enum { MARGIN_M = 3, KNOWN_M = 2 };
static const float NEAR_M = 0.9f, HEADROOM_M = 2.2f, OBJECT_LOW_M = 0.5f, OBJECT_HIGH_M = 3;
static const double PERCENTILE = 0.3;

void ndt_layer_free(struct ndt_layer *layer)
{
    free((void *)layer->field.tiles);
    free(layer->ground_m);
    free(layer->is_measured);
    *layer = (struct ndt_layer){0};
}

int ndt_layer_find(struct ndt_layer *layer, float x_m, float y_m, size_t *tile, size_t *cell)
{
    const int32_t x = (int32_t)floorf(x_m), y = (int32_t)floorf(y_m);
    const struct ndt_field_tile *tiles = layer->field.tiles;
    if (layer->field.tile_count == 0)
        return 0;
    if (tiles[layer->last].y != y >> 5 || tiles[layer->last].x != x >> 5) {
        const struct ndt_field_tile *found = ndt_field_tile(&layer->field, tiles[0].layer, y >> 5, x >> 5);
        if (!found)
            return 0;
        layer->last = (size_t)(found - tiles);
    }
    *tile = layer->last;
    *cell = (size_t)(y & 31) * NDT_FIELD_TILE_M + (size_t)(x & 31);
    return 1;
}

/* ---- the tiles of the lowest layer ---- */

struct keys {
    uint64_t *items;
    size_t count, capacity;
    uint64_t recent[1024]; /* keys that were added last, by hash */
};

static uint64_t key_of(int32_t y, int32_t x)
{
    return (uint64_t)(uint32_t)(y + (1 << 20)) << 32 | (uint32_t)(x + (1 << 20));
}

static int add_key(struct keys *keys, uint64_t key)
{
    uint64_t *recent = &keys->recent[(key ^ key >> 27) % 1024];
    if (*recent == key)
        return 1;
    if (keys->count == keys->capacity) {
        const size_t capacity = keys->capacity ? 2 * keys->capacity : 4096;
        uint64_t *items = realloc(keys->items, capacity * sizeof(*items));
        if (!items)
            return 0;
        keys->items = items;
        keys->capacity = capacity;
    }
    *recent = keys->items[keys->count++] = key;
    return 1;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Collects the tiles within MARGIN_M of a voxel, sorted. */
static enum ndt_status collect_keys(struct keys *keys, const struct ndt_shapes *shapes, struct ndt_error *err)
{
    int is_good = 1;
    for (size_t i = 0; is_good && i < shapes->count; i++) {
        const int32_t x = (int32_t)floorf(shapes->items[i].mean_m[0]);
        const int32_t y = (int32_t)floorf(shapes->items[i].mean_m[1]);
        for (int k = 0; k < 4; k++)
            is_good &= add_key(
                keys, key_of((y + (k & 2 ? MARGIN_M : -MARGIN_M)) >> 5, (x + (k & 1 ? MARGIN_M : -MARGIN_M)) >> 5));
    }
    if (!is_good)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the tiles of a field");
    if (keys->count > 0)
        qsort(keys->items, keys->count, sizeof(*keys->items), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < keys->count; i++)
        if (i == 0 || keys->items[i] != keys->items[i - 1])
            keys->items[kept++] = keys->items[i];
    keys->count = kept;
    if (kept > NDT_FIELD_TILES_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "the map covers %zu tiles of %d m; the limit of a field is %d", kept,
                        NDT_FIELD_TILE_M, NDT_FIELD_TILES_MAX);
    return NDT_OK;
}

static enum ndt_status allocate(struct ndt_layer *layer, size_t count, struct ndt_error *err)
{
    layer->field.tile_count = (uint32_t)count;
    layer->field.tiles = calloc(count + 1, sizeof(*layer->field.tiles));
    layer->ground_m = malloc((count * NDT_TILE_CELLS + 1) * sizeof(*layer->ground_m));
    layer->is_measured = calloc(count + 1, NDT_TILE_CELLS);
    if (!layer->field.tiles || !layer->ground_m || !layer->is_measured)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field of %zu tiles", count);
    for (size_t i = 0; i < count * NDT_TILE_CELLS; i++)
        layer->ground_m[i] = NAN;
    return NDT_OK;
}

static struct ndt_field_tile *tile_of(struct ndt_layer *layer, size_t i)
{
    return (struct ndt_field_tile *)layer->field.tiles + i;
}

static enum ndt_status place_tiles(struct ndt_layer *layer, const struct ndt_shapes *shapes,
                                   struct ndt_layer *below, struct ndt_error *err)
{
    struct keys *keys = calloc(1, sizeof(*keys));
    if (!keys)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a field");
    enum ndt_status status = below ? NDT_OK : collect_keys(keys, shapes, err);
    if (status == NDT_OK)
        status = allocate(layer, below ? below->field.tile_count : keys->count, err);
    for (size_t i = 0; status == NDT_OK && i < layer->field.tile_count; i++) {
        struct ndt_field_tile *tile = tile_of(layer, i);
        tile->layer = below ? below->field.tiles[i].layer + 1 : 0;
        tile->y = below ? below->field.tiles[i].y : (int32_t)(keys->items[i] >> 32) - (1 << 20);
        tile->x = below ? below->field.tiles[i].x : (int32_t)(uint32_t)keys->items[i] - (1 << 20);
    }
    free(keys->items);
    free(keys);
    return status;
}

/* ---- which flat voxels are ground ---- */

/* Height above which a flat voxel belongs to this layer. */
static float limit_m(const struct ndt_layer *below, size_t at)
{
    return below ? below->ground_m[at] + HEADROOM_M : -INFINITY; /* NAN: there is no ground to be above */
}

static void find_lowest(struct ndt_layer *layer, const struct ndt_shapes *shapes, const struct ndt_layer *below,
                        float *lowest_m)
{
    size_t tile, cell;
    for (size_t i = 0; i < shapes->count; i++) {
        const struct ndt_shape *shape = &shapes->items[i];
        if (!shape->is_flat || !ndt_layer_find(layer, shape->mean_m[0], shape->mean_m[1], &tile, &cell))
            continue;
        float *lowest = &lowest_m[tile * NDT_TILE_CELLS + cell];
        if (shape->mean_m[2] > limit_m(below, tile * NDT_TILE_CELLS + cell) && !(*lowest <= shape->mean_m[2]))
            *lowest = shape->mean_m[2];
    }
}

static int by_height(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* The percentile of the values around a group; NAN: too few. */
static float level_of_group(const float *window, int y, int x, int least)
{
    enum { SIDE = 3 * GROUP, STRIDE = NDT_FIELD_TILE_M + 2 * GROUP };
    float values[SIDE * SIDE];
    int count = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const float value = window[(y * GROUP + i / SIDE) * STRIDE + x * GROUP + i % SIDE];
        if (!isnan(value))
            values[count++] = value;
    }
    if (count < least)
        return NAN;
    qsort(values, (size_t)count, sizeof(*values), by_height);
    return values[(int)(PERCENTILE * (count - 1))];
}

static void find_levels(const struct ndt_layer *layer, const float *lowest_m, int least, float *levels_m)
{
    enum { SIDE = NDT_FIELD_TILE_M + 2 * GROUP };
    float around[SIDE * SIDE];
    const float none = NAN;
    const struct ndt_cell_array array = {lowest_m, NDT_TILE_CELLS * sizeof(float), NDT_FIELD_TILE_M, sizeof(float)};
    for (size_t i = 0; i < layer->field.tile_count; i++) {
        const struct ndt_field_tile *tile = &layer->field.tiles[i];
        const struct ndt_window window = {
            tile->layer, tile->y * NDT_FIELD_TILE_M - GROUP, tile->x * NDT_FIELD_TILE_M - GROUP, SIDE, SIDE, SIDE};
        ndt_window_copy(&layer->field, &array, &window, &none, around);
        for (int g = 0; g < GROUPS * GROUPS; g++)
            levels_m[i * GROUPS * GROUPS + (size_t)g] = level_of_group(around, g / GROUPS, g % GROUPS, least);
    }
}

static void choose_ground(struct ndt_layer *layer, const struct ndt_shapes *shapes, const struct ndt_layer *below,
                          const float *levels_m)
{
    size_t tile, cell;
    for (size_t i = 0; i < shapes->count; i++) {
        const struct ndt_shape *shape = &shapes->items[i];
        if (!shape->is_flat || !ndt_layer_find(layer, shape->mean_m[0], shape->mean_m[1], &tile, &cell))
            continue;
        const size_t at = tile * NDT_TILE_CELLS + cell;
        const size_t group = cell / NDT_FIELD_TILE_M / GROUP * GROUPS + cell % NDT_FIELD_TILE_M / GROUP;
        const float height_m = shape->mean_m[2];
        if (!(fabsf(height_m - levels_m[tile * GROUPS * GROUPS + group]) <= NEAR_M) ||
            !(height_m > limit_m(below, at)) || layer->ground_m[at] <= height_m)
            continue;
        layer->ground_m[at] = height_m;
        layer->is_measured[at] = 1;
    }
}

/* ---- floors above the ground ---- */

/* Marks the tiles whose floor has objects standing on it, and those around them. */
static void mark_floors(struct ndt_layer *layer, const struct ndt_shapes *shapes, uint32_t *objects,
                        uint8_t *is_kept)
{
    size_t tile, cell;
    for (size_t i = 0; i < shapes->count; i++) {
        const struct ndt_shape *shape = &shapes->items[i];
        if (shape->is_flat || !ndt_layer_find(layer, shape->mean_m[0], shape->mean_m[1], &tile, &cell))
            continue;
        const float height_m = shape->mean_m[2] - layer->ground_m[tile * NDT_TILE_CELLS + cell];
        objects[tile] += height_m > OBJECT_LOW_M && height_m < OBJECT_HIGH_M;
    }
    for (size_t i = 0; i < layer->field.tile_count; i++) {
        const struct ndt_field_tile *at = &layer->field.tiles[i];
        for (int k = 0; objects[i] >= FLOOR_OBJECTS && k < 9; k++) {
            const struct ndt_field_tile *near =
                ndt_field_tile(&layer->field, at->layer, at->y + k / 3 - 1, at->x + k % 3 - 1);
            if (near)
                is_kept[near - layer->field.tiles] = 1;
        }
    }
}

/* Keeps the marked tiles. Floors of unmarked ones vanish with them. */
static void keep_tiles(struct ndt_layer *layer, const uint8_t *is_kept)
{
    size_t kept = 0;
    for (size_t i = 0; i < layer->field.tile_count; i++) {
        if (!is_kept[i])
            continue;
        *tile_of(layer, kept) = layer->field.tiles[i];
        memmove(layer->ground_m + kept * NDT_TILE_CELLS, layer->ground_m + i * NDT_TILE_CELLS,
                NDT_TILE_CELLS * sizeof(float));
        memmove(layer->is_measured + kept * NDT_TILE_CELLS, layer->is_measured + i * NDT_TILE_CELLS,
                NDT_TILE_CELLS);
        kept++;
    }
    layer->field.tile_count = (uint32_t)kept;
    layer->last = 0;
}

static enum ndt_status keep_floors(struct ndt_layer *layer, const struct ndt_shapes *shapes, struct ndt_error *err)
{
    uint32_t *objects = calloc(layer->field.tile_count + 1, sizeof(*objects));
    uint8_t *is_kept = calloc(layer->field.tile_count + 1, 1);
    if (objects && is_kept) {
        mark_floors(layer, shapes, objects, is_kept);
        keep_tiles(layer, is_kept);
    }
    const int is_good = objects && is_kept;
    free(objects);
    free(is_kept);
    return is_good ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for the floors of a field");
}

/* ---- holes ---- */

/* Finds the cell to the west, east, south or north; 0 where there is no tile. */
static int step(const struct ndt_layer *layer, size_t at, int direction, size_t *next)
{
    static const int dx[4] = {-1, 1, 0, 0}, dy[4] = {0, 0, -1, 1};
    const int x = (int)(at % NDT_FIELD_TILE_M) + dx[direction];
    const int y = (int)(at % NDT_TILE_CELLS / NDT_FIELD_TILE_M) + dy[direction];
    size_t tile = at / NDT_TILE_CELLS;
    if (x < 0 || y < 0 || x >= NDT_FIELD_TILE_M || y >= NDT_FIELD_TILE_M) {
        const struct ndt_field_tile *here = &layer->field.tiles[tile];
        const struct ndt_field_tile *found =
            ndt_field_tile(&layer->field, here->layer, here->y + dy[direction], here->x + dx[direction]);
        if (!found)
            return 0;
        tile = (size_t)(found - layer->field.tiles);
    }
    *next = tile * NDT_TILE_CELLS + (size_t)((y & 31) * NDT_FIELD_TILE_M + (x & 31));
    return 1;
}

/* Fills every cell that is connected with ground with the height of the nearest ground, breadth first. */
static enum ndt_status fill_holes(struct ndt_layer *layer, struct ndt_error *err)
{
    const size_t cells = (size_t)layer->field.tile_count * NDT_TILE_CELLS;
    uint32_t *queue = malloc((cells + 1) * sizeof(*queue));
    size_t count = 0, next;
    if (!queue)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the ground of a field");
    for (size_t i = 0; i < cells; i++)
        if (layer->is_measured[i])
            queue[count++] = (uint32_t)i;
    for (size_t head = 0; head < count; head++)
        for (int direction = 0; direction < 4; direction++)
            if (step(layer, queue[head], direction, &next) && isnan(layer->ground_m[next])) {
                layer->ground_m[next] = layer->ground_m[queue[head]];
                queue[count++] = (uint32_t)next;
            }
    free(queue);
    return NDT_OK;
}

/* ---- what is stored ---- */

static void store_heights(struct ndt_field_tile *tile, const float *ground_m)
{
    double sum_m = 0;
    int count = 0;
    for (int c = 0; c < NDT_TILE_CELLS; c++)
        if (!isnan(ground_m[c])) {
            sum_m += (double)ground_m[c];
            count++;
        }
    tile->base_m = count ? (float)round(sum_m / count) : 0;
    for (int c = 0; c < NDT_TILE_CELLS; c++) {
        const double height_cm =
            isnan(ground_m[c]) ? INFINITY : round(100 * ((double)ground_m[c] - (double)tile->base_m));
        tile->ground_cm[c] = fabs(height_cm) < 32000 ? (int16_t)height_cm : (int16_t)NDT_FIELD_NO_GROUND;
    }
}

static void store_known(struct ndt_layer *layer)
{
    enum { SIDE = NDT_FIELD_TILE_M + 2 * KNOWN_M };
    uint8_t around[SIDE * SIDE];
    const uint8_t none = 0;
    const struct ndt_cell_array array = {layer->is_measured, NDT_TILE_CELLS, NDT_FIELD_TILE_M, 1};
    for (size_t i = 0; i < layer->field.tile_count; i++) {
        struct ndt_field_tile *tile = tile_of(layer, i);
        const struct ndt_window window = {
            tile->layer, tile->y * NDT_FIELD_TILE_M - KNOWN_M, tile->x * NDT_FIELD_TILE_M - KNOWN_M, SIDE, SIDE,
            SIDE};
        store_heights(tile, layer->ground_m + i * NDT_TILE_CELLS);
        ndt_window_copy(&layer->field, &array, &window, &none, around);
        for (int c = 0; c < NDT_TILE_CELLS; c++) {
            int near = 0;
            for (int y = 0; y <= 2 * KNOWN_M; y++)
                for (int x = 0; x <= 2 * KNOWN_M; x++)
                    near |= around[(c / NDT_FIELD_TILE_M + y) * SIDE + c % NDT_FIELD_TILE_M + x];
            if (near && tile->ground_cm[c] != NDT_FIELD_NO_GROUND)
                tile->known[c / 8] |= (uint8_t)(1 << c % 8);
        }
    }
}

enum ndt_status ndt_layer_ground(struct ndt_layer *out, const struct ndt_shapes *shapes, struct ndt_layer *below,
                                 struct ndt_error *err)
{
    *out = (struct ndt_layer){0};
    enum ndt_status status = place_tiles(out, shapes, below, err);
    if (status != NDT_OK || out->field.tile_count == 0)
        return status;
    const size_t tiles = out->field.tile_count;
    float *lowest_m = malloc(tiles * NDT_TILE_CELLS * sizeof(*lowest_m));
    float *levels_m = malloc(tiles * GROUPS * GROUPS * sizeof(*levels_m));
    if (lowest_m && levels_m) {
        for (size_t i = 0; i < tiles * NDT_TILE_CELLS; i++)
            lowest_m[i] = NAN;
        find_lowest(out, shapes, below, lowest_m);
        find_levels(out, lowest_m, below ? FLOOR_VALUES : LEAST_VALUES, levels_m);
        choose_ground(out, shapes, below, levels_m);
    } else {
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for the ground of a field");
    }
    free(lowest_m);
    free(levels_m);
    if (status == NDT_OK && below)
        status = keep_floors(out, shapes, err);
    if (status == NDT_OK)
        status = fill_holes(out, err);
    if (status == NDT_OK)
        store_known(out);
    return status;
}

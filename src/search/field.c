/* The field as an object: references, look-up, sizes. */
#include "ndt_search/field.h"

#include <math.h>
#include <stdlib.h>

const double ndt_field_band_edges_m[NDT_FIELD_BANDS] = {0.3, 0.8, 1.4, 2, 3, 4.5, 7, 10};

struct ndt_field *ndt_field_retain(struct ndt_field *field)
{
    if (field)
        __atomic_add_fetch(&field->references, 1, __ATOMIC_RELAXED);
    return field;
}

void ndt_field_release(struct ndt_field *field)
{
    if (!field || __atomic_sub_fetch(&field->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free((void *)field->tiles);
    free(field);
}

size_t ndt_field_bytes(const struct ndt_field *field)
{
    return sizeof(*field) + field->tile_count * sizeof(struct ndt_field_tile);
}

double ndt_field_cell_m(int level)
{
    return level == 0 ? 2 : level == 1 ? 1 : 0.5;
}

static int compare(const struct ndt_field_tile *tile, int32_t layer, int32_t y, int32_t x)
{
    if (tile->layer != layer)
        return tile->layer < layer ? -1 : 1;
    if (tile->y != y)
        return tile->y < y ? -1 : 1;
    return tile->x < x ? -1 : tile->x > x;
}

const struct ndt_field_tile *ndt_field_tile(const struct ndt_field *field, int32_t layer, int32_t y, int32_t x)
{
    uint32_t low = 0, high = field->tile_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare(&field->tiles[middle], layer, y, x);
        if (order == 0)
            return &field->tiles[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int ndt_field_ground(const struct ndt_field *field, int32_t layer, double x_m, double y_m, double *height_m)
{
    const double limit_m = (double)NDT_FIELD_TILE_M * (1 << 20);
    if (!(fabs(x_m) < limit_m && fabs(y_m) < limit_m))
        return 0;
    const int32_t x = (int32_t)floor(x_m), y = (int32_t)floor(y_m);
    const struct ndt_field_tile *tile = ndt_field_tile(field, layer, y >> 5, x >> 5);
    const int16_t ground_cm = tile ? tile->ground_cm[(y & 31) * NDT_FIELD_TILE_M + (x & 31)] : NDT_FIELD_NO_GROUND;
    if (!tile || ground_cm == NDT_FIELD_NO_GROUND)
        return 0;
    *height_m = (double)tile->base_m + 0.01 * ground_cm;
    return 1;
}

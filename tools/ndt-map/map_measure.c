#include "map_measure.h"

#include <math.h>
#include <stdlib.h>

#include "ndt/limits.h"

enum { FIRST_CAPACITY = 1 << 16 };

void map_measure_init(struct map_measure *measure)
{
    *measure = (struct map_measure){.fields = ~0u};
    for (int k = 0; k < 3; k++) {
        measure->min_m[k] = INFINITY;
        measure->max_m[k] = -INFINITY;
    }
}

void map_measure_free(struct map_measure *measure)
{
    free(measure->squares);
    measure->squares = NULL;
    measure->capacity = 0;
}

/* ---- the set of squares; a key is never 0 ---- */

static uint64_t key_of(double x_m, double y_m)
{
    const int64_t x = (int64_t)floor(x_m), y = (int64_t)floor(y_m);
    return ((uint64_t)(uint32_t)(int32_t)x << 32 | (uint32_t)(int32_t)y) ^ UINT64_C(0x8000000080000001);
}

static uint64_t slot_of(const struct map_measure *measure, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t slot = (hash ^ hash >> 32) & (measure->capacity - 1);
    while (measure->squares[slot] && measure->squares[slot] != key)
        slot = (slot + 1) & (measure->capacity - 1);
    return slot;
}

static enum ndt_status grow(struct map_measure *measure, struct ndt_error *err)
{
    struct map_measure larger = {.capacity = measure->capacity ? 2 * measure->capacity : FIRST_CAPACITY};
    larger.squares = calloc(larger.capacity, sizeof(*larger.squares));
    if (!larger.squares)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for an area of %llu m2",
                        (unsigned long long)measure->area_m2);
    for (uint64_t i = 0; i < measure->capacity; i++)
        if (measure->squares[i])
            larger.squares[slot_of(&larger, measure->squares[i])] = measure->squares[i];
    free(measure->squares);
    measure->squares = larger.squares;
    measure->capacity = larger.capacity;
    return NDT_OK;
}

static enum ndt_status add_square(struct map_measure *measure, double x_m, double y_m, struct ndt_error *err)
{
    const uint64_t key = key_of(x_m, y_m);
    if (2 * measure->area_m2 >= measure->capacity) {
        const enum ndt_status status = grow(measure, err);
        if (status != NDT_OK)
            return status;
    }
    uint64_t *square = &measure->squares[slot_of(measure, key)];
    measure->area_m2 += *square == 0;
    *square = key;
    return NDT_OK;
}

/* ---- points ---- */

static void add_bounds(struct map_measure *measure, const double point_m[3])
{
    for (int k = 0; k < 3; k++) {
        measure->min_m[k] = fmin(measure->min_m[k], point_m[k]);
        measure->max_m[k] = fmax(measure->max_m[k], point_m[k]);
    }
}

enum ndt_status map_measure_add(struct map_measure *measure, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    measure->fields &= cloud->fields;
    for (size_t i = 0; status == NDT_OK && i < cloud->count; i++) {
        const double point_m[3] = {cloud->origin_m[0] + (double)cloud->x_m[i],
                                   cloud->origin_m[1] + (double)cloud->y_m[i],
                                   cloud->origin_m[2] + (double)cloud->z_m[i]};
        if (!(fabs(point_m[0]) <= NDT_LIMIT_POSITION_M && fabs(point_m[1]) <= NDT_LIMIT_POSITION_M &&
              fabs(point_m[2]) <= NDT_LIMIT_POSITION_M)) {
            measure->not_finite++;
            continue;
        }
        measure->points++;
        add_bounds(measure, point_m);
        status = add_square(measure, point_m[0], point_m[1], err);
    }
    return status;
}

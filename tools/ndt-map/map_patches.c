#include "map_patches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/linalg.h"

static const double DEVIATION_MAX_M = 0.6, NEAR_LEAF_M = 1;

struct keyed_patch {
    int64_t key;
    uint32_t number;
    struct map_patch patch;
};

static int64_t key_of(int32_t x, int32_t y)
{
    return (int64_t)y * ((int64_t)1 << 32) + x;
}

static struct map_patch make_patch(const struct ndt_voxel *voxel, double leaf_m)
{
    struct map_patch patch;
    double upper[6], values[3], V[9];
    for (int i = 0; i < 6; i++)
        upper[i] = (double)voxel->icov[i];
    ndt_eigen_symmetric(3, upper, values, V); /* of the inverse covariance: longest axis first */
    for (int i = 0; i < 3; i++) {
        patch.mean_m[i] = (float)(voxel->cell[i] * leaf_m + (double)voxel->mean_m[i]);
        for (int k = 0; k < 2; k++)
            patch.axes_m[k][i] =
                (float)(fmin(1 / sqrt(fmax(values[k], 1e-6)), DEVIATION_MAX_M * leaf_m) * V[3 * i + k]);
    }
    return patch;
}

static int compare(const void *a, const void *b)
{
    const struct keyed_patch *p = a, *q = b;
    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

static const struct ndt_map_level *nearest_level(const struct ndt_map *map)
{
    const struct ndt_map_level *best = &map->levels[0];
    for (size_t i = 1; i < map->level_count; i++)
        if (fabs(log(map->levels[i].leaf_m / NEAR_LEAF_M)) < fabs(log(best->leaf_m / NEAR_LEAF_M)))
            best = &map->levels[i];
    return best;
}

static void take(struct map_patches *out, const struct keyed_patch *sorted)
{
    for (size_t i = 0; i < out->count; i++) {
        out->items[i] = sorted[i].patch;
        out->keys[i] = sorted[i].key;
        for (int k = 0; k < 3; k++) {
            const double at_m = out->origin_m[k] + (double)out->items[i].mean_m[k];
            out->min_m[k] = i ? fmin(out->min_m[k], at_m) : at_m;
            out->max_m[k] = i ? fmax(out->max_m[k], at_m) : at_m;
        }
    }
}

enum ndt_status map_patches_open(struct map_patches *out, const struct ndt_map *map, struct ndt_error *err)
{
    const struct ndt_map_level *level = nearest_level(map);
    *out = (struct map_patches){.count = level->voxel_count - 1};
    memcpy(out->origin_m, map->origin_m, sizeof(out->origin_m));
    if (out->count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "the map has no voxel of %g m", level->leaf_m);
    struct keyed_patch *sorted = malloc(out->count * sizeof(*sorted));
    out->items = malloc(out->count * sizeof(*out->items));
    out->keys = malloc(out->count * sizeof(*out->keys));
    if (!sorted || !out->items || !out->keys) {
        free(sorted);
        map_patches_close(out);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u voxels", level->voxel_count);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        sorted[i].patch = make_patch(&level->voxels[i + 1], level->leaf_m);
        sorted[i].number = i;
        sorted[i].key = key_of((int32_t)floorf(sorted[i].patch.mean_m[0] / MAP_PATCH_TILE_M),
                               (int32_t)floorf(sorted[i].patch.mean_m[1] / MAP_PATCH_TILE_M));
    }
    qsort(sorted, out->count, sizeof(*sorted), compare);
    take(out, sorted);
    free(sorted);
    return NDT_OK;
}

void map_patches_close(struct map_patches *patches)
{
    free(patches->items);
    free(patches->keys);
    *patches = (struct map_patches){.count = 0};
}

void map_patch_sample(const struct map_patch *patch, int i, float point_m[3])
{
    static const float at[4] = {-1.5f, -0.5f, 0.5f, 1.5f}; /* deviations */
    for (int k = 0; k < 3; k++)
        point_m[k] = patch->mean_m[k] + at[i % 4] * patch->axes_m[0][k] + at[i / 4] * patch->axes_m[1][k];
}

static size_t first_from(const struct map_patches *patches, int64_t key)
{
    size_t low = 0, high = patches->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (patches->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void map_patches_tile(const struct map_patches *patches, int32_t x, int32_t y, size_t *begin, size_t *end)
{
    *begin = first_from(patches, key_of(x, y));
    for (*end = *begin; *end < patches->count && patches->keys[*end] == key_of(x, y);)
        ++*end;
}

#include "ndt/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map_builder.h"
#include "ndt/hash.h"

struct moment_list {
    struct ndt_moments *items;
    size_t count;
};

/* Integer steps to metres; cells below the minimum stay, a coarser level may need them. */
static enum ndt_status moments_from_table(struct moment_list *out, const struct ndt_sum_table *table,
                                          struct ndt_error *err)
{
    out->count = 0;
    out->items = malloc((table->used + 1) * sizeof(*out->items));
    if (!out->items)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu cells", table->used);
    const double step_m = table->leaf_m / NDT_CELL_STEPS;
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct ndt_cell_sums *sums = &table->slots[i];
        if (sums->key == 0 || sums->n == 0)
            continue;
        struct ndt_moments *m = &out->items[out->count++];
        ndt_cell_from_key(sums->key, m->cell);
        m->n = sums->n;
        for (int k = 0; k < 3; k++)
            m->s_m[k] = (double)sums->s[k] * step_m;
        for (int k = 0; k < 6; k++)
            m->q_m2[k] = (double)sums->q[k] * step_m * step_m;
    }
    return NDT_OK;
}

/* Moves moments to another centre: x = u + d. */
static void shift(struct ndt_moments *m, const double d_m[3])
{
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++)
            m->q_m2[at] += m->s_m[i] * d_m[j] + d_m[i] * m->s_m[j] + m->n * d_m[i] * d_m[j];
    for (int i = 0; i < 3; i++)
        m->s_m[i] += m->n * d_m[i];
}

static void merge(struct ndt_moments *into, const struct ndt_moments *m)
{
    into->n += m->n;
    for (int i = 0; i < 3; i++)
        into->s_m[i] += m->s_m[i];
    for (int i = 0; i < 6; i++)
        into->q_m2[i] += m->q_m2[i];
}

static int compare_moments(const void *a, const void *b)
{
    const struct ndt_moments *x = a, *y = b;
    for (int i = 2; i >= 0; i--)
        if (x->cell[i] >> 1 != y->cell[i] >> 1)
            return x->cell[i] >> 1 < y->cell[i] >> 1 ? -1 : 1;
    for (int i = 2; i >= 0; i--)
        if (x->cell[i] != y->cell[i])
            return x->cell[i] < y->cell[i] ? -1 : 1;
    return 0;
}

/* 2x2x2 cells into one. The eight children are added in a fixed order, so the result depends on the points
 * alone and not on the order in which they came. */
static void coarsen(struct moment_list *list, double fine_leaf_m)
{
    qsort(list->items, list->count, sizeof(*list->items), compare_moments);
    size_t used = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct ndt_moments m = list->items[i];
        double d_m[3];
        for (int k = 0; k < 3; k++) {
            d_m[k] = (m.cell[k] & 1 ? 0.5 : -0.5) * fine_leaf_m;
            m.cell[k] >>= 1;
        }
        shift(&m, d_m);
        if (used > 0 && memcmp(list->items[used - 1].cell, m.cell, sizeof(m.cell)) == 0)
            merge(&list->items[used - 1], &m);
        else
            list->items[used++] = m;
    }
    list->count = used;
}

static void release_levels(struct ndt_map *map)
{
    for (size_t i = 0; i < map->level_count; i++)
        ndt_map_level_free(&map->levels[i]);
    free(map);
}

static size_t level_bytes(const struct ndt_map_level *level)
{
    return level->voxel_count * sizeof(struct ndt_voxel) + level->brick_slots * sizeof(uint32_t) +
           (level->hashed ? level->brick_slots * sizeof(uint64_t) : 0) +
           (size_t)level->brick_count * 512 * sizeof(struct ndt_cell_ref) + level->list_words * sizeof(uint32_t);
}

uint64_t ndt_map_identity(const struct ndt_map *map)
{
    uint64_t h = ndt_hash64(map->origin_m, sizeof(map->origin_m), 1);
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        const double constants[3] = {level->leaf_m, level->d1, level->d2};
        h = ndt_hash64(constants, sizeof(constants), h);
        h = ndt_hash64(level->voxels, level->voxel_count * sizeof(struct ndt_voxel), h);
    }
    return h;
}

/* From fine to coarse, so that a derived level finds the moments of the finer one. */
static enum ndt_status build_levels(struct ndt_map *map, const struct ndt_map_builder *builder,
                                    struct moment_list *list, struct ndt_error *err)
{
    for (size_t i = map->level_count; i-- > 0;) {
        const double leaf_m = builder->config.leaf_m[i];
        enum ndt_status status = NDT_OK;
        if (builder->derived[i]) {
            coarsen(list, builder->config.leaf_m[i + 1]);
        } else {
            free(list->items);
            status = moments_from_table(list, &builder->tables[i], err);
        }
        if (status == NDT_OK)
            status = ndt_map_level_build(&map->levels[i], &builder->config, leaf_m, list->items, list->count, err);
        if (status != NDT_OK)
            return status;
        map->bytes += level_bytes(&map->levels[i]);
    }
    return NDT_OK;
}

enum ndt_status ndt_map_build(struct ndt_map **out, const struct ndt_map_builder *builder, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_map *map = calloc(1, sizeof(*map));
    if (!map)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a map");
    memcpy(map->origin_m, builder->origin_m, sizeof(map->origin_m));
    map->config = builder->config;
    map->level_count = builder->config.level_count;
    map->points = builder->points;
    map->references = 1;
    map->release = release_levels;
    struct moment_list list = {0};
    enum ndt_status status = build_levels(map, builder, &list, err);
    free(list.items);
    if (status != NDT_OK) {
        release_levels(map);
        return status;
    }
    map->id = ndt_map_identity(map);
    *out = map;
    return NDT_OK;
}

enum ndt_status ndt_map_from_cloud(struct ndt_map **out, const struct ndt_map_config *config,
                                   const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct ndt_map_builder *builder;
    *out = NULL;
    enum ndt_status status = ndt_map_builder_create(&builder, config, err);
    if (status != NDT_OK)
        return status;
    status = ndt_map_builder_add(builder, cloud, err);
    if (status == NDT_OK)
        status = ndt_map_build(out, builder, err);
    ndt_map_builder_destroy(builder);
    return status;
}

struct ndt_map *ndt_map_retain(struct ndt_map *map)
{
    if (map)
        __atomic_add_fetch(&map->references, 1, __ATOMIC_RELAXED);
    return map;
}

void ndt_map_release(struct ndt_map *map)
{
    if (map && __atomic_sub_fetch(&map->references, 1, __ATOMIC_ACQ_REL) == 0)
        map->release(map);
}

int ndt_map_find_level(const struct ndt_map *map, double leaf_m)
{
    for (size_t i = 0; i < map->level_count; i++)
        if (fabs(map->levels[i].leaf_m - leaf_m) < 1e-6)
            return (int)i;
    return -1;
}

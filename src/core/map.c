/* Maps: from the sums of a builder to a finished map, its identity and its references. */
#include "ndt/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map_build.h"
#include "ndt/hash.h"

/* Least work for which a thread is started. */
enum { CELLS_PER_THREAD = 2048 };

struct keyed {
    uint64_t key;
    size_t item;
};

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static size_t digit_of(uint64_t key, int shift)
{
    return (size_t)(key >> shift) & (DIGITS - 1);
}

static void sort_by_digit(const struct keyed *from, struct keyed *to, size_t count, int shift)
{
    size_t place[DIGITS] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        place[digit_of(from[i].key, shift)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const size_t here = place[d];
        place[d] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[place[digit_of(from[i].key, shift)]++] = from[i];
}

/* Sorts by key, ascending; equal keys keep their order. `scratch` has room for as many items. Linear in `count`:
 * one pass per eleven bits in which keys differ. */
static void sort_by_key(struct keyed *items, struct keyed *scratch, size_t count)
{
    uint64_t differ = 0;
    struct keyed *from = items, *to = scratch;
    for (size_t i = 1; i < count; i++)
        differ |= items[i].key ^ items[0].key;
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (digit_of(differ, shift) == 0)
            continue;
        sort_by_digit(from, to, count, shift);
        struct keyed *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}

/* The moments of all cells of a level, in the order of the cells (z, y, x). */
struct moment_list {
    struct ndt_moments *items;
    size_t count;
};

/* Memory to sort `count` keys: the keys, and as much scratch behind them. */
static struct keyed *make_keys(size_t count, struct ndt_error *err)
{
    struct keyed *keys = malloc(2 * (count + 1) * sizeof(*keys));
    if (!keys)
        (void)ndt_fail(err, NDT_ERR_MEMORY, "no memory to sort %zu cells", count);
    return keys;
}

/* Integer steps to metres. */
static void moments_from_sums(struct ndt_moments *m, const struct ndt_cell_sums *sums, double step_m)
{
    ndt_cell_from_key(sums->key, m->cell);
    m->n = sums->n;
    for (int k = 0; k < 3; k++)
        m->s_m[k] = (double)sums->s[k] * step_m;
    for (int k = 0; k < 6; k++)
        m->q_m2[k] = (double)sums->q[k] * step_m * step_m;
}

/* Cells with too few points for a voxel are included: a coarser level may need them. */
static enum ndt_status moments_from_table(struct moment_list *out, const struct ndt_sum_table *table,
                                          struct ndt_error *err)
{
    struct keyed *keys = make_keys(table->used, err);
    out->count = 0;
    out->items = malloc((table->used + 1) * sizeof(*out->items));
    if (!out->items || !keys) {
        free(keys);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu cells", table->used);
    }
    for (size_t i = 0; i < table->used; i++)
        if (table->cells[i].n > 0)
            keys[out->count++] = (struct keyed){table->cells[i].key, i};
    sort_by_key(keys, keys + out->count, out->count);
    for (size_t i = 0; i < out->count; i++)
        moments_from_sums(&out->items[i], &table->cells[keys[i].item], table->leaf_m / NDT_CELL_STEPS);
    free(keys);
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

/* The moments of a cell relative to the centre of its parent. */
static struct ndt_moments as_parent(const struct ndt_moments *child, double fine_leaf_m)
{
    struct ndt_moments m = *child;
    double d_m[3];
    for (int k = 0; k < 3; k++) {
        d_m[k] = (m.cell[k] & 1 ? 0.5 : -0.5) * fine_leaf_m;
        m.cell[k] >>= 1;
    }
    shift(&m, d_m);
    return m;
}

static void merge_children(struct moment_list *out, const struct moment_list *fine, const struct keyed *keys,
                           double fine_leaf_m)
{
    out->count = 0;
    for (size_t i = 0; i < fine->count; i++) {
        const struct ndt_moments m = as_parent(&fine->items[keys[i].item], fine_leaf_m);
        if (i > 0 && keys[i].key == keys[i - 1].key)
            merge(&out->items[out->count - 1], &m);
        else
            out->items[out->count++] = m;
    }
}

/* Merges 2x2x2 cells into one. The eight children are added in a fixed order, so the result depends on the points
 * alone. */
static enum ndt_status coarsen(struct moment_list *list, double fine_leaf_m, struct ndt_error *err)
{
    struct moment_list coarse = {.items = malloc((list->count + 1) * sizeof(*coarse.items))};
    struct keyed *keys = make_keys(list->count, err);
    if (!coarse.items || !keys) {
        free(coarse.items);
        free(keys);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu cells", list->count);
    }
    for (size_t i = 0; i < list->count; i++) {
        const int32_t *cell = list->items[i].cell;
        keys[i] = (struct keyed){ndt_cell_key((int32_t[3]){cell[0] >> 1, cell[1] >> 1, cell[2] >> 1}), i};
    }
    sort_by_key(keys, keys + list->count, list->count);
    merge_children(&coarse, list, keys, fine_leaf_m);
    free(keys);
    free(list->items);
    *list = coarse;
    return NDT_OK;
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

size_t ndt_map_filled_levels(const struct ndt_map *map)
{
    size_t count = 1;
    while (count < map->level_count && map->levels[count].voxel_count >= map->levels[count - 1].voxel_count)
        count++;
    return count;
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

/* The moments of level i: from those of the finer level in `list`, or from sums of its own. */
static enum ndt_status next_moments(struct moment_list *list, const struct ndt_map_builder *builder, size_t i,
                                    struct ndt_error *err)
{
    if (builder->derived[i])
        return coarsen(list, builder->config.leaf_m[i + 1], err);
    free(list->items);
    return moments_from_table(list, &builder->tables[i], err);
}

/* From fine to coarse, so that a derived level finds the moments of the finer one. */
static enum ndt_status build_levels(struct ndt_map *map, const struct ndt_map_builder *builder,
                                    struct ndt_pool *pool, struct ndt_error *err)
{
    struct moment_list list = {0};
    enum ndt_status status = NDT_OK;
    ndt_progress_set(builder->progress, NDT_PROGRESS_ALL_LEVELS, map->level_count);
    for (size_t i = map->level_count; status == NDT_OK && i-- > 0;) {
        status = ndt_progress_check(builder->progress, err);
        if (status == NDT_OK)
            status = next_moments(&list, builder, i, err);
        if (status == NDT_OK)
            status = ndt_map_level_build(&map->levels[i], &builder->config, builder->config.leaf_m[i], list.items,
                                         list.count, pool, builder->progress, err);
        if (status == NDT_OK)
            map->bytes += level_bytes(&map->levels[i]);
        ndt_progress_add(builder->progress, NDT_PROGRESS_LEVELS, status == NDT_OK);
    }
    free(list.items);
    return status;
}

static enum ndt_status build_with_threads(struct ndt_map *map, const struct ndt_map_builder *builder,
                                          struct ndt_error *err)
{
    struct ndt_pool *pool;
    size_t cells = 0;
    for (size_t i = 0; i < map->level_count; i++)
        cells += builder->tables[i].used;
    enum ndt_status status = ndt_map_builder_pool(builder, cells / CELLS_PER_THREAD, &pool, err);
    if (status != NDT_OK)
        return status;
    status = build_levels(map, builder, pool, err);
    ndt_pool_destroy(pool);
    return status;
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
    map->spacing_m = builder->spacing_m;
    map->references = 1;
    map->release = release_levels;
    enum ndt_status status = build_with_threads(map, builder, err);
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

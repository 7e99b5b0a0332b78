#include "map_lists.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND = 8, SIDE = 8 };
static const float FAR_AWAY_M = 1e9f;

/* The 27 cells around a cell: itself, its faces, the rest. A neighbour list keeps this order. */
static const int8_t around[27][3] = {
    {0, 0, 0},   {-1, 0, 0},  {1, 0, 0},   {0, -1, 0}, {0, 1, 0},   {0, 0, -1},   {0, 0, 1},
    {-1, -1, 0}, {1, -1, 0},  {-1, 1, 0},  {1, 1, 0},  {-1, 0, -1}, {1, 0, -1},   {-1, 0, 1},
    {1, 0, 1},   {0, -1, -1}, {0, 1, -1},  {0, -1, 1}, {0, 1, 1},   {-1, -1, -1}, {1, -1, -1},
    {-1, 1, -1}, {1, 1, -1},  {-1, -1, 1}, {1, -1, 1}, {-1, 1, 1},  {1, 1, 1},
};

struct list_job {
    struct ndt_map_level *level;
    struct ndt_brick_plan *plan;
};

/* A voxel as its brick sees it: its cell counted from the brick's lowest, and per axis its mean relative to the
 * lower corner of the cell before its own, of its own and of the one behind. */
struct seen_voxel {
    int32_t at[3];
    float mean_m[3][3];
};

static struct ndt_cell_ref *cells_of(const struct list_job *job, size_t brick)
{
    return (struct ndt_cell_ref *)job->level->cells + brick * NDT_BRICK_CELLS;
}

static size_t padded(size_t entries)
{
    return (entries + ROUND - 1) / ROUND * ROUND;
}

/* The cells of one axis from which a voxel at `at` is seen, cut to the brick. */
static int32_t first_cell(int32_t at)
{
    return at > 0 ? at - 1 : 0;
}

static int32_t last_cell(int32_t at)
{
    return at + 1 < SIDE ? at + 1 : SIDE - 1;
}

static void count_around(struct ndt_cell_ref *cells, const int32_t at[3])
{
    for (int32_t z = first_cell(at[2]); z <= last_cell(at[2]); z++)
        for (int32_t y = first_cell(at[1]); y <= last_cell(at[1]); y++)
            for (int32_t x = first_cell(at[0]); x <= last_cell(at[0]); x++)
                cells[(z * SIDE + y) * SIDE + x].n27++;
}

/* How long every list of a brick is, and all of them. */
static void count_brick(void *context, size_t number)
{
    const struct list_job *job = context;
    struct ndt_brick *brick = &job->plan->bricks[number];
    struct ndt_cell_ref *cells = cells_of(job, number);
    for (size_t i = 0; i < brick->count; i++) {
        const int32_t *cell = job->level->voxels[job->plan->voxels[brick->first + i]].cell;
        count_around(cells,
                     (int32_t[3]){cell[0] - brick->low[0], cell[1] - brick->low[1], cell[2] - brick->low[2]});
    }
    brick->words = 0;
    for (size_t c = 0; c < NDT_BRICK_CELLS; c++)
        brick->words += 4 * padded(cells[c].n27);
}

/* Gives every counted list its place and fills what is padding. */
static void place_lists(const struct ndt_map_level *level, struct ndt_cell_ref *cells, uint64_t words)
{
    for (size_t c = 0; c < NDT_BRICK_CELLS; c++) {
        struct ndt_cell_ref *ref = &cells[c];
        if (ref->n27 == 0)
            continue;
        uint32_t *list = (uint32_t *)level->lists + words;
        ref->padded = (uint8_t)padded(ref->n27);
        ref->offset = (uint32_t)(words / ROUND);
        words += 4u * ref->padded;
        for (size_t i = ref->n27; i < ref->padded; i++) {
            for (size_t k = 0; k < 3; k++)
                memcpy(&list[k * ref->padded + i], &FAR_AWAY_M, sizeof(float));
            list[3u * ref->padded + i] = 0;
        }
        ref->n27 = 0;
    }
}

static struct seen_voxel see(const struct ndt_map_level *level, const struct ndt_brick *brick, uint32_t v)
{
    const struct ndt_voxel *voxel = &level->voxels[v];
    struct seen_voxel seen;
    for (int i = 0; i < 3; i++) {
        seen.at[i] = voxel->cell[i] - brick->low[i];
        for (int d = -1; d <= 1; d++)
            seen.mean_m[i][d + 1] = (float)(-d * level->leaf_m + voxel->mean_m[i]);
    }
    return seen;
}

/* Into the lists of those of the cells around[first .. last) of the voxel that belong to the brick. */
static inline void store(const struct ndt_map_level *level, struct ndt_cell_ref *cells,
                         const struct seen_voxel *seen, uint32_t v, int first, int last)
{
    for (int k = first; k < last; k++) {
        const int8_t *d = around[k];
        const int32_t x = seen->at[0] + d[0], y = seen->at[1] + d[1], z = seen->at[2] + d[2];
        if ((uint32_t)(x | y | z) >= SIDE)
            continue;
        struct ndt_cell_ref *ref = &cells[(z * SIDE + y) * SIDE + x];
        float *list = (float *)level->lists + (size_t)ref->offset * ROUND + ref->n27++;
        list[0] = seen->mean_m[0][d[0] + 1];
        list[ref->padded] = seen->mean_m[1][d[1] + 1];
        list[2 * ref->padded] = seen->mean_m[2][d[2] + 1];
        memcpy(&list[3 * ref->padded], &v, sizeof(v));
    }
}

static void fill_brick(void *context, size_t number)
{
    const struct list_job *job = context;
    const struct ndt_map_level *level = job->level;
    const struct ndt_brick *brick = &job->plan->bricks[number];
    struct ndt_cell_ref *cells = cells_of(job, number);
    place_lists(level, cells, brick->words);
    for (int part = 0; part < 3; part++) { /* own cells, then faces, then the rest */
        static const int bounds[] = {0, 1, 7, 27};
        for (size_t i = 0; i < brick->count; i++) {
            const uint32_t v = job->plan->voxels[brick->first + i];
            const struct seen_voxel seen = see(level, brick, v);
            store(level, cells, &seen, v, bounds[part], bounds[part + 1]);
        }
        for (size_t c = 0; part < 2 && c < NDT_BRICK_CELLS; c++)
            *(part == 0 ? &cells[c].n1 : &cells[c].n7) = cells[c].n27;
    }
}

/* Offset 0 is kept for "no list". */
static enum ndt_status allocate_lists(struct ndt_map_level *level, struct ndt_brick_plan *plan,
                                      struct ndt_error *err)
{
    const uint64_t none = 4 * ROUND;
    uint64_t words = none;
    for (uint32_t b = 1; b < level->brick_count; b++) {
        const uint64_t here = plan->bricks[b].words;
        plan->bricks[b].words = words;
        words += here;
    }
    if (words / ROUND > UINT32_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "the neighbour lists of %u voxels of %g m are too large",
                        level->voxel_count, level->leaf_m);
    level->list_words = (words + 15) / 16 * 16;
    uint32_t *lists = aligned_alloc(64, level->list_words * sizeof(uint32_t));
    level->lists = lists;
    if (!lists)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for neighbour lists");
    memset(lists, 0, none * sizeof(uint32_t));
    memset(lists + words, 0, (level->list_words - words) * sizeof(uint32_t));
    return NDT_OK;
}

enum ndt_status ndt_map_lists_build(struct ndt_map_level *level, struct ndt_brick_plan *plan, struct ndt_pool *pool,
                                    struct ndt_error *err)
{
    struct list_job job = {level, plan};
    level->cells = calloc((size_t)level->brick_count * NDT_BRICK_CELLS, sizeof(struct ndt_cell_ref));
    if (!level->cells)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u bricks", level->brick_count);
    ndt_pool_run(pool, count_brick, &job, level->brick_count);
    enum ndt_status status = allocate_lists(level, plan, err);
    if (status == NDT_OK)
        ndt_pool_run(pool, fill_brick, &job, level->brick_count);
    return status;
}

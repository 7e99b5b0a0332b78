/* The neighbour lists of a level. */
#include "map_build.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND = 8, SIDE = 8 };
static const float FAR_AWAY_M = 1e9f;

/* A list has the voxel of its own cell first, then those of the 6 cells that share a face, then the other 20;
 * within each of these kinds, voxel numbers ascend. The voxels of a brick are sorted, so the start of each kind is
 * sufficient. */
enum kind { OWN, FACE, OTHER };

static inline enum kind kind_of(int32_t dx, int32_t dy, int32_t dz)
{
    const int32_t steps = (dx & 1) + (dy & 1) + (dz & 1);
    return steps == 0 ? OWN : steps == 1 ? FACE : OTHER;
}

struct list_job {
    struct ndt_map_level *level;
    struct ndt_brick_plan *plan;
    struct ndt_progress *progress;
};

/* A voxel relative to a brick: its cell counted from the brick's lowest one, and per axis its mean relative to the
 * lower corners of the cell before its own, of its own and of the one behind. */
struct near_voxel {
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

/* The range of cells along one axis that list a voxel at `at`, clipped to the brick. */
static int32_t first_cell(int32_t at)
{
    return at > 0 ? at - 1 : 0;
}

static int32_t last_cell(int32_t at)
{
    return at + 1 < SIDE ? at + 1 : SIDE - 1;
}

/* Counts a voxel in the lists of the 27 cells around it: n27 for all kinds, n7 for the first two, n1 for the first.
 */
static inline void count_around(struct ndt_cell_ref *cells, const int32_t at[3])
{
    static const int8_t near[7][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0},
                                      {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
    for (int32_t z = first_cell(at[2]); z <= last_cell(at[2]); z++)
        for (int32_t y = first_cell(at[1]); y <= last_cell(at[1]); y++)
            for (int32_t x = first_cell(at[0]); x <= last_cell(at[0]); x++)
                cells[(z * SIDE + y) * SIDE + x].n27++;
    for (int k = 0; k < 7; k++) {
        const int32_t x = at[0] + near[k][0], y = at[1] + near[k][1], z = at[2] + near[k][2];
        if ((uint32_t)(x | y | z) >= SIDE)
            continue;
        cells[(z * SIDE + y) * SIDE + x].n7++;
        cells[(z * SIDE + y) * SIDE + x].n1 = (uint8_t)(cells[(z * SIDE + y) * SIDE + x].n1 + (k == 0));
    }
}

/* The lengths of all lists of a brick, and their total. */
static void count_brick(void *context, size_t number)
{
    const struct list_job *job = context;
    struct ndt_brick *brick = &job->plan->bricks[number];
    struct ndt_cell_ref *cells = cells_of(job, number);
    if (ndt_progress_is_cancelled(job->progress))
        return;
    for (size_t i = 0; i < brick->count; i++) {
        const int32_t *cell = job->level->voxels[job->plan->voxels[brick->first + i]].cell;
        count_around(cells,
                     (int32_t[3]){cell[0] - brick->low[0], cell[1] - brick->low[1], cell[2] - brick->low[2]});
    }
    brick->words = 0;
    for (size_t c = 0; c < NDT_BRICK_CELLS; c++)
        brick->words += 4 * padded(cells[c].n27);
}

/* Assigns every list its place and writes the padding. */
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
    }
}

static struct near_voxel relative_to(const struct ndt_map_level *level, const struct ndt_brick *brick, uint32_t v)
{
    const struct ndt_voxel *voxel = &level->voxels[v];
    struct near_voxel seen;
    for (int i = 0; i < 3; i++) {
        seen.at[i] = voxel->cell[i] - brick->low[i];
        for (int d = -1; d <= 1; d++)
            seen.mean_m[i][d + 1] = (float)(-d * level->leaf_m + voxel->mean_m[i]);
    }
    return seen;
}

static inline void store(const struct ndt_map_level *level, const struct ndt_cell_ref *ref, size_t entry,
                         const struct near_voxel *seen, const int32_t from[3], uint32_t v)
{
    float *list = (float *)level->lists + (size_t)ref->offset * ROUND + entry;
    list[0] = seen->mean_m[0][from[0] - seen->at[0] + 1];
    list[ref->padded] = seen->mean_m[1][from[1] - seen->at[1] + 1];
    list[2 * ref->padded] = seen->mean_m[2][from[2] - seen->at[2] + 1];
    memcpy(&list[3 * ref->padded], &v, sizeof(v));
}

/* Writes a voxel into the lists of the cells around it; `filled`: entries of each kind that a list already has. */
static void store_around(const struct ndt_map_level *level, const struct ndt_cell_ref *cells,
                         uint8_t filled[NDT_BRICK_CELLS][3], const struct near_voxel *seen, uint32_t v)
{
    const int32_t *at = seen->at;
    for (int32_t z = first_cell(at[2]); z <= last_cell(at[2]); z++)
        for (int32_t y = first_cell(at[1]); y <= last_cell(at[1]); y++)
            for (int32_t x = first_cell(at[0]); x <= last_cell(at[0]); x++) {
                const int32_t cell = (z * SIDE + y) * SIDE + x;
                const struct ndt_cell_ref *ref = &cells[cell];
                const enum kind kind = kind_of(x - at[0], y - at[1], z - at[2]);
                const size_t first = kind == OWN ? 0 : kind == FACE ? ref->n1 : ref->n7;
                store(level, ref, first + filled[cell][kind]++, seen, (int32_t[3]){x, y, z}, v);
            }
}

static void fill_brick(void *context, size_t number)
{
    const struct list_job *job = context;
    const struct ndt_brick *brick = &job->plan->bricks[number];
    struct ndt_cell_ref *cells = cells_of(job, number);
    uint8_t filled[NDT_BRICK_CELLS][3] = {0};
    if (!ndt_progress_step(job->progress))
        return;
    place_lists(job->level, cells, brick->words);
    for (size_t i = 0; i < brick->count; i++) {
        const uint32_t v = job->plan->voxels[brick->first + i];
        const struct near_voxel seen = relative_to(job->level, brick, v);
        store_around(job->level, cells, filled, &seen, v);
    }
}

/* Offset 0 means "no list". */
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
                                    struct ndt_progress *progress, struct ndt_error *err)
{
    struct list_job job = {level, plan, progress};
    level->cells = calloc((size_t)level->brick_count * NDT_BRICK_CELLS, sizeof(struct ndt_cell_ref));
    if (!level->cells)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u bricks", level->brick_count);
    ndt_pool_run(pool, count_brick, &job, level->brick_count);
    enum ndt_status status = ndt_progress_check(progress, err);
    if (status == NDT_OK)
        status = allocate_lists(level, plan, err);
    if (status == NDT_OK)
        ndt_pool_run(pool, fill_brick, &job, level->brick_count);
    return status == NDT_OK ? ndt_progress_check(progress, err) : status;
}

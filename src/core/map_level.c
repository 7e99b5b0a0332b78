/* One level of a map: from moments to voxel records, and the index from cells to bricks. */
#include "map_build.h"
#include "ndt/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Voxels that a thread computes at a time. */
enum { VOXEL_BLOCK = 256, VISITS_AT_ONCE = 16384 };
#define DENSE_BRICKS_MAX ((int64_t)4 << 20)

/* Magnusson 2009, eq. 6.8: constants of the mixture of a Gaussian and a uniform background. */
static void set_constants(struct ndt_map_level *level, double outlier_ratio)
{
    const double c1 = 10.0 * (1.0 - outlier_ratio);
    const double c2 = outlier_ratio / (level->leaf_m * level->leaf_m * level->leaf_m);
    level->d3 = -log(c2);
    level->d1 = -log(c1 + c2) - level->d3;
    level->d2 = -2.0 * log((-log(c1 * exp(-0.5) + c2) - level->d3) / level->d1);
}

/* Sample covariance as an upper triangle; `autoware` starts the sum with the identity matrix. */
static void covariance(const struct ndt_map_config *config, const struct ndt_moments *m, double C[6])
{
    const double seed = config->covariance == NDT_COVARIANCE_AUTOWARE ? 1.0 : 0.0;
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++)
            C[at] = (m->q_m2[at] - m->s_m[i] * m->s_m[j] / m->n + (i == j ? seed : 0.0)) / (m->n - 1.0);
}

/* One Gaussian from its moments; 0 when the voxel is rejected. */
static int voxel_from_moments(struct ndt_voxel *out, const struct ndt_map_config *config, double leaf_m,
                              const struct ndt_moments *m)
{
    double C[6], lambda[3], V[9];
    if (m->n < config->min_points)
        return 0;
    covariance(config, m, C);
    ndt_eigen_symmetric(3, C, lambda, V);
    /* Points on an exact plane leave rounding noise of either sign in the smallest eigenvalue. */
    const double noise = 1e-9 * fabs(lambda[2]);
    if (!(lambda[2] > 0) || lambda[0] < -noise || lambda[1] < -noise)
        return 0;
    const double floor_m2 = config->min_eigenvalue_ratio * lambda[2];
    for (int i = 0; i < 2; i++)
        lambda[i] = fmax(lambda[i], floor_m2);
    memset(out, 0, sizeof(*out));
    int good = 1;
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++) {
            double b = 0;
            for (int k = 0; k < 3; k++)
                b += V[i * 3 + k] * V[j * 3 + k] / lambda[k];
            out->icov[at] = (float)b;
            good &= fabsf(out->icov[at]) <= NDT_MAX_INVERSE_COVARIANCE; /* false for NaN */
        }
    for (int i = 0; i < 3; i++) {
        out->mean_m[i] = (float)(0.5 * leaf_m + m->s_m[i] / m->n);
        out->cell[i] = m->cell[i];
    }
    out->count = (uint32_t)m->n;
    return good;
}

/* Voxels from moments, a block at a time; each block writes where its moments are, so rejected cells leave gaps,
 * which close_gaps removes. */
struct voxel_job {
    const struct ndt_map_config *config;
    double leaf_m;
    const struct ndt_moments *moments;
    size_t count;
    struct ndt_voxel *voxels;
    uint32_t *made; /* per block */
    struct ndt_progress *progress;
};

static void make_block(void *context, size_t block)
{
    struct voxel_job *job = context;
    const size_t first = block * VOXEL_BLOCK;
    const size_t last = first + VOXEL_BLOCK < job->count ? first + VOXEL_BLOCK : job->count;
    uint32_t made = 0;
    for (size_t i = first; i < last && !ndt_progress_is_cancelled(job->progress); i++)
        made +=
            (uint32_t)voxel_from_moments(&job->voxels[first + made], job->config, job->leaf_m, &job->moments[i]);
    job->made[block] = made;
}

/* Closes the gaps that rejected cells left; returns the number of voxels. */
static uint32_t close_gaps(const struct voxel_job *job, size_t blocks)
{
    uint32_t used = 0;
    for (size_t block = 0; block < blocks; block++) {
        if (used != block * VOXEL_BLOCK)
            memmove(&job->voxels[used], &job->voxels[block * VOXEL_BLOCK], job->made[block] * sizeof(*job->voxels));
        used += job->made[block];
    }
    return used;
}

static enum ndt_status make_voxels(struct ndt_map_level *level, const struct ndt_map_config *config,
                                   const struct ndt_moments *moments, size_t count, struct ndt_pool *pool,
                                   struct ndt_progress *progress, struct ndt_error *err)
{
    const size_t blocks = (count + VOXEL_BLOCK - 1) / VOXEL_BLOCK;
    struct ndt_voxel *voxels = aligned_alloc(64, (count + 1) * sizeof(*voxels));
    uint32_t *made = malloc((blocks + 1) * sizeof(*made));
    level->voxels = voxels;
    if (!voxels || !made || count >= UINT32_MAX / 64) {
        free(made);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu voxels of %g m", count, level->leaf_m);
    }
    struct voxel_job job = {config, level->leaf_m, moments, count, voxels + 1, made, progress};
    memset(voxels, 0, sizeof(*voxels));
    ndt_pool_run(pool, make_block, &job, blocks);
    level->voxel_count = 1 + close_gaps(&job, blocks);
    free(made);
    return ndt_progress_check(progress, err);
}

/* Slot of a brick in the table, or -1 when it lies outside the box around all bricks. */
static int64_t brick_slot(const struct ndt_map_level *level, const int32_t brick[3])
{
    int64_t slot = 0;
    for (int i = 2; i >= 0; i--) {
        const int64_t b = (int64_t)brick[i] - level->brick_min[i];
        if (b < 0 || b >= level->brick_dim[i])
            return -1;
        slot = slot * level->brick_dim[i] + b;
    }
    if (!level->hashed)
        return slot;
    const uint64_t key = ndt_cell_key(brick), mask = level->brick_slots - 1;
    uint64_t at = ndt_key_hash(key) & mask;
    while (level->brick_keys[at] != key && level->brick_keys[at] != 0)
        at = (at + 1) & mask;
    return (int64_t)at;
}

struct ndt_cell_ref ndt_map_lookup(const struct ndt_map_level *level, const int32_t cell[3])
{
    const int32_t brick[3] = {cell[0] >> 3, cell[1] >> 3, cell[2] >> 3};
    const int64_t slot = brick_slot(level, brick);
    const uint32_t number = slot < 0 ? 0 : level->bricks[slot];
    if (number == 0)
        return (struct ndt_cell_ref){0};
    const int32_t inner = (cell[2] & 7) * 64 + (cell[1] & 7) * 8 + (cell[0] & 7);
    return level->cells[(size_t)number * NDT_BRICK_CELLS + (size_t)inner];
}

static void brick_box(const struct ndt_map_level *level, int32_t low[3], int32_t high[3])
{
    for (int i = 0; i < 3; i++) {
        low[i] = INT32_MAX;
        high[i] = INT32_MIN;
        for (uint32_t v = 1; v < level->voxel_count; v++) {
            const int32_t c = level->voxels[v].cell[i];
            low[i] = (c - 1) >> 3 < low[i] ? (c - 1) >> 3 : low[i];
            high[i] = (c + 1) >> 3 > high[i] ? (c + 1) >> 3 : high[i];
        }
    }
}

/* Decides between the dense box and the hash table and allocates the empty table. */
static enum ndt_status plan_bricks(struct ndt_map_level *level, struct ndt_error *err)
{
    int32_t low[3], high[3];
    int64_t dense = level->voxel_count > 1;
    brick_box(level, low, high);
    for (int i = 0; i < 3 && level->voxel_count > 1; i++) {
        level->brick_min[i] = low[i];
        level->brick_dim[i] = high[i] - low[i] + 1;
        dense = dense > DENSE_BRICKS_MAX ? dense : dense * level->brick_dim[i];
    }
    level->hashed = dense > DENSE_BRICKS_MAX;
    if (level->hashed) {
        uint64_t slots = 1024;
        while (slots < (uint64_t)level->voxel_count * 16) /* at most 8 bricks per voxel: half full at worst */
            slots *= 2;
        if (slots > UINT32_MAX)
            return ndt_fail(err, NDT_ERR_LIMIT, "%u voxels of %g m are too many", level->voxel_count,
                            level->leaf_m);
        level->brick_slots = (uint32_t)slots;
        level->brick_keys = calloc(slots, sizeof(*level->brick_keys));
    } else {
        level->brick_slots = dense > 0 ? (uint32_t)dense : 1;
    }
    level->bricks = calloc(level->brick_slots, sizeof(*level->bricks));
    if (!level->bricks || (level->hashed && !level->brick_keys))
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the index of %u voxels", level->voxel_count);
    return NDT_OK;
}

/* ---- the voxels around each brick ---- */

typedef void visit_brick(struct ndt_map_level *level, struct ndt_brick_plan *plan, const int32_t brick[3],
                         uint32_t voxel);

/* Visits, for every voxel, each brick that its 3x3x3 surroundings touch once. */
static enum ndt_status visit_bricks(struct ndt_map_level *level, struct ndt_brick_plan *plan, visit_brick *visit,
                                    struct ndt_progress *progress, struct ndt_error *err)
{
    for (uint32_t v = 1; v < level->voxel_count; v++) {
        if (v % VISITS_AT_ONCE == 0 && !ndt_progress_step(progress))
            break;
        int32_t low[3];
        int both = 0; /* bits of the axes along which two bricks are touched */
        for (int i = 0; i < 3; i++) {
            low[i] = (level->voxels[v].cell[i] - 1) >> 3;
            both |= ((level->voxels[v].cell[i] + 1) >> 3 != low[i]) << i;
        }
        for (int corner = 0; corner < 8; corner++)
            if ((corner & ~both) == 0)
                visit(level, plan,
                      (int32_t[3]){low[0] + (corner & 1), low[1] + (corner >> 1 & 1), low[2] + (corner >> 2)}, v);
    }
    return ndt_progress_check(progress, err);
}

/* Brick 0 stays the empty one. */
static void number_brick(struct ndt_map_level *level, struct ndt_brick_plan *plan, const int32_t brick[3],
                         uint32_t voxel)
{
    (void)voxel, (void)plan;
    const int64_t slot = brick_slot(level, brick);
    uint32_t *number = (uint32_t *)level->bricks + slot;
    if (*number != 0)
        return;
    *number = level->brick_count++;
    if (level->hashed)
        ((uint64_t *)level->brick_keys)[slot] = ndt_cell_key(brick);
}

static void count_voxel(struct ndt_map_level *level, struct ndt_brick_plan *plan, const int32_t brick[3],
                        uint32_t voxel)
{
    (void)voxel;
    struct ndt_brick *seen = &plan->bricks[level->bricks[brick_slot(level, brick)]];
    for (int i = 0; i < 3; i++)
        seen->low[i] = 8 * brick[i];
    seen->count++;
}

static void list_voxel(struct ndt_map_level *level, struct ndt_brick_plan *plan, const int32_t brick[3],
                       uint32_t voxel)
{
    struct ndt_brick *seen = &plan->bricks[level->bricks[brick_slot(level, brick)]];
    plan->voxels[seen->first + seen->count++] = voxel;
}

static enum ndt_status fill_plan(struct ndt_map_level *level, struct ndt_brick_plan *plan,
                                 struct ndt_progress *progress, struct ndt_error *err)
{
    size_t total = 0;
    plan->bricks = calloc(level->brick_count, sizeof(*plan->bricks));
    if (!plan->bricks)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u bricks", level->brick_count);
    enum ndt_status status = visit_bricks(level, plan, count_voxel, progress, err);
    for (uint32_t b = 0; b < level->brick_count; b++) {
        plan->bricks[b].first = total;
        total += plan->bricks[b].count;
        plan->bricks[b].count = 0;
    }
    if (status != NDT_OK)
        return status;
    plan->voxels = malloc((total + 1) * sizeof(*plan->voxels));
    if (!plan->voxels)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u bricks", level->brick_count);
    return visit_bricks(level, plan, list_voxel, progress, err);
}

static enum ndt_status make_lists(struct ndt_map_level *level, struct ndt_pool *pool, struct ndt_progress *progress,
                                  struct ndt_error *err)
{
    struct ndt_brick_plan plan = {0};
    level->brick_count = 1;
    enum ndt_status status = visit_bricks(level, &plan, number_brick, progress, err);
    if (status == NDT_OK)
        status = fill_plan(level, &plan, progress, err);
    if (status == NDT_OK)
        status = ndt_map_lists_build(level, &plan, pool, progress, err);
    free(plan.bricks);
    free(plan.voxels);
    return status;
}

enum ndt_status ndt_map_level_build(struct ndt_map_level *out, const struct ndt_map_config *config, double leaf_m,
                                    const struct ndt_moments *moments, size_t count, struct ndt_pool *pool,
                                    struct ndt_progress *progress, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->leaf_m = leaf_m;
    set_constants(out, config->outlier_ratio);
    enum ndt_status status = make_voxels(out, config, moments, count, pool, progress, err);
    if (status == NDT_OK)
        status = plan_bricks(out, err);
    if (status == NDT_OK)
        status = make_lists(out, pool, progress, err);
    if (status != NDT_OK)
        ndt_map_level_free(out);
    return status;
}

void ndt_map_level_free(struct ndt_map_level *level)
{
    free((void *)level->voxels);
    free((void *)level->bricks);
    free((void *)level->brick_keys);
    free((void *)level->cells);
    free((void *)level->lists);
    memset(level, 0, sizeof(*level));
}

/* One level of a map: from moments to voxel records, and the index from cells to neighbour lists. */
#include "map_sums.h"
#include "ndt/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BRICK_CELLS = 512, ROUND = 8 };
#define DENSE_BRICKS_MAX ((int64_t)4 << 20)
static const float FAR_AWAY_M = 1e9f;

/* The 27 cells around a cell: itself, its faces, the rest. A neighbour list keeps this order. */
static const int8_t around[27][3] = {
    {0, 0, 0},   {-1, 0, 0},  {1, 0, 0},   {0, -1, 0}, {0, 1, 0},   {0, 0, -1},   {0, 0, 1},
    {-1, -1, 0}, {1, -1, 0},  {-1, 1, 0},  {1, 1, 0},  {-1, 0, -1}, {1, 0, -1},   {-1, 0, 1},
    {1, 0, 1},   {0, -1, -1}, {0, 1, -1},  {0, -1, 1}, {0, 1, 1},   {-1, -1, -1}, {1, -1, -1},
    {-1, 1, -1}, {1, 1, -1},  {-1, -1, 1}, {1, -1, 1}, {-1, 1, 1},  {1, 1, 1},
};

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

int ndt_voxel_from_moments(struct ndt_voxel *out, const struct ndt_map_config *config, double leaf_m,
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
    double sum = 0;
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++) {
            double b = 0;
            for (int k = 0; k < 3; k++)
                b += V[i * 3 + k] * V[j * 3 + k] / lambda[k];
            out->icov[at] = (float)b;
            sum += out->icov[at] * 0.0f;
        }
    for (int i = 0; i < 3; i++) {
        out->mean_m[i] = (float)(0.5 * leaf_m + m->s_m[i] / m->n);
        out->cell[i] = m->cell[i];
    }
    out->count = (uint32_t)m->n;
    return sum == 0;
}

static int compare_cells(const void *a, const void *b)
{
    const int32_t *x = ((const struct ndt_moments *)a)->cell, *y = ((const struct ndt_moments *)b)->cell;
    for (int i = 2; i >= 0; i--)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static enum ndt_status make_voxels(struct ndt_map_level *level, const struct ndt_map_config *config,
                                   struct ndt_moments *moments, size_t count, struct ndt_error *err)
{
    struct ndt_voxel *voxels = aligned_alloc(64, (count + 1) * sizeof(*voxels));
    if (!voxels || count >= UINT32_MAX / 64) {
        free(voxels);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu voxels of %g m", count, level->leaf_m);
    }
    qsort(moments, count, sizeof(*moments), compare_cells);
    memset(voxels, 0, sizeof(*voxels));
    uint32_t used = 1;
    for (size_t i = 0; i < count; i++)
        used += (uint32_t)ndt_voxel_from_moments(&voxels[used], config, level->leaf_m, &moments[i]);
    level->voxels = voxels;
    level->voxel_count = used;
    return NDT_OK;
}

static uint64_t brick_key(const int32_t brick[3])
{
    return ndt_cell_key(brick);
}

static void brick_of(const int32_t cell[3], int32_t brick[3])
{
    for (int i = 0; i < 3; i++)
        brick[i] = cell[i] >> 3;
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
    const uint64_t key = brick_key(brick), mask = level->brick_slots - 1;
    uint64_t at = ndt_key_hash(key) & mask;
    while (level->brick_keys[at] != key && level->brick_keys[at] != 0)
        at = (at + 1) & mask;
    return (int64_t)at;
}

static struct ndt_cell_ref *cell_ref(const struct ndt_map_level *level, const int32_t cell[3])
{
    int32_t brick[3];
    brick_of(cell, brick);
    const int64_t slot = brick_slot(level, brick);
    const uint32_t number = slot < 0 ? 0 : level->bricks[slot];
    if (number == 0)
        return NULL;
    const int32_t inner = (cell[2] & 7) * 64 + (cell[1] & 7) * 8 + (cell[0] & 7);
    return (struct ndt_cell_ref *)level->cells + (size_t)number * BRICK_CELLS + inner;
}

struct ndt_cell_ref ndt_map_lookup(const struct ndt_map_level *level, const int32_t cell[3])
{
    const struct ndt_cell_ref *ref = cell_ref(level, cell);
    return ref ? *ref : (struct ndt_cell_ref){0};
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

static void number_brick(struct ndt_map_level *level, const int32_t brick[3])
{
    const int64_t slot = brick_slot(level, brick);
    uint32_t *number = (uint32_t *)level->bricks + slot;
    if (*number != 0)
        return;
    *number = level->brick_count++;
    if (level->hashed)
        ((uint64_t *)level->brick_keys)[slot] = brick_key(brick);
}

/* Every brick that a voxel's 3x3x3 surroundings touch gets a number; 0 stays the empty brick. */
static enum ndt_status make_bricks(struct ndt_map_level *level, struct ndt_error *err)
{
    level->brick_count = 1;
    for (uint32_t v = 1; v < level->voxel_count; v++)
        for (int corner = 0; corner < 8; corner++) {
            int32_t cell[3], brick[3];
            for (int i = 0; i < 3; i++)
                cell[i] = level->voxels[v].cell[i] + (corner >> i & 1 ? 1 : -1);
            brick_of(cell, brick);
            number_brick(level, brick);
        }
    level->cells = calloc((size_t)level->brick_count * BRICK_CELLS, sizeof(struct ndt_cell_ref));
    if (!level->cells)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u bricks", level->brick_count);
    return NDT_OK;
}

/* Visits every (voxel, cell that sees it) pair; all own cells first, then the faces, then the rest. */
static void visit_neighbours(struct ndt_map_level *level, int first, int last,
                             void (*visit)(struct ndt_map_level *level, struct ndt_cell_ref *ref,
                                           const int32_t cell[3], uint32_t v, int k))
{
    for (uint32_t v = 1; v < level->voxel_count; v++)
        for (int k = first; k < last; k++) {
            int32_t cell[3];
            for (int i = 0; i < 3; i++)
                cell[i] = level->voxels[v].cell[i] + around[k][i];
            visit(level, cell_ref(level, cell), cell, v, k);
        }
}

static void count_neighbour(struct ndt_map_level *level, struct ndt_cell_ref *ref, const int32_t cell[3],
                            uint32_t v, int k)
{
    (void)level, (void)cell, (void)v, (void)k;
    ref->n27++;
}

static void store_neighbour(struct ndt_map_level *level, struct ndt_cell_ref *ref, const int32_t cell[3],
                            uint32_t v, int k)
{
    uint32_t *words = (uint32_t *)level->lists + (size_t)ref->offset * ROUND;
    float *x_m = (float *)words, *y_m = x_m + ref->padded, *z_m = y_m + ref->padded;
    const struct ndt_voxel *voxel = &level->voxels[v];
    const int at = ref->n27++;
    x_m[at] = (float)((voxel->cell[0] - cell[0]) * level->leaf_m + voxel->mean_m[0]);
    y_m[at] = (float)((voxel->cell[1] - cell[1]) * level->leaf_m + voxel->mean_m[1]);
    z_m[at] = (float)((voxel->cell[2] - cell[2]) * level->leaf_m + voxel->mean_m[2]);
    words[3 * ref->padded + at] = v;
    ref->n1 = k == 0 ? (uint8_t)ref->n27 : ref->n1;
    ref->n7 = k < 7 ? (uint8_t)ref->n27 : ref->n7;
}

/* Gives every counted list its place and fills it with padding. Offset 0 is kept for "no list". */
static enum ndt_status place_lists(struct ndt_map_level *level, struct ndt_error *err)
{
    struct ndt_cell_ref *refs = (struct ndt_cell_ref *)level->cells;
    const size_t cells = (size_t)level->brick_count * BRICK_CELLS;
    uint64_t words = 4 * ROUND;
    for (size_t i = 0; i < cells; i++) {
        if (refs[i].n27 == 0)
            continue;
        refs[i].padded = (uint8_t)((refs[i].n27 + ROUND - 1) / ROUND * ROUND);
        refs[i].offset = (uint32_t)(words / ROUND);
        words += 4u * refs[i].padded;
        refs[i].n27 = 0;
    }
    if (words / ROUND > UINT32_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "the neighbour lists of %u voxels of %g m are too large",
                        level->voxel_count, level->leaf_m);
    level->list_words = (words + 15) / 16 * 16;
    level->lists = aligned_alloc(64, level->list_words * sizeof(uint32_t));
    if (!level->lists)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for neighbour lists");
    uint32_t *out = (uint32_t *)level->lists;
    memset(out, 0, level->list_words * sizeof(uint32_t));
    for (size_t i = 0; i < cells; i++)
        for (size_t k = 0; k < 3u * refs[i].padded; k++)
            memcpy(&out[(size_t)refs[i].offset * ROUND + k], &FAR_AWAY_M, sizeof(float));
    return NDT_OK;
}

enum ndt_status ndt_map_level_build(struct ndt_map_level *out, const struct ndt_map_config *config, double leaf_m,
                                    struct ndt_moments *moments, size_t count, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->leaf_m = leaf_m;
    set_constants(out, config->outlier_ratio);
    enum ndt_status status = make_voxels(out, config, moments, count, err);
    if (status == NDT_OK)
        status = plan_bricks(out, err);
    if (status == NDT_OK)
        status = make_bricks(out, err);
    if (status == NDT_OK) {
        visit_neighbours(out, 0, 27, count_neighbour);
        status = place_lists(out, err);
    }
    if (status == NDT_OK) {
        visit_neighbours(out, 0, 1, store_neighbour);
        visit_neighbours(out, 1, 7, store_neighbour);
        visit_neighbours(out, 7, 27, store_neighbour);
    } else {
        ndt_map_level_free(out);
    }
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

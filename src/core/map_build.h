/* Private to the core: the parts that a map is built from.
 *
 *     points -> sums per cell (cloud_sums.c, sum_table.c) -> moments (map.c) -> voxels and index (map_level.c)
 *            -> neighbour lists (map_lists.c)
 *
 * map_builder.c keeps the sums and adds or removes clouds. */
#ifndef NDT_MAP_BUILD_H
#define NDT_MAP_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/pool.h"
#include "ndt/progress.h"

/* ---- sum_table.c: the additive sums of the cells of one size, as integers (see ndt/map.h) ----
 *
 * The cells lie side by side in the order of their first point; an open-addressing index of numbers finds them. So
 * an occupied cell costs 88 bytes and 8 to 16 of index, and a look-up reads a table that stays in the cache. One
 * thread at a time. */

/* Coordinates of a point within its cell: whole steps of leaf / 2^18 from the centre of the cell. Then
 * |u| <= 2^17, and 2^28 points per cell keep every sum below 2^63. */
#define NDT_CELL_STEPS      262144
#define NDT_CELL_MAX_POINTS ((uint32_t)1 << 28)
/* Cell numbers that fit a key: |cell| < 2^20. */
#define NDT_CELL_LIMIT 1048576

struct ndt_cell_sums {
    uint64_t key;
    uint32_t n; /* 0: emptied by a removal; such cells are dropped later */
    int64_t s[3];
    int64_t q[6]; /* xx xy xz yy yz zz */
};

struct ndt_sum_table {
    double leaf_m;
    struct ndt_cell_sums *cells;
    size_t used, capacity;
    size_t empty;       /* of the used ones, those with n = 0 */
    uint32_t *index;    /* 1 + number of the cell; 0 = free */
    size_t index_slots; /* power of two, at least twice the capacity */
};

static inline uint64_t ndt_cell_key(const int32_t cell[3])
{
    return (uint64_t)1 << 63 | (uint64_t)(uint32_t)(cell[2] + NDT_CELL_LIMIT) << 42 |
           (uint64_t)(uint32_t)(cell[1] + NDT_CELL_LIMIT) << 21 | (uint64_t)(uint32_t)(cell[0] + NDT_CELL_LIMIT);
}

static inline void ndt_cell_from_key(uint64_t key, int32_t cell[3])
{
    for (int i = 0; i < 3; i++)
        cell[i] = (int32_t)(key >> (21 * i) & 0x1fffff) - NDT_CELL_LIMIT;
}

static inline uint64_t ndt_key_hash(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

/* An empty table owning nothing is all zero but for leaf_m. */
void ndt_sum_table_free(struct ndt_sum_table *table);
/* Room for `cells` cells in all. */
NDT_MUST_CHECK enum ndt_status ndt_sum_table_reserve(struct ndt_sum_table *table, size_t cells,
                                                     struct ndt_error *err);
/* The cell, added when it is new; there must be room for it. */
struct ndt_cell_sums *ndt_sum_table_get(struct ndt_sum_table *table, uint64_t key);

/* Copies the table with cells counted from cell `zero`, without empty ones; 0 where a number would not stay below
 * `limit`, or memory runs out. The caller frees `out` in any case. */
int ndt_sum_table_renumber(struct ndt_sum_table *out, const struct ndt_sum_table *table, const int64_t zero[3],
                           int64_t limit);

/* Makes room for `change` and checks that it can be added; adds nothing. */
NDT_MUST_CHECK enum ndt_status ndt_sum_table_can_add(struct ndt_sum_table *table,
                                                     const struct ndt_sum_table *change, struct ndt_error *err);
/* Checks that every cell has the points that are to be removed. */
NDT_MUST_CHECK enum ndt_status ndt_sum_table_can_remove(const struct ndt_sum_table *table,
                                                        const struct ndt_sum_table *change, struct ndt_error *err);
/* These cannot fail after the checks above. Adding to an empty table swaps it with `change`. */
void ndt_sum_table_add(struct ndt_sum_table *table, struct ndt_sum_table *change);
void ndt_sum_table_remove(struct ndt_sum_table *table, const struct ndt_sum_table *change);

/* ---- cloud_sums.c: the sums of the points of a cloud ---- */

/* Point i relative to origin_m; 0 when it is not finite. */
int ndt_cloud_point(const struct ndt_cloud *cloud, size_t i, const double origin_m[3], double x_m[3]);

/* Sums all finite points, *points of them, with the threads of the pool (at most NDT_BUILD_THREADS_MAX). The caller
 * frees `out`, also after a failure. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_sums(struct ndt_sum_table *out, uint64_t *points,
                                              const struct ndt_cloud *cloud, const double origin_m[3],
                                              double leaf_m, struct ndt_pool *pool, struct ndt_progress *progress,
                                              struct ndt_error *err);

/* ---- map_builder.c ---- */

struct ndt_map_builder {
    struct ndt_map_config config; /* levels sorted from coarse to fine */
    int has_origin;
    double origin_m[3];
    uint64_t points;
    double spacing_m;              /* see struct ndt_map */
    struct ndt_progress *progress; /* of the calls, or NULL */
    int inexact[3];                /* per axis: 1 where rounding to this origin or another one may have cost bits */
    /* 0: level i has sums of its own (table); 1: it is merged from the next finer level, 2x2x2 cells into one. */
    int derived[NDT_MAX_LEVELS];
    struct ndt_sum_table tables[NDT_MAX_LEVELS];
};

/* Creates the threads of one call, which it destroys before it returns: as many as configured, but at most `worth`,
 * and at least 1. */
NDT_MUST_CHECK enum ndt_status ndt_map_builder_pool(const struct ndt_map_builder *builder, size_t worth,
                                                    struct ndt_pool **out, struct ndt_error *err);

/* ---- map_level.c: from the moments of cells to a level of a map ---- */

/* The sums of a cell in metres relative to its centre. */
struct ndt_moments {
    int32_t cell[3];
    double n;
    double s_m[3];
    double q_m2[6];
};

/* Builds one level (voxels and index) from its moments, in the order of their cells (z, y, x), with the threads of
 * the pool. The arrays are owned by the level and freed with ndt_map_level_free. */
NDT_MUST_CHECK enum ndt_status ndt_map_level_build(struct ndt_map_level *out, const struct ndt_map_config *config,
                                                   double leaf_m, const struct ndt_moments *moments, size_t count,
                                                   struct ndt_pool *pool, struct ndt_progress *progress,
                                                   struct ndt_error *err);
void ndt_map_level_free(struct ndt_map_level *level);

/* ---- map_lists.c: the neighbour lists of a level (see ndt/map.h), brick by brick ---- */

enum { NDT_BRICK_CELLS = 512 };

/* A brick and the voxels whose 3x3x3 surroundings touch it. */
struct ndt_brick {
    int32_t low[3]; /* its lowest cell */
    uint32_t count;
    size_t first;   /* in ndt_brick_plan.voxels; ascending from there */
    uint64_t words; /* of its lists; later the offset of their start */
};
struct ndt_brick_plan {
    struct ndt_brick *bricks; /* by number; 0 is the empty brick */
    uint32_t *voxels;
};

/* Allocates and fills the cells and lists of a level whose voxels and bricks are known. The lists of a
 * brick depend on its own voxels alone, so the threads of the pool share the bricks, and the result does not depend
 * on their number. After a failure the caller frees the level. */
NDT_MUST_CHECK enum ndt_status ndt_map_lists_build(struct ndt_map_level *level, struct ndt_brick_plan *plan,
                                                   struct ndt_pool *pool, struct ndt_progress *progress,
                                                   struct ndt_error *err);

#endif

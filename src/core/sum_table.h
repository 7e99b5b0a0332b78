/* Private to the core: the additive sums of the cells of one size, as integers (see ndt/map.h).
 *
 * The cells lie side by side in the order of their first point; an open-addressing index of numbers finds them. So
 * an occupied cell costs 88 bytes and 8 to 16 of index, and looking one up reads a table that stays in the cache.
 * One thread at a time. */
#ifndef NDT_SUM_TABLE_H
#define NDT_SUM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

/* Coordinates of a point within its cell: whole steps of leaf / 2^18 from the centre of the cell. Then
 * |u| <= 2^17, and 2^28 points per cell keep every sum below 2^63. */
#define NDT_CELL_STEPS      262144
#define NDT_CELL_MAX_POINTS ((uint32_t)1 << 28)
/* Cell numbers that fit a key: |cell| < 2^20. */
#define NDT_CELL_LIMIT 1048576

struct ndt_cell_sums {
    uint64_t key;
    uint32_t n; /* 0: emptied by a removal, until the table is tidied up */
    int64_t s[3];
    int64_t q[6]; /* xx xy xz yy yz zz */
};

struct ndt_sum_table {
    double leaf_m;
    struct ndt_cell_sums *cells;
    size_t used, capacity;
    size_t empty;       /* of the used ones: n is 0 */
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
/* NULL when there is none, or no table yet. */
struct ndt_cell_sums *ndt_sum_table_find(const struct ndt_sum_table *table, uint64_t key);
/* The cell, made when it is new; for that there must be room. */
struct ndt_cell_sums *ndt_sum_table_get(struct ndt_sum_table *table, uint64_t key);

/* A copy with cells counted from cell `zero`, without empty ones; 0 where a number would not stay below `limit`, or
 * there is no memory. `out` is the caller's to free. */
int ndt_sum_table_renumber(struct ndt_sum_table *out, const struct ndt_sum_table *table, const int64_t zero[3],
                           int64_t limit);

/* Whether `change` can be added: makes the room, adds nothing. */
NDT_MUST_CHECK enum ndt_status ndt_sum_table_can_add(struct ndt_sum_table *table,
                                                     const struct ndt_sum_table *change, struct ndt_error *err);
/* Whether no cell would be left with fewer than no points. */
NDT_MUST_CHECK enum ndt_status ndt_sum_table_can_remove(const struct ndt_sum_table *table,
                                                        const struct ndt_sum_table *change, struct ndt_error *err);
/* These cannot fail once the above have agreed. The first takes over the cells of `change` where it can. */
void ndt_sum_table_add(struct ndt_sum_table *table, struct ndt_sum_table *change);
void ndt_sum_table_remove(struct ndt_sum_table *table, const struct ndt_sum_table *change);

#endif

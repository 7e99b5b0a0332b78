/* The table of the sums of all cells of one size. */
#include "map_build.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CELLS = 2048 };

void ndt_sum_table_free(struct ndt_sum_table *table)
{
    free(table->cells);
    free(table->index);
    *table = (struct ndt_sum_table){.leaf_m = table->leaf_m};
}

/* The slot of the index that holds the key, or the free slot for it. */
static uint32_t *find_slot(const struct ndt_sum_table *table, uint64_t key)
{
    const size_t mask = table->index_slots - 1;
    size_t at = ndt_key_hash(key) & mask;
    while (table->index[at] != 0 && table->cells[table->index[at] - 1].key != key)
        at = (at + 1) & mask;
    return &table->index[at];
}

static void fill_index(struct ndt_sum_table *table)
{
    for (size_t i = 0; i < table->used; i++)
        *find_slot(table, table->cells[i].key) = (uint32_t)i + 1;
}

/* Reallocates both arrays for `capacity` cells (a power of two). */
static enum ndt_status resize(struct ndt_sum_table *table, size_t capacity, struct ndt_error *err)
{
    uint32_t *index = capacity < UINT32_MAX ? calloc(2 * capacity, sizeof(*index)) : NULL;
    struct ndt_cell_sums *cells = index ? realloc(table->cells, capacity * sizeof(*cells)) : NULL;
    if (!cells) {
        free(index);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a map of %zu cells of %g m", capacity, table->leaf_m);
    }
    free(table->index);
    table->cells = cells;
    table->capacity = capacity;
    table->index = index;
    table->index_slots = 2 * capacity;
    fill_index(table);
    return NDT_OK;
}

enum ndt_status ndt_sum_table_reserve(struct ndt_sum_table *table, size_t cells, struct ndt_error *err)
{
    size_t capacity = table->capacity ? table->capacity : FIRST_CELLS;
    while (capacity < cells)
        capacity *= 2;
    return capacity > table->capacity ? resize(table, capacity, err) : NDT_OK;
}

/* NULL when the table has no such cell. */
static struct ndt_cell_sums *find_cell(const struct ndt_sum_table *table, uint64_t key)
{
    if (!table->index)
        return NULL;
    const uint32_t number = *find_slot(table, key);
    return number ? &table->cells[number - 1] : NULL;
}

struct ndt_cell_sums *ndt_sum_table_get(struct ndt_sum_table *table, uint64_t key)
{
    uint32_t *slot = find_slot(table, key);
    if (*slot == 0) {
        table->cells[table->used] = (struct ndt_cell_sums){.key = key};
        *slot = (uint32_t)++table->used;
    }
    return &table->cells[*slot - 1];
}

static int renumber(struct ndt_cell_sums *sums, const int64_t zero[3], int64_t limit)
{
    int32_t cell[3];
    ndt_cell_from_key(sums->key, cell);
    for (int k = 0; k < 3; k++) {
        const int64_t moved = cell[k] - zero[k];
        if (moved <= -limit || moved >= limit)
            return 0;
        cell[k] = (int32_t)moved;
    }
    sums->key = ndt_cell_key(cell);
    return 1;
}

int ndt_sum_table_renumber(struct ndt_sum_table *out, const struct ndt_sum_table *table, const int64_t zero[3],
                           int64_t limit)
{
    *out = (struct ndt_sum_table){.leaf_m = table->leaf_m};
    if (ndt_sum_table_reserve(out, table->used - table->empty, NULL) != NDT_OK)
        return 0;
    for (size_t i = 0; i < table->used; i++) {
        if (table->cells[i].n == 0)
            continue;
        out->cells[out->used] = table->cells[i];
        if (!renumber(&out->cells[out->used], zero, limit))
            return 0;
        out->used++;
    }
    fill_index(out);
    return 1;
}

enum ndt_status ndt_sum_table_can_add(struct ndt_sum_table *table, const struct ndt_sum_table *change,
                                      struct ndt_error *err)
{
    size_t fresh = 0;
    if (table->used == 0) /* ndt_sum_table_add takes `change` over as a whole */
        return NDT_OK;
    for (size_t i = 0; i < change->used; i++) {
        const struct ndt_cell_sums *sums = find_cell(table, change->cells[i].key);
        if ((sums ? sums->n : 0) > NDT_CELL_MAX_POINTS - change->cells[i].n)
            return ndt_fail(err, NDT_ERR_LIMIT, "more than %u points in one cell of %g m", NDT_CELL_MAX_POINTS,
                            table->leaf_m);
        fresh += !sums;
    }
    return ndt_sum_table_reserve(table, table->used + fresh, err);
}

enum ndt_status ndt_sum_table_can_remove(const struct ndt_sum_table *table, const struct ndt_sum_table *change,
                                         struct ndt_error *err)
{
    for (size_t i = 0; i < change->used; i++) {
        const struct ndt_cell_sums *sums = find_cell(table, change->cells[i].key);
        if (!sums || sums->n < change->cells[i].n)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "a point to remove was never added to the map");
    }
    return NDT_OK;
}

void ndt_sum_table_add(struct ndt_sum_table *table, struct ndt_sum_table *change)
{
    if (table->used == 0) {
        const struct ndt_sum_table before = *table;
        *table = *change;
        *change = before;
        return;
    }
    for (size_t i = 0; i < change->used; i++) {
        const struct ndt_cell_sums *more = &change->cells[i];
        const size_t before = table->used;
        struct ndt_cell_sums *sums = ndt_sum_table_get(table, more->key);
        table->empty -= table->used == before && sums->n == 0;
        sums->n += more->n;
        for (int k = 0; k < 3; k++)
            sums->s[k] += more->s[k];
        for (int k = 0; k < 6; k++)
            sums->q[k] += more->q[k];
    }
}

/* Empty cells would accumulate on a long drive: once they are the majority, they are removed and their memory is
 * freed. If the reallocation fails, the memory is kept. */
static void drop_empty_cells(struct ndt_sum_table *table)
{
    size_t kept = 0, capacity = FIRST_CELLS;
    if (2 * table->empty <= table->used)
        return;
    for (size_t i = 0; i < table->used; i++)
        if (table->cells[i].n > 0)
            table->cells[kept++] = table->cells[i];
    table->used = kept;
    table->empty = 0;
    while (capacity < kept)
        capacity *= 2;
    if (resize(table, capacity, NULL) == NDT_OK)
        return;
    memset(table->index, 0, table->index_slots * sizeof(*table->index));
    fill_index(table);
}

void ndt_sum_table_remove(struct ndt_sum_table *table, const struct ndt_sum_table *change)
{
    for (size_t i = 0; i < change->used; i++) {
        const struct ndt_cell_sums *less = &change->cells[i];
        struct ndt_cell_sums *sums = find_cell(table, less->key);
        sums->n -= less->n;
        table->empty += sums->n == 0;
        for (int k = 0; k < 3; k++)
            sums->s[k] -= less->s[k];
        for (int k = 0; k < 6; k++)
            sums->q[k] -= less->q[k];
    }
    drop_empty_cells(table);
}

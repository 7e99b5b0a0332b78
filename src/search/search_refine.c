/* Refinement: the best blocks at 0.5 m and 1.5 deg, and the best distinct places among them. */
#include "search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"

enum {
    LEVEL = 2,
    HALO_MAX = 2 * NDT_REACH_MAX_M + 2,
    STRIDE_MAX = (NDT_UNIT_X + 2 * HALO_MAX + 31) / 32 * 32,
    ROWS_MAX = NDT_UNIT_X + 2 * HALO_MAX
};
static const double PI = 3.14159265358979323846, TURN_DEG = 1.5;
static const double SAME_M = 2, SAME_DEG = 8;

struct refine {
    struct ndt_search *search;
    int32_t scale, side; /* number of cells of 0.5 m in a cell, and in a block's edge */
    int32_t halo, stride;
    int turns;      /* number of headings that are tried for a block; odd */
    size_t entries; /* number of entries of a block */
};

/* Adds the best cell of each 8x8 cells of a unit. */
static void add_best(const struct refine *refine, const struct ndt_block *block, int32_t row, double heading_rad,
                     uint32_t height_view, const uint8_t *sums, const uint8_t *peaks, struct ndt_place *out)
{
    for (int b = 0; b < refine->side / NDT_BLOCK; b++) {
        int best = b * NDT_BLOCK;
        while (sums[best] != peaks[b]) /* the first cell with the score of the best */
            best += (best + 1) % NDT_BLOCK ? 1 : NDT_UNIT_X - NDT_BLOCK + 1;
        out[b] = (struct ndt_place){.layer = block->layer,
                                    .y = block->y * refine->scale + row + best / NDT_UNIT_X,
                                    .x = block->x * refine->scale + best % NDT_UNIT_X,
                                    .height_view = height_view,
                                    .heading_rad = (float)heading_rad,
                                    .score = sums[best]};
    }
}

static void set_offsets(const struct refine *refine, const struct ndt_banded_points *banded, double heading_rad,
                        int32_t *offset)
{
    const double c = cos(heading_rad), s = sin(heading_rad), cell_m = ndt_field_cell_m(LEVEL);
    for (uint32_t i = 0; i < banded->count; i++) {
        const double x_m = (double)banded->x_m[i], y_m = (double)banded->y_m[i];
        offset[i] = ndt_cell_offset(s * x_m + c * y_m, cell_m) * refine->stride +
                    ndt_cell_offset(c * x_m - s * y_m, cell_m);
    }
}

static void refine_block(void *context, size_t item)
{
    const struct refine *refine = context;
    struct ndt_search *search = refine->search;
    const struct ndt_block *block = (const struct ndt_block *)search->blocks.items + item;
    const struct ndt_hypothesis *hypothesis = &search->hypotheses[block->hypothesis];
    const struct ndt_banded_points *banded = &search->view.height_views[hypothesis->height_view].refine;
    struct ndt_place *out = (struct ndt_place *)search->entries.items + item * refine->entries;
    uint8_t cells[ROWS_MAX * STRIDE_MAX + 32], allowed[NDT_UNIT_X], sums[NDT_UNIT_CELLS], peaks[NDT_UNIT_BLOCKS];
    int32_t offset[NDT_SEARCH_POINTS];
    if (ndt_search_is_cancelled(search))
        return;
    const struct ndt_window window = {block->layer,
                                      block->y * refine->scale - refine->halo,
                                      block->x * refine->scale - refine->halo,
                                      refine->side + 2 * refine->halo,
                                      NDT_UNIT_X + 2 * refine->halo,
                                      refine->stride};
    ndt_window_bits(search->field, LEVEL, &window, cells);
    for (int i = 0; i < NDT_UNIT_X; i++)
        allowed[i] = i < refine->side ? 255 : 0;
    for (int turn = 0; turn < refine->turns; turn++) {
        const double heading_rad = hypothesis->heading_rad + (turn - refine->turns / 2) * TURN_DEG * (PI / 180);
        const struct ndt_score_points points = {offset, banded->mask, banded->count};
        set_offsets(refine, banded, heading_rad, offset);
        for (int32_t row = 0; row < refine->side; row += NDT_UNIT_Y) {
            const uint8_t *first = cells + (row + refine->halo) * refine->stride + refine->halo;
            search->score(first, refine->stride, &points, allowed, 0, sums, peaks);
            add_best(refine, block, row, heading_rad, hypothesis->height_view, sums, peaks, out);
            out += refine->side / NDT_BLOCK;
        }
    }
    ndt_search_advance(search);
}

/* ---- distinct places ---- */

/* Sorts entries by score, best first; equal ones keep their order. */
static enum ndt_status sort_entries(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_place *entries = search->entries.items;
    const size_t count = search->entries.count;
    size_t place[NDT_SCORE_POINTS + 2] = {0};
    const enum ndt_status status = ndt_list_resize(&search->order, count, sizeof(uint32_t), err);
    uint32_t *order = search->order.items;
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        place[NDT_SCORE_POINTS - entries[i].score + 1]++;
    for (int s = 0; s <= NDT_SCORE_POINTS; s++)
        place[s + 1] += place[s];
    for (size_t i = 0; i < count; i++)
        order[place[NDT_SCORE_POINTS - entries[i].score]++] = (uint32_t)i;
    return NDT_OK;
}

static int is_same(const struct ndt_place *a, const struct ndt_place *b)
{
    const double dx = 0.5 * (a->x - b->x), dy = 0.5 * (a->y - b->y);
    const double turn = remainder((double)a->heading_rad - (double)b->heading_rad, 2 * PI);
    return a->layer == b->layer && dx * dx + dy * dy < SAME_M * SAME_M && fabs(turn) < SAME_DEG * (PI / 180);
}

static enum ndt_status keep_distinct(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_place *entries = search->entries.items;
    size_t kept = 0;
    enum ndt_status status = sort_entries(search, err);
    const uint32_t *order = search->order.items;
    if (status == NDT_OK)
        status = ndt_list_resize(&search->places, search->tier->places, sizeof(struct ndt_place), err);
    struct ndt_place *places = search->places.items;
    for (size_t i = 0; status == NDT_OK && i < search->entries.count && kept < search->tier->places; i++) {
        const struct ndt_place *entry = &entries[order[i]];
        int is_new = entry->score > 0;
        for (size_t k = 0; is_new && k < kept; k++)
            is_new = !is_same(entry, &places[k]);
        if (is_new)
            places[kept++] = *entry;
    }
    search->places.count = kept;
    return status;
}

enum ndt_status ndt_search_refine(struct ndt_search *search, struct ndt_error *err)
{
    struct refine refine = {.search = search, .scale = 4 >> search->tier->level};
    refine.turns = search->tier->level == LEVEL ? 1 : 3; /* blocks of this level have their heading already */
    refine.side = NDT_BLOCK * refine.scale;
    refine.halo = (int32_t)ceil(search->view.reach_m / ndt_field_cell_m(LEVEL)) + 1;
    refine.stride = (NDT_UNIT_X + 2 * refine.halo + 31) / 32 * 32;
    refine.entries = (size_t)refine.turns * (size_t)(refine.side / NDT_BLOCK) * (size_t)(refine.side / NDT_BLOCK);
    const enum ndt_status status =
        ndt_list_resize(&search->entries, search->blocks.count * refine.entries, sizeof(struct ndt_place), err);
    if (status != NDT_OK)
        return status;
    ndt_search_expect(search, (unsigned)search->blocks.count, 90);
    ndt_pool_run(search->pool, refine_block, &refine, search->blocks.count);
    return ndt_search_is_cancelled(search) ? NDT_OK : keep_distinct(search, err);
}

/* The dense score: every heading at every cell where a sensor may be, and the best blocks.
 *
 * Large searches take two passes: all blocks with every second point, then the best of them with all points. A
 * block that is among the 100 best of a map with all points is among the best 3 % with half of them. */
#include "search_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_window.h"

enum {
    HALO_MAX = 2 * NDT_REACH_MAX_M + 2, /* cells of 0.5 m */
    STRIDE_MAX = (NDT_WINDOW_CELLS + 2 * HALO_MAX + 31) / 32 * 32,
    ROWS_MAX = NDT_WINDOW_CELLS + 2 * HALO_MAX,
    BLOCKS = NDT_DENSE_PEAKS, /* blocks of a window */
    AGAIN_PART = 32,          /* one of so many blocks is scored again, */
    AGAIN_BLOCKS = 16,        /* or K1 times this, if that is more */
    MANY_WINDOWS = 32,
    HYPOTHESES_PER_ITEM = 16 /* where several threads share few windows */
};
static const double PI = 3.14159265358979323846;

/* ---- headings ---- */

static void set_hypotheses(struct ndt_search *search)
{
    const struct ndt_search_region *region = &search->region;
    const double *R = search->view.R_level, step = search->tier->heading_deg * (PI / 180);
    /* The heading is that of the x axis of the scan; levelling turns it a little. */
    const double own = atan2(R[3], R[0]);
    const int is_free = !region->has_heading || region->heading_reach_rad >= PI - step / 2;
    const int side = is_free ? 0 : (int)ceil(region->heading_reach_rad / step - 1e-9);
    const int count = is_free ? (int)ceil(2 * PI / step - 1e-9) : 2 * side + 1;
    search->hypothesis_count = 0;
    for (uint32_t s = 0; s < search->view.sight_count; s++)
        for (int i = 0; i < count; i++)
            search->hypotheses[search->hypothesis_count++] = (struct ndt_hypothesis){
                s, is_free ? i * (2 * PI / count) : region->heading_rad - own + (i - side) * step};
}

static enum ndt_status set_offsets(struct ndt_search *search, double cell_m, int32_t stride, struct ndt_error *err)
{
    const enum ndt_status status =
        ndt_list_resize(&search->offsets, search->hypothesis_count * NDT_SEARCH_POINTS, sizeof(int32_t), err);
    for (size_t h = 0; status == NDT_OK && h < search->hypothesis_count; h++) {
        const struct ndt_banded_points *banded =
            &search->view.height_views[search->hypotheses[h].height_view].dense;
        const double c = cos(search->hypotheses[h].heading_rad), s = sin(search->hypotheses[h].heading_rad);
        int32_t *offset = (int32_t *)search->offsets.items + h * NDT_SEARCH_POINTS;
        for (uint32_t i = 0; i < banded->count; i++) {
            const double x_m = (double)banded->x_m[i], y_m = (double)banded->y_m[i];
            offset[i] =
                ndt_cell_offset(s * x_m + c * y_m, cell_m) * stride + ndt_cell_offset(c * x_m - s * y_m, cell_m);
        }
    }
    return status;
}

/* The points of hypothesis h; is_half: the first half of them. */
static struct ndt_score_points points_of(const struct ndt_search *search, size_t h, int is_half)
{
    const struct ndt_banded_points *banded = &search->view.height_views[search->hypotheses[h].height_view].dense;
    return (struct ndt_score_points){.offset = (const int32_t *)search->offsets.items + h * NDT_SEARCH_POINTS,
                                     .mask = banded->mask,
                                     .count = is_half ? (banded->count + 1) / 2 : banded->count};
}

/* ---- windows ---- */

/* Whether the square of `size_m` at a corner (relative to the origin) comes within the circle. */
static int is_within(const struct ndt_search *search, double x_m, double y_m, double size_m)
{
    const struct ndt_search_region *region = &search->region;
    if (!region->has_position)
        return 1;
    const double x = region->position_m[0] - search->field->origin_m[0];
    const double y = region->position_m[1] - search->field->origin_m[1];
    const double dx = fmax(fmax(x_m - x, x - x_m - size_m), 0), dy = fmax(fmax(y_m - y, y - y_m - size_m), 0);
    return dx * dx + dy * dy <= region->radius_m * region->radius_m;
}

static int is_at_height(const struct ndt_search *search, const struct ndt_field_tile *tile)
{
    if (!search->region.has_height)
        return 1;
    for (int c = 0; c < NDT_FIELD_TILE_M * NDT_FIELD_TILE_M; c++)
        if (tile->ground_cm[c] != NDT_FIELD_NO_GROUND &&
            ndt_search_reaches_height(search, (double)tile->base_m + 0.01 * tile->ground_cm[c]))
            return 1;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct ndt_dense_window *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->y != y->y)
        return x->y < y->y ? -1 : 1;
    return x->x < y->x ? -1 : x->x > y->x;
}

/* Sets the windows that have tiles where a sensor may be, sorted. */
static enum ndt_status set_windows(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_field *field = search->field;
    const int32_t tiles = (NDT_WINDOW_CELLS * 2 >> search->tier->level) / NDT_FIELD_TILE_M; /* of an edge */
    const enum ndt_status status =
        ndt_list_resize(&search->windows, field->tile_count, sizeof(struct ndt_dense_window), err);
    struct ndt_dense_window *items = search->windows.items;
    size_t count = 0, kept = 0;
    if (status != NDT_OK)
        return status;
    for (uint32_t i = 0; i < field->tile_count; i++) {
        const struct ndt_field_tile *tile = &field->tiles[i];
        const struct ndt_dense_window window = {.layer = tile->layer,
                                                .y = ndt_floor_div(tile->y, tiles) * NDT_WINDOW_CELLS,
                                                .x = ndt_floor_div(tile->x, tiles) * NDT_WINDOW_CELLS};
        if ((count == 0 || by_place(&items[count - 1], &window) != 0) &&
            is_within(search, tile->x * NDT_FIELD_TILE_M, tile->y * NDT_FIELD_TILE_M, NDT_FIELD_TILE_M) &&
            is_at_height(search, tile))
            items[count++] = window;
    }
    if (count > 0)
        qsort(items, count, sizeof(*items), by_place);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_place(&items[i], &items[i - 1]) != 0)
            items[kept++] = items[i];
    search->windows.count = kept;
    return NDT_OK;
}

/* ---- scoring ---- */

struct dense {
    struct ndt_search *search;
    double cell_m;
    int32_t halo, stride;
    size_t chunk, chunks; /* hypotheses per item, items per window */
    enum { ONLY_PASS, FIRST_PASS, SECOND_PASS } pass;
    uint8_t least;  /* second pass: least score of the blocks that are scored again */
    int has_passes; /* the search takes two passes */
    int on_engine;
};

/* A window in process. */
struct scored {
    uint8_t cells[ROWS_MAX * STRIDE_MAX + 32];
    uint8_t allowed[NDT_WINDOW_CELLS * NDT_WINDOW_CELLS];
    uint8_t blocks[NDT_WINDOW_BLOCKS]; /* per row of blocks: bit x is set where block x has an allowed cell */
    uint32_t poses;                    /* allowed cells */
    size_t first, last;                /* range of hypotheses */
    uint8_t *peaks;
    size_t histogram[NDT_SCORE_POINTS + 1];
};

/* Whether the centre of a cell lies within the region: its floor, and its circle. */
static int is_in_region(const struct dense *dense, int32_t layer, double x_m, double y_m)
{
    const struct ndt_search *search = dense->search;
    const double half_m = 0.5 * dense->cell_m;
    double ground_m;
    return is_within(search, x_m, y_m, dense->cell_m) &&
           (!search->region.has_height ||
            (ndt_field_ground(search->field, layer, x_m + half_m, y_m + half_m, &ground_m) &&
             ndt_search_reaches_height(search, ground_m)));
}

/* Marks the cells where a sensor may be. */
static void set_allowed(const struct dense *dense, const struct ndt_dense_window *at, struct scored *scored)
{
    const struct ndt_search *search = dense->search;
    const struct ndt_window window = {at->layer,        at->y,           at->x, NDT_WINDOW_CELLS,
                                      NDT_WINDOW_CELLS, NDT_WINDOW_CELLS};
    const int is_limited = search->region.has_position || search->region.has_height;
    ndt_window_allowed(search->field, search->tier->level, search->is_any, &window, scored->allowed);
    scored->poses = 0;
    memset(scored->blocks, 0, sizeof(scored->blocks));
    for (int y = 0; y < NDT_WINDOW_CELLS; y++)
        for (int x = 0; x < NDT_WINDOW_CELLS; x++) {
            uint8_t *cell = &scored->allowed[y * NDT_WINDOW_CELLS + x];
            if (is_limited && *cell &&
                !is_in_region(dense, at->layer, (at->x + x) * dense->cell_m, (at->y + y) * dense->cell_m))
                *cell = 0;
            scored->poses += *cell & 1;
            scored->blocks[y / NDT_BLOCK] |= (uint8_t)((*cell & 1) << x / NDT_BLOCK);
        }
}

/* Copies the bits around the rows of blocks that have allowed cells; rows keep their places. */
static void set_cells(const struct dense *dense, const struct ndt_dense_window *at, struct scored *scored)
{
    int first = 0, last = NDT_WINDOW_BLOCKS;
    while (first < last && !scored->blocks[first])
        first++;
    while (last > first && !scored->blocks[last - 1])
        last--;
    const struct ndt_window window = {.layer = at->layer,
                                      .y = at->y + first * NDT_BLOCK - dense->halo,
                                      .x = at->x - dense->halo,
                                      .height = (last - first) * NDT_BLOCK + 2 * dense->halo,
                                      .width = NDT_WINDOW_CELLS + 2 * dense->halo,
                                      .stride = dense->stride};
    if (last > first)
        ndt_window_bits(dense->search->field, dense->search->tier->level, &window,
                        scored->cells + first * NDT_BLOCK * dense->stride);
}

/* Scores hypotheses first .. last - 1 at the unit whose first block is (row, column); is_new: its blocks that
 * count. */
static void score_unit(const struct dense *dense, struct scored *scored, int row, int column, unsigned is_new,
                       size_t first, size_t last)
{
    struct ndt_search *search = dense->search;
    const int y = row * NDT_BLOCK, x = column * NDT_BLOCK;
    const uint8_t *cells = scored->cells + (y + dense->halo) * dense->stride + x + dense->halo;
    const uint8_t *allowed = scored->allowed + y * NDT_WINDOW_CELLS + x;
    uint8_t sums[NDT_UNIT_CELLS], best[NDT_UNIT_BLOCKS];
    for (size_t h = first; h < last; h++) {
        const struct ndt_score_points points = points_of(search, h, dense->pass == FIRST_PASS);
        uint8_t *out = scored->peaks + h * BLOCKS + row * NDT_WINDOW_BLOCKS + column;
        search->score(cells, dense->stride, &points, allowed, NDT_WINDOW_CELLS, sums, best);
        for (int b = 0; b < NDT_UNIT_BLOCKS; b++)
            if (is_new >> b & 1) {
                out[b] = best[b];
                scored->histogram[best[b]]++;
            }
    }
}

/* Scores the blocks `left` of a row. Units begin at the first of them, so that few cover a narrow street. */
static void score_row(const struct dense *dense, struct scored *scored, int row, unsigned left, size_t first,
                      size_t last)
{
    while (left) {
        int column = __builtin_ctz(left);
        if (column > NDT_WINDOW_BLOCKS - NDT_UNIT_BLOCKS)
            column = NDT_WINDOW_BLOCKS - NDT_UNIT_BLOCKS;
        const unsigned covered = ((1u << NDT_UNIT_BLOCKS) - 1) << column;
        score_unit(dense, scored, row, column, (left & covered) >> column, first, last);
        left &= ~covered;
    }
}

static void score_all(const struct dense *dense, struct scored *scored)
{
    memset(scored->peaks + scored->first * BLOCKS, 0, (scored->last - scored->first) * BLOCKS);
    for (int row = 0; row < NDT_WINDOW_BLOCKS; row++)
        score_row(dense, scored, row, scored->blocks[row], scored->first, scored->last);
}

/* Whether a block of the item is scored again. */
static int any_again(const struct dense *dense, const struct scored *scored)
{
    for (size_t i = scored->first * BLOCKS; i < scored->last * BLOCKS; i++)
        if (scored->peaks[i] >= dense->least)
            return 1;
    return 0;
}

/* Scores the best blocks again; the others no longer count. */
static void score_again(const struct dense *dense, struct scored *scored)
{
    for (size_t h = scored->first; h < scored->last; h++)
        for (int row = 0; row < NDT_WINDOW_BLOCKS; row++) {
            uint8_t *peaks = scored->peaks + h * BLOCKS + row * NDT_WINDOW_BLOCKS;
            unsigned left = 0;
            for (int b = 0; b < NDT_WINDOW_BLOCKS; b++)
                left |= (unsigned)(peaks[b] >= dense->least) << b;
            memset(peaks, 0, NDT_WINDOW_BLOCKS);
            score_row(dense, scored, row, left, h, h + 1);
        }
}

static void add_histogram(struct ndt_search *search, const size_t histogram[NDT_SCORE_POINTS + 1])
{
    for (int s = 1; s <= NDT_SCORE_POINTS; s++)
        if (histogram[s])
            __atomic_add_fetch(&search->histogram[s], histogram[s], __ATOMIC_RELAXED);
}

static void score_window(void *context, size_t item)
{
    const struct dense *dense = context;
    struct ndt_search *search = dense->search;
    struct ndt_dense_window *at = (struct ndt_dense_window *)search->windows.items + item / dense->chunks;
    const size_t all = search->hypothesis_count, first = item % dense->chunks * dense->chunk;
    struct scored scored;
    if (ndt_search_is_cancelled(search))
        return;
    scored.first = first;
    scored.last = first + dense->chunk < all ? first + dense->chunk : all;
    scored.peaks = (uint8_t *)search->peaks.items + item / dense->chunks * all * BLOCKS;
    memset(scored.histogram, 0, sizeof(scored.histogram));
    if (dense->pass != SECOND_PASS || any_again(dense, &scored)) {
        set_allowed(dense, at, &scored);
        set_cells(dense, at, &scored);
        if (scored.first == 0)
            at->poses = scored.poses;
        if (dense->pass == SECOND_PASS)
            score_again(dense, &scored);
        else
            score_all(dense, &scored);
    } else {
        memset(scored.peaks + scored.first * BLOCKS, 0, (scored.last - scored.first) * BLOCKS);
    }
    add_histogram(search, scored.histogram);
    ndt_search_advance(search);
}

/* ---- scoring on an engine ---- */

static void set_allowed_bits(void *context, size_t item)
{
    const struct dense *dense = context;
    struct ndt_dense_window *at = (struct ndt_dense_window *)dense->search->windows.items + item;
    uint64_t *rows = (uint64_t *)dense->search->allowed.items + item * NDT_WINDOW_CELLS;
    struct scored scored;
    set_allowed(dense, at, &scored);
    at->poses = scored.poses;
    for (int y = 0; y < NDT_WINDOW_CELLS; y++) {
        rows[y] = 0;
        for (int x = 0; x < NDT_WINDOW_CELLS; x++)
            rows[y] |= (uint64_t)(scored.allowed[y * NDT_WINDOW_CELLS + x] & 1) << x;
    }
}

/* Adds a window to the histogram; after a second pass, only blocks that were good enough in the first one count. */
static void count_window(void *context, size_t item)
{
    const struct dense *dense = context;
    const size_t count = dense->search->hypothesis_count * BLOCKS;
    uint8_t *peaks = (uint8_t *)dense->search->peaks.items + item * count;
    const uint8_t *again = (const uint8_t *)dense->search->peaks_again.items + item * count;
    size_t histogram[NDT_SCORE_POINTS + 1] = {0};
    for (size_t i = 0; i < count; i++) {
        if (dense->pass == SECOND_PASS)
            peaks[i] = peaks[i] >= dense->least ? again[i] : 0;
        histogram[peaks[i]]++;
    }
    add_histogram(dense->search, histogram);
}

static enum ndt_status open_engine_pass(struct dense *dense, struct ndt_error *err)
{
    struct ndt_search *search = dense->search;
    dense->stride = search->config.engine->stride;
    enum ndt_status status = set_offsets(search, dense->cell_m, dense->stride, err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->points, search->hypothesis_count, sizeof(struct ndt_score_points), err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->allowed, search->windows.count * NDT_WINDOW_CELLS, sizeof(uint64_t), err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->peaks_again, dense->has_passes ? search->peaks.count : 0, 1, err);
    if (status == NDT_OK)
        ndt_pool_run(search->pool, set_allowed_bits, dense, search->windows.count);
    return status;
}

/* Runs a pass on the engine; 0: the engine has failed. */
static int run_engine_pass(struct dense *dense, unsigned percent)
{
    struct ndt_search *search = dense->search;
    struct ndt_score_points *points = search->points.items;
    for (size_t h = 0; h < search->hypothesis_count; h++)
        points[h] = points_of(search, h, dense->pass == FIRST_PASS);
    struct ndt_dense_job job = {.level = search->tier->level,
                                .halo = dense->halo,
                                .window_count = search->windows.count,
                                .windows = search->windows.items,
                                .allowed = search->allowed.items,
                                .hypothesis_count = search->hypothesis_count,
                                .hypotheses = points,
                                .peaks =
                                    dense->pass == SECOND_PASS ? search->peaks_again.items : search->peaks.items};
    memset(search->histogram, 0, sizeof(search->histogram));
    ndt_search_expect(search, (unsigned)search->windows.count, percent);
    if (!ndt_search_engine_score(search, &job))
        return 0;
    if (!ndt_search_is_cancelled(search))
        ndt_pool_run(search->pool, count_window, dense, search->windows.count);
    return 1;
}

/* ---- the best blocks ---- */

/* Finds the smallest score that counts, and the number of blocks with just this score that are taken. */
static int find_threshold(const struct ndt_search *search, size_t most, size_t *count, size_t *of_least)
{
    size_t above = 0;
    for (int s = NDT_SCORE_POINTS; s > 0; s--) {
        if (above + search->histogram[s] >= most) {
            *of_least = most - above;
            *count = most;
            return s;
        }
        above += search->histogram[s];
    }
    *count = above;
    *of_least = SIZE_MAX;
    return 1;
}

static int by_score(const void *a, const void *b)
{
    const struct ndt_block *x = a, *y = b;
    const struct ndt_dense_window p = {x->layer, x->y, x->x, 0}, q = {y->layer, y->y, y->x, 0};
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    const int order = by_place(&p, &q);
    return order ? order : x->hypothesis < y->hypothesis ? -1 : x->hypothesis > y->hypothesis;
}

static enum ndt_status select_blocks(struct ndt_search *search, struct ndt_error *err)
{
    size_t count, of_least, kept = 0;
    const int least = find_threshold(search, search->tier->blocks, &count, &of_least);
    const enum ndt_status status = ndt_list_resize(&search->blocks, count, sizeof(struct ndt_block), err);
    const uint8_t *peaks = search->peaks.items;
    struct ndt_block *blocks = search->blocks.items;
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < search->peaks.count && kept < count; i++) {
        if (peaks[i] < least || (peaks[i] == least && of_least == 0))
            continue;
        of_least -= peaks[i] == least;
        const size_t pair = i / BLOCKS;
        const struct ndt_dense_window *window =
            (const struct ndt_dense_window *)search->windows.items + pair / search->hypothesis_count;
        blocks[kept++] = (struct ndt_block){.layer = window->layer,
                                            .y = window->y + (int32_t)(i % BLOCKS) / NDT_WINDOW_BLOCKS * NDT_BLOCK,
                                            .x = window->x + (int32_t)(i % BLOCKS) % NDT_WINDOW_BLOCKS * NDT_BLOCK,
                                            .hypothesis = (uint32_t)(pair % search->hypothesis_count),
                                            .score = peaks[i]};
    }
    search->blocks.count = kept;
    if (kept > 0)
        qsort(blocks, kept, sizeof(*blocks), by_score);
    return NDT_OK;
}

/* Runs one pass over all windows; 0: the engine has failed. */
static int run_pass(struct dense *dense, unsigned percent)
{
    struct ndt_search *search = dense->search;
    const size_t items = search->windows.count * dense->chunks;
    if (dense->on_engine)
        return run_engine_pass(dense, percent);
    memset(search->histogram, 0, sizeof(search->histogram));
    ndt_search_expect(search, (unsigned)items, percent);
    ndt_pool_run(search->pool, score_window, dense, items);
    return 1;
}

/* Number of blocks that are scored again after the first pass. */
static size_t blocks_again(const struct ndt_search *search)
{
    return (size_t)AGAIN_BLOCKS * search->tier->blocks;
}

static int run_passes(struct dense *dense)
{
    const struct ndt_search *search = dense->search;
    const size_t wanted = blocks_again(search);
    size_t count, of_least, scored = 0;
    dense->pass = dense->has_passes ? FIRST_PASS : ONLY_PASS;
    if (!dense->has_passes)
        return run_pass(dense, 80);
    if (!run_pass(dense, 60))
        return 0;
    for (int s = 1; s <= NDT_SCORE_POINTS; s++)
        scored += search->histogram[s];
    dense->least = (uint8_t)find_threshold(search, scored / AGAIN_PART > wanted ? scored / AGAIN_PART : wanted,
                                           &count, &of_least);
    dense->pass = SECOND_PASS;
    return run_pass(dense, 80);
}

static enum ndt_status open_pass(struct dense *dense, struct ndt_error *err)
{
    const struct ndt_search *search = dense->search;
    dense->stride = (NDT_WINDOW_CELLS + 2 * dense->halo + 31) / 32 * 32;
    dense->chunk = ndt_pool_threads(search->pool) == 1 || search->windows.count >= MANY_WINDOWS
                       ? search->hypothesis_count
                       : HYPOTHESES_PER_ITEM;
    if (dense->chunk == 0)
        dense->chunk = 1;
    dense->chunks = (search->hypothesis_count + dense->chunk - 1) / dense->chunk;
    return set_offsets(dense->search, dense->cell_m, dense->stride, err);
}

/* Scores the windows on the engine; where it fails, or without it, in the threads. */
static enum ndt_status score_windows(struct dense *dense, struct ndt_error *err)
{
    struct ndt_search *search = dense->search;
    enum ndt_status status;
    dense->has_passes = search->peaks.count / AGAIN_PART >= blocks_again(search);
    dense->on_engine = search->tier->level < NDT_DENSE_LEVELS && ndt_search_has_engine(search);
    if (dense->on_engine) {
        status = open_engine_pass(dense, err);
        if (status != NDT_OK || run_passes(dense))
            return status;
    }
    dense->on_engine = 0;
    status = open_pass(dense, err);
    if (status == NDT_OK)
        (void)run_passes(dense);
    return status;
}

enum ndt_status ndt_search_dense(struct ndt_search *search, uint64_t *poses, struct ndt_error *err)
{
    struct dense dense = {.search = search, .cell_m = ndt_field_cell_m(search->tier->level)};
    dense.halo = (int32_t)ceil(search->view.reach_m / dense.cell_m) + 1;
    *poses = 0;
    set_hypotheses(search);
    enum ndt_status status = set_windows(search, err);
    if (status == NDT_OK)
        status = ndt_list_resize(&search->peaks, search->windows.count * search->hypothesis_count * BLOCKS, 1, err);
    if (status == NDT_OK)
        status = score_windows(&dense, err);
    if (status != NDT_OK || ndt_search_is_cancelled(search))
        return status;
    for (size_t i = 0; i < search->windows.count; i++)
        *poses +=
            (uint64_t)((const struct ndt_dense_window *)search->windows.items)[i].poses * search->hypothesis_count;
    return select_blocks(search, err);
}

/** @file
 * @brief The dense score of a search on a device against the plain C of the search, bit for bit: random fields with
 * tiles left out, windows at their edges, points at every distance; then whole searches.
 *
 * Without a device it is skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "field_window.h"
#include "ndt/random.h"
#include "score.h"
#include "search_cases.h"

static const struct ndt_dense_ops *engine_ops;

/* ---- random inputs ---- */

enum { TILES = 7, LAYERS = 2, MOST_WINDOWS = 1100 };

enum bits { BITS_RANDOM, BITS_FULL, BITS_NONE };

static unsigned char random_byte(struct ndt_random *random, enum bits bits)
{
    const uint64_t r = ndt_random_next(random);
    if (bits != BITS_RANDOM)
        return bits == BITS_FULL ? 255 : 0;
    return (unsigned char)(r & r >> 8 & (r >> 16 | r >> 24)); /* three of 16 bits are set */
}

/* Tiles around the origin; some are left out. */
static struct ndt_field *make_field(struct ndt_random *random, enum bits bits, double share)
{
    struct ndt_field *field = calloc(1, sizeof(*field));
    struct ndt_field_tile *tiles = calloc(LAYERS * TILES * TILES, sizeof(*tiles));
    if (!field || !tiles)
        abort();
    for (int i = 0; i < LAYERS * TILES * TILES; i++) {
        if (ndt_random_unit(random) > share)
            continue;
        struct ndt_field_tile *tile = &tiles[field->tile_count++];
        tile->layer = i / (TILES * TILES);
        tile->y = i / TILES % TILES - TILES / 2;
        tile->x = i % TILES - TILES / 2;
        for (size_t k = 0; k < sizeof(tile->bits_2m); k++)
            tile->bits_2m[k] = random_byte(random, bits);
        for (size_t k = 0; k < sizeof(tile->bits_1m); k++)
            tile->bits_1m[k] = random_byte(random, bits);
    }
    field->tiles = tiles;
    field->layer_count = LAYERS;
    field->references = 1;
    return field;
}

struct inputs {
    struct ndt_field *field;
    struct ndt_dense_job job;
    struct ndt_dense_window windows[MOST_WINDOWS];
    uint64_t allowed[MOST_WINDOWS * NDT_WINDOW_CELLS];
    struct ndt_score_points hypotheses[NDT_DENSE_HYPOTHESES];
    int32_t *offsets;
    uint8_t *masks, *peaks, *expected;
};

/* Allowed cells: all, none, some, or one at an edge. */
static void allow(struct ndt_random *random, size_t number, uint64_t rows[NDT_WINDOW_CELLS])
{
    static const int corners[4] = {0, NDT_WINDOW_CELLS - 1, 3, 60};
    memset(rows, number % 4 == 0 ? 0xff : 0, NDT_WINDOW_CELLS * sizeof(*rows));
    if (number % 4 == 2)
        rows[corners[number / 4 % 4]] = (uint64_t)1 << corners[number / 16 % 4];
    for (int y = 0; number % 4 == 3 && y < NDT_WINDOW_CELLS; y++)
        rows[y] = ndt_random_next(random) & ndt_random_next(random);
}

static int32_t random_cell(struct ndt_random *random, int32_t halo)
{
    const double v = ndt_random_between(random, -1.3, 1.3) * halo; /* often as far as possible */
    return v > halo ? halo : v < -halo ? -halo : (int32_t)v;
}

static void make_job(struct inputs *in, struct ndt_random *random, int level, int32_t halo, size_t windows,
                     size_t hypotheses, uint32_t most_points, int is_full)
{
    in->job = (struct ndt_dense_job){level,      halo,           windows,   in->windows, in->allowed,
                                     hypotheses, in->hypotheses, in->peaks, NULL,        NULL};
    for (size_t w = 0; w < windows; w++) {
        const int32_t y = (int32_t)(w / 5 % 5) - 2, x = (int32_t)(w % 5) - 2;
        in->windows[w] = (struct ndt_dense_window){
            .layer = (int32_t)(w / 25 % 3), .y = y * NDT_WINDOW_CELLS, .x = x * NDT_WINDOW_CELLS};
        allow(random, is_full ? 0 : w + (w / 25), in->allowed + w * NDT_WINDOW_CELLS);
    }
    for (size_t h = 0; h < hypotheses; h++) {
        int32_t *offset = in->offsets + h * NDT_DENSE_POINTS;
        uint8_t *mask = in->masks + h * NDT_DENSE_POINTS;
        const uint32_t count =
            is_full || h % 5 == 1 ? most_points : (uint32_t)(ndt_random_next(random) % most_points);
        for (uint32_t i = 0; i < count; i++) {
            offset[i] = random_cell(random, halo) * engine_ops->stride + random_cell(random, halo);
            mask[i] = is_full ? 255 : (uint8_t)(1u << ndt_random_next(random) % 8);
            if (h % 3 == 2) /* a wider band */
                mask[i] |= (uint8_t)(mask[i] << 1);
        }
        in->hypotheses[h] = (struct ndt_score_points){offset, mask, count};
    }
}

/* ---- the plain score ---- */

static void score_plainly(const struct inputs *in, const struct ndt_dense_ops *ops, uint8_t *out)
{
    enum { ROWS = NDT_WINDOW_CELLS + 2 * NDT_DENSE_HALO };
    static uint8_t cells[ROWS * 256], allowed[NDT_WINDOW_CELLS * NDT_WINDOW_CELLS], sums[NDT_UNIT_CELLS];
    const struct ndt_dense_job *job = &in->job;
    const int32_t side = NDT_WINDOW_CELLS + 2 * job->halo;
    for (size_t w = 0; w < job->window_count; w++) {
        const struct ndt_dense_window *at = &job->windows[w];
        const struct ndt_window part = {at->layer, at->y - job->halo, at->x - job->halo, side, side, ops->stride};
        ndt_window_bits(in->field, job->level, &part, cells);
        for (int i = 0; i < NDT_WINDOW_CELLS * NDT_WINDOW_CELLS; i++)
            allowed[i] =
                job->allowed[w * NDT_WINDOW_CELLS + (size_t)(i / NDT_WINDOW_CELLS)] >> (i % NDT_WINDOW_CELLS) & 1
                    ? 255
                    : 0;
        for (size_t h = 0; h < job->hypothesis_count; h++)
            for (int y = 0; y < NDT_WINDOW_CELLS; y += NDT_UNIT_Y)
                for (int x = 0; x < NDT_WINDOW_CELLS; x += NDT_UNIT_X)
                    ndt_score_unit_plain(cells + (y + job->halo) * ops->stride + x + job->halo, ops->stride,
                                         &job->hypotheses[h], allowed + y * NDT_WINDOW_CELLS + x, NDT_WINDOW_CELLS,
                                         sums,
                                         out + (w * job->hypothesis_count + h) * NDT_DENSE_PEAKS +
                                             y / NDT_BLOCK * NDT_WINDOW_BLOCKS + x / NDT_BLOCK);
    }
}

/* ---- the dense score ---- */

static enum ndt_status set_field(struct ndt_dense_engine *one, const struct ndt_field *field, struct ndt_error *err)
{
    static struct ndt_dense_tile tiles[LAYERS * TILES * TILES];
    for (uint32_t i = 0; i < field->tile_count; i++)
        tiles[i] = (struct ndt_dense_tile){field->tiles[i].layer,
                                           field->tiles[i].y,
                                           field->tiles[i].x,
                                           {field->tiles[i].bits_2m, field->tiles[i].bits_1m}};
    return engine_ops->set_field(one, tiles, field->tile_count, err);
}

static struct ndt_dense_engine *engine;

static void compare(struct inputs *in, const char *name)
{
    struct ndt_error err = {""};
    char text[600];
    const size_t count = in->job.window_count * in->job.hypothesis_count * NDT_DENSE_PEAKS;
    size_t wrong = 0, first = 0;
    memset(in->peaks, 0xee, count);
    enum ndt_status status = set_field(engine, in->field, &err);
    if (status == NDT_OK)
        status = engine_ops->score(engine, &in->job, &err);
    score_plainly(in, engine_ops, in->expected);
    for (size_t i = 0; i < count; i++)
        if (in->peaks[i] != in->expected[i] && wrong++ == 0)
            first = i;
    const size_t pair = first / NDT_DENSE_PEAKS;
    snprintf(text, sizeof(text),
             "%s: %zu of %zu peaks differ; the first: window %zu, hypothesis %zu, block %zu: %d, %d", name, wrong,
             count, pair / in->job.hypothesis_count, pair % in->job.hypothesis_count, first % NDT_DENSE_PEAKS,
             in->peaks[first], in->expected[first]);
    check_expect(status == NDT_OK && wrong == 0, status == NDT_OK ? name : err.text, wrong ? text : "");
}

struct shape {
    const char *name;
    int level;
    int32_t halo;
    size_t windows, hypotheses;
    uint32_t points;
    enum bits bits;
    double share; /* share of existing tiles */
    int is_full;
};
static const struct shape shapes[] = {
    {"dense/quick", 0, 26, 75, 9, 200, BITS_RANDOM, 0.7, 0},
    {"dense/thorough", 1, 51, 50, 17, 200, BITS_RANDOM, 0.7, 0},
    {"dense/far", 1, NDT_DENSE_HALO, 25, 3, 250, BITS_RANDOM, 0.8, 0},
    {"dense/far_2m", 0, NDT_DENSE_HALO, 25, 8, 120, BITS_RANDOM, 0.8, 0},
    {"dense/near", 1, 1, 25, 5, 30, BITS_RANDOM, 0.9, 0},
    {"dense/here", 0, 0, 25, 1, 4, BITS_RANDOM, 0.9, 0},
    {"dense/full", 1, 40, 3, 4, 250, BITS_FULL, 1, 1},
    {"dense/empty", 1, 40, 3, 4, 250, BITS_NONE, 0.5, 1},
    {"dense/no_tiles", 0, 26, 4, 4, 50, BITS_RANDOM, 0, 1},
    {"dense/headings", 1, 30, 3, NDT_DENSE_HYPOTHESES, 2, BITS_RANDOM, 0.8, 0},
    {"dense/windows", 0, 20, MOST_WINDOWS, 1, 6, BITS_RANDOM, 0.8, 0},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void check_shape(const char *name, int number)
{
    const struct shape *shape = &shapes[number];
    static struct inputs in;
    struct ndt_random random = ndt_random_stream(7, (uint64_t)number, 0);
    const size_t peaks = shape->windows * shape->hypotheses * NDT_DENSE_PEAKS;
    in.offsets = malloc(shape->hypotheses * NDT_DENSE_POINTS * sizeof(*in.offsets));
    in.masks = malloc(shape->hypotheses * NDT_DENSE_POINTS);
    in.peaks = malloc(peaks);
    in.expected = malloc(peaks);
    if (!in.offsets || !in.masks || !in.peaks || !in.expected)
        abort();
    in.field = make_field(&random, shape->bits, shape->share);
    make_job(&in, &random, shape->level, shape->halo, shape->windows, shape->hypotheses, shape->points,
             shape->is_full);
    compare(&in, name);
    ndt_field_release(in.field);
    free(in.offsets);
    free(in.masks);
    free(in.peaks);
    free(in.expected);
}

/* ---- whole searches ---- */

static size_t scored;

static enum ndt_status count_score(struct ndt_dense_engine *one, const struct ndt_dense_job *job,
                                   struct ndt_error *err)
{
    scored++;
    return engine_ops->score(one, job, err);
}

/* Number of scores: two in a large region, where the search takes two passes. */
static size_t expected_scores(const char *name)
{
    return strstr(name, "twice") ? 2 : 1;
}

static void check_whole(const char *name, int tier)
{
    struct ndt_dense_ops counting = *engine_ops;
    const int has_ground = strstr(name, "no_ground") == NULL;
    const uint32_t blocks = expected_scores(name) > 1 ? 4 : 0; /* so few are found in two passes */
    static struct ndt_search_result plain, device;
    struct search_case one;
    char text[300], what[300] = "";
    counting.score = count_score;
    scored = 0;
    if (!search_case_make(&one, 150, has_ground))
        return;
    struct ndt_search *first = search_case_open(&one, NULL, "plain");
    struct ndt_search *second = search_case_open(&one, &counting, "auto");
    if (first && second && search_case_run(&one, first, (enum ndt_search_tier)tier, blocks, &plain) &&
        search_case_run(&one, second, (enum ndt_search_tier)tier, blocks, &device)) {
        const int same = search_case_same(&plain, &device, text, sizeof(text));
        snprintf(what, sizeof(what), "%s: %zu scores, %u candidates, the first %.2f m off", name, scored,
                 device.count, ndt_pose_distance_m(&one.truth, &device.candidates[0].T_map_sensor));
        check_expect(same && plain.count > 0 && scored >= expected_scores(name) &&
                         !ndt_search_engine_failure(second),
                     what, same ? "" : text);
    }
    ndt_search_destroy(first);
    ndt_search_destroy(second);
    search_case_free(&one);
}

static const struct check_case whole[] = {
    {.name = "whole/quick", .run_with = check_whole, .text = "whole/quick", .value = NDT_SEARCH_QUICK},
    {.name = "whole/thorough", .run_with = check_whole, .text = "whole/thorough", .value = NDT_SEARCH_THOROUGH},
    {.name = "whole/window", .run_with = check_whole, .text = "whole/window", .value = NDT_SEARCH_REGION},
    {.name = "whole/auto", .run_with = check_whole, .text = "whole/auto", .value = NDT_SEARCH_AUTO},
    {.name = "whole/twice", .run_with = check_whole, .text = "whole/twice", .value = NDT_SEARCH_REGION},
    {.name = "whole/quick_twice", .run_with = check_whole, .text = "whole/quick_twice", .value = NDT_SEARCH_QUICK},
    {.name = "whole/no_ground", .run_with = check_whole, .text = "whole/no_ground", .value = NDT_SEARCH_REGION},
};
enum { WHOLE = sizeof(whole) / sizeof(whole[0]) };

/* ---- what is refused ---- */

static void refuse(const char *name, int unused)
{
    static const uint64_t rows[NDT_WINDOW_CELLS];
    static uint8_t peaks[NDT_DENSE_PEAKS];
    const struct ndt_dense_window window = {0};
    const struct ndt_score_points points = {0};
    struct ndt_random random = {3};
    struct ndt_field *field = make_field(&random, BITS_RANDOM, 0.5);
    struct ndt_error err = {""};
    const struct ndt_dense_job good = {0, 4, 1, &window, rows, 1, &points, peaks, NULL, NULL};
    const struct ndt_dense_job bad[] = {{2, 4, 1, &window, rows, 1, &points, peaks, NULL, NULL},
                                        {0, NDT_DENSE_HALO + 1, 1, &window, rows, 1, &points, peaks, NULL, NULL},
                                        {0, -1, 1, &window, rows, 1, &points, peaks, NULL, NULL}};
    (void)unused;
    check_expect(set_field(engine, field, &err) == NDT_OK, name, err.text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_expect(engine_ops->score(engine, &bad[i], &err) == NDT_ERR_LIMIT, name, err.text);
    check_expect(engine_ops->score(engine, &good, &err) == NDT_OK, name, "a good job after it");
    ndt_field_release(field);
}

/* The engine of the named backend, or of the first that has one and runs here. */
static int find_engine(const char *name, struct ndt_error *why)
{
    snprintf(why->text, sizeof(why->text), "no backend has an engine for searches");
    for (size_t i = 0; ndt_backend_at(i) && !engine; i++) {
        const struct ndt_backend_ops *ops = ndt_backend_at(i);
        engine_ops = !name || strcmp(name, ops->name) == 0 ? ndt_backend_search_engine(ops->name) : NULL;
        if (engine_ops && engine_ops->open(&engine, 0, why) != NDT_OK)
            continue;
    }
    return engine != NULL;
}

int main(int argc, char **argv)
{
    const char *backend = NULL;
    const struct check_option options[] = {{.name = "--backend", .text = &backend}, {.name = NULL}};
    struct check_case cases[SHAPES + WHOLE + 2] = {0};
    struct ndt_error why = {""};
    size_t count = 0;
    for (int i = 0; i < SHAPES; i++)
        cases[count++] = (struct check_case){
            .name = shapes[i].name, .run_with = check_shape, .text = shapes[i].name, .value = i};
    for (int i = 0; i < WHOLE; i++)
        cases[count++] = whole[i];
    cases[count++] = (struct check_case){.name = "refused", .run_with = refuse, .text = "refused"};
    check_start(argc, argv, options);
    if (!check.is_list && !find_engine(backend, &why)) {
        printf("skipped: %s\n", why.text);
        return CHECK_SKIPPED;
    }
    const int code = check_run(cases);
    if (engine)
        engine_ops->close(engine);
    return code;
}

/* The field of a map: ground, bits, layers, and a slow computation of the same. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field_build.h"
#include "field_window.h"
#include "run_tests.h"
#include "search_world.h"

static struct ndt_cloud world;
static struct ndt_map *map;
static struct ndt_field *field;

static void open_world(const struct world_wish *wish)
{
    world_make(wish, &world);
    map = world_map(&world);
    field = world_field(map);
}

static void close_world(void)
{
    ndt_field_release(field);
    ndt_map_release(map);
    ndt_cloud_free(&world);
}

static uint8_t cell_bits(const struct ndt_field *of, int layer, int level, int32_t y, int32_t x)
{
    const struct ndt_window window = {layer, y, x, 1, 1, 1};
    uint8_t bits;
    ndt_window_bits(of, level, &window, &bits);
    return bits;
}

TEST(test_ground)
{
    const struct world_wish wish = {
        .seed = 3, .size_m = 50, .slope = 0.08, .boxes = 30, .origin_m = {4e5, 5e6, 300}};
    open_world(&wish);
    int bad = 0, count = 0;
    for (double y = -48; y < 48; y += 3)
        for (double x = -48; x < 48; x += 3) {
            double height_m = NAN;
            const double at[2] = {wish.origin_m[0] + x - field->origin_m[0],
                                  wish.origin_m[1] + y - field->origin_m[1]};
            ck_assert(ndt_field_ground(field, 0, at[0], at[1], &height_m));
            bad += fabs(field->origin_m[2] + height_m - wish.origin_m[2] - wish.slope * x) > 0.15;
            count++;
        }
    ck_assert_int_le(bad, count / 25); /* beneath boxes it is the height of the nearest ground */
    double height_m;
    ck_assert_int_eq(ndt_field_ground(field, 0, 1e6, 0, &height_m), 0);
    ck_assert_int_eq(ndt_field_ground(field, 0, NAN, 0, &height_m), 0);
    ck_assert_int_eq(ndt_field_ground(field, 1, 0, 0, &height_m), 0);
    ck_assert_uint_eq(field->layer_count, 1);
    close_world();
}

/* A tile and its neighbours by brute force: which samples fall within a cell of a cell. */
static int count_wrong_bits(const struct ndt_field *tested)
{
    struct ndt_shapes shapes;
    int wrong = 0;
    ck_assert(ndt_shapes_from_level(&shapes, &map->levels[2], NULL) == NDT_OK);
    for (int level = 0; level < NDT_FIELD_LEVELS; level++) {
        enum { FIRST = -80, CELLS = 160 };
        static uint8_t expected[CELLS][CELLS];
        memset(expected, 0, sizeof(expected));
        for (size_t i = 0; i < shapes.count; i++)
            for (int k = 0; k < 9; k++) {
                const struct ndt_shape *shape = &shapes.items[i];
                float at_m[3];
                double ground_m;
                for (int d = 0; d < 3; d++)
                    at_m[d] = shape->mean_m[d] + (float)(k / 3 - 1) * shape->axes_m[0][d] +
                              (float)(k % 3 - 1) * shape->axes_m[1][d];
                if (!ndt_field_ground(tested, 0, (double)at_m[0], (double)at_m[1], &ground_m))
                    continue;
                int band = -1;
                while (band + 1 < NDT_FIELD_BANDS && at_m[2] - ground_m >= ndt_field_band_edges_m[band + 1])
                    band++;
                const int x = (int)floor((double)at_m[0] / ndt_field_cell_m(level)) - FIRST;
                const int y = (int)floor((double)at_m[1] / ndt_field_cell_m(level)) - FIRST;
                for (int n = 0; band >= 0 && n < 9; n++)
                    if (x + n % 3 - 1 >= 0 && x + n % 3 - 1 < CELLS && y + n / 3 - 1 >= 0 && y + n / 3 - 1 < CELLS)
                        expected[y + n / 3 - 1][x + n % 3 - 1] |= (uint8_t)(1 << band);
            }
        for (int y = 0; y < CELLS; y++)
            for (int x = 0; x < CELLS; x++)
                wrong += expected[y][x] != cell_bits(tested, 0, level, y + FIRST, x + FIRST);
    }
    free(shapes.items);
    return wrong;
}

/* A sample within a millimetre of the edge of a band may fall on either side: heights are stored in centimetres. */
TEST(test_bits)
{
    const struct world_wish wish = {.seed = 5, .size_m = 40, .boxes = 25};
    open_world(&wish);
    const int wrong = count_wrong_bits(field);
    ck_assert_msg(wrong < 40, "%d of 76800 cells differ", wrong);
    /* A fault in the bits of one tile is noticed. */
    struct ndt_field broken = *field;
    struct ndt_field_tile *tiles = malloc(field->tile_count * sizeof(*tiles));
    ck_assert_ptr_nonnull(tiles);
    memcpy(tiles, field->tiles, field->tile_count * sizeof(*tiles));
    broken.tiles = tiles;
    for (uint32_t i = 0; i < field->tile_count; i++)
        if (tiles[i].x == 0 && tiles[i].y == 0)
            memmove(tiles[i].bits_05m, tiles[i].bits_05m + 1, sizeof(tiles[i].bits_05m) - 1);
    ck_assert_int_gt(count_wrong_bits(&broken), 2 * wrong + 60);
    free(tiles);
    close_world();
}

TEST(test_known)
{
    const struct world_wish wish = {.seed = 9, .size_m = 40, .boxes = 6, .hole_m = 12};
    open_world(&wish);
    uint8_t known, any;
    const struct ndt_window middle = {0, 0, 0, 1, 1, 1}, edge = {0, 0, 11, 1, 1, 1}, open = {0, 20, 20, 1, 1, 1};
    ndt_window_allowed(field, 1, 0, &middle, &known);
    ndt_window_allowed(field, 1, 1, &middle, &any);
    ck_assert_uint_eq(known, 0);
    ck_assert_uint_eq(any, 255);
    ndt_window_allowed(field, 1, 0, &edge, &known);
    ck_assert_uint_eq(known, 255);
    ndt_window_allowed(field, 1, 0, &open, &known);
    ck_assert_uint_eq(known, 255);
    close_world();
}

TEST(test_layers)
{
    const struct world_wish storey = {.seed = 11, .size_m = 50, .boxes = 10, .has_floor = 1};
    const struct world_wish ceiling = {.seed = 11, .size_m = 50, .boxes = 10, .has_ceiling = 1};
    double height_m = 0;
    open_world(&storey);
    ck_assert_uint_eq(field->layer_count, 2);
    ck_assert(ndt_field_ground(field, 1, -5, 5, &height_m));
    ck_assert_double_eq_tol(height_m, 4, 0.1);
    ck_assert(ndt_field_ground(field, 0, 35, 35, &height_m));
    ck_assert_double_eq_tol(height_m, 0, 0.1);
    close_world();
    open_world(&ceiling); /* nothing stands on it */
    int tiles_above = 0;
    for (uint32_t i = 0; i < field->tile_count; i++)
        tiles_above += field->tiles[i].layer > 0;
    ck_assert_msg(tiles_above == 0, "%d tiles", tiles_above);
    close_world();
}

TEST(test_memory)
{
    const struct world_wish wish = {.seed = 13, .size_m = 60, .boxes = 20};
    open_world(&wish);
    const double km2 = field->tile_count * 1024e-6;
    ck_assert_double_lt((double)ndt_field_bytes(field) * 1e-6, 10 * km2);
    struct ndt_field *again = world_field(map);
    ck_assert_uint_eq(again->tile_count, field->tile_count);
    ck_assert_int_eq(memcmp(again->tiles, field->tiles, field->tile_count * sizeof(*field->tiles)), 0);
    ndt_field_release(again);
    ndt_field_release(ndt_field_retain(field));
    ndt_field_release(NULL);
    close_world();
}

/* A map without ground, and one that covers too much. */
TEST(test_odd_maps)
{
    struct ndt_random random = {17};
    struct ndt_error err = {""};
    ndt_cloud_init(&world);
    for (int i = 0; i < 4000; i++) {
        const double y = ndt_random_between(&random, 0, 5), z = ndt_random_between(&random, 0, 5);
        world_point(&world, 0.02 * ndt_random_normal(&random), y, z);
    }
    map = world_map(&world);
    field = world_field(map);
    for (uint32_t i = 0; i < field->tile_count; i++)
        for (size_t k = 0; k < sizeof(field->tiles[i].known); k++)
            ck_assert_uint_eq(field->tiles[i].known[k], 0);
    ndt_field_release(field);
    ndt_map_release(map);
    struct ndt_map_config config;
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = 4;
    ck_assert(ndt_map_from_cloud(&map, &config, &world, &err) == NDT_OK);
    ck_assert_int_eq(ndt_field_build(&field, map, &err), NDT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(field);
    ndt_map_release(map);
    ndt_cloud_free(&world);
}

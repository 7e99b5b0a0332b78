/* The map: Gaussians from sums, exact removal, coarser levels, the index, the compiled file. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "map_build.h"
#include "ndt/linalg.h"
#include "ndt/map.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "run_tests.h"
#include "street_world.h"

static struct ndt_error err;
static struct ndt_cloud cloud, half[2];
static struct ndt_map_config config;

static void make_street(struct ndt_cloud *out, uint64_t seed, size_t count, const double origin_m[3])
{
    const struct world world = {WORLD_STREET, seed, 120, 0.02};
    must(world_map(out, &world, count, origin_m, &err));
}

static void setup(void)
{
    err.text[0] = '\0';
    ndt_map_config_default(&config);
    ndt_cloud_init(&cloud);
    ndt_cloud_init(&half[0]);
    ndt_cloud_init(&half[1]);
    make_street(&cloud, 7, 60000, (double[3]){0, 0, 0});
    for (size_t h = 0; h < 2; h++) {
        must(ndt_cloud_reserve(&half[h], cloud.count, 0, &err));
        for (size_t i = h; i < cloud.count; i += 2) {
            const size_t at = half[h].count++;
            half[h].x_m[at] = cloud.x_m[i];
            half[h].y_m[at] = cloud.y_m[i];
            half[h].z_m[at] = cloud.z_m[i];
        }
        memcpy(half[h].origin_m, cloud.origin_m, sizeof(cloud.origin_m));
    }
}

static void teardown(void)
{
    ndt_cloud_free(&cloud);
    ndt_cloud_free(&half[0]);
    ndt_cloud_free(&half[1]);
}

static struct ndt_map *build(struct ndt_map_builder *builder)
{
    struct ndt_map *map;
    must(ndt_map_build(&map, builder, &err));
    return map;
}

FIXTURE(setup, teardown)

TEST(mixture_constants_match_the_publication)
{
    struct ndt_map *map;
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    const struct ndt_map_level *level = &map->levels[ndt_map_find_level(map, 2.0)];
    ck_assert_double_eq_tol(level->d1, -4.196518, 5e-7);
    ck_assert_double_eq_tol(level->d2, 0.248479, 5e-7);
    level = &map->levels[ndt_map_find_level(map, 1.0)];
    ck_assert_double_eq_tol(level->d1, -2.217225, 5e-7);
    ck_assert_double_eq_tol(level->d2, 0.433123, 5e-7);
    ck_assert_int_eq(ndt_map_find_level(map, 3.0), -1);
    ndt_map_release(map);
}

TEST(order_of_points_and_tiles_does_not_matter)
{
    struct ndt_map_builder *forward, *backward;
    must(ndt_map_builder_create(&forward, &config, &err));
    must(ndt_map_builder_create(&backward, &config, &err));
    must(ndt_map_builder_add(forward, &half[0], &err));
    must(ndt_map_builder_add(forward, &half[1], &err));
    must(ndt_map_builder_add(backward, &half[1], &err));
    must(ndt_map_builder_add(backward, &half[0], &err));
    struct ndt_map *a = build(forward), *b = build(backward);
    ck_assert_uint_eq(a->id, b->id);
    ck_assert_uint_eq(a->points, cloud.count);
    ndt_map_release(a);
    ndt_map_release(b);
    ndt_map_builder_destroy(forward);
    ndt_map_builder_destroy(backward);
}

static void same_level(const struct ndt_map_level *a, const struct ndt_map_level *b)
{
    ck_assert_uint_eq(a->voxel_count, b->voxel_count);
    ck_assert_uint_eq(a->brick_count, b->brick_count);
    ck_assert_uint_eq(a->brick_slots, b->brick_slots);
    ck_assert_uint_eq(a->list_words, b->list_words);
    ck_assert_mem_eq(a->voxels, b->voxels, a->voxel_count * sizeof(*a->voxels));
    ck_assert_mem_eq(a->bricks, b->bricks, a->brick_slots * sizeof(*a->bricks));
    ck_assert_mem_eq(a->cells, b->cells, (size_t)a->brick_count * 512 * sizeof(*a->cells));
    ck_assert_mem_eq(a->lists, b->lists, a->list_words * sizeof(*a->lists));
}

/* Points and cells are so many that threads are started: more than 7 x 32768 points, more than 7 x 2048 cells. */
TEST_OF_THREADS(any_number_of_threads_builds_the_same_map)
{
    static const int counts[] = {2, 3, 7};
    struct ndt_cloud many;
    struct ndt_map *one, *more;
    ndt_cloud_init(&many);
    make_street(&many, 9, 300000, (double[3]){500, -20, 3});
    config.leaf_m[2] = 0.5; /* 4 and 2 m follow from each other, 0.5 m has sums of its own */
    config.threads = 1;
    must(ndt_map_from_cloud(&one, &config, &many, &err));
    ck_assert_uint_gt(one->levels[2].voxel_count, 7 * 2048);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        config.threads = counts[i];
        must(ndt_map_from_cloud(&more, &config, &many, &err));
        ck_assert_uint_eq(one->id, more->id);
        ck_assert_uint_eq(one->points, more->points);
        for (size_t l = 0; l < one->level_count; l++)
            same_level(&one->levels[l], &more->levels[l]);
        ndt_map_release(more);
    }
    ndt_map_release(one);
    ndt_cloud_free(&many);
}

/* Two points out of range, found by different threads: the first of them is named, and nothing was added. */
TEST_OF_THREADS(first_bad_point_is_reported_with_threads)
{
    struct ndt_map_builder *builder;
    struct ndt_cloud many;
    ndt_cloud_init(&many);
    make_street(&many, 9, 200000, (double[3]){0, 0, 0});
    many.x_m[150000] = many.x_m[70001] = 3e7f;
    many.y_m[3] = NAN;
    for (config.threads = 1; config.threads < 5; config.threads++) {
        must(ndt_map_builder_create(&builder, &config, &err));
        ck_assert_int_eq(ndt_map_builder_add(builder, &many, &err), NDT_ERR_LIMIT);
        ck_assert_msg(strstr(err.text, "point 70001 is 30000000 m") != NULL, "%s", err.text);
        ck_assert_uint_eq(ndt_map_builder_points(builder), 0);
        ck_assert_uint_eq(ndt_map_builder_bytes(builder), 0);
        ndt_map_builder_destroy(builder);
    }
    ndt_cloud_free(&many);
}

/* A street that moves on by its length, a hundred times: memory is that of the newest two. */
TEST(empty_cells_are_freed)
{
    struct ndt_map_builder *builder;
    struct ndt_map *driven, *fresh;
    size_t most = 0, bytes;
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &cloud, &err));
    const size_t alone = ndt_map_builder_bytes(builder);
    ck_assert_uint_gt(alone, 0);
    for (int i = 0; i < 100; i++) {
        cloud.origin_m[0] += 120;
        must(ndt_map_builder_add(builder, &cloud, &err));
        cloud.origin_m[0] -= 120;
        must(ndt_map_builder_remove(builder, &cloud, &err));
        cloud.origin_m[0] += 120;
        bytes = ndt_map_builder_bytes(builder);
        most = bytes > most ? bytes : most;
    }
    ck_assert_msg(most <= 4 * alone, "%zu bytes for what needs %zu", most, alone);
    driven = build(builder);
    ndt_map_builder_destroy(builder);
    must(ndt_map_builder_create(&builder, &config, &err));
    cloud.count = 1; /* the same origin */
    cloud.origin_m[0] -= 12000;
    must(ndt_map_builder_add(builder, &cloud, &err));
    must(ndt_map_builder_remove(builder, &cloud, &err));
    cloud.count = half[0].count + half[1].count;
    cloud.origin_m[0] += 12000;
    must(ndt_map_builder_add(builder, &cloud, &err));
    fresh = build(builder);
    ck_assert_uint_eq(driven->id, fresh->id);
    ndt_map_release(driven);
    ndt_map_release(fresh);
    ndt_map_builder_destroy(builder);
}

/* The map of a cloud at this origin, built from its points there. */
static struct ndt_map *build_at(const double origin_m[3])
{
    struct ndt_map_builder *builder;
    struct ndt_cloud first;
    ndt_cloud_init(&first);
    must(ndt_cloud_reserve(&first, 1, 0, &err));
    memcpy(first.origin_m, origin_m, sizeof(first.origin_m));
    first.count = 1;
    first.x_m[0] = first.y_m[0] = first.z_m[0] = 0;
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &first, &err)); /* fixes the origin */
    must(ndt_map_builder_remove(builder, &first, &err));
    must(ndt_map_builder_add(builder, &cloud, &err));
    struct ndt_map *map = build(builder);
    ck_assert_mem_eq(map->origin_m, origin_m, sizeof(map->origin_m));
    ndt_map_builder_destroy(builder);
    ndt_cloud_free(&first);
    return map;
}

TEST(moved_origin_equals_original_origin)
{
    static const double places_m[][3] = {{1024, 0, 0}, {2048, -3072, 0}, {0, 1024, 1024}, {0, 0, 0}};
    struct ndt_map_builder *builder;
    for (size_t i = 0; i < cloud.count; i++)
        cloud.z_m[i] += 2; /* off the height where coordinates are tiny */
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &cloud, &err));
    for (size_t i = 0; i < sizeof(places_m) / sizeof(places_m[0]); i++) {
        ck_assert_int_eq(ndt_map_builder_move_origin(builder, places_m[i]), 1);
        struct ndt_map *moved = build(builder), *there = build_at(places_m[i]);
        ck_assert_uint_eq(moved->id, there->id);
        ndt_map_release(moved);
        ndt_map_release(there);
    }
    ndt_map_builder_destroy(builder);
}

/* The move changes nothing if it would not be exact, or the cells do not coincide. */
TEST(inexact_origin_move_changes_nothing)
{
    struct ndt_map_builder *builder;
    must(ndt_map_builder_create(&builder, &config, &err));
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){1024, 0, 0}), 0);
    cloud.y_m[9] = 1e-9f; /* relative to another origin in y, this is rounded away */
    must(ndt_map_builder_add(builder, &cloud, &err));
    struct ndt_map *before = build(builder);
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){1024, 1024, 0}), 0);
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){1000, 0, 0}), 0);
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){9216, 0, 0}), 0);
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){NAN, 0, 0}), 0);
    struct ndt_map *after = build(builder);
    ck_assert_uint_eq(before->id, after->id);
    ck_assert_mem_eq(before->origin_m, after->origin_m, sizeof(after->origin_m));
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){1024, 0, 0}), 1);
    ndt_map_release(before);
    ndt_map_release(after);
    ndt_map_builder_destroy(builder);
    config.leaf_m[0] = 3; /* 1024 m is no whole number of these */
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &cloud, &err));
    ck_assert_int_eq(ndt_map_builder_move_origin(builder, (double[3]){1024, 0, 0}), 0);
    ndt_map_builder_destroy(builder);
}

TEST(a_removed_tile_leaves_no_trace)
{
    struct ndt_map_builder *builder;
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &half[0], &err));
    struct ndt_map *before = build(builder);
    must(ndt_map_builder_add(builder, &half[1], &err));
    struct ndt_map *both = build(builder);
    must(ndt_map_builder_remove(builder, &half[1], &err));
    struct ndt_map *after = build(builder);
    ck_assert_uint_ne(before->id, both->id);
    ck_assert_uint_eq(before->id, after->id);
    ck_assert_uint_eq(ndt_map_builder_points(builder), half[0].count);
    ndt_map_release(before);
    ndt_map_release(both);
    ndt_map_release(after);
    ndt_map_builder_destroy(builder);
}

TEST(removing_an_unknown_tile_changes_nothing)
{
    struct ndt_map_builder *builder;
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &half[0], &err));
    struct ndt_map *before = build(builder);
    ck_assert_int_eq(ndt_map_builder_remove(builder, &cloud, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "never added"));
    struct ndt_map *after = build(builder);
    ck_assert_uint_eq(before->id, after->id);
    ndt_map_release(before);
    ndt_map_release(after);
    ndt_map_builder_destroy(builder);
}

/* 4 m and 2 m from the 1 m sums against the same levels built from the points. */
TEST(coarser_levels_are_derived_from_finer_ones)
{
    struct ndt_map *derived, *direct;
    must(ndt_map_from_cloud(&derived, &config, &cloud, &err));
    for (size_t i = 0; i < 2; i++) {
        struct ndt_map_config alone = config;
        alone.level_count = 1;
        alone.leaf_m[0] = config.leaf_m[i];
        must(ndt_map_from_cloud(&direct, &alone, &cloud, &err));
        const struct ndt_map_level *a = &derived->levels[i], *b = &direct->levels[0];
        ck_assert_uint_eq(a->voxel_count, b->voxel_count);
        ck_assert_uint_gt(a->voxel_count, 50);
        for (uint32_t v = 1; v < a->voxel_count; v++) {
            ck_assert_mem_eq(a->voxels[v].cell, b->voxels[v].cell, sizeof(a->voxels[v].cell));
            ck_assert_uint_eq(a->voxels[v].count, b->voxels[v].count);
            for (int k = 0; k < 3; k++) /* coordinates were rounded to 4 um and to 16 um */
                ck_assert_float_eq_tol(a->voxels[v].mean_m[k], b->voxels[v].mean_m[k], 2e-5f);
        }
        ndt_map_release(direct);
    }
    ndt_map_release(derived);
}

/* Mean and covariance of one voxel in double from its points. */
/* Levels that a map of a floor of 32 m by 32 m fills, with points this far apart. */
static size_t filled_levels(double spacing_m)
{
    struct ndt_map *map;
    const size_t side = (size_t)(32 / spacing_m);
    must(ndt_cloud_reserve(&cloud, side * side, 0, &err));
    cloud.count = side * side;
    for (size_t i = 0; i < cloud.count; i++) {
        cloud.x_m[i] = (float)(spacing_m * ((double)(i % side) + 0.5));
        cloud.y_m[i] = (float)(spacing_m * ((double)(i / side) + 0.5));
        cloud.z_m[i] = (float)(0.3 + 0.01 * (double)(i % 3));
    }
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    const size_t filled = ndt_map_filled_levels(map);
    ndt_map_release(map);
    return filled;
}

TEST(levels_that_a_sparse_map_leaves_empty_are_not_counted)
{
    ck_assert_uint_eq(filled_levels(0.25), 3); /* 16 points in a cell of 1 m */
    ck_assert_uint_eq(filled_levels(0.5), 2);  /* 4, and a Gaussian needs 6 */
    ck_assert_uint_eq(filled_levels(1), 1);
}

TEST(a_voxel_is_the_sample_mean_and_covariance)
{
    struct ndt_map *map;
    double n = 0, mean[3] = {0}, C[6] = {0}, lambda[3], V[9];
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    const struct ndt_map_level *level = &map->levels[1];
    uint32_t fullest = 1;
    for (uint32_t v = 1; v < level->voxel_count; v++)
        fullest = level->voxels[v].count > level->voxels[fullest].count ? v : fullest;
    const struct ndt_voxel *voxel = &level->voxels[fullest];
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < cloud.count; i++) {
            const double x[3] = {cloud.x_m[i], cloud.y_m[i], cloud.z_m[i]};
            if (floor(x[0] / 2) != voxel->cell[0] || floor(x[1] / 2) != voxel->cell[1] ||
                floor(x[2] / 2) != voxel->cell[2])
                continue;
            n += pass == 0;
            for (int r = 0, at = 0; r < 3; r++) {
                mean[r] += pass == 0 ? x[r] : 0;
                for (int c = r; pass == 1 && c < 3; c++)
                    C[at++] += (x[r] - mean[r] / n) * (x[c] - mean[c] / n) / (n - 1);
            }
        }
    ck_assert_uint_eq(voxel->count, (uint32_t)n);
    for (int k = 0; k < 3; k++)
        ck_assert_double_eq_tol(voxel->cell[k] * 2.0 + voxel->mean_m[k], mean[k] / n, 2e-5);
    ndt_eigen_symmetric(3, C, lambda, V);
    for (int k = 0; k < 2; k++)
        lambda[k] = fmax(lambda[k], 0.01 * lambda[2]);
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++) {
            double want = 0;
            for (int k = 0; k < 3; k++)
                want += V[i * 3 + k] * V[j * 3 + k] / lambda[k];
            ck_assert_double_le(fabs(voxel->icov[at] - want), 2e-4 / lambda[0]);
        }
    ndt_map_release(map);
}

/* Brute force: the list of a cell holds exactly the voxels of the 27 cells around it, faces first. */
static void check_index(const struct ndt_map_level *level)
{
    for (uint32_t v = 1; v < level->voxel_count; v += 7) {
        const int32_t *home = level->voxels[v].cell;
        const int32_t cell[3] = {home[0] + (int32_t)(v % 3) - 1, home[1] + (int32_t)(v / 3 % 3) - 1, home[2]};
        const struct ndt_cell_ref ref = ndt_map_lookup(level, cell);
        const uint32_t *ids = level->lists + (size_t)ref.offset * 8 + 3u * ref.padded;
        uint32_t n1 = 0, n7 = 0, n27 = 0;
        for (uint32_t w = 1; w < level->voxel_count; w++) {
            int far = 0, steps = 0;
            for (int k = 0; k < 3; k++) {
                const int d = abs(level->voxels[w].cell[k] - cell[k]);
                far = d > far ? d : far;
                steps += d;
            }
            n1 += steps == 0;
            n7 += steps <= 1;
            n27 += far <= 1;
            if (far > 1)
                continue;
            uint32_t at = 0;
            while (at < ref.n27 && ids[at] != w)
                at++;
            ck_assert_msg(at < (steps == 0 ? ref.n1 : steps == 1 ? ref.n7 : ref.n27), "voxel %u is missing", w);
        }
        ck_assert_uint_eq(ref.n1, n1);
        ck_assert_uint_eq(ref.n7, n7);
        ck_assert_uint_eq(ref.n27, n27);
    }
}

TEST(the_index_finds_what_brute_force_finds)
{
    struct ndt_map *map;
    size_t bytes = 0;
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    for (size_t i = 0; i < map->level_count; i++) {
        ck_assert(!map->levels[i].hashed);
        check_index(&map->levels[i]);
        bytes += map->levels[i].voxel_count * sizeof(struct ndt_voxel) + map->levels[i].brick_slots * 4 +
                 map->levels[i].brick_count * 512 * sizeof(struct ndt_cell_ref) + map->levels[i].list_words * 4;
    }
    ck_assert_uint_eq(map->bytes, bytes);
    ndt_map_release(map);
}

/* Two streets 300 km apart do not fit a dense box: the hashed index must give the same lists. */
TEST(a_wide_map_uses_the_hashed_index)
{
    struct ndt_cloud far;
    struct ndt_map_builder *builder;
    ndt_cloud_init(&far);
    make_street(&far, 8, 20000, (double[3]){300000, -300000, 400});
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &half[0], &err));
    must(ndt_map_builder_add(builder, &far, &err));
    struct ndt_map *map = build(builder);
    ck_assert(map->levels[2].hashed);
    check_index(&map->levels[2]);
    ck_assert_uint_eq(ndt_map_lookup(&map->levels[2], (const int32_t[3]){150000, 0, 0}).n27, 0);
    ndt_map_release(map);
    ndt_map_builder_destroy(builder);
    ndt_cloud_free(&far);
}

/* 2047 voxels and the empty one, each at a corner of eight bricks of its own: the table has 16 slots per voxel,
 * rounded up to a power of two, and is half full. */
TEST(the_hashed_index_has_two_slots_per_brick)
{
    enum { VOXELS = 2047 };
    struct ndt_moments *moments = calloc(VOXELS, sizeof(*moments));
    struct ndt_pool *pool;
    struct ndt_map_level level;
    ck_assert_ptr_nonnull(moments);
    for (int32_t i = 0; i < VOXELS; i++) {
        const struct ndt_moments one = {
            .cell = {1024 * (i % 16) - 8192, 1024 * (i / 16 % 16) - 8192, 1024 * (i / 256)},
            .n = 10,
            .q_m2 = {1, 0, 0, 1, 0, 1}};
        moments[i] = one;
    }
    must(ndt_pool_create(&pool, 1, 0, 0, &err));
    must(ndt_map_level_build(&level, &config, 1.0, moments, VOXELS, pool, NULL, &err));
    ck_assert_uint_eq(level.voxel_count, VOXELS + 1);
    ck_assert(level.hashed);
    ck_assert_uint_eq(level.brick_slots, 16 * (VOXELS + 1));
    ck_assert_uint_eq(level.brick_count, 8 * VOXELS + 1);
    for (int32_t i = 0; i < VOXELS; i++)
        for (int32_t side = -2; side <= 2; side++) {
            const struct ndt_cell_ref ref = ndt_map_lookup(
                &level, (int32_t[3]){moments[i].cell[0] + side, moments[i].cell[1], moments[i].cell[2]});
            ck_assert_uint_eq(ref.n27, abs(side) <= 1);
            ck_assert_uint_eq(ref.n1, side == 0);
        }
    ndt_map_level_free(&level);
    ndt_pool_destroy(pool);
    free(moments);
}

/* The same surfaces at UTM coordinates give the same Gaussians. */
TEST(utm_coordinates_keep_precision)
{
    struct ndt_cloud utm;
    struct ndt_map *here, *there;
    ndt_cloud_init(&utm);
    must(ndt_cloud_copy(&utm, &cloud, &err));
    utm.origin_m[0] += 389120;
    utm.origin_m[1] += 4969472;
    must(ndt_map_from_cloud(&here, &config, &cloud, &err));
    must(ndt_map_from_cloud(&there, &config, &utm, &err));
    ck_assert_double_eq(fmod(there->origin_m[0], 1024), 0);
    for (size_t l = 0; l < 3; l++) {
        ck_assert_uint_eq(here->levels[l].voxel_count, there->levels[l].voxel_count);
        for (uint32_t v = 1; v < here->levels[l].voxel_count; v++)
            for (int k = 0; k < 3; k++)
                ck_assert_float_eq_tol(here->levels[l].voxels[v].mean_m[k], there->levels[l].voxels[v].mean_m[k],
                                       1e-5f);
    }
    ndt_map_release(here);
    ndt_map_release(there);
    ndt_cloud_free(&utm);
}

TEST(seeded_covariances_are_larger)
{
    struct ndt_map *unbiased, *seeded;
    must(ndt_map_from_cloud(&unbiased, &config, &cloud, &err));
    config.covariance = NDT_COVARIANCE_AUTOWARE;
    must(ndt_map_from_cloud(&seeded, &config, &cloud, &err));
    ck_assert_uint_ne(unbiased->id, seeded->id);
    const struct ndt_voxel *a = &unbiased->levels[1].voxels[5];
    const struct ndt_voxel *b = seeded->levels[1].voxels;
    while (memcmp(a->cell, b->cell, sizeof(a->cell)) != 0)
        b++;
    ck_assert_float_lt(b->icov[0] + b->icov[3] + b->icov[5], a->icov[0] + a->icov[3] + a->icov[5]);
    ndt_map_release(unbiased);
    ndt_map_release(seeded);
}

TEST(invalid_input_is_refused_with_a_reason)
{
    struct ndt_map_builder *builder;
    struct ndt_map *map;
    config.leaf_m[1] = 0.01;
    ck_assert_int_eq(ndt_map_builder_create(&builder, &config, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "0.01"));
    ndt_map_config_default(&config);
    config.min_points = 2;
    ck_assert_int_eq(ndt_map_builder_create(&builder, &config, &err), NDT_ERR_ARGUMENT);
    ndt_map_config_default(&config);
    config.threads = NDT_BUILD_THREADS_MAX + 1;
    ck_assert_int_eq(ndt_map_builder_create(&builder, &config, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "65 threads"));
    ndt_map_config_default(&config);
    cloud.x_m[cloud.count - 1] = 3e7f; /* beyond 2^20 cells of 1 m */
    must(ndt_map_builder_create(&builder, &config, &err));
    ck_assert_int_eq(ndt_map_builder_add(builder, &cloud, &err), NDT_ERR_LIMIT);
    ck_assert_uint_eq(ndt_map_builder_points(builder), 0);
    cloud.count = 0;
    must(ndt_map_builder_add(builder, &cloud, &err));
    must(ndt_map_build(&map, builder, &err)); /* an empty map is valid */
    ck_assert_uint_eq(map->levels[0].voxel_count, 1);
    ck_assert_uint_eq(ndt_map_lookup(&map->levels[0], (const int32_t[3]){0, 0, 0}).n27, 0);
    ndt_map_release(map);
    ndt_map_builder_destroy(builder);
}

/* The limits of a configuration belong to it, but for the outlier ratio's; what lies behind them is refused. */
TEST(limits_of_the_configuration)
{
    static const struct {
        size_t offset;
        double good, bad;
        const char *reason;
    } cases[] = {
#define AT(member) offsetof(struct ndt_map_config, member)
        {AT(leaf_m[0]), 0.1, 0.0999, "map leaf 0.0999 m is outside 0.1 .. 100 m"},
        {AT(leaf_m[0]), 100, 100.1, "map leaf 100.1 m is outside 0.1 .. 100 m"},
        {AT(min_eigenvalue_ratio), 1e-6, 0.9e-6, "smallest eigenvalue ratio 9e-07 is outside 1e-6 .. 1"},
        {AT(min_eigenvalue_ratio), 1.0, 1.1, "smallest eigenvalue ratio 1.1 is outside 1e-6 .. 1"},
        {AT(outlier_ratio), 0.001, 0, "outlier ratio 0 is outside 0 .. 1"},
        {AT(outlier_ratio), 0.999, 1, "outlier ratio 1 is outside 0 .. 1"},
        {AT(outlier_ratio), 0.5, NAN, "outlier ratio nan is outside 0 .. 1"},
#undef AT
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ndt_map_builder *builder;
        ndt_map_config_default(&config);
        *(double *)((char *)&config + cases[i].offset) = cases[i].good;
        must(ndt_map_builder_create(&builder, &config, &err));
        ndt_map_builder_destroy(builder);
        *(double *)((char *)&config + cases[i].offset) = cases[i].bad;
        ck_assert_int_eq(ndt_map_builder_create(&builder, &config, &err), NDT_ERR_ARGUMENT);
        ck_assert_str_eq(err.text, cases[i].reason);
    }
}

static char folder[] = "/tmp/ndt-map-XXXXXX";
static char path[64];

static void compiled_setup(void)
{
    setup();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/street.ndtmap", folder);
    struct ndt_map *map;
    must(ndt_map_from_cloud(&map, &config, &cloud, &err));
    must(ndt_map_save(map, path, &err));
    ndt_map_release(map);
}

static void compiled_teardown(void)
{
    unlink(path);
    rmdir(folder);
    teardown();
}

static long file_size(void)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_size;
}

static void poke(long offset, unsigned char flip)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, offset, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ flip, file);
    fclose(file);
}

FIXTURE(compiled_setup, compiled_teardown)

TEST(compiled_map_equals_the_built_map)
{
    struct ndt_map *built, *opened;
    must(ndt_map_from_cloud(&built, &config, &cloud, &err));
    must(ndt_map_open(&opened, path, &err));
    ck_assert_uint_eq(built->id, opened->id);
    ck_assert_uint_eq(ndt_map_identity(opened), opened->id);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(built->levels[i].list_words, opened->levels[i].list_words);
        ck_assert_mem_eq(built->levels[i].lists, opened->levels[i].lists, built->levels[i].list_words * 4);
    }
    ndt_map_release(built);
    ndt_map_release(opened);
    struct ndt_map_config other = config;
    other.min_points = 9;
    ck_assert_int_ne(ndt_map_load(&opened, path, &other, &err), NDT_OK);
    ck_assert_msg(strstr(err.text, "min_points") != NULL, "%s", err.text);
}

/* A table of bricks with gaps survives the file. */
TEST(compiled_wide_map_equals_the_built_map)
{
    struct ndt_cloud far;
    struct ndt_map_builder *builder;
    struct ndt_map *opened;
    ndt_cloud_init(&far);
    make_street(&far, 8, 20000, (double[3]){300000, -300000, 400});
    must(ndt_map_builder_create(&builder, &config, &err));
    must(ndt_map_builder_add(builder, &half[0], &err));
    must(ndt_map_builder_add(builder, &far, &err));
    struct ndt_map *built = build(builder);
    must(ndt_map_save(built, path, &err));
    must(ndt_map_open(&opened, path, &err));
    ck_assert_uint_eq(built->id, opened->id);
    for (size_t i = 0; i < 3; i++) {
        const struct ndt_map_level *a = &built->levels[i], *b = &opened->levels[i];
        ck_assert_int_eq(a->hashed, b->hashed);
        ck_assert_uint_eq(a->brick_slots, b->brick_slots);
        ck_assert_mem_eq(a->bricks, b->bricks, a->brick_slots * sizeof(*a->bricks));
        if (a->hashed)
            ck_assert_mem_eq(a->brick_keys, b->brick_keys, a->brick_slots * sizeof(*a->brick_keys));
        check_index(b);
    }
    ck_assert(opened->levels[2].hashed);
    ndt_map_release(built);
    ndt_map_release(opened);
    ndt_map_builder_destroy(builder);
    ndt_cloud_free(&far);
}

TEST(every_damaged_byte_is_detected)
{
    struct ndt_map *map;
    const long size = file_size();
    for (long at = 0; at < size; at += at < 256 ? 1 : size / 97) {
        poke(at, 0x41);
        ck_assert_msg(ndt_map_open(&map, path, &err) != NDT_OK, "byte %ld", at);
        ck_assert_msg(strstr(err.text, path) != NULL, "%s", err.text);
        poke(at, 0x41);
    }
    must(ndt_map_open(&map, path, &err));
    ndt_map_release(map);
}

TEST(truncated_file_is_detected)
{
    struct ndt_map *map;
    const long size = file_size();
    const long cuts[] = {size - 1, size / 2, 4096, 100, 7, 0};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        ck_assert_int_eq(truncate(path, cuts[i]), 0);
        ck_assert_int_eq(ndt_map_open(&map, path, &err), NDT_ERR_FORMAT);
    }
    ck_assert_int_eq(ndt_map_open(&map, "/nonexistent.ndtmap", &err), NDT_ERR_IO);
    ck_assert_int_eq(ndt_map_open(&map, folder, &err), NDT_ERR_IO);
}

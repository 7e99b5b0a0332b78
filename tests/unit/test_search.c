/* Search for the place of a scan: found from nothing, with equal bits for any threads and variants, within regions,
 * on floors, without ground; cancelled; refused. */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"
#include "search_world.h"

#define DEG (3.14159265358979323846 / 180)

static struct ndt_cloud world, scan;
static struct ndt_map *map;
static struct ndt_field *field;
static struct ndt_search *search;
static struct ndt_search_params params;
static struct ndt_search_result result;
static struct ndt_error err;

static struct ndt_search *open_search(int threads, const char *isa)
{
    const struct ndt_search_config config = {.threads = threads, .isa = isa};
    struct ndt_search *made;
    must(ndt_search_create(&made, &config, &err));
    must(ndt_search_set_map(made, map, field, &err));
    return made;
}

static void open_world(const struct world_wish *wish)
{
    world_make(wish, &world);
    map = world_map(&world);
    field = world_field(map);
    search = open_search(2, NULL);
    ndt_search_params_default(&params);
}

static void close_world(void)
{
    ndt_search_destroy(search);
    ndt_field_release(field);
    ndt_map_release(map);
    ndt_cloud_free(&world);
    ndt_cloud_free(&scan);
}

static struct ndt_pose pose_at(const struct world_wish *wish, double x, double y, double z, double yaw_deg)
{
    const double rpy[3] = {2 * DEG, -1 * DEG, yaw_deg * DEG};
    const double t_m[3] = {wish->origin_m[0] + x, wish->origin_m[1] + y, wish->origin_m[2] + wish->slope * x + z};
    return ndt_pose_from_rpy(t_m, rpy);
}

static void run_mounted(const struct ndt_pose *T_upright_sensor, const struct ndt_search_region *region)
{
    must(ndt_search_run(search, &params, &scan, T_upright_sensor, region, NULL, &result, &err));
}

/* up: as an accelerometer measures it; NULL: the sensor is upright. */
static void run(const double up[3], const struct ndt_search_region *region)
{
    struct ndt_pose T_upright_sensor;
    ck_assert(!up || ndt_search_upright(up, &T_upright_sensor));
    run_mounted(up ? &T_upright_sensor : NULL, region);
}

static int is_right(const struct ndt_pose *truth)
{
    const struct ndt_pose *found = &result.candidates[0].T_map_sensor;
    return result.count > 0 && ndt_pose_distance_m(found, truth) < 0.3 &&
           ndt_pose_angle_rad(found, truth) < 2 * DEG;
}

static const struct world_wish town = {.seed = 21, .size_m = 90, .boxes = 90, .origin_m = {4e5, 5.4e6, 120}};
static const struct world_wish hill = {.seed = 22, .size_m = 70, .boxes = 60, .slope = 0.09};

TEST_EACH(test_finds, 0, 2)
{
    const struct world_wish *wishes[] = {&town, &hill};
    open_world(wishes[_i]);
    int right = 0, count = 0;
    for (int i = 0; i < 12; i++, count++) {
        const struct ndt_pose truth = pose_at(wishes[_i], -50 + 9 * i, 40 - 7 * i, 1.8, 37 * i);
        world_scan(&world, &truth, 3, -20, 20, &scan);
        run(NULL, NULL);
        right += is_right(&truth);
        ck_assert_int_eq(result.view.has_ground, 1);
        ck_assert_double_eq_tol(result.view.height_m, 1.8, 0.2);
        ck_assert_double_le(result.candidates[0].inliers, 1);
        ck_assert_double_lt(result.margin_gaussian, 1);
        for (uint32_t k = 1; k < result.count; k++) {
            ck_assert_double_le(result.candidates[k].gaussian_fit, result.candidates[k - 1].gaussian_fit);
            ck_assert(result.candidates[k].best_m > params.distinct_m ||
                      result.candidates[k].best_deg > params.distinct_deg);
        }
        ndt_cloud_free(&scan);
    }
    ck_assert_msg(right == count, "%d of %d", right, count);
    close_world();
}

/* Runs a search and clears its times. */
static void run_plainly(struct ndt_search *with, const struct ndt_search_region *region,
                        struct ndt_search_result *out)
{
    must(ndt_search_run(with, &params, &scan, NULL, region, NULL, out, &err));
    memset(&out->times_us, 0, sizeof(out->times_us));
    for (uint32_t i = 0; i < out->count; i++)
        out->candidates[i].alignment.align_us = out->candidates[i].alignment.upload_us = 0;
}

#if defined(__SANITIZE_THREAD__) /* a hundred times as slow; threads meet in one variant as in all */
enum { EQUAL_BITS_CASES = 1, LEAST_THREADS = 4, MOST_VARIANTS = 1 };
#else
enum { EQUAL_BITS_CASES = 3, LEAST_THREADS = 1, MOST_VARIANTS = INT_MAX };
#endif

TEST_OF_THREADS_EACH(test_equal_bits, 0, EQUAL_BITS_CASES)
{
    static struct ndt_search_result expected;
    char names[128], *rest = names;
    open_world(&town);
    const struct ndt_pose truth = pose_at(&town, 20, -31, 1.7, 200);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    static const enum ndt_search_tier tiers[] = {NDT_SEARCH_QUICK, NDT_SEARCH_THOROUGH, NDT_SEARCH_NEAR};
    const struct ndt_search_region around = {.has_position = 1,
                                             .position_m = {truth.t_m[0] + 2, truth.t_m[1] - 1, truth.t_m[2]},
                                             .radius_m = 4},
                                   *region = tiers[_i] == NDT_SEARCH_NEAR ? &around : NULL;
    params.tier = tiers[_i];
    struct ndt_search *plain = open_search(1, "plain");
    run_plainly(plain, region, &expected);
    ndt_search_destroy(plain);
    ck_assert_uint_gt(expected.count, 1);
    ndt_search_variants(names, sizeof(names));
    const char *name = strtok_r(names, ",", &rest);
    for (int i = 0; name && i < MOST_VARIANTS; i++, name = strtok_r(NULL, ",", &rest))
        for (int threads = LEAST_THREADS; threads <= 4; threads += 3) {
            struct ndt_search *other = open_search(threads, name);
            run_plainly(other, region, &result);
            run_plainly(other, region, &result); /* with the memory of the run before */
            ck_assert_msg(memcmp(&result, &expected, sizeof(result)) == 0, "%s, %d threads", name, threads);
            ndt_search_destroy(other);
        }
    params.seed = 2; /* another search for the ground may give other bits, but the same place */
    run_plainly(search, region, &result);
    ck_assert(is_right(&truth));
    close_world();
}

TEST(test_window)
{
    open_world(&town);
    const struct ndt_pose truth = pose_at(&town, -24, 33, 1.7, 77);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    struct ndt_search_region region = {.has_position = 1, .radius_m = 13};
    memcpy(region.position_m, truth.t_m, sizeof(region.position_m));
    region.position_m[0] += 9;
    region.position_m[1] -= 6;
    run(NULL, &region);
    ck_assert(is_right(&truth));
    ck_assert_int_eq(result.tier, NDT_SEARCH_REGION);
    region.position_m[0] -= 4;
    region.radius_m = 8;
    run(NULL, &region);
    ck_assert(is_right(&truth));
    ck_assert_int_eq(result.tier, NDT_SEARCH_NEAR);
    const uint64_t free_poses = result.poses;
    region.has_heading = 1;
    region.heading_rad = 60 * DEG;
    region.heading_reach_rad = 25 * DEG;
    run(NULL, &region);
    ck_assert(is_right(&truth));
    ck_assert_uint_lt(result.poses, free_poses / 5);
    region.heading_rad = 250 * DEG; /* away from the truth */
    run(NULL, &region);
    ck_assert(!is_right(&truth));
    region.has_heading = 0;
    region.position_m[0] += 1e5; /* outside of the map */
    run(NULL, &region);
    ck_assert_uint_eq(result.count, 0);
    close_world();
}

/* A hole without ground around the truth: only a region reaches it. */
TEST(test_hole)
{
    const struct world_wish wish = {.seed = 25, .size_m = 60, .boxes = 50, .hole_m = 8};
    open_world(&wish);
    const struct ndt_pose truth = pose_at(&wish, 0.5, -0.7, 1.7, 20);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    struct ndt_search_region region = {.has_position = 1, .radius_m = 10};
    memcpy(region.position_m, truth.t_m, sizeof(region.position_m));
    run(NULL, &region);
    ck_assert(is_right(&truth));
    close_world();
}

TEST(test_floors)
{
    const struct world_wish wish = {.seed = 31, .size_m = 60, .boxes = 50, .has_floor = 1};
    open_world(&wish);
    const struct ndt_pose above = pose_at(&wish, 6, -5, 4 + 1.5, 110), below = pose_at(&wish, 30, 25, 1.5, 110);
    world_scan(&world, &above, 3, -1.9, 20, &scan); /* the floor hides what is below */
    run(NULL, NULL);
    ck_assert(is_right(&above));
    ck_assert_int_eq(result.candidates[0].layer, 1);
    struct ndt_search_region region = {.has_position = 1, .radius_m = 50, .has_height = 1, .height_reach_m = 2};
    memcpy(region.position_m, above.t_m, sizeof(region.position_m));
    run(NULL, &region);
    ck_assert(is_right(&above));
    region.position_m[2] = 1; /* of the lower one only */
    run(NULL, &region);
    for (uint32_t i = 0; i < result.count; i++)
        ck_assert_int_eq(result.candidates[i].layer, 0);
    ndt_cloud_free(&scan);
    world_scan(&world, &below, 3, -20, 2, &scan);
    run(NULL, NULL);
    ck_assert(is_right(&below));
    ck_assert_int_eq(result.candidates[0].layer, 0);
    close_world();
}

/* The sensor sees nothing below it: the height is one of several, or known. */
TEST(test_no_ground)
{
    open_world(&town);
    const struct ndt_pose truth = pose_at(&town, -24, 33, 1.7, 77), level = ndt_pose_inverse(&truth);
    double R[9];
    world_scan(&world, &truth, 3, 0, 20, &scan);
    ndt_pose_rotation(&level, R);
    const double up[3] = {R[2], R[5], R[8]};
    run(up, NULL);
    ck_assert_int_eq(result.view.has_ground, 0);
    ck_assert(is_right(&truth));
    const uint64_t poses = result.poses;
    const struct ndt_search_region region = {.above_ground_m = 1.7};
    run(up, &region);
    ck_assert(is_right(&truth));
    ck_assert_uint_lt(result.poses, poses);
    ndt_cloud_free(&scan);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    run(up, &region);
    ck_assert_int_eq(result.view.has_ground, 1);
    const struct ndt_search_region on_a_table = {.above_ground_m = 2.6};
    run(up, &on_a_table); /* the plane that the scan shows is not the ground */
    ck_assert_int_eq(result.view.has_ground, 0);
    close_world();
}

static const double attitudes_deg[][3] = {{180, 0, 0},  {0, 180, 40}, {90, 0, 0},     {-90, 0, 130}, {0, 90, 0},
                                          {0, -90, 70}, {30, 0, 20},  {0, 30, -110},  {30, 90, 10},  {150, 40, 200},
                                          {0, 0, 75},   {0, 0, 0},    {179.99, 0, -5}};

static struct ndt_pose turned(const double rpy_deg[3], double x, double y, double z)
{
    const double t_m[3] = {x, y, z}, rpy[3] = {rpy_deg[0] * DEG, rpy_deg[1] * DEG, rpy_deg[2] * DEG};
    return ndt_pose_from_rpy(t_m, rpy);
}

/* Upright, hanging, on its side: the mounting tells, and the heading is that of the vehicle. */
static void find_mounted(const struct ndt_pose *base, const double rpy_deg[3])
{
    const struct ndt_pose T_base_sensor = turned(rpy_deg, 0, 0, 0);
    const struct ndt_pose truth = ndt_pose_compose(base, &T_base_sensor);
    struct ndt_search_region region = {.has_position = 1, .radius_m = 15, .heading_reach_rad = 10 * DEG};
    double up_m[3];
    memcpy(region.position_m, truth.t_m, sizeof(region.position_m));
    world_scan(&world, &truth, 3, -20, 20, &scan);
    run_mounted(&T_base_sensor, NULL);
    ck_assert_msg(is_right(&truth), "roll %g pitch %g yaw %g", rpy_deg[0], rpy_deg[1], rpy_deg[2]);
    ck_assert_int_eq(result.view.has_ground, 1);
    ck_assert_double_eq_tol(result.view.height_m, 2.2, 0.2);
    const struct ndt_pose T_map_sensor = result.candidates[0].T_map_sensor;
    ndt_pose_apply(&T_map_sensor, result.view.up_in_sensor, up_m);
    ck_assert_double_ge(up_m[2] - T_map_sensor.t_m[2], cos(3 * DEG));
    region.has_heading = 1;
    region.heading_rad = 115 * DEG;
    run_mounted(&T_base_sensor, &region);
    ck_assert(is_right(&truth));
    region.heading_rad += 120 * DEG;
    run_mounted(&T_base_sensor, &region);
    ck_assert(!is_right(&truth));
    ndt_cloud_free(&scan);
}

TEST(test_mounted)
{
    open_world(&town);
    const struct ndt_pose base = pose_at(&town, 20, -31, 2.2, 115);
    for (size_t i = 0; i < sizeof(attitudes_deg) / sizeof(attitudes_deg[0]); i++)
        find_mounted(&base, attitudes_deg[i]);
    close_world();
}

/* Points of several sensors in the frame of a vehicle that is far below or above them. */
TEST(test_merged)
{
    static const double heights_m[] = {-7, -1.8, 0, 9};
    open_world(&town);
    const struct ndt_pose sensor = pose_at(&town, 20, -31, 1.8, 115);
    for (int k = 0; k < 4; k++) {
        const struct ndt_pose T_view_base = turned((double[3]){0}, 3, -1, heights_m[k]);
        const struct ndt_pose base = ndt_pose_compose(&sensor, &T_view_base);
        const struct ndt_pose T_base_view = ndt_pose_inverse(&T_view_base);
        world_scan(&world, &sensor, 3, -20, 20, &scan);
        for (size_t i = 0; i < scan.count; i++) {
            scan.x_m[i] += (float)T_base_view.t_m[0];
            scan.y_m[i] += (float)T_base_view.t_m[1];
            scan.z_m[i] += (float)T_base_view.t_m[2];
        }
        run_mounted(&T_view_base, NULL);
        ck_assert_msg(is_right(&base), "base at %g m", heights_m[k]);
        ck_assert_int_eq(result.view.has_ground, 1);
        ck_assert_int_eq(result.tier, NDT_SEARCH_QUICK);
        ndt_cloud_free(&scan);
    }
    close_world();
}

/* The points of an upright sensor are not moved: not a bit of what is found depends on its heading, or on `up`. */
TEST(test_upright_bits)
{
    static struct ndt_search_result expected;
    const struct ndt_pose yawed = turned((double[3]){0, 0, 50}, 0, 0, 0);
    const double up[3] = {0, 0, 9.81};
    open_world(&town);
    const struct ndt_pose truth = pose_at(&town, 20, -31, 1.7, 200);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    run(NULL, NULL);
    expected = result;
    ck_assert(is_right(&truth));
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            run_mounted(&yawed, NULL);
        else
            run(up, NULL);
        ck_assert_uint_eq(result.count, expected.count);
        for (uint32_t k = 0; k < result.count; k++)
            ck_assert_int_eq(memcmp(&result.candidates[k].T_map_sensor, &expected.candidates[k].T_map_sensor,
                                    sizeof(struct ndt_pose)),
                             0);
    }
    close_world();
}

/* Directions of any length have a rotation, which keeps the heading; others have none. */
TEST(test_upright_directions)
{
    static const double directions[][3] = {{0, 0, 1},    {0, 0, -9.81}, {1e-3, 0, 0},  {-5, 0, 0},   {0, 3, 0},
                                           {0.2, -4, 1}, {-1, 1e-9, 0}, {1, 0, -1e-9}, {0, 0, -1e9}, {2, 2, -2}};
    struct ndt_pose T;
    for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
        const double *up = directions[i], size = hypot(hypot(up[0], up[1]), up[2]);
        double z[3], R[9];
        ck_assert(ndt_search_upright(up, &T));
        ndt_pose_apply(&T, up, z);
        ck_assert_double_eq_tol(z[2], size, 1e-9 * size);
        ndt_pose_rotation(&T, R);
        if (hypot(up[1], up[2]) > 0.2 * size)
            ck_assert_double_eq_tol(ndt_pose_heading_rad(&T), 0, 1e-9);
    }
    ck_assert(!ndt_search_upright((double[3]){0}, &T));
    ck_assert(!ndt_search_upright((double[3]){NAN, 0, 1}, &T));
    ck_assert(!ndt_search_upright((double[3]){INFINITY, 0, 1}, &T));
    ck_assert_double_eq(T.q_xyzw[3], 1);
}

/* A sensor on its side: gravity tells. */
TEST(test_up)
{
    open_world(&town);
    const double rpy[3] = {85 * DEG, 0, 30 * DEG},
                 t_m[3] = {town.origin_m[0] + 10, town.origin_m[1] - 20, town.origin_m[2] + 1.7};
    const struct ndt_pose truth = ndt_pose_from_rpy(t_m, rpy), inverse = ndt_pose_inverse(&truth);
    double R[9];
    world_scan(&world, &truth, 3, -20, 20, &scan);
    ndt_pose_rotation(&inverse, R);
    const double up[3] = {9.81 * R[2], 9.81 * R[5], 9.81 * R[8]};
    run(up, NULL);
    ck_assert(is_right(&truth));
    close_world();
}

/* ---- control ---- */

static void *cancel_later(void *control)
{
    while (ndt_search_progress(control) == 0)
        ;
    ndt_search_cancel(control);
    return NULL;
}

TEST_OF_THREADS(test_cancel)
{
    struct ndt_search_control control = {0};
    pthread_t thread;
    open_world(&town);
    const struct ndt_pose truth = pose_at(&town, -24, 33, 1.7, 77);
    world_scan(&world, &truth, 3, -20, 20, &scan);
    ck_assert(ndt_search_run(search, &params, &scan, NULL, NULL, &control, &result, &err) == NDT_OK);
    ck_assert_uint_eq(ndt_search_progress(&control), 100);
    ck_assert_int_eq(result.is_cancelled, 0);
    ndt_search_cancel(&control); /* before it starts */
    ck_assert(ndt_search_run(search, &params, &scan, NULL, NULL, &control, &result, &err) == NDT_OK);
    ck_assert_int_eq(result.is_cancelled, 1);
    ck_assert_uint_eq(result.count, 0);
    control = (struct ndt_search_control){0};
    params.tier = NDT_SEARCH_THOROUGH;
    params.tiers[NDT_SEARCH_THOROUGH].heading_deg = 0.5;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &control), 0);
    ck_assert(ndt_search_run(search, &params, &scan, NULL, NULL, &control, &result, &err) == NDT_OK);
    pthread_join(thread, NULL);
    ck_assert_int_eq(result.is_cancelled, 1);
    ndt_search_params_default(&params);
    run(NULL, NULL); /* usable afterwards */
    ck_assert(is_right(&truth));
    close_world();
}

/* ---- refused, or nothing found ---- */

static void expect_refused(const struct ndt_search_region *region, const char *part)
{
    err.text[0] = '\0';
    ck_assert_int_eq(ndt_search_run(search, &params, &scan, NULL, region, NULL, &result, &err), NDT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
    ndt_search_params_default(&params);
}

TEST(test_refused)
{
    const struct world_wish small = {.seed = 41, .size_m = 15, .boxes = 4},
                            other = {.seed = 42, .size_m = 15, .boxes = 4};
    struct ndt_search_region region = {.has_position = 1, .radius_m = -1};
    open_world(&small);
    world_scan(&world, &(struct ndt_pose){{0, 0, 1.5}, {0, 0, 0, 1}}, 2, -9, 9, &scan);
    params.max_range_m = 61;
    expect_refused(NULL, "max_range_m is 61");
    params.dense_points = 251;
    expect_refused(NULL, "dense_points");
    params.tiers[1].heading_deg = 0;
    expect_refused(NULL, "headings");
    params.tiers[2].blocks = 0;
    expect_refused(NULL, "blocks");
    params.tiers[4].places = params.tiers[4].alignments - 1;
    expect_refused(NULL, "19 places and 20 alignments");
    params.tiers[3].level = 3;
    expect_refused(NULL, "level 3 of the field");
    params.heights_m[3] = NAN;
    expect_refused(NULL, "heights_m[3]");
    expect_refused(&region, "radius");
    region = (struct ndt_search_region){.has_position = 1, .position_m = {NAN, 0, 0}, .radius_m = 5};
    expect_refused(&region, "not finite");
    region = (struct ndt_search_region){.has_heading = 1, .heading_rad = INFINITY};
    expect_refused(&region, "heading");
    err.text[0] = '\0';
    const struct ndt_pose nowhere = {{NAN, 0, 0}, {0, 0, 0, 1}};
    ck_assert_int_eq(ndt_search_run(search, &params, &scan, &nowhere, NULL, NULL, &result, &err), NDT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.text, "upright frame is not finite") != NULL, "%s", err.text);
    struct ndt_cloud elsewhere;
    world_make(&other, &elsewhere);
    struct ndt_map *another = world_map(&elsewhere);
    ck_assert_int_eq(ndt_search_set_map(search, another, field, &err), NDT_ERR_ARGUMENT);
    run(NULL, NULL); /* the previous map is still there */
    ck_assert(ndt_search_set_map(search, NULL, NULL, &err) == NDT_OK);
    ck_assert_int_eq(ndt_search_run(search, &params, &scan, NULL, NULL, NULL, &result, &err), NDT_ERR_UNSUPPORTED);
    ndt_map_release(another);
    ndt_cloud_free(&elsewhere);
    close_world();
}

TEST(test_poor_scans)
{
    const struct world_wish small = {.seed = 41, .size_m = 25, .boxes = 10};
    open_world(&small);
    ndt_cloud_init(&scan);
    run(NULL, NULL); /* without points */
    ck_assert_uint_eq(result.count, 0);
    for (int i = 0; i < 100; i++)
        world_point(&scan, i % 2 ? NAN : INFINITY, 1e30, -1e30);
    run(NULL, NULL);
    ck_assert_uint_eq(result.count, 0);
    for (int i = 0; i < 3000; i++) /* a plane and nothing above it */
        world_point(&scan, 0.4 * (i % 60) - 12, 0.4 * (i / 60) - 10, -1.5);
    run(NULL, NULL);
    ck_assert_uint_eq(result.count, 0);
    ck_assert_int_eq(result.view.has_ground, 1);
    close_world();
}

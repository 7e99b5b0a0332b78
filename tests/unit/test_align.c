/* Alignment of synthetic scans: poses, scores, outcomes and refusals. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/map.h"
#include "run_tests.h"
#include "street_world.h"

static const double DEG = 0.017453292519943295;
static const double ZERO_M[3] = {0, 0, 0};
/* A multiple of every leaf, so that cells are the same as at zero. */
static const double UTM_M[3] = {500000.0, 5400000.0, 400.0};
static const struct world STREET = {WORLD_STREET, 3, 80.0, 0.02};
static const struct world CORRIDOR = {WORLD_CORRIDOR, 4, 80.0, 0.02};

/* Maps are built once, before Check forks; backends have threads, which do not survive the fork. */
static struct ndt_map *street_map, *utm_map, *corridor_map;
static struct ndt_backend *backend;
static struct ndt_aligner *aligner;
static struct ndt_align_params params;
static struct ndt_cloud scan;
static struct ndt_error err;

static struct ndt_map *make_map(const struct world *world, const double origin_m[3])
{
    struct ndt_cloud points;
    struct ndt_map_config config;
    struct ndt_map *map = NULL;
    ndt_cloud_init(&points);
    ndt_map_config_default(&config);
    ck_assert_int_eq(world_map(&points, world, 40000, origin_m, &err), NDT_OK);
    must(ndt_map_from_cloud(&map, &config, &points, &err));
    ndt_cloud_free(&points);
    return map;
}

static void make_maps(void)
{
    street_map = make_map(&STREET, ZERO_M);
    utm_map = make_map(&STREET, UTM_M);
    corridor_map = make_map(&CORRIDOR, ZERO_M);
}

static void free_maps(void)
{
    ndt_map_release(street_map);
    ndt_map_release(utm_map);
    ndt_map_release(corridor_map);
}

static void open_aligner(const struct ndt_backend_ops *ops, int threads, struct ndt_map *map)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = threads;
    must(ops->open(&backend, &config, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
    must(ndt_aligner_set_map(aligner, map, &err));
}

static void close_aligner(void)
{
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
}

static void setup(void)
{
    ndt_cloud_init(&scan);
    ndt_align_params_default(&params);
    open_aligner(&ndt_cpu_backend, 1, street_map);
}

static void teardown(void)
{
    close_aligner();
    ndt_cloud_free(&scan);
}

static void use_map(struct ndt_map *map)
{
    must(ndt_aligner_set_map(aligner, map, &err));
}

static struct ndt_align_result align(const struct ndt_pose *guess)
{
    struct ndt_align_result result;
    must(ndt_align(aligner, &params, &scan, guess, &result, &err));
    ck_assert(ndt_pose_is_finite(&result.T_map_sensor));
    ck_assert_int_eq(result.outcome == NDT_CONVERGED, result.reason[0] == '\0');
    return result;
}

static struct ndt_pose measure_scan(const struct world *world, uint64_t seed, double s, double heading_rad)
{
    const struct ndt_pose truth = world_pose(world, s, heading_rad);
    ck_assert_int_eq(world_scan(&scan, world, seed, 1500, &truth, 30.0, &err), NDT_OK);
    return truth;
}

static int same_pose(const struct ndt_pose *a, const struct ndt_pose *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

FIXTURE_ONCE(make_maps, free_maps)
FIXTURE(setup, teardown)

/* The trace leads from the guess to the result: each pose lies a step from the one before. */
TEST(the_trace_leads_to_the_result)
{
    struct ndt_random random = {5};
    const struct ndt_pose truth = measure_scan(&STREET, 2, 0.4, 0.7);
    const struct ndt_pose guess = world_perturb(&random, &truth, 0.4, 2 * DEG);
    const struct ndt_align_result result = align(&guess);
    const struct ndt_pose *before = &guess;
    size_t rows;
    const struct ndt_iteration *trace = ndt_aligner_trace(aligner, &rows);
    ck_assert_uint_ge(rows, 3);
    for (size_t i = 0; i < rows; i++) {
        ck_assert_double_gt(trace[i].gradient_norm, 0);
        ck_assert_double_eq_tol(ndt_pose_distance_m(before, &trace[i].T_map_sensor), trace[i].step_m, 1e-9);
        ck_assert_double_eq_tol(ndt_pose_angle_rad(before, &trace[i].T_map_sensor), trace[i].step_rad,
                                1e-3 * trace[i].step_rad + 1e-8);
        before = &trace[i].T_map_sensor;
    }
    ck_assert_double_lt(ndt_pose_distance_m(before, &result.T_map_sensor), 1e-9);
    ck_assert_double_lt(ndt_pose_angle_rad(before, &result.T_map_sensor), 1e-7);
    ck_assert_double_lt(trace[rows - 1].gradient_norm, 0.1 * trace[0].gradient_norm);
}

static int same_result(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    return same_pose(&a->T_map_sensor, &b->T_map_sensor) && a->iterations == b->iterations &&
           a->evaluations == b->evaluations && memcmp(&a->scores, &b->scores, sizeof(a->scores)) == 0 &&
           memcmp(a->covariance, b->covariance, sizeof(a->covariance)) == 0;
}

/* Memory behind the points of a scan does not count: here it holds those of an earlier, larger scan. */
TEST(points_of_an_earlier_scan_do_not_count)
{
    const struct ndt_pose truth = measure_scan(&STREET, 4, 0.5, 0.3);
    struct ndt_align_result after[40], fresh;
    const size_t all = scan.count;
    params.max_iterations = 1;
    for (size_t k = 0; k < 40; k++) {
        scan.count = all;
        (void)align(&truth);
        scan.count = k + 1;
        after[k] = align(&truth);
    }
    for (size_t k = 0; k < 40; k++) {
        close_aligner();
        open_aligner(&ndt_cpu_backend, 1, street_map);
        scan.count = k + 1;
        fresh = align(&truth);
        ck_assert_msg(same_result(&fresh, &after[k]), "%zu points", k + 1);
        ck_assert_double_le(fresh.scores.match_ratio, 1);
    }
}

/* Without measurements costs are as expected; measured ones follow the expected ratio, unless nothing is expected.
 */
TEST(costs_follow_the_size_of_the_scan)
{
    const struct ndt_align_costs costs = {.levels = {{.point_us = 2}, {.fixed_us = 30, .point_us = 0.5}},
                                          .assess = {.fixed_us = 7}};
    struct ndt_align_costs seen;
    ndt_aligner_set_costs(aligner, &costs);
    ndt_expect_costs(aligner, 100);
    ndt_aligner_costs(aligner, &seen);
    ck_assert_double_eq(seen.levels[0].fixed_us, 200);
    ck_assert_double_eq(seen.levels[1].fixed_us, 80);
    ck_assert_double_eq(seen.levels[2].fixed_us, 0);
    ck_assert_double_eq(seen.assess.fixed_us, 7);
    aligner->level_us[0] = 300;
    aligner->level_us[1] = 40;
    ndt_expect_costs(aligner, 50);
    ndt_aligner_costs(aligner, &seen);
    ck_assert_double_eq(seen.levels[0].fixed_us, 150);
    ck_assert_double_eq_tol(seen.levels[1].fixed_us, 40 * 55 / 80., 1e-9);
    ck_assert_double_eq(seen.assess.fixed_us, 7);
    ndt_expect_costs(aligner, 0);
    ndt_aligner_costs(aligner, &seen);
    ck_assert_double_eq(seen.levels[0].fixed_us, 150); /* nothing is expected of no points */
    ck_assert_double_eq_tol(seen.levels[1].fixed_us, 40 * 30 / 80., 1e-9);
}

/* Coverage on a plane that is full of voxels. */
static double coverage_of(const struct ndt_map *map, const double *angles_deg, size_t count)
{
    struct ndt_newton newton = {.level = 0, .p = {0, 0, 0.5, 0, 0, 0}};
    ck_assert_int_eq(ndt_cloud_reserve(&scan, count + 1, 0, &err), NDT_OK);
    for (scan.count = 0; scan.count < count; scan.count++) {
        const double angle_rad = angles_deg[scan.count] * DEG;
        scan.x_m[scan.count] = (float)(10 * cos(angle_rad));
        scan.y_m[scan.count] = (float)(10 * sin(angle_rad));
        scan.z_m[scan.count] = 0;
    }
    return ndt_solve_coverage(map, &scan, &newton);
}

TEST(coverage_counts_sectors)
{
    const double none_m[3] = {0};
    double all_deg[32];
    struct ndt_cloud plane;
    struct ndt_map_config config;
    struct ndt_map *map;
    struct ndt_random random = {3};
    ndt_cloud_init(&plane);
    ndt_map_config_default(&config);
    config.level_count = 1;
    config.leaf_m[0] = 2;
    ck_assert_int_eq(ndt_cloud_reserve(&plane, 40000, 0, &err), NDT_OK);
    memcpy(plane.origin_m, none_m, sizeof(none_m));
    for (plane.count = 0; plane.count < 40000; plane.count++) {
        plane.x_m[plane.count] = (float)ndt_random_between(&random, -16, 16);
        plane.y_m[plane.count] = (float)ndt_random_between(&random, -16, 16);
        plane.z_m[plane.count] = (float)ndt_random_between(&random, 0.4, 0.6);
    }
    ck_assert_int_eq(ndt_map_from_cloud(&map, &config, &plane, &err), NDT_OK);
    ck_assert_double_eq(map->origin_m[0], 0);
    for (int i = 0; i < 32; i++) {
        const double edge_deg = 11.25 * i;
        const double across_deg[2] = {edge_deg - 0.3, edge_deg + 0.3},
                     within_deg[2] = {edge_deg + 0.3, edge_deg + 10.9};
        ck_assert_double_eq(coverage_of(map, across_deg, 2), 2 / 32.);
        ck_assert_double_eq(coverage_of(map, within_deg, 2), 1 / 32.);
        all_deg[i] = edge_deg + 5;
        ck_assert_double_eq(coverage_of(map, all_deg, (size_t)i + 1), (i + 1) / 32.);
    }
    scan.z_m[4] = 50; /* off the map */
    scan.x_m[7] = NAN;
    scan.x_m[8] = 3e38f;
    scan.y_m[8] = 1.1e38f; /* too far for a cell number, in the sector of number 1 */
    struct ndt_newton newton = {.p = {0, 0, 0.5}};
    ck_assert_double_eq(ndt_solve_coverage(map, &scan, &newton), 29 / 32.);
    ndt_map_release(map);
    ndt_cloud_free(&plane);
}

/* Sums over lanes: whole groups, rests, and points that are not finite, which do not count. */
TEST(second_moments_are_means_of_products)
{
    for (size_t count = 0; count < 40; count++) {
        double expected[6] = {0}, moments[6], n = 0;
        ck_assert_int_eq(ndt_cloud_reserve(&scan, count + 1, 0, &err), NDT_OK);
        scan.count = count;
        for (size_t i = 0; i < count; i++) {
            const double x[3] = {1 + (double)i, 2 - 3 * (double)i, 0.5 * (double)(i * i % 7)};
            scan.x_m[i] = (float)x[0];
            scan.y_m[i] = (float)x[1];
            scan.z_m[i] = (float)x[2];
            if (i % 9 == 4) {
                scan.z_m[i] = i % 2 ? NAN : INFINITY;
                continue;
            }
            for (int r = 0, at = 0; r < 3; r++)
                for (int c = r; c < 3; c++)
                    expected[at++] += x[r] * x[c];
            n++;
        }
        ndt_second_moments(&scan, moments);
        for (int i = 0; i < 6; i++)
            ck_assert_double_eq(moments[i], n > 0 ? expected[i] / n : 0);
    }
}

TEST(a_dump_needs_an_iteration_and_a_backend_that_keeps_values)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    const struct ndt_align_result result = align(&truth);
    char reason[200];
    ck_assert_int_eq(ndt_aligner_dump(aligner, (size_t)result.iterations, stdout, &err), NDT_ERR_LIMIT);
    snprintf(reason, sizeof(reason), "iteration %d does not exist: the alignment had %d", result.iterations,
             result.iterations);
    ck_assert_str_eq(err.text, reason);
    ck_assert_int_eq(ndt_aligner_dump(aligner, (size_t)result.iterations - 1, stdout, &err), NDT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "backend cpu keeps no intermediate values; cuda does, with cuda.pipeline staged");
}

/* The number of 40 starts, off by up to the limits, that end within 5 cm and 0.3 deg of the true pose. */
static int recovered(double shift_m, double turn_rad)
{
    struct ndt_random random = {21};
    int good = 0;
    for (uint64_t i = 0; i < 40; i++) {
        const struct ndt_pose truth = measure_scan(&STREET, i, 0.25 + 0.0125 * (double)i, 0.4 * (double)i);
        const struct ndt_pose guess = world_perturb(&random, &truth, shift_m, turn_rad);
        const struct ndt_align_result result = align(&guess);
        good += ndt_pose_distance_m(&truth, &result.T_map_sensor) < 0.05 &&
                ndt_pose_angle_rad(&truth, &result.T_map_sensor) < 0.3 * DEG && result.outcome == NDT_CONVERGED;
    }
    return good;
}

TEST(recovers_from_wrong_starts)
{
    ck_assert_int_eq(recovered(0.5, 2 * DEG), 40);
    ck_assert_int_eq(recovered(1.0, 5 * DEG), 40);
    ck_assert_int_ge(recovered(2.0, 10 * DEG), 38);
}

TEST(converged_result_is_complete)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    const struct ndt_align_result result = align(&truth);
    size_t rows;
    const struct ndt_iteration *trace = ndt_aligner_trace(aligner, &rows);
    int evaluations = 0;
    ck_assert_int_eq(result.outcome, NDT_CONVERGED);
    ck_assert_int_eq((int)rows, result.iterations);
    for (size_t i = 0; i < rows; i++) {
        ck_assert_int_eq(trace[i].iteration, (int)i);
        ck_assert(i == 0 || trace[i].level >= trace[i - 1].level);
        evaluations += trace[i].evaluations;
    }
    ck_assert_int_ge(result.evaluations, evaluations);
    ck_assert_int_eq(result.weak_count, 0);
    ck_assert_double_gt(result.scores.match_ratio, 0.9);
    ck_assert_double_le(result.scores.match_ratio, 1.0);
    ck_assert_double_gt(result.scores.nvtl_normalized, 0.5);
    ck_assert_double_le(result.scores.nvtl_normalized, 1.0);
    ck_assert_double_gt(result.scores.transform_probability, 0.0);
    ck_assert_double_gt(result.scores.coverage, 0.5);
    ck_assert_double_gt(result.align_us, 0.0);
}

TEST(bit_identical_for_any_number_of_threads)
{
    const struct ndt_pose truth = measure_scan(&STREET, 2, 0.4, -2.0);
    struct ndt_random random = {5};
    const struct ndt_pose guess = world_perturb(&random, &truth, 1.0, 5 * DEG);
    const struct ndt_align_result first = align(&guess);
    for (int threads = 1; threads <= 3; threads++) {
        close_aligner();
        open_aligner(&ndt_cpu_backend, threads, street_map);
        for (int repeat = 0; repeat < 2; repeat++) {
            const struct ndt_align_result again = align(&guess);
            ck_assert(same_pose(&first.T_map_sensor, &again.T_map_sensor));
            ck_assert_int_eq(memcmp(first.covariance, again.covariance, sizeof(first.covariance)), 0);
            ck_assert_int_eq(first.evaluations, again.evaluations);
        }
    }
}

TEST(utm_origin_keeps_precision)
{
    const struct ndt_pose truth = measure_scan(&STREET, 3, 0.6, 0.5);
    struct ndt_random random = {6};
    struct ndt_pose guess = world_perturb(&random, &truth, 0.5, 2 * DEG);
    const struct ndt_align_result here = align(&guess);
    use_map(utm_map);
    for (int i = 0; i < 3; i++)
        guess.t_m[i] += UTM_M[i];
    const struct ndt_align_result far = align(&guess);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(far.T_map_sensor.t_m[i] - UTM_M[i], here.T_map_sensor.t_m[i], 2e-6);
    ck_assert_double_le(ndt_pose_angle_rad(&here.T_map_sensor, &far.T_map_sensor), 1e-6);
}

TEST(off_the_map)
{
    struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    guess.t_m[0] += 5000.0;
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        params.variant = (enum ndt_variant)variant;
        const struct ndt_align_result result = align(&guess);
        ck_assert_int_eq(result.outcome, NDT_OFF_MAP);
        ck_assert_double_le(ndt_pose_distance_m(&guess, &result.T_map_sensor), 1e-9);
        ck_assert_int_eq(result.has_covariance, 0);
        ck_assert_double_eq(result.scores.match_ratio, 0.0);
    }
}

TEST(empty_and_nan_scans_keep_the_guess)
{
    const struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    const size_t count = scan.count;
    scan.count = 0;
    const struct ndt_align_result empty = align(&guess);
    ck_assert_int_eq(empty.outcome, NDT_REJECTED);
    ck_assert(same_pose(&guess, &empty.T_map_sensor));
    scan.count = count;
    for (size_t i = 0; i < count; i++)
        scan.x_m[i] = scan.y_m[i] = scan.z_m[i] = i % 2 ? NAN : INFINITY;
    const struct ndt_align_result nan_only = align(&guess);
    ck_assert(nan_only.outcome == NDT_OFF_MAP || nan_only.outcome == NDT_REJECTED);
    ck_assert_double_le(ndt_pose_distance_m(&guess, &nan_only.T_map_sensor), 1e-9);
    ck_assert_int_eq(nan_only.has_covariance, 0);
}

TEST(nan_points_change_only_the_match_ratio)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    const size_t clean = scan.count;
    const struct ndt_align_result without = align(&truth);
    ck_assert_int_eq(ndt_cloud_reserve(&scan, clean + 100, 0, &err), NDT_OK);
    for (size_t i = clean; i < clean + 100; i++) {
        scan.x_m[i] = NAN;
        scan.y_m[i] = scan.z_m[i] = 1.0f;
    }
    scan.count = clean + 100;
    const struct ndt_align_result with = align(&truth);
    ck_assert_double_le(ndt_pose_distance_m(&without.T_map_sensor, &with.T_map_sensor), 1e-9);
    ck_assert_double_eq_tol(with.scores.match_ratio,
                            without.scores.match_ratio * (double)clean / (double)scan.count, 1e-9);
}

TEST(guess_that_is_not_finite_is_refused)
{
    struct ndt_align_result result;
    struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    guess.t_m[1] = NAN;
    const enum ndt_status status = ndt_align(aligner, &params, &scan, &guess, &result, &err);
    ck_assert(status != NDT_OK || result.outcome == NDT_NO_GUESS);
}

TEST(missing_level_is_named)
{
    struct ndt_align_result result;
    const struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    params.levels[1].leaf_m = 3.5;
    ck_assert_int_eq(ndt_align(aligner, &params, &scan, &guess, &result, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "3.5"));
    ck_assert(same_pose(&guess, &result.T_map_sensor));
}

/* Standard deviations of the pose: along the axes of the map, and of the rotation. */
static struct ndt_prior make_prior(const struct ndt_pose *mean, double x_m, double yz_m, double rotation_rad)
{
    struct ndt_prior prior = {.T_map_sensor = *mean};
    const double variances[3] = {x_m * x_m, yz_m * yz_m, yz_m * yz_m};
    double R[9];
    ndt_pose_rotation(mean, R);
    for (int i = 0; i < 3; i++) {
        prior.covariance[7 * (3 + i)] = rotation_rad * rotation_rad;
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                prior.covariance[6 * i + j] += R[3 * k + i] * variances[k] * R[3 * k + j];
    }
    return prior;
}

/* Levels of 4, 2 and 1 m reach half of it: three sigmas of the position, or of the rotation at 15 m. */
TEST(a_prior_chooses_the_level)
{
    static const struct {
        double position_m, rotation_rad;
        int32_t level;
    } cases[] = {{0.16, 1e-9, 2},  {0.17, 1e-9, 1},   {0.33, 1e-9, 1},  {0.34, 1e-9, 0},  {50, 1, 0},
                 {1e-9, 0.011, 2}, {1e-9, 0.0112, 1}, {1e-9, 0.022, 1}, {1e-9, 0.0223, 0}};
    const struct ndt_pose mean = {{10, 20, 30}, {0, 0, sqrt(0.5), sqrt(0.5)}};
    const double origin_m[3] = {8, 16, 32};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ndt_prior prior =
            make_prior(&mean, cases[i].position_m, cases[i].position_m, cases[i].rotation_rad);
        struct ndt_newton newton = {.R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .guess = {1, 2, 3}, .first_level = 7};
        ck_assert_int_eq(ndt_solve_set_prior(&newton, &params, &prior, origin_m, &err), NDT_OK);
        ck_assert_int_eq(newton.first_level, cases[i].level);
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq(newton.prior_offset[k], mean.t_m[k] - origin_m[k] - newton.guess[k]);
        ck_assert_double_eq_tol(newton.prior_offset[3], 0, 1e-12);
        ck_assert_double_eq_tol(newton.prior_offset[4], 0, 1e-12);
        ck_assert_double_eq_tol(newton.prior_offset[5], M_PI / 2, 1e-12);
        params.choose_levels = 0;
        newton.first_level = 7;
        ck_assert_int_eq(ndt_solve_set_prior(&newton, &params, &prior, origin_m, &err), NDT_OK);
        ck_assert_int_eq(newton.first_level, 7);
        params.choose_levels = 1;
    }
    params.level_count = 1;
    const struct ndt_prior prior = make_prior(&mean, 100, 100, 1);
    struct ndt_newton newton = {.R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .first_level = 7};
    ck_assert_int_eq(ndt_solve_set_prior(&newton, &params, &prior, origin_m, &err), NDT_OK);
    ck_assert_int_eq(newton.first_level, 0);
}

/* Prior of 1/4 along x and 1 along y and z of the sensor, which looks along y of the map. */
TEST(the_information_of_a_prior_turns_into_the_map)
{
    const struct ndt_pose mean = {{0, 0, 0}, {0, 0, sqrt(0.5), sqrt(0.5)}};
    struct ndt_prior prior = {.T_map_sensor = mean};
    struct ndt_newton newton = {.R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (int i = 0; i < 6; i++)
        prior.covariance[7 * i] = i + 1;
    prior.covariance[1] = prior.covariance[6] = 0.5;
    ck_assert_int_eq(ndt_solve_set_prior(&newton, &params, &prior, ZERO_M, &err), NDT_OK);
    /* the block of x and y is {1, 0.5; 0.5, 2}, its inverse {2, -0.5; -0.5, 1} / 1.75; x becomes y, y becomes -x */
    const double w = params.prior_weight, diagonal[6] = {1 / 1.75, 2 / 1.75, 1 / 3., 1 / 5., 1 / 4., 1 / 6.};
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++, at++)
            ck_assert_double_eq_tol(newton.prior[at],
                                    i == j    ? w * diagonal[i]
                                    : at == 1 ? w * 0.5 / 1.75
                                              : 0,
                                    1e-12 * w);
}

TEST(the_cpu_describes_itself)
{
    char text[160], isa[160];
    for (int threads = 1; threads <= 2; threads++) {
        close_aligner();
        open_aligner(&ndt_cpu_backend, threads, street_map);
        backend->ops->describe(backend, text, sizeof(text));
        ck_assert_int_eq(strncmp(text, "cpu ", 4), 0);
        snprintf(isa, sizeof(isa), "%.*s", (int)strcspn(text, ",") - 4, text + 4);
        ck_assert(!strcmp(isa, "baseline") || !strcmp(isa, "avx2") || !strcmp(isa, "avx512") ||
                  !strcmp(isa, "neon"));
        ck_assert_str_eq(strchr(text, ','), threads == 1 ? ", 1 thread" : ", 2 threads");
    }
}

/* The scan does not observe the axis: a prior decides there, wherever the search begins, and nowhere else. */
TEST_EACH(corridor_keeps_the_prior_along_its_axis, 0, 2)
{
    use_map(corridor_map);
    const struct ndt_pose truth = measure_scan(&CORRIDOR, 5, 0.5, 0.3);
    struct ndt_pose guess = truth, mean = truth;
    guess.t_m[0] += 0.8;
    guess.t_m[1] += 0.2;
    guess.t_m[2] -= 0.1;
    mean.t_m[0] += _i ? 0.8 : 0.6;
    mean.t_m[1] -= 0.2;
    const struct ndt_prior prior = make_prior(&mean, 0.01, 1.0, 0.2);
    params.prior = &prior;
    const struct ndt_align_result result = align(&guess);
    int along_x = 0;
    for (int k = 0; k < result.weak_count; k++) {
        double norm2 = 0;
        for (int i = 0; i < 6; i++)
            norm2 += result.weak_axes[k][i] * result.weak_axes[k][i];
        ck_assert_double_eq_tol(norm2, 1.0, 1e-9);
        along_x += fabs(result.weak_axes[k][0]) > 0.9;
    }
    ck_assert_int_eq(along_x, 1);
    ck_assert_double_eq_tol(result.T_map_sensor.t_m[0], mean.t_m[0], 0.02);
    ck_assert_double_eq_tol(result.T_map_sensor.t_m[1], truth.t_m[1], 0.02);
    ck_assert_double_eq_tol(result.T_map_sensor.t_m[2], truth.t_m[2], 0.02);
}

/* A prior of hardly any information changes hardly anything, a strict one decides; the step rule of Autoware knows
 * no prior. */
TEST(vague_priors_change_nothing)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    struct ndt_pose guess = truth, mean = truth;
    guess.t_m[0] += 0.4;
    guess.t_m[1] -= 0.3;
    mean.t_m[0] -= 0.5;
    const struct ndt_prior vague = make_prior(&mean, 1e12, 1e12, 1e12),
                           strict = make_prior(&mean, 1e-3, 1e-3, 1e-3);
    struct ndt_align_result without = align(&guess);
    params.prior = &vague;
    struct ndt_align_result with = align(&guess);
    ck_assert_int_eq(without.outcome, NDT_CONVERGED);
    ck_assert_int_eq(with.outcome, NDT_CONVERGED);
    ck_assert_double_lt(ndt_pose_distance_m(&without.T_map_sensor, &with.T_map_sensor), 1e-6);
    params.prior = &strict;
    with = align(&guess);
    ck_assert_double_lt(ndt_pose_distance_m(&mean, &with.T_map_sensor), 0.02);

    params.variant = NDT_AUTOWARE;
    with = align(&guess);
    params.prior = NULL;
    without = align(&guess);
    ck_assert(same_result(&without, &with));
}

TEST(priors_without_inverse_are_refused)
{
    static const double bad[] = {0, -1, NAN, INFINITY};
    enum { BAD = sizeof(bad) / sizeof(bad[0]) };
    struct ndt_align_result result;
    const struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    for (int i = 0; i <= BAD; i++) {
        struct ndt_prior prior = make_prior(&guess, 0.1, 0.1, 0.01);
        if (i < BAD)
            prior.covariance[21] = bad[i];
        else
            prior.T_map_sensor.t_m[1] = NAN;
        params.prior = &prior;
        ck_assert_int_eq(ndt_align(aligner, &params, &scan, &guess, &result, &err), NDT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(err.text, "prior"));
        ck_assert(same_pose(&guess, &result.T_map_sensor));
    }
}

TEST(iteration_limit_is_reported)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    struct ndt_pose guess = truth;
    guess.t_m[0] += 0.7;
    guess.t_m[1] -= 0.7;
    params.max_iterations = 1;
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        params.variant = (enum ndt_variant)variant;
        const struct ndt_align_result result = align(&guess);
        ck_assert_int_ne(result.outcome, NDT_CONVERGED);
        ck_assert_int_eq(result.iterations, 1);
        ck_assert_double_lt(ndt_pose_distance_m(&truth, &result.T_map_sensor), ndt_pose_distance_m(&truth, &guess));
    }
    params.variant = NDT_ROBUST;
    params.score_threshold = 0;
    ck_assert_int_eq(align(&guess).outcome, NDT_ITERATION_LIMIT);
}

/* Expected costs bound the first scan, in proportion to its points, and measured costs correct them. */
TEST(expected_costs_bound_the_iterations)
{
    struct ndt_align_costs costs = {.assess = {.fixed_us = 1}}, seen;
    struct ndt_align_result result;
    const struct ndt_pose truth = {.t_m = {30, 0.5, 1.8}, .q_xyzw = {0, 0, 0, 1}};
    struct ndt_pose guess = truth;
    guess.t_m[0] += 0.3;
    params.deadline_s = 600;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        costs.levels[i] = (struct ndt_cost){.fixed_us = 1, .point_us = 1e6}; /* 1 s per point */
    ck_assert_int_eq(world_scan(&scan, &STREET, 7, 1500, &truth, 40, &err), NDT_OK);
    ndt_aligner_set_costs(aligner, &costs);
    ck_assert_int_eq(ndt_align(aligner, &params, &scan, &guess, &result, &err), NDT_OK);
    ck_assert_int_eq(result.outcome, NDT_DEADLINE);
    ck_assert_int_eq(result.evaluations, 1); /* at least one, which gives a result */

    ndt_aligner_set_costs(aligner, &costs);
    scan.count = 100; /* 1.5 times 100 s fit into 600 s */
    ck_assert_int_eq(ndt_align(aligner, &params, &scan, &guess, &result, &err), NDT_OK);
    ck_assert_int_gt(result.evaluations, 1);
    ck_assert_int_ne(result.outcome, NDT_DEADLINE);
    ndt_aligner_costs(aligner, &seen);
    ck_assert_double_lt(seen.levels[0].fixed_us, 100e6); /* corrected: none took 100 s */
    ck_assert_double_gt(seen.levels[0].fixed_us, 0);
    ck_assert_double_gt(seen.assess.fixed_us, 0);

    ndt_aligner_set_costs(aligner, &(struct ndt_align_costs){0}); /* unknown: as without costs */
    scan.count = 1500;
    ck_assert_int_eq(ndt_align(aligner, &params, &scan, &guess, &result, &err), NDT_OK);
    ck_assert_int_eq(result.outcome, NDT_CONVERGED);
}

TEST(deadline_returns_the_best_pose_so_far)
{
    const struct ndt_pose truth = measure_scan(&STREET, 1, 0.5, 1.0);
    struct ndt_pose guess = truth;
    guess.t_m[0] += 0.5;
    params.deadline_s = 1e-9;
    const struct ndt_align_result hurried = align(&guess);
    ck_assert_int_eq(hurried.outcome, NDT_DEADLINE);
    ck_assert_str_eq(hurried.reason,
                     "no time left to finish the alignment: it had 0.0 ms, enough for 1 evaluation");
    ck_assert_double_le(ndt_pose_distance_m(&truth, &hurried.T_map_sensor),
                        ndt_pose_distance_m(&truth, &guess) + 1e-9);
    ck_assert_double_gt(hurried.scores.match_ratio, 0.0);
    params.deadline_s = 10.0;
    ck_assert_int_eq(align(&guess).outcome, NDT_CONVERGED);
}

/* Points unrelated to the map must not converge. */
TEST(noise_does_not_converge)
{
    const struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    struct ndt_random random = {9};
    for (size_t i = 0; i < scan.count; i++) {
        scan.x_m[i] = (float)ndt_random_between(&random, -30, 30);
        scan.y_m[i] = (float)ndt_random_between(&random, -30, 30);
        scan.z_m[i] = (float)ndt_random_between(&random, -2, 20);
    }
    const struct ndt_align_result result = align(&guess);
    ck_assert(result.outcome == NDT_LOW_SCORE || result.outcome == NDT_DEGENERATE);
}

TEST(few_matches_are_degenerate)
{
    const struct ndt_pose guess = measure_scan(&STREET, 1, 0.5, 1.0);
    for (size_t i = 40; i < scan.count; i++)
        scan.z_m[i] += 500.0f;
    const struct ndt_align_result result = align(&guess);
    ck_assert_int_eq(result.outcome, NDT_DEGENERATE);
}

/* Gauss-Jordan, enough for a well-conditioned matrix. */
static void invert6(double A[6][6], double out[6][6])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            out[i][j] = i == j;
    for (int k = 0; k < 6; k++) {
        const double pivot = A[k][k];
        for (int j = 0; j < 6; j++) {
            A[k][j] /= pivot;
            out[k][j] /= pivot;
        }
        for (int i = 0; i < 6; i++) {
            const double factor = A[i][k];
            for (int j = 0; i != k && j < 6; j++) {
                A[i][j] -= factor * A[k][j];
                out[i][j] -= factor * out[k][j];
            }
        }
    }
}

/* Rotation about the map's axes caused by each of (a, b, c), by finite differences. */
static void rotation_columns(const double p[6], double E[6][6])
{
    const double h = 1e-6;
    const struct ndt_pose here = ndt_pose_from_euler(p);
    const struct ndt_pose back = ndt_pose_inverse(&here);
    memset(E, 0, sizeof(double[6][6]));
    for (int k = 0; k < 3; k++) {
        double q[6];
        memcpy(q, p, sizeof(q));
        q[3 + k] += h;
        const struct ndt_pose moved = ndt_pose_from_euler(q);
        struct ndt_pose turn = ndt_pose_compose(&moved, &back);
        memset(turn.t_m, 0, sizeof(turn.t_m));
        const struct ndt_twist twist = ndt_pose_log(&turn, h);
        E[k][k] = 1.0;
        for (int i = 0; i < 3; i++)
            E[3 + i][3 + k] = twist.w_radps[i];
    }
}

/* E (-H)^-1 E^T at a pose, from the plain double backend. */
static void expected_covariance(const struct ndt_pose *pose, double out[6][6])
{
    double minus_H[6][6], inverse[6][6], E[6][6];
    struct ndt_eval eval;
    struct ndt_eval_request request = {.level = ndt_map_find_level(street_map, 1.0), .neighbours = NDT_RADIUS};
    close_aligner();
    open_aligner(&ndt_reference_backend, 1, street_map);
    ck_assert_int_eq(backend->ops->set_scan(backend, &scan, &err), NDT_OK);
    ndt_pose_to_euler(pose, request.p);
    for (int i = 0; i < 3; i++)
        request.p[i] -= street_map->origin_m[i];
    ck_assert_int_eq(backend->ops->eval(backend, &request, &eval, &err), NDT_OK);
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++, at++)
            minus_H[i][j] = minus_H[j][i] = -eval.hessian[at];
    invert6(minus_H, inverse);
    rotation_columns(request.p, E);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            out[i][j] = 0;
            for (int k = 0; k < 6; k++)
                for (int l = 0; l < 6; l++)
                    out[i][j] += E[i][k] * inverse[k][l] * E[j][l];
        }
}

TEST(covariance_is_the_inverse_of_the_whole_hessian)
{
    double expected[6][6];
    const struct ndt_pose truth = measure_scan(&STREET, 8, 0.5, 1.3);
    params.fine_stop_gain = 0; /* converge to the exact maximum */
    const struct ndt_align_result result = align(&truth);
    ck_assert_int_eq(result.has_covariance, 1);
    expected_covariance(&result.T_map_sensor, expected);
    for (int i = 0; i < 6; i++) {
        const double variance = result.covariance[7 * i];
        ck_assert_double_gt(variance, 0.0);
        ck_assert_double_lt(sqrt(variance), i < 3 ? 0.1 : 1.0 * DEG);
        for (int j = 0; j < 6; j++) {
            const double scale = params.covariance_scale * sqrt(expected[i][i] * expected[j][j]);
            ck_assert_double_eq(result.covariance[6 * i + j], result.covariance[6 * j + i]);
            ck_assert_double_eq_tol(result.covariance[6 * i + j], params.covariance_scale * expected[i][j],
                                    0.03 * scale);
        }
    }
}

/* Normalised errors of many independent scans: the reported deviations have the right order of magnitude. */
TEST(covariance_is_consistent_with_the_errors)
{
    double sum = 0;
    const int scans = 30;
    for (int i = 0; i < scans; i++) {
        const struct ndt_pose truth = measure_scan(&STREET, 100 + (uint64_t)i, 0.3 + 0.013 * i, 0.2 * i);
        const struct ndt_align_result result = align(&truth);
        for (int k = 0; k < 3; k++) {
            const double off_m = result.T_map_sensor.t_m[k] - truth.t_m[k];
            sum += off_m * off_m / result.covariance[7 * k] / (3.0 * scans);
        }
    }
    printf("mean squared normalised position error: %.2f\n", sum);
    ck_assert_double_gt(sum, 0.01);
    ck_assert_double_lt(sum, 10.0);
}

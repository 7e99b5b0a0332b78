/* Covariances of a pose as Autoware estimates them. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/pose_covariance.h"
#include "run_tests.h"
#include "street_world.h"

static const struct world STREET = {WORLD_STREET, 3, 80.0, 0.02};
static const struct world CORRIDOR = {WORLD_CORRIDOR, 4, 80.0, 0.02};
static const struct ndt_pose MOUNT = {.t_m = {1.2, 0.3, 1.8}, .q_xyzw = {0, 0, 0, 1}};

/* Maps are built once, before Check forks; backends have threads, which do not survive the fork. */
static struct ndt_map *maps[2];
static struct ndt_backend *backend;
static struct ndt_aligner *aligner;
static struct ndt_align_params align;
static struct ndt_pose_covariance_params params;
static struct ndt_cloud scan;
static struct ndt_pose truth, mount;
static struct ndt_error err;

static void make_maps(void)
{
    static const struct world *const worlds[] = {&STREET, &CORRIDOR};
    for (int i = 0; i < 2; i++) {
        struct ndt_cloud points;
        struct ndt_map_config config;
        ndt_cloud_init(&points);
        ndt_map_config_default(&config);
        must(world_map(&points, worlds[i], 40000, (double[3]){0}, &err));
        must(ndt_map_from_cloud(&maps[i], &config, &points, &err));
        ndt_cloud_free(&points);
    }
}

static void free_maps(void)
{
    ndt_map_release(maps[0]);
    ndt_map_release(maps[1]);
}

static void setup(void)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = 1;
    ndt_cloud_init(&scan);
    ndt_align_params_default(&align);
    ndt_pose_covariance_params_default(&params);
    mount = ndt_pose_identity();
    must(ndt_cpu_backend.open(&backend, &config, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
}

static void teardown(void)
{
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
    ndt_cloud_free(&scan);
}

/* Aligns a scan from its true pose. The sensor sits on the base by `mount`. */
static struct ndt_align_result align_in(int map, double heading_rad)
{
    const struct world *world = map ? &CORRIDOR : &STREET;
    struct ndt_align_result result;
    truth = world_pose(world, 0.5, heading_rad);
    must(world_scan(&scan, world, 7, 1500, &truth, 30, &err));
    must(ndt_aligner_set_map(aligner, maps[map], &err));
    must(ndt_align(aligner, &align, &scan, &truth, &result, &err));
    return result;
}

static void estimate(enum ndt_pose_covariance_kind kind, struct ndt_align_result *result)
{
    const struct ndt_aligned_pose pose = {&align, &scan, &mount};
    params.kind = kind;
    must(ndt_pose_covariance_estimate(aligner, &params, &pose, result, &err));
}

static void set_fixed(double variance)
{
    memset(params.fixed, 0, sizeof(params.fixed));
    for (int i = 0; i < 6; i++)
        params.fixed[7 * i] = variance;
}

/* Turns a covariance from the axes of the map to those of the base, which are the sensor's here. */
static void in_base(const struct ndt_align_result *result, double out[36])
{
    double R[9], turn[36] = {0};
    ndt_pose_rotation(&result->T_map_sensor, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            turn[6 * i + j] = turn[6 * (3 + i) + 3 + j] = R[3 * i + j];
    ndt_congruence(6, 6, turn, result->covariance, out);
}

FIXTURE_ONCE(make_maps, free_maps)
FIXTURE(setup, teardown)

/* x and y of the base change places with the heading. */
TEST(fixed_turns_with_the_base)
{
    struct ndt_align_result result = align_in(0, 0);
    result.T_map_sensor = (struct ndt_pose){.q_xyzw = {0, 0, sqrt(0.5), sqrt(0.5)}};
    params.fixed[0] = 4;
    estimate(NDT_POSE_COVARIANCE_FIXED, &result);
    ck_assert(result.has_covariance);
    ck_assert_double_eq_tol(result.covariance[0], 0.0225, 1e-12);
    ck_assert_double_eq_tol(result.covariance[7], 4, 1e-12);
    ck_assert_double_eq_tol(result.covariance[1], 0, 1e-12);
    ck_assert_double_eq_tol(result.covariance[35], 0.000625, 1e-12);
}

TEST(posterior_changes_nothing)
{
    const struct ndt_align_result before = align_in(0, 0);
    struct ndt_align_result result = before;
    estimate(NDT_POSE_COVARIANCE_POSTERIOR, &result);
    ck_assert_mem_eq(&result, &before, sizeof(result));
}

/* From the curvature of an observation, and from the covariance of a result that has none. */
TEST(laplace_is_the_inverse_curvature)
{
    struct ndt_align_result result = align_in(0, 0.7), observed;
    double expected[36];
    memcpy(expected, result.covariance, sizeof(expected));
    set_fixed(1e-12);
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &result);
    align.wants_observation = 1;
    observed = align_in(0, 0.7);
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &observed);
    for (int i = 0; i < 36; i++) {
        const double size = sqrt(expected[7 * (i / 6)] * expected[7 * (i % 6)]);
        ck_assert_double_eq_tol(result.covariance[i], expected[i], 1e-6 * size);
        ck_assert_double_eq_tol(observed.covariance[i], expected[i], 0.02 * size);
    }
}

/* The covariance is that of a base 1.8 m below the sensor: a roll of the sensor moves it sideways. */
TEST(laplace_is_of_the_base)
{
    struct ndt_align_result of_sensor = align_in(0, 0), of_base = of_sensor;
    double sensor[36], base[36];
    set_fixed(1e-12);
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &of_sensor);
    mount = MOUNT;
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &of_base);
    in_base(&of_sensor, sensor);
    in_base(&of_base, base);
    /* y of the base: y + 1.8 roll - 1.2 yaw of the sensor */
    const double expected = sensor[7] + 1.8 * 1.8 * sensor[21] + 1.2 * 1.2 * sensor[35] + 2 * 1.8 * sensor[9] -
                            2 * 1.2 * sensor[11] - 2 * 1.8 * 1.2 * sensor[23];
    ck_assert_double_eq_tol(base[7], expected, 1e-9 * expected);
    ck_assert_double_eq_tol(base[35], sensor[35], 1e-9 * sensor[35]);
}

TEST(variances_are_at_least_the_fixed_ones)
{
    struct ndt_align_result result = align_in(0, 0.4);
    double base[36];
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &result);
    in_base(&result, base);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(base[7 * i], params.fixed[7 * i], 1e-9);
}

/* Where the score says nothing, the alignments stay where they start. */
TEST(multi_ndt_sees_the_axis_of_a_corridor)
{
    double base[36];
    set_fixed(1e-8);
    align.covariance_scale = 1;
    struct ndt_align_result street = align_in(0, 0), corridor = align_in(1, 0);
    const int evaluations = corridor.evaluations;
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT, &corridor);
    in_base(&corridor, base);
    ck_assert_int_ge(corridor.evaluations, evaluations + 6);
    ck_assert_double_gt(base[0], 0.1 * 0.1);
    ck_assert_double_lt(base[7], 0.02 * 0.02);
    street = align_in(0, 0);
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT, &street);
    in_base(&street, base);
    ck_assert_double_lt(base[0], 0.02 * 0.02);
    ck_assert_double_lt(base[7], 0.02 * 0.02);
}

/* At an infinite temperature all offsets weigh the same: x (2 0.5^2 + 2 1^2) / 7, y 2 0.5^2 / 7. */
TEST(scores_weigh_the_offsets)
{
    double base[36];
    struct ndt_align_result result = align_in(0, 0.3);
    const struct ndt_align_result before = result;
    set_fixed(1e-12);
    align.covariance_scale = 1;
    mount = MOUNT; /* the offsets are those of the base: the arm does not matter */
    params.temperature = 1e6;
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT_SCORE, &result);
    in_base(&result, base);
    ck_assert_double_eq_tol(base[0], 2.5 / 7, 1e-4);
    ck_assert_double_eq_tol(base[7], 0.5 / 7, 1e-4);
    ck_assert_double_eq_tol(base[14], 0, 1e-9);
    ck_assert_int_eq(result.evaluations, before.evaluations + 6);

    /* otherwise by exp(nvtl / temperature): here of scores that are measured one by one */
    struct ndt_align_params score_only = align;
    double weights = 1, expected[2] = {0};
    params.temperature = 0.7;
    score_only.levels[0] = align.levels[align.level_count - 1];
    score_only.level_count = 1;
    score_only.max_iterations = 0;
    for (size_t i = 0; i < params.offset_x_count; i++) {
        struct ndt_align_result at;
        const struct ndt_pose T_sensor_base = ndt_pose_inverse(&mount);
        const struct ndt_pose offset = {{params.offset_x_m[i], params.offset_y_m[i], 0}, {0, 0, 0, 1}};
        struct ndt_pose guess = ndt_pose_compose(&before.T_map_sensor, &T_sensor_base);
        guess = ndt_pose_compose(&guess, &offset);
        guess = ndt_pose_compose(&guess, &mount);
        must(ndt_align(aligner, &score_only, &scan, &guess, &at, &err));
        const double weight = exp((at.scores.nvtl - before.scores.nvtl) / params.temperature);
        weights += weight;
        expected[0] += weight * params.offset_x_m[i] * params.offset_x_m[i];
        expected[1] += weight * params.offset_y_m[i] * params.offset_y_m[i];
    }
    ck_assert_double_lt(weights, 6); /* the scores differ */
    result = before;
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT_SCORE, &result);
    in_base(&result, base);
    ck_assert_double_eq_tol(base[0], expected[0] / weights, 1e-6);
    ck_assert_double_eq_tol(base[7], expected[1] / weights, 1e-6);

    result = before;
    params.temperature = 0.05; /* the pose has the best score by far */
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT_SCORE, &result);
    in_base(&result, base);
    ck_assert_double_lt(base[0], 0.1 * 0.1);
    ck_assert_double_gt(base[0], 1e-12);
}

/* No alignment finishes in a nanosecond. */
TEST(without_time_or_curvature_the_fixed_one_holds)
{
    struct ndt_align_result result = align_in(0, 0);
    align.deadline_s = 1e-9;
    estimate(NDT_POSE_COVARIANCE_MULTI_NDT, &result);
    ck_assert(result.has_covariance);
    ck_assert_double_eq_tol(result.covariance[35], 0.000625, 1e-9);
    result.has_covariance = result.has_observation = 0;
    estimate(NDT_POSE_COVARIANCE_LAPLACE, &result);
    ck_assert(result.has_covariance);
    ck_assert_double_eq_tol(result.covariance[14], 0.0225, 1e-4);
}

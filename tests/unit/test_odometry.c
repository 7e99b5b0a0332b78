/* Odometry without a map: drives along a street and a corridor, the velocity of the start, and what must not harm.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_odometry/odometry.h"
#include "run_tests.h"
#include "street_world.h"

enum { SCANS = 40, POINTS = 8000 };
static const int64_t START_NS = 1317042272349000000, STEP_NS = 100000000;
static const struct ndt_twist DRIVING = {{8, 0, 0}, {0, 0, 0.05}};
static const double SWEEP_S = 0.1;

static struct ndt_backend *backend;
static struct ndt_odometry *odometry;
static struct ndt_odometry_params params;
static struct ndt_odometry_result result;
static struct ndt_cloud scan;
static struct ndt_error err;
static struct world world = {WORLD_STREET, 5, 120, 0.02};

static void begin(void)
{
    ndt_odometry_destroy(odometry);
    must(ndt_odometry_create(&odometry, &params, backend, &err));
}

static void setup(void)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = 1;
    must(ndt_cpu_backend.open(&backend, &config, &err));
    ndt_cloud_init(&scan);
    ndt_odometry_params_default(&params);
    world.kind = WORLD_STREET;
    begin();
}

static void teardown(void)
{
    ndt_odometry_destroy(odometry);
    odometry = NULL;
    ndt_cpu_backend.close(backend);
    ndt_cloud_free(&scan);
}

/* True pose of the vehicle at scan i, in the world. */
static struct ndt_pose truth(size_t i)
{
    const struct ndt_pose first = {.t_m = {30, 0.3, 1.8}, .q_xyzw = {0, 0, 0, 1}};
    const struct ndt_pose step = ndt_pose_exp(&DRIVING, 0.1 * (double)i);
    return ndt_pose_compose(&first, &step);
}

static int64_t stamp_of(size_t i)
{
    return START_NS + STEP_NS * (int64_t)i;
}

static void measure(size_t i)
{
    const struct ndt_pose pose = truth(i);
    must(world_scan(&scan, &world, 100 + i, POINTS, &pose, 40, &err));
}

static void add(int64_t stamp_ns)
{
    must(ndt_odometry_add_scan(odometry, stamp_ns, &scan, &result, &err));
}

static void drive_one(size_t i)
{
    measure(i);
    add(stamp_of(i));
}

static double error_m(size_t i)
{
    const struct ndt_pose first = truth(0), now = truth(i), moved = ndt_pose_between(&first, &now);
    return ndt_pose_distance_m(&moved, &result.T_odom_base);
}

FIXTURE(setup, teardown)

TEST(test_a_drive_is_followed)
{
    int keyframes = 0;
    for (size_t i = 0; i < SCANS; i++) {
        drive_one(i);
        ck_assert_msg(result.outcome == NDT_CONVERGED, "scan %zu: %s", i, result.reason);
        ck_assert_msg(error_m(i) < 0.08, "scan %zu is off by %g m", i, error_m(i));
        ck_assert(!result.is_degenerate && result.segment == 0 && result.stamp_ns == stamp_of(i));
        keyframes += result.is_keyframe;
    }
    ck_assert_int_ge(keyframes, 14); /* 31 m */
    ck_assert_int_le(keyframes, SCANS);
    ck_assert(result.deviation_m < 0.1 && result.covariance[0] > 0 && result.fit > 0.3);
    ck_assert_double_eq_tol(result.twist.v_mps[0], 8, 0.3);
    ck_assert(ndt_odometry_map(odometry) != NULL && ndt_odometry_points(odometry)->count > 1000);
}

static void drive_sweeps(size_t count, double *most_m)
{
    *most_m = 0;
    for (size_t i = 0; i < count; i++) {
        measure(i);
        must(world_sweep(&scan, &DRIVING, SWEEP_S, &err));
        add(stamp_of(i));
        *most_m = fmax(*most_m, error_m(i));
    }
}

TEST(test_the_velocity_of_the_start_is_found)
{
    double before_m, after_m;
    drive_sweeps(SCANS, &before_m);
    begin();
    for (int round = 0; round < 2; round++) {
        drive_sweeps(NDT_ODOMETRY_START_SCANS, &after_m);
        ck_assert_int_eq(ndt_odometry_restart(odometry), 1);
    }
    ck_assert_uint_eq(ndt_odometry_points(odometry)->count, 0);
    drive_sweeps(SCANS, &after_m);
    ck_assert_msg(after_m < 0.1 && after_m < before_m, "%g m instead of %g m", after_m, before_m);
}

/* Odometry starts in the frame of another estimator, and with its velocity: the first sweep is not deformed by the
 * start. */
TEST(test_it_begins_where_another_estimator_is)
{
    static struct ndt_track track;
    const struct ndt_pose first = truth(5);
    double most_m = 0;
    drive_one(0); /* what it did before is forgotten */
    ndt_track_init(&track, &params.track);
    ndt_track_reset(&track, stamp_of(5), &first, &DRIVING, NULL);
    ndt_odometry_begin_at(odometry, &track);
    for (size_t i = 5; i < 25; i++) {
        const struct ndt_pose expected = truth(i);
        measure(i);
        must(world_sweep(&scan, &DRIVING, SWEEP_S, &err));
        add(stamp_of(i));
        ck_assert_int_eq(result.outcome, NDT_CONVERGED);
        most_m = fmax(most_m, ndt_pose_distance_m(&result.T_odom_base, &expected));
        if (i == 5)
            ck_assert(most_m < 1e-9 && result.deviation_m < 0.01);
    }
    ck_assert_double_lt(most_m, 0.1);
    ck_assert_int_eq(ndt_odometry_state(odometry)->stamp_ns, result.reference_ns);
}

TEST(test_too_few_scans_tell_no_velocity)
{
    double most_m;
    ck_assert_int_eq(ndt_odometry_restart(odometry), 0);
    drive_sweeps(NDT_ODOMETRY_START_SCANS - 1, &most_m);
    ck_assert_int_eq(ndt_odometry_restart(odometry), 0);
    drive_one(0);
    ck_assert_int_eq(result.outcome, NDT_CONVERGED);
}

/* The same world seen by a sensor that is turned: the base drives as before. */
TEST(test_the_first_scan_may_tell_the_sensor)
{
    struct ndt_pose T_base_sensor = {.t_m = {0.5, 0.2, 0.3}, .q_xyzw = {0, 0, sin(0.4), cos(0.4)}};
    must(ndt_odometry_set_sensor(odometry, &T_base_sensor, NDT_DESKEW_OFF, &err));
    for (size_t i = 0; i < 10; i++) {
        const struct ndt_pose base = truth(i), T_world_sensor = ndt_pose_compose(&base, &T_base_sensor);
        must(world_scan(&scan, &world, 100 + i, POINTS, &T_world_sensor, 40, &err));
        add(stamp_of(i));
        ck_assert_msg(error_m(i) < 0.08, "scan %zu is off by %g m", i, error_m(i));
    }
    ck_assert_int_eq(ndt_odometry_set_sensor(odometry, &T_base_sensor, NDT_DESKEW_OFF, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "after the first scan"));
    begin();
    T_base_sensor.t_m[0] = NAN;
    ck_assert_int_eq(ndt_odometry_set_sensor(odometry, &T_base_sensor, NDT_DESKEW_OFF, &err), NDT_ERR_ARGUMENT);
}

TEST(test_the_same_inputs_give_the_same_bits)
{
    static struct ndt_odometry_result first[20];
    for (int round = 0; round < 2; round++) {
        begin();
        for (size_t i = 0; i < 20; i++) {
            drive_one(i);
            result.preprocess_us = result.align_us = result.map_us = 0;
            if (round == 0)
                first[i] = result;
            else
                ck_assert_mem_eq(&first[i].T_odom_base, &result.T_odom_base, sizeof(result.T_odom_base));
            ck_assert_mem_eq(first[i].covariance, result.covariance, sizeof(result.covariance));
            ck_assert(first[i].fit == result.fit && first[i].innovation == result.innovation);
        }
    }
}

TEST(test_scans_without_points_are_refused)
{
    drive_one(0);
    drive_one(1);
    const struct ndt_pose last = result.T_odom_base;
    scan.count = 0;
    add(stamp_of(2));
    ck_assert_int_eq(result.outcome, NDT_REJECTED);
    ck_assert_str_eq(result.reason, "no point of it is finite and within range");
    ck_assert_mem_eq(&last, &result.T_odom_base, sizeof(last));
    ck_assert_uint_eq(ndt_odometry_points(odometry)->count, 0);
    measure(2);
    for (size_t i = 0; i < scan.count; i++)
        scan.x_m[i] = i % 2 ? NAN : INFINITY;
    add(stamp_of(2));
    ck_assert_int_eq(result.outcome, NDT_REJECTED);
    measure(2);
    for (size_t i = 0; i < scan.count; i += 3)
        scan.z_m[i] = NAN;
    add(stamp_of(2));
    ck_assert(result.outcome == NDT_CONVERGED && error_m(2) < 0.08);
}

TEST(test_an_empty_first_scan_is_no_origin)
{
    scan.count = 0;
    add(stamp_of(0));
    ck_assert_int_eq(result.outcome, NDT_REJECTED);
    ck_assert_ptr_null(ndt_odometry_map(odometry));
    for (size_t i = 0; i < 5; i++)
        drive_one(i);
    ck_assert(result.outcome == NDT_CONVERGED && error_m(4) < 0.08);
}

TEST(test_late_stamps_change_nothing)
{
    for (size_t i = 0; i < 10; i++)
        drive_one(i);
    const struct ndt_pose last = result.T_odom_base;
    const int64_t late[] = {stamp_of(9), stamp_of(9) - 1, stamp_of(4), stamp_of(0) - 100 * STEP_NS};
    for (size_t i = 0; i < 4; i++) {
        add(late[i]);
        ck_assert_int_eq(result.outcome, NDT_REJECTED);
        ck_assert_str_eq(result.reason, "its stamp is not newer than that of the scan before");
        ck_assert_mem_eq(&last, &result.T_odom_base, sizeof(last));
    }
    add(INT64_MAX);
    ck_assert_int_eq(result.outcome, NDT_REJECTED);
    add(INT64_MIN);
    ck_assert_int_eq(result.outcome, NDT_REJECTED);
    for (size_t i = 10; i < 20; i++)
        drive_one(i);
    ck_assert(result.segment == 0 && error_m(19) < 0.08);
}

TEST(test_time_that_restarts_begins_a_segment)
{
    for (size_t i = 0; i < 10; i++)
        drive_one(i);
    const struct ndt_pose last = result.T_odom_base;
    for (size_t i = 0; i < 7; i++) {
        measure(i < 2 ? 9 : 7 + i);
        add(stamp_of(i) - 1000 * STEP_NS);
        if (i < 2) { /* strays, so far */
            ck_assert_int_eq(result.outcome, NDT_REJECTED);
            continue;
        }
        ck_assert_uint_eq(result.segment, 1);
        ck_assert_int_eq(result.outcome, NDT_CONVERGED);
    }
    ck_assert_double_eq_tol(ndt_pose_distance_m(&last, &result.T_odom_base), 3.2, 0.1);
}

TEST(test_a_corridor_is_reported)
{
    world.kind = WORLD_CORRIDOR;
    int degenerate = 0;
    for (size_t i = 0; i < SCANS; i++) {
        drive_one(i);
        degenerate += result.is_degenerate;
    }
    ck_assert_int_gt(degenerate, SCANS / 2);
    begin();
    degenerate = 0;
    for (size_t i = 0; i < SCANS; i++) {
        const struct ndt_track_odometry_sample wheels = {
            .stamp_ns = stamp_of(i), .has_pose = 1, .T_odom_base = truth(i), .has_twist = 1, .twist = DRIVING};
        ndt_odometry_add_wheels(odometry, &wheels);
        drive_one(i);
        degenerate += result.is_degenerate;
    }
    ck_assert_int_eq(degenerate, 0);
    ck_assert_msg(error_m(SCANS - 1) < 0.5, "off by %g m", error_m(SCANS - 1));
}

TEST(test_a_lost_pose_begins_a_segment)
{
    params.lost_scans = 3;
    begin();
    for (size_t i = 0; i < 10; i++)
        drive_one(i);
    struct ndt_random random = ndt_random_stream(7, 0, 0);
    for (size_t i = 10; i < 13; i++) {
        measure(i);
        for (size_t k = 0; k < scan.count; k++) { /* rain, or a broken sensor */
            scan.x_m[k] = (float)ndt_random_between(&random, -30, 30);
            scan.y_m[k] = (float)ndt_random_between(&random, -30, 30);
            scan.z_m[k] = (float)ndt_random_between(&random, -30, 30);
        }
        add(stamp_of(i));
        ck_assert(result.outcome != NDT_CONVERGED && result.reason[0] != '\0' && !result.is_keyframe);
    }
    drive_one(13);
    ck_assert_uint_eq(result.segment, 1);
    drive_one(14);
    ck_assert(result.outcome == NDT_CONVERGED && result.segment == 1);
    ck_assert(error_m(14) < 1); /* the prediction went on with the velocity */
}

TEST(test_limits_of_keyframes)
{
    const struct limit {
        double keyframe_m, keyframe_rad;
        uint32_t keyframe_scans, window, max_keyframes;
    } limits[] = {{0, 0, 0, 1, 1}, {0, 0, 1, 2, 3}, {1, 0.3, 1, 1, 200}, {100, 6, 0, 20, 20}, {2, 1, 10, 5, 5}};
    for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
        ndt_odometry_params_default(&params);
        params.keyframe_m = limits[k].keyframe_m;
        params.keyframe_rad = limits[k].keyframe_rad;
        params.keyframe_scans = limits[k].keyframe_scans;
        params.window = limits[k].window;
        params.max_keyframes = limits[k].max_keyframes;
        begin();
        for (size_t i = 0; i < 12; i++) {
            drive_one(i);
            ck_assert_msg(error_m(i) < 0.3, "limits %zu, scan %zu: off by %g m", k, i, error_m(i));
            ck_assert(limits[k].keyframe_m > 0 || result.is_keyframe);
            ck_assert_uint_le(ndt_odometry_map(odometry)->points, (uint64_t)POINTS * limits[k].max_keyframes);
        }
    }
}

TEST(test_wrong_parameters_are_named)
{
    struct ndt_odometry *none;
    const struct wrong {
        size_t at;
        double value;
        const char *text;
    } wrong[] = {
        {offsetof(struct ndt_odometry_params, map_voxel_m), 0, "odometry: map_voxel_m 0 is outside 0.01 .. 10"},
        {offsetof(struct ndt_odometry_params, keyframe_m), -1, "odometry: keyframe_m -1 is outside 0 .. 100"},
        {offsetof(struct ndt_odometry_params, near_m), NAN, "odometry: near_m nan is outside 0 .. 1000"},
        {offsetof(struct ndt_odometry_params, map_voxel_m), 0.4,
         "odometry: cells of 1 m need points thinned to 0.25 m or less, not map_voxel_m 0.4"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ndt_odometry_params_default(&params);
        memcpy((char *)&params + wrong[i].at, &wrong[i].value, sizeof(double));
        ck_assert_int_eq(ndt_odometry_create(&none, &params, backend, &err), NDT_ERR_ARGUMENT);
        ck_assert_str_eq(err.text, wrong[i].text);
        ck_assert_ptr_null(none);
    }
    ndt_odometry_params_default(&params);
    params.max_keyframes = 19;
    ck_assert_int_eq(ndt_odometry_create(&none, &params, backend, &err), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "odometry: max_keyframes 19 is outside 20 .. 100000");
}

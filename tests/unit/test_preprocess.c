/* Preprocessing: crop, deskew, filter and sample. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/preprocess.h"
#include "ndt/preprocess_plan.h"
#include "run_tests.h"

static struct ndt_error err;
static struct ndt_cloud raw;
static struct ndt_preprocess_params params;
static struct ndt_preprocessor *pre;
static const struct ndt_cloud *out;
static struct ndt_sweep sweep;

static void add(double x, double y, double z, double time_s)
{
    must(ndt_cloud_reserve(&raw, raw.count + 1, NDT_CLOUD_TIME, &err));
    raw.x_m[raw.count] = (float)x;
    raw.y_m[raw.count] = (float)y;
    raw.z_m[raw.count] = (float)z;
    raw.time_s[raw.count++] = (float)time_s;
}

static void setup(void)
{
    ndt_cloud_init(&raw);
    ndt_preprocess_params_default(&params);
    must(ndt_preprocessor_create(&pre, &err));
}

static void teardown(void)
{
    ndt_cloud_free(&raw);
    ndt_preprocessor_destroy(pre);
}

static void run(uint64_t sequence, const struct ndt_sweep_motion *motion)
{
    must(ndt_preprocess_sweep(&params, &raw, &sweep, &err));
    must(ndt_preprocess(pre, &params, &raw, &sweep, sequence, motion, &out, &err));
}

FIXTURE(setup, teardown)

TEST(useless_points_are_dropped)
{
    add(5, 0, 0, 0);
    add(NAN, 0, 0, 0);
    add(0, INFINITY, 0, 0);
    add(0.3, 0, 0, 0); /* nearer than min_range_m */
    add(500, 0, 0, 0); /* farther than max_range_m */
    add(5, 0, -40, 0); /* below the box */
    add(1e30, 1e30, 0, 0);
    params.crop_min_m[2] = -3;
    run(0, NULL);
    ck_assert_uint_eq(out->count, 1);
    ck_assert_float_eq(out->x_m[0], 5);
    raw.count = 0;
    run(0, NULL);
    ck_assert_uint_eq(out->count, 0);
}

TEST(a_cell_becomes_its_mean)
{
    add(10.1, 2.1, 0.1, 0);
    add(-7.4, 2.1, 0.1, 0);
    add(10.3, 2.3, 0.4, 0);
    run(0, NULL);
    ck_assert_uint_eq(out->count, 2);
    ck_assert_float_eq_tol(out->x_m[0], 10.2f, 1e-5f);
    ck_assert_float_eq_tol(out->z_m[0], 0.25f, 1e-5f);
    ck_assert_float_eq_tol(out->x_m[1], -7.4f, 1e-5f);
    params.voxel_m = 0;
    run(0, NULL);
    ck_assert_uint_eq(out->count, 3);
}

TEST(the_sample_is_exact_seeded_and_in_order)
{
    float first[100];
    for (int i = 0; i < 5000; i++)
        add(2 + 0.01 * i, 0, 0, 0);
    params.voxel_m = 0;
    params.sample_count = 100;
    run(3, NULL);
    ck_assert_uint_eq(out->count, 100);
    memcpy(first, out->x_m, sizeof(first));
    for (int i = 1; i < 100; i++)
        ck_assert_float_lt(first[i - 1], first[i]);
    for (int i = 0; i < 100; i++) { /* one of every fifty: spread over the scan */
        ck_assert_float_ge(first[i], (float)(2 + 0.01 * 50 * i) - 1e-4f);
        ck_assert_float_lt(first[i], (float)(2 + 0.01 * 50 * (i + 1)) - 1e-4f);
    }
    run(3, NULL);
    ck_assert_mem_eq(first, out->x_m, sizeof(first));
    run(4, NULL);
    ck_assert_mem_ne(first, out->x_m, sizeof(first));
}

/* A moving sensor measures each fixed point at its own time: after deskewing they coincide with the fixed points.
 */
static void sweep_of_fixed_points(const struct ndt_twist *twist, enum ndt_deskew_mode deskew)
{
    raw.count = 0;
    for (int i = -45; i <= 45; i++) {
        const double azimuth_rad = i * 2 * M_PI / 92;
        const double x_m[3] = {20 * cos(azimuth_rad), 20 * sin(azimuth_rad), 1};
        double seen_m[3] = {x_m[0], x_m[1], x_m[2]}, t_s = 0;
        for (int k = 0; k < 10; k++) { /* the time depends on where the point is seen: iterate */
            const double turn = atan2(seen_m[1], seen_m[0]) / (2 * M_PI) * 0.1;
            t_s = deskew == NDT_DESKEW_AZIMUTH_CW ? -turn : turn;
            const struct ndt_pose motion = ndt_pose_exp(twist, t_s), back = ndt_pose_inverse(&motion);
            ndt_pose_apply(&back, x_m, seen_m);
        }
        add(seen_m[0], seen_m[1], seen_m[2], t_s);
    }
}

static void assert_fixed(double tolerance_m)
{
    ck_assert_uint_eq(out->count, 91);
    for (size_t i = 0; i < out->count; i++) {
        const double azimuth_rad = ((double)i - 45) * 2 * M_PI / 92;
        ck_assert_double_le(fabs(out->x_m[i] - 20 * cos(azimuth_rad)), tolerance_m);
        ck_assert_double_le(fabs(out->y_m[i] - 20 * sin(azimuth_rad)), tolerance_m);
        ck_assert_double_le(fabs((double)out->z_m[i] - 1), tolerance_m);
    }
}

TEST(every_mode_deskews_a_sweep)
{
    const enum ndt_deskew_mode modes[] = {NDT_DESKEW_TIME, NDT_DESKEW_AZIMUTH_CW, NDT_DESKEW_AZIMUTH_CCW};
    const struct ndt_sweep_motion motion = {.twist = {{15, 0.5, 0.2}, {0.05, -0.03, 0.8}}};
    params.voxel_m = 0;
    for (size_t m = 0; m < 3; m++) {
        params.deskew = modes[m];
        sweep_of_fixed_points(&motion.twist, modes[m]);
        run(0, &motion);
        assert_fixed(2e-3);
        ck_assert_double_le(fabs(sweep.reference_s), 1e-3);
        run(0, NULL); /* without the motion the points are up to 80 cm off */
        ck_assert_double_ge(fabs(out->x_m[0] - 20 * cos(-45 * 2 * M_PI / 92)), 0.5);
        must(ndt_preprocess_again(pre, &motion, &out, &err));
        assert_fixed(2e-3);
    }
}

TEST(time_is_relative_to_mid_sweep)
{
    const struct ndt_sweep_motion motion = {.twist = {{10, 0, 0}, {0, 0, 0}}};
    params.voxel_m = 0;
    params.deskew = NDT_DESKEW_TIME;
    add(20, 0, 0, 0.0); /* a stamp at the start of the sweep */
    add(20, 0, 0, 0.1);
    run(0, &motion);
    ck_assert_double_eq(sweep.reference_s, 0.05);
    ck_assert_float_eq_tol(out->x_m[0], 19.5f, 1e-5f);
    ck_assert_float_eq_tol(out->x_m[1], 20.5f, 1e-5f);
}

/* A turn of `turn_us`, clockwise from behind, with a stamp `stamp_us` after its begin. */
static void turn_with_stamp(int turn_us, int stamp_us)
{
    raw.count = 0;
    for (int i = 0; i < 2000; i++) {
        const int time_us = (int)((int64_t)turn_us * i / 1999);
        const double azimuth_rad = M_PI - 2 * M_PI * (time_us + 0.1) / (turn_us + 0.2);
        const double range_m = 8 + 3 * sin(5 * azimuth_rad) + 0.01 * (i % 7);
        add(range_m * cos(azimuth_rad), range_m * sin(azimuth_rad), 0.2 * (i % 16), (time_us - stamp_us) * 1e-6);
    }
}

static void assert_same_points(const struct ndt_cloud *a, const struct ndt_cloud *b)
{
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_mem_eq(a->x_m, b->x_m, a->count * sizeof(float));
    ck_assert_mem_eq(a->y_m, b->y_m, a->count * sizeof(float));
    ck_assert_mem_eq(a->z_m, b->z_m, a->count * sizeof(float));
    ck_assert_mem_eq(a->time_s, b->time_s, a->count * sizeof(float));
}

/* Stamps at the begin, in the middle and at the end; sweeps of odd lengths have no whole microsecond in the middle.
 */
TEST(stamps_anywhere_in_the_sweep_give_the_same_points)
{
    static const int turns_us[] = {100000, 99999, 100001, 49987, 200003};
    const struct ndt_sweep_motion motion = {.twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}}},
                                  other = {.twist = {{13, 0, 0}, {0, 0, 0.3}}};
    struct ndt_cloud first, first_again;
    ndt_cloud_init(&first);
    ndt_cloud_init(&first_again);
    params.deskew = NDT_DESKEW_TIME;
    params.sample_count = 500;
    for (size_t t = 0; t < 5; t++)
        for (int stamp = 0; stamp < 3; stamp++) {
            const int stamp_us = turns_us[t] * stamp / 2;
            params.voxel_m = t % 2 ? 0 : 0.5;
            turn_with_stamp(turns_us[t], stamp_us);
            run(7, &motion);
            ck_assert_double_eq_tol(sweep.reference_s, (turns_us[t] / 2 - stamp_us) * 1e-6, 1e-12);
            if (stamp == 0)
                must(ndt_cloud_copy(&first, out, &err));
            assert_same_points(out, &first);
            must(ndt_preprocess_again(pre, &other, &out, &err));
            if (stamp == 0)
                must(ndt_cloud_copy(&first_again, out, &err));
            assert_same_points(out, &first_again);
        }
    ndt_cloud_free(&first);
    ndt_cloud_free(&first_again);
}

TEST(azimuths_give_the_same_points_for_every_stamp)
{
    static const enum ndt_sweep_stamp stamps[] = {NDT_STAMP_BEGIN, NDT_STAMP_MIDDLE, NDT_STAMP_END};
    static const double references_s[] = {0.05, 0, -0.05};
    const struct ndt_sweep_motion motion = {.twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}}};
    struct ndt_cloud first;
    ndt_cloud_init(&first);
    turn_with_stamp(100000, 0);
    params.deskew = NDT_DESKEW_AZIMUTH_CW;
    for (int i = 0; i < 3; i++) {
        params.sweep_stamp = stamps[i];
        run(7, &motion);
        ck_assert_double_eq(sweep.reference_s, references_s[i]);
        if (i == 0)
            must(ndt_cloud_copy(&first, out, &err));
        assert_same_points(out, &first);
    }
    ndt_cloud_free(&first);
}

/* The arc tangent is good to 1e-5 rad, or 0.16 us. */
TEST(times_by_field_and_by_azimuth_agree)
{
    const struct ndt_sweep_motion motion = {.twist = {{15, 0.5, 0}, {0, 0, 0.4}}};
    struct ndt_cloud by_field;
    ndt_cloud_init(&by_field);
    params.voxel_m = 0;
    params.sample_count = 0;
    turn_with_stamp(100000, 0);
    params.deskew = NDT_DESKEW_TIME;
    run(0, &motion);
    must(ndt_cloud_copy(&by_field, out, &err));
    const double reference_s = sweep.reference_s;
    params.deskew = NDT_DESKEW_AZIMUTH_CW;
    params.sweep_stamp = NDT_STAMP_BEGIN;
    run(0, &motion);
    ck_assert_double_eq(sweep.reference_s, reference_s);
    ck_assert_uint_eq(out->count, by_field.count);
    for (size_t i = 0; i < out->count; i++) {
        ck_assert_float_eq_tol(out->time_s[i], by_field.time_s[i], 1e-6f);
        ck_assert_float_eq_tol(out->x_m[i], by_field.x_m[i], 3e-5f);
        ck_assert_float_eq_tol(out->y_m[i], by_field.y_m[i], 3e-5f);
    }
    ndt_cloud_free(&by_field);
}

TEST(poses_of_a_constant_twist_are_that_twist)
{
    const struct ndt_sweep_motion motion = {.twist = {{15, -0.5, 0.2}, {0.05, -0.03, 0.8}}},
                                  other = {.twist = {{-5, 1, 0}, {0, 0, -0.3}}};
    struct ndt_sweep_motion poses = {.is_piecewise = 1}, other_poses = {.is_piecewise = 1};
    struct ndt_cloud first;
    ndt_cloud_init(&first);
    params.deskew = NDT_DESKEW_TIME;
    turn_with_stamp(100000, 0);
    run(0, &motion);
    ck_assert_double_eq(ndt_sweep_boundary_s(&sweep, 0), sweep.begin_s);
    ck_assert_double_eq(ndt_sweep_boundary_s(&sweep, NDT_PREPROCESS_SEGMENTS), sweep.end_s);
    for (int i = 0; i <= NDT_PREPROCESS_SEGMENTS; i++) {
        const double t_s = ndt_sweep_boundary_s(&sweep, i);
        poses.T_reference_at[i] = ndt_pose_exp(&motion.twist, t_s);
        other_poses.T_reference_at[i] = ndt_pose_exp(&other.twist, t_s);
    }
    must(ndt_cloud_copy(&first, out, &err));
    run(0, &poses);
    assert_same_points(out, &first);
    must(ndt_preprocess_again(pre, &other_poses, &out, &err));
    must(ndt_cloud_copy(&first, out, &err));
    run(0, &motion);
    must(ndt_preprocess_again(pre, &other, &out, &err));
    assert_same_points(out, &first);
    ndt_cloud_free(&first);
}

/* The sensor at time t, in its frame at mid-sweep: it swerves from one side to the other. */
static struct ndt_pose swerving(double t_s)
{
    const double yaw_rad = 40 * t_s * t_s;
    return (struct ndt_pose){{15 * t_s, 2 * t_s, 0}, {0, 0, sin(yaw_rad / 2), cos(yaw_rad / 2)}};
}

TEST(poses_undo_a_turn_that_no_twist_does)
{
    const struct ndt_sweep_motion twist = {.twist = {{15, 2, 0}, {0, 0, 0}}};
    struct ndt_sweep_motion poses = {.is_piecewise = 1};
    double worst_m[2] = {0};
    for (int i = -45; i <= 45; i++) {
        const double azimuth_rad = i * 2 * M_PI / 92, t_s = i / 90.0 * 0.1;
        const double x_m[3] = {20 * cos(azimuth_rad), 20 * sin(azimuth_rad), 1};
        const struct ndt_pose motion = swerving(t_s), back = ndt_pose_inverse(&motion);
        double seen_m[3];
        ndt_pose_apply(&back, x_m, seen_m);
        add(seen_m[0], seen_m[1], seen_m[2], t_s);
    }
    params.voxel_m = 0;
    params.deskew = NDT_DESKEW_TIME;
    must(ndt_preprocess_sweep(&params, &raw, &sweep, &err));
    for (int i = 0; i <= NDT_PREPROCESS_SEGMENTS; i++)
        poses.T_reference_at[i] = swerving(ndt_sweep_boundary_s(&sweep, i));
    for (int by_poses = 0; by_poses < 2; by_poses++) {
        run(0, by_poses ? &poses : &twist);
        ck_assert_uint_eq(out->count, 91);
        for (size_t i = 0; i < out->count; i++) {
            const double azimuth_rad = ((double)i - 45) * 2 * M_PI / 92;
            worst_m[by_poses] = fmax(
                worst_m[by_poses], hypot(out->x_m[i] - 20 * cos(azimuth_rad), out->y_m[i] - 20 * sin(azimuth_rad)));
        }
    }
    ck_assert_double_ge(worst_m[0], 1);
    ck_assert_double_le(worst_m[1], 1e-3);
}

TEST(impossible_times_are_dropped)
{
    static const double odd_s[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 3e38, 10.01, -10.01};
    params.voxel_m = 0;
    params.deskew = NDT_DESKEW_TIME;
    for (size_t i = 0; i < sizeof(odd_s) / sizeof(odd_s[0]); i++)
        add(20, (double)i, 0, odd_s[i]);
    ck_assert_int_eq(ndt_preprocess_sweep(&params, &raw, &sweep, &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "within 10 s"));
    add(20, 0, 1, -0.05);
    add(20, 0, 2, 0.05);
    run(0, NULL);
    ck_assert_uint_eq(out->count, 2);
    ck_assert_double_eq(sweep.reference_s, 0);
    ck_assert_double_eq_tol(sweep.end_s, 0.05, 1e-8);
}

/* 500 points in 0.1 s, of which every `every`-th is off by up to `far`. */
static void sweep_with_strays(int every, double far_s)
{
    raw.count = 0;
    for (int i = 0; i < 500; i++) {
        const int is_stray = every && i % every == 3;
        add(5 + 0.01 * i, 0, 0, is_stray ? far_s * (i % 2 ? 1 : -1) * (1 + i / 500.0) : -0.05 + 2e-4 * i);
    }
}

TEST(strays_in_time_do_not_move_the_sweep)
{
    static const double FAR_S[] = {0.4, 0.9, 4, 8, 1e9};
    struct ndt_sweep clean;
    params.deskew = NDT_DESKEW_TIME;
    params.sample_count = 0;
    params.voxel_m = 0;
    sweep_with_strays(0, 0);
    run(0, NULL);
    clean = sweep;
    ck_assert(sweep.points == 500 && sweep.strays == 0 && out->count == 500);
    for (size_t far = 0; far < sizeof(FAR_S) / sizeof(FAR_S[0]); far++) {
        sweep_with_strays(10, FAR_S[far]);
        run(0, NULL);
        ck_assert(sweep.points == 500 && sweep.strays == 50 && out->count == 450);
        ck_assert(sweep.reference_s == clean.reference_s && sweep.begin_s == clean.begin_s &&
                  sweep.end_s == clean.end_s);
    }
}

TEST(the_order_of_the_points_does_not_decide_what_strays_are)
{
    struct ndt_sweep forward;
    params.deskew = NDT_DESKEW_TIME;
    sweep_with_strays(7, 1.3);
    run(0, NULL);
    forward = sweep;
    for (size_t i = 0; i < raw.count / 2; i++) {
        const float x_m = raw.x_m[i], time_s = raw.time_s[i];
        raw.x_m[i] = raw.x_m[raw.count - 1 - i];
        raw.time_s[i] = raw.time_s[raw.count - 1 - i];
        raw.x_m[raw.count - 1 - i] = x_m;
        raw.time_s[raw.count - 1 - i] = time_s;
    }
    run(0, NULL);
    ck_assert_mem_eq(&sweep, &forward, sizeof(sweep));
}

TEST(auto_is_time_where_there_are_times)
{
    add(5, 0, 0, 0);
    ck_assert_int_eq(ndt_deskew_mode_of(NDT_DESKEW_AUTO, &raw), NDT_DESKEW_TIME);
    ck_assert_int_eq(ndt_deskew_mode_of(NDT_DESKEW_OFF, &raw), NDT_DESKEW_OFF);
    params.deskew = NDT_DESKEW_AUTO; /* has to be decided */
    ck_assert_int_eq(ndt_preprocess_sweep(&params, &raw, &sweep, &err), NDT_ERR_ARGUMENT);
    raw.time_s = NULL;
    ck_assert_int_eq(ndt_deskew_mode_of(NDT_DESKEW_AUTO, &raw), NDT_DESKEW_OFF);
}

TEST(time_mode_without_times_is_an_error)
{
    struct ndt_cloud bare;
    ndt_cloud_init(&bare);
    must(ndt_cloud_reserve(&bare, 1, 0, &err));
    bare.count = 1;
    bare.x_m[0] = bare.y_m[0] = bare.z_m[0] = 3;
    params.deskew = NDT_DESKEW_TIME;
    ck_assert_int_eq(ndt_preprocess_sweep(&params, &bare, &sweep, &err), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "time"));
    ck_assert_int_eq(ndt_preprocess(pre, &params, &bare, &sweep, 0, NULL, &out, &err), NDT_ERR_FORMAT);
    ndt_cloud_free(&bare);
}

/* ---- the deadline ---- */

/* Filtered or not: what is not ready by then is given up, and a later deadline changes no bit. */
TEST(a_deadline_ends_it_or_changes_nothing)
{
    for (int i = 0; i < 20000; i++)
        add(5 + 0.01 * (i % 1000), 0.1 * (i % 77), 0.05 * (i % 31), 0);
    for (int is_filtered = 0; is_filtered < 2; is_filtered++) {
        float x_m[1500];
        params.voxel_m = is_filtered ? 0.5 : 0;
        params.deadline_us = 0;
        run(7, NULL);
        const size_t count = out->count;
        ck_assert_uint_le(count, 1500);
        memcpy(x_m, out->x_m, count * sizeof(float));
        params.deadline_us = ndt_clock_us() - 1;
        ck_assert_int_eq(ndt_preprocess(pre, &params, &raw, &sweep, 7, NULL, &out, &err), NDT_ERR_CANCELLED);
        ck_assert_ptr_nonnull(strstr(err.text, "no time left"));
        params.deadline_us = ndt_clock_us() + 600e6;
        run(7, NULL);
        ck_assert_uint_eq(out->count, count);
        ck_assert_mem_eq(out->x_m, x_m, count * sizeof(float));
    }
}

/* ---- plans for devices ---- */

static void assert_translation(const struct ndt_preprocess_plan *plan, int boundary, double x_m)
{
    static const float turn[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    ck_assert_mem_eq(plan->boundaries[boundary], turn, sizeof(turn));
    ck_assert_float_eq_tol(plan->boundaries[boundary][3][0], (float)x_m, 1e-6f);
    ck_assert_float_eq(plan->boundaries[boundary][3][1], 0);
    ck_assert_float_eq(plan->boundaries[boundary][3][2], 0);
}

TEST(a_plan_says_what_the_host_does)
{
    const struct ndt_sweep_motion motion = {.twist = {.v_mps = {10, 0, 0}}},
                                  faster = {.twist = {.v_mps = {14, 0, 0}}};
    const struct ndt_sweep turn = {.reference_s = 0.25, .begin_s = -0.064, .end_s = 0.064};
    struct ndt_preprocess_plan plan;
    params.deskew = NDT_DESKEW_TIME;
    params.min_range_m = 2;
    params.max_range_m = 50;
    params.voxel_m = 0.5;
    params.sample_count = 321;
    params.range_offset_m = 0.0625;
    params.sweep_s = 0.125;
    for (int i = 0; i < 3; i++) {
        params.crop_min_m[i] = -10 - i;
        params.crop_max_m[i] = 20 + i;
    }
    ndt_preprocess_plan_set(&plan, &params, &turn, 3, &motion);
    ck_assert_int_eq(plan.deskew, NDT_DESKEW_TIME);
    ck_assert(plan.filtered == 1 && plan.wanted == 321 && plan.voxel_m == 0.5f && plan.sweep_s == 0.125f &&
              plan.range_offset_m == 0.0625f);
    for (int i = 0; i < 3; i++)
        ck_assert(plan.low_m[i] == -10.0f - (float)i && plan.high_m[i] == 20.0f + (float)i);
    ck_assert(plan.near_m2 == 4 && plan.far_m2 == 2500);
    ck_assert(plan.possible_low_m2 < 4 && plan.certain_low_m2 > 4 && plan.possible_low_m2 > 3.9999f &&
              plan.certain_low_m2 < 4.0001f);
    ck_assert(plan.certain_high_m2 < 2500 && plan.possible_high_m2 > 2500 && plan.certain_high_m2 > 2499.9f &&
              plan.possible_high_m2 < 2500.1f);
    ck_assert_float_eq(plan.reference_us, 250000);
    ck_assert(plan.times.begin_s == -0.064 && plan.times.length_s == 0.128);
    ck_assert_float_eq(plan.start_s, -0.064f);
    ck_assert_float_eq(plan.segments_per_s, 500);
    for (int i = 0; i < NDT_PREPROCESS_BOUNDARIES; i++)
        assert_translation(&plan, i, 10 * (-0.064 + 0.002 * i));
    ndt_preprocess_plan_set_motion(&plan, &turn, &motion, &faster);
    for (int i = 0; i < NDT_PREPROCESS_BOUNDARIES; i++)
        assert_translation(&plan, i, 4 * (-0.064 + 0.002 * i));
    const uint64_t seed = plan.seed;
    params.deskew = NDT_DESKEW_OFF;
    params.voxel_m = 0;
    ndt_preprocess_plan_set(&plan, &params, &turn, 4, &motion);
    ck_assert(plan.deskew == NDT_DESKEW_OFF && !plan.filtered && plan.seed != seed && plan.start_s == 0);
    ndt_preprocess_plan_set_motion(&plan, &turn, &motion, &faster); /* nothing to correct */
    ck_assert_float_eq(plan.boundaries[1][0][0], 0);
}

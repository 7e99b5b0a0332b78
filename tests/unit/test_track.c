/* The estimator between the scans: stamps, gaps, restarts of time, odometry, gyro, and what stays unchanged. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/random.h"
#include "ndt_track/track.h"
#include "run_tests.h"

static const int64_t START_NS = 1317042272349000000;
static struct ndt_track_params params;
static struct ndt_track track;

static int64_t after(double s)
{
    return START_NS + (int64_t)llround(s * 1e9);
}

static struct ndt_pose at(double x_m)
{
    struct ndt_pose pose = ndt_pose_identity();
    pose.t_m[0] = x_m;
    return pose;
}

static struct ndt_track_state guess(double s)
{
    struct ndt_track_state state;
    ck_assert(ndt_track_predict(&track, after(s), &state));
    return state;
}

static double guess_x(double s)
{
    return guess(s).T_map_base.t_m[0];
}

/* A scan whose alignment found this pose: as with ndt.prior off, the pose counts as it is. */
static void found(double s, double x_m)
{
    const struct ndt_track_state predicted = guess(s);
    const struct ndt_track_measurement measurement = {.T_map_base = at(x_m), .is_converged = 1};
    struct ndt_track_state updated;
    ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
    ndt_track_commit(&track, &updated);
}

/* A scan that told nothing. */
static void found_nothing(double s)
{
    const struct ndt_track_state predicted = guess(s);
    ndt_track_coast(&track, &predicted);
}

static void setup(void)
{
    const struct ndt_pose start = ndt_pose_identity();
    ndt_track_params_default(&params);
    params.max_prediction_s = 1;
    ndt_track_init(&track, &params);
    ndt_track_reset(&track, START_NS, &start, NULL, NULL);
}

/* ---- stamps ---- */

FIXTURE(setup, NULL)

TEST(no_pose_no_guess)
{
    struct ndt_track_state state;
    ndt_track_init(&track, &params);
    ck_assert(!ndt_track_predict(&track, START_NS, &state));
    ck_assert_double_eq(state.T_map_base.q_xyzw[3], 1);
    ck_assert_double_eq(state.T_map_base.t_m[0], 0);
}

TEST(velocity_follows_data_stamps)
{
    ck_assert_double_eq(guess_x(0.1), 0); /* no velocity known yet */
    ck_assert_int_eq(guess(0.1).source, NDT_TRACK_POSE);
    found(0.1, 1);
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
    ck_assert_int_eq(guess(0.2).source, NDT_TRACK_TWIST);
    ck_assert_double_eq_tol(guess_x(0.35), 3.5, 1e-9); /* a dropped scan changes nothing */
    ck_assert_double_eq_tol(guess_x(0.05), 0.5, 1e-9); /* nor does one out of order */
    found(0.05, 1);
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
    found(0.1, 1); /* a duplicate keeps the velocity */
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
}

TEST(duplicates_and_late_scans_change_no_bit)
{
    found(0.1, 1);
    found(0.2, 2);
    const struct ndt_track before = track;
    found(0.2, 77);
    found_nothing(0.2);
    found(0.15, 77);
    found_nothing(0.15);
    found(-0.75, -50); /* late by less than the longest prediction: an ordinary scan out of order */
    ck_assert_mem_eq(&before, &track, sizeof(track));
}

/* The first scan often has the stamp of the initial pose: it is not a duplicate. */
TEST(a_scan_at_the_stamp_of_the_initial_pose_counts)
{
    found(0, 0.5);
    ck_assert_double_eq_tol(guess_x(0), 0.5, 1e-12);
    found(0, 9);
    ck_assert_double_eq_tol(guess_x(0), 0.5, 1e-12);
}

/* Nor is it late: its points were measured before, on average, where the stamp is that of the last one. */
TEST(a_scan_whose_sweep_ends_at_the_initial_pose_counts)
{
    found(-0.05, 0.5);
    ck_assert_double_eq_tol(guess_x(-0.05), 0.5, 1e-12);
    found(-0.06, 9); /* now there is a scan */
    ck_assert_double_eq_tol(guess_x(-0.05), 0.5, 1e-12);
}

TEST(a_scan_long_before_the_initial_pose_changes_nothing)
{
    found(-0.15, 9);
    ck_assert_double_eq_tol(guess_x(0), 0, 1e-12);
}

TEST(a_scan_after_one_that_told_nothing_counts)
{
    found(0.1, 1);
    found_nothing(0.2);
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
    found(0.2, 2.5); /* the same stamp once more */
    ck_assert_double_eq_tol(guess_x(0.2), 2.5, 1e-9);
}

/* The scan that a search was for updates the prediction there, and one that is in the state already does not. */
TEST(a_prediction_that_is_adopted_is_updated)
{
    for (int is_measured = 0; is_measured < 2; is_measured++) {
        struct ndt_track_state place = guess(0.1);
        place.T_map_base.t_m[0] = 40;
        ndt_track_adopt(&track, &place, is_measured);
        found(0.1, 40.5);
        ck_assert_double_eq_tol(guess_x(0.1), is_measured ? 40 : 40.5, 1e-9);
    }
}

TEST(scans_that_tell_nothing_keep_the_prediction)
{
    found(0.1, 1);
    found_nothing(0.2);
    ck_assert_double_eq_tol(guess_x(0.3), 3, 1e-9);
    for (int i = 3; i <= 11; i++) /* up to max_prediction_s after the last result */
        found_nothing(0.1 * i);
    ck_assert_double_eq_tol(guess_x(1.2), 12, 1e-9);
    found_nothing(1.2);
    ck_assert_double_eq_tol(guess_x(1.3), 12, 1e-9); /* nothing confirms the velocity any longer */
    ck_assert(!guess(1.3).has_twist);
}

TEST(long_gap_resets_the_velocity)
{
    found(0.1, 1);
    const double close = guess(0.2).P[0], far = guess(5).P[0];
    ck_assert_double_eq_tol(guess_x(5), 1, 1e-9);
    ck_assert_double_lt(close, 1.1);
    ck_assert_double_ge(far, 4.9 * 4.9); /* a metre per second */
    found(5, 2);
    ck_assert_double_eq_tol(guess_x(5.1), 2, 1e-9);
}

/* A restarted recording: its results count, and the velocity is known again after the second scan. */
TEST(restarted_time_is_followed)
{
    found(0.1, 1);
    found(60, 2);
    ck_assert_double_eq_tol(guess_x(1.0), 2, 1e-9); /* the last pose, no motion */
    found(1.0, 5);
    ck_assert_double_eq_tol(guess_x(1.1), 5, 1e-9);
    found(1.1, 6);
    ck_assert_double_eq_tol(guess_x(1.2), 7, 1e-9);
}

TEST(single_future_stamp_is_recovered)
{
    found(0.1, 1);
    found_nothing(1e6);
    found_nothing(0.2); /* told nothing: the pose is kept with the new time */
    ck_assert_double_eq_tol(guess_x(0.3), 1, 1e-9);
    found(0.3, 4);
    ck_assert_double_eq_tol(guess_x(0.4), 4 + 3 * 1.0, 1e-9);
}

/* 10 ms after the initial pose a difference says nothing about the velocity. */
TEST(short_differences_give_no_velocity)
{
    found(0.01, 1);
    ck_assert_double_eq_tol(guess_x(0.11), 1, 1e-9);
    found(0.11, 2);
    ck_assert_double_eq_tol(guess_x(0.21), 3, 1e-9);
}

TEST(extreme_stamps_are_no_error)
{
    const int64_t stamps[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    found(0.1, 1);
    for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
        struct ndt_track_state state;
        ck_assert(ndt_track_predict(&track, stamps[i], &state));
        ck_assert(ndt_pose_is_finite(&state.T_map_base));
        ndt_track_coast(&track, &state);
        ck_assert_double_eq(track.state.T_map_base.t_m[0], 1);
    }
}

/* ---- odometry ---- */

static void odometry(double s, int has_pose, double x_m, int has_twist, double v_mps)
{
    const struct ndt_track_odometry_sample sample = {.stamp_ns = after(s),
                                                     .has_pose = has_pose,
                                                     .has_twist = has_twist,
                                                     .T_odom_base = at(x_m),
                                                     .twist = {{v_mps, 0, 0}, {0, 0, 0}}};
    ndt_track_odometry(&track, &sample);
}

TEST(odometry_poses_are_interpolated)
{
    odometry(-0.01, 1, 100, 0, 0);
    for (int i = 0; i < 400; i++) /* more than the ring holds */
        odometry(i * 0.02, 1, 100 + 0.2 + i * 0.4, 0, 0);
    found(7.0, 1);
    ck_assert_double_eq_tol(guess_x(7.11), 1 + 0.11 * 20, 1e-9);
    ck_assert_double_eq_tol(guess_x(8.08), 1 + 1.08 * 20, 1e-6); /* extrapolated from the last sample */
    ck_assert_int_eq(guess(7.11).source, NDT_TRACK_ODOMETRY);
    ck_assert_double_eq_tol(guess(7.11).twist.v_mps[0], 20, 1e-6);
}

TEST(odometry_twists_are_integrated)
{
    for (int i = 0; i <= 10; i++)
        odometry(i * 0.1, 0, 0, 1, i < 5 ? 2 : 4);
    ck_assert_double_eq_tol(guess_x(1.0), 4 * 0.1 * 2 + 6 * 0.1 * 4, 1e-9);
    ck_assert_int_eq(guess(1.0).source, NDT_TRACK_ODOMETRY_TWIST);
    odometry(0.5, 0, 0, 1, 1000); /* out of order: ignored */
    odometry(1.0, 0, 0, 1, 1000); /* a duplicate too */
    ck_assert_double_eq_tol(guess_x(1.0), 4 * 0.1 * 2 + 6 * 0.1 * 4, 1e-9);
}

/* Twists alone are trusted less than poses. */
TEST(integrated_twists_are_less_certain)
{
    for (int i = 0; i <= 10; i++)
        odometry(i * 0.1, 1, 2 * 0.1 * i, 1, 2);
    const struct ndt_track_state poses = guess(1.0);
    setup();
    ndt_track_init(&track, &params);
    const struct ndt_pose start = ndt_pose_identity();
    ndt_track_reset(&track, START_NS, &start, NULL, NULL);
    for (int i = 0; i <= 10; i++)
        odometry(i * 0.1, 0, 0, 1, 2);
    const struct ndt_track_state twists = guess(1.0);
    ck_assert_double_eq_tol(twists.T_map_base.t_m[0], poses.T_map_base.t_m[0], 1e-9);
    ck_assert_double_gt(twists.P[0], poses.P[0]);
    ck_assert_double_gt(twists.P[5 * NDT_TRACK_STATES + 5], poses.P[5 * NDT_TRACK_STATES + 5]);
}

/* Late odometry that ends before the scan is extrapolated for 0.3 s, with more noise; then it is not used. */
TEST(odometry_that_ends_early_is_extrapolated_for_a_while)
{
    for (int i = 0; i <= 10; i++)
        odometry(i * 0.02, 1, 0.1 * i, 0, 0); /* 5 m/s until 0.2 s */
    found(0.2, 1);
    ck_assert_double_eq_tol(guess_x(0.45), 1 + 0.25 * 5, 1e-9);
    ck_assert_int_eq(guess(0.45).source, NDT_TRACK_ODOMETRY);
    struct ndt_track longer = track;
    for (int i = 11; i <= 25; i++)
        ndt_track_odometry(&longer, &(struct ndt_track_odometry_sample){
                                        .stamp_ns = after(i * 0.02), .has_pose = 1, .T_odom_base = at(0.1 * i)});
    struct ndt_track_state measured;
    ck_assert(ndt_track_predict(&longer, after(0.45), &measured));
    ck_assert_double_gt(guess(0.45).P[0], measured.P[0] + 1e-5);
    ck_assert_int_ne(guess(0.55).source, NDT_TRACK_ODOMETRY);
}

/* Odometry that begins after the last scan does not reach: the velocity predicts, until it does. */
TEST(odometry_that_begins_late_waits_for_the_next_scan)
{
    found(0.1, 1);
    odometry(0.15, 1, 50, 0, 0);
    odometry(0.2, 1, 50.5, 0, 0);
    ck_assert_int_eq(guess(0.2).source, NDT_TRACK_TWIST);
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
    found(0.2, 2);
    odometry(0.3, 1, 51.5, 0, 0);
    ck_assert_int_eq(guess(0.3).source, NDT_TRACK_ODOMETRY);
    ck_assert_double_eq_tol(guess_x(0.3), 3, 1e-9);
}

/* A hole in the odometry is bridged by its poses: a wheel keeps counting. */
TEST(a_hole_between_odometry_poses_is_interpolated)
{
    odometry(0, 1, 10, 0, 0);
    odometry(0.1, 1, 11, 0, 0);
    odometry(2.1, 1, 31, 0, 0);
    found(0.1, 0);
    ck_assert_int_eq(guess(1.5).source, NDT_TRACK_ODOMETRY);
    ck_assert_double_eq_tol(guess_x(1.5), 14, 1e-9);
}

static void odometry_of_scans(double s, double x_m)
{
    ndt_track_odometry(&track, &(struct ndt_track_odometry_sample){
                                   .stamp_ns = after(s), .has_pose = 1, .is_of_scans = 1, .T_odom_base = at(x_m)});
}

/* LiDAR odometry has noise of its own, and neither scale nor bias: its whole motion counts. */
TEST(odometry_of_scans_predicts_with_its_own_noise)
{
    found(0.1, 1);
    track.state.scale = 0.01;
    odometry_of_scans(0.1, 20); /* which tells no velocity: the estimate moves on as before */
    ck_assert_double_eq_tol(guess_x(0.2), 2, 1e-9);
    odometry_of_scans(0.3, 22);
    const struct ndt_track_state predicted = guess(0.3);
    ck_assert(predicted.is_of_scans);
    ck_assert_double_eq_tol(predicted.T_map_base.t_m[0], 3, 1e-9);
    ck_assert_double_eq_tol(predicted.twist.v_mps[0], 10, 1e-9);
    ck_assert_double_gt(predicted.P[0] - track.state.P[0], 0.05 * 0.05 * 0.2);
    ck_assert_double_eq(guess(0.1).T_map_base.t_m[0], 1);
    ndt_track_forget_scans(&track);
    ck_assert(!guess(0.3).is_of_scans);
}

/* A carrier that moves otherwise than a constant twist is as agile where odometry of the scans tells the motion. */
TEST(odometry_of_scans_hides_no_agility)
{
    const struct ndt_pose start = at(0);
    ndt_track_reset(&track, START_NS, &start, &(struct ndt_twist){.v_mps = {0}}, NULL);
    double x_m = 0;
    odometry_of_scans(0, 0);
    for (int i = 1; i <= 20; i++) {
        x_m += i % 2 ? 0.5 : -0.5;
        odometry_of_scans(0.1 * i, x_m);
        struct ndt_observation seen = {0};
        for (int k = 0; k < 6; k++)
            seen.curvature[7 * k] = seen.information[0][7 * k] = 1e4;
        const struct ndt_track_state predicted = guess(0.1 * i);
        ck_assert(predicted.is_of_scans);
        ck_assert_double_eq_tol(predicted.T_map_base.t_m[0], x_m, 0.05);
        const struct ndt_track_measurement measurement = {
            .T_map_base = at(x_m), .observation = &seen, .twist = predicted.twist, .is_converged = 1};
        struct ndt_track_state updated;
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ndt_track_commit(&track, &updated);
    }
    ck_assert_double_gt(track.state.process_noise_scale, 5);
}

/* Between poses of two sources there is no motion, however near they are. */
TEST(odometry_of_another_source_replaces_the_other)
{
    odometry_of_scans(0, 5);
    odometry_of_scans(0.2, 6);
    ck_assert(isinf(ndt_track_input_age_s(&track, after(0.2))));
    odometry(0.3, 1, 6.5, 0, 0);
    ck_assert_int_eq(guess(0.3).source, NDT_TRACK_POSE);
    ck_assert_double_eq_tol(ndt_track_input_age_s(&track, after(0.5)), 0.2, 1e-9);
    ndt_track_forget_scans(&track); /* wheels stay */
    found(0.3, 1);
    odometry(0.4, 1, 7.5, 0, 0);
    ck_assert_double_eq_tol(guess_x(0.4), 2, 1e-9);
    ck_assert_uint_eq(track.odometry_restarts.count, 0);
}

TEST(odometry_bridges_scans_that_tell_nothing)
{
    for (int i = 0; i <= 250; i++)
        odometry(i * 0.02, 1, 0.1 * i, 0, 0);
    for (int i = 1; i <= 45; i++)
        found_nothing(0.1 * i);
    ck_assert_double_eq_tol(guess_x(4.9), 24.5, 1e-9);
    ck_assert(guess(4.9).has_twist);
    ck_assert_double_eq_tol(guess(4.9).twist.v_mps[0], 5, 1e-6);
}

TEST(backwards_prediction_undoes_the_way_there)
{
    for (int i = 0; i <= 20; i++)
        odometry(i * 0.05, 1, 0.1 * i * i, 0, 0);
    found(0.8, 7);
    ck_assert_double_eq_tol(guess_x(0.6), 7 - 0.1 * (16 * 16 - 12 * 12), 1e-9);
    ck_assert_double_ge(guess(0.6).P[0], track.state.P[0]);
}

TEST(odometry_of_restarted_time_is_followed)
{
    for (int i = 0; i < 10; i++)
        odometry(60 + i * 0.1, 0, 0, 1, 2);
    odometry(0, 0, 0, 1, 3);
    odometry(0.5, 0, 0, 1, 3);
    ck_assert_double_eq_tol(guess_x(0.5), 1.5, 1e-9);
}

/* ---- gyro ---- */

static void imu(double s, double w_radps)
{
    const struct ndt_track_imu_sample sample = {.stamp_ns = after(s), .angular_velocity_radps = {0, 0, w_radps}};
    ndt_track_imu(&track, &sample);
}

static double yaw(const struct ndt_pose *pose)
{
    return 2 * atan2(pose->q_xyzw[2], pose->q_xyzw[3]);
}

TEST(the_gyro_turns_the_prediction)
{
    for (int i = 0; i <= 100; i++)
        imu(i * 0.01, i <= 10 ? 0 : 0.5);
    found(0.1, 1);
    const struct ndt_track_state state = guess(0.3);
    ck_assert_int_eq(state.source, NDT_TRACK_GYRO);
    ck_assert_double_eq_tol(yaw(&state.T_map_base), 0.1 - 0.0025, 1e-9); /* the first sample rises */
    ck_assert_double_eq_tol(state.T_map_base.t_m[0], 1 + 2 * sin(0.0975) / 0.0975, 2e-3); /* 2 m along the curve */
    ck_assert_double_eq_tol(state.T_map_base.t_m[1], 2 * (1 - cos(0.0975)) / 0.0975, 5e-3);
    ck_assert_double_eq_tol(state.twist.w_radps[2], 0.5, 1e-9);
}

TEST(odometry_is_preferred_to_the_gyro)
{
    for (int i = 0; i <= 100; i++) {
        imu(i * 0.01, 0.5);
        odometry(i * 0.01, 1, 0.1 * i, 0, 0);
    }
    ck_assert_int_eq(guess(0.3).source, NDT_TRACK_ODOMETRY);
    ck_assert_int_eq(guess(1.4).source == NDT_TRACK_ODOMETRY, 0); /* neither reaches so far */
}

TEST(a_hole_in_the_gyro_is_not_bridged)
{
    for (int i = 0; i <= 100; i++)
        if (i < 20 || i > 45)
            imu(i * 0.01, 0.5);
    found(0.1, 1);
    ck_assert_int_eq(guess(0.19).source, NDT_TRACK_GYRO);
    ck_assert_int_eq(guess(0.3).source, NDT_TRACK_TWIST);
    ck_assert_int_eq(guess(0.5).source, NDT_TRACK_TWIST);
}

TEST(repeated_samples_are_ignored)
{
    for (int i = 0; i <= 20; i++)
        imu(i * 0.01, 0.5);
    const struct ndt_track before = track;
    imu(0.2, 9);
    imu(0.1, 9);
    ck_assert_mem_eq(&before, &track, sizeof(track));
    imu(-5, 0.1); /* time restarted */
    imu(-4.99, 0.1);
    ck_assert_uint_eq(track.imu.count, 2);
}

/* Motion within a sweep: none without samples, and that of the gyro with them. */
TEST(motion_within_a_sweep)
{
    const double times[3] = {-0.05, 0, 0.05};
    struct ndt_pose poses[3];
    found(0.1, 1);
    struct ndt_track_state state = guess(0.2);
    ck_assert(!ndt_track_motion(&track, &state, times, 3, poses));
    for (int i = 0; i <= 40; i++)
        imu(i * 0.01, i < 20 ? 0 : 1.0); /* begins to turn at 0.2 s: rises within a sample */
    state = guess(0.2);
    ck_assert(ndt_track_motion(&track, &state, times, 3, poses));
    ck_assert_double_eq_tol(yaw(&poses[0]), -0.005, 1e-9);
    ck_assert_double_eq_tol(poses[0].t_m[0], -0.5, 1e-4);
    ck_assert_double_eq(ndt_pose_distance_m(&poses[1], &(struct ndt_pose){.q_xyzw = {0, 0, 0, 1}}), 0);
    ck_assert_double_eq_tol(yaw(&poses[2]), 0.05, 1e-9);
}

/* A twist that was told with the initial pose is used at once. */
TEST(initial_twist_is_used)
{
    const struct ndt_pose start = at(3);
    const struct ndt_twist twist = {{4, 0, 0}, {0, 0, 0}};
    ndt_track_reset(&track, START_NS, &start, &twist, NULL);
    ck_assert_double_eq_tol(guess_x(0.5), 5, 1e-9);
    ndt_track_reset(&track, START_NS, &start, NULL, NULL);
    ck_assert_double_eq_tol(guess_x(0.5), 3, 1e-9);
}

/* Points all around a tunnel along x whose normals are off by a milliradian, as a whole: a direction near x is not
 * observed, another one in each scan. */
static struct ndt_observation tunnel(struct ndt_random *random)
{
    struct ndt_observation out = {0};
    const double tilt[2] = {1e-3 * ndt_random_normal(random), 1e-3 * ndt_random_normal(random)};
    for (int k = 0; k < 400; k++) {
        const double angle = ndt_random_between(random, -3, 3), weight = 1e5;
        const double c = cos(angle), s = sin(angle), time_s = ndt_random_between(random, -0.05, 0.05);
        const double n[3] = {-c * tilt[0] - s * tilt[1], c, s};
        const double p[3] = {ndt_random_between(random, -40, 40), 3 * c, 3 * s};
        const double J[6] = {
            n[0], n[1], n[2], p[1] * n[2] - p[2] * n[1], p[2] * n[0] - p[0] * n[2], p[0] * n[1] - p[1] * n[0]};
        for (int i = 0; i < 36; i++) {
            const double part = weight * J[i / 6] * J[i % 6];
            out.curvature[i] += part;
            out.information[0][i] += part;
            out.information[1][i] += time_s * part;
            out.information[2][i] += time_s * time_s * part;
        }
    }
    return out;
}

/* The scans add up to nothing along x: position and velocity become as uncertain as without any. */
TEST(scans_in_a_tunnel_do_not_observe_its_axis)
{
    struct ndt_random random = {5};
    const struct ndt_pose start = at(0);
    const struct ndt_twist twist = {{8, 0, 0}, {0, 0, 0}};
    double covariance[36] = {0};
    for (int i = 0; i < 6; i++)
        covariance[7 * i] = 1e-4;
    ndt_track_reset(&track, START_NS, &start, &twist, covariance);
    for (int i = 1; i <= 100; i++) {
        const struct ndt_track_state predicted = guess(0.1 * i);
        const struct ndt_observation observation = tunnel(&random);
        const struct ndt_track_measurement measurement = {.T_map_base = predicted.T_map_base,
                                                          .observation = &observation,
                                                          .twist = predicted.twist,
                                                          .is_converged = 1};
        struct ndt_track_state updated;
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ndt_track_commit(&track, &updated);
    }
    const struct ndt_track_state last = guess(10);
    const double q = params.acceleration_noise, *P = last.P;
    ck_assert_double_gt(sqrt(P[6 * NDT_TRACK_STATES + 6]), 0.8 * q * sqrt(10));
    ck_assert_double_gt(sqrt(P[0]), 0.8 * q * sqrt(1000.0 / 3));
    ck_assert_double_lt(sqrt(P[NDT_TRACK_STATES + 1]), 0.05);
}

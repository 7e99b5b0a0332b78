/* GNSS, IMU and frames of the estimator against textbook formulas, exact motion and random samples. */
#include "run_tests.h"
#include "track_cases.h"

/* ---- GNSS ---- */

static struct ndt_track_gnss_sample antenna_at(const struct ndt_pose *T_map_base, double deviation_m)
{
    struct ndt_track_gnss_sample sample = {
        .stamp_ns = START_NS, .deviation_m = {deviation_m, deviation_m, deviation_m}, .antenna_m = {1.5, -0.5, 2}};
    ndt_pose_apply(T_map_base, sample.antenna_m, sample.position_m);
    return sample;
}

FIXTURE(setup, NULL)

/* The position of the antenna against a textbook update with Jacobians by finite differences. */
TEST(gnss_with_a_lever_arm)
{
    struct ndt_track_state state = uncertain_state();
    struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.3);
    const double offset[3] = {0.2, -0.3, 0.1};
    double H[3 * N] = {0}, R[9] = {0};
    for (int k = 0; k < 6; k++) {
        struct ndt_track_state moved = state;
        double position[3];
        move_state(&moved, k, 1e-6);
        ndt_pose_apply(&moved.T_map_base, sample.antenna_m, position);
        for (int i = 0; i < 3; i++)
            H[N * i + k] = (position[i] - sample.position_m[i]) / 1e-6;
    }
    for (int i = 0; i < 3; i++) {
        R[4 * i] = 0.3 * 0.3;
        sample.position_m[i] += offset[i];
    }
    long double x[N] = {0}, P[N * N];
    for (int i = 0; i < N * N; i++)
        P[i] = state.P[i];
    kalman(3, H, R, offset, x, P);
    const struct ndt_track_state before = state;
    ndt_track_gnss(&track, &sample);
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 1);
    must_equal(&before, &state, x, P, 1e-5);
}

TEST(gnss_is_used_once)
{
    struct ndt_track_state state = uncertain_state();
    const struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.3);
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 0);
    ndt_track_gnss(&track, &sample);
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 1);
    const struct ndt_track_state after_first = state;
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 0);
    ck_assert_mem_eq(&after_first, &state, sizeof(state));
}

TEST(gnss_far_from_the_prediction_is_rejected)
{
    struct ndt_track_state state = uncertain_state();
    struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.3);
    const struct ndt_track_state before = state;
    sample.position_m[0] += 5;
    ndt_track_gnss(&track, &sample);
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), -1);
    ck_assert_mem_eq(&before, &state, sizeof(state));
    sample.deviation_m[0] = 5; /* it says so itself */
    ndt_track_gnss(&track, &sample);
    ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 1);
}

/* The gate is the chi-square distance with all covariances: an error along the direction in which the position is
 * uncertain is taken, the same across is not. */
TEST(gnss_gate_knows_directions)
{
    for (int across = 0; across < 2; across++) {
        struct ndt_track_state state = track.state;
        state.T_map_base = ndt_pose_from_rpy((double[3]){0, 0, 0}, (double[3]){0, 0, 0.7853981633974483});
        memset(state.P, 0, sizeof(state.P));
        for (int i = 0; i < N; i++)
            state.P[N * i + i] = 1e-8;
        state.P[0] = 9; /* 3 m along the heading, north-east */
        struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.1);
        sample.position_m[0] += across ? -4 : 4;
        sample.position_m[1] += 4;
        ndt_track_gnss(&track, &sample);
        ck_assert_int_eq(ndt_track_use_gnss(&track, &state), across ? -1 : 1);
    }
}

TEST(gnss_axes_without_a_deviation_are_not_used)
{
    const double unknown[] = {0, -1, NAN, INFINITY};
    for (size_t u = 0; u < 4; u++) {
        struct ndt_track_state state = uncertain_state();
        struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.3);
        memset(sample.antenna_m, 0, sizeof(sample.antenna_m));
        memcpy(sample.position_m, state.T_map_base.t_m, sizeof(sample.position_m));
        sample.position_m[2] += 1000;
        sample.deviation_m[2] = unknown[u];
        ndt_track_gnss(&track, &sample);
        ck_assert_int_eq(ndt_track_use_gnss(&track, &state), 1);
        must_be_definite(state.P, "gnss", (int)u);
        ck_assert_double_lt(fabs(state.T_map_base.t_m[2] - 3), 1);
    }
}

/* A position of another moment is carried along with the velocity; one of another second waits. */
TEST(gnss_of_another_moment)
{
    const double ages_s[] = {0.5, 1.5};
    for (int late = 0; late < 2; late++) {
        struct ndt_track_state state = uncertain_state();
        double R[9];
        for (int i = 0; i < N * N; i++)
            state.P[i] *= 100;
        struct ndt_track_gnss_sample sample = antenna_at(&state.T_map_base, 0.05);
        ndt_pose_rotation(&state.T_map_base, R);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sample.position_m[i] -= R[3 * i + j] * state.twist.v_mps[j] * ages_s[late];
        sample.stamp_ns = after(-ages_s[late]);
        ndt_track_gnss(&track, &sample);
        const struct ndt_track_state before = state;
        ck_assert_int_eq(ndt_track_use_gnss(&track, &state), !late);
        ck_assert_double_le(ndt_pose_distance_m(&before.T_map_base, &state.T_map_base), 0.05);
    }
}

/* ---- IMU ---- */

static void stand(const struct ndt_pose *truth, double rate_radps, double gravity_mps2)
{
    struct ndt_pose turn = ndt_pose_inverse(truth);
    memset(turn.t_m, 0, sizeof(turn.t_m));
    for (int i = 0; i < 40; i++) {
        struct ndt_track_imu_sample sample = {.stamp_ns = after(-0.4 + 0.01 * i),
                                              .angular_velocity_radps = {0, rate_radps, 0},
                                              .has_acceleration = 1};
        ndt_pose_apply(&turn, (double[3]){0, 0, gravity_mps2}, sample.acceleration_mps2);
        for (int k = 0; k < 3; k++)
            sample.acceleration_mps2[k] += any(0.05);
        ndt_track_imu(&track, &sample);
    }
}

static double tilt_between(const struct ndt_pose *a, const struct ndt_pose *b)
{
    double Ra[9], Rb[9];
    ndt_pose_rotation(a, Ra);
    ndt_pose_rotation(b, Rb);
    return acos(fmin(1, Ra[6] * Rb[6] + Ra[7] * Rb[7] + Ra[8] * Rb[8]));
}

TEST(gravity_levels_roll_and_pitch)
{
    const struct ndt_pose truth = ndt_pose_from_rpy((double[3]){1, 2, 3}, (double[3]){0.05, -0.08, 1.9});
    const struct ndt_pose told = ndt_pose_from_rpy((double[3]){1, 2, 3}, (double[3]){0, 0, 2.0});
    stand(&truth, 0, 9.81);
    ndt_track_reset(&track, START_NS, &told, NULL, NULL);
    ck_assert_double_gt(tilt_between(&told, &truth), 0.09);
    ck_assert_double_lt(tilt_between(&track.state.T_map_base, &truth), 0.005);
    double covariance[36];
    ndt_track_map_covariance(&track.state, covariance);
    ck_assert_double_lt(sqrt(covariance[21]), 0.02); /* roll and pitch, about the axes of the map */
    ck_assert_double_lt(sqrt(covariance[28]), 0.02);
    ck_assert_double_eq_tol(sqrt(covariance[35]), params.pose_deviation_rad, 0.01); /* not the yaw */
    ck_assert_double_lt(ndt_pose_distance_m(&track.state.T_map_base, &told), 1e-9);
    must_be_definite(track.state.P, "levelled", 0);
}

TEST(a_moving_imu_does_not_level)
{
    const struct ndt_pose truth = ndt_pose_from_rpy((double[3]){1, 2, 3}, (double[3]){0.05, -0.08, 1.9});
    const struct ndt_pose told = ndt_pose_from_rpy((double[3]){1, 2, 3}, (double[3]){0, 0, 2.0});
    const double rates[] = {0.5, 0}, gravities[] = {9.81, 12};
    for (int i = 0; i < 2; i++) {
        ndt_track_init(&track, &params);
        stand(&truth, rates[i], gravities[i]);
        ndt_track_reset(&track, START_NS, &told, NULL, NULL);
        ck_assert_double_eq(ndt_pose_angle_rad(&track.state.T_map_base, &told), 0);
    }
    ndt_track_init(&track, &params);
    stand(&truth, 0, 9.81);
    ndt_track_reset(&track, after(5), &told, NULL, NULL); /* long ago */
    ck_assert_double_eq(ndt_pose_angle_rad(&track.state.T_map_base, &told), 0);
}

static void rate_of(double s, double w[3])
{
    w[0] = 0.3 * cos(5 * s);
    w[1] = 0.3 * sin(5 * s);
    w[2] = 0.6 + 0.4 * sin(7 * s);
}

/* A coning motion at 100 Hz against steps of 10 us. */
TEST(gyro_integration_against_the_exact_rotation)
{
    struct ndt_track_state state, out;
    for (int i = -1; i <= 101; i++) {
        struct ndt_track_imu_sample sample = {.stamp_ns = after(0.01 * i)};
        rate_of(0.01 * i, sample.angular_velocity_radps);
        ndt_track_imu(&track, &sample);
    }
    const double ends[] = {0.004, 0.1, 0.333, 0.95};
    for (size_t e = 0; e < 4; e++) {
        struct ndt_pose exact = start_pose();
        const int steps = (int)lround(ends[e] / 1e-5);
        for (int i = 0; i < steps; i++) {
            struct ndt_twist twist = {{0, 0, 0}, {0, 0, 0}};
            rate_of((i + 0.5) * 1e-5, twist.w_radps);
            const struct ndt_pose step = ndt_pose_exp(&twist, 1e-5);
            exact = ndt_pose_compose(&exact, &step);
        }
        state = track.state;
        predict(&state, ends[e], &out);
        ck_assert_int_eq(out.source, NDT_TRACK_GYRO);
        ck_assert_double_lt(ndt_pose_angle_rad(&out.T_map_base, &exact), 2e-4 * ends[e] + 1e-6);
    }
}

/* An IMU that fell silent is not carried on: beyond a fraction of a second the constant twist takes over. */
TEST(a_silent_gyro_is_not_extrapolated)
{
    struct ndt_track_state out;
    for (int i = -20; i <= 0; i++) {
        struct ndt_track_imu_sample sample = {.stamp_ns = after(0.01 * i), .angular_velocity_radps = {0, 0, 1}};
        ndt_track_imu(&track, &sample);
    }
    ck_assert(ndt_track_predict(&track, after(0.05), &out));
    ck_assert_int_eq(out.source, NDT_TRACK_GYRO);
    track.state.stamp_ns = after(5);
    track.state.has_twist = 1;
    ck_assert(ndt_track_predict(&track, after(5.05), &out));
    ck_assert_int_eq(out.source, NDT_TRACK_TWIST);
}

/* The bias of a gyro is found from alignments. */
TEST(gyro_bias_is_estimated)
{
    const double bias[3] = {0.01, -0.015, 0.02};
    const struct ndt_pose start = ndt_pose_identity();
    struct ndt_observation observation = {0};
    for (int i = 0; i < 6; i++)
        observation.information[0][7 * i] = observation.curvature[7 * i] = i < 3 ? 1e5 : 1e7;
    ndt_track_reset(&track, START_NS, &start, &(struct ndt_twist){{0}, {0}}, NULL);
    for (int i = 0; i <= 1000; i++) {
        struct ndt_track_imu_sample sample = {.stamp_ns = after(0.01 * i)};
        memcpy(sample.angular_velocity_radps, bias, sizeof(bias));
        ndt_track_imu(&track, &sample);
        if (i == 0 || i % 10 != 0)
            continue;
        struct ndt_track_state predicted, updated;
        ck_assert(ndt_track_predict(&track, after(0.01 * i), &predicted));
        const struct ndt_track_measurement measurement = {
            .T_map_base = start, .observation = &observation, .twist = predicted.twist, .is_converged = 1};
        ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
        ndt_track_commit(&track, &updated);
    }
    for (int i = 0; i < 3; i++) {
        const double sigma = sqrt(track.state.P[N * (BIAS + i) + BIAS + i]);
        ck_assert_double_lt(sigma, 0.002);
        ck_assert_double_eq_tol(track.state.bias_radps[i], bias[i], 3 * sigma);
    }
}

/* ---- frames ---- */

enum { DRAWS = 60000 };

/* Errors of the base by its covariance, those of a sensor or of the map's axes measured: their covariance. */
static void sample_covariance(const struct ndt_track_state *state, const struct ndt_pose *T_base_sensor, int in_map,
                              double covariance[36])
{
    double L[36];
    for (int i = 0; i < 6; i++)
        memcpy(L + 6 * i, state->P + N * i, 6 * sizeof(double));
    ck_assert(ndt_factor_cholesky(6, L));
    memset(covariance, 0, 36 * sizeof(*covariance));
    const struct ndt_pose expected = ndt_pose_compose(&state->T_map_base, T_base_sensor);
    for (int n = 0; n < DRAWS; n++) {
        double e[6], d[6], x[6];
        for (int i = 0; i < 6; i++)
            e[i] = ndt_random_normal(&random_state);
        ndt_multiply(6, 6, 1, L, e, d);
        const struct ndt_pose step = exp_of(d);
        struct ndt_pose pose = ndt_pose_compose(&state->T_map_base, &step);
        pose = ndt_pose_compose(&pose, T_base_sensor);
        if (in_map) {
            const struct ndt_pose back = ndt_pose_inverse(&expected);
            const struct ndt_pose turn = ndt_pose_compose(&pose, &back); /* its rotation is that in the map */
            const struct ndt_twist rotation = ndt_pose_log(&turn, 1);
            for (int i = 0; i < 3; i++) {
                x[i] = pose.t_m[i] - expected.t_m[i];
                x[3 + i] = rotation.w_radps[i];
            }
        } else {
            const struct ndt_pose off = ndt_pose_between(&expected, &pose);
            const struct ndt_twist twist = ndt_pose_log(&off, 1);
            for (int i = 0; i < 3; i++) {
                x[i] = twist.v_mps[i];
                x[3 + i] = twist.w_radps[i];
            }
        }
        for (int i = 0; i < 36; i++)
            covariance[i] += x[i / 6] * x[i % 6] / DRAWS;
    }
}

static void must_match(const double is[36], const double sampled[36])
{
    for (int i = 0; i < 36; i++) {
        const double scale = sqrt(sampled[7 * (i / 6)] * sampled[7 * (i % 6)]);
        ck_assert_msg(fabs(is[i] - sampled[i]) < 0.025 * scale, "[%d][%d] is %g, samples give %g", i / 6, i % 6,
                      is[i], sampled[i]);
    }
}

static struct ndt_track_state precise_state(void)
{
    struct ndt_track_state state = uncertain_state();
    for (int i = 0; i < N * N; i++) /* where first order holds */
        state.P[i] *= 1e-2;
    return state;
}

TEST(covariance_of_a_sensor_against_samples)
{
    const struct ndt_track_state state = precise_state();
    const struct ndt_pose T_base_sensor =
        ndt_pose_from_rpy((double[3]){1.2, -0.4, 1.8}, (double[3]){0.1, -0.2, 0.6});
    double is[36], sampled[36];
    ndt_track_pose_covariance(&state, &T_base_sensor, is);
    sample_covariance(&state, &T_base_sensor, 0, sampled);
    must_match(is, sampled);
}

TEST(covariance_in_the_map_against_samples)
{
    const struct ndt_track_state state = precise_state();
    const struct ndt_pose none = ndt_pose_identity();
    double is[36], sampled[36];
    ndt_track_map_covariance(&state, is);
    sample_covariance(&state, &none, 1, sampled);
    must_match(is, sampled);
}

TEST(position_deviation_is_along_the_worst_axis)
{
    struct ndt_track_state state = track.state;
    memset(state.P, 0, sizeof(state.P));
    state.P[0] = state.P[N + 1] = 2;
    state.P[1] = state.P[N] = 1.9;
    state.P[2 * N + 2] = 0.5;
    ck_assert_double_eq_tol(ndt_track_position_deviation(&state), sqrt(3.9), 1e-12);
}

/* A shift is a prediction with the state's own twist; nothing is certain in either direction. */
TEST(shift_carries_the_pose)
{
    const struct ndt_track_state state = uncertain_state();
    for (int back = 0; back < 2; back++) {
        struct ndt_track_state out;
        const double dt = back ? -0.05 : 0.05;
        const struct ndt_pose step = ndt_pose_exp(&state.twist, dt);
        const struct ndt_pose expected = ndt_pose_compose(&state.T_map_base, &step);
        ndt_track_shift(&track, &state, dt, &out);
        ck_assert_double_lt(ndt_pose_distance_m(&expected, &out.T_map_base), 1e-12);
        ck_assert_int_eq(out.stamp_ns, state.stamp_ns + (back ? -50000000 : 50000000));
        must_be_definite(out.P, "shifted", back);
    }
    struct ndt_track_state same;
    ndt_track_shift(&track, &state, 0, &same);
    ck_assert_mem_eq(&same, &state, sizeof(state));
}

/* ---- odometry that is not what it was ---- */

static struct ndt_pose planar(double x_m, double y_m, double yaw_rad)
{
    return ndt_pose_from_rpy((double[3]){x_m, y_m, 0}, (double[3]){0, 0, yaw_rad});
}

static void give_odometry(double at_s, const struct ndt_pose *pose, const struct ndt_twist *twist)
{
    struct ndt_track_odometry_sample sample = {
        .stamp_ns = after(at_s), .has_pose = pose != NULL, .has_twist = twist != NULL};
    if (pose)
        sample.T_odom_base = *pose;
    if (twist)
        sample.twist = *twist;
    ndt_track_odometry(&track, &sample);
}

/* A source that begins anew at zero, after `pause_s`, while the vehicle stands at `last`: the prediction stays. */
static void source_restarts(const struct ndt_pose *last, double pause_s, int has_twist)
{
    const struct ndt_pose origin = planar(0, 0, 0);
    const struct ndt_twist still = {{0, 0, 0}, {0, 0, 0}};
    struct ndt_track_state out;
    const double begin_s = 0.5 + pause_s;
    restart();
    for (int i = -5; i <= 10; i++)
        give_odometry(0.05 * i, last, has_twist ? &still : NULL);
    for (int i = 0; i <= 10; i++)
        give_odometry(begin_s + 0.05 * i, &origin, has_twist ? &still : NULL);
    ck_assert(ndt_track_predict(&track, after(begin_s + 0.5), &out));
    const struct ndt_pose start = start_pose();
    const double moved_m = ndt_pose_distance_m(&start, &out.T_map_base);
    const double turned_rad = ndt_pose_angle_rad(&start, &out.T_map_base);
    ck_assert_msg(moved_m <= 0.1 && turned_rad <= 0.01,
                  "odometry at %.3g %.3g m, pause %g s, %s twist: the prediction is thrown by %.3g m and %.3g rad",
                  last->t_m[0], last->t_m[1], pause_s, has_twist ? "with" : "without", moved_m, turned_rad);
#ifndef BEFORE
    ck_assert_uint_eq(track.odometry_restarts.count, 1);
    ck_assert_double_le(fabs(track.odometry_restarts.moved_m - ndt_pose_distance_m(last, &origin)), 1e-9);
    ck_assert_double_le(fabs(track.odometry_restarts.gap_s - pause_s), 1e-6);
#endif
}

TEST_EACH(odometry_that_restarts_at_zero_throws_nothing, 0, 8)
{
    const struct ndt_pose places[] = {planar(300, -120, 0), planar(30, 0, 1), planar(0.5, 0, 1.5), planar(0, 0, 3)};
    const double pauses_s[] = {0.05, 0.5, 2, 5};
    const int k = _i % 4;
    for (int i = 0; i < 4; i++)
        source_restarts(&places[k], pauses_s[i], _i / 4);
}

/* A drive with turns, braking and late samples is no jump. */
TEST(odometry_of_a_drive_goes_on)
{
    for (int kind = 0; kind < 3; kind++) {
        struct ndt_pose pose = planar(5, 3, 0);
        double at_s = 0;
        restart();
        for (int i = 0; i < 400; i++) {
            const double speed_mps = 12 + 12 * sin(0.05 * i), turn_radps = 1.5 * sin(0.11 * i);
            const struct ndt_twist twist = {{speed_mps, 0, 0}, {0, 0, turn_radps}};
            const double dt_s = i % 50 == 49 ? 0.6 : 0.05;
            const struct ndt_pose step = ndt_pose_exp(&twist, dt_s);
            pose = ndt_pose_compose(&pose, &step);
            at_s += dt_s;
            give_odometry(at_s, kind == 1 ? NULL : &pose, kind == 2 ? NULL : &twist);
        }
        ck_assert_uint_ge(track.odometry.count, 399);
    }
}

/* Numbers at the limits, in any order, never leave the estimator with a state that is not of this world. */
TEST(no_input_makes_a_state_that_is_not_plausible)
{
    static const double numbers[] = {0, 1e8, -1e8, 1e3, -1e3, 1e2, -1e2, 1e-300, 1e300, -1e300, NAN, INFINITY, 1};
    struct ndt_random random = {7};
    restart();
    for (int i = 0; i < 20000; i++) {
        double v[6];
        struct ndt_track_state out;
        for (int k = 0; k < 6; k++)
            v[k] = numbers[ndt_random_next(&random) % 13];
        const struct ndt_twist twist = {{v[0], v[1], v[2]}, {v[3], v[4], v[5]}};
        const struct ndt_pose pose = {.t_m = {v[3], v[1], v[5]}, .q_xyzw = {0, 0, 0, 1}};
        const struct ndt_track_imu_sample imu = {.stamp_ns = after(0.01 * i),
                                                 .angular_velocity_radps = {v[2], v[3], v[4]},
                                                 .has_acceleration = 1,
                                                 .acceleration_mps2 = {v[0], v[1], v[2]}};
        const struct ndt_track_gnss_sample gnss = {.stamp_ns = after(0.01 * i),
                                                   .position_m = {v[0], v[1], v[2]},
                                                   .deviation_m = {fabs(v[3]), fabs(v[4]), fabs(v[5])}};
        switch (ndt_random_next(&random) % 5) {
        case 0:
            ndt_track_reset(&track, after(0.01 * i), &pose, i % 3 ? &twist : NULL, NULL);
            break;
        case 1:
            give_odometry(0.01 * i + (i % 97 ? 0 : 3e9), i % 3 ? &pose : NULL, i % 3 != 1 ? &twist : NULL);
            break;
        case 2:
            ndt_track_imu(&track, &imu);
            break;
        case 3:
            ndt_track_gnss(&track, &gnss);
            break;
        default:
            if (!ndt_track_predict(&track, after(0.01 * i + (i % 89 ? 0.1 : 1e9)), &out))
                break;
            (void)ndt_track_use_gnss(&track, &out);
            ndt_track_coast(&track, &out);
        }
        int finite = ndt_pose_is_finite(&track.state.T_map_base);
        for (int k = 0; k < N * N; k++)
            finite &= isfinite(track.state.P[k]) != 0;
        ck_assert_msg(finite && fabs(track.state.T_map_base.t_m[0]) <= 1e8, "step %d: the state is not plausible",
                      i);
    }
}

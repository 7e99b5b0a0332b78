/* The pose at any time: errors and coverage on random motions whose truth is known, and what is refused. */
#include "track_cases.h"

#include "ndt_track/track_window.h"
#include "run_tests.h"

enum { STEPS_HZ = 1000, SCAN_STEPS = 100, SAMPLE_STEPS = 20, DRIVE_STEPS = 6000, DRIVES = 24, FIRST_STEP = 2000 };
static const double SCAN_M = 0.02, SCAN_RAD = 0.003; /* errors of the scans */

enum motion_source { BY_TWIST, BY_GYRO, BY_ODOMETRY };

static struct ndt_track_window window;
static struct ndt_pose truth[DRIVE_STEPS];
static struct ndt_twist twists[DRIVE_STEPS];

/* ---- drives ---- */

static void noise_of(double size_m, double size_rad, double x[6])
{
    for (int i = 0; i < 6; i++)
        x[i] = (i < 3 ? size_m : size_rad) * ndt_random_normal(&random_state);
}

/* A scan that is found with the errors of its information. */
static void scan_at(int step)
{
    struct ndt_observation observation = {0};
    struct ndt_track_state predicted, updated;
    double x[6];
    params.noise.floor_m = params.noise.floor_rad = 0;
    for (int i = 0; i < 6; i++) {
        const double sigma = i < 3 ? SCAN_M : SCAN_RAD;
        observation.information[0][7 * i] = observation.curvature[7 * i] = 1 / (sigma * sigma);
    }
    noise_of(SCAN_M, SCAN_RAD, x);
    const struct ndt_pose error = exp_of(x);
    ck_assert(ndt_track_predict(&track, after(step * 1e-3), &predicted));
    const struct ndt_track_measurement measurement = {.T_map_base = ndt_pose_compose(&truth[step], &error),
                                                      .observation = &observation,
                                                      .twist = predicted.twist,
                                                      .is_converged = 1};
    ndt_track_update(&track, &predicted, &measurement, &updated, NULL, NULL);
    ndt_track_commit(&track, &updated);
    ndt_track_window_add(&window, &track, NULL, 1);
}

/* The random motion that the estimator assumes. */
static void move(void)
{
    const double dt_s = 1.0 / STEPS_HZ;
    truth[0] = start_pose();
    twists[0] = (struct ndt_twist){{8, 0, 0}, {0, 0, 0.2}};
    for (int step = 1; step < DRIVE_STEPS; step++) {
        const struct ndt_pose D = ndt_pose_exp(&twists[step - 1], dt_s);
        truth[step] = ndt_pose_compose(&truth[step - 1], &D);
        twists[step] = twists[step - 1];
        for (int i = 0; i < 3; i++) {
            twists[step].v_mps[i] += params.acceleration_noise * sqrt(dt_s) * ndt_random_normal(&random_state);
            twists[step].w_radps[i] += params.turn_noise * sqrt(dt_s) * ndt_random_normal(&random_state);
        }
    }
}

static void give_sample(enum motion_source source, int step, struct ndt_pose *T_odom_base)
{
    const struct ndt_twist *twist = &twists[step];
    const double dt_s = (double)SAMPLE_STEPS / STEPS_HZ;
    double x[6];
    if (source == BY_GYRO) {
        struct ndt_track_imu_sample sample = {.stamp_ns = after(step * 1e-3)};
        for (int i = 0; i < 3; i++)
            sample.angular_velocity_radps[i] =
                twist->w_radps[i] + 0.001 * (i + 1) + 0.005 * ndt_random_normal(&random_state);
        ndt_track_imu(&track, &sample);
    } else if (source == BY_ODOMETRY) {
        struct ndt_track_odometry_sample sample = {
            .stamp_ns = after(step * 1e-3), .has_pose = 1, .has_twist = 1, .twist = *twist};
        if (step > 0) {
            noise_of(params.odometry_noise_m * sqrt(dt_s), params.odometry_noise_rad * sqrt(dt_s), x);
            struct ndt_pose D = ndt_pose_between(&truth[step - SAMPLE_STEPS], &truth[step]);
            const struct ndt_pose error = exp_of(x);
            D = ndt_pose_compose(&D, &error);
            *T_odom_base = ndt_pose_compose(T_odom_base, &D);
        }
        for (int i = 0; i < 3; i++) {
            sample.twist.v_mps[i] += params.odometry_deviation_mps * ndt_random_normal(&random_state);
            sample.twist.w_radps[i] += params.odometry_deviation_radps * ndt_random_normal(&random_state);
        }
        sample.T_odom_base = *T_odom_base;
        ndt_track_odometry(&track, &sample);
    }
}

/* Distances of pose errors from zero, in sigmas. */
struct coverage {
    int count, within[3]; /* counts over all axes: within 1, 2 and 3 sigma */
    double square_m2, nees;
};

/* kind: as expected. */
static void compare(int step, double ahead_s, enum ndt_pose_kind kind, struct coverage *out)
{
    struct ndt_track_pose pose;
    struct ndt_track_state right = {.T_map_base = truth[step]};
    double x[N], P[36], inverse[36];
    const enum ndt_track_refusal refusal = ndt_track_pose_at(&window, &track, after(step * 1e-3), ahead_s, &pose);
    ck_assert_msg(refusal == NDT_TRACK_NOT_REFUSED, "step %d: %s", step, ndt_track_refusal_name(refusal));
    ck_assert_int_eq(pose.kind, kind);
    ck_assert_int_eq(pose.state.stamp_ns, after(step * 1e-3));
    error_between(&pose.state, &right, x);
    for (int i = 0; i < 6; i++)
        memcpy(P + 6 * i, pose.state.P + N * i, 6 * sizeof(*P));
    ck_assert(ndt_invert_symmetric(6, P, inverse));
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 3; k++)
            out->within[k] += fabs(x[i]) <= (k + 1) * sqrt(P[7 * i]);
        for (int j = 0; j < 6; j++)
            out->nees += x[i] * inverse[6 * i + j] * x[j];
    }
    out->square_m2 += x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    out->count++;
}

struct coverages {
    struct coverage second_ago, lately, now, ahead;
};

/* A drive, with questions after each scan. A sample comes at each scan, so that "now" is that of both. */
static void drive(enum motion_source source, struct coverages *out)
{
    struct ndt_pose T_odom_base = ndt_pose_identity();
    params.stamp_deviation_s = 0;
    restart();
    ndt_track_window_clear(&window);
    move();
    ndt_track_reset(&track, START_NS, &truth[0], &twists[0], NULL);
    for (int step = 0; step + SCAN_STEPS < DRIVE_STEPS; step += SAMPLE_STEPS) {
        give_sample(source, step, &T_odom_base);
        if (step % SCAN_STEPS != 0)
            continue;
        scan_at(step);
        if (step < FIRST_STEP)
            continue;
        compare(step - 1000 + 37, 0, NDT_POSE_SMOOTHED, &out->second_ago);
        compare(step - 80, 0, NDT_POSE_SMOOTHED, &out->lately);
        compare(step, 0, NDT_POSE_FILTERED, &out->now);
        compare(step + 100, 0.1, NDT_POSE_PREDICTED, &out->ahead);
    }
}

static void must_cover(const struct coverage *is, const char *what, enum motion_source source)
{
    static const double low[] = {0.62, 0.92, 0.985}, high[] = {0.75, 0.985, 1};
    for (int k = 0; k < 3; k++) {
        const double part = is->within[k] / (6.0 * is->count);
        ck_assert_msg(part >= low[k] && part <= high[k], "source %d, %s: %.3f within %d sigma, %d poses", source,
                      what, part, k + 1, is->count);
    }
    ck_assert_msg(is->nees / is->count > 4.5 && is->nees / is->count < 7, "source %d, %s: %.2f for 6 axes", source,
                  what, is->nees / is->count);
}

static double error_m(const struct coverage *is)
{
    return sqrt(is->square_m2 / is->count);
}

FIXTURE(setup, NULL)

/* The errors are as large as they are said to be, and a smoothed pose is better than a filtered one. */
TEST(errors_are_those_of_the_covariance)
{
    for (enum motion_source source = BY_TWIST; source <= BY_ODOMETRY; source++) {
        struct coverages all = {0};
        for (int i = 0; i < DRIVES; i++)
            drive(source, &all);
        must_cover(&all.second_ago, "a second ago", source);
        must_cover(&all.lately, "80 ms ago", source);
        must_cover(&all.now, "now", source);
        must_cover(&all.ahead, "100 ms ahead", source);
        ck_assert_double_lt(error_m(&all.second_ago), 0.9 * error_m(&all.now));
        ck_assert_double_lt(error_m(&all.now), error_m(&all.ahead));
    }
}

/* ---- without noise ---- */

/* Scans without errors on a motion of constant twist, at every tenth of a second. */
static void exact_drive(int scans)
{
    const struct ndt_twist twist = {{5, 0.2, 0}, {0, 0.05, 0.4}};
    restart();
    ndt_track_window_clear(&window);
    const struct ndt_pose start = start_pose();
    ndt_track_reset(&track, START_NS, &start, &twist, NULL);
    for (int i = 0; i < scans; i++) {
        const struct ndt_pose D = ndt_pose_exp(&twist, 0.1 * i);
        struct ndt_track_state state = track.state;
        state.stamp_ns = after(0.1 * i);
        state.T_map_base = ndt_pose_compose(&start, &D);
        track.state = state;
        ndt_track_window_add(&window, &track, NULL, 1);
    }
}

static enum ndt_track_refusal ask(double at_s, struct ndt_track_pose *pose)
{
    return ndt_track_pose_at(&window, &track, after(at_s), 0.2, pose);
}

TEST(a_pose_between_scans_lies_on_the_way)
{
    const struct ndt_twist twist = {{5, 0.2, 0}, {0, 0.05, 0.4}};
    const struct ndt_pose start = start_pose();
    exact_drive(30);
    for (int i = 0; i <= 310; i++) {
        struct ndt_track_pose pose;
        const struct ndt_pose D = ndt_pose_exp(&twist, 0.01 * i), right = ndt_pose_compose(&start, &D);
        ck_assert_int_eq(ask(0.01 * i, &pose), NDT_TRACK_NOT_REFUSED);
        ck_assert_double_lt(ndt_pose_distance_m(&pose.state.T_map_base, &right), 1e-6);
        ck_assert_double_lt(ndt_pose_angle_rad(&pose.state.T_map_base, &right), 1e-6);
        ck_assert_int_eq(pose.kind, i < 290 ? NDT_POSE_SMOOTHED : i > 290 ? NDT_POSE_PREDICTED : NDT_POSE_FILTERED);
        ck_assert_int_eq(pose.scan_ns, after(0.1 * (i / 10 < 29 ? i / 10 : 29)));
    }
}

/* Predictions beyond the gyro tell abrupt turns of the carrier, which turn_noise does not know. */
TEST(abrupt_turns_are_in_the_prediction)
{
    struct ndt_track_pose calm, abrupt;
    for (int is_abrupt = 0; is_abrupt < 2; is_abrupt++) {
        exact_drive(30);
        for (int i = 0; i <= 300; i++) { /* 1.5 rad/s to either side, twice a second */
            const double s = 0.01 * i;
            const struct ndt_track_imu_sample sample = {
                .stamp_ns = after(s),
                .angular_velocity_radps = {0, 0, is_abrupt ? 1.5 * sin(2 * M_PI * 2 * s) : 0.4}};
            ndt_track_imu(&track, &sample);
        }
        ck_assert_int_eq(ask(3.1, is_abrupt ? &abrupt : &calm), NDT_TRACK_NOT_REFUSED);
    }
    /* 1.5 rad/s times the root mean square of the integral of sin(w (t + s)) - sin(w t) over s up to 0.1 s: 0.064
     * rad */
    const double learnt = abrupt.state.P[(N + 1) * (ROTATION + 2)] - calm.state.P[(N + 1) * (ROTATION + 2)];
    ck_assert_double_gt(sqrt(learnt), 0.055);
    ck_assert_double_lt(sqrt(learnt), 0.1);
    ck_assert_double_eq_tol(calm.state.P[(N + 1) * ROTATION], abrupt.state.P[(N + 1) * ROTATION], 1e-3);
}

/* ---- refusals ---- */

TEST(refusals_have_a_reason)
{
    struct ndt_track_pose pose;
    char line[128];
    setup();
    ndt_track_window_clear(&window);
    ck_assert_int_eq(ask(0, &pose), NDT_TRACK_NO_POSE);
    ck_assert_int_eq(ndt_track_newest_ns(&window, &track), 0);
    exact_drive(30);
    ck_assert_int_eq(ask(-0.5, &pose), NDT_TRACK_BEFORE_WINDOW);
    ndt_track_refusal_line(NDT_TRACK_BEFORE_WINDOW, &pose, line, sizeof(line));
    ck_assert_str_eq(line, "the stamp is 0.5 s older than the states that are kept");
    ck_assert_int_eq(ask(3.2, &pose), NDT_TRACK_TOO_FAR_AHEAD);
    ck_assert_double_eq_tol(pose.off_s, 0.1, 1e-9);
    ck_assert_int_eq(ask(3.09, &pose), NDT_TRACK_NOT_REFUSED);
    for (int i = 0; i < 5; i++) { /* a window of states that are not trusted */
        track.state.stamp_ns = after(3 + 0.1 * i);
        ndt_track_window_add(&window, &track, NULL, i == 4);
    }
    ck_assert_int_eq(ask(2.95, &pose), NDT_TRACK_NOT_TRUSTED);
    ck_assert_int_eq(ask(3.25, &pose), NDT_TRACK_NOT_TRUSTED);
    ck_assert_int_eq(ask(2.85, &pose), NDT_TRACK_NOT_REFUSED);
    ck_assert_int_eq(ask(3.45, &pose), NDT_TRACK_NOT_REFUSED);
}

/* Motion that is measured on and on does not replace scans. */
TEST(without_scans_the_pose_ends)
{
    struct ndt_track_pose pose;
    exact_drive(30);
    for (int i = 0; i < 200; i++) {
        const struct ndt_track_odometry_sample sample = {
            .stamp_ns = after(2 + 0.02 * i), .has_pose = 1, .T_odom_base = ndt_pose_identity()};
        ndt_track_odometry(&track, &sample);
    }
    ck_assert_int_eq(ask(3.8, &pose), NDT_TRACK_NOT_REFUSED);
    ck_assert_int_eq(pose.kind, NDT_POSE_FILTERED);
    ck_assert_int_eq(ask(3.95, &pose), NDT_TRACK_TOO_FAR_AHEAD);
}

/* ---- order of scans ---- */

/* Scans after a pose was given say nothing about the time before. */
TEST(a_given_pose_does_not_change_the_past)
{
    struct ndt_track_pose before, pose;
    exact_drive(30);
    ck_assert_int_eq(ask(2.95, &before), NDT_TRACK_NOT_REFUSED);
    const struct ndt_pose far = ndt_pose_identity();
    ndt_track_reset(&track, after(3), &far, NULL, NULL);
    ndt_track_window_add(&window, &track, NULL, 1);
    ck_assert_int_eq(ask(2.95, &pose), NDT_TRACK_NOT_REFUSED);
    ck_assert_mem_eq(&pose.state, &before.state, sizeof(pose.state));
    ck_assert_int_eq(ask(3.05, &pose), NDT_TRACK_NOT_REFUSED);
    ck_assert_double_lt(ndt_pose_distance_m(&pose.state.T_map_base, &far), 1);
}

TEST(late_scans_and_restarts_of_time)
{
    struct ndt_track_pose pose, again;
    exact_drive(300); /* more than are kept */
    ck_assert_int_eq(window.count, NDT_TRACK_WINDOW_SCANS);
    ck_assert_int_eq(ask(25, &pose), NDT_TRACK_NOT_REFUSED);
    ck_assert_int_eq(ask(17, &pose), NDT_TRACK_BEFORE_WINDOW);
    ck_assert_int_eq(ask(29.9, &pose), NDT_TRACK_NOT_REFUSED);
    ndt_track_window_add(&window, &track, NULL, 1); /* the same once more */
    ck_assert_int_eq(window.count, NDT_TRACK_WINDOW_SCANS);
    track.state.stamp_ns = after(29.8);
    ndt_track_window_add(&window, &track, NULL, 1);
    ck_assert_int_eq(ask(29.9, &again), NDT_TRACK_NOT_REFUSED);
    ck_assert_mem_eq(&pose, &again, sizeof(pose));
    track.state.stamp_ns = after(1);
    ndt_track_window_add(&window, &track, NULL, 1);
    ck_assert_int_eq(window.count, 1);
    ck_assert_int_eq(ask(29.9, &pose), NDT_TRACK_TOO_FAR_AHEAD);
}

TEST(equal_windows_give_equal_bits)
{
    struct coverages ignored = {0};
    struct ndt_track_pose pose[2];
    for (int i = 0; i < 2; i++) {
        setup();
        drive(BY_GYRO, &ignored);
        ck_assert_int_eq(ask(4.321, &pose[i]), NDT_TRACK_NOT_REFUSED);
        must_be_definite(pose[i].state.P, "smoothed", 0);
    }
    ck_assert_mem_eq(&pose[0], &pose[1], sizeof(pose[0]));
}

/* Samples of odometry and IMU that come late: the same messages in any order of arrival give the same smoothed
 * poses, bit for bit, and the estimate goes on as if they had come in time. */
#include "track_cases.h"

#include <stdlib.h>

#include "ndt_track/track_window.h"
#include "run_tests.h"

enum { SAMPLES_HZ = 50, SCANS_HZ = 10, SECONDS = 7, SAMPLES = SAMPLES_HZ * SECONDS, SCANS = SCANS_HZ * SECONDS };
enum { ORDERS = 10, ASKED = 60 };
static const double LONGEST_DELAY_S = 0.5;

enum motion_source { GYRO, POSES_AND_TWISTS, POSES, TWISTS, POSES_AND_GYRO, MOTION_SOURCES };

struct message {
    int is_scan, number;
    double arrival_s;
};

static struct ndt_track_window window;
static struct ndt_track_odometry_sample odometry[SAMPLES];
static struct ndt_track_imu_sample imu[SAMPLES];
static struct ndt_track_measurement scans[SCANS];
static struct ndt_observation observation;
static struct message messages[3 * SAMPLES];
static int message_count;

/* ---- a drive ---- */

static double sample_s(int i)
{
    return (double)i / SAMPLES_HZ;
}

/* Turns, brakes and accelerates; scans tell the pose to 2 cm, samples are off by their noise. */
static void make_drive(enum motion_source source)
{
    struct ndt_pose T_map_base = start_pose();
    random_state = (struct ndt_random){77};
    for (int i = 0; i < 36; i += 7)
        observation.information[0][i] = observation.curvature[i] = i < 18 ? 1 / (0.02 * 0.02) : 1 / (0.003 * 0.003);
    for (int i = 0; i < SAMPLES; i++) {
        const double s = sample_s(i);
        const struct ndt_twist twist = {{6 + 4 * sin(1.3 * s), 0, 0}, {0, 0, 0.6 * sin(0.9 * s)}};
        if (i % (SAMPLES_HZ / SCANS_HZ) == 0) {
            double x[6];
            for (int k = 0; k < 6; k++)
                x[k] = (k < 3 ? 0.02 : 0.003) * ndt_random_normal(&random_state);
            const struct ndt_pose error = exp_of(x);
            scans[i / (SAMPLES_HZ / SCANS_HZ)] =
                (struct ndt_track_measurement){.T_map_base = ndt_pose_compose(&T_map_base, &error),
                                               .observation = &observation,
                                               .twist = twist,
                                               .is_converged = 1};
        }
        odometry[i] = (struct ndt_track_odometry_sample){.stamp_ns = after(s),
                                                         .has_pose = source != TWISTS,
                                                         .has_twist = source != POSES,
                                                         .T_odom_base = T_map_base,
                                                         .twist = twist};
        odometry[i].twist.v_mps[0] += 0.05 * ndt_random_normal(&random_state);
        odometry[i].twist.w_radps[2] += 0.005 * ndt_random_normal(&random_state);
        imu[i] = (struct ndt_track_imu_sample){.stamp_ns = after(s + 0.003)};
        imu[i].angular_velocity_radps[2] = twist.w_radps[2] + 0.01 + 0.005 * ndt_random_normal(&random_state);
        const struct ndt_pose D = ndt_pose_exp(&twist, 1.0 / SAMPLES_HZ);
        T_map_base = ndt_pose_compose(&T_map_base, &D);
    }
}

static int by_arrival(const void *a, const void *b)
{
    const struct message *left = a, *right = b;
    const double off_s = left->arrival_s - right->arrival_s;
    return off_s != 0 ? (off_s > 0) - (off_s < 0) : left->number - right->number;
}

/* Kinds of messages, by number: scans, odometry, IMU. */
enum { FIRST_ODOMETRY = SAMPLES, FIRST_IMU = 2 * SAMPLES };

/* The messages in a random order of arrival; scans keep theirs. delay_s: of all samples; below 0: random ones. */
static void make_order(enum motion_source source, uint64_t seed, double delay_s)
{
    double scan_s = 0;
    message_count = 0;
    random_state = (struct ndt_random){seed};
    for (int i = 0; i < SCANS; i++) {
        const double wait_s = delay_s < 0 ? LONGEST_DELAY_S * ndt_random_unit(&random_state) : 0;
        scan_s = fmax(scan_s, (double)i / SCANS_HZ + wait_s);
        messages[message_count++] = (struct message){1, i, scan_s};
    }
    for (int i = 0; i < SAMPLES; i++)
        for (int is_imu = 0; is_imu < 2; is_imu++) {
            const int is_sent = source == POSES_AND_GYRO || (source == GYRO) == is_imu;
            const double wait_s = delay_s < 0 ? LONGEST_DELAY_S * ndt_random_unit(&random_state) : delay_s;
            if (is_sent)
                messages[message_count++] =
                    (struct message){0, (is_imu ? FIRST_IMU : FIRST_ODOMETRY) + i, sample_s(i) + wait_s};
        }
    qsort(messages, (size_t)message_count, sizeof(*messages), by_arrival);
}

/* ---- the estimator ---- */

static void take_scan(int number, int is_renewed)
{
    struct ndt_track_state predicted, updated;
    if (is_renewed)
        ndt_track_window_renew(&window, &track);
    const struct ndt_track_step step = {.before_ns = track.state.stamp_ns,
                                        .is_measured = 1,
                                        .measurement = scans[number],
                                        .has_observation = 1,
                                        .observation = observation};
    const int is_followed = ndt_track_window_ends_at(&window, &track);
    ck_assert(ndt_track_predict(&track, after((double)number / SCANS_HZ), &predicted));
    ndt_track_update(&track, &predicted, &scans[number], &updated, NULL, NULL);
    ndt_track_commit(&track, &updated);
    ndt_track_window_add(&window, &track, is_followed ? &step : NULL, 1);
    ck_assert_int_eq(is_followed, number > 0);
}

static void run_drive(int is_renewed)
{
    restart();
    ndt_track_reset(&track, START_NS - 1000000, &scans[0].T_map_base, NULL, NULL);
    ndt_track_window_clear(&window);
    for (int i = 0; i < message_count; i++) {
        const int number = messages[i].number;
        if (messages[i].is_scan)
            take_scan(number, is_renewed);
        else if (number < FIRST_IMU)
            ndt_track_odometry(&track, &odometry[number - FIRST_ODOMETRY]);
        else
            ndt_track_imu(&track, &imu[number - FIRST_IMU]);
    }
}

/* The smoothed poses of the whole drive after the first scan, which sets the state. */
static void ask_all(struct ndt_track_pose poses[ASKED])
{
    for (int i = 0; i < ASKED; i++) {
        const double s = 0.15 + (SECONDS - 0.4) * i / ASKED;
        const enum ndt_track_refusal refusal = ndt_track_pose_at(&window, &track, after(s), 0, &poses[i]);
        ck_assert_msg(refusal == NDT_TRACK_NOT_REFUSED, "%g s: %s", s, ndt_track_refusal_name(refusal));
        ck_assert_int_eq(poses[i].kind, NDT_POSE_SMOOTHED);
    }
}

FIXTURE(setup, NULL)

TEST_EACH(any_order_of_arrival_gives_the_same_smoothed_poses, 0, MOTION_SOURCES)
{
    static struct ndt_track_pose first[ASKED], poses[ASKED];
    int changes = 0;
    make_drive((enum motion_source)_i);
    make_order((enum motion_source)_i, 1, 0);
    run_drive(0);
    const struct ndt_track_state in_order = track.state;
    ask_all(first);
    for (uint64_t order = 0; order < ORDERS; order++) {
        make_order((enum motion_source)_i, 100 + order, -1);
        run_drive(order % 2 == 0);
        ask_all(poses);
        changes += !ndt_track_is_same_state(&in_order, &track.state);
        ck_assert_uint_eq(track.too_late.count, 0);
        for (int i = 0; i < ASKED; i++)
            ck_assert_msg(memcmp(&first[i], &poses[i], sizeof(first[i])) == 0,
                          "source %d, order %d, question %d: other bits, %g m away", _i, (int)order, i,
                          ndt_pose_distance_m(&first[i].state.T_map_base, &poses[i].state.T_map_base));
    }
    ck_assert_int_eq(changes, ORDERS); /* the orders are not those in which nothing matters */
}

/* Scans that see nothing, as in a tunnel, and odometry that is a quarter of a second late while the speed changes:
 * computed again, the estimate ends where that of odometry in time ends. */
TEST(late_odometry_is_made_up_for)
{
    double off_m[2];
    make_drive(POSES_AND_TWISTS);
    for (int i = 0; i < 6; i++)
        observation.information[0][7 * i] = observation.curvature[7 * i] = 1e-9;
    make_order(POSES_AND_TWISTS, 1, 0);
    run_drive(0);
    const struct ndt_track_state in_order = track.state;
    for (int is_renewed = 0; is_renewed < 2; is_renewed++) {
        make_order(POSES_AND_TWISTS, 1, 0.25);
        run_drive(is_renewed);
        off_m[is_renewed] = ndt_pose_distance_m(&in_order.T_map_base, &track.state.T_map_base);
    }
    ck_assert_double_lt(off_m[1], 0.2); /* what the speed changes within a quarter of a second */
    ck_assert_double_gt(off_m[0], 5 * off_m[1]);
}

/* ---- single samples ---- */

static void give_imu(double s, double w_radps)
{
    const struct ndt_track_imu_sample sample = {.stamp_ns = after(s), .angular_velocity_radps = {0, 0, w_radps}};
    ndt_track_imu(&track, &sample);
}

static void give_pose(double s, double x_m)
{
    const struct ndt_pose T_odom_base = ndt_pose_from_rpy((double[3]){x_m, 0, 0}, (double[3]){0, 0, 0});
    const struct ndt_track_odometry_sample sample = {
        .stamp_ns = after(s), .has_pose = 1, .T_odom_base = T_odom_base};
    ndt_track_odometry(&track, &sample);
}

TEST(samples_older_than_the_window_are_dropped_and_counted)
{
    for (int i = 0; i <= 300; i++)
        if (i != 50 && i != 150)
            give_imu(i * 0.01, 0.1);
    give_imu(1.5, 0.1); /* aside, until the next one tells that time goes on */
    ck_assert_uint_eq(track.imu.count, 299);
    give_imu(3.01, 0.1);
    ck_assert_uint_eq(track.imu.count, 301);
    give_imu(0.5, 0.1);
    give_imu(3.02, 0.1);
    ck_assert_uint_eq(track.imu.count, 302);
    ck_assert_uint_eq(track.too_late.count, 1);
    ck_assert_double_eq_tol(track.too_late.last_s, 2.51, 1e-9);
}

/* A full ring keeps the newest samples: a late one takes the place of the oldest. */
TEST(a_full_ring_takes_late_samples)
{
    for (int i = 0; i <= 2 * NDT_TRACK_SAMPLES; i++)
        if (i != 2 * NDT_TRACK_SAMPLES - 100)
            give_imu(i * 0.001, i * 0.001);
    give_imu((2 * NDT_TRACK_SAMPLES - 100) * 0.001, (2 * NDT_TRACK_SAMPLES - 100) * 0.001);
    give_imu(0.9, 9); /* older than all in the ring */
    give_imu(2.05, 2.05);
    ck_assert_uint_eq(track.imu.count, NDT_TRACK_SAMPLES);
    ck_assert_uint_eq(track.too_late.count, 1);
    for (uint32_t i = 0; i < NDT_TRACK_SAMPLES; i++) {
        const struct ndt_track_imu_sample *sample = &track.imu.samples[i];
        ck_assert_double_eq_tol(ndt_track_seconds(START_NS, sample->stamp_ns), sample->angular_velocity_radps[2],
                                1e-9);
    }
}

/* A sample of a source that was restarted meanwhile, or of a clock that was set back, does not fit in. */
TEST(late_odometry_that_jumps_is_left_out)
{
    for (int i = 0; i <= 40; i++)
        give_pose(i * 0.05, i * 0.5);
    const struct ndt_track before = track;
    give_pose(1.525, 400);
    ck_assert_mem_eq(&before, &track, sizeof(track));
    give_pose(1.525, 15.25);
    ck_assert_uint_eq(track.odometry.count, 42);
    ck_assert_uint_eq(track.odometry_restarts.count, 0);
}

/* The first samples of a source that has begun anew may come in any order; those of before do not come back. */
TEST(a_restart_of_odometry_ends_the_samples_before_it)
{
    for (int i = 0; i <= 20; i++)
        give_pose(i * 0.05, 500 + i * 0.5);
    give_pose(1.1, 1);
    ck_assert_uint_eq(track.odometry.count, 1);
    give_pose(1.05, 0.5);
    ck_assert_uint_eq(track.odometry.count, 2);
    give_pose(0.98, 509.8);
    ck_assert_uint_eq(track.odometry.count, 2);
    ck_assert_uint_eq(track.odometry_restarts.count, 1);
}

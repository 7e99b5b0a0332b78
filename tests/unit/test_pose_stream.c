/* Poses between scans in the daemon, without sockets: what receiver and matching thread hand over is answered. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndtd/motion_sample.h"
#include "ndtd/pose_stream.h"
#include "ndtd/settings.h"
#include "run_tests.h"

static const int64_t START_NS = 1317042272349000000;

static struct ndtd_pose_stream *stream;
static struct ndtd_settings settings;
static struct ndt_track track;
static struct ndt_error err;
static struct ndt_buffer buffer;

static int64_t after(double s)
{
    return START_NS + (int64_t)llround(s * 1e9);
}

static void setup(void)
{
    const struct ndtd_endpoint none = {.address = ""};
    const struct ndt_pose start = ndt_pose_identity();
    const struct ndt_twist twist = {{5, 0, 0}, {0, 0, 0}};
    ndtd_settings_default(&settings);
    ndt_buffer_init(&buffer);
    ck_assert_int_eq(ndtd_pose_stream_open(&stream, NULL, &none, &settings, &err), NDT_OK);
    ndt_track_init(&track, &settings.track);
    ndt_track_reset(&track, START_NS, &start, &twist, NULL);
}

static void teardown(void)
{
    ndtd_pose_stream_close(stream);
    ndt_buffer_free(&buffer);
}

/* A scan that found the vehicle where it drives at 5 m/s. The stream may not have taken the last eight yet. */
static void scan(double s, enum ndt_state state)
{
    const struct ndtd_pose_stream_scan left = {.track = &track, .state = state, .max_ahead_s = 0.2};
    struct ndt_moment_message ignored;
    track.state.stamp_ns = after(s);
    track.state.T_map_base.t_m[0] = 5 * s;
    ndtd_pose_stream_follow(stream, &left);
    (void)!ndtd_pose_stream_at(stream, 0, &ignored, NULL);
}

static void take(enum ndt_message_type type)
{
    const struct ndtd_message frame = {.type = type, .data = buffer.data, .size = buffer.size};
    ndtd_pose_stream_take(stream, &frame);
}

static void odometry(double s)
{
    struct ndt_pose_message message = {.stamp_ns = after(s),
                                       .frame_id = "odom",
                                       .has_pose = 1,
                                       .has_twist = 1,
                                       .pose = ndt_pose_identity(),
                                       .twist = {{5, 0, 0}, {0, 0, 0}}};
    message.pose.t_m[0] = 5 * s;
    ck_assert_int_eq(ndt_pose_message_encode(&buffer, NDT_MESSAGE_ODOMETRY, &message, &err), NDT_OK);
    take(NDT_MESSAGE_ODOMETRY);
}

static void must_be(double s, enum ndt_pose_kind kind)
{
    struct ndt_moment_message pose;
    const enum ndt_status status = ndtd_pose_stream_at(stream, after(s), &pose, &err);
    ck_assert_msg(status == NDT_OK, "at %g s: %s", s, err.text);
    ck_assert_msg(pose.kind == kind, "at %g s: kind %d", s, (int)pose.kind);
    ck_assert_double_eq_tol(pose.T_map_base.t_m[0], 5 * s, 1e-6);
    ck_assert_double_eq_tol(pose.twist.v_mps[0], 5, 1e-6);
    ck_assert_int_eq(pose.stamp_ns, after(s));
}

static void must_refuse(double s, const char *reason)
{
    struct ndt_moment_message pose;
    ck_assert_int_eq(ndtd_pose_stream_at(stream, after(s), &pose, &err), NDT_END);
    ck_assert_msg(strncmp(err.text, reason, strlen(reason)) == 0, "at %g s: %s", s, err.text);
}

FIXTURE(setup, teardown)

TEST(scans_and_samples_are_answered)
{
    must_refuse(0, "no_pose: ");
    for (int i = 0; i <= 10; i++)
        scan(0.1 * i, NDT_STATE_TRACKING);
    must_be(0.55, NDT_POSE_SMOOTHED);
    must_be(1, NDT_POSE_FILTERED);
    must_be(1.1, NDT_POSE_PREDICTED);
    must_refuse(1.25, "too_far_ahead: ");
    for (int i = 0; i <= 20; i++) /* while the next scan is being matched */
        odometry(0.9 + 0.02 * i);
    must_be(1.25, NDT_POSE_FILTERED);
    must_be(1.45, NDT_POSE_PREDICTED);
    must_refuse(-0.1, "before_window: ");
    struct ndt_moment_message now;
    ck_assert_int_eq(ndtd_pose_stream_at(stream, 0, &now, &err), NDT_OK);
    ck_assert_int_eq(now.stamp_ns, after(1.3));
    ck_assert_int_eq(now.scan_ns, after(1));
    ck_assert_int_eq(now.state, NDT_STATE_TRACKING);
}

TEST(only_trusted_poses_are_told)
{
    scan(0, NDT_STATE_TRACKING);
    scan(0.1, NDT_STATE_LOST);
    must_refuse(0.05, "not_trusted: ");
    must_refuse(0.15, "not_trusted: ");
    scan(0.2, NDT_STATE_TRACKING);
    must_be(0.25, NDT_POSE_PREDICTED);
}

TEST(what_cannot_be_decoded_changes_nothing)
{
    scan(0, NDT_STATE_TRACKING);
    odometry(0);
    odometry(0.1);
    buffer.size -= 3;
    take(NDT_MESSAGE_ODOMETRY);
    take(NDT_MESSAGE_IMU);
    take(NDT_MESSAGE_TRANSFORM);
    take(NDT_MESSAGE_GNSS);
    must_be(0.1, NDT_POSE_FILTERED);
    ck_assert_uint_eq(ndtd_pose_stream_counters(stream).lost, 0);
}

/* The thread empties the rings, however seldom somebody asks. */
TEST(many_samples_fit)
{
    scan(0, NDT_STATE_TRACKING);
    for (int i = 0; i <= 400; i++)
        odometry(0.002 * i);
    must_be(0.8, NDT_POSE_FILTERED);
    ck_assert_uint_eq(ndtd_pose_stream_counters(stream).lost, 0);
    ck_assert_uint_eq(ndtd_pose_stream_counters(stream).published, 0);
}

/* ---- late samples ---- */

enum { DRIVE_SCANS = 40, DRIVE_SAMPLES = 50 * DRIVE_SCANS / 10 };

/* Odometry of a drive whose speed changes. */
static struct ndt_pose_message sample_at(int i)
{
    const double s = 0.02 * i;
    struct ndt_pose_message message = {.stamp_ns = after(s), .has_pose = 1, .pose = ndt_pose_identity()};
    memcpy(message.frame_id, "odom", sizeof("odom"));
    message.pose.t_m[0] = 5 * s - 2 * cos(2 * s);
    return message;
}

/* A scan of the matching thread, to which odometry comes a quarter of a second late. */
static void match(struct ndt_track_window *window, int i)
{
    static struct ndt_observation observation;
    struct ndt_track_state predicted, updated;
    for (int k = 0; k < 36; k += 7)
        observation.information[0][k] = observation.curvature[k] = 1e4;
    const struct ndt_pose_message seen = sample_at(5 * i);
    const struct ndt_track_step step = {
        .before_ns = track.state.stamp_ns,
        .is_measured = 1,
        .measurement = {.T_map_base = seen.pose, .observation = &observation, .is_converged = 1},
        .has_observation = 1,
        .observation = observation};
    const int is_followed = ndt_track_window_ends_at(window, &track);
    ck_assert(ndt_track_predict(&track, seen.stamp_ns, &predicted));
    ndt_track_update(&track, &predicted, &step.measurement, &updated, NULL, NULL);
    ndt_track_commit(&track, &updated);
    ndt_track_window_add(window, &track, is_followed ? &step : NULL, 1);
    const struct ndtd_pose_stream_scan left = {.track = &track,
                                               .step = ndt_track_window_last_step(window),
                                               .state = NDT_STATE_TRACKING,
                                               .max_ahead_s = 0.2};
    ndtd_pose_stream_follow(stream, &left);
}

/* The stream has the samples before the scans, the matching thread after them: both tell the same past. */
TEST(late_samples_give_what_the_pipeline_gives)
{
    static struct ndt_track_window window;
    const struct ndtd_moments moments = {&window, &track, NDT_STATE_TRACKING, 0.2};
    struct ndt_moment_message of_pipeline, of_stream;
    int given = 0;
    ndt_track_window_clear(&window);
    for (int i = 0; i < DRIVE_SAMPLES; i++) {
        const struct ndt_pose_message message = sample_at(i);
        ck_assert_int_eq(ndt_pose_message_encode(&buffer, NDT_MESSAGE_ODOMETRY, &message, &err), NDT_OK);
        take(NDT_MESSAGE_ODOMETRY);
        if (i % 5 == 0)
            match(&window, i / 5);
        for (; given <= i - 12 || (i + 1 == DRIVE_SAMPLES && given <= i); given++) {
            const struct ndt_pose_message late = sample_at(given);
            const struct ndt_track_odometry_sample sample = ndtd_odometry_sample(&late);
            ndt_track_odometry(&track, &sample);
        }
        (void)!ndtd_pose_stream_at(stream, 0, &of_stream, NULL); /* so that no ring is full */
    }
    for (double s = 0.15; s < 3.85; s += 0.037) {
        ck_assert_int_eq(ndtd_moment_at(&moments, after(s), &of_pipeline, &err), NDT_OK);
        ck_assert_int_eq(ndtd_pose_stream_at(stream, after(s), &of_stream, &err), NDT_OK);
        ck_assert_int_eq(of_stream.kind, NDT_POSE_SMOOTHED);
        ck_assert_mem_eq(&of_pipeline, &of_stream, sizeof(of_stream));
    }
}

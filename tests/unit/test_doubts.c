/** @file
 * @brief What a pipeline says of inputs and settings that seem wrong, and that it says nothing of those that are
 * right.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ndtd/options.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndtd_pipeline *pipeline;

static void setup(void)
{
    street_drive_make();
}

static void teardown(void)
{
    ndtd_pipeline_destroy(pipeline);
    pipeline = NULL;
    street_drive_free();
}

static void open_pipeline(void)
{
    ndtd_pipeline_destroy(pipeline);
    pipeline = street_drive_pipeline(drive.map);
}

/* The scan from pose `at` of the drive, its coordinates times `factor`. */
static struct ndtd_scan_record feed_scan(size_t at, int64_t stamp_ns, const float factor[3])
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    const struct ndt_scan_message message = {.seq = at, .stamp_ns = stamp_ns, .frame_id = "lidar"};
    const struct ndt_pose pose = street_drive_pose(at);
    struct ndt_cloud cloud;
    struct ndt_buffer encoded;
    ndt_cloud_init(&cloud);
    ndt_buffer_init(&encoded);
    must(world_scan(&cloud, &world, 100 + at, 6000, &pose, 40, &err));
    for (size_t i = 0; i < cloud.count; i++) {
        cloud.x_m[i] *= factor[0];
        cloud.y_m[i] *= factor[1];
        cloud.z_m[i] *= factor[2];
    }
    must(ndt_scan_encode(&encoded, &message, &cloud, &err));
    ndt_cloud_free(&cloud);
    const struct ndtd_scan_record record = street_drive_feed(pipeline, NDT_MESSAGE_SCAN, &encoded);
    ndt_buffer_free(&encoded);
    return record;
}

static int64_t stamp_of(size_t i)
{
    return DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i;
}

static const float as_it_is[3] = {1, 1, 1};

/* All lines of the pipeline so far; of each kind one. */
static const char *lines(void)
{
    static char all[2000];
    struct ndtd_pipeline_events told = {0};
    char text[NDTD_EVENT_BYTES];
    const char *format;
    all[0] = '\0';
    for (size_t kind = 0;
         (format = ndtd_pipeline_event(ndtd_pipeline_events(pipeline), &told, &kind, text)) != NULL;) {
        ck_assert_uint_lt(strlen(text), NDTD_EVENT_BYTES - 1); /* no line is cut */
        snprintf(all + strlen(all), sizeof(all) - strlen(all), format, text);
    }
    return all;
}

static void expect(const char *part)
{
    ck_assert_msg(strstr(lines(), part) != NULL, "'%s' does not say '%s'", lines(), part);
}

FIXTURE(setup, teardown)

/* The reason is what is wrong with the points, not the pose that could not be found with them. */
TEST(scans_without_a_usable_point)
{
    static const struct {
        float factor[3];
        const char *reason;
    } cases[] = {{{1e4F, 1e4F, 1e4F}, "all points are beyond preprocess.max_range_m, 200 m: from "},
                 {{1e-3F, 1e-3F, 1e-3F}, "all points are nearer than preprocess.min_range_m, 1 m: up to 0.0"},
                 {{NAN, 1, 1}, " points is finite"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_pipeline();
        const struct ndtd_scan_record record = feed_scan(0, stamp_of(0), cases[i].factor);
        ck_assert_int_eq(record.result.outcome, NDT_NO_GUESS);
        ck_assert_msg(strstr(record.result.reason, cases[i].reason) != NULL, "%s", record.result.reason);
        expect("scans without a usable point: 1 so far, the last: ");
        expect(cases[i].reason);
    }
    open_pipeline();
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start); /* and with a pose */
    const struct ndtd_scan_record record = feed_scan(0, stamp_of(0), cases[0].factor);
    ck_assert_int_eq(record.result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(record.result.reason, cases[0].reason));
}

TEST(a_first_pose_that_nobody_looks_for)
{
    static const char *const options[][3] = {
        {"ndt.variant", "autoware", "first pose: there is none, and ndt.variant autoware does not search for one"},
        {"recovery.enable", "false", "with recovery.enable false none is searched for: give it by --initial-pose"},
        {"initial_pose.mode", "given", "with initial_pose.mode given none is searched for"}};
    street_drive_set("ndt.levels", "[2.0]");
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        street_drive_set(options[i][0], options[i][1]);
        open_pipeline();
        feed_scan(0, stamp_of(0), as_it_is);
        feed_scan(1, stamp_of(1), as_it_is);
        expect(options[i][2]);
        ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->poseless, 1);
        open_pipeline();
        street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
        feed_scan(0, stamp_of(0), as_it_is);
        ck_assert_str_eq(lines(), "");
        street_drive_set(options[i][0], i == 0 ? "robust" : i == 1 ? "true" : "auto");
    }
}

TEST(a_map_that_does_not_fit)
{
    static const float mirrored[3] = {1, -1, 1};
    open_pipeline();
    for (size_t i = 0; i < 40; i++) {
        feed_scan(i % 2, stamp_of(4 * i), mirrored);
        ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->unplaced, i >= 29);
    }
    expect("map: none of the first 30 scans fits: is it of this place, in metres");
}

TEST(motion_that_stays_in_scans)
{
    open_pipeline();
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < 30; i++)
        feed_scan(i, stamp_of(i), as_it_is);
    expect("motion: up to 0.8");
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->distorted, 1);
    street_drive_set("preprocess.deskew", "off"); /* there is none, the configuration says */
    open_pipeline();
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < 30; i++)
        feed_scan(i, stamp_of(i), as_it_is);
    ck_assert_str_eq(lines(), "");
}

/* A sensor that stands, with an IMU at 100 Hz that measures this force. */
static void stand_with_imu(const double force_mps2[3])
{
    const struct ndt_pose_message start = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "map", .has_pose = 1, .pose = drive.truth[0]};
    struct ndt_buffer frame;
    ndt_buffer_init(&frame);
    open_pipeline();
    must(ndt_pose_message_encode(&frame, NDT_MESSAGE_INITIAL_POSE, &start, &err));
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &frame);
    for (size_t i = 0; i < 60; i++) {
        for (int64_t k = 1; k <= 10; k++) {
            struct ndt_imu_message imu = {.stamp_ns = stamp_of(i) - DRIVE_STEP_NS + k * (DRIVE_STEP_NS / 10),
                                          .frame_id = "imu",
                                          .has_acceleration = 1};
            memcpy(imu.linear_acceleration_mps2, force_mps2, sizeof(imu.linear_acceleration_mps2));
            must(ndt_imu_encode(&frame, &imu, &err));
            street_drive_feed(pipeline, NDT_MESSAGE_IMU, &frame);
        }
        feed_scan(0, stamp_of(i), as_it_is);
    }
    ndt_buffer_free(&frame);
}

TEST(gravity_that_the_mounting_contradicts)
{
    stand_with_imu((double[3]){0.3, -0.3, 9.8}); /* a bias of 2.5 deg */
    ck_assert_str_eq(lines(), "");
    stand_with_imu((double[3]){3.355, 0, 9.218});
    expect("vertical: that of the IMU is 20 deg off that of the poses");
    ck_assert_uint_ge(ndtd_pipeline_events(pipeline)->leans, 1);
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->weightless, 0);
    stand_with_imu((double[3]){0, 0, 1});
    expect("acceleration: the IMU tells 1 m/s^2 on average in place of gravity's 9.81");
    ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->leans, 0);
}

TEST(stamps_of_another_unit)
{
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        open_pipeline();
        street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
        for (int64_t i = 0; i < 12; i++) /* 10 Hz in microseconds; 200 Hz */
            feed_scan(0, DRIVE_START_NS + i * (is_wrong ? 100000 : 5000000), as_it_is);
        ck_assert_uint_eq(ndtd_pipeline_events(pipeline)->tight, (uint64_t)is_wrong);
    }
    expect("time between scans: scans follow one another by 0.1 ms");
}

/* The reach of the search grows with the gap, and must not grow beyond what a search takes. */
TEST(a_clock_that_begins_in_1970)
{
    const int64_t now_ns = INT64_C(1700000000000000000);
    struct ndtd_scan_record record;
    open_pipeline();
    street_drive_feed(pipeline, NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < 3; i++)
        record = feed_scan(i, stamp_of(i), as_it_is);
    ck_assert_int_eq(record.result.outcome, NDT_CONVERGED);
    for (size_t i = 3; i < 6; i++)
        record = feed_scan(i, now_ns + stamp_of(i), as_it_is);
    ck_assert_msg(record.result.outcome == NDT_CONVERGED, "%s", record.result.reason);
}

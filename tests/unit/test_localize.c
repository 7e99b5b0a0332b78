/** @file
 * @brief Tests of the search for the pose on request: which places its hints admit, and its report. */
#include <math.h>

#include "ndt_proto/control_message.h"
#include "ndtd/pipeline.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndt_localize_report report;
static struct ndt_buffer imu; /* messages of the IMU before the scans; empty: none */

static void take(struct ndtd_pipeline *pipeline, enum ndt_message_type type, const struct ndt_buffer *encoded)
{
    struct ndtd_scan_record record;
    struct ndtd_message frame = {.type = type, .data = encoded->data, .size = encoded->size};
    if (type == NDT_MESSAGE_SCAN)
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
}

/* Searches until there is a result. */
static void localize(const struct ndt_request_message *request)
{
    struct ndtd_pipeline *pipeline;
    int has_result = 0;
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    ndtd_pipeline_localize(pipeline, request);
    if (imu.size > 0)
        take(pipeline, NDT_MESSAGE_IMU, &imu);
    for (size_t i = 0; i < DRIVE_SCANS && !has_result; i++) {
        take(pipeline, NDT_MESSAGE_SCAN, &drive.scans[i]);
        must(ndtd_pipeline_follow_up(pipeline, &err));
        has_result = ndtd_pipeline_localize_report(pipeline, &report);
    }
    if (!has_result)
        ndtd_pipeline_cancel_localize(pipeline);
    ndtd_pipeline_localize_report(pipeline, &report);
    ndtd_pipeline_destroy(pipeline);
}

static struct ndt_request_message near_start(double heading_rad)
{
    struct ndt_request_message request = {.op = NDT_OP_LOCALIZE};
    request.hint.has_position = request.hint.has_heading = request.hint.has_heading_deviation = 1;
    memcpy(request.hint.position_m, drive.truth[0].t_m, sizeof(request.hint.position_m));
    request.hint.heading_rad = heading_rad;
    request.hint.heading_deviation_rad = 0.02;
    return request;
}

static void is_found(const struct ndt_pose *T_base_sensor)
{
    ck_assert_msg(report.has_pose, "nothing was found: %s", report.reason);
    ck_assert_uint_lt(report.seq, DRIVE_SCANS);
    const struct ndt_pose found = ndt_pose_compose(&report.best.T_map_base, T_base_sensor);
    ck_assert_double_le(ndt_pose_distance_m(&found, &drive.truth[report.seq]), 0.3);
    ck_assert_double_le(ndt_pose_angle_rad(&found, &drive.truth[report.seq]), 0.02);
}

FIXTURE(street_drive_make, street_drive_free)

TEST(a_heading_is_an_angle)
{
    const struct ndt_pose same = {.q_xyzw = {0, 0, 0, 1}};
    for (int turn = -1; turn <= 1; turn++) {
        const struct ndt_request_message request = near_start(2 * M_PI * turn);
        localize(&request);
        is_found(&same);
    }
}

TEST(a_heading_excludes_others)
{
    const struct ndt_request_message request = near_start(M_PI / 2);
    localize(&request);
    const double off_m = ndt_pose_distance_m(&report.best.T_map_base, &drive.truth[report.seq % DRIVE_SCANS]);
    ck_assert(!report.has_pose || off_m > 1 ||
              ndt_pose_angle_rad(&report.best.T_map_base, &drive.truth[report.seq % DRIVE_SCANS]) > 0.5);
}

/* A position that is wrong ends with an answer, which says that no place is believed and why. */
TEST(a_wrong_position_is_answered)
{
    for (int k = 0; k < 2; k++) {
        struct ndt_request_message request = {.op = NDT_OP_LOCALIZE};
        request.hint.has_position = 1;
        memcpy(request.hint.position_m, drive.truth[0].t_m, sizeof(request.hint.position_m));
        request.hint.position_m[0] += k == 0 ? 500 : 60;
        localize(&request);
        ck_assert_int_eq(report.accepted, 0);
        ck_assert_int_eq(report.applied, 0);
        ck_assert_msg(k == 1 || strcmp(report.reason, "the scan fits nowhere near the position that was told") == 0,
                      "%s", report.reason);
    }
}

/* The window around a pose of the base holds a sensor that is far from it. */
TEST(the_sensor_is_far_from_the_base)
{
    const struct ndt_pose T_base_sensor = {.t_m = {32, 0, 0}, .q_xyzw = {0, 0, 0, 1}};
    struct ndt_request_message request = {.op = NDT_OP_LOCALIZE};
    must(ndtd_option_set_text(&drive.settings, "frames.T_base_sensor", "[32, 0, 0, 0, 0, 0, 1]", &err));
    request.pose = (struct ndt_pose_message){.has_pose = 1, .pose = drive.truth[0]};
    request.pose.pose.t_m[0] -= 32;
    localize(&request);
    is_found(&T_base_sensor);
}

/* The points of all scans, as a sensor measures them that is turned in its place. */
static void turn_sensor(const struct ndt_pose *T_upright_sensor)
{
    const struct ndt_pose T_sensor_upright = ndt_pose_inverse(T_upright_sensor);
    struct ndt_cloud points;
    ndt_cloud_init(&points);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        struct ndt_scan_message message;
        must(ndt_scan_decode(drive.scans[i].data, drive.scans[i].size, &message, &points, &err));
        for (size_t k = 0; k < points.count; k++) {
            const double upright_m[3] = {(double)points.x_m[k], (double)points.y_m[k], (double)points.z_m[k]};
            double of_sensor_m[3];
            ndt_pose_apply(&T_sensor_upright, upright_m, of_sensor_m);
            points.x_m[k] = (float)of_sensor_m[0];
            points.y_m[k] = (float)of_sensor_m[1];
            points.z_m[k] = (float)of_sensor_m[2];
        }
        must(ndt_scan_encode(&drive.scans[i], &message, &points, &err));
    }
    ndt_cloud_free(&points);
}

static const double attitudes_rad[][3] = {{M_PI, 0, 0},      {0, M_PI, 1},      {M_PI / 2, 0, 0.3},
                                          {-M_PI / 2, 0, 2}, {0, M_PI / 2, 0},  {0, -M_PI / 2, -1},
                                          {M_PI / 6, 0, 2},  {0, M_PI / 6, -2}, {M_PI / 6, M_PI / 2, 0},
                                          {0, 0, 2.5},       {3, 0.3, -1.3}};

/* A sensor that hangs, lies on its side or leans, in front of the base: found at once, and a heading is that of the
 * base. */
TEST_EACH(a_sensor_is_mounted_in_any_way, 0, sizeof(attitudes_rad) / sizeof(attitudes_rad[0]))
{
    const double *rpy = attitudes_rad[_i];
    const struct ndt_pose T_base_upright = {.t_m = {1.2, -0.3, 0.9}, .q_xyzw = {0, 0, 0, 1}};
    const struct ndt_pose T_upright_sensor = ndt_pose_from_rpy((double[3]){0}, rpy);
    const struct ndt_request_message anywhere = {.op = NDT_OP_LOCALIZE}, along = near_start(0),
                                     across = near_start(M_PI / 2);
    char mounting[160];
    snprintf(mounting, sizeof(mounting), "[1.2, -0.3, 0.9, %.17g, %.17g, %.17g]", rpy[0], rpy[1], rpy[2]);
    must(ndtd_option_set_text(&drive.settings, "frames.T_base_sensor", mounting, &err));
    turn_sensor(&T_upright_sensor);
    localize(&anywhere);
    is_found(&T_base_upright);
    ck_assert_uint_eq(report.seq, 0);
    ck_assert_int_eq(report.accepted, 1);
    localize(&along);
    is_found(&T_base_upright);
    localize(&across);
    const struct ndt_pose found = ndt_pose_compose(&report.best.T_map_base, &T_base_upright);
    ck_assert(!report.accepted || ndt_pose_distance_m(&found, &drive.truth[report.seq % DRIVE_SCANS]) > 1);
}

/* The sensor lies on its side, as an IMU at rest tells. */
TEST(gravity_tells_what_is_upward)
{
    const struct ndt_pose T_upright_base = ndt_pose_from_rpy((double[3]){0}, (double[3]){M_PI / 2, 0, 0});
    const struct ndt_pose T_base_upright = ndt_pose_inverse(&T_upright_base);
    const struct ndt_request_message anywhere = {.op = NDT_OP_LOCALIZE}, along = near_start(0);
    struct ndt_imu_message message = {.stamp_ns = DRIVE_START_NS, .frame_id = "imu", .has_acceleration = 1};
    ndt_pose_apply(&T_base_upright, (double[3]){0, 0, 9.81}, message.linear_acceleration_mps2);
    must(ndt_imu_encode(&imu, &message, &err));
    turn_sensor(&T_upright_base);
    localize(&anywhere);
    is_found(&T_base_upright);
    localize(&along);
    is_found(&T_base_upright);
    ndt_buffer_free(&imu);
}

TEST(times_sum_up)
{
    const struct ndt_request_message request = near_start(0);
    localize(&request);
    ck_assert_double_gt(report.search_ms, 0);
    ck_assert_double_gt(report.verification_ms, 0);
    ck_assert_double_eq_tol(report.queue_ms + report.search_ms + report.verification_ms, report.elapsed_ms, 1e-6);
}

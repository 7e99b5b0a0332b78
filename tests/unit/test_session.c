/* A session: the results of the pipeline, by structs and by encoded messages; the order of calls; allocations. */
#include "allocation_counter.h"
#include "ndtd/pipeline.h"
#include "ndtd/session.h"
#include "run_tests.h"
#include "street_drive.h"

static struct ndtd_session *session;

static void start(void)
{
    must(ndtd_session_create(&session, &err));
    must(ndtd_session_set_option(session, "cpu.threads", "1", &err));
    must(ndtd_session_start(session, drive.map, &err));
}

static void setup(void)
{
    street_drive_make();
    start();
}

static void teardown(void)
{
    ndtd_session_destroy(session);
    street_drive_free();
}

static void give_start(struct ndt_result_message *result)
{
    int is_scan;
    must(ndtd_session_message(session, drive.start.data, drive.start.size, &is_scan, result, &err));
    ck_assert(!is_scan);
}

static void check_equal(const struct ndt_result_message *result, const struct ndtd_scan_record *record)
{
    ck_assert_uint_eq(result->seq, record->seq);
    ck_assert_int_eq(result->result.outcome, record->result.outcome);
    ck_assert_mem_eq(&result->result.T_map_sensor, &record->result.T_map_sensor, sizeof(struct ndt_pose));
    ck_assert_mem_eq(result->result.covariance, record->result.covariance, sizeof(record->result.covariance));
}

FIXTURE(setup, teardown)

TEST(results_are_those_of_the_pipeline)
{
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    struct ndt_result_message result;
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    struct ndtd_message frame = {
        .type = NDT_MESSAGE_INITIAL_POSE, .data = drive.start.data, .size = drive.start.size};
    must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
    give_start(&result);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        int is_scan;
        frame = (struct ndtd_message){
            .type = NDT_MESSAGE_SCAN, .data = drive.scans[i].data, .size = drive.scans[i].size};
        must(ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err));
        must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
        must(ndtd_session_message(session, frame.data, frame.size, &is_scan, &result, &err));
        ck_assert(is_scan && ndtd_session_is_pose_trusted(session));
        check_equal(&result, &record);
        ck_assert_uint_eq(result.map_id, drive.map->id);
    }
    ndtd_pipeline_destroy(pipeline);
}

/* Decodes the messages and hands them over as structs. */
TEST(structs_and_messages_are_the_same)
{
    struct ndtd_session *by_message = session;
    struct ndt_result_message result, expected;
    struct ndt_pose_message pose;
    struct ndt_scan_message scan;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    give_start(&expected);
    start();
    must(ndt_pose_message_decode(drive.start.data, drive.start.size, NDT_MESSAGE_INITIAL_POSE, &pose, &err));
    must(ndtd_session_pose(session, NDT_MESSAGE_INITIAL_POSE, &pose, &err));
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        int is_scan;
        must(ndtd_session_message(by_message, drive.scans[i].data, drive.scans[i].size, &is_scan, &expected, &err));
        must(ndt_scan_decode(drive.scans[i].data, drive.scans[i].size, &scan, &cloud, &err));
        must(ndtd_session_scan(session, &scan, &cloud, &result, &err));
        ck_assert_mem_eq(&result.result.T_map_sensor, &expected.result.T_map_sensor, sizeof(struct ndt_pose));
    }
    ndt_cloud_free(&cloud);
    ndtd_session_destroy(by_message);
}

TEST(other_inputs_take_part)
{
    struct ndt_result_message result;
    const struct ndt_pose_message odometry = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "odom", .has_twist = 1, .twist = {{8, 0, 0}, {0, 0, 0.05}}};
    const struct ndt_imu_message imu = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "imu", .angular_velocity_radps = {0, 0, 0.05}};
    struct ndt_gnss_message gnss = {
        .stamp_ns = DRIVE_START_NS, .frame_id = "gnss", .has_deviation = 1, .deviation_m = {1, 1, 1}};
    must(ndtd_session_pose(session, NDT_MESSAGE_ODOMETRY, &odometry, &err));
    must(ndtd_session_imu(session, &imu, &err));
    must(ndtd_session_gnss(session, &gnss, &err));
    gnss.deviation_m[0] = -1;
    ck_assert_int_eq(ndtd_session_gnss(session, &gnss, &err), NDT_ERR_ARGUMENT);
    give_start(&result);
}

/* Poses between, at and beyond the scans; asking changes nothing. */
TEST(the_pose_at_any_time)
{
    struct ndt_result_message result;
    struct ndt_moment_message moment, again;
    int is_scan;
    ck_assert_int_eq(ndtd_session_pose_at(session, 0, &moment, &err), NDT_END);
    ck_assert_str_eq(err.text, "no_pose: no scan has left a pose yet");
    give_start(&result);
    for (size_t i = 0; i < DRIVE_SCANS; i++)
        must(ndtd_session_message(session, drive.scans[i].data, drive.scans[i].size, &is_scan, &result, &err));
    must(ndtd_session_pose_at(session, 0, &moment, &err));
    ck_assert_int_eq(moment.kind, NDT_POSE_FILTERED);
    ck_assert_int_eq(moment.state, NDT_STATE_TRACKING);
    ck_assert(moment.scan_ns == moment.stamp_ns && moment.has_twist && moment.covariance[0] > 0);
    const int64_t newest_ns = moment.stamp_ns;
    must(ndtd_session_pose_at(session, newest_ns - 130000000, &moment, &err));
    must(ndtd_session_pose_at(session, newest_ns - 130000000, &again, &err));
    ck_assert_int_eq(moment.kind, NDT_POSE_SMOOTHED);
    ck_assert_mem_eq(&moment, &again, sizeof(moment));
    must(ndtd_session_pose_at(session, newest_ns + 150000000, &moment, &err));
    ck_assert_int_eq(moment.kind, NDT_POSE_PREDICTED);
    ck_assert_int_eq(moment.scan_ns, newest_ns);
    ck_assert_int_eq(ndtd_session_pose_at(session, newest_ns + 250000000, &moment, &err), NDT_END);
    ck_assert_str_eq(err.text, "too_far_ahead: the stamp is 0.05 s later than can be predicted");
    ck_assert_int_eq(ndtd_session_pose_at(session, newest_ns - 60000000000, &moment, &err), NDT_END);
    ck_assert_ptr_nonnull(strstr(err.text, "before_window: "));
}

TEST(the_order_of_calls_is_checked)
{
    struct ndtd_session *fresh;
    struct ndt_result_message result;
    int is_scan = 1;
    must(ndtd_session_create(&fresh, &err));
    ck_assert_int_eq(ndtd_session_message(fresh, "x", 1, &is_scan, &result, &err), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(err.text, "the session has not started");
    ck_assert(!is_scan && !ndtd_session_is_pose_trusted(fresh));
    ck_assert_int_eq(ndtd_session_set_map(fresh, drive.map, &err), NDT_ERR_ARGUMENT);
    struct ndt_moment_message moment;
    ck_assert_int_eq(ndtd_session_pose_at(fresh, 0, &moment, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_session_start(fresh, NULL, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "map.path"));
    ck_assert_int_eq(ndtd_session_set_option(fresh, "ndt.levels", "[1, 2]", &err), NDT_OK);
    ck_assert_int_eq(ndtd_session_start(fresh, drive.map, &err), NDT_ERR_ARGUMENT); /* coarse to fine */
    must(ndtd_session_set_option(fresh, "ndt.levels", "[4, 2, 1]", &err));
    ck_assert_int_eq(ndtd_session_set_option(fresh, "ndt.levls", "[4]", &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_session_read_options(fresh, "/nowhere.yaml", &err), NDT_ERR_ARGUMENT);
    must(ndtd_session_start(fresh, drive.map, &err));
    ck_assert_int_eq(ndtd_session_start(fresh, drive.map, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_session_read_options(fresh, "/nowhere.yaml", &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "has started"));
    must(ndtd_session_set_map(fresh, NULL, &err));
    must(ndtd_session_message(fresh, drive.start.data, drive.start.size, &is_scan, &result, &err));
    must(ndtd_session_message(fresh, drive.scans[0].data, drive.scans[0].size, &is_scan, &result, &err));
    ck_assert_int_eq(result.result.outcome, NDT_NO_MAP);
    must(ndtd_session_set_map(fresh, drive.map, &err));
    ndtd_session_destroy(fresh);
}

TEST(bytes_from_outside_are_refused)
{
    struct ndt_result_message result;
    int is_scan;
    for (size_t cut = 0; cut < drive.scans[0].size; cut += drive.scans[0].size / 97 + 1) {
        ck_assert_int_ne(ndtd_session_message(session, drive.scans[0].data, cut, &is_scan, &result, &err), NDT_OK);
        ck_assert(!is_scan && *err.text);
    }
    give_start(&result);
    must(ndtd_session_message(session, drive.scans[0].data, drive.scans[0].size, &is_scan, &result, &err));
    ck_assert_int_eq(result.result.outcome, NDT_CONVERGED);
}

TEST(nothing_is_allocated_after_warm_up)
{
    struct ndt_result_message result;
    struct ndt_scan_message scan;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    give_start(&result);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        must(ndt_scan_decode(drive.scans[i].data, drive.scans[i].size, &scan, &cloud, &err));
        const unsigned long before = allocations;
        const enum ndt_status status = ndtd_session_scan(session, &scan, &cloud, &result, &err);
        const unsigned long after = allocations;
        must(status);
        if (i >= 4)
            ck_assert_uint_eq(after, before);
    }
    ndt_cloud_free(&cloud);
}

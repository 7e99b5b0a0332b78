/* The wire codec: golden vectors in both directions, malformed and hostile messages. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden_vector.h"
#include "ndt_proto/control_message.h"
#include "run_tests.h"

#define STAMP_NS INT64_C(1317042272349000123)

static const char *const all_vectors[] = {"scan",
                                          "scan_double",
                                          "scan_padded",
                                          "initial_pose",
                                          "odometry",
                                          "truth",
                                          "result",
                                          "result_lost",
                                          "result_daemon",
                                          "result_estimate",
                                          "result_state",
                                          "gnss",
                                          "imu",
                                          "transform",
                                          "gnss_antenna",
                                          "request_pose",
                                          "request_path",
                                          "request_timings",
                                          "request_localize",
                                          "reply_localize",
                                          "points",
                                          "result_sensor",
                                          "pose",
                                          "request_pose_at",
                                          "reply_pose_at"};
enum { VECTOR_COUNT = sizeof(all_vectors) / sizeof(all_vectors[0]) };

static struct ndt_cloud cloud;
static struct ndt_buffer frame;
static struct ndt_error error;

static void setup(void)
{
    ndt_cloud_init(&cloud);
    ndt_buffer_init(&frame);
}

static void teardown(void)
{
    ndt_cloud_free(&cloud);
    ndt_buffer_free(&frame);
}

/* Decodes as a receiver does: type first. For scans, all functions must agree. */
static enum ndt_status decode_any(const uint8_t *data, size_t size, struct ndt_error *err)
{
    struct ndt_scan_message scan;
    struct ndt_scan_header header;
    struct ndt_pose_message pose;
    struct ndt_result_message result;
    struct ndt_gnss_message gnss;
    struct ndt_imu_message imu;
    static struct ndt_points_message points;
    struct ndt_request_message request;
    struct ndt_reply_message reply;
    struct ndt_moment_message moment;
    uint64_t id;
    enum ndt_message_type type;
    const enum ndt_status status = ndt_message_peek(data, size, &type, err);
    if (status != NDT_OK)
        return status;
    switch (type) {
    case NDT_MESSAGE_SCAN: {
        struct ndt_error why = {""};
        (void)!ndt_scan_identify(data, size, &scan, err);
        const enum ndt_status decoded = ndt_scan_header_decode(data, size, &header, &why);
        ck_assert_int_eq(ndt_scan_decode(data, size, &scan, &cloud, err), decoded);
        if (decoded == NDT_OK) {
            ck_assert(header.seq == scan.seq && header.stamp_ns == scan.stamp_ns);
            ck_assert_str_eq(header.frame_id, scan.frame_id);
            ck_assert_uint_eq(header.points.count, cloud.count);
            ck_assert_uint_le(header.points.data_at + header.points.data_size, size);
        } else {
            ck_assert_str_eq(why.text, err->text);
        }
        return decoded;
    }
    case NDT_MESSAGE_RESULT:
        return ndt_result_decode(data, size, &result, err);
    case NDT_MESSAGE_GNSS:
        return ndt_gnss_decode(data, size, &gnss, err);
    case NDT_MESSAGE_IMU:
        return ndt_imu_decode(data, size, &imu, err);
    case NDT_MESSAGE_POINTS:
        return ndt_points_decode(data, size, &points, &cloud, err);
    case NDT_MESSAGE_POSE:
        return ndt_moment_decode(data, size, &moment, err);
    case NDT_MESSAGE_REQUEST:
        return ndt_request_decode(data, size, &request, &id, err);
    case NDT_MESSAGE_REPLY:
        return ndt_reply_decode(data, size, &reply, err);
    default:
        return ndt_pose_message_decode(data, size, type, &pose, err);
    }
}

/* Copies to a buffer of exactly that size, so that the address sanitizer detects every read beyond it. */
static enum ndt_status decode_copy(const uint8_t *data, size_t size, struct ndt_error *err)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    err->text[0] = '\0';
    const enum ndt_status status = decode_any(copy, size, err);
    free(copy);
    if (status != NDT_OK) {
        ck_assert_msg(err->text[0] != '\0', "a failure without a reason");
        ck_assert_ptr_null(strchr(err->text, '\n'));
    }
    return status;
}

static void assert_frame(const struct golden_vector *golden)
{
    ck_assert_uint_eq(frame.size, golden->size);
    for (size_t i = 0; i < golden->size; i++)
        ck_assert_msg(frame.data[i] == golden->bytes[i], "byte %zu is %02x, not %02x", i, frame.data[i],
                      golden->bytes[i]);
}

#define ASSERT_OK(call)                                                                                            \
    do {                                                                                                           \
        const enum ndt_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == NDT_OK, "%s: %s", ndt_status_name(status_), error.text);                          \
    } while (0)

/* ---- golden vectors ---- */

static void assert_point(size_t i, float x, float y, float z)
{
    ck_assert(cloud.x_m[i] == x && cloud.y_m[i] == y && cloud.z_m[i] == z);
}

FIXTURE(setup, teardown)

TEST(golden_scan)
{
    const struct golden_vector golden = golden_read("scan");
    struct ndt_scan_message message;
    ASSERT_OK(ndt_scan_decode(golden.bytes, golden.size, &message, &cloud, &error));
    ck_assert_uint_eq(message.seq, 7);
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "lidar");
    ck_assert_uint_eq(cloud.count, 3);
    ck_assert(cloud.origin_m[0] == 0 && cloud.origin_m[1] == 0 && cloud.origin_m[2] == 0);
    assert_point(0, 1.5f, 0.5f, -1.0f);
    assert_point(1, -2.25f, 3.75f, 0.0f);
    assert_point(2, 100.0f, -0.125f, 2.5f);
    ck_assert(cloud.intensity[0] == 0.25f && cloud.intensity[1] == 0.5f && cloud.intensity[2] == 1.0f);
    ck_assert(cloud.time_s[0] == 0.0f && cloud.time_s[1] == 0.0625f && cloud.time_s[2] == -0.03125f);
    ASSERT_OK(ndt_scan_encode(&frame, &message, &cloud, &error));
    assert_frame(&golden);
}

TEST(golden_scan_double)
{
    const struct golden_vector golden = golden_read("scan_double");
    struct ndt_scan_message message;
    ASSERT_OK(ndt_scan_decode(golden.bytes, golden.size, &message, &cloud, &error));
    ck_assert_uint_eq(cloud.count, 2);
    ck_assert(cloud.origin_m[0] == 499712.0 && cloud.origin_m[1] == 4649984.0 && cloud.origin_m[2] == 0.0);
    assert_point(0, 288.125f, 0.25f, 12.5f);
    assert_point(1, 298.5f, 6.0f, -3.0f);
    ck_assert_uint_eq(cloud.fields, 0);
    ASSERT_OK(ndt_scan_encode(&frame, &message, &cloud, &error));
    assert_frame(&golden);
}

TEST(golden_scan_padded)
{
    const struct golden_vector golden = golden_read("scan_padded");
    struct ndt_scan_message message;
    ASSERT_OK(ndt_scan_decode(golden.bytes, golden.size, &message, &cloud, &error));
    ck_assert(message.seq == UINT64_MAX);
    ck_assert_int_eq(message.stamp_ns, -1);
    ck_assert_str_eq(message.frame_id, "");
    ck_assert_uint_eq(cloud.count, 2);
    assert_point(0, 1.0f, 3.0f, 5.0f);
    assert_point(1, 2.0f, 4.0f, 6.0f);
    ck_assert(cloud.intensity[0] == 300.0f && cloud.intensity[1] == 65535.0f);
    ck_assert(cloud.time_s[0] == 0.0f && cloud.time_s[1] == 0.0995f);
}

TEST(golden_initial_pose)
{
    static const double pose[7] = {10.5, -20.25, 1, 0.5, -0.5, 0.5, 0.5}, twist[6] = {3.5, 0, -0.125, 0, 0, 0.0625};
    const struct golden_vector golden = golden_read("initial_pose");
    struct ndt_pose_message message;
    ASSERT_OK(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_INITIAL_POSE, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "map");
    ck_assert(message.has_pose && message.has_twist && message.has_covariance);
    ck_assert_mem_eq(message.pose.t_m, pose, sizeof(message.pose.t_m));
    ck_assert_mem_eq(message.pose.q_xyzw, pose + 3, sizeof(message.pose.q_xyzw));
    ck_assert_mem_eq(message.twist.v_mps, twist, sizeof(message.twist.v_mps));
    ck_assert_mem_eq(message.twist.w_radps, twist + 3, sizeof(message.twist.w_radps));
    for (int i = 0; i < 36; i++)
        ck_assert(message.covariance[i] == (i % 7 == 0 ? 0.25 * (i / 7 + 1) : 0.0));
    ASSERT_OK(ndt_pose_message_encode(&frame, NDT_MESSAGE_INITIAL_POSE, &message, &error));
    assert_frame(&golden);
}

TEST(golden_odometry)
{
    const struct golden_vector golden = golden_read("odometry");
    struct ndt_pose_message message;
    ASSERT_OK(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_ODOMETRY, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS + 1);
    ck_assert_str_eq(message.frame_id, "odom");
    ck_assert(!message.has_pose && message.has_twist && !message.has_covariance);
    ck_assert(message.twist.v_mps[0] == 8.5 && message.twist.w_radps[2] == -1.5);
    ASSERT_OK(ndt_pose_message_encode(&frame, NDT_MESSAGE_ODOMETRY, &message, &error));
    assert_frame(&golden);
}

TEST(golden_truth)
{
    const struct golden_vector golden = golden_read("truth");
    struct ndt_pose_message message;
    ASSERT_OK(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_TRUTH, &message, &error));
    ck_assert_int_eq(message.stamp_ns, -2500000000);
    ck_assert(message.has_pose && !message.has_twist && !message.has_covariance);
    ck_assert(message.pose.t_m[0] == -1 && message.pose.t_m[1] == 2 && message.pose.t_m[2] == -3);
    ck_assert(message.pose.q_xyzw[0] == 0 && message.pose.q_xyzw[3] == 1);
    ASSERT_OK(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRUTH, &message, &error));
    assert_frame(&golden);
}

TEST(golden_pose)
{
    const struct golden_vector golden = golden_read("pose");
    struct ndt_moment_message message;
    ASSERT_OK(ndt_moment_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_int_eq(message.scan_ns, STAMP_NS - 49000123);
    ck_assert_str_eq(message.frame_id, "map");
    ck_assert(message.T_map_base.t_m[1] == -20.25 && message.T_map_base.q_xyzw[1] == -0.5);
    ck_assert(message.covariance[0] == 0.0625 && message.covariance[6] == 1.0 / 128);
    ck_assert(message.has_twist && message.twist.v_mps[0] == 8.5 && message.twist.w_radps[2] == -1.5);
    ck_assert(message.kind == NDT_POSE_SMOOTHED && message.state == NDT_STATE_COASTING);
    ASSERT_OK(ndt_moment_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.kind = NDT_POSE_KIND_COUNT;
    ck_assert_int_eq(ndt_moment_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "pose message: field 'kind': there is no kind 3");
    message.kind = NDT_POSE_FILTERED;
    message.T_map_base.q_xyzw[3] = 2;
    ck_assert_int_eq(ndt_moment_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
}

TEST(golden_transform)
{
    const struct golden_vector golden = golden_read("transform");
    struct ndt_pose_message message;
    ASSERT_OK(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_TRANSFORM, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "lidar_top");
    ck_assert(message.has_pose && !message.has_twist && !message.has_covariance);
    ck_assert(message.pose.t_m[0] == 1.25 && message.pose.t_m[2] == 1.875 && message.pose.q_xyzw[2] == 0.5);
    ASSERT_OK(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRANSFORM, &message, &error));
    assert_frame(&golden);
    message.has_pose = 0;
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRANSFORM, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "transform message: field 'pose' is missing");
}

TEST(golden_points)
{
    const struct golden_vector golden = golden_read("points");
    static struct ndt_points_message message;
    ASSERT_OK(ndt_points_decode(golden.bytes, golden.size, &message, &cloud, &error));
    ck_assert(message.seq == 7 && message.stamp_ns == STAMP_NS);
    ck_assert_str_eq(message.frame_id, "base");
    ck_assert(cloud.count == 3 && cloud.x_m[2] == 100 && cloud.intensity[0] == 0.25F && !cloud.time_s);
    ck_assert_uint_eq(message.iteration_count, 1);
    const struct ndt_iteration *step = message.iterations;
    ck_assert(step->iteration == 0 && step->level == 1 && step->evaluations == 2 && step->score == -0.5);
    ck_assert(step->gradient_norm == 64 && step->step_m == 0.25 && step->step_rad == 0.0078125);
    ck_assert(step->matched == 1200 && step->pairs == 3600 && step->eval_us == 512 && step->solve_us == 4.5);
    ck_assert(isnan(step->kernel_us));
    ck_assert_uint_eq(message.candidate_count, 2);
    ck_assert_int_eq(message.candidates[0].kind, NDT_CANDIDATE_HYPOTHESIS);
    ck_assert(isnan(message.candidates[0].confidence) && message.candidates[0].T_map_base.q_xyzw[2] == 1);
    ck_assert_int_eq(message.candidates[1].kind, NDT_CANDIDATE_SEARCH);
    ck_assert(message.candidates[1].confidence == 0.25 && message.candidates[1].T_map_base.t_m[1] == 16);
    ck_assert(message.has_gnss && message.has_gnss_deviation);
    ck_assert(message.gnss_position_m[1] == -20 && message.gnss_deviation_m[2] == 2);
    ASSERT_OK(ndt_points_encode(&frame, &message, &cloud, &error));
    assert_frame(&golden);
}

TEST(points_that_cannot_be_sent)
{
    static struct ndt_points_message message = {.frame_id = "base", .candidate_count = 1};
    message.candidates[0] =
        (struct ndt_points_candidate){.T_map_base = {.q_xyzw = {0, 0, 0, 1}}, .confidence = NAN};
    ASSERT_OK(ndt_points_encode(&frame, &message, &cloud, &error));
    message.candidates[0].confidence = 1.5;
    ck_assert_int_eq(ndt_points_encode(&frame, &message, &cloud, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "points message: field 'confidence': 1.5 is not within 0 and 1");
    message.candidates[0].confidence = 0;
    message.candidates[0].T_map_base.t_m[0] = NAN;
    ck_assert_int_eq(ndt_points_encode(&frame, &message, &cloud, &error), NDT_ERR_ARGUMENT);
    message.candidate_count = 0;
    message.iteration_count = NDT_POINTS_MAX_ITEMS + 1;
    ck_assert_int_eq(ndt_points_encode(&frame, &message, &cloud, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
}

static void assert_result(const struct ndt_result_message *message)
{
    const struct ndt_align_result *r = &message->result;
    ck_assert(message->seq == 300 && message->stamp_ns == STAMP_NS);
    ck_assert(message->map_id == UINT64_C(0xfedcba9876543210));
    ck_assert_int_eq(r->outcome, NDT_CONVERGED);
    ck_assert_str_eq(r->reason, "");
    ck_assert(r->T_map_sensor.t_m[2] == 3.0 && r->T_map_sensor.q_xyzw[1] == -0.5);
    ck_assert(r->has_covariance && r->covariance[0] == 0.0625 && r->covariance[35] == 1.0 / 512);
    ck_assert(r->weak_count == 1 && r->weak_axes[0][0] == 1.0);
    ck_assert(r->scores.transform_probability == 1.75 && r->scores.nvtl == 1.5);
    ck_assert(r->scores.nvtl_normalized == 0.625 && r->scores.match_ratio == 0.875 && r->scores.coverage == 0.75);
    ck_assert(r->iterations == 8 && r->evaluations == 11 && r->oscillation == 2);
    ck_assert(message->decode_us == 120.5 && message->queue_us == 0 && message->preprocess_us == 800.25);
    ck_assert(message->upload_us == 1.5 && r->align_us == 350 && message->publish_us == 2.5);
}

/* An older result, encoded again, ends with the three keys that were added later. */
static void assert_longer_frame(const struct golden_vector *golden)
{
    static const char later[] = "\xab"
                                "config_hash\x00\xab"
                                "queue_depth\x00\xac"
                                "drop_counter\x00";
    ck_assert_uint_eq(frame.size, golden->size + sizeof(later) - 1);
    ck_assert_uint_eq(frame.data[2], golden->bytes[2] + 3u);
    ck_assert_mem_eq(frame.data + 3, golden->bytes + 3, golden->size - 3);
    ck_assert_mem_eq(frame.data + golden->size, later, sizeof(later) - 1);
}

TEST(golden_result)
{
    const struct golden_vector golden = golden_read("result");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    assert_result(&message);
    ck_assert(message.config_hash == 0 && message.queue_depth == 0 && message.drop_counter == 0);
    ck_assert(!message.has_twist && !message.has_confidence && !message.has_innovation);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_longer_frame(&golden);
}

TEST(golden_result_lost)
{
    const struct golden_vector golden = golden_read("result_lost");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.result.outcome, NDT_NO_GUESS);
    ck_assert_str_eq(message.result.reason, "no initial pose yet");
    ck_assert(message.result.T_map_sensor.q_xyzw[3] == 0 && !message.result.has_covariance);
    ck_assert(isnan(message.result.scores.nvtl) && message.result.weak_count == 0);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_longer_frame(&golden);
}

TEST(golden_result_daemon)
{
    const struct golden_vector golden = golden_read("result_daemon");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.result.outcome, NDT_DEADLINE);
    ck_assert(message.seq == 301 && message.result.align_us == 90000 && message.result.has_covariance);
    ck_assert(message.config_hash == UINT64_C(0x8123456789abcdef));
    ck_assert_uint_eq(message.queue_depth, 2);
    ck_assert_uint_eq(message.drop_counter, 70000);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_frame(&golden);
}

TEST(golden_result_estimate)
{
    const struct golden_vector golden = golden_read("result_estimate");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.result.outcome, NDT_LOST);
    ck_assert(message.has_twist && message.twist.v_mps[0] == 8.5 && message.twist.w_radps[2] == 0.25);
    ck_assert(message.has_confidence && message.confidence == 0.25);
    ck_assert(message.has_innovation && message.innovation == 4.5);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.confidence = message.innovation = NAN; /* unknown: the keys are absent */
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    ck_assert_uint_eq(frame.data[2], golden.bytes[2] - 2u);
    ck_assert_uint_eq(frame.size, golden.parts[golden.part_count - 2]);
    ASSERT_OK(ndt_result_decode(frame.data, frame.size, &message, &error));
    ck_assert(message.has_twist && !message.has_confidence && !message.has_innovation);
}

TEST(golden_result_state)
{
    const struct golden_vector golden = golden_read("result_state");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert(message.has_state && message.state == NDT_STATE_COASTING);
    ck_assert(message.has_margin && message.margin == 0.125);
    ck_assert(message.has_guess && message.T_map_guess.t_m[0] == 1.25 && message.T_map_guess.q_xyzw[3] == 1);
    ck_assert(message.has_hypotheses && message.hypotheses == 300);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.margin = NAN; /* unknown: the key is absent */
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    ck_assert_uint_eq(frame.data[2], golden.bytes[2] - 1u);
    message.margin = 1.5;
    ck_assert_int_eq(ndt_result_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "result message: field 'margin': 1.5 is not from 0 to 1");
    message.has_margin = 0;
    message.state = NDT_STATE_COUNT;
    ck_assert_int_eq(ndt_result_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    message.state = NDT_STATE_LOST;
    message.T_map_guess.q_xyzw[3] = 2;
    ck_assert_int_eq(ndt_result_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "result message: field 'guess': the quaternion has length 2, not 1");
    ck_assert_uint_eq(frame.size, 0);
}

TEST(golden_result_sensor)
{
    const struct golden_vector golden = golden_read("result_sensor");
    struct ndt_result_message message;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert(message.has_sensor && message.has_T_base_sensor);
    ck_assert_str_eq(message.sensor, "lidar_top");
    ck_assert(message.T_base_sensor.t_m[2] == 2.25 && message.T_base_sensor.q_xyzw[2] == 1);
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.T_base_sensor.q_xyzw[2] = 2;
    ck_assert_int_eq(ndt_result_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "result message: field 'T_base_sensor': the quaternion has length 2, not 1");
}

TEST(protection_levels_return)
{
    const struct golden_vector golden = golden_read("result_sensor");
    struct ndt_result_message message, read;
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert(!message.has_protection);
    message.has_protection = 1;
    message.protection = (struct ndt_protection){
        .level = {0.25, INFINITY, 0.5, 0.01}, .is_unsafe = 1, .reason = "the state is not tracking or coasting"};
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    ASSERT_OK(ndt_result_decode(frame.data, frame.size, &read, &error));
    ck_assert(read.has_protection && read.protection.is_unsafe);
    ck_assert_mem_eq(read.protection.level, message.protection.level, sizeof(read.protection.level));
    ck_assert_str_eq(read.protection.reason, message.protection.reason);
    char *json = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&json, &size);
    ASSERT_OK(ndt_message_print_json(stream, frame.data, frame.size, &error));
    fclose(stream);
    ck_assert_ptr_nonnull(
        strstr(json, "\"protection_level\":{\"lateral\":0.25,\"longitudinal\":null,\"vertical\":0.5,"));
    free(json);
    message.protection.level[2] = NAN;
    ck_assert_int_eq(ndt_result_encode(&frame, &message, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "result message: field 'protection_level': nan is not 0 or more");
}

/* The keys in words are those of the table, in its order, and SCHEMA.md has each. */
TEST(result_keys_are_described)
{
    char *schema = malloc(1 << 17);
    FILE *file = fopen(NDT_TEST_DIR "/../proto/SCHEMA.md", "r");
    ck_assert_ptr_nonnull(file);
    schema[fread(schema, 1, (1 << 17) - 1, file)] = '\0';
    fclose(file);
    struct ndt_result_message message = {
        .frame_id = "map", .has_twist = 1, .has_confidence = 1, .has_innovation = 1};
    message.has_state = message.has_margin = message.has_guess = message.has_hypotheses = 1;
    message.has_sensor = message.has_T_base_sensor = message.has_protection = 1;
    message.result.has_covariance = 1;
    message.result.T_map_sensor = message.T_map_guess = message.T_base_sensor = ndt_pose_identity();
    ASSERT_OK(ndt_result_encode(&frame, &message, &error));
    char *json = NULL, quoted[80];
    size_t size = 0;
    FILE *stream = open_memstream(&json, &size);
    ASSERT_OK(ndt_message_print_json(stream, frame.data, frame.size, &error));
    fclose(stream);
    const char *at = json;
    for (size_t i = 0; ndt_result_key_at(i); i++) {
        snprintf(quoted, sizeof(quoted), "\"%s\":", ndt_result_key_at(i)->name);
        at = strstr(at, quoted);
        ck_assert_msg(at != NULL, "%s is missing or out of order in %s", quoted, json);
        snprintf(quoted, sizeof(quoted), "`%s`", ndt_result_key_at(i)->name);
        ck_assert_msg(strstr(strstr(schema, "## result"), quoted) != NULL, "%s is not in SCHEMA.md", quoted);
    }
    free(json);
    free(schema);
}

TEST(unknown_states_are_refused)
{
    struct golden_vector golden = golden_read("result_state");
    struct ndt_result_message message;
    size_t at = 0;
    while (memcmp(golden.bytes + at, "coasting", 8) != 0)
        at++;
    memcpy(golden.bytes + at, "cruising", 8);
    ck_assert_int_eq(ndt_result_decode(golden.bytes, golden.size, &message, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "result message: field 'state': 'cruising' is not a state");
    ck_assert_str_eq(ndt_state_name(NDT_STATE_COUNT), "unknown");
}

TEST(golden_gnss)
{
    const struct golden_vector golden = golden_read("gnss");
    struct ndt_gnss_message message;
    ASSERT_OK(ndt_gnss_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "map");
    ck_assert(message.position_m[0] == 10.5 && message.position_m[1] == -20.25 && message.position_m[2] == 1);
    ck_assert(message.has_deviation && message.deviation_m[0] == 0.5 && message.deviation_m[2] == 1.5);
    ASSERT_OK(ndt_gnss_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.has_deviation = 0;
    ASSERT_OK(ndt_gnss_encode(&frame, &message, &error));
    ASSERT_OK(ndt_gnss_decode(frame.data, frame.size, &message, &error));
    ck_assert(!message.has_deviation && message.position_m[1] == -20.25);
}

TEST(golden_gnss_antenna)
{
    const struct golden_vector golden = golden_read("gnss_antenna");
    struct ndt_gnss_message message;
    ASSERT_OK(ndt_gnss_decode(golden.bytes, golden.size, &message, &error));
    ck_assert(message.has_antenna);
    ck_assert_str_eq(message.antenna, "gnss_link");
    ASSERT_OK(ndt_gnss_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.has_antenna = 0;
    ASSERT_OK(ndt_gnss_encode(&frame, &message, &error));
    const struct golden_vector without = golden_read("gnss");
    assert_frame(&without);
}

TEST(golden_imu)
{
    const struct golden_vector golden = golden_read("imu");
    struct ndt_imu_message message;
    ASSERT_OK(ndt_imu_decode(golden.bytes, golden.size, &message, &error));
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "imu");
    ck_assert(message.angular_velocity_radps[1] == -0.0625 && message.angular_velocity_radps[2] == 1.5);
    ck_assert(message.has_acceleration && message.linear_acceleration_mps2[2] == 9.8125);
    ck_assert(message.has_angular_velocity_covariance && message.angular_velocity_covariance[8] == 1.0 / 32768);
    ck_assert(message.has_linear_acceleration_covariance &&
              message.linear_acceleration_covariance[3] == 1.0 / 1024);
    ASSERT_OK(ndt_imu_encode(&frame, &message, &error));
    assert_frame(&golden);
    message.has_acceleration = message.has_angular_velocity_covariance = 0;
    message.has_linear_acceleration_covariance = 0;
    message.linear_acceleration_mps2[0] = INFINITY; /* not sent */
    ASSERT_OK(ndt_imu_encode(&frame, &message, &error));
    ck_assert_uint_eq(frame.size, golden.parts[6]);
    ASSERT_OK(ndt_imu_decode(frame.data, frame.size, &message, &error));
    ck_assert(!message.has_acceleration && message.angular_velocity_radps[0] == 0.125);
}

/* Every scan is identified, also when it is cut or damaged after its header. */
TEST(scan_headers)
{
    struct golden_vector golden = golden_read("scan");
    struct ndt_scan_message message = {0};
    const size_t end = golden.parts[6]; /* of v, type, seq, stamp_ns, frame_id */
    for (size_t size = 0; size < golden.size; size++) {
        message.seq = 99;
        const enum ndt_status status = ndt_scan_identify(golden.bytes, size, &message, &error);
        ck_assert_int_eq(status == NDT_OK, size >= end);
        ck_assert_uint_eq(message.seq, size >= end ? 7 : 99);
    }
    ck_assert_int_eq(message.stamp_ns, STAMP_NS);
    ck_assert_str_eq(message.frame_id, "lidar");
    golden.bytes[golden.parts[6] + 6] = 0xc1; /* count */
    ck_assert_int_ne(decode_copy(golden.bytes, golden.size, &error), NDT_OK);
    ASSERT_OK(ndt_scan_identify(golden.bytes, golden.size, &message, &error));
    golden.bytes[golden.parts[4] + 1] = '~'; /* stamp_ns */
    golden.bytes[golden.parts[6] + 6] = 0x03;
    ck_assert_int_eq(ndt_scan_identify(golden.bytes, golden.size, &message, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "scan message: field 'stamp_ns' is missing");
    golden = golden_read("truth");
    ck_assert_int_eq(ndt_scan_identify(golden.bytes, golden.size, &message, &error), NDT_ERR_FORMAT);
    golden = golden_read("scan_padded"); /* stamp_ns and the others behind the points */
    ASSERT_OK(ndt_scan_identify(golden.bytes, golden.size, &message, &error));
    ck_assert(message.seq == UINT64_MAX && message.stamp_ns == -1);
}

/* ---- hostile bytes ---- */

TEST_EACH(every_truncation_fails, 0, VECTOR_COUNT)
{
    const struct golden_vector golden = golden_read(all_vectors[_i]);
    for (size_t size = 0; size < golden.size; size++)
        ck_assert_int_ne(decode_copy(golden.bytes, size, &error), NDT_OK);
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_OK);
}

TEST_EACH(every_changed_byte_is_survived, 0, VECTOR_COUNT)
{
    const struct golden_vector golden = golden_read(all_vectors[_i]);
    uint8_t *bytes = malloc(golden.size);
    memcpy(bytes, golden.bytes, golden.size);
    for (size_t at = 0; at < golden.size; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            bytes[at] = (uint8_t)(golden.bytes[at] ^ flip);
            (void)!decode_any(bytes, golden.size, &error);
        }
        bytes[at] = golden.bytes[at];
    }
    free(bytes);
}

TEST_EACH(trailing_bytes_fail, 0, VECTOR_COUNT)
{
    struct golden_vector golden = golden_read(all_vectors[_i]);
    golden.bytes[golden.size] = 0xc0;
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size + 1, &error), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "1 more bytes follow"));
}

static int is_optional(const char *vector, const char *key)
{
    static const char *const everywhere[] = {"covariance",
                                             "note",
                                             "deviation",
                                             "config_hash",
                                             "queue_depth",
                                             "drop_counter",
                                             "confidence",
                                             "innovation",
                                             "state",
                                             "margin",
                                             "guess",
                                             "hypotheses",
                                             "sensor",
                                             "T_base_sensor",
                                             "heading_deviation",
                                             "apply",
                                             "search",
                                             "pose_at",
                                             "linear_acceleration",
                                             "angular_velocity_covariance",
                                             "linear_acceleration_covariance",
                                             "antenna",
                                             "gnss"};
    if (strcmp(vector, "pose") == 0)
        return strcmp(key, "twist") == 0;
    for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
        if (strcmp(key, everywhere[i]) == 0)
            return 1;
    if (strncmp(vector, "request", 7) == 0 && strcmp(key, "pose") != 0)
        return strcmp(key, "count") == 0 || strcmp(key, "twist") == 0 || strcmp(key, "stamp_ns") == 0 ||
               strcmp(key, "frame_id") == 0;
    if (strcmp(key, "twist") == 0)
        return strcmp(vector, "initial_pose") == 0 || strncmp(vector, "result", 6) == 0;
    return strcmp(key, "pose") == 0 && strncmp(vector, "result", 6) == 0;
}

TEST_EACH(every_missing_field_is_named, 0, VECTOR_COUNT)
{
    const struct golden_vector golden = golden_read(all_vectors[_i]);
    for (size_t part = 1; part < golden.part_count; part++) {
        struct golden_vector changed = golden;
        char key[32], expected[64];
        golden_key(&golden, part, key);
        changed.bytes[golden.parts[part] + 1] = '~'; /* now an unknown key */
        const enum ndt_status status = decode_copy(changed.bytes, changed.size, &error);
        if (is_optional(all_vectors[_i], key)) {
            ck_assert_msg(status == NDT_OK, "%s: %s", key, error.text);
            continue;
        }
        ck_assert_int_eq(status, NDT_ERR_FORMAT);
        snprintf(expected, sizeof(expected), "'%s'", key);
        ck_assert_msg(strstr(error.text, expected) && strstr(error.text, "missing"), "%s: %s", key, error.text);
    }
}

TEST_EACH(every_wrong_type_is_named, 0, VECTOR_COUNT)
{
    const struct golden_vector golden = golden_read(all_vectors[_i]);
    for (size_t part = 1; part < golden.part_count; part++) {
        struct golden_vector changed = golden;
        char key[32], expected[64];
        golden_key(&golden, part, key);
        if (strcmp(all_vectors[_i], "scan_padded") == 0)
            continue; /* its version comes last, and the search for it fails before */
        if (strcmp(key, "apply") == 0 || strcmp(key, "ok") == 0)
            continue; /* they are booleans */
        changed.bytes[golden.parts[part] + 1 + strlen(key)] = 0xc3;
        ck_assert_int_eq(decode_copy(changed.bytes, changed.size, &error), NDT_ERR_FORMAT);
        snprintf(expected, sizeof(expected), "field '%s': byte ", key);
        ck_assert_msg(strstr(error.text, expected) && strstr(error.text, "a boolean"), "%s: %s", key, error.text);
    }
}

/* The vector with `count` pairs more, the given bytes behind its last one. */
static void extend(struct golden_vector *golden, unsigned count, const void *bytes, size_t size)
{
    ck_assert_uint_eq(golden->bytes[0] & 0xf0, 0x80);
    ck_assert_uint_le((golden->bytes[0] & 0x0f) + count, 15);
    golden->bytes[0] = (uint8_t)(golden->bytes[0] + count);
    ck_assert_uint_le(golden->size + size, sizeof(golden->bytes));
    memcpy(golden->bytes + golden->size, bytes, size);
    golden->size += size;
}

TEST(duplicates_fail)
{
    static const char *const pairs[] = {"\xa1v\x01", "\xa4type\xa5truth", "\xa8stamp_ns\x01"};
    static const char *const keys[] = {"'v'", "'type'", "'stamp_ns'"};
    for (int i = 0; i < 3; i++) {
        struct golden_vector golden = golden_read("truth");
        extend(&golden, 1, pairs[i], strlen(pairs[i]));
        ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
        ck_assert_msg(strstr(error.text, keys[i]) && strstr(error.text, "second time"), "%s", error.text);
    }
}

TEST(unknown_keys_are_ignored)
{
    /* of every kind: float32, ext, fixext, bin, str8, int64, nested map */
    static const uint8_t pairs[] = "\xa1"
                                   "a\xca\x3f\x80\x00\x00"
                                   "\xa1"
                                   "b\xc7\x02\x05zz"
                                   "\xa1"
                                   "c\xd8\x01"
                                   "0123456789abcdef"
                                   "\xa1"
                                   "d\xc4\x01!"
                                   "\xd9\x01"
                                   "e\xd9\x02hi"
                                   "\xa1"
                                   "f\xd3\xff\xff\xff\xff\xff\xff\xff\xff"
                                   "\xa1"
                                   "g\x81\xa1"
                                   "h\x92\xc0\xc2"
                                   "\xa1"
                                   "g\x90";
    struct golden_vector golden = golden_read("truth");
    extend(&golden, 8, pairs, sizeof(pairs) - 1);
    ck_assert_msg(decode_copy(golden.bytes, golden.size, &error) == NDT_OK, "%s", error.text);
}

TEST(nesting_is_limited)
{
    for (size_t depth = 1; depth <= 900; depth++) {
        struct golden_vector golden = golden_read("truth");
        uint8_t bomb[1024] = {0xa1, 'z'};
        memset(bomb + 2, depth % 2 ? 0x91 : 0x81, depth);
        for (size_t i = 0; depth % 2 == 0 && i < depth; i++) /* maps in the place of keys */
            bomb[2 + i] = 0x81;
        const size_t values = depth % 2 ? 1 : depth + 1;
        memset(bomb + 2 + depth, 0x01, values < 16 ? values : 16);
        extend(&golden, 1, bomb, 2 + depth + (values < 16 ? values : 16));
        const enum ndt_status status = decode_copy(golden.bytes, golden.size, &error);
        ck_assert_msg(status == (depth <= 8 ? NDT_OK : NDT_ERR_LIMIT), "depth %zu: %s", depth, error.text);
        depth += depth > 20 ? 97 : 0;
    }
    ck_assert_ptr_nonnull(strstr(error.text, "the limit of 8"));
}

TEST(huge_counts_fail)
{
    static const struct {
        const char *key, *value, *reason;
        size_t size;
    } cases[] = {
        {"fields", "\xdd\xff\xff\xff\xff", "declares 4294967295", 5},
        {"fields", "\xdc\x00\x21", "above the limit of 32", 3},
        {"data", "\xc6\xff\xff\xff\xff", "declares 4294967295", 5},
        {"frame_id", "\xdb\xff\xff\xff\xff", "declares 4294967295", 5},
        {"count", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "points are above the limit", 9},
        {"count", "\xce\x10\x00\x00\x00", "60 bytes, but 268435456 points", 5},
        {"point_step", "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", "'point_step'", 9},
        {"point_step", "\x00", "but the fields end at byte 20", 1},
        {"seq", "\xff", "-1 is below 0", 1},
        {"stamp_ns", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "above the limit", 9},
        {"zzz", "\xdf\xff\xff\xff\xff", "declares 4294967295", 5},
        {"zzz", "\xc9\xff\xff\xff\xff", "declares 4294967295", 5},
        {"zzz", "\xc1", "0xc1, which is not a msgpack item", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct golden_vector golden = golden_read("scan");
        struct golden_vector built = {.bytes = {golden.bytes[0]}, .size = 1};
        for (size_t part = 1; part < golden.part_count; part++) {
            const size_t end = part + 1 < golden.part_count ? golden.parts[part + 1] : golden.size;
            char key[32];
            golden_key(&golden, part, key);
            if (strcmp(key, cases[i].key) == 0)
                continue; /* its pair comes last */
            memcpy(built.bytes + built.size, golden.bytes + golden.parts[part], end - golden.parts[part]);
            built.size += end - golden.parts[part];
        }
        if (strcmp(cases[i].key, "zzz") == 0)
            built.bytes[0]++;
        built.bytes[built.size++] = (uint8_t)(0xa0 + strlen(cases[i].key));
        memcpy(built.bytes + built.size, cases[i].key, strlen(cases[i].key));
        built.size += strlen(cases[i].key);
        memcpy(built.bytes + built.size, cases[i].value, cases[i].size);
        built.size += cases[i].size;
        memset(built.bytes + built.size, 0x90, 40); /* enough for the 33 declared fields */
        built.size += cases[i].value[0] == '\xdc' ? 40 : 0;
        ck_assert_int_ne(decode_copy(built.bytes, built.size, &error), NDT_OK);
        ck_assert_msg(strstr(error.text, cases[i].reason), "case %zu: %s", i, error.text);
    }
}

TEST(message_that_is_not_a_map_fails)
{
    static const char *const bytes[] = {"\xc0", "\x90", "\xdf\xff\xff\xff\xff", "\x80", "\xc1", "\x81\x01\x02"};
    static const size_t sizes[] = {1, 1, 5, 1, 1, 3};
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(decode_copy((const uint8_t *)bytes[i], sizes[i], &error), NDT_ERR_FORMAT);
    ck_assert_int_eq(decode_copy((const uint8_t *)"", 0, &error), NDT_ERR_FORMAT);
}

TEST(version_and_type)
{
    struct golden_vector golden = golden_read("truth");
    struct ndt_pose_message message;
    enum ndt_message_type type;
    ck_assert_int_eq(ndt_message_peek(golden.bytes, golden.size, &type, &error), NDT_OK);
    ck_assert_int_eq(type, NDT_MESSAGE_TRUTH);
    ck_assert_int_eq(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_ODOMETRY, &message, &error),
                     NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "odometry message: the message is of type 'truth'");
    golden.bytes[golden.parts[1] + 2] = 0x02;
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_UNSUPPORTED);
    ck_assert_str_eq(error.text, "the message has version 2, only version 1 is understood");
    golden.bytes[golden.parts[1] + 2] = 0x01;
    golden.bytes[golden.parts[2] + 6] = 'z';
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_UNSUPPORTED);
    ck_assert_str_eq(error.text,
                     "unknown message type 'zruth'; there are: "
                     "scan, initial_pose, odometry, truth, result, gnss, request, reply, imu, transform, points, "
                     "pose");
}

TEST(poses_are_checked)
{
    struct golden_vector golden = golden_read("truth");
    struct ndt_pose_message message;
    uint8_t *pose = golden.bytes + golden.parts[5] + 6; /* behind the key and the head of the array */
    const uint8_t infinite[] = {0x7f, 0xf0}, two[] = {0x40, 0x00}, nearly_one[] = {0x3f, 0xef, 0xff};
    memcpy(pose + 1, infinite, 2);
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "truth message: field 'pose': number 0 is not finite");
    golden = golden_read("truth");
    memcpy(pose + 6 * 9 + 1, two, 2);
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "truth message: field 'pose': the quaternion has length 2, not 1");
    memcpy(pose + 6 * 9 + 1, nearly_one, 3);
    ASSERT_OK(ndt_pose_message_decode(golden.bytes, golden.size, NDT_MESSAGE_TRUTH, &message, &error));
    ck_assert(message.pose.q_xyzw[3] == 1.0);
}

TEST(deviations_are_checked)
{
    struct golden_vector golden = golden_read("gnss");
    uint8_t *deviation = golden.bytes + golden.parts[6] + 11; /* behind the key and the head of the array */
    deviation[1] = 0xbf;
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "gnss message: field 'deviation': number 0 is -0.5, not above 0");
}

TEST(imu_values_are_bounded)
{
    static const struct {
        size_t part, number;
        uint8_t bytes[8];
        enum ndt_status status;
        const char *reason;
    } cases[] = {
        {5, 0, {0x7f, 0xf0}, NDT_ERR_FORMAT, "'angular_velocity': number 0 is not finite"},
        {5,
         2,
         {0xc0, 0x8f, 0x40, 0, 0, 0, 0, 1},
         NDT_ERR_LIMIT,
         "'angular_velocity': number 2 is -1000, the limit is 1000"},
        {6,
         1,
         {0x40, 0xc3, 0x88, 0x80},
         NDT_ERR_LIMIT,
         "'linear_acceleration': number 1 is 10001, the limit is 10000"},
        {7, 4, {0}, NDT_ERR_FORMAT, "'angular_velocity_covariance': number 4 is 0, not above 0"},
        {8, 0, {0xbf, 0xf0}, NDT_ERR_FORMAT, "'linear_acceleration_covariance': number 0 is -1, not above 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct golden_vector golden = golden_read("imu");
        char key[32];
        golden_key(&golden, cases[i].part, key);
        /* behind the key, the head of the array and the numbers before */
        memcpy(golden.bytes + golden.parts[cases[i].part] + strlen(key) + 3 + 9 * cases[i].number, cases[i].bytes,
               8);
        ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), cases[i].status);
        ck_assert_msg(strstr(error.text, cases[i].reason), "case %zu: %s", i, error.text);
    }
    struct golden_vector golden = golden_read("imu");
    memcpy(golden.bytes + golden.parts[5] + 19, "\xc0\x8f\x40\0\0\0\0", 8); /* exactly the limit */
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_OK);
}

TEST(estimates_are_checked)
{
    struct golden_vector golden = golden_read("result_estimate");
    uint8_t *confidence = golden.bytes + golden.parts[30] + 12, *innovation = golden.bytes + golden.parts[31] + 12;
    struct ndt_result_message message;
    memcpy(confidence, "\x3f\xf8", 2);
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "result message: field 'confidence': 1.5 is not from 0 to 1");
    memcpy(confidence, "\x7f\xf8", 2);
    memcpy(innovation, "\x7f\xf8", 2);
    ASSERT_OK(ndt_result_decode(golden.bytes, golden.size, &message, &error));
    ck_assert(!message.has_confidence && !message.has_innovation);
    memcpy(innovation, "\xbf\xf0", 2);
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "result message: field 'innovation': -1 is below 0");
}

TEST(queue_depths_are_bounded)
{
    static const uint8_t above[] = {0xcf, 0, 0, 0, 1, 0, 0, 0, 0};
    struct golden_vector golden = golden_read("result_daemon");
    uint8_t *value = golden.bytes + golden.parts[27] + 12;
    memmove(value + sizeof(above), value + 1, golden.size - (size_t)(value + 1 - golden.bytes));
    memcpy(value, above, sizeof(above));
    golden.size += sizeof(above) - 1;
    ck_assert_int_eq(decode_copy(golden.bytes, golden.size, &error), NDT_ERR_LIMIT);
    ck_assert_str_eq(error.text,
                     "result message: field 'queue_depth': 4294967296 is above the limit of 4294967295");
}

TEST(encoders_refuse_what_decoders_refuse)
{
    struct ndt_pose_message pose = {.frame_id = "map", .has_pose = 1, .pose = {{0, 0, 0}, {0, 0, 0, 2}}};
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRUTH, &pose, &error), NDT_ERR_ARGUMENT);
    pose.pose.q_xyzw[3] = 1;
    pose.pose.t_m[1] = NAN;
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRUTH, &pose, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "truth message: field 'pose': number 1 is not finite");
    pose.pose.t_m[1] = 0;
    strcpy(pose.frame_id, "a\nb");
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRUTH, &pose, &error), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "field 'frame_id': character 1"));
    strcpy(pose.frame_id, "map");
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_SCAN, &pose, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
    pose.has_pose = 0;
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_ODOMETRY, &pose, &error), NDT_ERR_ARGUMENT);
    struct ndt_gnss_message gnss = {.frame_id = "map", .has_deviation = 1, .deviation_m = {1, 0, 1}};
    ck_assert_int_eq(ndt_gnss_encode(&frame, &gnss, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "gnss message: field 'deviation': number 1 is 0, not above 0");
    struct ndt_imu_message imu = {.frame_id = "imu", .angular_velocity_radps = {0, 2000, 0}};
    ck_assert_int_eq(ndt_imu_encode(&frame, &imu, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "imu message: field 'angular_velocity': number 1 is 2000, the limit is 1000");
    imu.angular_velocity_radps[1] = 0;
    imu.has_angular_velocity_covariance = 1;
    ck_assert_int_eq(ndt_imu_encode(&frame, &imu, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
    struct ndt_result_message result = {.frame_id = "map", .has_confidence = 1, .confidence = -0.5};
    ck_assert_int_eq(ndt_result_encode(&frame, &result, &error), NDT_ERR_ARGUMENT);
    result = (struct ndt_result_message){.frame_id = "map", .result = {.weak_count = 4}};
    ck_assert_int_eq(ndt_result_encode(&frame, &result, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
}

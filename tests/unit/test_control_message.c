/* The control socket's codec: requests in both directions, bad ones with their id, replies byte by byte.
 * Truncation, changed bytes, missing and wrong fields are tested with the request vectors in test_proto.c. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden_vector.h"
#include "ndt_proto/control_message.h"
#include "run_tests.h"

#define BIG_ID UINT64_C(0xfedcba9876543210)

static struct ndt_buffer frame;
static struct ndt_error error;
static struct ndt_request_message request;
static uint64_t id;

static void setup(void)
{
    ndt_buffer_init(&frame);
    memset(&request, 0, sizeof(request));
    id = 1;
}

static void teardown(void)
{
    ndt_buffer_free(&frame);
}

#define ASSERT_OK(call)                                                                                            \
    do {                                                                                                           \
        const enum ndt_status status_ = (call);                                                                    \
        ck_assert_msg(status_ == NDT_OK, "%s: %s", ndt_status_name(status_), error.text);                          \
    } while (0)

static void assert_frame(const char *name)
{
    const struct golden_vector golden = golden_read(name);
    for (size_t i = 0; i < golden.size && i < frame.size; i++)
        ck_assert_msg(frame.data[i] == golden.bytes[i], "%s: byte %zu is %02x, not %02x", name, i, frame.data[i],
                      golden.bytes[i]);
    ck_assert_uint_eq(frame.size, golden.size);
}

static enum ndt_status decode_golden(const char *name)
{
    const struct golden_vector golden = golden_read(name);
    return ndt_request_decode(golden.bytes, golden.size, &request, &id, &error);
}

/* "\x84..." with its length: the bytes may hold zeros. */
#define DECODE(bytes) ndt_request_decode((const uint8_t *)(bytes), sizeof(bytes) - 1, &request, &id, &error)
#define HEAD          "\xa1v\x01\xa4type\xa7request"

/* ---- requests ---- */

FIXTURE(setup, teardown)

TEST(golden_request_pose)
{
    ASSERT_OK(decode_golden("request_pose"));
    ck_assert(id == BIG_ID && request.id == BIG_ID);
    ck_assert_int_eq(request.op, NDT_OP_INITIAL_POSE);
    ck_assert_int_eq(request.pose.stamp_ns, INT64_C(1317042272349000123));
    ck_assert_str_eq(request.pose.frame_id, "map");
    ck_assert(request.pose.has_pose && request.pose.has_twist && request.pose.has_covariance);
    ck_assert(request.pose.pose.t_m[1] == -20.25 && request.pose.pose.q_xyzw[1] == -0.5);
    ck_assert(request.pose.twist.v_mps[2] == -0.125 && request.pose.twist.w_radps[2] == 0.0625);
    ck_assert(request.pose.covariance[7] == 0.125 && request.pose.covariance[35] == 1.0 / 512);
    ASSERT_OK(ndt_request_encode(&frame, &request, &error));
    assert_frame("request_pose");
}

TEST(golden_request_path)
{
    ASSERT_OK(decode_golden("request_path"));
    ck_assert(id == 7 && request.id == 7);
    ck_assert_int_eq(request.op, NDT_OP_LOAD_MAP);
    ck_assert_str_eq(request.path, "maps/street.ndtmap");
    ASSERT_OK(ndt_request_encode(&frame, &request, &error));
    assert_frame("request_path");
}

TEST(golden_request_timings)
{
    ASSERT_OK(decode_golden("request_timings"));
    ck_assert_int_eq(request.op, NDT_OP_TIMINGS);
    ck_assert_uint_eq(request.count, 1000);
    ASSERT_OK(ndt_request_encode(&frame, &request, &error));
    assert_frame("request_timings");
}

TEST(golden_request_localize)
{
    ASSERT_OK(decode_golden("request_localize"));
    ck_assert_int_eq(request.op, NDT_OP_LOCALIZE);
    ck_assert(request.pose.has_pose && request.pose.has_covariance && request.pose.pose.t_m[1] == -20.25);
    ck_assert(request.hint.has_position && request.hint.position_m[2] == 1.5);
    ck_assert(request.hint.has_deviation && request.hint.deviation_m[2] == 10);
    ck_assert(request.hint.has_heading && request.hint.heading_rad == -1.5);
    ck_assert(request.hint.has_heading_deviation && request.hint.heading_deviation_rad == 0.25);
    ck_assert(!request.hint.apply);
    ASSERT_OK(ndt_request_encode(&frame, &request, &error));
    assert_frame("request_localize");
    ASSERT_OK(DECODE("\x84" HEAD "\xa2id\x05\xa2op\xa8localize")); /* the whole map */
    ck_assert(!request.pose.has_pose && !request.hint.has_position && !request.hint.has_heading);
    ck_assert(request.hint.apply);
}

TEST(golden_request_pose_at)
{
    ASSERT_OK(decode_golden("request_pose_at"));
    ck_assert_int_eq(request.op, NDT_OP_POSE_AT);
    ck_assert_int_eq(request.pose.stamp_ns, INT64_C(1317042272349000123));
    ASSERT_OK(ndt_request_encode(&frame, &request, &error));
    assert_frame("request_pose_at");
    ASSERT_OK(DECODE("\x84" HEAD "\xa2id\x05\xa2op\xa7pose_at")); /* now */
    ck_assert_int_eq(request.pose.stamp_ns, 0);
}

TEST(search_hints_are_checked)
{
    static const struct {
        struct ndt_localize_hint hint;
        const char *says;
    } cases[] = {
        {{.has_deviation = 1, .deviation_m = {1, 1, 1}}, "field 'position' is missing"},
        {{.has_position = 1, .has_deviation = 1, .deviation_m = {1, 0, 1}},
         "field 'deviation': number 1 is 0, not above 0"},
        {{.has_heading_deviation = 1, .heading_deviation_rad = 1}, "field 'heading' is missing"},
        {{.has_heading = 1, .heading_rad = NAN}, "field 'heading': it is not finite"},
        {{.has_heading = 1, .has_heading_deviation = 1, .heading_deviation_rad = INFINITY},
         "field 'heading_deviation': inf is not above 0 and finite"},
        {{.has_position = 1, .position_m = {INFINITY}}, "number 0 is not finite"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ndt_request_message sent = {.op = NDT_OP_LOCALIZE, .hint = cases[i].hint};
        ck_assert_int_ne(ndt_request_encode(&frame, &sent, &error), NDT_OK);
        ck_assert_msg(strstr(error.text, cases[i].says) != NULL, "'%s' without '%s'", error.text, cases[i].says);
        ck_assert_uint_eq(frame.size, 0);
    }
    struct ndt_request_message sent = {.op = NDT_OP_LOCALIZE, .pose = {.has_covariance = 1}};
    ck_assert_int_ne(ndt_request_encode(&frame, &sent, &error), NDT_OK);
    ck_assert_ptr_nonnull(strstr(error.text, "operation 'localize': field 'pose' is missing"));
}

TEST(defaults)
{
    ASSERT_OK(DECODE("\x84" HEAD "\xa2id\x05\xa2op\xa7timings"));
    ck_assert_uint_eq(request.count, 100);
    struct ndt_request_message pose = {.id = 9, .op = NDT_OP_INITIAL_POSE, .path = "unused"};
    pose.pose = (struct ndt_pose_message){.has_pose = 1, .pose = {{1, 2, 3}, {0, 0, 0, 1}}};
    ASSERT_OK(ndt_request_encode(&frame, &pose, &error));
    ck_assert_uint_eq(frame.data[0], 0x85); /* v, type, id, op, pose and nothing else */
    ASSERT_OK(ndt_request_decode(frame.data, frame.size, &request, &id, &error));
    ck_assert_str_eq(request.pose.frame_id, "map");
    ck_assert_int_eq(request.pose.stamp_ns, 0);
    ck_assert(!request.pose.has_twist && !request.pose.has_covariance && request.pose.pose.t_m[2] == 3);
}

TEST_EACH(every_operation_in_both_directions, 0, NDT_OP_COUNT)
{
    const enum ndt_operation op = (enum ndt_operation)_i;
    struct ndt_request_message sent = {.id = 1000 + (uint64_t)_i, .op = op, .path = "a/b", .count = 3};
    sent.pose = (struct ndt_pose_message){.has_pose = 1, .pose = {{0, 0, 0}, {0, 0, 0, 1}}};
    ASSERT_OK(ndt_request_encode(&frame, &sent, &error));
    ASSERT_OK(ndt_request_decode(frame.data, frame.size, &request, &id, &error));
    ck_assert_uint_eq(request.id, sent.id);
    ck_assert_int_eq(request.op, op);
    ck_assert_str_ne(ndt_operation_name(op), "unknown");
    if (request.path[0])
        ck_assert_str_eq(request.path, "a/b");
}

TEST(operations_out_of_range)
{
    request.op = NDT_OP_COUNT;
    ck_assert_str_eq(ndt_operation_name(NDT_OP_COUNT), "unknown");
    ck_assert_int_eq(ndt_request_encode(&frame, &request, &error), NDT_ERR_ARGUMENT);
    request.op = (enum ndt_operation) - 1;
    ck_assert_int_eq(ndt_request_encode(&frame, &request, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
}

TEST(encoder_refuses_what_the_decoder_refuses)
{
    static const enum ndt_operation with_path[] = {NDT_OP_LOAD_MAP, NDT_OP_LOAD_TILE, NDT_OP_UNLOAD_TILE,
                                                   NDT_OP_START_RECORDING};
    for (int i = 0; i < 4; i++) {
        struct ndt_request_message sent = {.op = with_path[i]};
        ck_assert_int_eq(ndt_request_encode(&frame, &sent, &error), NDT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.text, "field 'path' is empty"));
    }
    struct ndt_request_message sent = {.op = NDT_OP_LOAD_MAP, .path = "a\nb"};
    ck_assert_int_eq(ndt_request_encode(&frame, &sent, &error), NDT_ERR_ARGUMENT);
    sent = (struct ndt_request_message){.op = NDT_OP_INITIAL_POSE};
    ck_assert_int_eq(ndt_request_encode(&frame, &sent, &error), NDT_ERR_ARGUMENT);
    ck_assert_str_eq(error.text, "request message: operation 'initial_pose': field 'pose' is missing");
    sent.pose.has_pose = 1; /* and its quaternion zero */
    ck_assert_int_eq(ndt_request_encode(&frame, &sent, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
}

/* ---- bad requests ---- */

TEST(bad_requests_keep_their_id)
{
    request.id = 77;
    ck_assert_int_eq(DECODE("\x84" HEAD "\xa2id\x05\xa2op\xa4"
                            "dnce"),
                     NDT_ERR_UNSUPPORTED);
    ck_assert_uint_eq(id, 5);
    ck_assert_str_eq(
        error.text, "request message: field 'op': 'dnce' is not an operation; there are: hello, status, "
                    "initial_pose, start, stop, load_map, unload_map, load_tile, unload_tile, reload, "
                    "start_recording, stop_recording, timings, localize, search, cancel_search, pose_at, shutdown");
    ck_assert_int_eq(DECODE("\x84" HEAD "\xa2op\xa8load_map\xa2id\xcd\x01\x00"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 256);
    ck_assert_str_eq(error.text, "request message: operation 'load_map': field 'path' is missing");
    ck_assert_int_eq(DECODE("\x85" HEAD "\xa2op\xa8load_map\xa2id\x06\xa4path\xa0"), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "request message: operation 'load_map': field 'path' is empty");
    ck_assert_int_eq(DECODE("\x83" HEAD "\xa2id\x09"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 9);
    ck_assert_str_eq(error.text, "request message: field 'op' is missing");
    ck_assert_int_eq(DECODE("\x84\xa2id\x0a\xa1v\x02\xa4type\xa7request\xa2op\xa5hello"), NDT_ERR_UNSUPPORTED);
    ck_assert_uint_eq(id, 10); /* another version */
    ck_assert_int_eq(DECODE("\x84\xa1v\x01\xa4type\xa4scan\xa2id\x0b\xa2op\xa5hello"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 11); /* another message */
    ck_assert_int_eq(DECODE("\x84" HEAD "\xa2id\x0c\xa2op\xa5hello\xc0"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 12); /* a byte too many */
    ck_assert_int_eq(DECODE("\x85" HEAD "\xa2id\x0d\xa2op\xa5hello\xa2op\xa5hello"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 13); /* twice */
    ck_assert_int_eq(DECODE("\x84" HEAD "\xa2id\x0e\xa2op\xa5he"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 14); /* cut */
    ck_assert_uint_eq(request.id, 77);
}

TEST(ids_that_cannot_be_read_are_zero)
{
    static const char *const bytes[] = {"",
                                        "\xc0",
                                        "\x90",
                                        "\xa5hello",
                                        "\x81\xa2id",
                                        "\x81\xa2id\xff",
                                        "\x81\xa2id\xa1x",
                                        "\xdf\xff\xff\xff\xff",
                                        "\x82\x01\x02\xa2id\x03"};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        id = 1;
        ck_assert_int_ne(ndt_request_decode((const uint8_t *)bytes[i], strlen(bytes[i]), &request, &id, &error),
                         NDT_OK);
        ck_assert_uint_eq(id, 0);
    }
    ck_assert_int_eq(DECODE("\x83" HEAD "\xa2op\xa5hello"), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "request message: field 'id' is missing");
    ck_assert_int_eq(DECODE("\x84" HEAD "\xa2op\xa5hello\xa2id\xff"), NDT_ERR_FORMAT);
    ck_assert_uint_eq(id, 0);
    ck_assert_str_eq(error.text, "request message: field 'id': -1 is below 0");
}

/* A request with a path of `length` bytes in the frame. */
static void build_path(size_t length)
{
    static const char head[] = "\x85" HEAD "\xa2id\x01\xa2op\xa8load_map\xa4path\xda";
    frame.data = realloc(frame.data, sizeof(head) + 1 + length);
    memcpy(frame.data, head, sizeof(head) - 1);
    frame.data[sizeof(head) - 1] = (uint8_t)(length >> 8);
    frame.data[sizeof(head)] = (uint8_t)length;
    memset(frame.data + sizeof(head) + 1, 'p', length);
    frame.size = frame.capacity = sizeof(head) + 1 + length;
}

TEST(paths_are_bounded)
{
    build_path(NDT_PROTO_MAX_PATH);
    ASSERT_OK(ndt_request_decode(frame.data, frame.size, &request, &id, &error));
    ck_assert_uint_eq(strlen(request.path), NDT_PROTO_MAX_PATH);
    build_path(NDT_PROTO_MAX_PATH + 1);
    ck_assert_int_eq(ndt_request_decode(frame.data, frame.size, &request, &id, &error), NDT_ERR_LIMIT);
    ck_assert_str_eq(error.text,
                     "request message: field 'path': a string of 1024 bytes is above the limit of 1023");
    ck_assert_int_eq(DECODE("\x85" HEAD "\xa2id\x01\xa2op\xa8load_map\xa4path\xa3"
                            "a\x1b"
                            "b"),
                     NDT_ERR_FORMAT);
    ck_assert_int_eq(DECODE("\x85" HEAD "\xa2id\x01\xa2op\xa7timings\xa5"
                            "count\xcf\x00\x00\x00\x01\x00\x00\x00\x00"),
                     NDT_ERR_LIMIT);
}

/* Arrays in each other as the value of an unknown key that comes before the id. */
static const char *describe(void)
{
    static char text[64];
    ndt_request_describe(&request, text, sizeof(text));
    return text;
}

TEST(requests_are_described)
{
    request = (struct ndt_request_message){.op = NDT_OP_INITIAL_POSE,
                                           .pose = {.has_pose = 1, .pose = {{1, -2, 0.5}, {0, 0, 0.6, 0.8}}}};
    ck_assert_str_eq(describe(), "initial_pose at 1.00, -2.00, 0.50 m, yaw 73.7 deg");
    request.op = NDT_OP_LOCALIZE;
    ck_assert_str_eq(describe(), "localize at 1.00, -2.00, 0.50 m, yaw 73.7 deg, search only");
    request = (struct ndt_request_message){.op = NDT_OP_LOCALIZE,
                                           .hint = {.has_position = 1, .position_m = {7, 8, 9}, .apply = 1}};
    ck_assert_str_eq(describe(), "localize near 7.00, 8.00, 9.00 m");
    request = (struct ndt_request_message){.op = NDT_OP_LOCALIZE, .hint = {.apply = 1}};
    ck_assert_str_eq(describe(), "localize in the whole map");
    request = (struct ndt_request_message){.op = NDT_OP_STOP, .path = "unused"};
    ck_assert_str_eq(describe(), "stop");
    request = (struct ndt_request_message){.op = NDT_OP_LOAD_MAP};
    memset(request.path, 'p', NDT_PROTO_MAX_PATH);
    ck_assert_uint_eq(strlen(describe()), 63);
    request.op = NDT_OP_COUNT;
    ck_assert_str_eq(describe(), "unknown");
}

TEST(nesting_bombs)
{
    static const char head[] = "\x85" HEAD "\xa1z", tail[] = "\x01\xa2id\x05\xa2op\xa5hello";
    for (size_t depth = 1; depth < 100000; depth = depth < 12 ? depth + 1 : depth * 3) {
        uint8_t *bytes = malloc(sizeof(head) + depth + sizeof(tail));
        memcpy(bytes, head, sizeof(head) - 1);
        memset(bytes + sizeof(head) - 1, 0x91, depth);
        memcpy(bytes + sizeof(head) - 1 + depth, tail, sizeof(tail) - 1);
        const enum ndt_status status =
            ndt_request_decode(bytes, sizeof(head) + depth + sizeof(tail) - 2, &request, &id, &error);
        ck_assert_msg(status == (depth <= 8 ? NDT_OK : NDT_ERR_LIMIT), "depth %zu: %s", depth, error.text);
        ck_assert_uint_eq(id, depth <= 8 ? 5 : 0);
        free(bytes);
    }
}

/* ---- replies ---- */

static struct ndt_reply_writer writer;

TEST(golden_reply)
{
    enum ndt_message_type type;
    ndt_reply_begin(&writer, &frame, 7, NULL);
    ndt_reply_text(&writer, "name", "ndtd \n\xff \"0.1\"");
    ndt_reply_uint(&writer, "scans", UINT64_MAX);
    ndt_reply_int(&writer, "offset_ns", INT64_C(-5000000000));
    ndt_reply_real(&writer, "score", 0.4375);
    ndt_reply_bool(&writer, "running", 0);
    ndt_reply_open_map(&writer, "map");
    ndt_reply_int(&writer, "id", 1);
    ndt_reply_open_array(&writer, "levels");
    ndt_reply_real(&writer, NULL, 4.0);
    ndt_reply_real(&writer, NULL, 2.0);
    ndt_reply_close(&writer);
    ndt_reply_close(&writer);
    ndt_reply_open_array(&writer, "timings");
    ndt_reply_open_array(&writer, NULL);
    ndt_reply_uint(&writer, NULL, 1);
    ndt_reply_real(&writer, NULL, 2.5);
    ndt_reply_close(&writer);
    ndt_reply_open_array(&writer, NULL);
    ndt_reply_close(&writer);
    ndt_reply_close(&writer);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    assert_frame("reply");
    ASSERT_OK(ndt_message_peek(frame.data, frame.size, &type, &error));
    ck_assert_int_eq(type, NDT_MESSAGE_REPLY);
    ck_assert_str_eq(ndt_message_name(type), "reply");
}

static struct ndt_reply_message received;

static enum ndt_status decode_reply(void)
{
    return ndt_reply_decode(frame.data, frame.size, &received, &error);
}

static void write_search(const struct ndt_localize_report *report)
{
    ndt_reply_begin(&writer, &frame, 10, NULL);
    ndt_reply_search(&writer, report);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
}

TEST(golden_reply_search)
{
    const struct golden_vector golden = golden_read("reply_localize");
    ASSERT_OK(ndt_reply_decode(golden.bytes, golden.size, &received, &error));
    const struct ndt_localize_report *search = &received.search;
    ck_assert(received.id == 10 && received.ok && received.has_search && received.error[0] == '\0');
    ck_assert(search->search_id == 3 && !search->running && search->percent == 100 && search->elapsed_ms == 75.5);
    ck_assert(search->has_result && search->accepted && search->applied && search->seq == 41);
    ck_assert_int_eq(search->stamp_ns, INT64_C(1317042272349000123));
    ck_assert(search->has_pose && search->best.T_map_base.t_m[0] == 10.5 && search->best.confidence == 0.9375);
    ck_assert(search->has_covariance && search->covariance[35] == 1.0 / 512);
    ck_assert_uint_eq(search->alternative_count, 1);
    ck_assert(search->alternatives[0].T_map_base.q_xyzw[1] == -0.5 &&
              search->alternatives[0].confidence == 0.03125);
    ck_assert(search->queue_ms == 10.25 && search->search_ms == 60 && search->verification_ms == 5.25);
    const struct ndt_localize_report copy = *search;
    write_search(&copy);
    assert_frame("reply_localize");
}

TEST(golden_reply_pose_at)
{
    struct ndt_moment_message moment = {.stamp_ns = INT64_C(1317042272349000123),
                                        .frame_id = "map",
                                        .T_map_base = {{10.5, -20.25, 1}, {0.5, -0.5, 0.5, 0.5}},
                                        .has_twist = 1,
                                        .twist = {{8.5, 0.25, -0.125}, {0, 0.5, -1.5}},
                                        .kind = NDT_POSE_SMOOTHED,
                                        .state = NDT_STATE_COASTING,
                                        .scan_ns = INT64_C(1317042272300000000)};
    for (int i = 0; i < 6; i++)
        moment.covariance[7 * i] = 1.0 / (1 << (4 + i));
    moment.covariance[1] = moment.covariance[6] = 1.0 / 128;
    ndt_reply_begin(&writer, &frame, 11, NULL);
    ndt_reply_moment(&writer, &moment);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    assert_frame("reply_pose_at");
    ASSERT_OK(decode_reply());
    ck_assert(received.id == 11 && received.ok && received.has_moment && !received.has_search);
    ck_assert_mem_eq(&received.moment.T_map_base, &moment.T_map_base, sizeof(moment.T_map_base));
    ck_assert_mem_eq(received.moment.covariance, moment.covariance, sizeof(moment.covariance));
    ck_assert(received.moment.kind == moment.kind && received.moment.scan_ns == moment.scan_ns);
}

TEST(a_running_search_has_no_result)
{
    const struct ndt_localize_report running = {.search_id = 4, .running = 1, .percent = 41, .elapsed_ms = 12};
    write_search(&running);
    ASSERT_OK(decode_reply());
    ck_assert(received.search.running && received.search.percent == 41 && !received.search.has_result);
    ck_assert(!received.search.has_pose && received.search.alternative_count == 0);
    ndt_reply_begin(&writer, &frame, 11, "there is no map");
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    ASSERT_OK(decode_reply());
    ck_assert(received.id == 11 && !received.ok && !received.has_search);
    ck_assert_str_eq(received.error, "there is no map");
}

TEST(search_reports_are_bounded)
{
    struct ndt_localize_report report = {.search_id = 4, .has_result = 1, .percent = 101};
    write_search(&report);
    ck_assert_int_eq(decode_reply(), NDT_ERR_FORMAT);
    ck_assert_str_eq(error.text, "reply message: field 'search': field 'percent': 101 is above 100");
    report.percent = 100;
    report.alternative_count = NDT_LOCALIZE_MAX_ALTERNATIVES + 5; /* the writer stops at the limit */
    for (int i = 0; i < NDT_LOCALIZE_MAX_ALTERNATIVES; i++)
        report.alternatives[i].T_map_base = ndt_pose_identity();
    write_search(&report);
    ASSERT_OK(decode_reply());
    ck_assert_uint_eq(received.search.alternative_count, NDT_LOCALIZE_MAX_ALTERNATIVES);
    report.alternatives[9].confidence = 1.5;
    write_search(&report);
    ck_assert_int_eq(decode_reply(), NDT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "'alternatives': field 'confidence': 1.5 is not from 0 to 1"));
    report.has_pose = 1; /* and its quaternion zero */
    report.alternative_count = 0;
    write_search(&report);
    ck_assert_int_eq(decode_reply(), NDT_ERR_FORMAT);
    ndt_reply_begin(&writer, &frame, 1, NULL);
    ndt_reply_open_map(&writer, "search");
    ndt_reply_uint(&writer, "search_id", 1);
    ndt_reply_bool(&writer, "running", 0);
    ndt_reply_uint(&writer, "percent", 0);
    ndt_reply_real(&writer, "elapsed_ms", 0);
    ndt_reply_open_array(&writer, "alternatives");
    for (int i = 0; i <= NDT_LOCALIZE_MAX_ALTERNATIVES; i++)
        ndt_reply_uint(&writer, NULL, 0);
    ndt_reply_close(&writer);
    ndt_reply_close(&writer);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    ck_assert_int_eq(decode_reply(), NDT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.text, "11 poses are above the limit of 10"));
}

TEST(golden_reply_error)
{
    ck_assert_int_eq(DECODE("\x82" HEAD), NDT_ERR_FORMAT);
    ck_assert_int_eq(DECODE("\x83" HEAD "\xa2id\x00"), NDT_ERR_FORMAT);
    ndt_reply_begin(&writer, &frame, id, error.text);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    assert_frame("reply_error");
}

TEST(long_texts_in_replies_are_cut)
{
    static char text[100000], key[200];
    memset(text, 't', sizeof(text) - 1);
    memset(key, 'k', sizeof(key) - 1);
    ndt_reply_begin(&writer, &frame, 1, text);
    ndt_reply_text(&writer, key, text);
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    ck_assert_uint_lt(frame.size, 2 * NDT_PROTO_MAX_PATH + NDT_PROTO_MAX_NAME + 64);
    ck_assert_mem_eq(frame.data + frame.size - 5, "tt...", 5);
}

static void assert_misuse(void)
{
    ck_assert_int_eq(ndt_reply_finish(&writer, &error), NDT_ERR_ARGUMENT);
    ck_assert_uint_eq(frame.size, 0);
    ndt_reply_begin(&writer, &frame, 1, NULL);
}

TEST(misuse_of_the_writer_is_reported)
{
    ndt_reply_begin(&writer, &frame, 1, NULL);
    ndt_reply_uint(&writer, NULL, 1); /* a map requires keys */
    assert_misuse();
    ndt_reply_open_array(&writer, "a");
    ndt_reply_text(&writer, "key", "value"); /* an array has no keys */
    ndt_reply_close(&writer);
    assert_misuse();
    ndt_reply_open_array(&writer, "a"); /* never closed */
    assert_misuse();
    ndt_reply_close(&writer); /* never opened */
    ndt_reply_uint(&writer, "a", 1);
    assert_misuse();
    ASSERT_OK(ndt_reply_finish(&writer, &error));
    ndt_reply_uint(&writer, "late", 1);
    assert_misuse();
}

TEST(replies_nest_eight_deep)
{
    for (int deep = 8; deep <= 9; deep++) {
        ndt_reply_begin(&writer, &frame, 1, NULL);
        for (int i = 1; i < deep; i++)
            ndt_reply_open_map(&writer, "m");
        for (int i = 1; i < deep; i++)
            ndt_reply_close(&writer);
        const enum ndt_status status = ndt_reply_finish(&writer, &error);
        ck_assert_int_eq(status, deep == 8 ? NDT_OK : NDT_ERR_LIMIT);
        ck_assert_int_eq(frame.size == 0, deep == 9);
    }
}

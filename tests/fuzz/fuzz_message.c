/* Messages of every type. What a decoder accepts is encoded and decoded again: the second encoding has the bytes of
 * the first. Every message is printed as JSON, too. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "msgpack_mutator.h"
#include "ndt_proto/control_message.h"
#include "ndt_proto/message.h"

union any_message {
    struct ndt_pose_message pose;
    struct ndt_gnss_message gnss;
    struct ndt_imu_message imu;
    struct ndt_result_message result;
    struct ndt_request_message request;
    struct ndt_reply_message reply;
    struct ndt_scan_message scan;
    struct ndt_points_message points;
    struct ndt_moment_message moment;
};

static struct ndt_cloud cloud;
static union any_message message;
static struct ndt_error err;
static struct ndt_buffer first, second;

static enum ndt_status decode(enum ndt_message_type type, const uint8_t *data, size_t size)
{
    uint64_t id;
    switch (type) {
    case NDT_MESSAGE_SCAN:
        return ndt_scan_decode(data, size, &message.scan, &cloud, &err);
    case NDT_MESSAGE_RESULT:
        return ndt_result_decode(data, size, &message.result, &err);
    case NDT_MESSAGE_GNSS:
        return ndt_gnss_decode(data, size, &message.gnss, &err);
    case NDT_MESSAGE_REQUEST:
        return ndt_request_decode(data, size, &message.request, &id, &err);
    case NDT_MESSAGE_REPLY:
        return ndt_reply_decode(data, size, &message.reply, &err);
    case NDT_MESSAGE_IMU:
        return ndt_imu_decode(data, size, &message.imu, &err);
    case NDT_MESSAGE_POINTS:
        return ndt_points_decode(data, size, &message.points, &cloud, &err);
    case NDT_MESSAGE_POSE:
        return ndt_moment_decode(data, size, &message.moment, &err);
    default:
        return ndt_pose_message_decode(data, size, type, &message.pose, &err);
    }
}

static enum ndt_status encode_reply(struct ndt_buffer *frame)
{
    struct ndt_reply_writer writer;
    ndt_reply_begin(&writer, frame, message.reply.id, message.reply.ok ? NULL : message.reply.error);
    if (message.reply.has_search)
        ndt_reply_search(&writer, &message.reply.search);
    if (message.reply.has_moment)
        ndt_reply_moment(&writer, &message.reply.moment);
    return ndt_reply_finish(&writer, &err);
}

static enum ndt_status encode(enum ndt_message_type type, struct ndt_buffer *frame)
{
    switch (type) {
    case NDT_MESSAGE_SCAN:
        return ndt_scan_encode(frame, &message.scan, &cloud, &err);
    case NDT_MESSAGE_RESULT:
        return ndt_result_encode(frame, &message.result, &err);
    case NDT_MESSAGE_GNSS:
        return ndt_gnss_encode(frame, &message.gnss, &err);
    case NDT_MESSAGE_REQUEST:
        return ndt_request_encode(frame, &message.request, &err);
    case NDT_MESSAGE_REPLY:
        return encode_reply(frame);
    case NDT_MESSAGE_IMU:
        return ndt_imu_encode(frame, &message.imu, &err);
    case NDT_MESSAGE_POINTS:
        return ndt_points_encode(frame, &message.points, &cloud, &err);
    case NDT_MESSAGE_POSE:
        return ndt_moment_encode(frame, &message.moment, &err);
    default:
        return ndt_pose_message_encode(frame, type, &message.pose, &err);
    }
}

/* No sweep lasts this long (proto/point_blob.c): a larger time is a stray one, or that of another clock. */
static const float MAX_OFFSET_S = 10;

static int has_stray_times(void)
{
    for (size_t i = 0; cloud.time_s && i < cloud.count; i++)
        if (fabsf(cloud.time_s[i]) > MAX_OFFSET_S)
            return 1;
    return 0;
}

/* Float64 points are rounded to the origin that the decoder chooses, and from a few times of which most are stray
 * it takes another zero each time: neither has a second equal form. */
static int is_exact(enum ndt_message_type type)
{
    if (type != NDT_MESSAGE_SCAN && type != NDT_MESSAGE_POINTS)
        return 1;
    return cloud.origin_m[0] == 0 && cloud.origin_m[1] == 0 && cloud.origin_m[2] == 0 && !has_stray_times();
}

static void check_round_trip(enum ndt_message_type type, const uint8_t *data, size_t size)
{
    memset(&message, 0, sizeof(message));
    if (decode(type, data, size) != NDT_OK) {
        FUZZ_REQUIRE(err.text[0], "%s: refused without a reason", ndt_message_name(type));
        return;
    }
    const int exact = is_exact(type);
    if (type == NDT_MESSAGE_REQUEST && !message.request.pose.frame_id[0])
        strcpy(message.request.pose.frame_id, "map"); /* an empty frame is left out and means map */
    FUZZ_REQUIRE(encode(type, &first) == NDT_OK, "%s: %s", ndt_message_name(type), err.text);
    FUZZ_REQUIRE(decode(type, first.data, first.size) == NDT_OK, "%s: %s", ndt_message_name(type), err.text);
    FUZZ_REQUIRE(encode(type, &second) == NDT_OK, "%s: %s", ndt_message_name(type), err.text);
    FUZZ_REQUIRE(first.size == second.size, "%s: %zu bytes, then %zu", ndt_message_name(type), first.size,
                 second.size);
    FUZZ_REQUIRE(!exact || memcmp(first.data, second.data, first.size) == 0, "%s", ndt_message_name(type));
}

static void check_scan(const uint8_t *data, size_t size)
{
    struct ndt_scan_header header;
    struct ndt_scan_message identity;
    if (ndt_scan_header_decode(data, size, &header, &err) != NDT_OK)
        return;
    FUZZ_REQUIRE(ndt_scan_points(data, size, &header, 0, &cloud, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(ndt_scan_identify(data, size, &identity, &err) == NDT_OK, "%s", err.text);
    FUZZ_REQUIRE(identity.seq == header.seq && identity.stamp_ns == header.stamp_ns, "another scan");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char json[65536];
    static FILE *sink;
    struct ndt_scan_message identity;
    enum ndt_message_type type;
    if (!sink)
        sink = fmemopen(json, sizeof(json), "w");
    rewind(sink);
    err.text[0] = '\0';
    (void)ndt_message_print_json(sink, data, size, &err);
    (void)ndt_scan_identify(data, size, &identity, &err);
    if (ndt_message_peek(data, size, &type, &err) != NDT_OK)
        return 0;
    check_round_trip(type, data, size);
    if (type == NDT_MESSAGE_SCAN)
        check_scan(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct ndt_random random = {seed};
    if (ndt_random_next(&random) % 4 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return msgpack_mutate(data, size, max_size, &random);
}

/** @file
 * @brief The request message: operations and their arguments. */
#include "ndt_proto/control_message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/limits.h"
#include "wire.h"

enum { DEFAULT_TIMINGS = 100 };

enum argument { NO_ARGUMENT, PATH, COUNT, POSE, HINT, STAMP };

/* Operations and the argument of each; SCHEMA.md describes them. */
static const struct {
    const char *name;
    enum argument takes;
} operations[NDT_OP_COUNT] = {
    [NDT_OP_HELLO] = {"hello", NO_ARGUMENT},
    [NDT_OP_STATUS] = {"status", NO_ARGUMENT},
    [NDT_OP_INITIAL_POSE] = {"initial_pose", POSE},
    [NDT_OP_START] = {"start", NO_ARGUMENT},
    [NDT_OP_STOP] = {"stop", NO_ARGUMENT},
    [NDT_OP_LOAD_MAP] = {"load_map", PATH},
    [NDT_OP_UNLOAD_MAP] = {"unload_map", NO_ARGUMENT},
    [NDT_OP_LOAD_TILE] = {"load_tile", PATH},
    [NDT_OP_UNLOAD_TILE] = {"unload_tile", PATH},
    [NDT_OP_RELOAD] = {"reload", NO_ARGUMENT},
    [NDT_OP_START_RECORDING] = {"start_recording", PATH},
    [NDT_OP_STOP_RECORDING] = {"stop_recording", NO_ARGUMENT},
    [NDT_OP_TIMINGS] = {"timings", COUNT},
    [NDT_OP_LOCALIZE] = {"localize", HINT},
    [NDT_OP_SEARCH] = {"search", NO_ARGUMENT},
    [NDT_OP_CANCEL_SEARCH] = {"cancel_search", NO_ARGUMENT},
    [NDT_OP_POSE_AT] = {"pose_at", STAMP},
    [NDT_OP_SHUTDOWN] = {"shutdown", NO_ARGUMENT},
};

struct request_wire {
    struct ndt_request_message message;
    int has_path, has_count, has_stamp, has_frame, has_apply;
};

static enum ndt_status unknown_operation(const char *name, struct ndt_error *err)
{
    char known[320] = "";
    for (size_t i = 0, used = 0; i < NDT_OP_COUNT && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", operations[i].name);
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "'%s' is not an operation; there are: %s", name, known);
}

static enum ndt_status read_operation(struct ndt_wire_reader *reader, void *wire)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return status;
    for (int i = 0; i < NDT_OP_COUNT; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            ((struct request_wire *)wire)->message.op = (enum ndt_operation)i;
            return NDT_OK;
        }
    }
    return unknown_operation(name, reader->err);
}

static void write_operation(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_wire_put_text(writer, ndt_operation_name(((const struct request_wire *)wire)->message.op));
}

#define AT(member)   offsetof(struct request_wire, message.member)
#define SIZE(member) sizeof(((struct request_wire *)0)->message.member)
#define HAS(member)  offsetof(struct request_wire, member)
static const struct ndt_wire_field rows[] = {
    {"id", NDT_WIRE_UINT64, AT(id), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"op", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_operation, write_operation},
    {"path", NDT_WIRE_NAME, AT(path), SIZE(path), HAS(has_path), NULL, NULL},
    {"count", NDT_WIRE_UINT32, AT(count), 0, HAS(has_count), NULL, NULL},
    {"stamp_ns", NDT_WIRE_STAMP, AT(pose.stamp_ns), 0, HAS(has_stamp), NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(pose.frame_id), SIZE(pose.frame_id), HAS(has_frame), NULL, NULL},
    {"pose", NDT_WIRE_NUMBERS, AT(pose.pose), 7, AT(pose.has_pose), NULL, NULL},
    {"twist", NDT_WIRE_NUMBERS, AT(pose.twist), 6, AT(pose.has_twist), NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(pose.covariance), 36, AT(pose.has_covariance), NULL, NULL},
    {"position", NDT_WIRE_NUMBERS, AT(hint.position_m), 3, AT(hint.has_position), NULL, NULL},
    {"deviation", NDT_WIRE_NUMBERS, AT(hint.deviation_m), 3, AT(hint.has_deviation), NULL, NULL},
    {"heading", NDT_WIRE_NUMBER, AT(hint.heading_rad), 0, AT(hint.has_heading), NULL, NULL},
    {"heading_deviation", NDT_WIRE_NUMBER, AT(hint.heading_deviation_rad), 0, AT(hint.has_heading_deviation), NULL,
     NULL},
    {"apply", NDT_WIRE_BOOL, AT(hint.apply), 0, HAS(has_apply), NULL, NULL},
};
#undef HAS
#undef SIZE
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

const char *ndt_operation_name(enum ndt_operation op)
{
    return (unsigned)op < NDT_OP_COUNT ? operations[op].name : "unknown";
}

/* Reads only the id of a message that may be malformed; 0 when it has none. */
static uint64_t find_id(const uint8_t *data, size_t size)
{
    struct ndt_wire_reader reader;
    size_t pairs = 0, length = 0;
    uint64_t id = 0;
    const char *key = NULL;
    if (ndt_wire_open(&reader, data, size, NULL) != NDT_OK || ndt_wire_read_map(&reader, &pairs) != NDT_OK)
        return 0;
    for (size_t i = 0; i < pairs; i++) {
        if (ndt_wire_read_text(&reader, NDT_PROTO_MAX_FRAME, &key, &length) != NDT_OK)
            return 0;
        if (length == 2 && memcmp(key, "id", 2) == 0)
            return ndt_wire_read_uint(&reader, UINT64_MAX, &id) == NDT_OK ? id : 0;
        if (ndt_wire_skip(&reader) != NDT_OK)
            return 0;
    }
    return 0;
}

static enum ndt_status check_path(const struct request_wire *wire, struct ndt_error *err)
{
    if (!wire->has_path)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'path' is missing");
    if (wire->message.path[0] == '\0')
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'path' is empty");
    return NDT_OK;
}

static enum ndt_status check_pose(struct request_wire *wire, struct ndt_error *err)
{
    if (!wire->message.pose.has_pose)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'pose' is missing");
    return ndt_wire_check_motion(&wire->message.pose, 1, err);
}

/* Checks a hint: a deviation needs a value. */
static enum ndt_status check_hint(struct request_wire *wire, struct ndt_error *err)
{
    const struct ndt_localize_hint *hint = &wire->message.hint;
    if (hint->has_deviation && !hint->has_position)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'position' is missing");
    if (hint->has_heading_deviation && !hint->has_heading)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'heading' is missing");
    for (int i = 0; hint->has_deviation && i < 3; i++)
        if (!(hint->deviation_m[i] > 0))
            return ndt_fail(err, NDT_ERR_FORMAT, "field 'deviation': number %d is %.6g, not above 0", i,
                            hint->deviation_m[i]);
    enum ndt_status status = NDT_OK;
    if (hint->has_position)
        status = ndt_wire_check_sizes("position", hint->position_m, 3, NDT_LIMIT_POSITION_M, err);
    if (status == NDT_OK && hint->has_deviation)
        status = ndt_wire_check_sizes("deviation", hint->deviation_m, 3, NDT_LIMIT_DEVIATION_M, err);
    if (status != NDT_OK)
        return status;
    if (hint->has_heading && !isfinite(hint->heading_rad))
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'heading': it is not finite");
    if (hint->has_heading_deviation && !(hint->heading_deviation_rad > 0 && isfinite(hint->heading_deviation_rad)))
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'heading_deviation': %.6g is not above 0 and finite",
                        hint->heading_deviation_rad);
    return wire->message.pose.has_pose || wire->message.pose.has_covariance ? check_pose(wire, err) : NDT_OK;
}

/* Checks the arguments of the operation and normalises the quaternion. */
static enum ndt_status check_arguments(struct request_wire *wire, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const char *name = operations[wire->message.op].name;
    switch (operations[wire->message.op].takes) {
    case PATH:
        status = check_path(wire, err);
        break;
    case POSE:
        status = check_pose(wire, err);
        break;
    case HINT:
        status = check_hint(wire, err);
        break;
    default:
        break;
    }
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "request message: operation '%s'", name);
}

enum ndt_status ndt_request_decode(const uint8_t *data, size_t size, struct ndt_request_message *message,
                                   uint64_t *id, struct ndt_error *err)
{
    struct request_wire wire = {
        .message = {.count = DEFAULT_TIMINGS, .pose = {.frame_id = "map"}, .hint = {.apply = 1}}};
    *id = find_id(data, size);
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_REQUEST, rows, ROW_COUNT, &wire, err);
    if (status == NDT_OK)
        status = check_arguments(&wire, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}

/* Selects the keys of the operation. An empty frame is left out and means `map`, a stamp of 0 means the next scan.
 */
static void choose_arguments(struct request_wire *wire)
{
    struct ndt_pose_message *pose = &wire->message.pose;
    const enum argument takes = operations[wire->message.op].takes;
    wire->has_path = takes == PATH;
    wire->has_count = takes == COUNT;
    wire->has_stamp = (takes == POSE || takes == STAMP) && pose->stamp_ns != 0;
    wire->has_frame = takes == POSE && pose->frame_id[0] != '\0';
    pose->has_pose = (takes == POSE || takes == HINT) && pose->has_pose;
    pose->has_twist = takes == POSE && pose->has_twist;
    pose->has_covariance = (takes == POSE || takes == HINT) && pose->has_covariance;
    if (takes != HINT)
        wire->message.hint = (struct ndt_localize_hint){.apply = 1};
    wire->has_apply = takes == HINT;
}

enum ndt_status ndt_request_encode(struct ndt_buffer *frame, const struct ndt_request_message *message,
                                   struct ndt_error *err)
{
    struct request_wire wire = {.message = *message};
    frame->size = 0;
    if ((unsigned)message->op >= NDT_OP_COUNT)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "request message: there is no operation %d", (int)message->op);
    choose_arguments(&wire);
    struct request_wire checked = wire;
    if (check_arguments(&checked, err) != NDT_OK)
        return NDT_ERR_ARGUMENT;
    return ndt_wire_encode(frame, NDT_MESSAGE_REQUEST, rows, ROW_COUNT, &wire, err);
}

static void describe_pose(const struct ndt_pose *pose, const char *name, char *text, size_t size)
{
    const double *q = pose->q_xyzw;
    const double yaw_rad = atan2(2 * (q[3] * q[2] + q[0] * q[1]), 1 - 2 * (q[1] * q[1] + q[2] * q[2]));
    snprintf(text, size, "%s at %.2f, %.2f, %.2f m, yaw %.1f deg", name, pose->t_m[0], pose->t_m[1], pose->t_m[2],
             yaw_rad * 180 / acos(-1));
}

static void describe_search(const struct ndt_request_message *message, const char *name, char *text, size_t size)
{
    const double *at = message->hint.position_m;
    if (message->pose.has_pose)
        describe_pose(&message->pose.pose, name, text, size);
    else if (message->hint.has_position)
        snprintf(text, size, "%s near %.2f, %.2f, %.2f m", name, at[0], at[1], at[2]);
    else
        snprintf(text, size, "%s in the whole map", name);
    const size_t used = strlen(text);
    if (!message->hint.apply)
        snprintf(text + used, size - used, ", search only");
}

void ndt_request_describe(const struct ndt_request_message *message, char *text, size_t size)
{
    const char *name = ndt_operation_name(message->op);
    const enum argument takes = (unsigned)message->op < NDT_OP_COUNT ? operations[message->op].takes : NO_ARGUMENT;
    if (takes == POSE)
        describe_pose(&message->pose.pose, name, text, size);
    else if (takes == HINT)
        describe_search(message, name, text, size);
    else
        snprintf(text, size, "%s%s%s", name, takes == PATH ? " " : "", takes == PATH ? message->path : "");
}

#include "ndt_proto/message.h"

#include "pose_check.h"
#include "wire_fields.h"

/* The structs are laid out as the arrays on the wire: x y z qx qy qz qw, and vx vy vz wx wy wz. */
_Static_assert(sizeof(struct ndt_pose) == 7 * sizeof(double), "a pose is seven doubles");
_Static_assert(sizeof(struct ndt_twist) == 6 * sizeof(double), "a twist is six doubles");

#define AT(member) offsetof(struct ndt_pose_message, member)
static const struct ndt_wire_field rows[] = {
    {"stamp_ns", NDT_WIRE_INT64, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"pose", NDT_WIRE_NUMBERS, AT(pose), 7, AT(has_pose), NULL, NULL},
    {"twist", NDT_WIRE_NUMBERS, AT(twist), 6, AT(has_twist), NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(covariance), 36, AT(has_covariance), NULL, NULL},
};
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static enum ndt_status check_parts(enum ndt_message_type type, const struct ndt_pose_message *message,
                                   struct ndt_error *err)
{
    if (type == NDT_MESSAGE_ODOMETRY && !message->has_pose && !message->has_twist)
        return ndt_fail(err, NDT_ERR_FORMAT, "fields 'pose' and 'twist' are both missing, one is needed");
    if (type != NDT_MESSAGE_ODOMETRY && !message->has_pose)
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'pose' is missing");
    return NDT_OK;
}

static enum ndt_status check_type(enum ndt_message_type type, struct ndt_error *err)
{
    if (type == NDT_MESSAGE_INITIAL_POSE || type == NDT_MESSAGE_ODOMETRY || type == NDT_MESSAGE_TRUTH)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT, "a %s message is no pose message", ndt_message_name(type));
}

enum ndt_status ndt_pose_message_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                        struct ndt_pose_message *message, struct ndt_error *err)
{
    struct ndt_pose_message found = {0};
    enum ndt_status status = check_type(type, err);
    if (status == NDT_OK)
        status = ndt_wire_decode(data, size, type, rows, ROW_COUNT, &found, err);
    if (status != NDT_OK)
        return status;
    status = check_parts(type, &found, err);
    if (status == NDT_OK && found.has_pose)
        status = ndt_pose_check(&found.pose, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s message", ndt_message_name(type));
    *message = found;
    return NDT_OK;
}

enum ndt_status ndt_pose_message_encode(struct ndt_frame *frame, enum ndt_message_type type,
                                        const struct ndt_pose_message *message, struct ndt_error *err)
{
    frame->size = 0;
    enum ndt_status status = check_type(type, err);
    if (status == NDT_OK)
        status = check_parts(type, message, err);
    struct ndt_pose pose = message->pose;
    if (status == NDT_OK && message->has_pose)
        status = ndt_pose_check(&pose, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, NDT_ERR_ARGUMENT, "%s message", ndt_message_name(type));
    return ndt_wire_encode(frame, type, rows, ROW_COUNT, message, err);
}

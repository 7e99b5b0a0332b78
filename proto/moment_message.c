/** @file
 * @brief The pose of the base at any moment: the pose message, and its map in a reply. */
#include <string.h>

#include "ndt/names.h"
#include "ndt_proto/control_message.h"
#include "wire.h"

static enum ndt_status read_kind(struct ndt_wire_reader *reader, void *message)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return status;
    for (const struct ndt_label *label = ndt_pose_kind_labels; label->name; label++) {
        if (strcmp(label->name, name) == 0) {
            ((struct ndt_moment_message *)message)->kind = (enum ndt_pose_kind)label->value;
            return NDT_OK;
        }
    }
    return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' is no kind of pose", name);
}

static void write_kind(struct ndt_wire_writer *writer, const void *message)
{
    ndt_wire_put_text(writer, ndt_pose_kind_name(((const struct ndt_moment_message *)message)->kind));
}

static enum ndt_status read_state(struct ndt_wire_reader *reader, void *message)
{
    return ndt_wire_read_state(reader, &((struct ndt_moment_message *)message)->state);
}

static void write_state(struct ndt_wire_writer *writer, const void *message)
{
    ndt_wire_put_text(writer, ndt_state_name(((const struct ndt_moment_message *)message)->state));
}

#define AT(member) offsetof(struct ndt_moment_message, member)
static const struct ndt_wire_field rows[] = {
    {"stamp_ns", NDT_WIRE_STAMP, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"pose", NDT_WIRE_NUMBERS, AT(T_map_base), 7, NDT_WIRE_REQUIRED, NULL, NULL},
    {"covariance", NDT_WIRE_NUMBERS, AT(covariance), 36, NDT_WIRE_REQUIRED, NULL, NULL},
    {"twist", NDT_WIRE_NUMBERS, AT(twist), 6, AT(has_twist), NULL, NULL},
    {"kind", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_kind, write_kind},
    {"state", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_state, write_state},
    {"scan_ns", NDT_WIRE_STAMP, AT(scan_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
};
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

enum ndt_status ndt_moment_decode(const uint8_t *data, size_t size, struct ndt_moment_message *message,
                                  struct ndt_error *err)
{
    struct ndt_moment_message found = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_POSE, rows, ROW_COUNT, &found, err);
    if (status != NDT_OK)
        return status;
    status = ndt_wire_check_pose("pose", &found.T_map_base, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "pose message");
    *message = found;
    return NDT_OK;
}

enum ndt_status ndt_wire_read_moment(struct ndt_wire_reader *reader, struct ndt_moment_message *out)
{
    struct ndt_moment_message found = {0};
    enum ndt_status status = ndt_wire_read_fields(reader, rows, ROW_COUNT, &found);
    if (status == NDT_OK)
        status = ndt_wire_check_pose("pose", &found.T_map_base, reader->err);
    if (status == NDT_OK)
        *out = found;
    return status;
}

static enum ndt_status check(const struct ndt_moment_message *message, struct ndt_error *err)
{
    struct ndt_pose checked = message->T_map_base; /* the quaternion is sent unchanged */
    if ((unsigned)message->kind >= NDT_POSE_KIND_COUNT)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "field 'kind': there is no kind %d", (int)message->kind);
    if ((unsigned)message->state >= NDT_STATE_COUNT)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "field 'state': there is no state %d", (int)message->state);
    return ndt_wire_check_pose("pose", &checked, err);
}

enum ndt_status ndt_moment_encode(struct ndt_buffer *frame, const struct ndt_moment_message *message,
                                  struct ndt_error *err)
{
    frame->size = 0;
    if (check(message, err) != NDT_OK)
        return ndt_fail_prefix(err, NDT_ERR_ARGUMENT, "pose message");
    return ndt_wire_encode(frame, NDT_MESSAGE_POSE, rows, ROW_COUNT, message, err);
}

void ndt_reply_moment(struct ndt_reply_writer *writer, const struct ndt_moment_message *moment)
{
    const double *t = moment->T_map_base.t_m, *q = moment->T_map_base.q_xyzw;
    const double *v = moment->twist.v_mps, *w = moment->twist.w_radps;
    ndt_reply_open_map(writer, "pose_at");
    ndt_reply_int(writer, "stamp_ns", moment->stamp_ns);
    ndt_reply_text(writer, "frame_id", moment->frame_id);
    ndt_reply_numbers(writer, "pose", (const double[]){t[0], t[1], t[2], q[0], q[1], q[2], q[3]}, 7);
    ndt_reply_numbers(writer, "covariance", moment->covariance, 36);
    if (moment->has_twist)
        ndt_reply_numbers(writer, "twist", (const double[]){v[0], v[1], v[2], w[0], w[1], w[2]}, 6);
    ndt_reply_text(writer, "kind", ndt_pose_kind_name(moment->kind));
    ndt_reply_text(writer, "state", ndt_state_name(moment->state));
    ndt_reply_int(writer, "scan_ns", moment->scan_ns);
    ndt_reply_close(writer);
}

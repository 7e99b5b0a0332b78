#include "ndt_proto/message.h"

#include "wire_fields.h"

#define AT(member) offsetof(struct ndt_gnss_message, member)
static const struct ndt_wire_field rows[] = {
    {"stamp_ns", NDT_WIRE_INT64, AT(stamp_ns), 0, NDT_WIRE_REQUIRED, NULL, NULL},
    {"frame_id", NDT_WIRE_NAME, AT(frame_id), NDT_PROTO_MAX_NAME + 1, NDT_WIRE_REQUIRED, NULL, NULL},
    {"position", NDT_WIRE_NUMBERS, AT(position_m), 3, NDT_WIRE_REQUIRED, NULL, NULL},
    {"deviation", NDT_WIRE_NUMBERS, AT(deviation_m), 3, AT(has_deviation), NULL, NULL},
};
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

/* Zero would say that the position is exact; unknown is absent. */
static enum ndt_status check_deviation(const struct ndt_gnss_message *message, enum ndt_status status,
                                       struct ndt_error *err)
{
    for (int i = 0; message->has_deviation && i < 3; i++)
        if (!(message->deviation_m[i] > 0))
            return ndt_fail(err, status, "gnss message: field 'deviation': number %d is %.6g, not above 0", i,
                            message->deviation_m[i]);
    return NDT_OK;
}

enum ndt_status ndt_gnss_decode(const uint8_t *data, size_t size, struct ndt_gnss_message *message,
                                struct ndt_error *err)
{
    struct ndt_gnss_message found = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_GNSS, rows, ROW_COUNT, &found, err);
    if (status == NDT_OK)
        status = check_deviation(&found, NDT_ERR_FORMAT, err);
    if (status == NDT_OK)
        *message = found;
    return status;
}

enum ndt_status ndt_gnss_encode(struct ndt_frame *frame, const struct ndt_gnss_message *message,
                                struct ndt_error *err)
{
    frame->size = 0;
    const enum ndt_status status = check_deviation(message, NDT_ERR_ARGUMENT, err);
    return status == NDT_OK ? ndt_wire_encode(frame, NDT_MESSAGE_GNSS, rows, ROW_COUNT, message, err) : status;
}

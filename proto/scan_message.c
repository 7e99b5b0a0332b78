#include "ndt_proto/message.h"

#include "point_blob.h"
#include "wire_fields.h"

/* The message, with the points where they are: in the frame (decoding) or in a cloud (encoding). */
struct scan_wire {
    struct ndt_scan_message message;
    struct ndt_point_blob blob;
    const struct ndt_cloud *cloud;
};

static enum ndt_status read_fields(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_point_fields_read(reader, &((struct scan_wire *)wire)->blob);
}

static void write_fields(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_point_fields_write(writer, &((const struct scan_wire *)wire)->blob);
}

static enum ndt_status read_data(struct ndt_wire_reader *reader, void *wire)
{
    struct ndt_point_blob *blob = &((struct scan_wire *)wire)->blob;
    return ndt_wire_read_blob(reader, &blob->data, &blob->size);
}

static void write_data(struct ndt_wire_writer *writer, const void *wire)
{
    const struct scan_wire *scan = wire;
    ndt_point_blob_write(writer, &scan->blob, scan->cloud);
}

#define AT(member)             offsetof(struct scan_wire, member)
#define SIZE(member)           sizeof(((struct scan_wire *)0)->member)
#define ROW(key, type, member) key, type, AT(member), SIZE(member), NDT_WIRE_REQUIRED, NULL, NULL
static const struct ndt_wire_field rows[] = {
    {ROW("seq", NDT_WIRE_UINT64, message.seq)},
    {ROW("stamp_ns", NDT_WIRE_INT64, message.stamp_ns)},
    {ROW("frame_id", NDT_WIRE_NAME, message.frame_id)},
    {ROW("count", NDT_WIRE_UINT64, blob.count)},
    {ROW("point_step", NDT_WIRE_UINT64, blob.step)},
    {"fields", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_fields, write_fields},
    {"data", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_data, write_data},
};
#undef ROW
#undef SIZE
#undef AT
enum { HEADER_ROWS = 3, ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

enum ndt_status ndt_scan_decode(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct scan_wire wire = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_SCAN, rows, ROW_COUNT, &wire, err);
    if (status != NDT_OK)
        return status;
    status = ndt_point_blob_check(&wire.blob, err);
    if (status == NDT_OK)
        status = ndt_point_blob_take(&wire.blob, wire.message.stamp_ns, cloud, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "scan message");
    *message = wire.message;
    return NDT_OK;
}

enum ndt_status ndt_scan_check(const uint8_t *data, size_t size, struct ndt_error *err)
{
    struct scan_wire wire = {0};
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_SCAN, rows, ROW_COUNT, &wire, err);
    if (status != NDT_OK)
        return status;
    status = ndt_point_blob_check(&wire.blob, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "scan message");
}

enum ndt_status ndt_scan_header_decode(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                       struct ndt_error *err)
{
    struct scan_wire wire = {0};
    const enum ndt_status status =
        ndt_wire_decode_head(data, size, NDT_MESSAGE_SCAN, rows, HEADER_ROWS, &wire, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}

enum ndt_status ndt_scan_encode(struct ndt_frame *frame, const struct ndt_scan_message *message,
                                const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct scan_wire wire = {.message = *message, .cloud = cloud};
    ndt_point_blob_layout(&wire.blob, cloud);
    return ndt_wire_encode(frame, NDT_MESSAGE_SCAN, rows, ROW_COUNT, &wire, err);
}

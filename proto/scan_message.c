/** @file
 * @brief The scan message: its table and its header. The points are in point_blob.c. */
#include "point_blob.h"

#include <string.h>

/* The message for its table of fields; `cloud` for the encoder only. */
struct scan_wire {
    struct ndt_scan_message message;
    struct ndt_point_layout points;
    const struct ndt_cloud *cloud;
};

static enum ndt_status read_fields(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_points_read_fields(reader, &((struct scan_wire *)wire)->points);
}

static void write_fields(struct ndt_wire_writer *writer, const void *wire)
{
    ndt_points_put_fields(writer, &((const struct scan_wire *)wire)->points);
}

static enum ndt_status read_data(struct ndt_wire_reader *reader, void *wire)
{
    return ndt_points_read_data(reader, &((struct scan_wire *)wire)->points);
}

static void write_data(struct ndt_wire_writer *writer, const void *wire)
{
    const struct scan_wire *scan = wire;
    ndt_points_put_data(writer, &scan->points, scan->cloud);
}

#define AT(member)             offsetof(struct scan_wire, member)
#define SIZE(member)           sizeof(((struct scan_wire *)0)->member)
#define ROW(key, type, member) key, type, AT(member), SIZE(member), NDT_WIRE_REQUIRED, NULL, NULL
static const struct ndt_wire_field rows[] = {
    {ROW("seq", NDT_WIRE_UINT64, message.seq)},
    {ROW("stamp_ns", NDT_WIRE_INT64, message.stamp_ns)},
    {ROW("frame_id", NDT_WIRE_NAME, message.frame_id)},
    {ROW("count", NDT_WIRE_UINT64, points.count)},
    {ROW("point_step", NDT_WIRE_UINT64, points.step)},
    {"fields", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_fields, write_fields},
    {"data", NDT_WIRE_CUSTOM, 0, 0, NDT_WIRE_REQUIRED, read_data, write_data},
};
#undef ROW
#undef SIZE
#undef AT
enum { HEADER_ROWS = 3, ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static enum ndt_status read_scan(const uint8_t *data, size_t size, struct scan_wire *wire, struct ndt_error *err)
{
    enum ndt_status status = ndt_wire_decode(data, size, NDT_MESSAGE_SCAN, rows, ROW_COUNT, wire, err);
    if (status != NDT_OK)
        return status;
    status = ndt_wire_check_stamp(wire->message.stamp_ns, err);
    if (status == NDT_OK)
        status = ndt_points_check_layout(&wire->points, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "scan message");
}

enum ndt_status ndt_scan_header_decode(const uint8_t *data, size_t size, struct ndt_scan_header *scan,
                                       struct ndt_error *err)
{
    struct scan_wire wire = {0};
    const enum ndt_status status = read_scan(data, size, &wire, err);
    if (status != NDT_OK)
        return status;
    *scan =
        (struct ndt_scan_header){.seq = wire.message.seq, .stamp_ns = wire.message.stamp_ns, .points = wire.points};
    memcpy(scan->frame_id, wire.message.frame_id, sizeof(scan->frame_id));
    return NDT_OK;
}

uint64_t ndt_scan_thin(struct ndt_scan_header *scan, uint64_t most)
{
    struct ndt_point_layout *points = &scan->points;
    const uint64_t all = points->count;
    if (most == 0 || all <= most)
        return 0;
    const uint64_t every = ((all + most - 1) / most) | 1;
    points->count = (all + every - 1) / every;
    points->step *= every;
    return all - points->count;
}

enum ndt_status ndt_scan_points(const uint8_t *data, size_t size, const struct ndt_scan_header *scan,
                                double deadline_us, struct ndt_cloud *cloud, struct ndt_error *err)
{
    const enum ndt_status status =
        ndt_points_to_cloud(data, size, &scan->points, scan->stamp_ns, deadline_us, cloud, err);
    return status == NDT_OK || status == NDT_ERR_CANCELLED ? status : ndt_fail_prefix(err, status, "scan message");
}

enum ndt_status ndt_scan_decode(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct scan_wire wire = {0};
    enum ndt_status status = read_scan(data, size, &wire, err);
    if (status != NDT_OK)
        return status;
    const struct ndt_scan_header scan = {.stamp_ns = wire.message.stamp_ns, .points = wire.points};
    status = ndt_scan_points(data, size, &scan, 0, cloud, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}

enum ndt_status ndt_scan_identify(const uint8_t *data, size_t size, struct ndt_scan_message *message,
                                  struct ndt_error *err)
{
    struct scan_wire wire = {0};
    const enum ndt_status status =
        ndt_wire_decode_head(data, size, NDT_MESSAGE_SCAN, rows, HEADER_ROWS, &wire, err);
    if (status == NDT_OK)
        *message = wire.message;
    return status;
}

enum ndt_status ndt_scan_encode(struct ndt_buffer *frame, const struct ndt_scan_message *message,
                                const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct scan_wire wire = {.message = *message, .cloud = cloud};
    ndt_points_choose_layout(&wire.points, cloud);
    return ndt_wire_encode(frame, NDT_MESSAGE_SCAN, rows, ROW_COUNT, &wire, err);
}

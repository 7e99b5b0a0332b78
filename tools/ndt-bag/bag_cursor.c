#include "bag_cursor.h"

#include <inttypes.h>

enum ndt_status bag_cursor_open(struct bag_cursor *cursor, const char *path, struct ndt_error *err)
{
    *cursor = (struct bag_cursor){.path = path};
    ndt_cloud_init(&cursor->cloud);
    return ndt_bag_open(&cursor->reader, path, err);
}

void bag_cursor_close(struct bag_cursor *cursor)
{
    ndt_bag_close(cursor->reader);
    ndt_cloud_free(&cursor->cloud);
}

void bag_cursor_rewind(struct bag_cursor *cursor)
{
    ndt_bag_rewind(cursor->reader);
    cursor->number = 0;
}

enum ndt_status bag_cursor_next(struct bag_cursor *cursor, struct ndt_error *err)
{
    cursor->offset = ndt_bag_offset(cursor->reader);
    const enum ndt_status status = ndt_bag_next(cursor->reader, &cursor->record, err);
    if (status == NDT_OK)
        cursor->number++;
    return status;
}

static enum ndt_status decode_message(struct bag_cursor *cursor, const uint8_t *data, size_t size,
                                      struct ndt_error *err)
{
    uint64_t id;
    switch (cursor->type) {
    case NDT_MESSAGE_SCAN:
        return ndt_scan_decode(data, size, &cursor->scan, &cursor->cloud, err);
    case NDT_MESSAGE_RESULT:
        return ndt_result_decode(data, size, &cursor->result, err);
    case NDT_MESSAGE_GNSS:
        return ndt_gnss_decode(data, size, &cursor->gnss, err);
    case NDT_MESSAGE_REQUEST:
        return ndt_request_decode(data, size, &cursor->request, &id, err);
    case NDT_MESSAGE_REPLY:
        return NDT_OK; /* only its type is looked at */
    default:
        return ndt_pose_message_decode(data, size, cursor->type, &cursor->pose, err);
    }
}

static enum ndt_status decode(struct bag_cursor *cursor, struct ndt_error *err)
{
    const struct ndt_bag_record *record = &cursor->record;
    const enum ndt_status status = ndt_message_peek(record->payload, record->length, &cursor->type, err);
    if (status != NDT_OK)
        return status;
    if ((uint32_t)cursor->type != record->type)
        return ndt_fail(err, NDT_ERR_FORMAT, "the record says %s (%" PRIu32 "), the message in it %s",
                        ndt_message_name((enum ndt_message_type)record->type), record->type,
                        ndt_message_name(cursor->type));
    return decode_message(cursor, record->payload, record->length, err);
}

enum ndt_status bag_cursor_decode(struct bag_cursor *cursor, struct ndt_error *err)
{
    const enum ndt_status status = decode(cursor, err);
    if (status == NDT_OK)
        return NDT_OK;
    return ndt_fail_prefix(err, status, "%s: record %" PRIu64 " at byte %" PRIu64, cursor->path, cursor->number,
                           cursor->offset);
}

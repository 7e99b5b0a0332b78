#include "bag_summary.h"

#include <string.h>

#include "bag_tool.h"

static void add_scan(struct bag_summary *summary, const struct bag_cursor *cursor)
{
    const uint64_t count = cursor->cloud.count;
    const int64_t stamp_ns = cursor->scan.stamp_ns;
    const int is_first = summary->by_type[NDT_MESSAGE_SCAN] == 1;
    if (is_first) {
        summary->min_points = count;
        summary->first_scan_ns = stamp_ns;
        memcpy(summary->frame_id, cursor->scan.frame_id, sizeof(summary->frame_id));
    } else if (stamp_ns <= summary->last_scan_ns) {
        summary->scans_back++;
    }
    summary->last_scan_ns = stamp_ns;
    summary->min_points = count < summary->min_points ? count : summary->min_points;
    summary->max_points = count > summary->max_points ? count : summary->max_points;
    summary->points += count;
    summary->fields |= cursor->cloud.fields;
}

static void add_record(struct bag_summary *summary, struct bag_cursor *cursor)
{
    struct ndt_error reason;
    if (summary->records++ == 0)
        summary->first_ns = cursor->record.receive_time_ns;
    summary->last_ns = cursor->record.receive_time_ns;
    if (bag_cursor_decode(cursor, &reason) != NDT_OK) {
        if (summary->unreadable++ == 0)
            summary->first_unreadable = reason;
        return;
    }
    summary->by_type[cursor->type]++;
    if (cursor->type == NDT_MESSAGE_SCAN)
        add_scan(summary, cursor);
}

enum ndt_status bag_summary_read(struct bag_summary *summary, const char *path, struct ndt_error *err)
{
    struct bag_cursor cursor;
    *summary = (struct bag_summary){0};
    enum ndt_status status = bag_cursor_open(&cursor, path, err);
    if (status != NDT_OK)
        return status;
    while ((status = bag_cursor_next(&cursor, err)) == NDT_OK && !bag_interrupted())
        add_record(summary, &cursor);
    summary->bytes = ndt_bag_offset(cursor.reader);
    bag_cursor_close(&cursor);
    if (status == NDT_OK)
        return ndt_fail(err, NDT_ERR_IO, "%s: interrupted", path);
    if (status == NDT_ERR_FORMAT)
        summary->damage = *err;
    return status == NDT_END || status == NDT_ERR_FORMAT ? NDT_OK : status;
}

#include "bag_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output_guard.h"

/* ---- reading ---- */

enum ndt_status bag_cursor_open(struct bag_cursor *cursor, const char *path, struct ndt_error *err)
{
    *cursor = (struct bag_cursor){.path = path};
    ndt_cloud_init(&cursor->cloud);
    ndtd_progress_line_begin(&cursor->line, path, NULL);
    return ndt_bag_open(&cursor->reader, path, err);
}

void bag_cursor_close(struct bag_cursor *cursor)
{
    ndtd_progress_line_end(&cursor->line);
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
    if (status == NDT_OK)
        ndtd_progress_line_show(&cursor->line, cursor->offset, ndt_bag_size(cursor->reader));
    else
        ndtd_progress_line_end(&cursor->line); /* the end, or an error to be told */
    return status;
}

static enum ndt_status decode_message(struct bag_cursor *cursor, const uint8_t *data, size_t size,
                                      struct ndt_error *err)
{
    uint64_t id;
    switch (cursor->type) {
    case NDT_MESSAGE_SCAN:
        return ndt_scan_decode(data, size, &cursor->scan, &cursor->cloud, err);
    case NDT_MESSAGE_POINTS:
        return ndt_points_decode(data, size, &cursor->points, &cursor->cloud, err);
    case NDT_MESSAGE_RESULT:
        return ndt_result_decode(data, size, &cursor->result, err);
    case NDT_MESSAGE_GNSS:
        return ndt_gnss_decode(data, size, &cursor->gnss, err);
    case NDT_MESSAGE_IMU:
        return ndt_imu_decode(data, size, &cursor->imu, err);
    case NDT_MESSAGE_REQUEST:
        return ndt_request_decode(data, size, &cursor->request, &id, err);
    case NDT_MESSAGE_REPLY:
        return NDT_OK; /* its type is sufficient, so it is not decoded */
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

enum ndt_status bag_type_of(const char *name, enum ndt_message_type *type, struct ndt_error *err)
{
    for (int i = NDT_MESSAGE_SCAN; i < NDT_MESSAGE_END; i++) {
        *type = (enum ndt_message_type)i;
        if (strcmp(ndt_message_name(*type), name) == 0)
            return NDT_OK;
    }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a message type; --help lists them", name);
}

/* ---- writing ---- */

static enum ndt_status set_names(struct bag_target *target, const char *path, struct ndt_error *err)
{
    static const char suffix[] = ".tmp";
    target->path = realpath(path, NULL); /* a symbolic link is kept; its target is replaced */
    if (!target->path)
        target->path = strdup(path);
    const size_t size = target->path ? strlen(target->path) + sizeof(suffix) : 0;
    target->temporary = target->path ? malloc(size) : NULL;
    if (!target->temporary)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for its name", path);
    snprintf(target->temporary, size, "%s%s", target->path, suffix);
    return NDT_OK;
}

/* Refuses an output that is an input, also by another name: a link, or another path. */
static enum ndt_status refuse_input(const char *path, const struct tool_operands *inputs, struct ndt_error *err)
{
    struct stat out, input;
    for (size_t i = 0; inputs && i < inputs->count; i++)
        if (stat(path, &out) == 0 && stat(inputs->words[i], &input) == 0 && out.st_dev == input.st_dev &&
            out.st_ino == input.st_ino)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: is an input", path);
    return NDT_OK;
}

enum ndt_status bag_target_open(struct bag_target *target, const char *path, int force,
                                const struct tool_operands *inputs, struct ndt_error *err)
{
    *target = (struct bag_target){.force = force};
    ndt_buffer_init(&target->frame);
    enum ndt_status status = set_names(target, path, err);
    if (status == NDT_OK)
        status = refuse_input(path, inputs, err);
    if (status == NDT_OK)
        status = tool_output_check(target->path, TOOL_OUTPUT_FILE, force, err);
    if (status == NDT_OK) {
        unlink(target->temporary); /* left over from a run that was killed */
        status = ndt_bag_create(&target->writer, target->temporary, 0, err);
    }
    if (status != NDT_OK)
        return bag_target_close(target, status, err);
    return NDT_OK;
}

enum ndt_status bag_target_put(struct bag_target *target, const struct ndt_bag_record *record,
                               struct ndt_error *err)
{
    if (tool_interrupted())
        return ndt_fail(err, NDT_ERR_IO, "%s: interrupted, the file is removed", target->path);
    const enum ndt_status status = ndt_bag_write(target->writer, record, err);
    if (status == NDT_OK) {
        target->records++;
        target->bytes += record->length;
    }
    return status;
}

static enum ndt_status put_frame(struct bag_target *target, enum ndt_message_type type, int64_t stamp_ns,
                                 struct ndt_error *err)
{
    const struct ndt_bag_record record = {(uint32_t)type, (uint32_t)target->frame.size, stamp_ns,
                                          target->frame.data};
    return bag_target_put(target, &record, err);
}

enum ndt_status bag_target_put_pose(struct bag_target *target, enum ndt_message_type type,
                                    const struct ndt_pose_message *message, struct ndt_error *err)
{
    const enum ndt_status status = ndt_pose_message_encode(&target->frame, type, message, err);
    return status == NDT_OK ? put_frame(target, type, message->stamp_ns, err) : status;
}

enum ndt_status bag_target_put_scan(struct bag_target *target, const struct ndt_scan_message *message,
                                    const struct ndt_cloud *cloud, struct ndt_error *err)
{
    const enum ndt_status status = ndt_scan_encode(&target->frame, message, cloud, err);
    return status == NDT_OK ? put_frame(target, NDT_MESSAGE_SCAN, message->stamp_ns, err) : status;
}

static enum ndt_status move_into_place(const struct bag_target *target, struct ndt_error *err)
{
    /* the target may have been created since */
    const enum ndt_status status = tool_output_check(target->path, TOOL_OUTPUT_FILE, target->force, err);
    if (status == NDT_OK && rename(target->temporary, target->path) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be renamed: %s", target->path, strerror(errno));
    return status;
}

enum ndt_status bag_target_close(struct bag_target *target, enum ndt_status status, struct ndt_error *err)
{
    if (status != NDT_OK) {
        ndt_bag_discard(target->writer);
    } else {
        status = ndt_bag_finish(target->writer, err);
        if (status == NDT_OK)
            status = move_into_place(target, err);
        if (status != NDT_OK)
            unlink(target->temporary);
    }
    ndt_buffer_free(&target->frame);
    free(target->path);
    free(target->temporary);
    *target = (struct bag_target){0};
    return status;
}

struct ndt_pose_message bag_initial_pose(int64_t stamp_ns, const struct ndt_pose *pose, int64_t next_stamp_ns,
                                         const struct ndt_pose *next)
{
    struct ndt_pose_message message = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .pose = *pose};
    if (next && next_stamp_ns > stamp_ns) {
        const struct ndt_pose motion = ndt_pose_between(pose, next);
        message.twist = ndt_pose_log(&motion, (double)((uint64_t)next_stamp_ns - (uint64_t)stamp_ns) * 1e-9);
        message.has_twist = 1;
    }
    return message;
}

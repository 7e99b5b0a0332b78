#include "bag_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bag_tool.h"

static enum ndt_status set_names(struct bag_target *target, const char *path, struct ndt_error *err)
{
    static const char suffix[] = ".tmp";
    target->path = realpath(path, NULL); /* a link stays a link */
    if (!target->path)
        target->path = strdup(path);
    const size_t size = target->path ? strlen(target->path) + sizeof(suffix) : 0;
    target->temporary = target->path ? malloc(size) : NULL;
    if (!target->temporary)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for its name", path);
    snprintf(target->temporary, size, "%s%s", target->path, suffix);
    return NDT_OK;
}

static enum ndt_status check_free(const struct bag_target *target, struct ndt_error *err)
{
    struct stat info;
    if (lstat(target->path, &info) != 0)
        return NDT_OK;
    if (!S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: is no regular file", target->path);
    if (!target->force)
        return ndt_fail(err, NDT_ERR_IO, "%s: exists already; --force overwrites it", target->path);
    return NDT_OK;
}

enum ndt_status bag_target_open(struct bag_target *target, const char *path, int force, struct ndt_error *err)
{
    *target = (struct bag_target){.force = force};
    ndt_frame_init(&target->frame);
    enum ndt_status status = set_names(target, path, err);
    if (status == NDT_OK)
        status = check_free(target, err);
    if (status == NDT_OK) {
        unlink(target->temporary); /* of a run that was killed */
        status = ndt_bag_create(&target->writer, target->temporary, 0, err);
    }
    if (status != NDT_OK)
        return bag_target_close(target, status, err);
    return NDT_OK;
}

enum ndt_status bag_target_put(struct bag_target *target, const struct ndt_bag_record *record,
                               struct ndt_error *err)
{
    if (bag_interrupted())
        return ndt_fail(err, NDT_ERR_IO, "%s: interrupted, nothing is kept", target->path);
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
    const enum ndt_status status = check_free(target, err); /* somebody may have been quicker */
    if (status == NDT_OK && rename(target->temporary, target->path) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot give it its name: %s", target->path, strerror(errno));
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
    ndt_frame_free(&target->frame);
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

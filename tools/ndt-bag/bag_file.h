/** @file
 * @brief The bag that a command of ndt-bag reads and the bag that it writes, and the list of the commands. */
#ifndef BAG_FILE_H
#define BAG_FILE_H

#include "ndt_io/bag.h"
#include "ndt_proto/control_message.h"
#include "tool_options.h"

struct bag_cursor {
    const char *path;
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record; /* the current one */
    uint64_t number;              /* of the current record, from 1 */
    uint64_t offset;              /* where it begins in the file */
    /* the message in it, after bag_cursor_decode; which one is filled says `type` */
    enum ndt_message_type type;
    struct ndt_scan_message scan;
    struct ndt_cloud cloud;
    struct ndt_pose_message pose;
    struct ndt_result_message result;
    struct ndt_gnss_message gnss;
    struct ndt_request_message request;
};

NDT_MUST_CHECK enum ndt_status bag_cursor_open(struct bag_cursor *cursor, const char *path, struct ndt_error *err);
void bag_cursor_close(struct bag_cursor *cursor);
void bag_cursor_rewind(struct bag_cursor *cursor);
/* As ndt_bag_next: NDT_END after the last, NDT_ERR_FORMAT where the file is damaged. */
NDT_MUST_CHECK enum ndt_status bag_cursor_next(struct bag_cursor *cursor, struct ndt_error *err);
/* Decodes the current record; the error names the file, the record and the byte. */
NDT_MUST_CHECK enum ndt_status bag_cursor_decode(struct bag_cursor *cursor, struct ndt_error *err);

struct bag_target {
    char *path, *temporary; /* written beside the target, then renamed */
    int force;
    struct ndt_bag_writer *writer;
    struct ndt_frame frame;
    uint64_t records, bytes;
};

/* Refuses an existing file unless `force`, and always what is no regular file. */
NDT_MUST_CHECK enum ndt_status bag_target_open(struct bag_target *target, const char *path, int force,
                                               struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bag_target_put(struct bag_target *target, const struct ndt_bag_record *record,
                                              struct ndt_error *err);
/* Receive time is the stamp. */
NDT_MUST_CHECK enum ndt_status bag_target_put_pose(struct bag_target *target, enum ndt_message_type type,
                                                   const struct ndt_pose_message *message, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bag_target_put_scan(struct bag_target *target,
                                                   const struct ndt_scan_message *message,
                                                   const struct ndt_cloud *cloud, struct ndt_error *err);
/* Keeps the file when `status` is NDT_OK and removes it otherwise; returns what came of it. */
NDT_MUST_CHECK enum ndt_status bag_target_close(struct bag_target *target, enum ndt_status status,
                                                struct ndt_error *err);

/* A start: the pose at `stamp_ns`, and the constant twist that leads from it to a later one, when there is one. */
struct ndt_pose_message bag_initial_pose(int64_t stamp_ns, const struct ndt_pose *pose, int64_t next_stamp_ns,
                                         const struct ndt_pose *next);

extern const struct tool_command bag_pack_command, bag_cut_command;

#endif

/** @file
 * @brief The bag that a command of ndt-bag reads and the bag that it writes, and the list of the commands. */
#ifndef BAG_FILE_H
#define BAG_FILE_H

#include "ndt_io/bag.h"
#include "ndt_proto/control_message.h"
#include "ndtd/progress_line.h"
#include "tool_options.h"

/** A bag that is read record by record. */
struct bag_cursor {
    const char *path;
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record; /* the current one */
    uint64_t number;              /* number of the current record, from 1 */
    uint64_t offset;              /* byte in the file at which it begins */
    struct ndtd_progress_line line;
    /* the message in it, after bag_cursor_decode(); `type` says which member is valid */
    enum ndt_message_type type;
    struct ndt_scan_message scan;
    struct ndt_points_message points;
    struct ndt_cloud cloud; /* points of a scan or a points message */
    struct ndt_pose_message pose;
    struct ndt_result_message result;
    struct ndt_gnss_message gnss;
    struct ndt_imu_message imu;
    struct ndt_request_message request;
};

NDT_MUST_CHECK enum ndt_status bag_cursor_open(struct bag_cursor *cursor, const char *path, struct ndt_error *err);
void bag_cursor_close(struct bag_cursor *cursor);
void bag_cursor_rewind(struct bag_cursor *cursor);
/** Reads the next record as ndt_bag_next() does: NDT_END after the last record, NDT_ERR_FORMAT where the file is
 * damaged. */
NDT_MUST_CHECK enum ndt_status bag_cursor_next(struct bag_cursor *cursor, struct ndt_error *err);
/** Decodes the current record; the error names the file, the record and the byte. */
NDT_MUST_CHECK enum ndt_status bag_cursor_decode(struct bag_cursor *cursor, struct ndt_error *err);

/** The type of that name; NDT_ERR_ARGUMENT if there is none. */
NDT_MUST_CHECK enum ndt_status bag_type_of(const char *name, enum ndt_message_type *type, struct ndt_error *err);

/** A bag that is written: it appears complete under its name, or not at all. */
struct bag_target {
    char *path, *temporary; /* written in the directory of the target, then renamed */
    int force;
    struct ndt_bag_writer *writer;
    struct ndt_buffer frame;
    uint64_t records, bytes;
};

/** Writes a temporary file in the directory of the target. Refuses an existing file unless `force`, and always a
 * target that is not a regular file, or that is one of `inputs` (NULL: none). */
NDT_MUST_CHECK enum ndt_status bag_target_open(struct bag_target *target, const char *path, int force,
                                               const struct tool_operands *inputs, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bag_target_put(struct bag_target *target, const struct ndt_bag_record *record,
                                              struct ndt_error *err);
/** The receive time of the record is the stamp of the message. */
NDT_MUST_CHECK enum ndt_status bag_target_put_pose(struct bag_target *target, enum ndt_message_type type,
                                                   const struct ndt_pose_message *message, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bag_target_put_scan(struct bag_target *target,
                                                   const struct ndt_scan_message *message,
                                                   const struct ndt_cloud *cloud, struct ndt_error *err);
/** Renames the file to its target when `status` is NDT_OK, and removes it otherwise. Returns `status`, or the
 * failure of the renaming. */
NDT_MUST_CHECK enum ndt_status bag_target_close(struct bag_target *target, enum ndt_status status,
                                                struct ndt_error *err);

/** An initial pose message: the pose at `stamp_ns`, with the constant twist that leads to the pose at
 * next_stamp_ns. `next` may be NULL (no twist). */
struct ndt_pose_message bag_initial_pose(int64_t stamp_ns, const struct ndt_pose *pose, int64_t next_stamp_ns,
                                         const struct ndt_pose *next);

extern const struct tool_command bag_pack_command, bag_cut_command, bag_join_command, bag_restamp_command;

#endif

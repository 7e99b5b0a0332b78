/* The bag that is being written: appears whole under its name, or not at all. */
#ifndef BAG_TARGET_H
#define BAG_TARGET_H

#include "ndt_io/bag.h"
#include "ndt_proto/message.h"

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

#endif

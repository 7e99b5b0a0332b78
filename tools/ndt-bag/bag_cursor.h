/* Reading a bag record by record, with the place of each and its message. */
#ifndef BAG_CURSOR_H
#define BAG_CURSOR_H

#include "ndt_io/bag.h"
#include "ndt_proto/control_message.h"

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

#endif

/** @file
 * @brief A `points` message as the page gets it: packed points, and the event `scan`. Any thread. */
#ifndef WEB_POINTS_H
#define WEB_POINTS_H

#include "ndt_proto/message.h"
#include "web_blob.h"

/** Decodes and packs; needs memory of about 1 MB of its own while it runs. */
struct web_points {
    struct ndt_points_message message;
    struct ndt_cloud cloud; /**< reused */
};
void web_points_open(struct web_points *points);
void web_points_close(struct web_points *points);

/** `packed` (web_scans.h, at most `most` points) and `event` (JSON) are made where they are not NULL, with a
 * reference for the caller. On failure none. */
NDT_MUST_CHECK enum ndt_status web_points_read(struct web_points *points, const uint8_t *data, size_t size,
                                               size_t most, struct web_blob **packed, struct web_blob **event,
                                               struct ndt_error *err);

#endif

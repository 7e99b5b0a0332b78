/** @file
 * @brief A message on its way through the daemon. Plain data. */
#ifndef NDTD_QUEUED_MESSAGE_H
#define NDTD_QUEUED_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "ndt_proto/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_QUEUE_MAX_DEPTH 8 /**< scans that wait at most */

/** A message, decoded except for the points of a scan. The receiver (or the replay) decodes it once; queue, worker
 * and pipeline use it. */
struct ndtd_message {
    enum ndt_message_type type;
    const uint8_t *data;         /**< the encoded message; borrowed, while it is in the queue from its slot */
    size_t size;                 /**< bytes of the message */
    double arrival_us;           /**< monotonic clock, when the last byte had arrived; 0 in a replay */
    struct ndt_scan_header scan; /**< scans only */
};

#ifdef __cplusplus
}
#endif
#endif

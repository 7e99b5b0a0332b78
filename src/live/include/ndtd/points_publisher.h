/** @file
 * @brief The `points` socket (XPUB): the points of scans, for viewers.
 *
 * Without a subscriber nothing is copied or encoded: the matching thread asks with one atomic load. Otherwise it
 * fills one of two slots, without waiting and without a lock; the publisher's thread, which owns the socket,
 * encodes and sends the slot when all results are sent. While both slots wait for that thread, scans are left out.
 * At most two messages wait per subscriber; a slower subscriber loses the others.
 *
 * Subscriptions are as on the `poses` socket. Source: points_publisher.c. */
#ifndef NDTD_POINTS_PUBLISHER_H
#define NDTD_POINTS_PUBLISHER_H

#include "ndt_proto/message.h"
#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_points_publisher;
/** Binds the socket. `sockets` is borrowed. Only address, connections and mode of the endpoint are used. On failure
 * *out is NULL. */
NDT_MUST_CHECK enum ndt_status ndtd_points_publisher_open(struct ndtd_points_publisher **out,
                                                          struct ndtd_sockets *sockets,
                                                          const struct ndtd_endpoint *endpoint,
                                                          struct ndt_error *err);
/** Closes the socket, without waiting for unsent messages, and removes an ipc path; NULL is allowed. */
void ndtd_points_publisher_close(struct ndtd_points_publisher *publisher);

/** @name The matching thread
 * @{ */
/** Whether there is a subscriber; any thread. */
int ndtd_points_publisher_is_wanted(const struct ndtd_points_publisher *publisher);
/** The points message of one scan. Members are reused from scan to scan. */
struct ndtd_points_slot {
    struct ndt_points_message message;
    struct ndt_cloud points;
};
/** Returns a slot to fill; NULL: all slots wait to be sent, and the scan is counted as lost. Without
 * ndtd_points_publisher_give the same slot is returned again. */
struct ndtd_points_slot *ndtd_points_publisher_take(struct ndtd_points_publisher *publisher);
/** Hands the taken slot to the thread that sends. */
void ndtd_points_publisher_give(struct ndtd_points_publisher *publisher);
/** @} */

/** @name The publisher's thread
 * @{ */
/** A descriptor that is readable when a slot waits. */
int ndtd_points_publisher_fd(const struct ndtd_points_publisher *publisher);
/** The XPUB socket; readable when a subscription waits. */
void *ndtd_points_publisher_socket(const struct ndtd_points_publisher *publisher);
/** Takes in a few subscriptions and sends the slot that waits longest, if any. */
void ndtd_points_publisher_serve(struct ndtd_points_publisher *publisher);
/** @} */

/** Counters since the start. */
struct ndtd_points_counters {
    uint64_t published, lost; /**< lost: both slots were full, or there was no memory */
    unsigned subscribers;     /**< connections that have subscribed */
};
/** Copies the counters; any thread. */
struct ndtd_points_counters ndtd_points_publisher_counters(const struct ndtd_points_publisher *publisher);

#ifdef __cplusplus
}
#endif
#endif

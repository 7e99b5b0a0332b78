/** @file
 * @brief The `poses` socket (XPUB): publishes encoded results, and the last one to every late subscriber.
 *
 * The publisher's thread owns the socket. Result senders pass results to it over in-process sockets, so that the
 * matching thread (results) and the receiver (dropped and rejected scans) publish without holding a lock during
 * I/O. There are no topics: every connection receives every result, the newest one at once. A slow subscriber
 * loses messages beyond the high-water mark and does not delay the others. A connection that sends more than 64
 * messages (subscriptions) is ended. Source: publisher.c. */
#ifndef NDTD_PUBLISHER_H
#define NDTD_PUBLISHER_H

#include "ndt_proto/message.h"
#include "ndtd/points_publisher.h"
#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_publisher;
/** Binds the socket and starts the thread, which serves `points` too (NULL: none). `sockets` and `points` are
 * borrowed. The endpoint's limits of received messages are not used: 8 messages of 1024 bytes may wait per
 * connection. */
NDT_MUST_CHECK enum ndt_status ndtd_publisher_open(struct ndtd_publisher **out, struct ndtd_sockets *sockets,
                                                   const struct ndtd_endpoint *endpoint,
                                                   struct ndtd_points_publisher *points, struct ndt_error *err);
/** Sends the queued results, waiting at most a second, closes the socket and removes an ipc path. */
void ndtd_publisher_close(struct ndtd_publisher *publisher);

/** A sender of results: one per publishing thread, which opens, uses and closes it. */
struct ndtd_result_sender;
/** Opens a sender, which the calling thread uses and closes. */
NDT_MUST_CHECK enum ndt_status ndtd_result_sender_open(struct ndtd_result_sender **out,
                                                       struct ndtd_publisher *publisher, struct ndt_error *err);
/** Encodes a result and passes it to the publisher. Never blocks: if the in-process queue is full, the result is
 * lost, which is counted and logged, and no error. */
NDT_MUST_CHECK enum ndt_status ndtd_result_send(struct ndtd_result_sender *sender,
                                                const struct ndt_result_message *message, struct ndt_error *err);
/** Closes a sender; may be NULL. */
void ndtd_result_sender_close(struct ndtd_result_sender *sender);

/** Counters since the start. */
struct ndtd_publisher_counters {
    uint64_t published, lost; /**< lost: the in-process queue was full */
    unsigned subscribers;     /**< connections that have subscribed */
};
/** Copies the counters; any thread. */
struct ndtd_publisher_counters ndtd_publisher_counters(const struct ndtd_publisher *publisher);

#ifdef __cplusplus
}
#endif
#endif

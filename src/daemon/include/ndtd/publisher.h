/* The `poses` socket (XPUB): encoded results out, the last one to every late subscriber.
 *
 * The socket lives in a thread of its own; results come to it over in-process sockets, so that the matcher
 * (results) and the receiver (dropped scans) may both publish without a lock over I/O. Topics: none, every
 * subscriber gets everything. A slow subscriber loses messages beyond the high-water mark, nobody else waits for
 * it. */
#ifndef NDTD_PUBLISHER_H
#define NDTD_PUBLISHER_H

#include "ndt_proto/message.h"
#include "ndtd/socket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_publisher;
/* Binds and starts the thread. */
NDT_MUST_CHECK enum ndt_status ndtd_publisher_open(struct ndtd_publisher **out, struct ndtd_sockets *sockets,
                                                   const struct ndtd_endpoint *endpoint, struct ndt_error *err);
/* Sends what is queued, waits at most a second, closes the socket, removes an ipc path. */
void ndtd_publisher_close(struct ndtd_publisher *publisher);

/* One per publishing thread: opened, used and closed by that thread. Never blocks. */
struct ndtd_result_sender;
NDT_MUST_CHECK enum ndt_status ndtd_result_sender_open(struct ndtd_result_sender **out,
                                                       struct ndtd_publisher *publisher, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndtd_result_sender_send(struct ndtd_result_sender *sender,
                                                       const struct ndt_result_message *message,
                                                       struct ndt_error *err);
void ndtd_result_sender_close(struct ndtd_result_sender *sender);

struct ndtd_publisher_counters {
    uint64_t published, lost; /* lost: the in-process queue was full */
    unsigned subscribers;
};
struct ndtd_publisher_counters ndtd_publisher_counters(const struct ndtd_publisher *publisher);

#ifdef __cplusplus
}
#endif
#endif

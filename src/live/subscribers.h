/* Private: the connections of an XPUB socket that sends everything to everybody.
 *
 * The topics of subscribers do not choose receivers (ZMQ_XPUB_MANUAL). The topics that would are empty, and libzmq
 * sends to those connections that no topic chooses (ZMQ_INVERT_MATCHING): to all, from the end of the handshake on.
 * A connection that sends more than 64 messages (subscriptions) is ended. The thread of the socket calls the
 * functions. */
#ifndef NDTD_SUBSCRIBERS_H
#define NDTD_SUBSCRIBERS_H

#include "ndtd/socket.h"

struct ndtd_subscribers;
/* Binds the socket; the endpoint's limits of received messages are not used. `linger_ms`: how long closing waits
 * for the last messages. On failure *out is NULL. */
NDT_MUST_CHECK enum ndt_status ndtd_subscribers_open(struct ndtd_subscribers **out, struct ndtd_sockets *sockets,
                                                     const struct ndtd_endpoint *endpoint, int linger_ms,
                                                     struct ndt_error *err);
/* Closes the socket and removes an ipc path; NULL is allowed. */
void ndtd_subscribers_close(struct ndtd_subscribers *subscribers);
/* The XPUB socket. */
void *ndtd_subscribers_socket(const struct ndtd_subscribers *subscribers);
/* Takes in at most `limit` messages of subscribers and returns their number. */
int ndtd_subscribers_serve(struct ndtd_subscribers *subscribers, int limit);
/* Number of open connections that have subscribed. */
unsigned ndtd_subscribers_count(const struct ndtd_subscribers *subscribers);

#endif

/* Private: the connections of an XPUB socket that sends everything to everybody.
 *
 * libzmq keeps the topics of subscribers apart from those that choose the receivers (ZMQ_XPUB_MANUAL), of which
 * there are none, and sends to those that no topic chooses (ZMQ_INVERT_MATCHING): to all, from the end of the
 * handshake on. A connection that sends more than 64 messages (subscriptions) is ended. Used by the thread of the
 * socket. */
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
/* XPUB */
void *ndtd_subscribers_socket(const struct ndtd_subscribers *subscribers);
/* Takes in at most `limit` messages of subscribers. Returns how many there were. */
int ndtd_subscribers_serve(struct ndtd_subscribers *subscribers, int limit);
/* Connections that have subscribed and are open. */
unsigned ndtd_subscribers_count(const struct ndtd_subscribers *subscribers);

#endif

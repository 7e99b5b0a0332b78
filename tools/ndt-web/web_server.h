/** @file
 * @brief The HTTP server: libmicrohttpd with one thread that never waits for anything but its sockets.
 *
 * Limits: 256 connections (web_peers.h), 64 streams of events, 16 KiB of header per connection, 4 KiB of body, so
 * that its memory is at most about 4 MB, and what the answers that are being sent hold. */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include "web_reply.h"

/** Serves on a listening socket, which it owns from now on, on failure too. `site` is copied. */
NDT_MUST_CHECK enum ndt_status web_server_open(struct web_server **out, int fd, const struct web_site *site,
                                               struct ndt_error *err);
/** Closes connections that are too slow; call it once per second. */
void web_server_tick(struct web_server *server);
/** Closes all connections at once. After what answers requests (the source) has ended, so that none is suspended
 * but streams of events, which end now. Allowed on NULL. */
void web_server_close(struct web_server *server);

#endif

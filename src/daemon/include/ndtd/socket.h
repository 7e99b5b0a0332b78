/* ZeroMQ sockets as ndtd wants them: bounded, never lingering, refused where they would be open to the world.
 *
 * One context for the process. Every socket gets ZMQ_LINGER 0, high-water marks, ZMQ_MAXMSGSIZE and heartbeats.
 * ipc paths get their mode right after bind and are removed at close; a path or port in use is one clear line.
 * tcp endpoints off the loopback need CURVE keys and a list of allowed clients, else NDT_ERR_ARGUMENT says so.
 *
 * libzmq 4.3 ends the process when an ipc connection comes in and no file descriptor is left (assertion in
 * ipc_listener.cpp; tcp is safe): the limit of open files has to be far above the number of clients. */
#ifndef NDTD_SOCKET_H
#define NDTD_SOCKET_H

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_ENDPOINT_MAX 256

struct ndtd_endpoint {
    char address[NDTD_ENDPOINT_MAX]; /* ipc://PATH, ipc://@NAME (abstract), tcp://HOST:PORT, inproc://NAME for tests
                                      */
    int high_water_mark;             /* messages */
    long long max_message_bytes;
    unsigned ipc_mode; /* 0600 or 0660 */
};

struct ndtd_security {
    char server_secret_key_file[1024]; /* 40 characters Z85; empty = no CURVE */
    char allowed_clients_file[1024];   /* one Z85 public key per line, '#' comments */
};

struct ndtd_sockets; /* context, ZAP handler thread when CURVE is used */
/* security: NULL or all empty = no CURVE. With keys, all tcp sockets use them, also those on the loopback. */
NDT_MUST_CHECK enum ndt_status ndtd_sockets_open(struct ndtd_sockets **out, const struct ndtd_security *security,
                                                 struct ndt_error *err);
/* All sockets must be closed before; waits at most a second for the last messages of a publisher. NULL is allowed.
 */
void ndtd_sockets_close(struct ndtd_sockets *sockets);
void *ndtd_sockets_context(struct ndtd_sockets *sockets); /* the zmq context, for inproc */

/* The address, the limits and the reach (tcp off the loopback) of an endpoint, without binding it: for
 * --check-config. Files of keys are not opened. security may be NULL. */
NDT_MUST_CHECK enum ndt_status ndtd_endpoint_check(const struct ndtd_endpoint *endpoint,
                                                   const struct ndtd_security *security, struct ndt_error *err);

/* A bound socket of a zmq type (ZMQ_SUB, ZMQ_PULL, ZMQ_XPUB, ZMQ_ROUTER), used and closed by one thread. SUB
 * subscribes to everything. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_bind(void **out, struct ndtd_sockets *sockets, int type,
                                                const struct ndtd_endpoint *endpoint, struct ndt_error *err);
/* NULL is allowed. A path that another process has taken over meanwhile is left to it. */
void ndtd_socket_close(void *socket, const struct ndtd_endpoint *endpoint);

#ifdef __cplusplus
}
#endif
#endif

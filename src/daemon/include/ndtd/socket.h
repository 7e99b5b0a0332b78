/* ZeroMQ sockets as ndtd wants them: bounded, never lingering, refused where they would be open to the world.
 *
 * One context for the process. Every socket gets ZMQ_LINGER 0, high-water marks, ZMQ_MAXMSGSIZE and heartbeats.
 * ipc paths get their mode right after bind and are removed at close; a path or port in use is one clear line.
 * tcp endpoints off the loopback need CURVE keys and a list of allowed clients, else NDT_ERR_ARGUMENT says so. */
#ifndef NDTD_SOCKET_H
#define NDTD_SOCKET_H

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_ENDPOINT_MAX 256

struct ndtd_endpoint {
    char address[NDTD_ENDPOINT_MAX]; /* ipc://PATH, ipc://@NAME (abstract), tcp://HOST:PORT, inproc://NAME for tests */
    int high_water_mark;             /* messages */
    long long max_message_bytes;
    unsigned ipc_mode;               /* 0600 or 0660 */
};

struct ndtd_security {
    char server_secret_key_file[1024]; /* 40 characters Z85; empty = no CURVE */
    char allowed_clients_file[1024];   /* one Z85 public key per line, '#' comments */
};

struct ndtd_sockets; /* context, ZAP handler thread when CURVE is used */
NDT_MUST_CHECK enum ndt_status ndtd_sockets_open(struct ndtd_sockets **out, const struct ndtd_security *security,
                                                 struct ndt_error *err);
void ndtd_sockets_close(struct ndtd_sockets *sockets);
void *ndtd_sockets_context(struct ndtd_sockets *sockets); /* the zmq context, for inproc */

/* A bound socket of a zmq type (ZMQ_SUB, ZMQ_PULL, ZMQ_XPUB, ZMQ_ROUTER), used and closed by one thread. SUB subscribes
 * to everything. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_bind(void **out, struct ndtd_sockets *sockets, int type,
                                                const struct ndtd_endpoint *endpoint, struct ndt_error *err);
void ndtd_socket_close(void *socket, const struct ndtd_endpoint *endpoint);

#ifdef __cplusplus
}
#endif
#endif

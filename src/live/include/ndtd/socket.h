/** @file
 * @brief ZeroMQ sockets with bounded queues, without linger, and protected where other machines can reach them.
 *
 * One context per process. Every socket has ZMQ_LINGER 0, high-water marks, ZMQ_MAXMSGSIZE, a limit of connections
 * and two seconds for the handshake; a tcp peer that is gone is disconnected after about 8 s (keepalive). ipc
 * paths have their mode before the first client can connect and are removed at close; a path or port in use is an
 * error. tcp endpoints that other machines can reach need CURVE keys and a list of allowed clients, else
 * NDT_ERR_ARGUMENT.
 *
 * The soft limit of open files is raised to the hard one, at most to 65536. The last 32 descriptors (a quarter,
 * where there are fewer than 128) are not given to connections: files can be opened under any number of clients. */
#ifndef NDTD_SOCKET_H
#define NDTD_SOCKET_H

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_ENDPOINT_MAX 256 /**< bytes of an address, with the final zero */

/** Address and limits of a socket. */
struct ndtd_endpoint {
    /** ipc://PATH, ipc://\@NAME (abstract), tcp://HOST:PORT */
    char address[NDTD_ENDPOINT_MAX];
    /** messages that wait per connection: beyond that, sent ones are lost, and the sender of received ones waits */
    int send_high_water_mark, receive_high_water_mark;
    long long max_message_bytes; /**< limit of received messages; a peer that sends more is disconnected */
    int max_connections;         /**< further ones are closed at once */
    unsigned ipc_mode;           /**< 0600 or 0660 */
};

/** CURVE keys of the server and its clients. */
struct ndtd_security {
    char server_secret_key_file[1024]; /**< 40 characters Z85; empty = no CURVE */
    char allowed_clients_file[1024];   /**< one Z85 public key per line, '#' comments */
};

struct ndtd_sockets; /* context, and with CURVE the ZAP handler */
/** security: NULL or all empty = no CURVE. With keys, all tcp sockets use them, also those on the loopback. */
NDT_MUST_CHECK enum ndt_status ndtd_sockets_open(struct ndtd_sockets **out, const struct ndtd_security *security,
                                                 struct ndt_error *err);
/** Closes the context after all its sockets; waits at most one second for the last messages of a publisher. NULL is
 * allowed. */
void ndtd_sockets_close(struct ndtd_sockets *sockets);
/** The zmq context, for inproc. */
void *ndtd_sockets_context(struct ndtd_sockets *sockets);

/** Checks address, limits and protection (keys for tcp that other machines can reach) of an endpoint without
 * binding it. Key files are not opened. security may be NULL (no CURVE). */
NDT_MUST_CHECK enum ndt_status ndtd_endpoint_check(const struct ndtd_endpoint *endpoint,
                                                   const struct ndtd_security *security, struct ndt_error *err);

/** Opens and binds a socket of a zmq type (ZMQ_SUB, ZMQ_PULL, ZMQ_XPUB, ZMQ_ROUTER), used and closed by one thread.
 * SUB subscribes to everything. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_bind(void **out, struct ndtd_sockets *sockets, int type,
                                                const struct ndtd_endpoint *endpoint, struct ndt_error *err);
/** Removes the path of an ipc socket unless another process has replaced it. NULL is allowed. */
void ndtd_socket_close(void *socket, const struct ndtd_endpoint *endpoint);

#ifdef __cplusplus
}
#endif
#endif

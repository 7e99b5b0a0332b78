/* Endpoint addresses and the paths of ipc sockets. Private to the daemon library. */
#ifndef NDTD_SOCKET_ADDRESS_H
#define NDTD_SOCKET_ADDRESS_H

#include "ndtd/socket.h"

#define NDTD_IPC_PATH_MAX 107 /* size of sun_path less the final zero */

enum ndtd_transport { NDTD_IPC, NDTD_IPC_ABSTRACT, NDTD_TCP };

struct ndtd_socket_address {
    enum ndtd_transport transport;
    char text[NDTD_ENDPOINT_MAX + 16]; /* address for libzmq: localhost as a number, the rest unchanged */
    char path[NDTD_IPC_PATH_MAX + 1];  /* path of an ipc socket */
    int is_loopback;                   /* tcp: not reachable from other machines */
    int is_ipv6;
};

/* Parses an address; pure. NDT_ERR_ARGUMENT: the line names the address and its fault. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_address_parse(struct ndtd_socket_address *out, const char *text,
                                                         struct ndt_error *err);

/* libzmq removes and replaces any file at the path of an ipc socket, including the socket of a running process.
 * Therefore the daemon binds and listens itself and passes the descriptor to libzmq.
 *
 * The directory is locked (flock) while a path is tested and taken or released, so that two daemons that start at
 * the same time cannot both replace a stale socket. No lock file remains.
 *
 * Opens a listening stream socket at `path` with exactly this mode; no client can connect before the mode is set.
 * The socket of a dead process is replaced. A socket in use, a file that is not a socket and a missing directory
 * are errors that name the path. The caller owns *fd. */
NDT_MUST_CHECK enum ndt_status ndtd_ipc_listen(const char *path, unsigned mode, int *fd, struct ndt_error *err);
/* Removes the socket unless another process has replaced it. Called while it still listens. */
void ndtd_ipc_release(const char *path);

#endif

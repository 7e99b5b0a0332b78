/* Paths of ipc sockets. libzmq removes and takes over whatever lies at a path, also the socket of a living process;
 * so the daemon listens itself and hands the descriptor over. Private to the daemon library.
 *
 * While a path is tested and taken, or given back, its folder is locked (flock): two daemons that start at the same
 * moment cannot both take a stale socket for theirs. No lock file stays behind. */
#ifndef NDTD_IPC_PATH_H
#define NDTD_IPC_PATH_H

#include "ndt/status.h"

/* A listening stream socket at `path` with exactly this mode; nobody can connect before the mode is set. The socket
 * of a dead process is replaced; one in use, a file that is no socket and a missing folder are errors that name the
 * path. *fd is the caller's. */
NDT_MUST_CHECK enum ndt_status ndtd_ipc_listen(const char *path, unsigned mode, int *fd, struct ndt_error *err);
/* Removes the socket, unless another process has taken the path over. To be called while it still listens. */
void ndtd_ipc_release(const char *path);

#endif

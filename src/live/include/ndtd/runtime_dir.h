/** @file
 * @brief Default directory of the ipc sockets.
 *
 * It is $RUNTIME_DIRECTORY (systemd) where that is set, whatever its value. Otherwise it is /run/ndtd if this user
 * may write there (may enter it, for clients), else $XDG_RUNTIME_DIR/ndtd, else /tmp/ndtd-UID. Socket names:
 * scans.ipc, poses.ipc, points.ipc, control.ipc. */
#ifndef NDTD_RUNTIME_DIR_H
#define NDTD_RUNTIME_DIR_H

#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes the path. create: creates the directory (0700); an unusable $RUNTIME_DIRECTORY is an error, and an
 * unusable $XDG_RUNTIME_DIR is logged. Without it, for clients, it is the first directory of the list that exists,
 * or where none does the first that a daemon of this user can make. /tmp/ndtd-UID is created in both cases, before
 * another user can; one that others own or may write to is an error. */
NDT_MUST_CHECK enum ndt_status ndtd_runtime_dir(char *path, size_t size, int create, struct ndt_error *err);
/** Copies `address`, or "ipc://DIRECTORY/NAME.ipc" when it is empty. */
NDT_MUST_CHECK enum ndt_status ndtd_default_address(char *out, size_t size, const char *address, const char *name,
                                                    int create, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

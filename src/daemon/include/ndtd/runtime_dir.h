/* Where the ipc sockets are when nothing else is said: $RUNTIME_DIRECTORY (systemd), else /run/ndtd where it can be
 * written, else $XDG_RUNTIME_DIR/ndtd, else /tmp/ndtd-UID. Names: scans.ipc, poses.ipc, control.ipc. */
#ifndef NDTD_RUNTIME_DIR_H
#define NDTD_RUNTIME_DIR_H

#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* create: makes the folder (0700), and refuses one that others own or may write to. Without it, for clients, the
 * first folder of the list that exists is taken, else the last. */
NDT_MUST_CHECK enum ndt_status ndtd_runtime_dir(char *path, size_t size, int create, struct ndt_error *err);
/* `address` as configured, or "ipc://FOLDER/NAME.ipc" when it is empty. */
NDT_MUST_CHECK enum ndt_status ndtd_default_address(char *out, size_t size, const char *address, const char *name,
                                                    int create, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Landlock: restricts the paths that this thread, and threads that it starts, may use. Private to isolation.c. See
 * landlock(7). */
#ifndef NDTD_LANDLOCK_H
#define NDTD_LANDLOCK_H

#include "ndt/status.h"

enum ndtd_landlock_use {
    NDTD_LANDLOCK_READ,    /* files and directories: read */
    NDTD_LANDLOCK_WRITE,   /* a directory: its files are read, written, made, renamed and removed */
    NDTD_LANDLOCK_TREE,    /* a directory: as WRITE, and directories are made and removed in it */
    NDTD_LANDLOCK_SOCKETS, /* a directory: sockets are made and removed in it */
    NDTD_LANDLOCK_DEVICE,  /* a device, or a directory of files: read and written */
    NDTD_LANDLOCK_CONTROL  /* a device, or a directory of devices: read, written and controlled (ioctl) */
};

/* The version of the kernel's Landlock; 0: it has none, or it is switched off. */
int ndtd_landlock_version(void);
/* Opens a ruleset, or returns -1. keep_abstract_sockets: connections to abstract unix sockets of other processes
 * stay possible. */
int ndtd_landlock_open(int keep_abstract_sockets);
/* Allows everything below `path`. A path that does not exist is skipped: it stays forbidden. */
NDT_MUST_CHECK enum ndt_status ndtd_landlock_allow(int rules, const char *path, enum ndtd_landlock_use use,
                                                   struct ndt_error *err);
/* Forbids everything else from now on; closes `rules`. */
NDT_MUST_CHECK enum ndt_status ndtd_landlock_enforce(int rules, struct ndt_error *err);

#endif

/* Private to ndt_io: the files of an overlay. */
#ifndef NDT_IO_MAP_OVERLAY_H
#define NDT_IO_MAP_OVERLAY_H

#include "ndt_io/map_file.h"

/* Extension of a file that changes the tile whose name precedes it. */
#define NDT_CHANGE_EXTENSION ".change"

/* Checks the head of a change: its kind, its size, and that it belongs to the overlay `id`. */
NDT_MUST_CHECK enum ndt_status ndt_change_check(const char *path, uint64_t id, struct ndt_error *err);

#endif

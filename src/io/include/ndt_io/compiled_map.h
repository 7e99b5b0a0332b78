/* Compiled map file (.ndtmap): a finished map as it lies in memory, opened by mmap in milliseconds.
 *
 * Little endian. A header with magic "NDTMAP\r\n", version, file size, a hash of everything after it, then the
 * arrays of every level at 64-byte aligned offsets. Opening checks magic, version, size, hash and every index
 * in the file, so that neither damage nor malice reaches the matcher. Private to this version: a file of
 * another version is refused with both numbers; compile it again from the points. */
#ifndef NDT_IO_COMPILED_MAP_H
#define NDT_IO_COMPILED_MAP_H

#include "ndt/map.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_COMPILED_MAP_VERSION 1

/* Written beside the target and renamed. */
NDT_MUST_CHECK enum ndt_status ndt_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err);
/* The map keeps the file mapped (read-only) until its last reference is released; do not overwrite it in place. */
NDT_MUST_CHECK enum ndt_status ndt_map_open(struct ndt_map **out, const char *path, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

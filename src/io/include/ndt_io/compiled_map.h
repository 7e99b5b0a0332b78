/** @file
 * @brief Compiled maps (.ndtmap): the memory image of a finished map, read at the speed of the disk.
 *
 * The format is little endian: a header with magic "NDTMAP\r\n", version, file size and a hash of the whole file,
 * then the arrays of every level at 64-byte aligned offsets, then an optional attachment: bytes that another
 * library has computed from the map, such as its field (ndt_search/field.h). Opening checks magic, version, size
 * and hash, and that every index, list and Gaussian is one that a builder makes, so damaged and malicious files are
 * refused. The error for a file of another version names both versions; compile the map again from the points. */
#ifndef NDT_IO_COMPILED_MAP_H
#define NDT_IO_COMPILED_MAP_H

#include "ndt/map.h"
#include "ndt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the format that this library reads and writes. */
#define NDT_COMPILED_MAP_VERSION 1

/** Writes a compiled map atomically (ndt_io/output_file.h). */
NDT_MUST_CHECK enum ndt_status ndt_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err);
/** Writes a compiled map with `attached` bytes as attachment. */
NDT_MUST_CHECK enum ndt_status ndt_map_save_with(const struct ndt_map *map, const void *attachment, size_t attached,
                                                 const char *path, struct ndt_error *err);
/** Bytes of the attachment of an opened compiled map, 0 without one; *data: 64-byte aligned, borrowed, as
 * trustworthy as the file. Other maps have none. */
size_t ndt_map_attachment(const struct ndt_map *map, const void **data);
/** Opens a compiled map; the caller owns one reference. The map is a copy of the file, in huge pages where the
 * kernel has them, read-only: the file may be replaced, changed or deleted meanwhile. NDT_ERR_IO: `path` is not a
 * regular file, or cannot be read. */
NDT_MUST_CHECK enum ndt_status ndt_map_open(struct ndt_map **out, const char *path, struct ndt_error *err);
/** ndt_map_open with progress: `progress` (may be NULL) counts bytes and levels. NDT_ERR_CANCELLED. */
NDT_MUST_CHECK enum ndt_status ndt_map_open_with(struct ndt_map **out, const char *path,
                                                 struct ndt_progress *progress, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

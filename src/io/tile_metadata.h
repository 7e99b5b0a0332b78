/* Private to ndt_io: the metadata of a tiled map. */
#ifndef NDT_IO_TILE_METADATA_H
#define NDT_IO_TILE_METADATA_H

#include "ndt_io/map_file.h"

/* Appends a tile with the path folder/name and unknown size. */
NDT_MUST_CHECK enum ndt_status ndt_tile_set_add(struct ndt_tile_set *set, const char *folder, const char *name,
                                                const double min_m[2], struct ndt_error *err);
/* Adds the tiles named in `path`, as if they were in `folder`, without looking for them on the disk. On failure the
 * set holds some of them. */
NDT_MUST_CHECK enum ndt_status ndt_tile_metadata_read(struct ndt_tile_set *set, const char *folder,
                                                      const char *path, struct ndt_error *err);

#endif

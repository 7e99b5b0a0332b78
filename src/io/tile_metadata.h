/* Autoware's pointcloud_map_metadata.yaml: x_resolution, y_resolution, then `name.pcd: [x, y]`, the lower corner of
 * each tile. Private to ndt_io. */
#ifndef NDT_IO_TILE_METADATA_H
#define NDT_IO_TILE_METADATA_H

#include "ndt_io/map_file.h"

#define NDT_TILE_METADATA_NAME "pointcloud_map_metadata.yaml"

/* Appends a tile with the path directory/name (name is copied, not terminated). */
NDT_MUST_CHECK enum ndt_status ndt_tile_add(struct ndt_tile_set *set, const char *directory, const char *name,
                                            size_t length, const double min_m[2], struct ndt_error *err);
/* Adds the tiles named in `path`; they are not looked for on the disk. On failure the set holds a part. */
NDT_MUST_CHECK enum ndt_status ndt_tile_metadata_read(struct ndt_tile_set *set, const char *directory,
                                                      const char *path, struct ndt_error *err);

#endif

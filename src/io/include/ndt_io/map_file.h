/* Opening a prior map, whatever it is kept in: a compiled map (.ndtmap), a point cloud file, or a
 * directory of tiles, with or without Autoware's pointcloud_map_metadata.yaml. */
#ifndef NDT_IO_MAP_FILE_H
#define NDT_IO_MAP_FILE_H

#include "ndt/map.h"
#include "ndt_io/compiled_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tile: a cloud file and the square [min, min + size) that it covers, in map coordinates [m]. */
struct ndt_tile {
    char *path;
    double min_m[2];
    double size_m[2];
};
struct ndt_tile_set {
    struct ndt_tile *tiles; /* sorted by path */
    size_t count;
};
/* Lists the tiles of a directory: those of pointcloud_map_metadata.yaml when it is there (x_resolution,
 * y_resolution, then `name: [x, y]`), else every cloud file (size 0: unknown). */
NDT_MUST_CHECK enum ndt_status ndt_tile_set_open(struct ndt_tile_set *out, const char *directory,
                                                 struct ndt_error *err);
void ndt_tile_set_close(struct ndt_tile_set *set);

/* Opens `path` as a map. A compiled map must hold the levels that `config` names and have been built with
 * the same rules, else the error says which value differs. */
NDT_MUST_CHECK enum ndt_status ndt_map_load(struct ndt_map **out, const char *path,
                                            const struct ndt_map_config *config, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

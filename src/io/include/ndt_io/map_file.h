/** @file
 * @brief Prior maps on disk: a compiled map (.ndtmap), a point cloud file, tiles with or without Autoware's
 * pointcloud_map_metadata.yaml, or an overlay, which holds the changes of a cloud file or of tiles since they were
 * mapped. */
#ifndef NDT_IO_MAP_FILE_H
#define NDT_IO_MAP_FILE_H

#include "ndt/map.h"
#include "ndt_io/compiled_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A cloud file and the rectangle [min, min + size) that it covers, in map coordinates. */
struct ndt_tile {
    char *path;
    char *change; /**< file of an overlay that changes its points; NULL: no change */
    double min_m[2];
    double size_m[2]; /**< 0: unknown */
};
/** The tiles of a directory. */
struct ndt_tile_set {
    struct ndt_tile *tiles; /**< sorted by path */
    size_t count;
};
/** Size of a path in struct ndt_map_overlay, its terminating zero included. */
#define NDT_MAP_PATH_SIZE 4096
/** The head of an overlay. */
struct ndt_map_overlay {
    char map[NDT_MAP_PATH_SIZE]; /**< map that it changes: a cloud file, or a path for ndt_tile_set_open */
    uint64_t id;                 /**< id of all its changes; not 0 */
};
/** Name of the file that makes a folder an overlay. It has two keys: `map`, a path relative to the folder unless it
 * begins with '/', and `overlay_id`, 16 hexadecimal digits. The changes are beside it: `NAME.change` for the file
 * NAME of the map (docs/maps.md has the format). The map itself stays as it is. */
#define NDT_MAP_OVERLAY "map_overlay.yaml"
/** Name of Autoware's metadata: x_resolution, y_resolution, then `name.pcd: [x, y]`, the lower corner of each tile.
 */
#define NDT_TILE_METADATA "pointcloud_map_metadata.yaml"
/** Lists the tiles of a map folder, whether `path` is
 *  - the folder of the tiles, with the metadata in it or one level above;
 *  - a map folder of Autoware: the metadata, and the tiles in a folder below (pointcloud_map.pcd);
 *  - the metadata itself;
 *  - an overlay: the tiles of the map that it changes, or its one cloud file, each with its change. Every change
 *    must belong to this overlay and to a file of that map.
 * Metadata above counts if the tile that it names first is in the folder. Without metadata: every cloud file, with
 * unknown size. Tiles that the metadata names must exist. After a failure `out` is empty. */
NDT_MUST_CHECK enum ndt_status ndt_tile_set_open(struct ndt_tile_set *out, const char *path, struct ndt_error *err);
/** Frees the list; allowed on an empty one. */
void ndt_tile_set_close(struct ndt_tile_set *set);

/** Reads the points of the tile `path`, as ndt_cloud_read_with does, and applies its `change`, if that is not NULL.
 * A change that was made for other points is refused (NDT_ERR_ARGUMENT). After a failure `out` has no points. */
NDT_MUST_CHECK enum ndt_status ndt_tile_read(struct ndt_cloud *out, const char *path, const char *change,
                                             struct ndt_progress *progress, struct ndt_error *err);

/** Whether the name of a file is that of a compiled map: it ends in .ndtmap, in letters of either case. */
int ndt_map_is_compiled(const char *path);
/** Whether the folder `path` is an overlay. */
int ndt_map_is_overlay(const char *path);
/** Reads the name of the map that the overlay `path` changes. An overlay of an overlay is refused. */
NDT_MUST_CHECK enum ndt_status ndt_map_overlay_open(struct ndt_map_overlay *out, const char *path,
                                                    struct ndt_error *err);

/** Whether ndt_tile_set_open reads `path`: a directory, or a file with the extension of YAML. */
int ndt_map_is_tile_set(const char *path);

/** Opens or builds the map at `path`; the caller owns one reference. A compiled map must have the levels that
 * `config` names and must have been built with the same rules (NDT_ERR_ARGUMENT with the value that differs). */
NDT_MUST_CHECK enum ndt_status ndt_map_load(struct ndt_map **out, const char *path,
                                            const struct ndt_map_config *config, struct ndt_error *err);
/** ndt_map_load with progress: `progress` (may be NULL) counts files, bytes, points and levels. NDT_ERR_CANCELLED.
 */
NDT_MUST_CHECK enum ndt_status ndt_map_load_with(struct ndt_map **out, const char *path,
                                                 const struct ndt_map_config *config, struct ndt_progress *progress,
                                                 struct ndt_error *err);
/** Checks quickly whether `path` could be a map: a readable file with a map's extension, a directory, or the
 * metadata of tiles. Its contents are checked when it is loaded. */
NDT_MUST_CHECK enum ndt_status ndt_map_path_check(const char *path, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

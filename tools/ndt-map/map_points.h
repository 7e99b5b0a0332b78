/** @file
 * @brief The points of a map, file by file: a cloud, or the tiles of a folder. */
#ifndef MAP_POINTS_H
#define MAP_POINTS_H

#include "ndt/cloud.h"
#include "ndt_io/map_file.h"

struct map_points {
    const char *path;
    struct ndt_tile_set set; /**< tiles; a single file is one tile of unknown size */
    uint64_t bytes;          /**< size of all files */
    int is_tiles;
    struct ndt_cloud cloud; /**< points of the last file that was read */
    size_t in_cloud;        /**< index of that file + 1; 0: none */
};

/** Lists the files. NDT_ERR_UNSUPPORTED for a compiled map, which has no points. */
NDT_MUST_CHECK enum ndt_status map_points_open(struct map_points *points, const char *path, struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_points_close(struct map_points *points);

/** Builds or opens the map with the default levels, those of the file for a compiled one; with a line of progress.
 * The caller owns one reference. */
NDT_MUST_CHECK enum ndt_status map_load(struct ndt_map **out, const char *path, struct ndt_error *err);

typedef enum ndt_status map_points_visit(void *context, const struct ndt_cloud *cloud, struct ndt_error *err);
/** Calls `visit` with the cloud of each file, in the order of their paths; a single file is read once, however
 * often this is called. A line of progress says `what`. Ends with NDT_ERR_CANCELLED when interrupted. */
NDT_MUST_CHECK enum ndt_status map_points_each(struct map_points *points, const char *what, map_points_visit *visit,
                                               void *context, struct ndt_error *err);

#endif

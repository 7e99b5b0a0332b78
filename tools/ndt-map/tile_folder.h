/** @file
 * @brief The folder of tiles that is written: complete or absent. */
#ifndef TILE_FOLDER_H
#define TILE_FOLDER_H

#include <limits.h>
#include <stdint.h>

#include "ndt/status.h"

struct tile_folder {
    char path[PATH_MAX - 128];    /**< the target */
    char partial[PATH_MAX - 128]; /**< folder that is written, beside the target */
};

/** Makes the folder PATH.part; one that an earlier run has left is removed. */
NDT_MUST_CHECK enum ndt_status tile_folder_open(struct tile_folder *folder, const char *path,
                                                struct ndt_error *err);
/** Closes the folder. After NDT_OK it is moved to its place, where an earlier map is removed; otherwise it is
 * removed. Returns `status`, or the first failure. Allowed on a zeroed folder. */
NDT_MUST_CHECK enum ndt_status tile_folder_close(struct tile_folder *folder, enum ndt_status status,
                                                 struct ndt_error *err);
/** Paths within the folder: the spill file of a tile, the tile with this lower corner, the metadata. */
void tile_folder_spill(const struct tile_folder *folder, int32_t x, int32_t y, char path[PATH_MAX]);
void tile_folder_tile(const struct tile_folder *folder, double x_m, double y_m, char path[PATH_MAX]);
void tile_folder_metadata(const struct tile_folder *folder, char path[PATH_MAX]);

#endif

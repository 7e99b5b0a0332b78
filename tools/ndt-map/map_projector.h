/** @file
 * @brief Autoware's map_projector_info.yaml, as text. */
#ifndef MAP_PROJECTOR_H
#define MAP_PROJECTOR_H

#include <stddef.h>

/** Looks for map_projector_info.yaml beside the map (in its folder, beside its file) and one level above. Writes
 * its scalars as "projector_type MGRS, mgrs_grid 54SUE" into `text`, and its path. Returns 0 without such a file,
 * -1 for one that cannot be read; `text` then says why. */
int map_projector_read(const char *map, char *path, size_t path_size, char *text, size_t size);

#endif

/* The tiles of the map loader, and the selection of those that are in the map. Private to the loader; one thread.
 *
 * Following: the map contains only those tiles of a directory with known squares that are near the vehicle. Any
 * other source is loaded completely (a single cloud is one tile). Clients may add and remove single tiles: a tile
 * added by a client stays in the map at any position of the vehicle, a removed one stays out.
 *
 * A map depends only on its tiles: it has the id of a map built from exactly these tiles, in the order of their
 * paths.
 *
 * Cost: opening a directory lists it and reads no tile. A change reads the tiles that are added and removed, then
 * builds a map from all occupied cells. Only when the first tile requires another origin (about once per
 * kilometre) are all tiles read again.
 *
 * Memory: points are not kept, nor the memory that they were read into. The sums (about 100 bytes per occupied cell
 * of the levels that are not derived, at most twice that; cells that become empty are freed) are kept only where
 * another change is likely: while following, and after the first tile from a client. A tile is removed by reading
 * it again; if its points have changed (by hash) or it cannot be read, the sums are rebuilt from the remaining
 * tiles. */
#ifndef NDTD_MAP_SOURCE_H
#define NDTD_MAP_SOURCE_H

#include "ndtd/map_loader.h"

struct ndtd_map_source;

/* Lists the contents of `path` (NULL: an empty source for tiles from clients); reads no points. A compiled map is
 * opened by the first ndtd_map_source_all. `progress` is borrowed: it counts the work, and when it is cancelled,
 * work ends with NDT_ERR_CANCELLED and changes nothing. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_open(struct ndtd_map_source **out, const char *path,
                                                    const struct ndtd_map_loader_config *config,
                                                    struct ndt_progress *progress, struct ndt_error *err);
void ndtd_map_source_close(struct ndtd_map_source *source);
/* Whether the source follows the vehicle. */
int ndtd_map_source_follows(const struct ndtd_map_source *source);
/* Size of the files of all tiles. */
uint64_t ndtd_map_source_bytes(const struct ndtd_map_source *source);

/* changed: `map` replaces the previous map. The caller owns it; NULL when no tile is in. */
struct ndtd_map_change {
    int changed;
    struct ndt_map *map;
};
/* Builds the map of all tiles; for sources that do not follow. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_all(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                                   struct ndt_error *err);
/* Builds the map of the tiles near the vehicle. strict: a tile that cannot be read, or no tile in reach, is an
 * error that changes nothing. Otherwise all readable tiles are used: an error may come together with a changed map,
 * and without a tile in reach the map does not change. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_near(struct ndtd_map_source *source, const double position_m[2],
                                                    int strict, struct ndtd_map_change *out, struct ndt_error *err);
/* Adds a tile; a failure changes nothing. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_add(struct ndtd_map_source *source, const char *path,
                                                   struct ndtd_map_change *out, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndtd_map_source_remove(struct ndtd_map_source *source, const char *path,
                                                      struct ndtd_map_change *out, struct ndt_error *err);
struct ndtd_map_source_counts {
    uint64_t loaded, known; /* number of tiles */
    uint64_t reads;         /* tile files read since the source was opened, including failures */
    size_t sums_bytes;      /* memory of the sums */
};
struct ndtd_map_source_counts ndtd_map_source_count(const struct ndtd_map_source *source);

#endif

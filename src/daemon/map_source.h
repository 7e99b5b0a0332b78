/* What the map loader's maps are made of: a set of tiles, of which some are in the map. Private to the loader; one
 * thread.
 *
 * A folder of tiles whose squares are known is followed: of it only the tiles near the vehicle are in. Anything
 * else is in as a whole (a single cloud is a set of one tile), and tiles may be added and taken out by hand: a tile
 * added by hand stays in wherever the vehicle is, one taken out by hand stays out.
 *
 * A map depends on nothing but the tiles that are in: it has the id that a builder gives which got exactly these,
 * in the order of their paths.
 *
 * Cost: opening a folder lists it and reads no tile. A change reads the tiles that come in and those that go out,
 * nothing else, and then finishes a map from all cells that are in. Only when the first tile asks for another
 * origin (about once per kilometre) every tile is read anew.
 *
 * Memory: no points are kept. The sums (about 100 bytes per occupied cell of the levels that are not derived, twice
 * that at most; cells that a drive leaves empty are given up) are kept only where the next change is likely: for a
 * followed folder, and after the first tile by hand. A tile is taken out by reading it again; if it is no longer
 * what was added (hash of its points), or cannot be read, the sums are made anew from the tiles that stay. */
#ifndef NDTD_MAP_SOURCE_H
#define NDTD_MAP_SOURCE_H

#include <stdatomic.h>

#include "ndtd/map_loader.h"

struct ndtd_map_source;

/* Lists what is at `path` (NULL: nothing yet, tiles will come by hand); reads no points. A compiled map is opened
 * at the first ndtd_map_source_all. `quit` is borrowed: when it becomes nonzero, work ends after the file at hand,
 * with an error. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_open(struct ndtd_map_source **out, const char *path,
                                                    const struct ndtd_map_loader_config *config,
                                                    const atomic_int *quit, struct ndt_error *err);
void ndtd_map_source_close(struct ndtd_map_source *source);
/* 1 when it has to be told where the vehicle is. */
int ndtd_map_source_follows(const struct ndtd_map_source *source);

/* What a change gave. `changed`: `map` is to replace the one before; it is the caller's, and NULL when no tile is
 * in. */
struct ndtd_map_change {
    int changed;
    struct ndt_map *map;
};
/* Everything in; for sources that do not follow. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_all(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                                   struct ndt_error *err);
/* The tiles near the vehicle in, the others out. `strict`: a tile that cannot be read, or none in reach, is a
 * failure that changes nothing. Else what can be read goes in: then an error may come together with a changed map,
 * and where no tile is in reach the map stays as it is. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_near(struct ndtd_map_source *source, const double position_m[2],
                                                    int strict, struct ndtd_map_change *out, struct ndt_error *err);
/* A failure changes nothing. */
NDT_MUST_CHECK enum ndt_status ndtd_map_source_add(struct ndtd_map_source *source, const char *path,
                                                   struct ndtd_map_change *out, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status ndtd_map_source_remove(struct ndtd_map_source *source, const char *path,
                                                      struct ndtd_map_change *out, struct ndt_error *err);
struct ndtd_map_source_counts {
    uint64_t loaded, known; /* tiles */
    uint64_t reads;         /* files of tiles read since the source was opened, also in vain */
    size_t sums_bytes;      /* memory behind the sums that are kept */
};
struct ndtd_map_source_counts ndtd_map_source_count(const struct ndtd_map_source *source);

#endif

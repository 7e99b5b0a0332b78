/* What a folder of tiles costs the map loader: to open, and per change on a drive across it, against the number of
 * tiles and the radius. The folders are made up (bench_tile_world.h) and deleted again. */
#ifndef BENCH_TILES_H
#define BENCH_TILES_H

#include <stdint.h>
#include <stdio.h>

#include "ndtd/settings.h"

enum { BENCH_TILES_MAX = 12 };

struct bench_tiles_request {
    const struct ndtd_settings *settings; /* the map, update_distance, and the radius where none is given */
    size_t side_count, radius_count;
    size_t sides[BENCH_TILES_MAX]; /* side x side tiles */
    double radii_m[BENCH_TILES_MAX];
    double tile_m;
    size_t tile_points;
};

/* One drive from one corner of the map to the opposite one, in a process of its own so that memory is its own. */
struct bench_tiles_row {
    size_t tiles, tile_points;
    double tile_m, radius_m;
    double list_ms;                  /* listing the folder, by itself */
    double open_ms;                  /* from the order to the first map */
    uint64_t open_tiles, open_reads; /* tiles in the first map, files read for it */
    uint64_t changes, moved, reads;  /* maps made on the way, tiles in or out, files read for that */
    double change_median_ms, change_p95_ms, change_max_ms;
    uint64_t most_tiles, most_points;               /* in a map */
    size_t most_map_bytes, most_sums_bytes;         /* as the loader counts them */
    size_t start_rss, open_rss, most_rss, peak_rss; /* resident bytes: before, with the first map, at most between
                                                       changes, at most at any time */
};

struct bench_tiles {
    size_t count;
    struct bench_tiles_row rows[BENCH_TILES_MAX * BENCH_TILES_MAX];
};

NDT_MUST_CHECK enum ndt_status bench_tiles_run(struct bench_tiles *out, const struct bench_tiles_request *request,
                                               struct ndt_error *err);
void bench_tiles_print(const struct bench_tiles *tiles, FILE *file);
/* As JSON: one object, a row per drive. */
NDT_MUST_CHECK enum ndt_status bench_tiles_json(const struct bench_tiles *tiles, const char *path,
                                                struct ndt_error *err);

#endif

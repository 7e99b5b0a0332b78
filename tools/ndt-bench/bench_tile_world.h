/* A town as a folder of tiles, for measuring what a large map costs: every tile has a street along each axis
 * through its middle, 6 m wide and slightly bumpy, and house fronts of 3 m beside one of them. The points are
 * random but the same for every run. */
#ifndef BENCH_TILE_WORLD_H
#define BENCH_TILE_WORLD_H

#include <stddef.h>

#include "ndt/status.h"

struct bench_tile_world {
    size_t side;        /* side x side tiles */
    double tile_m;      /* edge of one */
    size_t tile_points; /* in every tile */
    char folder[512];   /* with pointcloud_map_metadata.yaml */
};

/* Writes all tiles into a new folder under TMPDIR (else /tmp); sets `folder`. */
NDT_MUST_CHECK enum ndt_status bench_tile_world_write(struct bench_tile_world *world, struct ndt_error *err);
/* Deletes the folder. */
void bench_tile_world_remove(const struct bench_tile_world *world);

#endif

/* The maps that the compared settings need, each built once and kept, with the time that took. */
#ifndef BENCH_MAPS_H
#define BENCH_MAPS_H

#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndtd/samples.h"

enum { BENCH_MAX_MAPS = 24 };

struct bench_map {
    struct ndt_map_config config;
    struct ndt_map *map;
    struct ndtd_samples build_ms; /* empty: opened from a compiled map or tiles */
};
struct bench_maps {
    const char *path;
    struct ndt_cloud points; /* empty unless `path` is a cloud file */
    double read_ms;
    size_t count;
    struct bench_map items[BENCH_MAX_MAPS];
};

/* Reads the points when `path` is a cloud file. Borrows `path`. */
NDT_MUST_CHECK enum ndt_status bench_maps_open(struct bench_maps *maps, const char *path, struct ndt_error *err);
/* The map for `config`; borrowed. */
NDT_MUST_CHECK enum ndt_status bench_maps_get(struct bench_maps *maps, const struct ndt_map_config *config,
                                              struct ndt_map **out, struct ndt_error *err);
void bench_maps_close(struct bench_maps *maps);

#endif

/* What a map costs to build and to open, against the number of points, of voxels and of threads. */
#ifndef BENCH_MAP_COST_H
#define BENCH_MAP_COST_H

#include <stdint.h>
#include <stdio.h>

#include "bench_options.h"
#include "ndt/cloud.h"
#include "ndtd/samples.h"

enum { BENCH_COST_ROWS = 96 };

struct bench_cost_row {
    const char *axis; /* what varies: "points", "voxels" */
    size_t points;    /* evenly thinned to this many */
    struct ndt_map_config config;
    int threads;
    uint64_t voxels; /* of all levels */
    size_t bytes;
    struct ndtd_samples sums_ms, build_ms, open_ms; /* points into sums, sums into a map, the compiled map opened */
};
struct bench_map_cost {
    size_t count;
    struct bench_cost_row rows[BENCH_COST_ROWS];
};

/* All rows take turns, round by round, so that a clock that drifts hits all alike. Compiled maps lie in a folder
 * under TMPDIR (else /tmp) meanwhile. */
NDT_MUST_CHECK enum ndt_status bench_map_cost_run(struct bench_map_cost *out, const struct bench_options *options,
                                                  const struct ndt_cloud *cloud, struct ndt_error *err);
void bench_map_cost_print(struct bench_map_cost *cost, FILE *file);
NDT_MUST_CHECK enum ndt_status bench_map_cost_json(struct bench_map_cost *cost, const char *path,
                                                   struct ndt_error *err);
void bench_map_cost_free(struct bench_map_cost *cost);

#endif

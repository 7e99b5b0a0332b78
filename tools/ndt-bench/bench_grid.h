/* The comparison of times: every combination of variant, levels, neighbours, backend, threads and points, and the
 * peer, over the same scans and the same starts. */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include "bench_input.h"
#include "bench_maps.h"
#include "bench_matcher.h"
#include "bench_options.h"
#include "bench_peer.h"
#include "bench_tally.h"

enum { BENCH_MAX_ROWS = 192 };

struct bench_row {
    size_t filtered;                   /* index: which number of points */
    struct bench_matcher matcher;      /* unused by a peer */
    const struct bench_peer_ops *peer; /* NULL: the product */
    void *peer_state;
    double peer_leaf_m;
    struct bench_tally tally;
    struct ndtd_samples eval_us, pairs;
};

struct bench_grid {
    struct bench_filtered filtered[BENCH_MAX_ITEMS];
    size_t filtered_count;
    struct bench_row rows[BENCH_MAX_ROWS];
    size_t row_count;
};

/* Runs everything. `grid` is zeroed by the caller; free it also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_grid_run(struct bench_grid *grid, const struct bench_options *options,
                                              const struct bench_input *input, struct bench_maps *maps,
                                              struct ndt_error *err);
void bench_grid_free(struct bench_grid *grid);

/* The product's row that differs from `row` only in having one thread; NULL when there is none. */
struct bench_row *bench_grid_single(struct bench_grid *grid, const struct bench_row *row);

#endif

/* From how far off starts are recovered: the settings of the command line next to the variant autoware, over the
 * scans of a bag with truth. */
#ifndef BENCH_BASIN_H
#define BENCH_BASIN_H

#include "bench_input.h"
#include "bench_maps.h"
#include "bench_matcher.h"
#include "bench_options.h"
#include "bench_tally.h"

enum { BENCH_BASIN_CANDIDATES = 2 };

struct bench_basin {
    struct bench_filtered filtered;
    struct bench_matcher candidates[BENCH_BASIN_CANDIDATES];
    struct bench_tally tallies[BENCH_BASIN_CANDIDATES][BENCH_MAX_ITEMS]; /* per offset */
};

/* `basin` is zeroed by the caller; free it also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_basin_run(struct bench_basin *basin, const struct bench_options *options,
                                               const struct bench_input *input, struct bench_maps *maps,
                                               struct ndt_error *err);
void bench_basin_free(struct bench_basin *basin);

#endif

/* Batches over the scans of the command line, on every backend it names. */
#ifndef BENCH_BATCHES_H
#define BENCH_BATCHES_H

#include "bench_batch.h"
#include "bench_input.h"
#include "bench_maps.h"
#include "bench_matcher.h"
#include "bench_options.h"

struct bench_batches {
    struct bench_batch_candidate candidates[BENCH_MAX_ITEMS * BENCH_MAX_ITEMS];
    struct bench_matcher matchers[BENCH_MAX_ITEMS * BENCH_MAX_ITEMS]; /* of the ways */
    size_t candidate_count;
    struct bench_filtered filtered[BENCH_MAX_ITEMS]; /* per number of points */
    size_t filtered_count;
    struct bench_batch result;
};

/* Everything is opened before anything is measured. `batches` is zeroed by the caller; free it also after a
 * failure. */
NDT_MUST_CHECK enum ndt_status bench_batches_run(struct bench_batches *batches, const struct bench_options *options,
                                                 const struct bench_input *input, struct bench_maps *maps,
                                                 struct ndt_error *err);
void bench_batches_free(struct bench_batches *batches);

#endif

/* What stands in front of matching, step by step: decoding a message, crop, deskewing, voxel filter, sampling and
 * the whole; on synthetic scans, or on given ones. */
#ifndef BENCH_PREPROCESS_H
#define BENCH_PREPROCESS_H

#include <stdio.h>

#include "bench_input.h"
#include "bench_options.h"

/* The steps of the preprocessor share one pass, so a step is what it adds: the time with it less the time without,
 * of the same scan right before. */
enum bench_preprocess_step {
    BENCH_PREPROCESS_DECODE,
    BENCH_PREPROCESS_CROP,
    BENCH_PREPROCESS_DESKEW_TIME,    /* only where scans have times */
    BENCH_PREPROCESS_DESKEW_AZIMUTH, /* clockwise */
    BENCH_PREPROCESS_FILTER,         /* every cell is finished */
    BENCH_PREPROCESS_SAMPLING,       /* only cells that are picked are finished: may be below 0 */
    BENCH_PREPROCESS_WHOLE,          /* without deskewing */
    BENCH_PREPROCESS_WHOLE_TIME,
    BENCH_PREPROCESS_WHOLE_AZIMUTH,
    BENCH_PREPROCESS_STEPS
};
const char *bench_preprocess_step_name(enum bench_preprocess_step step);

/* One size of scan. */
struct bench_preprocess_case {
    double points, cells; /* means of raw points and of occupied cells of the filter */
    struct ndtd_samples took_us[BENCH_PREPROCESS_STEPS]; /* empty: not possible with these scans */
};
struct bench_preprocess {
    struct bench_preprocess_case cases[BENCH_MAX_ITEMS];
    size_t count;
    int is_synthetic;
    struct ndt_preprocess_params params;
};

/* With scans in `input`: those, in turn. Else one synthetic scan for each of --points. `front` is zeroed by the
 * caller; free it also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_preprocess_run(struct bench_preprocess *plan,
                                                    const struct bench_options *options,
                                                    const struct bench_input *input, struct ndt_error *err);
void bench_preprocess_free(struct bench_preprocess *plan);
void bench_preprocess_print(struct bench_preprocess *plan, FILE *file);
/* An array. */
void bench_preprocess_json(struct bench_preprocess *plan, FILE *file);

#endif

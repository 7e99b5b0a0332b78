/* What stands in front of matching, step by step: decoding a message, crop, deskewing, voxel filter, sampling and
 * the whole; on synthetic scans, or on given ones. */
#ifndef BENCH_FRONT_H
#define BENCH_FRONT_H

#include <stdio.h>

#include "bench_input.h"
#include "bench_options.h"

/* The steps of the preprocessor share one pass, so a step is what it adds: the time with it less the time without,
 * of the same scan right before. */
enum bench_front_step {
    BENCH_FRONT_DECODE,
    BENCH_FRONT_CROP,
    BENCH_FRONT_DESKEW_TIME,    /* only where scans have times */
    BENCH_FRONT_DESKEW_AZIMUTH, /* clockwise */
    BENCH_FRONT_FILTER,         /* every cell is finished */
    BENCH_FRONT_SAMPLING,       /* only cells that are picked are finished: may be below 0 */
    BENCH_FRONT_WHOLE,          /* without deskewing */
    BENCH_FRONT_WHOLE_TIME,
    BENCH_FRONT_WHOLE_AZIMUTH,
    BENCH_FRONT_STEPS
};
const char *bench_front_step_name(enum bench_front_step step);

/* One size of scan. */
struct bench_front_case {
    double points, cells;                           /* means of raw points and of occupied cells of the filter */
    struct ndtd_samples took_us[BENCH_FRONT_STEPS]; /* empty: not possible with these scans */
};
struct bench_front {
    struct bench_front_case cases[BENCH_MAX_ITEMS];
    size_t count;
    int is_synthetic;
    struct ndt_preprocess_params params;
};

/* With scans in `input`: those, in turn. Else one synthetic scan for each of --points. `front` is zeroed by the
 * caller; free it also after a failure. */
NDT_MUST_CHECK enum ndt_status bench_front_run(struct bench_front *front, const struct bench_options *options,
                                               const struct bench_input *input, struct ndt_error *err);
void bench_front_free(struct bench_front *front);
void bench_front_print(struct bench_front *front, FILE *file);
/* An array. */
void bench_front_json(struct bench_front *front, FILE *file);

#endif

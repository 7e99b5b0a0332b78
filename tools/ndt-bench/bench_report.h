/* What was measured, as tables for people and as JSON for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench_basin.h"
#include "bench_batches.h"
#include "bench_preprocess.h"
#include "bench_grid.h"
#include "bench_machine.h"
#include "bench_overheads.h"

/* Exactly one of grid, basin, overheads, batches and front is given. */
struct bench_report {
    const struct bench_options *options;
    const struct bench_input *input;
    struct bench_maps *maps;
    struct bench_machine machine;
    struct bench_grid *grid;
    struct bench_basin *basin;
    struct bench_overheads *overheads;
    struct bench_batches *batches;
    struct bench_preprocess *preprocess;
};

void bench_report_print(const struct bench_report *report);
/* Written whole or not at all. */
NDT_MUST_CHECK enum ndt_status bench_report_json(const struct bench_report *report, const char *path,
                                                 struct ndt_error *err);

#endif

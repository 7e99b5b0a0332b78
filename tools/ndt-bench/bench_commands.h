/** @file
 * @brief The commands of ndt-bench: each measures and adds its tables to the report. Lists of points have at least
 * one element; see bench_options.h for the options of a command. */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#include "bench_candidate.h"

/** An alignment counts as recovered if it ends this near the ground truth. */
#define BENCH_SUCCESS_M   0.15
#define BENCH_SUCCESS_DEG 0.6
#define BENCH_DEG         (3.14159265358979323846 / 180.0)

/** align and basin. */
NDT_MUST_CHECK enum ndt_status bench_align(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);
/** Alignments that are stopped after increasing numbers of iterations: their times lie on a line, whose slope is
 * the cost per evaluation and whose offset is the fixed cost per alignment. */
NDT_MUST_CHECK enum ndt_status bench_evaluations(struct bench_source *source, struct bench_report *report,
                                                 struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_batch(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_overheads(struct bench_source *source, struct bench_report *report,
                                               struct ndt_error *err);
/** Each candidate tracks the scans twice, with guesses from the previous pose. Both passes must be bit-identical,
 * and the trajectory within 1 mm and 0.01 deg of that of the CPU. */
NDT_MUST_CHECK enum ndt_status bench_drive(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);
/* Not with NDT_BENCH_CORE: */
NDT_MUST_CHECK enum ndt_status bench_compare(struct bench_source *source, struct bench_report *report,
                                             struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_preprocess(struct bench_source *source, struct bench_report *report,
                                                struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_map(struct bench_source *source, struct bench_report *report,
                                         struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_tiles(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);

#endif

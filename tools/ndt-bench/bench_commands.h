/** @file
 * @brief The commands of ndt-bench: each measures and adds its tables to the report. The lists of points are at
 * least one long; see bench_options.h for what a command reads. */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#include "bench_candidate.h"

/** An alignment counts as recovered when it ends this near the truth. */
#define BENCH_SUCCESS_M   0.15
#define BENCH_SUCCESS_DEG 0.6
#define BENCH_DEG         (3.14159265358979323846 / 180.0)

/** align and basin. */
NDT_MUST_CHECK enum ndt_status bench_align(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);
/** Alignments that are cut off after more and more iterations: their times lie on a line, whose slope is what an
 * evaluation costs with all that belongs to it; what it begins with is paid once per alignment. */
NDT_MUST_CHECK enum ndt_status bench_evaluations(struct bench_source *source, struct bench_report *report,
                                                 struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_batch(struct bench_source *source, struct bench_report *report,
                                           struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bench_overheads(struct bench_source *source, struct bench_report *report,
                                               struct ndt_error *err);
/** Each candidate follows the scans twice, every guess from the pose before. Both times the same bits are wanted,
 * and the trajectory of the CPU within 1 mm and 0.01 deg. */
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

/**
 * @file
 * @brief Benchmark of the backends on this machine and the user's map: `ndtd --list-backends` and `ndtd
 * --autotune`.
 */
#ifndef NDTD_BACKEND_BENCHMARK_H
#define NDTD_BACKEND_BENCHMARK_H

#include <stdio.h>

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Prints one line per backend, with the reason where it is unavailable, and one with the CPU's instruction sets.
 * has_plans: also what each backend would allocate for this configuration. */
void ndtd_backends_print(FILE *file, const struct ndt_backend_config *config, int has_plans);

/** Measures all candidates (autotune.h) on scans of 756 to 100000 points drawn from the map and prints the table to
 * `report`, then the choice of auto for the configured number of points.
 *
 * Columns: alignments (p50, p95) and alignment time per evaluation. table: a file (.csv or .json) that receives the
 * numbers [us] too; may be NULL. NDT_ERR_ARGUMENT: no map, or another file name. */
NDT_MUST_CHECK enum ndt_status ndtd_backend_benchmark(const struct ndtd_settings *settings, const char *table,
                                                      FILE *report, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* `ndtd --autotune`: what every way of computing takes on the user's map for scans of several sizes, and where one
 * overtakes the other. */
#ifndef NDTD_BACKEND_BENCHMARK_H
#define NDTD_BACKEND_BENCHMARK_H

#include <stdio.h>

#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures scans of 756, 1500, 5000, 20000 and 100000 points, drawn from the map, and prints the table to `report`;
 * then what auto takes for the configured number of points, which is kept for the next start of the daemon unless
 * autotune.cache is off. table: also as numbers in this file, .csv or .json; NULL: no. Columns: whole alignments
 * (p50, p95), one evaluation, its kernels alone, copies alone, an empty launch, an idle wait; empty where a backend
 * has no such part. NDT_ERR_ARGUMENT: no map given, or a wrong name. */
NDT_MUST_CHECK enum ndt_status ndtd_backend_benchmark(const struct ndtd_settings *settings, const char *table,
                                                      FILE *report, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* A synthetic sweep for timing: 64 beams between the facades of a street, one turn, with times. */
#ifndef BENCH_PREPROCESS_SCAN_H
#define BENCH_PREPROCESS_SCAN_H

#include <stdint.h>

#include "ndt/cloud.h"

/* As many points as asked for, column after column as they are fired, sensor frame, seeded noise of 2 cm. Replaces
 * the contents of `out`. */
NDT_MUST_CHECK enum ndt_status bench_preprocess_scan(struct ndt_cloud *out, size_t points, uint64_t seed,
                                                     struct ndt_error *err);

#endif

/** @file
 * @brief A growing list of numbers with mean and quantiles. One owner, one thread. */
#ifndef NDTD_SAMPLES_H
#define NDTD_SAMPLES_H

#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** List of numbers; all zero: empty. */
struct ndtd_samples {
    double *values;
    size_t count, capacity;
    int sorted;
};

/** Adds a number; one that is not finite is ignored. */
NDT_MUST_CHECK enum ndt_status ndtd_samples_add(struct ndtd_samples *samples, double value, struct ndt_error *err);
/** Frees the numbers; the list is then empty. */
void ndtd_samples_free(struct ndtd_samples *samples);
/** Quantile q, 0 <= q <= 1, interpolated linearly between neighbours; 0 for an empty list. Sorts the list. */
double ndtd_samples_quantile(struct ndtd_samples *samples, double q);
/** The mean; 0 for an empty list. */
double ndtd_samples_mean(const struct ndtd_samples *samples);

#ifdef __cplusplus
}
#endif
#endif

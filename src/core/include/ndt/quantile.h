/** @file
 * @brief Quantiles of measured values, interpolated linearly between neighbours. */
#ifndef NDT_QUANTILE_H
#define NDT_QUANTILE_H

#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int ndt_quantile_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Sorts ascending, in place. The values must not be NaN. */
static inline void ndt_quantile_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof(*values), ndt_quantile_compare);
}

/** The q-quantile (0 <= q <= 1) of values that are sorted ascending; 0 for an empty list. */
static inline double ndt_quantile_sorted(const double *sorted, size_t count, double q)
{
    if (count == 0)
        return 0;
    const double place = q * (double)(count - 1);
    const size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

/** The q-quantile of values in any order; sorts them in place. */
static inline double ndt_quantile(double *values, size_t count, double q)
{
    ndt_quantile_sort(values, count);
    return ndt_quantile_sorted(values, count, q);
}

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * A monotonic clock for timings and deadlines; never an input of the mathematics. */
#ifndef NDT_CLOCK_H
#define NDT_CLOCK_H

#include <time.h>

/** Microseconds since an arbitrary moment. */
static inline double ndt_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

#endif

/**
 * @file
 * The clock for timings and progress, never an input to results.
 */
#ifndef NDTD_STOPWATCH_H
#define NDTD_STOPWATCH_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Microseconds of the monotonic clock. */
static inline double ndtd_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief The monotonic clock for timings, deadlines and progress; never an input to the mathematics. */
#ifndef NDT_CLOCK_H
#define NDT_CLOCK_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Microseconds since an arbitrary moment in the past. */
static inline double ndt_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

#ifdef __cplusplus
}
#endif
#endif

/* The earlier name of ndt/clock.h. */
#ifndef NDTD_STOPWATCH_H
#define NDTD_STOPWATCH_H

#include "ndt/clock.h"

static inline double ndtd_now_us(void)
{
    return ndt_clock_us();
}

#endif

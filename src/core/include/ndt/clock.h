/** @file
 * @brief The monotonic clock for timings, deadlines and progress; never an input to the mathematics. */
#ifndef NDT_CLOCK_H
#define NDT_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/** Microseconds since an arbitrary moment in the past. */
double ndt_clock_us(void);

#ifdef __cplusplus
}
#endif
#endif

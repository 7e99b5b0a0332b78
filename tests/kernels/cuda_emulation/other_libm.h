/** @file
 * @brief Included ahead of contracted kernels: functions of libm that round otherwise than the host's, as a
 * device's may (CUDA C++ Programming Guide, Mathematical Functions: up to 2 ulp). */
#ifndef OTHER_LIBM_H
#define OTHER_LIBM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Changes results as another libm: of results of 4 arguments one is an ulp higher and one an ulp lower; that of
 * zero stays. */
static inline int other_digit(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const uint64_t part = bits * UINT64_C(0x9e3779b97f4a7c15) >> 62;
    return part == 1 ? 1 : part == 2 ? -1 : 0;
}

static inline double other_sin(double x)
{
    const double y = sin(x);
    const int digit = other_digit(x);
    return digit == 0 ? y : nextafter(y, digit * HUGE_VAL);
}

static inline double other_cos(double x)
{
    const double y = cos(x);
    const int digit = other_digit(x);
    return digit == 0 ? y : nextafter(y, digit * HUGE_VAL);
}

static inline float other_expf(float x)
{
    const float y = expf(x);
    const int digit = other_digit((double)x);
    return digit == 0 ? y : nextafterf(y, (float)digit * HUGE_VALF);
}

#define sin  other_sin
#define cos  other_cos
#define expf other_expf

#endif

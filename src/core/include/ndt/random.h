/** @file
 * @brief Seeded random numbers: splitmix64 (Steele, Lea, Flood 2014), bit-equal on every machine.
 *
 * The generator is one word of state; `struct ndt_random random = {seed}` starts a sequence. Not for cryptography.
 * Never call a function twice within one expression: C does not fix the order of evaluation. */
#ifndef NDT_RANDOM_H
#define NDT_RANDOM_H

#include <math.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** State of a generator. */
struct ndt_random {
    uint64_t state;
};

/** 64 random bits. */
static inline uint64_t ndt_random_next(struct ndt_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** An independent sequence for a seed and two numbers: a part of a program can draw more or fewer numbers without
 * affecting the other parts. */
static inline struct ndt_random ndt_random_stream(uint64_t seed, uint64_t a, uint64_t b)
{
    struct ndt_random random = {seed};
    random.state = ndt_random_next(&random) ^ a;
    random.state = ndt_random_next(&random) ^ b;
    random.state = ndt_random_next(&random);
    return random;
}

/** Uniform in [0, 1). */
static inline double ndt_random_unit(struct ndt_random *random)
{
    return (double)(ndt_random_next(random) >> 11) * 0x1p-53;
}

/** Uniform in [low, high). */
static inline double ndt_random_between(struct ndt_random *random, double low, double high)
{
    return low + (high - low) * ndt_random_unit(random);
}

/** Normal with mean 0 and standard deviation 1 (Box and Muller 1958). */
static inline double ndt_random_normal(struct ndt_random *random)
{
    const double radius = sqrt(-2.0 * log(1.0 - ndt_random_unit(random)));
    return radius * cos(6.283185307179586 * ndt_random_unit(random));
}

#ifdef __cplusplus
}
#endif
#endif

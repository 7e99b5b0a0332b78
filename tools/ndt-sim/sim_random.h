/* Random numbers of the simulator: splitmix64 (Steele, Lea, Flood 2014), the same on every machine.
 * Streams are derived from a seed and two numbers, so that one part of a simulation can change without
 * moving the others. Never call twice within one expression: the order of evaluation is not fixed. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <math.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline struct sim_random sim_random_stream(uint64_t seed, uint64_t a, uint64_t b)
{
    struct sim_random random = {seed};
    random.state = sim_random_next(&random) ^ a;
    random.state = sim_random_next(&random) ^ b;
    random.state = sim_random_next(&random);
    return random;
}

/* In [0, 1). */
static inline double sim_random_unit(struct sim_random *random)
{
    return (double)(sim_random_next(random) >> 11) * 0x1p-53;
}

static inline double sim_random_between(struct sim_random *random, double low, double high)
{
    return low + (high - low) * sim_random_unit(random);
}

/* Mean 0, standard deviation 1 (Box and Muller). */
static inline double sim_random_normal(struct sim_random *random)
{
    const double radius = sqrt(-2.0 * log(1.0 - sim_random_unit(random)));
    return radius * cos(6.283185307179586 * sim_random_unit(random));
}

#endif

/** @file
 * @brief The sampler of ndt-bench: interleaved measurements after a warm-up; lists of samples and their quantiles;
 * perturbed starts. Needs the core only. */
#ifndef BENCH_SAMPLER_H
#define BENCH_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/pose.h"
#include "ndt/status.h"

/** The items to compare. Every round measures each item once and begins with another one, so that clock drift and
 * warm caches affect all items equally. */
struct bench_sampling {
    size_t items, warm_up, rounds;
    /** Measures `item` once. `round` counts from 0, over warm-up and measured rounds; is_counted: not a warm-up. A
     * failure ends the sampling. */
    enum ndt_status (*sample)(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err);
    void *context;
};
NDT_MUST_CHECK enum ndt_status bench_sample(const struct bench_sampling *sampling, struct ndt_error *err);

/** A growing list of numbers; all zero is an empty one. */
struct bench_samples {
    double *values;
    size_t count, capacity;
};
NDT_MUST_CHECK enum ndt_status bench_samples_add(struct bench_samples *samples, double value,
                                                 struct ndt_error *err);
void bench_samples_free(struct bench_samples *samples);
/** With linear interpolation, 0 <= q <= 1; NaN for an empty list. Sorts the list. */
double bench_quantile(struct bench_samples *samples, double q);
double bench_median(struct bench_samples *samples);
double bench_mean(const struct bench_samples *samples); /**< NaN for an empty list */

/** Start number `start`: `truth` moved by up to shift_m in a random direction and turned by up to turn_rad about a
 * random axis, both uniform between 0 and the limit. */
struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth, double shift_m,
                            double turn_rad);

#endif

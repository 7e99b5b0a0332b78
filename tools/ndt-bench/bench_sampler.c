#include "bench_sampler.h"

#include <math.h>
#include <stdlib.h>

#include "ndt/quantile.h"
#include "ndt/random.h"

enum ndt_status bench_sample(const struct bench_sampling *sampling, struct ndt_error *err)
{
    for (size_t round = 0; round < sampling->warm_up + sampling->rounds; round++)
        for (size_t i = 0; i < sampling->items; i++) {
            enum ndt_status status = sampling->sample(sampling->context, (round + i) % sampling->items, round,
                                                      round >= sampling->warm_up, err);
            if (status != NDT_OK)
                return status;
        }
    return NDT_OK;
}

enum ndt_status bench_samples_add(struct bench_samples *samples, double value, struct ndt_error *err)
{
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity ? 2 * samples->capacity : 64;
        double *values = realloc(samples->values, capacity * sizeof(*values));
        if (!values)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu samples", capacity);
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
    return NDT_OK;
}

void bench_samples_free(struct bench_samples *samples)
{
    free(samples->values);
    *samples = (struct bench_samples){0};
}

double bench_quantile(struct bench_samples *samples, double q)
{
    return samples->count ? ndt_quantile(samples->values, samples->count, q) : NAN;
}

double bench_median(struct bench_samples *samples)
{
    return bench_quantile(samples, 0.5);
}

double bench_mean(const struct bench_samples *samples)
{
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++)
        sum += samples->values[i];
    return samples->count ? sum / (double)samples->count : NAN;
}

static void direction(struct ndt_random *random, double out[3])
{
    double norm2;
    do {
        norm2 = 0;
        for (int i = 0; i < 3; i++) {
            out[i] = ndt_random_between(random, -1, 1);
            norm2 += out[i] * out[i];
        }
    } while (norm2 > 1 || norm2 < 0.01);
    for (int i = 0; i < 3; i++)
        out[i] /= sqrt(norm2);
}

struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth, double shift_m,
                            double turn_rad)
{
    struct ndt_random random = {seed * 0xd1342543de82ef95u + start};
    struct ndt_twist turn = {{0, 0, 0}, {0, 0, 0}};
    double along[3];
    direction(&random, turn.w_radps);
    direction(&random, along);
    const struct ndt_pose rotation = ndt_pose_exp(&turn, ndt_random_between(&random, 0, turn_rad));
    struct ndt_pose pose = ndt_pose_compose(truth, &rotation);
    const double shift_by_m = ndt_random_between(&random, 0, shift_m);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += shift_by_m * along[i];
    return pose;
}

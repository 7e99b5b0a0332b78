#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "ndt/quantile.h"
#include "ndt/random.h"

static int is_lost;

enum ndt_status bench_sample(size_t items, size_t warm_up, uint64_t rounds, bench_sample_fn *sample, void *context,
                             struct ndt_error *err)
{
    for (size_t round = 0; round < warm_up + rounds; round++)
        for (size_t i = 0; i < items; i++) {
            enum ndt_status status = sample(context, (round + i) % items, round, round >= warm_up, err);
            if (status != NDT_OK)
                return status;
        }
    return NDT_OK;
}

void bench_samples_add(struct bench_samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity ? 2 * samples->capacity : 64;
        double *values = realloc(samples->values, capacity * sizeof(*values));
        if (!values) {
            is_lost = 1;
            return;
        }
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
}

int bench_samples_lost(void)
{
    return is_lost;
}

void bench_samples_free(struct bench_samples *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(samples[i].values);
        samples[i] = (struct bench_samples){0};
    }
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

static void random_direction(struct ndt_random *random, double out[3])
{
    double norm2 = 0;
    for (int i = 0; i < 3; i++) {
        out[i] = ndt_random_normal(random);
        norm2 += out[i] * out[i];
    }
    for (int i = 0; i < 3; i++)
        out[i] /= sqrt(norm2);
}

struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth,
                            const struct bench_offset *offset)
{
    struct ndt_random random = ndt_random_stream(seed, start, 0);
    struct ndt_twist turn = {{0, 0, 0}, {0, 0, 0}};
    double along[3];
    random_direction(&random, turn.w_radps);
    random_direction(&random, along);
    const struct ndt_pose rotation =
        ndt_pose_exp(&turn, ndt_random_between(&random, 0, offset->turn_deg * BENCH_DEG));
    struct ndt_pose pose = ndt_pose_compose(truth, &rotation);
    const double shift_m = ndt_random_between(&random, 0, offset->shift_m);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += shift_m * along[i];
    return pose;
}

int bench_is_recovered(const struct ndt_pose *pose, const struct ndt_pose *truth, double *off_m, double *off_deg)
{
    *off_m = ndt_pose_distance_m(truth, pose);
    *off_deg = ndt_pose_angle_rad(truth, pose) / BENCH_DEG;
    return *off_m <= BENCH_SUCCESS_M && *off_deg <= BENCH_SUCCESS_DEG;
}

#include "ndtd/samples.h"

#include <math.h>
#include <stdlib.h>

enum ndt_status ndtd_samples_add(struct ndtd_samples *samples, double value, struct ndt_error *err)
{
    if (!isfinite(value))
        return NDT_OK;
    if (samples->count == samples->capacity) {
        size_t capacity = samples->capacity ? 2 * samples->capacity : 1024;
        double *values = realloc(samples->values, capacity * sizeof(*values));
        if (!values)
            return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for %zu statistics", capacity);
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
    samples->sorted = 0;
    return NDT_OK;
}

void ndtd_samples_free(struct ndtd_samples *samples)
{
    free(samples->values);
    *samples = (struct ndtd_samples){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ndtd_samples_quantile(struct ndtd_samples *samples, double q)
{
    if (samples->count == 0)
        return 0;
    if (!samples->sorted)
        qsort(samples->values, samples->count, sizeof(double), compare);
    samples->sorted = 1;
    double place = q * (double)(samples->count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < samples->count ? below + 1 : below;
    return samples->values[below] + (place - (double)below) * (samples->values[above] - samples->values[below]);
}

double ndtd_samples_mean(const struct ndtd_samples *samples)
{
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++)
        sum += samples->values[i];
    return samples->count ? sum / (double)samples->count : 0;
}

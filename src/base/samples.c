#include "ndtd/samples.h"

#include <math.h>
#include <stdlib.h>

#include "ndt/quantile.h"

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

double ndtd_samples_quantile(struct ndtd_samples *samples, double q)
{
    if (!samples->sorted)
        ndt_quantile_sort(samples->values, samples->count);
    samples->sorted = 1;
    return ndt_quantile_sorted(samples->values, samples->count, q);
}

double ndtd_samples_mean(const struct ndtd_samples *samples)
{
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++)
        sum += samples->values[i];
    return samples->count ? sum / (double)samples->count : 0;
}

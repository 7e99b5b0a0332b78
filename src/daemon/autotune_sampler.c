#include "ndtd/autotune_sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/samples.h"

enum { TURN = 5, SAMPLES_MOST = 1000 };
/* A row whose best alignment is this much worse than the best row's 95th percentile is not measured further; after
 * several turns, as something else may have had the core during one of them, or when it takes very long. */
static const double BEATEN = 1.1, LONG_US = 20e3;
enum { TURNS_LEAST = 3 };

struct sampler {
    double *us;
    size_t count;
    int is_out;
};

struct samplers {
    struct ndtd_autotune_row *rows;
    size_t count;
    const struct ndtd_autotune_sampler_ops *ops;
    void *context;
    size_t samples;
    double end_us;
    struct sampler samplers[NDTD_AUTOTUNE_ROWS];
};

static double now_us(const struct samplers *all)
{
    return all->ops->now_us(all->context);
}

static void take_out(struct samplers *all, size_t i, const char *why)
{
    all->samplers[i].is_out = 1;
    all->samplers[i].count = 0;
    all->rows[i].is_here = 0;
    all->rows[i].samples = 0;
    snprintf(all->rows[i].why, sizeof(all->rows[i].why), "%.*s", (int)sizeof(all->rows[i].why) - 1, why);
}

/* The first alignment of a turn finds caches that others have used: it does not count, unless it is all there is
 * time for. */
static enum ndt_status sample_turn(struct samplers *all, size_t i, struct ndt_error *err)
{
    struct sampler *sampler = &all->samplers[i];
    double us;
    enum ndt_status status = all->ops->sample(all->context, i, sampler->count, &us, err);
    for (int k = 0; status == NDT_OK && k < TURN && sampler->count < all->samples; k++) {
        const int is_over = now_us(all) >= all->end_us;
        if (is_over && sampler->count == 0)
            sampler->us[sampler->count++] = us;
        if (is_over)
            break;
        status = all->ops->sample(all->context, i, sampler->count, &us, err);
        if (status == NDT_OK && isfinite(us) && us > 0)
            sampler->us[sampler->count++] = us;
    }
    return status;
}

static void take_turn(struct samplers *all, size_t i)
{
    struct ndt_error why = {""};
    const double start_us = now_us(all);
    enum ndt_status status = all->ops->open(all->context, i, &why);
    if (status == NDT_OK) {
        if (all->samplers[i].count == 0)
            all->rows[i].open_us = now_us(all) - start_us;
        status = sample_turn(all, i, &why);
        all->ops->close(all->context, i);
    }
    if (status != NDT_OK)
        take_out(all, i, *why.text ? why.text : ndt_status_name(status));
}

static void summarize(struct samplers *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->samplers[i].count > 0)
            ndtd_autotune_summarize(&all->rows[i], all->samplers[i].us, all->samplers[i].count);
}

static double least_of(const struct sampler *sampler)
{
    double least_us = INFINITY;
    for (size_t i = 0; i < sampler->count; i++)
        least_us = fmin(least_us, sampler->us[i]);
    return least_us;
}

static void leave_out_beaten(struct samplers *all)
{
    double best_us = INFINITY;
    summarize(all);
    for (size_t i = 0; i < all->count; i++)
        if (all->samplers[i].count > 0)
            best_us = fmin(best_us, all->rows[i].p95_us);
    for (size_t i = 0; i < all->count; i++) {
        struct sampler *sampler = &all->samplers[i];
        const double least_us = least_of(sampler);
        if (sampler->count > 0 && least_us > BEATEN * best_us &&
            (sampler->count >= TURN * TURNS_LEAST || least_us > LONG_US))
            sampler->is_out = 1;
    }
}

/* One turn of every row, each round begins with another one; 0 when nothing is left to do. */
static int take_round(struct samplers *all, size_t round)
{
    int worked = 0;
    for (size_t k = 0; k < all->count; k++) {
        const size_t i = (k + round) % all->count;
        if (all->samplers[i].is_out || all->samplers[i].count >= all->samples)
            continue;
        if (now_us(all) >= all->end_us) {
            if (all->samplers[i].count == 0)
                take_out(all, i, "the time for measuring was over before its turn");
            continue;
        }
        take_turn(all, i);
        worked = 1;
    }
    return worked;
}

enum ndt_status ndtd_autotune_sample(struct ndtd_autotune_row *rows, size_t count,
                                     const struct ndtd_autotune_sampler_ops *ops, void *context,
                                     const struct ndtd_autotune_sampler_limits *limits, struct ndt_error *err)
{
    struct samplers all = {
        .rows = rows, .count = count, .ops = ops, .context = context, .samples = limits->samples};
    if (count > NDTD_AUTOTUNE_ROWS || limits->samples < 1 || limits->samples > SAMPLES_MOST)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu ways, %zu samples; at most %d and 1 to %d are possible", count,
                        limits->samples, NDTD_AUTOTUNE_ROWS, SAMPLES_MOST);
    double *us = calloc(count * limits->samples + 1, sizeof(double));
    if (!us)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu samples", count * limits->samples);
    for (size_t i = 0; i < count; i++)
        all.samplers[i].us = us + i * limits->samples;
    all.end_us = now_us(&all) + limits->time_us;
    for (size_t round = 0; take_round(&all, round); round++)
        leave_out_beaten(&all);
    summarize(&all);
    free(us);
    return NDT_OK;
}

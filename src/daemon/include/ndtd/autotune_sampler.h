/* Measures several ways in turns within a time, so that what else the machine does meets all of them alike. How a
 * way is opened, run and timed is the caller's: a machine, or recorded numbers. One thread. */
#ifndef NDTD_AUTOTUNE_SAMPLER_H
#define NDTD_AUTOTUNE_SAMPLER_H

#include "ndtd/autotune_result.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_autotune_sampler_ops {
    /* Before a turn, and after it. What open says is why a row is not here; then close is not called. */
    enum ndt_status (*open)(void *context, size_t row, struct ndt_error *err);
    void (*close)(void *context, size_t row);
    /* One alignment, `number` from 0 the same for every row; the time it took. A failure takes the row out for
     * good, whatever it measured before. */
    enum ndt_status (*sample)(void *context, size_t row, size_t number, double *us, struct ndt_error *err);
    double (*now_us)(void *context);
};

struct ndtd_autotune_sampler_limits {
    double time_us; /* nothing begins later; a row that was not reached by then is not here */
    size_t samples; /* per row, at most 1000 */
};

/* rows: `way` is set, the rest is filled in. Rows that cannot win any more, by far, are left out of later turns. */
NDT_MUST_CHECK enum ndt_status ndtd_autotune_sample(struct ndtd_autotune_row *rows, size_t count,
                                                    const struct ndtd_autotune_sampler_ops *ops, void *context,
                                                    const struct ndtd_autotune_sampler_limits *limits,
                                                    struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

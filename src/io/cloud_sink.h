/* Takes values in double into a cloud: chooses the origin, and what times are relative to. Private to ndt_io.
 *
 * Origin: the first finite point, rounded to a multiple of 1024 m; zero when no coordinate reaches 2048 m, for
 * then a float is right to 0.1 mm anyway. That is known only at the end, so the points may have to be given
 * once more (ndt_sink_again). Times of 10 s and more are those of a clock, and become relative to the
 * first point's; smaller ones are kept. */
#ifndef NDT_IO_CLOUD_SINK_H
#define NDT_IO_CLOUD_SINK_H

#include <stdint.h>

#include "ndt/cloud.h"

struct ndt_cloud_sink {
    struct ndt_cloud *cloud; /* borrowed */
    int has_origin;
    double largest_m; /* absolute coordinate of any finite point */
    int has_base;
    int64_t base_ns;
    double base_s;
};

/* Makes `cloud` hold `count` points (their coordinates not yet set, intensity and time zero) with at least
 * the optional arrays `fields`. */
NDT_MUST_CHECK enum ndt_status ndt_sink_open(struct ndt_cloud_sink *out, struct ndt_cloud *cloud, size_t count,
                                             unsigned fields, struct ndt_error *err);
/* Points at .. at + count - 1, in the order of the file. A point that is not finite becomes NaN NaN NaN. */
void ndt_sink_coordinates(struct ndt_cloud_sink *sink, size_t at, size_t count, const double *x_m,
                          const double *y_m, const double *z_m);
void ndt_sink_times_s(struct ndt_cloud_sink *sink, size_t at, size_t count, const double *time_s);
void ndt_sink_times_ns(struct ndt_cloud_sink *sink, size_t at, size_t count, const int64_t *time_ns);
/* After the last point: 1 when all must be given again, which it asks for at most once. */
int ndt_sink_again(struct ndt_cloud_sink *sink);

#endif

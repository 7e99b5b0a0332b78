/* A point cloud as structure of arrays, float relative to a double origin.
 *
 * Point i is at origin_m + (x_m[i], y_m[i], z_m[i]). Readers choose the origin so that the float part
 * stays small: float alone loses centimetres at UTM coordinates.
 * The x, y, z arrays always exist when capacity > 0; intensity and time_s only when asked for.
 * Every array is 64-byte aligned and padded to a multiple of 16 elements; padding holds anything.
 * time_s is relative to the stamp of the scan. Points may be NaN or infinite; the preprocessor drops them.
 * One owner; not thread-safe while being written. */
#ifndef NDT_CLOUD_H
#define NDT_CLOUD_H

#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDT_CLOUD_INTENSITY = 1, NDT_CLOUD_TIME = 2 };

/* More points than this are refused by every reader and decoder (4 GiB of coordinates). */
#define NDT_CLOUD_MAX_POINTS ((size_t)268435456)

struct ndt_cloud {
    size_t count;
    size_t capacity;
    unsigned fields; /* which optional arrays exist: NDT_CLOUD_* */
    double origin_m[3];
    float *x_m;
    float *y_m;
    float *z_m;
    float *intensity; /* NULL unless NDT_CLOUD_INTENSITY */
    float *time_s;    /* NULL unless NDT_CLOUD_TIME */
    void *block;      /* the one allocation behind all arrays */
};

/* An empty cloud owning nothing. */
void ndt_cloud_init(struct ndt_cloud *cloud);
/* Gives back the memory and re-initialises; harmless on an empty cloud. */
void ndt_cloud_free(struct ndt_cloud *cloud);
/* Room for `capacity` points with the optional arrays `fields` (added to those there are). Points and
 * count are kept. Allocates only when it has to grow, so a reused cloud stops allocating after warm-up. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_reserve(struct ndt_cloud *cloud, size_t capacity, unsigned fields,
                                                 struct ndt_error *err);
/* Deep copy of points, origin and fields; reuses dst's memory. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_copy(struct ndt_cloud *dst, const struct ndt_cloud *src,
                                              struct ndt_error *err);
/* Appends src to dst, converting to dst's origin (dst takes src's origin when it is empty). */
NDT_MUST_CHECK enum ndt_status ndt_cloud_append(struct ndt_cloud *dst, const struct ndt_cloud *src,
                                                struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

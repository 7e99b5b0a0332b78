/** @file
 * @brief A point cloud as structure of arrays: float coordinates relative to a double origin.
 *
 * Point i is at origin_m + (x_m[i], y_m[i], z_m[i]). Readers choose the origin so that the float part stays small:
 * float alone loses centimetres at UTM coordinates. Points may be NaN or infinite; the preprocessor drops them.
 *
 * x, y and z exist when capacity > 0; intensity and time_s only when requested. Every array is 64-byte aligned and
 * padded to a multiple of 16 elements; the padding holds anything. One owner; not thread-safe while being written.
 */
#ifndef NDT_CLOUD_H
#define NDT_CLOUD_H

#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Optional arrays of a cloud. */
enum { NDT_CLOUD_INTENSITY = 1, NDT_CLOUD_TIME = 2 };

/** Readers and decoders refuse larger clouds (4 GiB of coordinates). */
#define NDT_CLOUD_MAX_POINTS ((size_t)268435456)

/** See the top of this file. */
struct ndt_cloud {
    size_t count;
    size_t capacity;
    unsigned fields; /**< optional arrays that exist: NDT_CLOUD_* */
    double origin_m[3];
    float *x_m;
    float *y_m;
    float *z_m;
    float *intensity; /**< NULL without NDT_CLOUD_INTENSITY */
    float *time_s;    /**< relative to the stamp of the scan; NULL without NDT_CLOUD_TIME */
    /** Offset that a decoder took out of the times because they are of another clock than the stamp; 0: none */
    double time_offset_s;
    void *block; /**< the one allocation behind all arrays */
};

/** Makes an empty cloud that owns nothing. */
void ndt_cloud_init(struct ndt_cloud *cloud);
/** Frees the memory and makes the cloud empty; allowed on an empty cloud. */
void ndt_cloud_free(struct ndt_cloud *cloud);
/** Makes room for `capacity` points and the optional arrays `fields`, in addition to those that exist. Keeps points
 * and count. Allocates only to grow, so a reused cloud stops allocating. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_reserve(struct ndt_cloud *cloud, size_t capacity, unsigned fields,
                                                 struct ndt_error *err);
/** Copies points, origin and optional arrays; reuses the memory of `dst`. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_copy(struct ndt_cloud *dst, const struct ndt_cloud *src,
                                              struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

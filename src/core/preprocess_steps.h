/* Private to the core: the steps of preprocessing, on blocks of points: crop.c -> range_offset.c ->
 * deskew.c -> voxel_filter.c. */
#ifndef NDT_PREPROCESS_STEPS_H
#define NDT_PREPROCESS_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"
#include "ndt/preprocess.h"
#include "ndt/preprocess_math.h"

/* Few enough points to stay in the first-level cache between the steps. */
enum { NDT_BLOCK_POINTS = 256, NDT_BLOCK_PAD = 16 };

/* Four borrowed arrays of NDT_BLOCK_POINTS + NDT_BLOCK_PAD; elements behind `count` hold anything. */
struct ndt_point_block {
    size_t count;
    float *x_m, *y_m, *z_m;
    float *time_s;
};

/* ---- crop.c: which points of a scan are used, and when in the sweep each was measured ---- */

/* The limits of the parameters as floats, and the reference moment. A point's range is decided in float where
 * rounding cannot matter, and in double between `certain` and `possible`. */
struct ndt_crop {
    const struct ndt_preprocess_params *params; /* borrowed */
    float low_m[3], high_m[3];
    float certain_low_m2, certain_high_m2;
    float possible_low_m2, possible_high_m2;
    float reference_us;   /* relative to the stamp */
    float begin_s, end_s; /* of the sweep: points with times outside are left out */
};

void ndt_crop_set(struct ndt_crop *crop, const struct ndt_preprocess_params *params, const struct ndt_sweep *sweep);
/* Writes the usable ones among points first .. first + NDT_BLOCK_POINTS - 1 of `raw` into `block`, in their order,
 * with their times relative to the reference moment (0 without deskewing). */
void ndt_crop_block(const struct ndt_crop *crop, const struct ndt_cloud *raw, size_t first,
                    struct ndt_point_block *block);

/* NDT_ERR_FORMAT: times are needed and `raw` has none. */
NDT_MUST_CHECK enum ndt_status ndt_crop_check(const struct ndt_preprocess_params *params,
                                              const struct ndt_cloud *raw, struct ndt_error *err);

/* ---- range_offset.c: the constant error of the ranges ---- */

/* Adds offset_m to the range of each point, bit for bit as ndt_preprocess_lengthen does. Reads and writes whole
 * vectors, up to NDT_BLOCK_PAD points behind the last. */
void ndt_range_offset_apply(float offset_m, struct ndt_point_block *points);

/* ---- deskew.c: the motion of the sensor during a sweep ---- */

/* A rigid transform: the columns of its rotation and its translation [m], each padded by 0. */
struct ndt_deskew_transform {
    float columns[4][4];
};

/* The sweep is cut into segments of equal duration. boundaries[i] is the transform to the reference moment at the
 * begin of segment i; within a segment a point interpolates linearly between both ends (the error is that of a
 * chord: below 2e-5 rad at 1 rad per sweep). */
struct ndt_deskew {
    float start_s, segments_per_s; /* segment = (time - start_s) * segments_per_s */
    struct ndt_deskew_transform boundaries[NDT_PREPROCESS_BOUNDARIES];
};

/* p_reference = exp(twist t) p_t for times t of the sweep, or by the poses of a piecewise motion. NULL: standing
 * still. */
void ndt_deskew_set(struct ndt_deskew *deskew, const struct ndt_sweep_motion *motion,
                    const struct ndt_sweep *sweep);
/* The correction from points deskewed with motion `from` to points deskewed with `to`. */
void ndt_deskew_set_change(struct ndt_deskew *deskew, const struct ndt_sweep_motion *from,
                           const struct ndt_sweep_motion *to, const struct ndt_sweep *sweep);
/* Moves the points of `in` to `out`, which may be the same; count and times of `out` stay as they are. Reads and
 * writes whole vectors, up to NDT_BLOCK_PAD points behind the last. */
void ndt_deskew_apply(const struct ndt_deskew *deskew, const struct ndt_point_block *in,
                      struct ndt_point_block *out);

/* ---- voxel_filter.c: replaces the points of each cell by their mean ----
 *
 * Cells are numbered in the order in which they are first met. Coordinates and times are summed as integers (see
 * ndt/preprocess_math.h), so cells and means do not depend on the order of the points; only the numbers of the
 * cells do. One owner; memory grows with the largest scan. */

struct ndt_filter_cell {
    uint64_t sum[4]; /* x y z from the corner of the cell, time from the begin of the sweep, in NDT_FILTER_PARTS */
    uint64_t key;
    uint32_t n; /* points */
};

struct ndt_voxel_filter {
    /* Hash table: number of a cell plus `base`. Anything below `base` counts as free, so nothing has to be cleared.
     * Only the first 1 << bits slots are in use, few enough to stay in the cache; more once half of them are taken.
     */
    uint32_t *slots;
    uint32_t base;
    int bits, most_bits;
    struct ndt_filter_cell *cells;
    size_t capacity, count; /* of cells */
    float voxel_m, inverse; /* inverse: 1 / voxel_m where multiplying by it is exact, else 0 */
    struct ndt_filter_times times;
};

/* Makes room for the cells of `points` points; drops all cells when it has to grow. */
NDT_MUST_CHECK enum ndt_status ndt_voxel_filter_reserve(struct ndt_voxel_filter *filter, size_t points,
                                                        struct ndt_error *err);
/* Drops all cells and sets the edge (above 0) and the sweep. */
void ndt_voxel_filter_start(struct ndt_voxel_filter *filter, double voxel_m, double begin_s, double end_s);
/* Points that are not finite, or a million cells away, are left out. */
void ndt_voxel_filter_add(struct ndt_voxel_filter *filter, const struct ndt_point_block *points);
/* Writes the means of cells picks[0 .. count - 1], or of the first `count` where picks is NULL. `out` has room for
 * them and for times. */
void ndt_voxel_filter_means(const struct ndt_voxel_filter *filter, const uint32_t *picks, size_t count,
                            struct ndt_cloud *out);
void ndt_voxel_filter_free(struct ndt_voxel_filter *filter);

#endif

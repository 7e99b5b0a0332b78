/* Private to the core: replaces the points of each cell by their mean. Cells are numbered in the order in which
 * they are first met. One owner; memory grows with the largest scan.
 *
 * Coordinates and times are summed as whole numbers (see ndt/preprocess_math.h): the cells and their means do not
 * depend on the order of the points, only the numbers of the cells do. */
#ifndef NDT_VOXEL_FILTER_H
#define NDT_VOXEL_FILTER_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/preprocess_math.h"
#include "point_block.h"

struct ndt_filter_cell {
    uint64_t sum[4]; /* x y z from the corner of the cell, time from the begin of the sweep, in NDT_FILTER_PARTS */
    uint64_t key;
    uint32_t n;
};

struct ndt_voxel_filter {
    /* Number of a cell plus `base`; whatever is below `base` counts as free: nothing has to be cleared. Only the
     * first 1 << bits are in use, few enough to stay in the cache, more once half of them are taken. */
    uint32_t *slots;
    uint32_t base;
    int bits, most_bits;
    struct ndt_filter_cell *cells;
    size_t capacity, count;
    float voxel_m, inverse;
    struct ndt_filter_times times;
};

/* Room for the cells of `points` points; after it has grown there are no cells. */
NDT_MUST_CHECK enum ndt_status ndt_voxel_filter_reserve(struct ndt_voxel_filter *filter, size_t points,
                                                        struct ndt_error *err);
/* No cells. voxel_m is above 0, begin_s and end_s are those of the sweep. */
void ndt_voxel_filter_start(struct ndt_voxel_filter *filter, double voxel_m, double begin_s, double end_s);
/* Points that are a million cells away or not finite are left out. */
void ndt_voxel_filter_add(struct ndt_voxel_filter *filter, const struct ndt_point_block *points);
/* The means of the cells picks[0 .. count - 1], or with NULL of the first `count`. `out` has room for them and
 * times. */
void ndt_voxel_filter_means(const struct ndt_voxel_filter *filter, const uint32_t *picks, size_t count,
                            struct ndt_cloud *out);
void ndt_voxel_filter_free(struct ndt_voxel_filter *filter);

#endif

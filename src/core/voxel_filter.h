/* Private to the core: replaces the points of each cell by their mean. Cells are numbered in the order in which
 * they are first met. One owner; memory grows with the largest scan. */
#ifndef NDT_VOXEL_FILTER_H
#define NDT_VOXEL_FILTER_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "point_block.h"

/* Two to a cache line. */
struct ndt_filter_cell {
    float sum[4]; /* x y z relative to the corner of the cell, time relative to that of its first point */
    uint64_t key;
    float first_s;
    uint32_t n;
};

struct ndt_voxel_filter {
    /* Number of a cell plus `base`; whatever is below `base` counts as free: nothing has to be cleared. Only the
     * first 1 << bits are in use, few enough to stay in the cache, more once half of them are taken. */
    uint32_t *slots;
    uint32_t base;
    int bits, most_bits;
    struct ndt_filter_cell *cells;
    float (*origins)[4]; /* per cell: its corner and the time of its first point */
    size_t capacity, count;
    float voxel_m, inverse;
};

/* No cells, and room for those of `points` points; voxel_m is above 0. */
NDT_MUST_CHECK enum ndt_status ndt_voxel_filter_start(struct ndt_voxel_filter *filter, size_t points,
                                                      double voxel_m, struct ndt_error *err);
/* Points that are a million cells away or not finite are left out. */
void ndt_voxel_filter_add(struct ndt_voxel_filter *filter, const struct ndt_point_block *points);
/* The means of the cells picks[0 .. count - 1], or with NULL of the first `count`. `out` has room for them and
 * times. */
void ndt_voxel_filter_means(const struct ndt_voxel_filter *filter, const uint32_t *picks, size_t count,
                            struct ndt_cloud *out);
void ndt_voxel_filter_free(struct ndt_voxel_filter *filter);

#endif

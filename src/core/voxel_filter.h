/* Private to the core: replaces the points of each cell by their mean, in the order in which cells are first met.
 * One owner; memory grows with the largest scan. */
#ifndef NDT_VOXEL_FILTER_H
#define NDT_VOXEL_FILTER_H

#include <stdint.h>

#include "ndt/cloud.h"

struct ndt_filter_slot {
    uint64_t key;
    uint32_t round; /* slots of earlier scans count as free: nothing has to be cleared */
    uint32_t index;
};

struct ndt_filter_cell {
    float sum[4]; /* x y z relative to the corner of the cell, time relative to that of its first point */
    float corner_m[3];
    float first_s;
    uint32_t n;
};

struct ndt_voxel_filter {
    struct ndt_filter_slot *slots;
    size_t slot_count; /* power of two */
    struct ndt_filter_cell *cells;
    size_t cell_capacity, cell_count;
    uint32_t round;
};

NDT_MUST_CHECK enum ndt_status ndt_voxel_filter_run(struct ndt_voxel_filter *filter, const struct ndt_cloud *in,
                                                    double voxel_m, struct ndt_cloud *out, struct ndt_error *err);
void ndt_voxel_filter_free(struct ndt_voxel_filter *filter);

#endif

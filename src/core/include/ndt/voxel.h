/* The voxel record, shared by the CPU and the CUDA backend (compiled by gcc and nvcc). */
#ifndef NDT_VOXEL_H
#define NDT_VOXEL_H

#include <stdint.h>

/* One Gaussian, one cache line; what the matcher needs fills its first 48 bytes. The mean is relative to the lower
 * corner of the voxel's own cell, so float keeps its full precision anywhere in the world: the cell number carries
 * the position. The inverse covariance is the upper triangle xx xy xz yy yz zz [1/m^2]. Record 0 of every level is
 * the null voxel (zero inverse covariance, count 0); neighbour lists are padded with it. */
struct ndt_voxel {
    float mean_m[3];
    float icov[6];
    int32_t cell[3]; /* cell number: floor((x_map - origin_m) / leaf_m) */
    uint32_t count;  /* points behind the Gaussian */
    uint32_t reserved[3];
};

#endif

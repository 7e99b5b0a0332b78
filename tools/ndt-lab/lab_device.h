/* Kernels of ndt-lab-device, as cudaLaunchKernel wants them: one struct ndt_gpu_job by value, NDT_GPU_BLOCK threads
 * per block, one point per thread. */
#ifndef LAB_DEVICE_H
#define LAB_DEVICE_H

#include "gpu_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 32 numbers from each x_m[i], summed over the block into a row of block_sums. */
const void *lab_kernel_shuffled(void); /* as the product: warp shuffles, then one row per warp */
const void *lab_kernel_shared(void);   /* through shared memory */
/* Nine words of eight voxels per point, summed into terms[i]. */
const void *lab_kernel_rows(void);    /* level.voxels */
const void *lab_kernel_columns(void); /* jacobian: word w of voxel v at [w * stride + v] */
/* About as long as an evaluation: terms[i] from x_m[i]. */
const void *lab_kernel_busy(void);

enum { LAB_VOXELS = 20000, LAB_VOXELS_PER_POINT = 8 };

#ifdef __cplusplus
}
#endif
#endif

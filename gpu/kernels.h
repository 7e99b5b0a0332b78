/** @file
 * @brief The kernels, for cudaLaunchKernel.
 *
 * Each kernel has one argument, a struct ndt_gpu_job by value, and is launched with NDT_GPU_BLOCK threads per block
 * unless its comment says otherwise. */
#ifndef NDT_GPU_KERNELS_H
#define NDT_GPU_KERNELS_H

#include "gpu_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** staged: in this order. One block per NDT_GPU_BLOCK points; `finish` has one block. */
const void *ndt_kernel_jacobian(void);      /* points -> moved_m, jacobian */
const void *ndt_kernel_point_hessian(void); /**< points -> point_hessian */
const void *ndt_kernel_terms(void);         /* both buffers -> terms */
const void *ndt_kernel_reduce(void);        /* terms -> block_sums */
const void *ndt_kernel_finish(void);        /* block_sums -> sums */
/** fused: points -> sums, one block per NDT_GPU_BLOCK points; the last block adds the rows. */
const void *ndt_kernel_fused(void);
/** The information of the scan: points -> NDT_GPU_PLANES rows of sums, launched like `fused`. */
const void *ndt_kernel_inform(void);
/** resident: job.batch -> its items. See kernels_resident.cu. Blocks of teams have a multiple of NDT_GPU_BLOCK
 * threads, NDT_GPU_TEAM or NDT_GPU_CLUSTER_TEAM at most; those kernels and the one of the information have a struct
 * ndt_gpu_single as second argument. */
const void *ndt_kernel_resident_block(void);   /* one block per item */
const void *ndt_kernel_resident_cluster(void); /**< one cluster per item, of NDT_GPU_CLUSTER_ROWS rows at most */
const void *ndt_kernel_resident_pass(void);    /* one pass of all items, job.blocks blocks each */
/** One pass that also ends the loop of the graph that runs it. Only drivers for CUDA 12.4 can load its module. */
const void *ndt_kernel_resident_loop(void);
/** The information of each finished item at its answer; job.blocks blocks each, at least as many as the item has.
 */
const void *ndt_kernel_resident_inform(void);
/** preprocessing: raw points -> scan 0, on job.preprocess, in this order; see kernels_preprocess.cu. */
const void *ndt_kernel_preprocess_place(void); /**< one thread per raw point, as the next two */
const void *ndt_kernel_preprocess_add(void);
const void *ndt_kernel_preprocess_list(void);
const void *ndt_kernel_preprocess_sample(void); /* one thread per point of the scan */
const void *ndt_kernel_preprocess_again(void);  /**< deskews with another motion, in place of all four */
const void *ndt_kernel_preprocess_begin(void);  /**< before an alignment: job.batch, one thread per item */
/** search: job.search -> its peaks. A team per window and NDT_GPU_HYPOTHESES hypotheses. */
const void *ndt_kernel_search_score(void);
/** scores: job.scores -> its sums; the points and level of the job. A block per pose and part. */
const void *ndt_kernel_score_poses(void);
/** The empty kernel, which measures the cost of a launch. */
const void *ndt_kernel_empty(void);

#ifdef __cplusplus
}
#endif
#endif

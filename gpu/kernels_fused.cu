/** @file
 * @brief fused: one kernel per evaluation, and one for the information of a scan.
 *
 * One point per thread; everything about a point stays in registers. */
#include "kernels.h"
#include "inform_point.cuh"

/* Whether this block is the last of the grid to arrive; the same value for all its threads. */
static __device__ inline bool is_last_block(const struct ndt_gpu_job &job)
{
    __shared__ uint32_t place;
    if (owns_sums())
        __threadfence(); /* the row of this block is visible before the block is counted */
    __syncthreads();     /* every thread's part of the row is written */
    if (threadIdx.x == 0)
        place = atomicAdd(job.ticket, 1u);
    __syncthreads(); /* place is known */
    return place == gridDim.x - 1;
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_fused(const struct ndt_gpu_job job)
{
    __shared__ struct ndt_tables_f tables;
    float values[NDT_GPU_ROW] = {};
    share_tables(job, &tables);
    const uint32_t i = point_index();
    if (i < job.count)
        eval_point(job, &tables, i, values);
    store_block_sums(job, values);
    if (!is_last_block(job))
        return;
    __threadfence();
    add_block_sums(job);
    if (threadIdx.x == 0)
        *job.ticket = 0; /* for the next launch */
}

struct inform_share {
    struct ndt_gpu_job view;
    struct ndt_tables_f tables;
    float rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    double parts[NDT_GPU_WARPS][NDT_GPU_ROW];
};

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK, 4) ndt_inform(const struct ndt_gpu_job job)
{
    __shared__ struct inform_share share;
    const struct planes first = {job.block_sums, job.sums};
    if (threadIdx.x == 0)
        share.view = job;
    share_tables(job, &share.tables);
    inform_row(&share.view, &share.tables, first, job.times_at ? job.x_m + job.times_at : NULL, blockIdx.x,
               share.rows);
    if (!is_last_block(job))
        return;
    __threadfence();
    add_planes(&share.view, first, share.parts);
    if (threadIdx.x == 0)
        *job.ticket = 0; /* for the next launch */
}

/* Does nothing; measures the cost of a launch. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_empty(const struct ndt_gpu_job job)
{
    (void)job;
}

extern "C" const void *ndt_kernel_fused(void)
{
    return (const void *)ndt_fused;
}

extern "C" const void *ndt_kernel_inform(void)
{
    return (const void *)ndt_inform;
}

extern "C" const void *ndt_kernel_empty(void)
{
    return (const void *)ndt_empty;
}

/* fused: one kernel per evaluation. One point per thread; everything about a point stays in registers. */
#include "kernels.h"
#include "lookup.cuh"
#include "reduce.cuh"

/* What point i adds to the sums; `values` is zero before. */
static __device__ inline void eval_point(const struct ndt_gpu_job &job, const struct ndt_tables_f *tables,
                                         uint32_t i, float values[NDT_GPU_ROW])
{
    float x[3], near_m[3];
    load_point(job, i, x);
    for (int k = 0; k < 3; k++)
        near_m[k] = ndt_dot_f(tables->R + 3 * k, x) + job.t_m[k];
    struct ndt_point_sums_f sums = {};
    const uint32_t pairs = add_neighbours(job, near_m, &sums);
    if (pairs == 0)
        return;
    values[NDT_GPU_SCORE] = sums.score;
    values[NDT_GPU_NEAREST] = sums.best;
    values[NDT_GPU_MATCHED] = 1.0f;
    values[NDT_GPU_PAIRS] = (float)pairs;
    ndt_add_point_f(tables, x, &sums, values + NDT_GPU_GRADIENT, values + NDT_GPU_HESSIAN);
}

/* Whether this block is the last of the grid to come here; all its threads get the answer. */
static __device__ inline bool is_last_block(const struct ndt_gpu_job &job)
{
    __shared__ uint32_t place;
    __threadfence(); /* this block's row is seen by all before it is counted */
    __syncthreads(); /* every thread's part of the row is written */
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

extern "C" const void *ndt_kernel_fused(void)
{
    return (const void *)ndt_fused;
}

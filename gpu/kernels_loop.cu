/** @file
 * @brief resident: a pass that repeats itself, in a graph with a conditional node.
 *
 * A module of its own: it refers to cudaGraphSetConditional, which drivers before CUDA 12.4 cannot resolve, so that
 * they cannot load it. Kernels are loaded with their first use (programming guide, "Lazy Loading"). */
#include "pass_device.cuh"

/* Ends the loop, which is bounded in any case: a launch ends after control.pass_limit passes (and one for the
 * coverage). A launch without work has the limit 0. Only one block ends the loop: `active` may be zero here because
 * the other blocks are done already. */
static __device__ inline void end_idle_loop(struct ndt_gpu_batch *batch, uint64_t loop)
{
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    const int32_t runs = ++batch->control.runs;
    if (runs > batch->control.pass_limit + batch->control.give_up)
        cudaGraphSetConditional(loop, 0);
}

/* A pass in the loop; job.blocks: blocks of the grid per item, at least as many as each item has. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK, 4) ndt_resident_loop(const struct ndt_gpu_job job)
{
    __shared__ struct pass_block share;
    end_idle_loop(job.batch, job.loop);
    if (run_pass(job, &share))
        cudaGraphSetConditional(job.loop, 0);
    __syncthreads(); /* for racecheck, which takes all passes of the loop for one launch */
}

extern "C" const void *ndt_kernel_resident_loop(void)
{
    return (const void *)ndt_resident_loop;
}

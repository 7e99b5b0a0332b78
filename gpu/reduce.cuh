/* Sums of a block and over blocks, always in the same order: no atomics on floats, no dependence on timing. */
#ifndef NDT_REDUCE_CUH
#define NDT_REDUCE_CUH

#include "point_device.cuh"

/* One step of sum_over_warp: of 2 HALF numbers each lane keeps half, and gives the rest to the lane that keeps
 * those. */
template <int HALF> static __device__ inline void halve(float values[NDT_GPU_ROW])
{
    const bool upper = (threadIdx.x & (unsigned)HALF) != 0;
#pragma unroll
    for (int k = 0; k < HALF; k++) {
        const float keep = upper ? values[k + HALF] : values[k];
        const float give = upper ? values[k] : values[k + HALF];
        values[k] = keep + __shfl_xor_sync(0xffffffffu, give, HALF);
    }
}

/* values[k] summed over the 32 lanes of a warp, for all k at once: returns the sum of values[lane]. 31 shuffles
 * instead of 5 x 32. */
static __device__ inline float sum_over_warp(float values[NDT_GPU_ROW])
{
    halve<16>(values);
    halve<8>(values);
    halve<4>(values);
    halve<2>(values);
    halve<1>(values);
    return values[0];
}

/* One number per thread and column: adds the NDT_GPU_WARPS rows in double; the result is valid in the first warp.
 */
template <class T> static __device__ inline double sum_over_rows(T rows[NDT_GPU_WARPS][NDT_GPU_ROW], T value)
{
    const unsigned warp = threadIdx.x / (unsigned)NDT_GPU_WARP, lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    double sum = 0;
    rows[warp][lane] = value;
    __syncthreads(); /* all rows are there */
    if (warp == 0)
        for (int i = 0; i < NDT_GPU_WARPS; i++)
            sum += (double)rows[i][lane];
    return sum;
}

/* Writes the block's row of sums; every thread of the block has to come. */
static __device__ inline void store_block_sums(const struct ndt_gpu_job &job, float values[NDT_GPU_ROW])
{
    __shared__ float rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    const double sum = sum_over_rows<float>(rows, sum_over_warp(values));
    if (threadIdx.x < (unsigned)NDT_GPU_ROW)
        job.block_sums[(size_t)blockIdx.x * NDT_GPU_ROW + threadIdx.x] = sum;
}

/* The rows of all blocks into the final sums; one block does it, every thread of it has to come. */
static __device__ inline void add_block_sums(const struct ndt_gpu_job &job)
{
    __shared__ double rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    const unsigned warp = threadIdx.x / (unsigned)NDT_GPU_WARP, lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    const volatile double *block_sums = job.block_sums; /* other blocks wrote them: not from the L1 cache */
    double part = 0;
#pragma unroll 4
    for (uint32_t row = warp; row < job.blocks; row += (uint32_t)NDT_GPU_WARPS)
        part += block_sums[(size_t)row * NDT_GPU_ROW + lane];
    const double sum = sum_over_rows<double>(rows, part);
    if (threadIdx.x < (unsigned)NDT_GPU_SUMS)
        job.sums[threadIdx.x] =
            threadIdx.x == NDT_GPU_SCORE || threadIdx.x == NDT_GPU_NEAREST ? -job.level.d1 * sum : sum;
}

#endif

/** @file
 * @brief Sums of a block and over blocks, always in the same order: no atomics on floats, no dependence on timing.
 */
#ifndef NDT_REDUCE_CUH
#define NDT_REDUCE_CUH

#include "coherent.cuh"
#include "point_device.cuh"

/* Makes one step of sum_over_warp: of 2 HALF numbers each lane keeps half, and gives the rest to the lane that
 * keeps that half. */
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

/* Sums values[k] over the 32 lanes of a warp, for all k at once: returns the sum of values[lane]. 31 shuffles
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

/* A group is NDT_GPU_BLOCK consecutive threads: the whole block, except in the teams of the resident kernels. */
static __device__ inline unsigned group_of_thread()
{
    return threadIdx.x / (unsigned)NDT_GPU_BLOCK;
}

/* The first warp of a group owns the sums of the group. */
static __device__ inline bool owns_sums()
{
    return threadIdx.x % (unsigned)NDT_GPU_BLOCK < (unsigned)NDT_GPU_WARP;
}

/* Sums over the threads of a group, in double after the warps; lane k of the owning warp has number k. `rows` is
 * shared memory of the group; every thread of the block has to call it. */
static __device__ inline double sum_group(float values[NDT_GPU_ROW], float rows[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    const unsigned lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    rows[threadIdx.x % (unsigned)NDT_GPU_BLOCK / (unsigned)NDT_GPU_WARP][lane] = sum_over_warp(values);
    __syncthreads(); /* all rows are there */
    double sum = 0;
    if (owns_sums())
        for (int i = 0; i < NDT_GPU_WARPS; i++)
            sum += (double)rows[i][lane];
    return sum;
}

/* Stores the sums of a group in row `row` of job.block_sums, if it exists. Every thread of the block has to call
 * it. */
static __device__ inline void store_row(const struct ndt_gpu_job &job, uint32_t row, float values[NDT_GPU_ROW],
                                        float rows[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    const double sum = sum_group(values, rows);
    if (owns_sums() && row < job.blocks)
        job.block_sums[(size_t)row * NDT_GPU_ROW + threadIdx.x % (unsigned)NDT_GPU_WARP] = sum;
}

static __device__ inline void store_block_sums(const struct ndt_gpu_job &job, float values[NDT_GPU_ROW])
{
    __shared__ float rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    store_row(job, blockIdx.x, values, rows);
}

/* Adds rows `first`, first + NDT_GPU_WARPS, ... of a column, in this order. Eight loads are under way at a time.
 * Zeros in place of missing rows change no bit: a sum that begins with +0 never becomes -0. */
static __device__ inline double add_column(const double *column, uint32_t first, uint32_t rows)
{
    enum { AHEAD = 8 };
    double sum = 0;
    for (uint32_t row = first; row < rows; row += (uint32_t)(AHEAD * NDT_GPU_WARPS)) {
        double next[AHEAD];
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; k++) {
            const uint32_t at = row + k * (uint32_t)NDT_GPU_WARPS;
            next[k] = at < rows ? load_coherent(column + (size_t)at * NDT_GPU_ROW) : 0;
        }
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; k++)
            sum += next[k];
    }
    return sum;
}

/* Adds the parts of the first group to the final sums. Every thread of the block has to call it. */
static __device__ inline void add_parts(const struct ndt_gpu_job &job,
                                        const double parts[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    __syncthreads(); /* all parts are there */
    if (threadIdx.x >= (unsigned)NDT_GPU_SUMS)
        return;
    double sum = 0;
    for (int i = 0; i < NDT_GPU_WARPS; i++)
        sum += parts[i][threadIdx.x];
    job.sums[threadIdx.x] =
        threadIdx.x == NDT_GPU_SCORE || threadIdx.x == NDT_GPU_NEAREST ? -job.level.d1 * sum : sum;
}

/* Adds the rows of all blocks to the final sums, by the first group of one block: the order does not depend on the
 * size of the block. `parts` is shared memory; every thread of the block has to call it. */
static __device__ inline void add_rows(const struct ndt_gpu_job &job, double parts[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    const unsigned warp = threadIdx.x / (unsigned)NDT_GPU_WARP, lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    if (warp < (unsigned)NDT_GPU_WARPS) {
        const double part = add_column(job.block_sums + lane, warp, job.blocks);
        parts[warp][lane] = part;
    }
    add_parts(job, parts);
}

static __device__ inline void add_block_sums(const struct ndt_gpu_job &job)
{
    __shared__ double parts[NDT_GPU_WARPS][NDT_GPU_ROW];
    add_rows(job, parts);
}

#endif

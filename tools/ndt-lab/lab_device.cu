#include <cuda_runtime.h>

#include "lab_device.h"
#include "reduce.cuh"

static __device__ inline void spread(const struct ndt_gpu_job &job, float values[NDT_GPU_ROW])
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = i < job.count ? job.x_m[i] : 0;
    for (int k = 0; k < NDT_GPU_ROW; k++)
        values[k] = x * (float)(k + 1);
}

extern "C" __global__ void lab_shuffled(const struct ndt_gpu_job job)
{
    float values[NDT_GPU_ROW];
    spread(job, values);
    store_block_sums(job, values);
}

/* One number of every thread per column; a pad keeps the columns in different banks. */
extern "C" __global__ void lab_shared(const struct ndt_gpu_job job)
{
    __shared__ float all[NDT_GPU_BLOCK][NDT_GPU_ROW + 1];
    __shared__ double parts[NDT_GPU_WARPS][NDT_GPU_ROW];
    float values[NDT_GPU_ROW];
    const unsigned lane = threadIdx.x % (unsigned)NDT_GPU_WARP, warp = threadIdx.x / (unsigned)NDT_GPU_WARP;
    spread(job, values);
    for (int k = 0; k < NDT_GPU_ROW; k++)
        all[threadIdx.x][k] = values[k];
    __syncthreads(); /* all numbers are there */
    float sum = 0;
    for (unsigned r = 0; r < NDT_GPU_WARP; r++)
        sum += all[warp * NDT_GPU_WARP + r][lane];
    parts[warp][lane] = (double)sum;
    __syncthreads(); /* all parts are there */
    if (warp != 0)
        return;
    double whole = 0;
    for (int w = 0; w < NDT_GPU_WARPS; w++)
        whole += parts[w][lane];
    job.block_sums[(size_t)blockIdx.x * NDT_GPU_ROW + lane] = whole;
}

/* Neighbours of a place that jumps from point to point, as voxels around points do. */
static __device__ inline uint32_t voxel_of(uint32_t point, uint32_t k)
{
    return (point * 2654435761u / 64 + k * 37) % (uint32_t)LAB_VOXELS;
}

extern "C" __global__ void lab_rows(const struct ndt_gpu_job job)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.count)
        return;
    float sum = 0;
    for (uint32_t k = 0; k < LAB_VOXELS_PER_POINT; k++) {
        const float *words = job.level.voxels[voxel_of(i, k)].mean_m;
        for (int w = 0; w < 9; w++)
            sum += words[w];
    }
    job.terms[i] = sum;
}

extern "C" __global__ void lab_columns(const struct ndt_gpu_job job)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.count)
        return;
    float sum = 0;
    for (uint32_t k = 0; k < LAB_VOXELS_PER_POINT; k++)
        for (int w = 0; w < 9; w++)
            sum += job.jacobian[(size_t)w * job.stride + voxel_of(i, k)];
    job.terms[i] = sum;
}

extern "C" __global__ void lab_busy(const struct ndt_gpu_job job)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.count)
        return;
    float value = job.x_m[i];
    for (int k = 0; k < 400; k++)
        value = value * 0.999f + 0.001f;
    job.terms[i] = value;
}

extern "C" const void *lab_kernel_shuffled(void)
{
    return (const void *)lab_shuffled;
}

extern "C" const void *lab_kernel_shared(void)
{
    return (const void *)lab_shared;
}

extern "C" const void *lab_kernel_rows(void)
{
    return (const void *)lab_rows;
}

extern "C" const void *lab_kernel_columns(void)
{
    return (const void *)lab_columns;
}

extern "C" const void *lab_kernel_busy(void)
{
    return (const void *)lab_busy;
}

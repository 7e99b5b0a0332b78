#include "device_kernels.h"

#include "cluster.cuh"
#include "gpu_job.h"

extern "C" __global__ void count_up(const struct ndt_gpu_job job)
{
    if (threadIdx.x != 0)
        return;
    job.sums[2 + blockIdx.x] = 1;
    __threadfence();
    if (atomicAdd(job.ticket, 1u) != gridDim.x - 1)
        return;
    *job.ticket = 0;
    job.sums[0] += gridDim.x;
    job.sums[1] += 1;
    if (job.count == 0 || job.sums[1] < job.count)
        return;
    job.sums[1] = 0;
    cudaGraphSetConditional(job.loop, 0);
}

extern "C" __global__ void take(const struct ndt_gpu_job job)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < job.count)
        job.sums[i] = job.x_m[i];
}

extern "C" __global__ void pass_on(const struct ndt_gpu_job job)
{
    const unsigned size = cluster_size(), rank = cluster_rank(), first = blockIdx.x - rank;
    const unsigned next = first + (rank + 1) % size;
    job.block_sums[blockIdx.x * blockDim.x + threadIdx.x] = 1000.0 * blockIdx.x + threadIdx.x;
    if (job.count > 0)
        cluster_barrier();
    job.sums[blockIdx.x * blockDim.x + threadIdx.x] = job.block_sums[next * blockDim.x + threadIdx.x];
}

static __device__ inline bool shuffles_work()
{
    const unsigned lane = threadIdx.x % 32, all = 0xffffffffu;
    const double number = 0.5 + threadIdx.x;
    bool good = __shfl_sync(all, number, 7) == number - lane + 7;
    good &= __shfl_xor_sync(all, number, 16) == number - lane + (lane ^ 16);
    good &= __shfl_down_sync(all, threadIdx.x, 4) == (lane + 4 < 32 ? threadIdx.x + 4 : threadIdx.x);
    good &= __shfl_up_sync(all, (float)lane, 1) == (lane ? (float)lane - 1 : 0.0f);
    good &= __ballot_sync(all, lane % 2) == 0xaaaaaaaau;
    return good && __any_sync(all, lane == 31) && !__all_sync(all, lane > 0);
}

extern "C" __global__ void work_together(const struct ndt_gpu_job job)
{
    __shared__ uint32_t place;
    const bool none = !__syncthreads_or(0), one = __syncthreads_or(threadIdx.x == blockDim.x - 1) != 0;
    const bool all = __syncthreads_and(1) != 0, some = __syncthreads_count(threadIdx.x < 5) == 5;
    const bool votes = __syncthreads_or(!(none && one && all && some)) == 0;
    const bool shuffles = __syncthreads_or(!shuffles_work()) == 0;
    atomicAdd(job.ticket, 2u);
    atomicSub(job.ticket, 1u);
    atomicOr(job.ticket + 1, 1u << threadIdx.x % 32);
    __syncthreads();
    if (threadIdx.x == 0)
        place = *job.ticket;
    __syncthreads();
    if (threadIdx.x != 3)
        return;
    job.sums[0] = votes;
    job.sums[1] = shuffles;
    job.sums[2] = place == blockDim.x && job.ticket[1] == 0xffffffffu;
    job.sums[3] = __dadd_rn(__dmul_rn(3.0, 5.0), 1.0) == 16.0 && __ldcg(job.ticket) == place;
}

extern "C" __global__ void part_candidates(const struct ndt_gpu_job job)
{
    (void)job;
    if (threadIdx.x < 32)
        __syncthreads();
    else
        cluster_barrier();
}

extern "C" __global__ void steer_twice(const struct ndt_gpu_job job)
{
    if (threadIdx.x < 2)
        cudaGraphSetConditional(job.loop, 0);
}

extern "C" __global__ void go_on(const struct ndt_gpu_job job)
{
    (void)job;
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) bounded(const struct ndt_gpu_job job)
{
    (void)job;
}

#define KERNEL(name)                                                                                               \
    extern "C" const void *kernel_##name(void)                                                                     \
    {                                                                                                              \
        return (const void *)name;                                                                                 \
    }
KERNEL(count_up)
KERNEL(take)
KERNEL(pass_on)
KERNEL(work_together)
KERNEL(part_candidates)
KERNEL(steer_twice)
KERNEL(go_on)
KERNEL(bounded)

/** @file
 * @brief Thread-block clusters in device code, without a library.
 *
 * A block that was launched without a cluster is a cluster
 * of its own: rank 0 of 1, and the barrier is that of the block. */
#ifndef NDT_CLUSTER_CUH
#define NDT_CLUSTER_CUH

#include <cuda_runtime.h>

/* Rank of this block within its cluster, and how many blocks that has. Ranks follow the numbers of the blocks. */
static __device__ inline unsigned cluster_rank()
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    return emulated_cluster_rank();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return 0;
#endif
}

static __device__ inline unsigned cluster_size()
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    return emulated_cluster_size();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
#else
    return 1;
#endif
}

/* Every thread of every block of the cluster has to call it, diverged or not. Writes before it, to global memory
 * too, are visible to all after it (except for loads through the constant cache: no __ldg for such memory). */
static __device__ inline void cluster_barrier()
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_cluster_barrier();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    __syncthreads();
#endif
}

#endif

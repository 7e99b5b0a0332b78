/** @file
 * @brief Thread-block clusters in device code, without a library.
 *
 * A block launched without a cluster is a cluster of its own: rank 0 of 1.
 *
 * Blocks exchange words through shared memory (programming guide, "Distributed Shared Memory"): a store names a
 * word of another block and a barrier of that block, which counts the bytes that arrive; the threads of that block
 * wait for their number. Unlike the barrier of the cluster, such a wait does not empty the L1 cache: only shared
 * memory is handed over. */
#ifndef NDT_CLUSTER_CUH
#define NDT_CLUSTER_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define NDT_HAS_CLUSTERS 1
#endif

/* Rank of this block within its cluster, and the number of its blocks. Ranks follow the numbers of the blocks. */
static __device__ inline unsigned cluster_rank()
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    return emulated_cluster_rank();
#elif defined(NDT_HAS_CLUSTERS)
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
#elif defined(NDT_HAS_CLUSTERS)
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
#else
    return 1;
#endif
}

/* Waits for the cluster; every thread of every block has to call it, diverged or not. Earlier writes, to global
 * memory too, are visible to all threads after it (except for loads through the constant cache: no __ldg for such
 * memory). */
static __device__ inline void cluster_barrier()
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_cluster_barrier();
#elif defined(NDT_HAS_CLUSTERS)
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    __syncthreads();
#endif
}

/* A barrier in shared memory that counts bytes. Its phases follow one another: each ends when one thread of the
 * block has said how many bytes belong to it and all of them have arrived, in any order (PTX ISA, "mbarrier": the
 * count of bytes may be negative meanwhile). */
typedef uint64_t byte_barrier;

/* Initialises a barrier. One thread; other blocks may use it after the next cluster_barrier. */
static __device__ inline void byte_barrier_begin(byte_barrier *barrier)
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_mbarrier_init(barrier, 1);
#elif defined(NDT_HAS_CLUSTERS)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
#else
    *barrier = 0;
#endif
}

/* Sets the number of bytes of a phase. One thread, once per phase. */
static __device__ inline void byte_barrier_expect(byte_barrier *barrier, unsigned bytes)
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_mbarrier_expect(barrier, bytes);
#elif defined(NDT_HAS_CLUSTERS)
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(bytes)
                 : "memory");
#else
    *barrier += bytes;
#endif
}

/* Waits for the end of phase number `phase`, which must not be more than one phase ago. Then the words that belong
 * to it are seen by this thread. The scope is the block: with that of the cluster the wait would empty the L1
 * cache, for global memory, of which nothing is handed over. */
static __device__ inline void byte_barrier_wait(byte_barrier *barrier, unsigned phase)
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_mbarrier_wait(barrier, phase & 1);
#elif defined(NDT_HAS_CLUSTERS)
    unsigned is_over = 0;
    while (!is_over)
        asm volatile("{\n"
                     ".reg .pred over;\n"
                     "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n"
                     "}"
                     : "=r"(is_over)
                     : "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(phase & 1)
                     : "memory");
#else
    (void)barrier;
    (void)phase;
#endif
}

/* Stores a word in the shared memory of the block of that rank, where that block has `to`, and counts its eight
 * bytes at `barrier` there. That block must not end before the word has arrived. */
static __device__ inline void store_at_rank(unsigned rank, uint64_t *to, uint64_t value, byte_barrier *barrier)
{
#if defined(EMULATED_CUDA_RUNTIME_H)
    emulated_remote_store(to, rank, barrier, &value, sizeof(value));
#elif defined(NDT_HAS_CLUSTERS)
    unsigned there, counted;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(counted)
                 : "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(rank));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(there),
                 "l"(value), "r"(counted)
                 : "memory");
#else
    (void)rank;
    *to = value;
    *barrier -= sizeof(value);
#endif
}

#endif

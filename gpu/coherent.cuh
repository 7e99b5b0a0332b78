/** @file
 * @brief Loads of what other blocks of the same launch wrote.
 *
 * The writer passes __threadfence(), then a barrier after which one thread of its block makes an atomic operation;
 * the reader's block makes an atomic operation on the same word later, then passes a barrier and __threadfence().
 * Such a fence is fence.sc (Programming Guide, "Memory Fence Functions"). In the memory consistency model of the
 * PTX ISA (sm_70 and later) the writer's fence precedes the reader's in Fence-SC order, as the order of the atomic
 * operations excludes the opposite; a fence.sc synchronizes with one that it precedes ("Synchronizes"), so the
 * write precedes the load in causality order, and the load returns it ("Axioms", "Causality"). This covers weak
 * loads with any cache operator: "The use of a cache operator on an ld or st instruction does not change the memory
 * consistency behavior of the program"
 * ("Cache Operators").
 *
 * ld.cg caches in L2 only, "bypassing the L1 cache", and unlike volatile loads several of them are under way at a
 * time. The clobbered memory keeps the compiler from moving one across a fence or a barrier. */
#ifndef NDT_COHERENT_CUH
#define NDT_COHERENT_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef EMULATED_CUDA_RUNTIME_H

template <class T> static __device__ inline T load_coherent(const T *at)
{
    return __ldcg(at);
}

#else

static __device__ inline double load_coherent(const double *at)
{
    double value;
    asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(value) : "l"(at) : "memory");
    return value;
}

static __device__ inline float load_coherent(const float *at)
{
    float value;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
    return value;
}

static __device__ inline uint32_t load_coherent(const uint32_t *at)
{
    uint32_t value;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

#endif
#endif

/** @file
 * @brief The parts of CUDA that device code uses, for a C++ compiler; see cuda_runtime_api.h. */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "emulated_bounds.h"
#include "emulated_graph.h"
#include "emulated_remote.h"
#include "ndt/clock.h"

/* Parts of the emulation are not seen by the race detector. */
#define EMULATED_ONLY __attribute__((no_sanitize("thread")))
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
/* One block runs at a time, and its shared memory is put in place for that: see emulated_grid.c. */
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulated_grid_now.thread)
#define blockIdx  (emulated_grid_now.block)
#define gridDim   (emulated_grid_now.blocks)
#define blockDim  (emulated_grid_now.threads)

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(8) float2 {
    float x, y;
};

template <class To, class From> static inline To emulated_bits(From from)
{
    static_assert(sizeof(From) <= sizeof(uint64_t) && sizeof(To) <= sizeof(uint64_t), "a plain number");
    uint64_t bits = 0;
    To to;
    memcpy(&bits, &from, sizeof(from));
    memcpy(&to, &bits, sizeof(to));
    return to;
}

template <class T> struct emulated_same {
    typedef T type;
};

static inline int __float_as_int(float x)
{
    return emulated_bits<int>(x);
}

/* One operation and one rounding, never a part of a fused one: a compiler that contracts does so within functions.
 */
#define EMULATED_ROUNDED static __attribute__((noinline, unused))
EMULATED_ROUNDED double __dmul_rn(double a, double b)
{
    return a * b;
}

EMULATED_ROUNDED double __dadd_rn(double a, double b)
{
    return a + b;
}

/* Barriers and fences. */
static inline void __syncthreads(void)
{
    emulated_plain_barrier();
}

static inline int __syncthreads_or(int value)
{
    return emulated_barrier(value) > 0;
}

static inline int __syncthreads_count(int value)
{
    return (int)emulated_barrier(value);
}

static inline int __syncthreads_and(int value)
{
    return emulated_barrier(!value) == 0;
}

static inline void __threadfence(void)
{
    emulated_fence();
}

static inline void __nanosleep(unsigned)
{
    emulated_yield();
}

/* Within a warp. Lanes beyond the end keep their own value, as on a device. None of them orders memory ("These
 * intrinsics do not imply a memory barrier", CUDA C++ Programming Guide, warp vote, match, reduce and shuffle
 * functions), except __syncwarp ("guarantees memory ordering among threads participating in the barrier"). */
template <class T> static inline T emulated_shuffle(unsigned mask, T value, unsigned from)
{
    const uint64_t *offered = emulated_exchange(mask, emulated_bits<uint64_t>(value));
    return from < 32 ? emulated_bits<T>(offered[from]) : value;
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    const unsigned first = threadIdx.x % 32 & ~((unsigned)width - 1);
    return emulated_shuffle(mask, value, first + ((unsigned)lane & ((unsigned)width - 1)));
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    return emulated_shuffle(mask, value, threadIdx.x % 32 ^ (unsigned)lanes);
}

template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned lanes)
{
    return emulated_shuffle(mask, value, threadIdx.x % 32 + lanes);
}

template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned lanes)
{
    return emulated_shuffle(mask, value, threadIdx.x % 32 - lanes);
}

static inline unsigned __ballot_sync(unsigned mask, int value)
{
    const uint64_t *offered = emulated_exchange(mask, value != 0);
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; i++)
        bits |= (unsigned)offered[i] << i;
    return bits;
}

static inline int __any_sync(unsigned mask, int value)
{
    return __ballot_sync(mask, value) != 0;
}

static inline int __all_sync(unsigned mask, int value)
{
    return __ballot_sync(mask, value) == 0xffffffffu;
}

/* The lanes that offer the same value. */
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value)
{
    const uint64_t mine = emulated_bits<uint64_t>(value), *offered = emulated_exchange(mask, mine);
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; i++)
        bits |= (unsigned)(offered[i] == mine) << i;
    return bits;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emulated_warp_barrier(mask);
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* A load past the first-level cache: for the memory model the same as a plain one ("cache operators on load or
 * store instructions are treated as performance hints only", PTX ISA, cache operators). */
template <class T> EMULATED_ONLY static inline T __ldcg(const T *at)
{
    emulated_plain(at, sizeof(T), 0);
    return *at;
}

template <class T> EMULATED_ONLY static inline void __stcg(T *at, typename emulated_same<T>::type value)
{
    emulated_plain(at, sizeof(T), 1);
    *at = value;
}

/* Loads through the cache of constant data: nothing may write there while the kernel runs. */
template <class T> EMULATED_ONLY static inline T __ldg(const T *at)
{
    emulated_constant(at, sizeof(T));
    return *at;
}

/* Atomics are relaxed ("these functions do not impose ordering", Programming Guide, atomic functions); another
 * thread runs after each of them. One that a planted fault removes is a load and a store. */
template <class T, class Change> EMULATED_ONLY static inline T emulated_change(T *at, Change change)
{
    const int is_whole = emulated_atomic_begins(at, sizeof(T));
    const T before = *at;
    T after = before;
    const int writes = change(&after);
    if (is_whole)
        emulated_atomic(at, sizeof(T), writes);
    else
        emulated_between(at, sizeof(T));
    if (writes)
        *at = after;
    emulated_yield();
    return before;
}

template <class T> EMULATED_ONLY static inline T atomicAdd(T *at, typename emulated_same<T>::type value)
{
    return emulated_change(at, [value](T *now) EMULATED_ONLY {
        *now = (T)(*now + value);
        return 1;
    });
}

template <class T> EMULATED_ONLY static inline T atomicSub(T *at, typename emulated_same<T>::type value)
{
    return emulated_change(at, [value](T *now) EMULATED_ONLY {
        *now = (T)(*now - value);
        return 1;
    });
}

template <class T> EMULATED_ONLY static inline T atomicOr(T *at, typename emulated_same<T>::type value)
{
    return emulated_change(at, [value](T *now) EMULATED_ONLY {
        *now = (T)(*now | value);
        return 1;
    });
}

template <class T> EMULATED_ONLY static inline T atomicMin(T *at, typename emulated_same<T>::type value)
{
    return emulated_change(at, [value](T *now) EMULATED_ONLY {
        *now = *now < value ? *now : value;
        return 1;
    });
}

template <class T> EMULATED_ONLY static inline T atomicExch(T *at, typename emulated_same<T>::type value)
{
    return emulated_change(at, [value](T *now) EMULATED_ONLY {
        *now = value;
        return 1;
    });
}

template <class T>
EMULATED_ONLY static inline T atomicCAS(T *at, typename emulated_same<T>::type expected,
                                        typename emulated_same<T>::type value)
{
    return emulated_change(at, [=](T *now) EMULATED_ONLY {
        const int is_equal = *now == expected;
        *now = is_equal ? value : *now;
        return is_equal;
    });
}

static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    emulated_set_condition(handle, value);
}

#endif

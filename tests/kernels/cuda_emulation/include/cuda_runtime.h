/** @file
 * @brief What device code uses of CUDA, for a C++ compiler; see cuda_runtime_api.h. */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "emulated_bounds.h"
#include "emulated_graph.h"
#include "ndt/clock.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
/* One block runs at a time, and its shared memory is put in place for that: see emulated_grid.c. */
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulated_grid_now.thread)
#define blockIdx  (emulated_grid_now.block)
#define gridDim   (emulated_grid_now.blocks)
#define blockDim  (emulated_grid_now.threads)
#define warpSize  32

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

static inline int __float_as_int(float x)
{
    return emulated_bits<int>(x);
}

static inline float __int_as_float(int x)
{
    return emulated_bits<float>(x);
}

/* One operation and one rounding, never a part of a fused one. */
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}

static inline double __dadd_rn(double a, double b)
{
    return a + b;
}

static inline double __dsub_rn(double a, double b)
{
    return a - b;
}

static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}

static inline double __dsqrt_rn(double x)
{
    return sqrt(x);
}

static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

/* Barriers. */
static inline void __syncthreads(void)
{
    (void)emulated_barrier(0);
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

static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

static inline void __nanosleep(unsigned)
{
    emulated_yield();
}

/* Within a warp. Lanes beyond the end keep their own value, as on a device. */
template <class T> static inline T emulated_shuffle(unsigned mask, T value, unsigned from)
{
    const uint64_t *offered = emulated_exchange(mask, emulated_bits<uint64_t>(value));
    return from < 32 ? emulated_bits<T>(offered[from]) : value;
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane)
{
    return emulated_shuffle(mask, value, (unsigned)lane % 32);
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

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    (void)emulated_exchange(mask, 0);
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* Loads past the first-level cache; through the cache of constant data. */
template <class T> static inline T __ldcg(const T *at)
{
    return *at;
}

template <class T> static inline T __ldg(const T *at)
{
    return *at;
}

/* Atomics: another thread runs after each of them. */
template <class T> struct emulated_same {
    typedef T type;
};

template <class T> static inline T emulated_exchange_at(T *at, T value)
{
    const T before = *at;
    *at = value;
    emulated_yield();
    return before;
}

template <class T> static inline T atomicAdd(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at + value);
}

template <class T> static inline T atomicSub(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at - value);
}

template <class T> static inline T atomicOr(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at | value);
}

template <class T> static inline T atomicAnd(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at & value);
}

template <class T> static inline T atomicMax(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at > value ? *at : value);
}

template <class T> static inline T atomicMin(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at < value ? *at : value);
}

template <class T> static inline T atomicExch(T *at, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, value);
}

template <class T>
static inline T atomicCAS(T *at, typename emulated_same<T>::type expected, typename emulated_same<T>::type value)
{
    return emulated_exchange_at<T>(at, *at == expected ? value : *at);
}

static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    emulated_set_condition(handle, value);
}

#endif

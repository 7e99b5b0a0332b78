/* What device code uses of CUDA, for a C++ compiler; see cuda_runtime_api.h. */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "emulated_grid.h"

#define __global__
#define __device__
#define __launch_bounds__(threads)
/* One block runs at a time, and its shared memory is put in place for that: see emulated_grid.c. */
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulated_grid_now.thread)
#define blockIdx  (emulated_grid_now.block)
#define gridDim   (emulated_grid_now.blocks)
#define blockDim  (emulated_grid_now.threads)

struct alignas(16) float4 {
    float x, y, z, w;
};

static inline int __float_as_int(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline void __syncthreads(void)
{
    emulated_barrier();
}

static inline void __threadfence(void) {}

static inline float __shfl_xor_sync(unsigned mask, float value, int lanes)
{
    return emulated_shuffle_xor(mask, value, lanes);
}

static inline unsigned atomicAdd(unsigned *at, unsigned value)
{
    const unsigned before = *at;
    *at = before + value;
    emulated_give_way();
    return before;
}

#endif

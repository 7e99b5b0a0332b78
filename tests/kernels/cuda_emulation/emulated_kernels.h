/** @file
 * @brief Properties of kernels: launch bounds and local memory. */
#ifndef EMULATED_KERNELS_H
#define EMULATED_KERNELS_H

#include "cuda_runtime_api.h"

/* Whether the kernel may be launched so: cudaErrorInvalidConfiguration for more threads per block than its launch
 * bound, and for more blocks than a grid can have; cudaErrorMemoryAllocation: no memory for its stacks, which are
 * reserved at its first launch. */
cudaError_t emulated_admit(const void *kernel, dim3 grid, dim3 block);
/* Drops all reserved stacks. */
void emulated_kernels_reset(void);

#endif

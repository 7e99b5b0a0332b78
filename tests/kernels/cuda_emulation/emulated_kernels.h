/** @file
 * @brief Properties of kernels: launch bounds and local memory. */
#ifndef EMULATED_KERNELS_H
#define EMULATED_KERNELS_H

#include "cuda_runtime_api.h"

/* Whether the kernel may be launched with so many threads per block: cudaErrorInvalidConfiguration beyond its
 * launch bound; cudaErrorMemoryAllocation: no memory for its stacks, which are reserved at its first launch. */
cudaError_t emulated_admit(const void *kernel, unsigned threads);
/* Nothing is reserved. */
void emulated_kernels_reset(void);

#endif

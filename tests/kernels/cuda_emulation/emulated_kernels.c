/** @file
 * @brief Launch bounds and local memory of kernels.
 *
 * NDT_EMULATION_STACK=BYTES: local memory per thread of every kernel (0). */
#include "emulated_kernels.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_bounds.h"
#include "emulated_device.h"
#include "emulated_errors.h"
#include "gpu_job.h"

/* The sections of emulated_bounds.h; a program need not have kernels of every bound. */
#define DECLARE(name)                                                                                              \
    extern const char __start_emulated_bound_##name[] __attribute__((weak));                                       \
    extern const char __stop_emulated_bound_##name[] __attribute__((weak));
EMULATED_BOUNDS(DECLARE)

#define ROW(name) {name, __start_emulated_bound_##name, __stop_emulated_bound_##name},
static const struct {
    int threads;
    const char *first, *end;
} bounds[] = {EMULATED_BOUNDS(ROW)};

static size_t reserved_bytes; /* bytes reserved for the stacks of all threads */

static int most_threads(const void *kernel)
{
    const uintptr_t at = (uintptr_t)kernel;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (at >= (uintptr_t)bounds[i].first && at < (uintptr_t)bounds[i].end)
            return bounds[i].threads;
    return EMULATED_MOST_THREADS;
}

static size_t stack_bytes(void)
{
    const char *text = getenv("NDT_EMULATION_STACK");
    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

cudaError_t emulated_admit(const void *kernel, dim3 grid, dim3 block)
{
    const size_t bytes = stack_bytes() * EMULATED_PROCESSORS * EMULATED_PROCESSOR_THREADS;
    if (grid.x > INT32_MAX || block.x > (unsigned)most_threads(kernel))
        return cudaErrorInvalidConfiguration;
    if (bytes > reserved_bytes && !emulated_take_bytes(bytes - reserved_bytes))
        return cudaErrorMemoryAllocation;
    reserved_bytes = bytes > reserved_bytes ? bytes : reserved_bytes;
    return cudaSuccess;
}

void emulated_kernels_reset(void)
{
    reserved_bytes = 0;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel)
{
    EMULATED_CONTEXT_CALL;
    memset(out, 0, sizeof(*out));
    out->localSizeBytes = stack_bytes();
    out->maxThreadsPerBlock = most_threads(kernel);
    return cudaSuccess;
}

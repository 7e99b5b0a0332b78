/** @file
 * @brief Calls of the runtime that concern the device as a whole: its properties, its memory, its reset.
 *
 * NDT_EMULATION_NO_DEVICE=1: there is no device.
 * NDT_EMULATION_PROCESSORS=N: its multiprocessors (8); with few, clusters are small.
 * NDT_EMULATION_UNCOUNTED=BYTES: cudaMemGetInfo counts so many bytes too few as free, as it may where device and
 * host share their memory. */
#include <stdlib.h>
#include <string.h>

#include "emulated_device.h"
#include "emulated_errors.h"
#include "emulated_graph.h"
#include "emulated_kernels.h"
#include "emulated_memory.h"
#include "emulated_stream.h"

/* ---- device ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    EMULATED_CALL;
    const char *none = getenv("NDT_EMULATION_NO_DEVICE");
    *count = none && *none ? 0 : 1;
    return emulated_note(*count ? cudaSuccess : cudaErrorNoDevice);
}

static int processors(void)
{
    const char *text = getenv("NDT_EMULATION_PROCESSORS");
    return text ? (int)strtol(text, NULL, 10) : EMULATED_PROCESSORS;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int index)
{
    EMULATED_CALL;
    memset(properties, 0, sizeof(*properties));
    if (index != 0)
        return emulated_note(cudaErrorInvalidDevice);
    strcpy(properties->name, "emulation on the CPU");
    properties->totalGlobalMem = emulated_memory_bytes();
    properties->major = emulated_has_clusters() ? 9 : 8;
    properties->multiProcessorCount = processors();
    properties->maxThreadsPerMultiProcessor = EMULATED_PROCESSOR_THREADS;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index)
{
    EMULATED_CALL;
    *value = attribute == cudaDevAttrClusterLaunch && emulated_has_clusters();
    return emulated_note(index == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    EMULATED_CALL;
    *version = emulated_has_loops() ? CUDART_VERSION : 12020;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    EMULATED_CALL;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

int emulated_keeps_flags;
static struct {
    int is_made;
    unsigned flags;
} context;

cudaError_t cudaInitDevice(int index, unsigned device_flags, unsigned flags)
{
    EMULATED_CALL;
    const unsigned modes = device_flags & cudaDeviceScheduleMask;
    if (index != 0)
        return emulated_note(cudaErrorInvalidDevice);
    if (flags != cudaInitDeviceFlagsAreValid || device_flags != modes || (modes & (modes - 1)) != 0)
        return emulated_note(cudaErrorInvalidValue);
    if (emulated_keeps_flags && context.is_made)
        return emulated_note(cudaErrorSetOnActiveProcess);
    context.is_made = 1;
    context.flags = device_flags;
    return emulated_result();
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    EMULATED_CONTEXT_CALL;
    *flags = context.flags;
    return emulated_result();
}

cudaError_t cudaSetDevice(int index)
{
    EMULATED_CONTEXT_CALL;
    context.is_made |= index == 0;
    return emulated_note(index == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
    EMULATED_CONTEXT_CALL;
    emulated_finish_all();
    return emulated_result();
}

cudaError_t cudaDeviceReset(void)
{
    EMULATED_CALL;
    if (emulated_is_shared())
        emulated_misuse("the device is reset", "while another thread is inside a call");
    if (emulated_planted(__func__) != cudaSuccess)
        return cudaPeekAtLastError();
    emulated_streams_reset();
    emulated_graphs_reset();
    emulated_kernels_reset();
    emulated_memory_reset();
    context.is_made = 0;
    context.flags = 0;
    emulated_repair();
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    EMULATED_CONTEXT_CALL;
    const char *text = getenv("NDT_EMULATION_UNCOUNTED");
    const size_t bytes = emulated_free_bytes(), uncounted = text ? (size_t)strtoull(text, NULL, 10) : 0;
    *total_bytes = emulated_memory_bytes();
    *free_bytes = bytes > uncounted ? bytes - uncounted : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    EMULATED_CONTEXT_CALL;
    *out = bytes <= emulated_free_bytes() ? emulated_allocate(bytes, EMULATED_DEVICE) : NULL;
    return emulated_note(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    *out = flags & ~known ? NULL : emulated_allocate(bytes, EMULATED_PINNED);
    if (*out)
        return cudaSuccess;
    return emulated_note(flags & ~known ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    EMULATED_CONTEXT_CALL;
    return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped;
    return emulated_note(flags & ~known ? cudaErrorInvalidValue : emulated_register(memory, bytes));
}

cudaError_t cudaHostUnregister(void *memory)
{
    EMULATED_CONTEXT_CALL;
    emulated_finish_all();
    return emulated_works() ? emulated_note(emulated_unregister(memory)) : emulated_result();
}

cudaError_t cudaHostGetDevicePointer(void **on_device, void *memory, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    *on_device = memory;
    if (flags != 0 || emulated_memory_of(memory, 1) != EMULATED_PINNED)
        return emulated_note(cudaErrorInvalidValue);
    return emulated_note(emulated_can_map() ? cudaSuccess : cudaErrorNotSupported);
}

/* Freeing waits for everything, as it does on a device. */
static cudaError_t finish_and_release(void *memory, enum emulated_memory kind)
{
    emulated_finish_all();
    if (memory && emulated_works())
        emulated_release(memory, kind);
    return emulated_result();
}

cudaError_t cudaFree(void *memory)
{
    EMULATED_CONTEXT_CALL;
    return finish_and_release(memory, EMULATED_DEVICE);
}

cudaError_t cudaFreeHost(void *memory)
{
    EMULATED_CONTEXT_CALL;
    return finish_and_release(memory, EMULATED_PINNED);
}

/* Memory, streams, events and failures of the emulated device; see include/cuda_runtime_api.h.
 * NDT_EMULATION_NO_DEVICE=1: there is no device. NDT_EMULATION_MEMORY=BYTES: how much memory it has (1 GiB).
 * NDT_EMULATION_FAIL=AFTER,COUNT: after AFTER good launches COUNT fail, and until the device is reset everything.
 */
#include "cuda_runtime_api.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulated_grid.h"

struct CUstream_st {
    int unused;
};
struct CUevent_st {
    double when_us;
};

/* In front of every allocation, so that freeing knows its size. */
struct header {
    size_t bytes;
    uint64_t mark;
};
enum { HEADER_BYTES = 256, POISONED_BYTES = 64 << 20 };
static const uint64_t MARK = 0x6e64742d63756461u;

static struct {
    int failing; /* until reset, as a real device after a fault */
    long fail_after, fail_count;
    int knows_environment;
    size_t used_bytes;
} device = {.fail_after = -1};

static void read_environment(void)
{
    const char *fail = getenv("NDT_EMULATION_FAIL");
    if (device.knows_environment)
        return;
    device.knows_environment = 1;
    if (fail && sscanf(fail, "%ld,%ld", &device.fail_after, &device.fail_count) != 2)
        device.fail_after = -1;
}

static size_t memory_bytes(void)
{
    const char *text = getenv("NDT_EMULATION_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
}

static cudaError_t now(void)
{
    return device.failing ? cudaErrorLaunchFailure : cudaSuccess;
}

void emulated_fail_launches(int after, int count)
{
    device.knows_environment = 1;
    device.fail_after = after;
    device.fail_count = count;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *none = getenv("NDT_EMULATION_NO_DEVICE");
    *count = none && *none ? 0 : 1;
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int index)
{
    memset(properties, 0, sizeof(*properties));
    if (index != 0)
        return cudaErrorInvalidDevice;
    strcpy(properties->name, "emulation on the CPU");
    properties->totalGlobalMem = memory_bytes();
    properties->major = 9;
    properties->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12040;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 12040;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    return index == 0 ? now() : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceReset(void)
{
    device.failing = 0;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    default:
        return "invalid device";
    }
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = memory_bytes();
    *free_bytes = *total_bytes > device.used_bytes ? *total_bytes - device.used_bytes : 0;
    return now();
}

/* Bytes that nothing wrote are NaN, as they may be on a device; of huge blocks only the beginning is touched. */
static void *allocate(size_t bytes)
{
    char *base =
        aligned_alloc(HEADER_BYTES, HEADER_BYTES + (bytes + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES);
    if (!base)
        return NULL;
    const struct header header = {bytes, MARK};
    memcpy(base, &header, sizeof(header));
    memset(base + HEADER_BYTES, 0xff, bytes < POISONED_BYTES ? bytes : POISONED_BYTES);
    return base + HEADER_BYTES;
}

static size_t release(void *memory)
{
    struct header header;
    char *base = (char *)memory - HEADER_BYTES;
    memcpy(&header, base, sizeof(header));
    if (header.mark != MARK) {
        fprintf(stderr, "CUDA emulation: memory is freed that was not allocated\n");
        abort();
    }
    memset(base, 0, sizeof(header));
    free(base);
    return header.bytes;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    size_t free_bytes, total_bytes;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return now();
    *out = bytes <= free_bytes ? allocate(bytes) : NULL;
    if (!*out)
        return cudaErrorMemoryAllocation;
    device.used_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    if (device.failing)
        return now();
    *out = allocate(bytes);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    if (memory)
        device.used_bytes -= release(memory);
    return now();
}

cudaError_t cudaFreeHost(void *memory)
{
    if (memory)
        release(memory);
    return now();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    if (!device.failing)
        memcpy(to, from, bytes);
    return now();
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    if (!device.failing)
        memset(memory, value, bytes);
    return now();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof(**stream));
    return *stream ? now() : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return now();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return now();
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = calloc(1, sizeof(**event));
    return *event ? now() : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return now();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct timespec t;
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &t);
    event->when_us = (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
    return now();
}

cudaError_t cudaEventElapsedTime(float *took_ms, cudaEvent_t start, cudaEvent_t stop)
{
    *took_ms = (float)((stop->when_us - start->when_us) * 1e-3);
    return now();
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream)
{
    (void)shared;
    (void)stream;
    read_environment();
    if (device.fail_after == 0 && device.fail_count > 0) {
        device.fail_count--;
        device.failing = 1;
    } else if (device.fail_after > 0) {
        device.fail_after--;
    }
    if (!device.failing)
        emulated_run(kernel, grid, block, arguments[0]);
    return now();
}

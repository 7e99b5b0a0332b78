/* The emulated device: what it is, its memory and its failures; see include/cuda_runtime_api.h.
 * NDT_EMULATION_NO_DEVICE=1: there is no device. NDT_EMULATION_MEMORY=BYTES: how much memory it has (1 GiB).
 * NDT_EMULATION_CLUSTERS=0: no thread-block clusters. NDT_EMULATION_LOOPS=0: no conditional nodes in graphs.
 * NDT_EMULATION_FAIL=AFTER,COUNT: after AFTER good launches COUNT fail, and until the device is reset everything.
 * A launch fails when it runs, not when it is queued; a graph is one launch. */
#include "emulated_launch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In front of every allocation, so that freeing knows its size; all of them in a list. */
struct header {
    size_t bytes;
    uint64_t mark;
    enum emulated_memory kind;
    struct header *next, *before;
};
enum { HEADER_BYTES = 256, POISONED_BYTES = 64 << 20 };
static const uint64_t MARK = 0x6e64742d63756461u;

static struct {
    int failing; /* until reset, as a real device after a fault */
    long fail_after, fail_count;
    int knows_environment;
    size_t used_bytes;
    struct header all; /* begin and end of the list of allocations */
} device = {.fail_after = -1, .all = {.next = &device.all, .before = &device.all}};

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

int emulated_works(void)
{
    return !device.failing;
}

int emulated_begins(void)
{
    read_environment();
    if (device.fail_after == 0 && device.fail_count > 0) {
        device.fail_count--;
        device.failing = 1;
    } else if (device.fail_after > 0) {
        device.fail_after--;
    }
    return !device.failing;
}

static int is_left_out(const char *variable)
{
    const char *text = getenv(variable);
    return text && strcmp(text, "0") == 0;
}

int emulated_has_clusters(void)
{
    return !is_left_out("NDT_EMULATION_CLUSTERS");
}

int emulated_has_loops(void)
{
    return !is_left_out("NDT_EMULATION_LOOPS");
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
    properties->major = emulated_has_clusters() ? 9 : 8;
    properties->multiProcessorCount = EMULATED_MOST_CLUSTER;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index)
{
    *value = attribute == cudaDevAttrClusterLaunch && emulated_has_clusters();
    return index == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulated_has_loops() ? CUDART_VERSION : 12020;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    return index == 0 ? now() : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceReset(void)
{
    emulated_forget_all();
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
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorNotSupported:
        return "operation not supported";
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
static void *allocate(size_t bytes, enum emulated_memory kind)
{
    char *base =
        aligned_alloc(HEADER_BYTES, HEADER_BYTES + (bytes + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES);
    if (!base)
        return NULL;
    struct header *header = (struct header *)(void *)base;
    *header = (struct header){bytes, MARK, kind, device.all.next, &device.all};
    header->next->before = header->before->next = header;
    memset(base + HEADER_BYTES, 0xff, bytes < POISONED_BYTES ? bytes : POISONED_BYTES);
    return base + HEADER_BYTES;
}

static size_t release(void *memory, enum emulated_memory kind)
{
    struct header *header = (struct header *)(void *)((char *)memory - HEADER_BYTES);
    const size_t bytes = header->bytes;
    if (header->mark != MARK || header->kind != kind) {
        fprintf(stderr, "CUDA emulation: memory is freed that was not allocated so\n");
        abort();
    }
    header->next->before = header->before;
    header->before->next = header->next;
    header->mark = 0;
    free(header);
    return bytes;
}

enum emulated_memory emulated_memory_of(const void *memory, size_t bytes)
{
    const uintptr_t at = (uintptr_t)memory;
    for (const struct header *header = device.all.next; header != &device.all; header = header->next) {
        const uintptr_t first = (uintptr_t)header + HEADER_BYTES;
        if (at >= first && at - first < header->bytes)
            return bytes <= header->bytes - (at - first) ? header->kind : EMULATED_OUTSIDE;
    }
    return EMULATED_PAGEABLE;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    size_t free_bytes, total_bytes;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return now();
    *out = bytes <= free_bytes ? allocate(bytes, EMULATED_DEVICE) : NULL;
    if (!*out)
        return cudaErrorMemoryAllocation;
    device.used_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    if (device.failing)
        return now();
    *out = allocate(bytes, EMULATED_PINNED);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Freeing waits for everything, as it does on a device. */
cudaError_t cudaFree(void *memory)
{
    emulated_finish_all();
    if (memory)
        device.used_bytes -= release(memory, EMULATED_DEVICE);
    return now();
}

cudaError_t cudaFreeHost(void *memory)
{
    emulated_finish_all();
    if (memory)
        release(memory, EMULATED_PINNED);
    return now();
}

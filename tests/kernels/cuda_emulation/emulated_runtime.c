/** @file
 * @brief The calls of the runtime on the emulated device; see include/cuda_runtime_api.h and emulated_device.c.
 *
 * NDT_EMULATION_NO_DEVICE=1: there is no device.
 *
 * A stream is a queue whose items run only when the host has to wait for them: then in their order, and items of
 * other streams between them at random. */
#define _GNU_SOURCE /* a recursive mutex */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_device.h"
#include "emulated_graph.h"
#include "ndt/clock.h"

/* One call at a time: a search may use the device in a thread of its own. Calls call one another. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int begin_call(void)
{
    return pthread_mutex_lock(&lock);
}

static void end_call(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&lock);
}
#define ONE_AT_A_TIME __attribute__((cleanup(end_call), unused)) const int call = begin_call()

enum { MOST_STREAMS = 32 };

enum kind { COPY, CLEAR, LAUNCH, GRAPH, RECORD, WAIT };

struct item {
    struct item *next;
    enum kind kind;
    uint64_t position; /* when it was queued; numbers of all streams together */
    void *to;
    const void *from; /* pinned or on the device: read when the copy runs */
    void *staged;     /* what lay in pageable memory when it was queued */
    size_t bytes;
    int value;
    struct emulated_launch *launch;
    cudaGraphExec_t graph;
    cudaEvent_t event;
    cudaStream_t other; /* WAIT: until that one is done with `until` */
    uint64_t until;
};

/* Entries of the table of streams are reused, positions never: both together identify an item. */
struct CUstream_st {
    int is_open;
    uint64_t queued, done; /* last positions */
    struct item *first, *last;
};

struct CUevent_st {
    struct CUevent_st *next, **link; /* of all events, for a reset */
    cudaStream_t stream;             /* NULL: never recorded */
    uint64_t position;
    double when_us;
};

static struct CUstream_st streams[MOST_STREAMS];
static uint64_t last_position;
static struct CUevent_st *events;

static cudaError_t result(void)
{
    return emulated_works() ? cudaSuccess : cudaErrorLaunchFailure;
}

static void forget(struct CUstream_st *stream)
{
    struct item *item = stream->first;
    stream->first = item->next;
    stream->done = item->position;
    if (item->kind == GRAPH)
        emulated_graph_hold(item->graph, -1);
    free(item->launch);
    free(item->staged);
    free(item);
}

static void forget_all(void)
{
    for (int i = 0; i < MOST_STREAMS; i++)
        while (streams[i].first)
            forget(&streams[i]);
}

static void run(const struct item *item)
{
    switch (item->kind) {
    case COPY:
        memcpy(item->to, item->staged ? item->staged : item->from, item->bytes);
        break;
    case CLEAR:
        memset(item->to, item->value, item->bytes);
        break;
    case LAUNCH:
        if (emulated_begins())
            emulated_run(item->launch);
        break;
    case GRAPH:
        if (emulated_begins())
            emulated_graph_run(item->graph);
        break;
    case RECORD:
        item->event->when_us = ndt_clock_us();
        break;
    case WAIT:
        break;
    }
}

static int can_run(const struct CUstream_st *stream)
{
    const struct item *item = stream->first;
    return item && (item->kind != WAIT || item->other->done >= item->until);
}

/* One item of any stream; 0 when nothing is queued. */
static int run_any(void)
{
    struct CUstream_st *able[MOST_STREAMS];
    unsigned count = 0;
    for (int i = 0; i < MOST_STREAMS; i++)
        if (can_run(&streams[i]))
            able[count++] = &streams[i];
    if (count == 0)
        return 0;
    struct CUstream_st *stream = able[count == 1 ? 0 : emulated_chance(count)];
    run(stream->first);
    forget(stream);
    if (!emulated_works())
        forget_all();
    return 1;
}

static void run_until(const struct CUstream_st *stream, uint64_t position)
{
    while (stream->done < position)
        if (!run_any())
            abort(); /* an item only waits for earlier ones: one of them can always run */
}

static void finish_all(void)
{
    while (run_any())
        ;
}

/* A new item at the end of the stream; NULL when the device does not work or there is no memory. */
static struct item *queue(cudaStream_t stream, enum kind kind)
{
    if (!stream || !stream->is_open) {
        fprintf(stderr, "CUDA emulation: a stream that is not open\n");
        abort();
    }
    struct item *item = emulated_works() ? calloc(1, sizeof(*item)) : NULL;
    if (!item)
        return NULL;
    item->kind = kind;
    item->position = stream->queued = ++last_position;
    if (stream->first)
        stream->last->next = item;
    else
        stream->first = item;
    stream->last = item;
    return item;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    ONE_AT_A_TIME;
    (void)flags;
    for (int i = 0; i < MOST_STREAMS; i++) {
        if (streams[i].is_open)
            continue;
        streams[i].is_open = 1;
        *stream = &streams[i];
        return result();
    }
    return cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ONE_AT_A_TIME;
    run_until(stream, stream->queued);
    stream->is_open = 0;
    return result();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ONE_AT_A_TIME;
    run_until(stream, stream->queued);
    return result();
}

static cudaError_t copy_up(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    const enum emulated_memory source = emulated_memory_of(from, bytes);
    if (emulated_memory_of(to, bytes) != EMULATED_DEVICE ||
        (source != EMULATED_PAGEABLE && source != EMULATED_PINNED))
        return cudaErrorInvalidValue;
    struct item *item = queue(stream, COPY);
    if (!item)
        return result();
    item->to = to;
    item->from = from;
    item->bytes = bytes;
    item->staged = source == EMULATED_PAGEABLE ? malloc(bytes) : NULL;
    if (item->staged)
        memcpy(item->staged, from, bytes);
    return cudaSuccess;
}

/* Overwrites the target with NaN until the copy has run. */
static cudaError_t copy_down(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    const enum emulated_memory target = emulated_memory_of(to, bytes);
    if (emulated_memory_of(from, bytes) != EMULATED_DEVICE ||
        (target != EMULATED_PAGEABLE && target != EMULATED_PINNED))
        return cudaErrorInvalidValue;
    struct item *item = queue(stream, COPY);
    if (!item)
        return result();
    item->to = to;
    item->from = from;
    item->bytes = bytes;
    memset(to, 0xff, bytes);
    if (target == EMULATED_PAGEABLE)
        run_until(stream, stream->queued);
    return result();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ONE_AT_A_TIME;
    if (bytes == 0)
        return result();
    return kind == cudaMemcpyHostToDevice ? copy_up(to, from, bytes, stream) : copy_down(to, from, bytes, stream);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    ONE_AT_A_TIME;
    if (emulated_memory_of(memory, bytes) != EMULATED_DEVICE)
        return cudaErrorInvalidValue;
    struct item *item = queue(stream, CLEAR);
    if (item) {
        item->to = memory;
        item->value = value;
        item->bytes = bytes;
    }
    return result();
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments)
{
    ONE_AT_A_TIME;
    unsigned cluster = 1;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            cluster = config->attrs[i].val.clusterDim.x;
    struct emulated_launch launch;
    const cudaError_t code =
        emulated_launch_make(&launch, kernel, config->gridDim, config->blockDim, cluster, arguments);
    if (code != cudaSuccess || config->dynamicSmemBytes > 0)
        return cudaErrorInvalidConfiguration;
    struct item *item = queue(config->stream, LAUNCH);
    if (item && (item->launch = malloc(sizeof(launch))))
        *item->launch = launch;
    return result();
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    ONE_AT_A_TIME;
    if (!kernel || attribute != cudaFuncAttributeNonPortableClusterSizeAllowed || (value != 0 && value != 1))
        return cudaErrorInvalidValue;
    return result();
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config)
{
    ONE_AT_A_TIME;
    *clusters = kernel && config->numAttrs == 1 && config->attrs[0].val.clusterDim.x <= EMULATED_MOST_CLUSTER;
    return result();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    ONE_AT_A_TIME;
    struct item *item = queue(stream, GRAPH);
    if (item) {
        item->graph = exec;
        emulated_graph_hold(exec, 1);
    }
    return result();
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    ONE_AT_A_TIME;
    (void)exec;
    (void)stream;
    return result();
}

static void forget_event(struct CUevent_st *event)
{
    *event->link = event->next;
    if (event->next)
        event->next->link = event->link;
    free(event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ONE_AT_A_TIME;
    (void)flags;
    *event = calloc(1, sizeof(**event));
    if (!*event)
        return cudaErrorMemoryAllocation;
    (*event)->next = events;
    (*event)->link = &events;
    if (events)
        events->link = &(*event)->next;
    events = *event;
    return result();
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    ONE_AT_A_TIME;
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ONE_AT_A_TIME;
    if (event->stream)
        run_until(event->stream, event->position);
    forget_event(event);
    return result();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ONE_AT_A_TIME;
    struct item *item = queue(stream, RECORD);
    if (item) {
        item->event = event;
        event->stream = stream;
        event->position = item->position;
    }
    return result();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ONE_AT_A_TIME;
    (void)flags;
    if (!event->stream)
        return result();
    struct item *item = queue(stream, WAIT);
    if (item) {
        item->other = event->stream;
        item->until = event->position;
    }
    return result();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ONE_AT_A_TIME;
    if (event->stream)
        run_until(event->stream, event->position);
    return result();
}

/* The device goes on while it is asked, so that who asks again and again gets there. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ONE_AT_A_TIME;
    if (emulated_chance(2) == 0)
        run_any();
    if (!emulated_works() || !event->stream || event->stream->done >= event->position)
        return result();
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *took_ms, cudaEvent_t start, cudaEvent_t stop)
{
    ONE_AT_A_TIME;
    if (!start->stream || !stop->stream)
        return cudaErrorInvalidValue;
    if (start->stream->done < start->position || stop->stream->done < stop->position)
        return cudaErrorNotReady;
    *took_ms = (float)((stop->when_us - start->when_us) * 1e-3);
    return result();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    ONE_AT_A_TIME;
    const char *none = getenv("NDT_EMULATION_NO_DEVICE");
    *count = none && *none ? 0 : 1;
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int index)
{
    ONE_AT_A_TIME;
    memset(properties, 0, sizeof(*properties));
    if (index != 0)
        return cudaErrorInvalidDevice;
    strcpy(properties->name, "emulation on the CPU");
    properties->totalGlobalMem = emulated_memory_bytes();
    properties->major = emulated_has_clusters() ? 9 : 8;
    properties->multiProcessorCount = EMULATED_MOST_CLUSTER;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index)
{
    ONE_AT_A_TIME;
    *value = attribute == cudaDevAttrClusterLaunch && emulated_has_clusters();
    return index == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    ONE_AT_A_TIME;
    *version = emulated_has_loops() ? CUDART_VERSION : 12020;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    ONE_AT_A_TIME;
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
    ONE_AT_A_TIME;
    const unsigned ways = device_flags & cudaDeviceScheduleMask;
    if (index != 0)
        return cudaErrorInvalidDevice;
    if (flags != cudaInitDeviceFlagsAreValid || device_flags != ways || (ways & (ways - 1)) != 0)
        return cudaErrorInvalidValue;
    if (emulated_keeps_flags && context.is_made)
        return cudaErrorSetOnActiveProcess;
    context.is_made = 1;
    context.flags = device_flags;
    return result();
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    ONE_AT_A_TIME;
    *flags = context.flags;
    return result();
}

cudaError_t cudaSetDevice(int index)
{
    ONE_AT_A_TIME;
    context.is_made |= index == 0;
    return index == 0 ? result() : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceReset(void)
{
    ONE_AT_A_TIME;
    forget_all();
    while (emulated_reset_frees && events)
        forget_event(events);
    for (int i = 0; emulated_reset_frees && i < MOST_STREAMS; i++)
        streams[i].is_open = 0;
    emulated_reset();
    context.is_made = 0;
    context.flags = 0;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    ONE_AT_A_TIME;
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
    case cudaErrorSetOnActiveProcess:
        return "cannot set while device is active in this process";
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
    ONE_AT_A_TIME;
    *total_bytes = emulated_memory_bytes();
    *free_bytes = emulated_free_bytes();
    return result();
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    ONE_AT_A_TIME;
    if (!emulated_works())
        return result();
    *out = bytes <= emulated_free_bytes() ? emulated_allocate(bytes, EMULATED_DEVICE) : NULL;
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ONE_AT_A_TIME;
    if (!emulated_works())
        return result();
    if (flags != cudaHostAllocMapped)
        return cudaErrorInvalidValue;
    *out = emulated_allocate(bytes, EMULATED_PINNED);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *pinned, unsigned flags)
{
    ONE_AT_A_TIME;
    if (!emulated_works())
        return result();
    if (flags != 0 || emulated_memory_of(pinned, 1) != EMULATED_PINNED)
        return cudaErrorInvalidValue;
    *out = pinned;
    return emulated_can_map() ? cudaSuccess : cudaErrorNotSupported;
}

/* Freeing waits for everything, as it does on a device. */
cudaError_t cudaFree(void *memory)
{
    ONE_AT_A_TIME;
    finish_all();
    if (memory)
        emulated_release(memory, EMULATED_DEVICE);
    return result();
}

cudaError_t cudaFreeHost(void *memory)
{
    ONE_AT_A_TIME;
    finish_all();
    if (memory)
        emulated_release(memory, EMULATED_PINNED);
    return result();
}

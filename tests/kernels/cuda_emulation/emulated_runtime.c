/** @file
 * @brief Streams, events, copies and launches on the emulated device; see include/cuda_runtime_api.h.
 *
 * A stream is a queue whose items run only when the host has to wait for them: then in their order, and items of
 * other streams between them at random. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_device.h"
#include "emulated_errors.h"
#include "emulated_graph.h"
#include "emulated_kernels.h"
#include "emulated_stream.h"
#include "ndt/clock.h"

enum { MOST_ABLE = 32 };

enum kind { COPY, CLEAR, LAUNCH, GRAPH, RECORD };

struct item {
    struct item *next;
    enum kind kind;
    uint64_t position; /* place in the order of queueing, over all streams */
    void *to;
    int is_down;
    const void *from; /* pinned or on the device: read when the copy runs */
    void *staged;     /* contents of pageable memory when it was queued */
    void *seen;       /* contents of pinned memory then, which must not change until the copy has run */
    size_t bytes;
    int value;
    struct emulated_launch *launch;
    cudaGraphExec_t graph;
    cudaEvent_t event;
};

/* Streams and events are kept when they are closed, so that their addresses do not come back. */
struct CUstream_st {
    struct CUstream_st *next; /* list of all streams */
    enum emulated_handle state;
    uint64_t queued, done; /* last positions */
    int is_stuck;          /* its first item runs without an end */
    int was_stuck;         /* the endless item has ended after all */
    struct item *first, *last;
};

struct CUevent_st {
    struct CUevent_st *next;
    enum emulated_handle state;
    int has_time;
    cudaStream_t stream; /* NULL: never recorded */
    uint64_t position;
    double when_us;
};

static struct CUstream_st *streams;
static struct CUevent_st *events;
static uint64_t last_position;
int emulated_allows_overwriting;

static void check_stream(const struct CUstream_st *stream)
{
    emulated_check_handle(stream, stream ? stream->state : EMULATED_CLOSED, "a stream");
}

static void check_event(const struct CUevent_st *event)
{
    emulated_check_handle(event, event ? event->state : EMULATED_CLOSED, "an event");
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
    free(item->seen);
    free(item);
}

static void forget_all(void)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        while (stream->first)
            forget(stream);
}

static void run(const struct item *item)
{
    switch (item->kind) {
    case COPY:
        if (item->seen && !emulated_allows_overwriting && memcmp(item->seen, item->from, item->bytes) != 0)
            emulated_misuse("pinned memory is written", "while a queued copy reads it");
        if (item->is_down && emulated_is_unwritten(item->from, item->bytes))
            emulated_misuse("memory of the device is copied down", "that nothing has written");
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
    }
}

static int can_run(const struct CUstream_st *stream)
{
    return stream->first && !stream->is_stuck;
}

/* Runs one item of any stream; 0 when nothing is queued. */
static int run_any(void)
{
    struct CUstream_st *able[MOST_ABLE];
    unsigned count = 0;
    for (struct CUstream_st *at = streams; at; at = at->next)
        if (can_run(at) && count < MOST_ABLE)
            able[count++] = at;
    if (count == 0)
        return 0;
    struct CUstream_st *stream = able[count == 1 ? 0 : emulated_chance(count)];
    const int is_launch = stream->first->kind == LAUNCH || stream->first->kind == GRAPH;
    if (is_launch && emulated_works() && !stream->was_stuck && emulated_hangs()) {
        stream->is_stuck = 1;
        return 1;
    }
    stream->was_stuck = 0;
    run(stream->first);
    forget(stream);
    if (!emulated_works())
        forget_all();
    return 1;
}

/* Runs items up to a position. Without a launch that hangs, one item can always run. */
static void run_until(const struct CUstream_st *stream, uint64_t position)
{
    while (stream->done < position)
        if (!run_any())
            emulated_misuse("a call waits", "for a kernel that does not end");
}

void emulated_finish_all(void)
{
    while (run_any())
        ;
    for (const struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream->first)
            emulated_misuse("a call waits", "for a kernel that does not end");
}

void emulated_end_hang(void)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next) {
        stream->was_stuck |= stream->is_stuck;
        stream->is_stuck = 0;
    }
}

/* A new item at the end of the stream; NULL when the device does not work or there is no memory. */
static struct item *queue(cudaStream_t stream, enum kind kind)
{
    check_stream(stream);
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
    EMULATED_CONTEXT_CALL;
    if (flags & ~(unsigned)cudaStreamNonBlocking)
        return emulated_note(cudaErrorInvalidValue);
    *stream = calloc(1, sizeof(**stream));
    if (!*stream)
        return emulated_note(cudaErrorMemoryAllocation);
    (*stream)->state = EMULATED_OPEN;
    (*stream)->next = streams;
    streams = *stream;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    check_stream(stream);
    run_until(stream, stream->queued);
    stream->state = EMULATED_CLOSED;
    return emulated_result();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    check_stream(stream);
    run_until(stream, stream->queued);
    return emulated_result();
}

static cudaError_t copy_up(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    const enum emulated_memory source = emulated_memory_of(from, bytes);
    if (emulated_memory_of(to, bytes) != EMULATED_DEVICE ||
        (source != EMULATED_PAGEABLE && source != EMULATED_PINNED))
        return emulated_note(cudaErrorInvalidValue);
    struct item *item = queue(stream, COPY);
    if (!item)
        return emulated_result();
    item->to = to;
    item->from = from;
    item->bytes = bytes;
    void *copy = malloc(bytes);
    if (copy)
        memcpy(copy, from, bytes);
    *(source == EMULATED_PAGEABLE ? &item->staged : &item->seen) = copy;
    return cudaSuccess;
}

/* Whether a queued copy reads this pinned memory. */
static int is_read(const void *memory, size_t bytes)
{
    const uintptr_t at = (uintptr_t)memory;
    for (const struct CUstream_st *stream = streams; stream; stream = stream->next)
        for (const struct item *item = stream->first; item; item = item->next)
            if (item->seen && (uintptr_t)item->from < at + bytes && at < (uintptr_t)item->from + item->bytes)
                return 1;
    return 0;
}

/* Overwrites the target with NaN until the copy has run. */
static cudaError_t copy_down(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    const enum emulated_memory target = emulated_memory_of(to, bytes);
    if (emulated_memory_of(from, bytes) != EMULATED_DEVICE ||
        (target != EMULATED_PAGEABLE && target != EMULATED_PINNED))
        return emulated_note(cudaErrorInvalidValue);
    struct item *item = queue(stream, COPY);
    if (!item)
        return emulated_result();
    item->to = to;
    item->from = from;
    item->bytes = bytes;
    item->is_down = 1;
    if (!is_read(to, bytes))
        memset(to, 0xff, bytes);
    if (target == EMULATED_PAGEABLE)
        run_until(stream, stream->queued);
    return emulated_result();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    if (bytes == 0)
        return emulated_result();
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost)
        return emulated_note(cudaErrorInvalidMemcpyDirection);
    return kind == cudaMemcpyHostToDevice ? copy_up(to, from, bytes, stream) : copy_down(to, from, bytes, stream);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    if (emulated_memory_of(memory, bytes) != EMULATED_DEVICE)
        return emulated_note(cudaErrorInvalidValue);
    struct item *item = queue(stream, CLEAR);
    if (item) {
        item->to = memory;
        item->value = value;
        item->bytes = bytes;
    }
    return emulated_result();
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments)
{
    EMULATED_CONTEXT_CALL;
    unsigned cluster = 1;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            cluster = config->attrs[i].val.clusterDim.x;
        else
            return emulated_note(cudaErrorInvalidValue);
    struct emulated_launch launch;
    cudaError_t code = config->dynamicSmemBytes > 0 ? cudaErrorInvalidConfiguration : cudaSuccess;
    if (code == cudaSuccess)
        code = emulated_launch_make(&launch, kernel, config->gridDim, config->blockDim, cluster, arguments);
    if (code == cudaSuccess)
        code = emulated_admit(kernel, config->gridDim, config->blockDim);
    if (code == cudaSuccess)
        code = emulated_queues();
    if (code != cudaSuccess)
        return emulated_note(code);
    struct item *item = queue(config->stream, LAUNCH);
    if (item && (item->launch = malloc(sizeof(launch))))
        *item->launch = launch;
    return emulated_result();
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    EMULATED_CONTEXT_CALL;
    if (!kernel || attribute != cudaFuncAttributeNonPortableClusterSizeAllowed || (value != 0 && value != 1))
        return emulated_note(cudaErrorInvalidValue);
    return emulated_result();
}

/* Reports room for one cluster. */
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config)
{
    EMULATED_CONTEXT_CALL;
    if (!kernel || config->numAttrs != 1 || !emulated_has_clusters())
        return emulated_note(cudaErrorInvalidValue);
    *clusters = config->attrs[0].val.clusterDim.x <= emulated_cluster_room();
    return emulated_result();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    emulated_graph_check(exec);
    check_stream(stream);
    if (emulated_queues() != cudaSuccess)
        return cudaPeekAtLastError();
    struct item *item = queue(stream, GRAPH);
    if (item) {
        item->graph = exec;
        emulated_graph_hold(exec, 1);
    }
    return emulated_result();
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    emulated_graph_check(exec);
    check_stream(stream);
    return emulated_result();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        return emulated_note(cudaErrorInvalidValue);
    *event = calloc(1, sizeof(**event));
    if (!*event)
        return emulated_note(cudaErrorMemoryAllocation);
    (*event)->state = EMULATED_OPEN;
    (*event)->has_time = !(flags & cudaEventDisableTiming);
    (*event)->next = events;
    events = *event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    EMULATED_CONTEXT_CALL;
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    EMULATED_CONTEXT_CALL;
    check_event(event);
    if (event->stream)
        run_until(event->stream, event->position);
    event->state = EMULATED_CLOSED;
    return emulated_result();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    EMULATED_CONTEXT_CALL;
    check_event(event);
    struct item *item = queue(stream, RECORD);
    if (item) {
        item->event = event;
        event->stream = stream;
        event->position = item->position;
    }
    return emulated_result();
}

/* The device goes on while it is asked, so that who asks again and again gets there. Who asks again at once waits:
 * the time that the device takes then is that of one question, so that no limit of time passes between two of them.
 */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    static _Thread_local cudaEvent_t last;
    static _Thread_local unsigned long last_call;
    EMULATED_CONTEXT_CALL;
    check_event(event);
    const int is_waiting = last != NULL && event == last && emulated_calls() == last_call + 1;
    last = event;
    last_call = emulated_calls();
    if (is_waiting)
        while (event->stream && event->stream->done < event->position && run_any())
            ;
    else if (emulated_chance(2) == 0)
        run_any();
    if (!emulated_works() || !event->stream || event->stream->done >= event->position)
        return emulated_result();
    return emulated_note(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *took_ms, cudaEvent_t start, cudaEvent_t stop)
{
    EMULATED_CONTEXT_CALL;
    check_event(start);
    check_event(stop);
    if (!start->stream || !stop->stream || !start->has_time || !stop->has_time)
        return emulated_note(cudaErrorInvalidResourceHandle);
    if (start->stream->done < start->position || stop->stream->done < stop->position)
        return emulated_note(cudaErrorNotReady);
    *took_ms = (float)((stop->when_us - start->when_us) * 1e-3);
    return cudaSuccess;
}

void emulated_streams_reset(void)
{
    for (const struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream->is_stuck)
            emulated_misuse("the device is reset", "while a kernel runs");
    forget_all();
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        stream->state = stream->state == EMULATED_OPEN ? EMULATED_RESET : stream->state;
    for (struct CUevent_st *event = events; event; event = event->next)
        event->state = event->state == EMULATED_OPEN ? EMULATED_RESET : event->state;
}

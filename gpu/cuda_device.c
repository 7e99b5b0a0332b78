#include "cuda_device.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_context.h"
#include "ndt/clock.h"

enum { PAGE_BYTES = 4096, NAP_NS = 20000 };
static const double LEAST_WAIT_US = 10e3;

/* ---- calls ---- */

static void leave(const struct ndt_cuda_device *device)
{
    ndt_cuda_context_leave(device->index);
}

/* Whether the resources of this instance still exist; then the thread is inside a call until it leaves. */
static int is_inside(const struct ndt_cuda_device *device)
{
    return device->is_open && ndt_cuda_context_enter(device->index, device->epoch);
}

static void inspect(const struct ndt_cuda_device *device, cudaError_t code)
{
    ndt_cuda_context_inspect(device->index, device->epoch, code);
}

static enum ndt_status lost(const struct ndt_cuda_device *device, struct ndt_error *err)
{
    if (err)
        *err = device->why;
    return NDT_ERR_DEVICE;
}

/* Ends every function that began with `enter`: checks the result of the runtime. */
static enum ndt_status finish(struct ndt_cuda_device *device, cudaError_t code, const char *what,
                              struct ndt_error *err)
{
    inspect(device, code);
    leave(device);
    if (code == cudaSuccess)
        return NDT_OK;
    if (code == cudaErrorMemoryAllocation)
        return ndt_fail(err, NDT_ERR_MEMORY, "CUDA device %d: no memory for %s", device->index, what);
    device->is_lost = 1;
    (void)ndt_fail(&device->why, NDT_ERR_DEVICE, "CUDA device %d: %s: %s", device->index, what,
                   cudaGetErrorString(code));
    return lost(device, err);
}

/* Begins every function that may fail; after NDT_OK it ends with `finish`. The current device is a property of the
 * thread, and the thread that uses the backend may not be the one that opened it. */
static enum ndt_status enter(struct ndt_cuda_device *device, struct ndt_error *err)
{
    if (!device->is_lost && !is_inside(device)) {
        device->is_lost = 1;
        (void)ndt_fail(&device->why, NDT_ERR_DEVICE, "CUDA device %d: was reset after a failure in another use",
                       device->index);
    } else if (!device->is_lost) {
        const cudaError_t code = cudaSetDevice(device->index);
        return code == cudaSuccess ? NDT_OK : finish(device, code, "using it", err);
    }
    return lost(device, err);
}

/* ---- waits ---- */

double ndt_cuda_give_up_at(double deadline_us, double part)
{
    const double now_us = ndt_clock_us();
    return deadline_us > 0 ? now_us + fmax(part * (deadline_us - now_us), LEAST_WAIT_US) : 0;
}

/* Spins, yields or sleeps while the device works, as cuda.wait says: the runtime's own waits have no limit. */
static void pass_time(const struct ndt_cuda_device *device)
{
    if (device->wait_flags == cudaDeviceScheduleBlockingSync)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else if (device->wait_flags != cudaDeviceScheduleSpin)
        sched_yield();
}

/* Waits for the event; cudaErrorNotReady: it has not come in time. The clock is read first, because this thread may
 * have slept beyond the limit while the device was done long ago. */
static cudaError_t await(const struct ndt_cuda_device *device, struct CUevent_st *event)
{
    const double limit_us = device->until_us > 0 ? device->until_us : ndt_clock_us() + NDT_CUDA_PATIENCE_US;
    for (;;) {
        const int is_over = ndt_clock_us() > limit_us;
        const cudaError_t code = cudaEventQuery(event);
        if (code != cudaErrorNotReady || is_over)
            return code;
        pass_time(device);
    }
}

static cudaError_t await_stream(const struct ndt_cuda_device *device, enum ndt_cuda_stream stream)
{
    const cudaError_t code = cudaEventRecord(device->end, device->streams[stream]);
    return code == cudaSuccess ? await(device, device->end) : code;
}

/* Ends a function that has waited for `event`. */
static enum ndt_status finish_wait(struct ndt_cuda_device *device, cudaError_t code, struct CUevent_st *event,
                                   struct ndt_error *err)
{
    if (code != cudaErrorNotReady)
        return finish(device, code, "running", err);
    (void)cudaGetLastError();
    ndt_cuda_context_give_up(device->index, device->epoch, event);
    leave(device);
    device->is_lost = 1;
    (void)ndt_fail(&device->why, NDT_ERR_DEVICE, "CUDA device %d: running: has not ended in time", device->index);
    return lost(device, err);
}

/* ---- instances ---- */

static cudaError_t open_streams(struct ndt_cuda_device *device)
{
    unsigned flags = 0;
    cudaError_t code = cudaGetDeviceFlags(&flags);
    device->wait_flags = flags & cudaDeviceScheduleMask;
    for (int i = 0; code == cudaSuccess && i < NDT_CUDA_STREAMS; i++)
        code = cudaStreamCreateWithFlags(&device->streams[i], cudaStreamNonBlocking);
    for (int i = 0; code == cudaSuccess && i < NDT_CUDA_MARKS; i++)
        code = cudaEventCreateWithFlags(&device->marks[i], cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&device->end, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = cudaEventCreate(&device->start);
    return code == cudaSuccess ? cudaEventCreate(&device->stop) : code;
}

static void destroy_event(struct CUevent_st *event)
{
    if (event)
        (void)cudaEventDestroy(event);
}

static void close_streams(struct ndt_cuda_device *device)
{
    destroy_event(device->stop);
    destroy_event(device->start);
    destroy_event(device->end);
    for (int i = 0; i < NDT_CUDA_MARKS; i++)
        destroy_event(device->marks[i]);
    for (int i = 0; i < NDT_CUDA_STREAMS; i++)
        if (device->streams[i])
            (void)cudaStreamDestroy(device->streams[i]);
}

enum ndt_status ndt_cuda_device_open(struct ndt_cuda_device *device, int index, struct ndt_error *err)
{
    unsigned epoch;
    memset(device, 0, sizeof(*device));
    enum ndt_status status = ndt_cuda_context_open(index, &epoch, err);
    if (status != NDT_OK)
        return status;
    *device = (struct ndt_cuda_device){.index = index, .is_open = 1, .epoch = epoch};
    cudaError_t code = cudaSetDevice(index);
    if (code == cudaSuccess)
        code = open_streams(device);
    status = finish(device, code, "opening it", err);
    if (status != NDT_OK)
        ndt_cuda_device_close(device);
    return status;
}

/* Sets the flags of the primary context of the device, which all instances of the process share. cudaInitDevice
 * makes it with them, cudaSetDevice would without ("will also immediately initialize the runtime state on the
 * primary context"). Newer runtimes overwrite the flags of a context in use, older ones refuse. */
enum ndt_status ndt_cuda_choose_wait(int index, enum ndt_wait wait, int *taken, struct ndt_error *err)
{
    static const unsigned flags[] = {[NDT_WAIT_AUTO] = cudaDeviceScheduleAuto,
                                     [NDT_WAIT_SPIN] = cudaDeviceScheduleSpin,
                                     [NDT_WAIT_YIELD] = cudaDeviceScheduleYield,
                                     [NDT_WAIT_BLOCK] = cudaDeviceScheduleBlockingSync};
    *taken = 1;
    if (wait == NDT_WAIT_AUTO)
        return NDT_OK;
    unsigned epoch;
    enum ndt_status status = ndt_cuda_context_open(index, &epoch, err);
    if (status != NDT_OK)
        return status;
    const cudaError_t code = cudaInitDevice(index, flags[wait], cudaInitDeviceFlagsAreValid);
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    ndt_cuda_context_leave(index);
    *taken = code == cudaSuccess;
    if (*taken || code == cudaErrorSetOnActiveProcess)
        return NDT_OK;
    return ndt_fail(err, code == cudaErrorMemoryAllocation ? NDT_ERR_MEMORY : NDT_ERR_DEVICE,
                    "CUDA device %d: cannot be used: %s", index, cudaGetErrorString(code));
}

/* Ends the work of the instance, inside a call, and notes when the device is found corrupt. 0: the work does not
 * end, and nothing that it uses may be freed. */
static int end_work(const struct ndt_cuda_device *device)
{
    (void)cudaSetDevice(device->index);
    for (int i = 0; i < NDT_CUDA_STREAMS; i++) {
        if (!device->streams[i] || !device->end)
            continue;
        const cudaError_t code = await_stream(device, (enum ndt_cuda_stream)i);
        if (code == cudaErrorNotReady) {
            ndt_cuda_context_give_up(device->index, device->epoch, device->end);
            return 0;
        }
        inspect(device, code);
    }
    return 1;
}

void ndt_cuda_device_close(struct ndt_cuda_device *device)
{
    if (is_inside(device)) {
        if (end_work(device))
            close_streams(device);
        leave(device);
    }
    if (device->is_open)
        (void)ndt_cuda_context_reset_if_corrupt(device->index);
    memset(device, 0, sizeof(*device));
}

/* ---- memory, copies and launches ---- */

enum ndt_status ndt_cuda_free_bytes(struct ndt_cuda_device *device, size_t *out, struct ndt_error *err)
{
    size_t total;
    *out = 0;
    enum ndt_status status = enter(device, err);
    return status == NDT_OK ? finish(device, cudaMemGetInfo(out, &total), "free memory", err) : status;
}

enum ndt_status ndt_cuda_stack_bytes(struct ndt_cuda_device *device, const void *kernel, size_t *out,
                                     struct ndt_error *err)
{
    struct cudaFuncAttributes attributes = {.localSizeBytes = 0};
    enum ndt_status status = enter(device, err);
    if (status == NDT_OK)
        status = finish(device, cudaFuncGetAttributes(&attributes, kernel), "properties of a kernel", err);
    *out = attributes.localSizeBytes;
    return status;
}

static enum ndt_status finish_allocation(struct ndt_cuda_device *device, cudaError_t code, size_t bytes,
                                         const char *what, struct ndt_error *err)
{
    enum ndt_status status = finish(device, code, what, err);
    device->counters.allocations += status == NDT_OK;
    return status != NDT_ERR_MEMORY
               ? status
               : ndt_fail(err, NDT_ERR_MEMORY, "CUDA device %d: no %zu bytes for %s", device->index, bytes, what);
}

enum ndt_status ndt_cuda_allocate(struct ndt_cuda_device *device, void **out, size_t bytes, const char *what,
                                  struct ndt_error *err)
{
    *out = NULL;
    bytes = bytes ? bytes : 1;
    enum ndt_status status = enter(device, err);
    return status == NDT_OK ? finish_allocation(device, cudaMalloc(out, bytes), bytes, what, err) : status;
}

/* Allocates pinned memory, not by cudaMallocHost: a reset frees its memory while the owner of another instance may
 * be writing to it. */
enum ndt_status ndt_cuda_allocate_pinned(struct ndt_cuda_device *device, void **out, size_t bytes, const char *what,
                                         struct ndt_error *err)
{
    *out = NULL;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    bytes = (bytes / PAGE_BYTES + 1) * PAGE_BYTES;
    void *memory = aligned_alloc(PAGE_BYTES, bytes);
    const cudaError_t code = memory ? cudaHostRegister(memory, bytes, cudaHostRegisterMapped) //
                                    : cudaErrorMemoryAllocation;
    if (code == cudaSuccess)
        *out = memory;
    else
        free(memory);
    return finish_allocation(device, code, bytes, what, err);
}

/* "On a device that does not support mapped, pinned memory" the call fails (CUDA runtime API,
 * cudaHostGetDevicePointer), and the address may differ from that of the host. No fence is needed in the kernels:
 * "the application must synchronize memory accesses using streams or events" (CUDA programming guide, mapped
 * memory), which ndt_cuda_wait does. */
void *ndt_cuda_mapped(struct ndt_cuda_device *device, void *pinned)
{
    void *address = NULL;
    if (enter(device, NULL) != NDT_OK)
        return NULL;
    if (cudaHostGetDevicePointer(&address, pinned, 0) != cudaSuccess) {
        (void)cudaGetLastError(); /* otherwise the next launch reports it again */
        address = NULL;
    }
    leave(device);
    return address;
}

void ndt_cuda_release(struct ndt_cuda_device *device, void *memory)
{
    if (!memory || !is_inside(device))
        return;
    if (end_work(device))
        inspect(device, cudaFree(memory));
    leave(device);
}

void ndt_cuda_release_pinned(struct ndt_cuda_device *device, void *memory)
{
    if (!memory)
        return;
    if (is_inside(device)) {
        const int is_unused = end_work(device);
        if (is_unused)
            inspect(device, cudaHostUnregister(memory));
        leave(device);
        if (!is_unused)
            return;
    } else if (!ndt_cuda_context_reset_if_corrupt(device->index)) {
        return; /* the device may still write it: it is not freed at all */
    }
    free(memory); /* a reset has unregistered all memory */
}

enum ndt_status ndt_cuda_upload(struct ndt_cuda_device *device, void *to, const void *from, size_t bytes,
                                struct ndt_error *err)
{
    return ndt_cuda_upload_on(device, NDT_CUDA_MAIN, to, from, bytes, err);
}

enum ndt_status ndt_cuda_upload_on(struct ndt_cuda_device *device, enum ndt_cuda_stream stream, void *to,
                                   const void *from, size_t bytes, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.h2d_bytes += bytes;
    device->counters.h2d_copies++;
    return finish(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->streams[stream]),
                  "upload", err);
}

enum ndt_status ndt_cuda_download(struct ndt_cuda_device *device, void *to, const void *from, size_t bytes,
                                  struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.d2h_bytes += bytes;
    device->counters.d2h_copies++;
    return finish(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->streams[NDT_CUDA_MAIN]),
                  "download", err);
}

enum ndt_status ndt_cuda_clear(struct ndt_cuda_device *device, void *memory, size_t bytes, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return finish(device, cudaMemsetAsync(memory, 0, bytes, device->streams[NDT_CUDA_MAIN]), "clearing memory",
                  err);
}

enum ndt_status ndt_cuda_launch(struct ndt_cuda_device *device, const void *kernel, unsigned blocks,
                                const struct ndt_gpu_job *job, struct ndt_error *err)
{
    return ndt_cuda_launch_team(device, kernel, blocks, NDT_GPU_BLOCK, 1, job, err);
}

enum ndt_status ndt_cuda_launch_team(struct ndt_cuda_device *device, const void *kernel, unsigned blocks,
                                     unsigned threads, unsigned cluster, const struct ndt_gpu_job *job,
                                     struct ndt_error *err)
{
    return ndt_cuda_launch_single(device, kernel, blocks, threads, cluster, job, NULL, err);
}

enum ndt_status ndt_cuda_launch_single(struct ndt_cuda_device *device, const void *kernel, unsigned blocks,
                                       unsigned threads, unsigned cluster, const struct ndt_gpu_job *job,
                                       const struct ndt_gpu_single *single, struct ndt_error *err)
{
    /* "4 KB" of arguments on every device (programming guide, "__global__ Function Parameters") */
    _Static_assert(sizeof(struct ndt_gpu_job) + sizeof(struct ndt_gpu_single) <= 4096, "arguments of a kernel");
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    struct ndt_gpu_job copy = *job;
    void *arguments[] = {&copy, (void *)(uintptr_t)single};
    cudaLaunchAttribute team = {.id = cudaLaunchAttributeClusterDimension};
    team.val.clusterDim.x = cluster;
    team.val.clusterDim.y = team.val.clusterDim.z = 1;
    const cudaLaunchConfig_t config = {.gridDim = {blocks, 1, 1},
                                       .blockDim = {threads, 1, 1},
                                       .stream = device->streams[NDT_CUDA_MAIN],
                                       .attrs = &team,
                                       .numAttrs = cluster > 1}; /* older devices reject the attribute */
    device->counters.launches++;
    return finish(device, cudaLaunchKernelExC(&config, kernel, arguments), "launch", err);
}

/* Whether the device has room for a cluster of this many blocks now; 0 as well where it cannot tell. */
static int has_room(const void *kernel, unsigned threads, unsigned blocks)
{
    int clusters = 0;
    cudaLaunchAttribute team = {.id = cudaLaunchAttributeClusterDimension};
    team.val.clusterDim.x = blocks;
    team.val.clusterDim.y = team.val.clusterDim.z = 1;
    const cudaLaunchConfig_t config = {
        .gridDim = {blocks, 1, 1}, .blockDim = {threads, 1, 1}, .attrs = &team, .numAttrs = 1};
    const int is_told = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess;
    if (!is_told)
        (void)cudaGetLastError(); /* a device without this ability is no failure */
    return is_told && clusters > 0;
}

/* Finds the largest cluster. More than eight blocks are not portable: the kernel has to allow them (programming
 * guide, "Thread Block Clusters"). Eight are portable on a whole device; a partition of one (MIG) or a share of it
 * (MPS) may have room for fewer. */
enum ndt_status ndt_cuda_largest_cluster(struct ndt_cuda_device *device, const void *kernel, unsigned threads,
                                         unsigned portable, unsigned *out, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    *out = 1;
    if (status != NDT_OK)
        return status;
    unsigned blocks = NDT_GPU_CLUSTER;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess) {
        (void)cudaGetLastError();
        blocks = portable;
    }
    while (blocks > 1 && !has_room(kernel, threads, blocks))
        blocks = blocks > portable ? portable : blocks / 2;
    *out = blocks;
    return finish(device, cudaSuccess, "clusters", err);
}

/* ---- streams and marks ---- */

enum ndt_status ndt_cuda_set_mark(struct ndt_cuda_device *device, int mark, enum ndt_cuda_stream stream,
                                  struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return finish(device, cudaEventRecord(device->marks[mark], device->streams[stream]), "mark", err);
}

enum ndt_status ndt_cuda_mark_reached(struct ndt_cuda_device *device, int mark, int *out, struct ndt_error *err)
{
    *out = 0;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    const cudaError_t code = cudaEventQuery(device->marks[mark]);
    *out = code == cudaSuccess;
    if (code == cudaErrorNotReady)
        (void)cudaGetLastError(); /* no failure */
    return finish(device, code == cudaErrorNotReady ? cudaSuccess : code, "running", err);
}

enum ndt_status ndt_cuda_wait(struct ndt_cuda_device *device, struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.synchronisations++;
    status = finish_wait(device, await_stream(device, NDT_CUDA_MAIN), device->end, err);
    device->waits += status == NDT_OK;
    return status;
}

enum ndt_status ndt_cuda_settle(struct ndt_cuda_device *device, enum ndt_cuda_stream stream, enum ndt_status status)
{
    if (status == NDT_OK || enter(device, NULL) != NDT_OK)
        return status;
    const enum ndt_status waited = finish_wait(device, await_stream(device, stream), device->end, NULL);
    device->waits += waited == NDT_OK && stream == NDT_CUDA_MAIN;
    return status;
}

enum ndt_status ndt_cuda_clock_start(struct ndt_cuda_device *device, struct ndt_error *err)
{
    if (!device->has_clock)
        return NDT_OK;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return finish(device, cudaEventRecord(device->start, device->streams[NDT_CUDA_MAIN]), "event", err);
}

enum ndt_status ndt_cuda_clock_stop(struct ndt_cuda_device *device, struct ndt_error *err)
{
    if (!device->has_clock)
        return NDT_OK;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    return finish(device, cudaEventRecord(device->stop, device->streams[NDT_CUDA_MAIN]), "event", err);
}

enum ndt_status ndt_cuda_add_kernel_time(struct ndt_cuda_device *device, struct ndt_error *err)
{
    float took_ms = 0;
    if (!device->has_clock)
        return NDT_OK;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    status = finish(device, cudaEventElapsedTime(&took_ms, device->start, device->stop), "event", err);
    device->counters.kernel_us += (double)took_ms * 1e3;
    return status;
}

/* ---- graphs ---- */

/* Appends a node after `*last` (NULL: it is the first) and sets *last to it. From CUDA 13 on edges have data. */
static cudaError_t append(cudaGraph_t graph, cudaGraphNode_t *last, struct cudaGraphNodeParams *params)
{
    cudaGraphNode_t node = NULL;
    const size_t before = *last ? 1 : 0;
#if CUDART_VERSION >= 13000
    const cudaError_t code = cudaGraphAddNode(&node, graph, before ? last : NULL, NULL, before, params);
#else
    const cudaError_t code = cudaGraphAddNode(&node, graph, before ? last : NULL, before, params);
#endif
    *last = node;
    return code;
}

/* The launch of a node; the job is copied into every node. */
struct shape {
    const void *kernel;
    unsigned blocks, threads;
    struct ndt_gpu_job job;
};

static cudaError_t append_kernel(cudaGraph_t graph, cudaGraphNode_t *last, struct shape *shape)
{
    void *arguments[] = {&shape->job, NULL};
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeKernel};
    params.kernel.func = (void *)shape->kernel;
    params.kernel.gridDim = (dim3){shape->blocks, 1, 1};
    params.kernel.blockDim = (dim3){shape->threads, 1, 1};
    params.kernel.kernelParams = arguments;
    return append(graph, last, &params);
}

static cudaError_t add_chain(cudaGraph_t graph, unsigned length, struct shape *shape)
{
    cudaGraphNode_t last = NULL;
    cudaError_t code = cudaSuccess;
    for (unsigned i = 0; code == cudaSuccess && i < length; i++)
        code = append_kernel(graph, &last, shape);
    return code;
}

static cudaError_t add_loop(cudaGraph_t graph, struct shape *shape)
{
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t outer = NULL, inner = NULL;
    cudaError_t code = cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault);
    if (code != cudaSuccess)
        return code;
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    code = append(graph, &outer, &params);
    shape->job.loop = handle;
    return code == cudaSuccess ? append_kernel(params.conditional.phGraph_out[0], &inner, shape) : code;
}

enum ndt_status ndt_cuda_graph_make(struct ndt_cuda_device *device, struct ndt_cuda_graph *out, const void *kernel,
                                    unsigned blocks, unsigned threads, unsigned length,
                                    const struct ndt_gpu_job *job, struct ndt_error *err)
{
    struct shape shape = {kernel, blocks, threads, *job};
    cudaGraph_t graph = NULL;
    out->exec = NULL;
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    cudaError_t code = cudaGraphCreate(&graph, 0);
    if (code == cudaSuccess)
        code = length > 0 ? add_chain(graph, length, &shape) : add_loop(graph, &shape);
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&out->exec, graph, 0);
    if (code == cudaSuccess) /* otherwise the first launch uploads the graph */
        code = cudaGraphUpload(out->exec, device->streams[NDT_CUDA_MAIN]);
    if (graph)
        (void)cudaGraphDestroy(graph);
    status = finish(device, code, "a graph", err);
    device->counters.allocations += status == NDT_OK;
    if (status != NDT_OK)
        ndt_cuda_graph_free(device, out);
    return status;
}

enum ndt_status ndt_cuda_graph_launch(struct ndt_cuda_device *device, const struct ndt_cuda_graph *graph,
                                      struct ndt_error *err)
{
    enum ndt_status status = enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.launches++;
    return finish(device, cudaGraphLaunch(graph->exec, device->streams[NDT_CUDA_MAIN]), "launch of a graph", err);
}

void ndt_cuda_graph_free(struct ndt_cuda_device *device, struct ndt_cuda_graph *graph)
{
    if (graph->exec && is_inside(device)) {
        if (end_work(device)) /* it may still run */
            inspect(device, cudaGraphExecDestroy(graph->exec));
        leave(device);
    }
    graph->exec = NULL;
}

/** @file
 * @brief The emulated runtime is as strict as a device: handles and memory from before a reset, flags, launch
 * bounds, errors that stay and errors that do not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_harness.h"
#include "check_stops.h"
#include "cuda_runtime_api.h"
#include "device_kernels.h"
#include "gpu_job.h"

/* Objects of each kind, on a device that works. */
static struct {
    cudaStream_t stream;
    cudaEvent_t event, timed;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *memory, *pinned, *registered;
    struct ndt_gpu_job job;
} all;
enum { BYTES = 4096 };

static void expect(int good, const char *what)
{
    check_expect(good, what, "");
}

static int is(cudaError_t code, cudaError_t wanted)
{
    return code == wanted && cudaGetLastError() == wanted && cudaGetLastError() == cudaSuccess;
}

static int works(cudaError_t code)
{
    return code == cudaSuccess;
}

static cudaError_t add_node(cudaGraph_t graph)
{
    void *arguments[] = {&all.job, NULL};
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeKernel};
    cudaGraphNode_t node;
    params.kernel.func = (void *)kernel_take();
    params.kernel.gridDim = params.kernel.blockDim = (dim3){32, 1, 1};
    params.kernel.kernelParams = arguments;
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params);
#else
    return cudaGraphAddNode(&node, graph, NULL, 0, &params);
#endif
}

static void make_all(void)
{
    memset(&all, 0, sizeof(all));
    all.registered = aligned_alloc(BYTES, BYTES);
    const int good = works(cudaStreamCreateWithFlags(&all.stream, cudaStreamNonBlocking)) &&
                     works(cudaEventCreateWithFlags(&all.event, cudaEventDisableTiming)) &&
                     works(cudaEventCreate(&all.timed)) && works(cudaGraphCreate(&all.graph, 0)) &&
                     works(add_node(all.graph)) && works(cudaGraphInstantiate(&all.exec, all.graph, 0)) &&
                     works(cudaMalloc(&all.memory, BYTES)) && works(cudaMallocHost(&all.pinned, BYTES)) &&
                     all.registered && works(cudaHostRegister(all.registered, BYTES, cudaHostRegisterDefault));
    if (!good)
        check_expect(0, "one of each is made", cudaGetErrorString(cudaGetLastError()));
}

static cudaError_t launch(const void *kernel, unsigned blocks, unsigned threads)
{
    void *arguments[] = {&all.job, NULL};
    const cudaLaunchConfig_t config = {
        .gridDim = {blocks, 1, 1}, .blockDim = {threads, 1, 1}, .stream = all.stream};
    return cudaLaunchKernelExC(&config, kernel, arguments);
}

static void reset(void)
{
    make_all();
    (void)cudaDeviceReset();
}

static void free_all(void)
{
    (void)cudaDeviceReset();
    free(all.registered);
}

/* ---- after a reset ---- */

static void uses_stream(void)
{
    reset();
    (void)cudaStreamSynchronize(all.stream);
}

static void closes_stream(void)
{
    reset();
    (void)cudaStreamDestroy(all.stream);
}

static void uses_event(void)
{
    reset();
    (void)cudaEventQuery(all.event);
}

static void launches_graph(void)
{
    reset();
    cudaGraphExec_t exec = all.exec;
    make_all();
    (void)cudaGraphLaunch(exec, all.stream);
}

static void frees_graph(void)
{
    reset();
    (void)cudaGraphExecDestroy(all.exec);
}

static void frees_memory(void)
{
    reset();
    (void)cudaFree(all.memory);
}

static void frees_pinned(void)
{
    reset();
    (void)cudaFreeHost(all.pinned);
}

static void copies_to_memory(void)
{
    reset();
    void *memory = all.memory;
    make_all();
    (void)cudaMemcpyAsync(memory, all.pinned, BYTES, cudaMemcpyHostToDevice, all.stream);
}

static void unregisters(void)
{
    reset();
    (void)cudaHostUnregister(all.registered);
}

static void closes_twice(void)
{
    make_all();
    (void)cudaEventDestroy(all.event);
    (void)cudaEventDestroy(all.event);
}

/* All words but one are written. */
static void copies_unwritten(void)
{
    make_all();
    (void)cudaMemsetAsync(all.memory, 0, BYTES - 8, all.stream);
    (void)cudaMemcpyAsync(all.pinned, all.memory, BYTES - 8, cudaMemcpyDeviceToHost, all.stream);
    (void)cudaStreamSynchronize(all.stream);
    fputs("what is written is copied; ", stderr);
    (void)cudaMemcpyAsync(all.pinned, all.memory, BYTES, cudaMemcpyDeviceToHost, all.stream);
    (void)cudaStreamSynchronize(all.stream);
}

static void overwrites(void)
{
    make_all();
    (void)cudaMemcpyAsync(all.memory, all.pinned, BYTES, cudaMemcpyHostToDevice, all.stream);
    memset(all.pinned, 1, 1);
    (void)cudaStreamSynchronize(all.stream);
}

static void check_reset(void)
{
    check_stops(uses_stream, "a stream is used that a reset of the device has closed");
    check_stops(closes_stream, "a stream is used that a reset of the device has closed");
    check_stops(uses_event, "an event is used that a reset of the device has closed");
    check_stops(launches_graph, "an executable graph is used that a reset of the device has closed");
    check_stops(frees_graph, "an executable graph is used that a reset of the device has closed");
    check_stops(frees_memory, "memory is freed that a reset of the device has freed");
    check_stops(frees_pinned, "memory is freed that a reset of the device has freed");
    check_stops(copies_to_memory, "memory is used that a reset of the device has freed");
    check_stops(unregisters, "memory is unregistered that was registered before a reset of the device");
    check_stops(closes_twice, "an event is used that was closed");
    check_stops(copies_unwritten,
                "what is written is copied; CUDA emulation: memory of the device is copied down that "
                "nothing has written");
    check_stops(overwrites, "pinned memory is written while a queued copy reads it");
    size_t before, after, total;
    expect(works(cudaMemGetInfo(&before, &total)), "memory is counted");
    reset();
    free(all.registered);
    expect(works(cudaMemGetInfo(&after, &total)) && before == after, "a reset frees all of it");
}

/* ---- flags ---- */

static void check_flags(void)
{
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphConditionalHandle handle;
    void *memory;
    float took_ms;
    make_all();
    expect(is(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue), "flags of streams");
    expect(is(cudaEventCreateWithFlags(&event, 8), cudaErrorInvalidValue), "flags of events");
    expect(is(cudaGraphCreate(&graph, 1), cudaErrorInvalidValue), "flags of graphs");
    expect(is(cudaGraphConditionalHandleCreate(&handle, all.graph, 1, 2), cudaErrorInvalidValue),
           "flags of conditions");
    expect(works(cudaGraphCreate(&graph, 0)) && is(cudaGraphInstantiate(&exec, graph, 2), cudaErrorInvalidValue),
           "flags of executable graphs");
    expect(is(cudaHostAlloc(&memory, BYTES, 8), cudaErrorInvalidValue), "flags of pinned memory");
    expect(is(cudaHostRegister(all.pinned, BYTES, 0), cudaErrorHostMemoryAlreadyRegistered) &&
               is(cudaHostUnregister(&took_ms), cudaErrorHostMemoryNotRegistered),
           "memory is registered once");
    for (int kind = 0; kind <= 4; kind++)
        if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost)
            expect(is(cudaMemcpyAsync(all.memory, all.pinned, 1, (enum cudaMemcpyKind)kind, all.stream),
                      cudaErrorInvalidMemcpyDirection),
                   "kinds of copies that gpu/ does not make");
    (void)cudaEventRecord(all.event, all.stream);
    (void)cudaEventRecord(all.timed, all.stream);
    (void)cudaStreamSynchronize(all.stream);
    expect(is(cudaEventElapsedTime(&took_ms, all.timed, all.event), cudaErrorInvalidResourceHandle),
           "an event without time has none");
    expect(works(cudaEventElapsedTime(&took_ms, all.timed, all.timed)), "one with time has");
    free_all();
}

static void check_bounds(void)
{
    struct cudaFuncAttributes bounded, free_of_bounds;
    make_all();
    expect(works(launch(kernel_bounded(), 1, NDT_GPU_BLOCK)), "as many threads as the launch bound");
    expect(is(launch(kernel_bounded(), 1, NDT_GPU_BLOCK + 32), cudaErrorInvalidConfiguration), "more are refused");
    expect(is(launch(kernel_take(), 1, 1056), cudaErrorInvalidConfiguration), "and more than a device has");
    expect(is(launch(kernel_take(), 1u << 31, 32), cudaErrorInvalidConfiguration), "more blocks than a grid has");
    expect(works(cudaFuncGetAttributes(&bounded, kernel_bounded())) &&
               bounded.maxThreadsPerBlock == NDT_GPU_BLOCK &&
               works(cudaFuncGetAttributes(&free_of_bounds, kernel_take())) &&
               free_of_bounds.maxThreadsPerBlock == 1024 && bounded.localSizeBytes == 0,
           "as the attributes say");
    setenv("NDT_EMULATION_STACK", "1000", 1);
    size_t before = 0, after = 0, later = 0, total = 0;
    expect(works(cudaFuncGetAttributes(&bounded, kernel_bounded())) && bounded.localSizeBytes == 1000, "a stack");
    (void)cudaMemGetInfo(&before, &total);
    expect(works(launch(kernel_bounded(), 1, 32)) && works(cudaMemGetInfo(&after, &total)) &&
               before - after == (size_t)1000 * 8 * 2048,
           "is reserved for all threads of the device");
    expect(works(launch(kernel_take(), 1, 32)) && works(cudaMemGetInfo(&later, &total)) && later == after, "once");
    setenv("NDT_EMULATION_STACK", "1000000", 1);
    expect(is(launch(kernel_take(), 1, 32), cudaErrorMemoryAllocation), "or there is no memory for it");
    unsetenv("NDT_EMULATION_STACK");
    free_all();
}

/* ---- errors ---- */

static void check_errors(void)
{
    void *memory;
    make_all();
    expect(is(cudaMalloc(&memory, (size_t)1 << 40), cudaErrorMemoryAllocation) && works(cudaDeviceSynchronize()),
           "no memory: reported once");
    (void)cudaMalloc(&memory, (size_t)1 << 40);
    expect(cudaPeekAtLastError() == cudaErrorMemoryAllocation &&
               cudaPeekAtLastError() == cudaErrorMemoryAllocation &&
               is(cudaErrorMemoryAllocation, cudaErrorMemoryAllocation),
           "a look does not take it away");
    emulated_fail_launches_with(1, 1, cudaErrorInvalidConfiguration);
    expect(works(launch(kernel_take(), 1, 32)) && is(launch(kernel_take(), 1, 32), cudaErrorInvalidConfiguration) &&
               works(launch(kernel_take(), 1, 32)) && works(cudaDeviceSynchronize()),
           "a launch that is refused leaves the next ones");
    emulated_fail_calls("cudaEventRecord", 1, 1, cudaErrorMemoryAllocation);
    expect(works(cudaEventRecord(all.event, all.stream)) &&
               is(cudaEventRecord(all.event, all.stream), cudaErrorMemoryAllocation) &&
               works(cudaEventRecord(all.event, all.stream)),
           "so does any other call");
    emulated_fail_launches(0, 1);
    expect(works(launch(kernel_take(), 1, 32)), "a fault is not known when it is queued");
    expect(cudaStreamSynchronize(all.stream) == cudaErrorLaunchFailure, "but when it is waited for");
    expect(cudaGetLastError() == cudaErrorLaunchFailure && cudaGetLastError() == cudaErrorLaunchFailure &&
               cudaMalloc(&memory, 1) == cudaErrorLaunchFailure && cudaSetDevice(0) == cudaErrorLaunchFailure &&
               cudaFree(all.memory) == cudaErrorLaunchFailure && cudaDeviceSynchronize() == cudaErrorLaunchFailure,
           "and stays");
    free_all();
    expect(works(cudaDeviceSynchronize()) && cudaGetLastError() == cudaSuccess, "until the reset");
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {.name = "reset", .run = check_reset},
        {.name = "flags", .run = check_flags},
        {.name = "bounds", .run = check_bounds},
        {.name = "errors", .run = check_errors},
        {.name = NULL},
    };
    return check_main(argc, argv, cases);
}

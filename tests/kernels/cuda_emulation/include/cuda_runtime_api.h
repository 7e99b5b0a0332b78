/** @file
 * @brief A stand-in for the CUDA runtime, for tests on machines without a GPU: the part of it that gpu/ uses, on
 * the CPU.
 *
 * Slow and simple. Device memory is host memory that is initialised with NaN, and so is shared memory before every
 * block. All random choices come from one sequence with the seed NDT_EMULATION_SEED: a run can be repeated.
 *
 * Threads are fibers on the caller's thread. Up to three blocks, or clusters of up to eight blocks, run at a time.
 * A thread yields only at barriers, warp shuffles and atomics, to a random one: a thread or a block may be far
 * ahead of others, so a kernel that lacks a barrier, of the block or of the cluster, reads values that are not
 * written yet. The program stops when threads wait for each other at different barriers, when lanes are missing in
 * a shuffle, when a loop never ends and when two threads set a condition.
 *
 * Streams are queues whose items run as late as possible: when the host waits for them, frees memory, or (one item
 * at a time) queries a mark. The streams then alternate at random; only the order within a stream and events
 * constrain them. Copies read pinned memory when they run; pageable memory is read at once, and downloads to it are
 * synchronous, both as in the real runtime. Pinned memory is NaN while a download to it is queued. A copy beyond an
 * allocation is refused.
 *
 * Graphs are chains of kernels and of while nodes; two nodes without an order stop the program.
 *
 * What a program must never do ends it with a message: a handle that was closed, or that a reset has closed; memory
 * from before a reset that is copied or freed; a reset while another thread is inside a call; pinned memory that is
 * written while a queued copy reads it. cudaDeviceReset takes everything, whatever thread has made it; what it
 * frees stays allocated, filled with NaN, so that no address comes back (ASan reports every access).
 *
 * Errors are those of the runtime: some stay until the reset and fail all calls of all threads (a fault in a
 * kernel, known when it runs), others fail one call (no memory, a launch that is refused). The last error belongs
 * to a thread. Tests choose what fails and how: emulated_errors.c. Flags and kinds of copies that gpu/ has no
 * reason to use are refused; so are launches beyond the launch bounds of a kernel (emulated_bounds.h), and launches
 * without memory for the stacks of all threads (emulated_kernels.c). One mutex lets one call in at a time.
 *
 * CUDART_VERSION is 12040; a program may be compiled with 13000, where the functions differ.
 *
 * The emulation cannot detect: races between two accesses with no barrier, shuffle or atomic between them in time,
 * writes that other blocks see late (fences, caches), work that runs earlier than it must, alignment faults,
 * launches that need more registers, shared memory or processors than a device has, speed.
 *
 * Kernels have one argument, a struct ndt_gpu_job by value, or a struct ndt_gpu_single as a second one; the array
 * of arguments ends with NULL where it has one.
 *
 * A thread that asks for an event twice in a row waits for it: then what is before it runs. A launch that hangs
 * lets no later work of its stream begin; only such questions come back. */
#ifndef EMULATED_CUDA_RUNTIME_API_H
#define EMULATED_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUDART_VERSION /* a program may be compiled for another */
#define CUDART_VERSION 12040
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorSetOnActiveProcess = 708,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum {
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4
};
enum { cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2 };
enum {
    cudaDeviceScheduleAuto = 0,
    cudaDeviceScheduleSpin = 1,
    cudaDeviceScheduleYield = 2,
    cudaDeviceScheduleBlockingSync = 4,
    cudaDeviceScheduleMask = 7
};
enum { cudaInitDeviceFlagsAreValid = 1 };
enum cudaDeviceAttr { cudaDevAttrClusterLaunch = 120 };
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef unsigned long long cudaGraphConditionalHandle;
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock;
};

typedef enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 } cudaLaunchAttributeID;
typedef struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union {
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
} cudaLaunchAttribute;
typedef struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

enum { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile };
enum cudaGraphNodeType { cudaGraphNodeTypeKernel = 0, cudaGraphNodeTypeConditional = 13 };
struct cudaKernelNodeParamsV2 {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams;
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    enum cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t *phGraph_out;
};
struct cudaGraphNodeParams {
    enum cudaGraphNodeType type;
    union {
        struct cudaKernelNodeParamsV2 kernel;
        struct cudaConditionalNodeParams conditional;
    };
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned *flags);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel);
const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaHostGetDevicePointer(void **on_device, void *memory, unsigned flags);
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *took_ms, cudaEvent_t start, cudaEvent_t stop);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments);
enum cudaFuncAttribute { cudaFuncAttributeNonPortableClusterSizeAllowed = 13 };
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned at_launch, unsigned flags);
#if CUDART_VERSION >= 13000
struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type;
};
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                             const struct cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *params);
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                             struct cudaGraphNodeParams *params);
#endif
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/* Failures of a device, for tests; see emulated_errors.c for the environment variable. */
void emulated_fail_launches(int after, int count); /* `count` launches fail, `after` good ones from now; sticky */
void emulated_fail_launches_with(int after, int count, cudaError_t code);
void emulated_fail_calls(const char *call, int after, int count, cudaError_t code); /* calls fail, likewise */
void emulated_hang_launches(int after, int count);                                  /* launches never end, likewise
                                                                                     */
void emulated_end_hang(void);                                                       /* all launches end after all */
extern int emulated_keeps_flags; /* 1: a device in use refuses other flags, as with older runtimes; 0: takes them */
extern int emulated_allows_overwriting; /* 1: pinned memory may be written while a queued copy reads it */

#ifdef __cplusplus
}
#endif
#endif

/* Launches that are put together once: chains of a kernel, and a kernel as the body of a while node. */
#include "cuda_call.h"

/* Appends a node behind `*last` (NULL: it is the first) and moves that on. From CUDA 13 on edges carry data. */
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

/* What is launched; the job is copied into every node. */
struct shape {
    const void *kernel;
    unsigned blocks, threads;
    struct ndt_gpu_job job;
};

static cudaError_t append_kernel(cudaGraph_t graph, cudaGraphNode_t *last, struct shape *shape)
{
    void *arguments[] = {&shape->job};
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
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    cudaError_t code = cudaGraphCreate(&graph, 0);
    if (code == cudaSuccess)
        code = length > 0 ? add_chain(graph, length, &shape) : add_loop(graph, &shape);
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&out->exec, graph, 0);
    if (code == cudaSuccess) /* now, and not as a part of the first launch */
        code = cudaGraphUpload(out->exec, device->streams[NDT_CUDA_MAIN]);
    if (graph)
        (void)cudaGraphDestroy(graph);
    status = ndt_cuda_check_allocated(device, code, 0, "a graph", err);
    if (status != NDT_OK)
        ndt_cuda_graph_free(device, out);
    return status;
}

enum ndt_status ndt_cuda_graph_launch(struct ndt_cuda_device *device, const struct ndt_cuda_graph *graph,
                                      struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_enter(device, err);
    if (status != NDT_OK)
        return status;
    device->counters.launches++;
    return ndt_cuda_check(device, cudaGraphLaunch(graph->exec, device->streams[NDT_CUDA_MAIN]), "launch of a graph",
                          err);
}

void ndt_cuda_graph_free(struct ndt_cuda_device *device, struct ndt_cuda_graph *graph)
{
    if (graph->exec && device->is_open) {
        (void)cudaStreamSynchronize(device->streams[NDT_CUDA_MAIN]); /* it may still be on its way */
        (void)cudaGraphExecDestroy(graph->exec);
    }
    graph->exec = NULL;
}

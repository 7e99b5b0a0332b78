/** @file
 * @brief A graph whose only node loops around a kernel that counts: no code of ndtd, for what a tool does to such
 * graphs.
 *
 *     nvcc -arch=native -o loop loop.cu && compute-sanitizer --tool memcheck ./loop
 * Prints "ok" or what failed. Exit codes: 0, 1. */
#include <cuda_runtime.h>
#include <stdio.h>

enum { GRAPHS = 10, LAUNCHES = 10, PASSES = 20 };

static __global__ void pass(unsigned *count, cudaGraphConditionalHandle loop)
{
    if (threadIdx.x == 0 && blockIdx.x == 0 && ++*count % PASSES == 0)
        cudaGraphSetConditional(loop, 0);
    __syncthreads(); /* synccheck watches kernels with barriers only */
}

static cudaError_t make(cudaGraph_t graph, unsigned *count)
{
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t outer, inner;
    cudaError_t code = cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault);
    if (code != cudaSuccess)
        return code;
    struct cudaGraphNodeParams loop = {}, body = {};
    loop.type = cudaGraphNodeTypeConditional;
    body.type = cudaGraphNodeTypeKernel;
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    void *arguments[] = {&count, &handle};
    body.kernel.func = (void *)pass;
    body.kernel.gridDim = dim3(8);
    body.kernel.blockDim = dim3(128);
    body.kernel.kernelParams = arguments;
#if CUDART_VERSION >= 13000
    code = cudaGraphAddNode(&outer, graph, NULL, NULL, 0, &loop);
    return code == cudaSuccess ? cudaGraphAddNode(&inner, loop.conditional.phGraph_out[0], NULL, NULL, 0, &body)
                               : code;
#else
    code = cudaGraphAddNode(&outer, graph, NULL, 0, &loop);
    return code == cudaSuccess ? cudaGraphAddNode(&inner, loop.conditional.phGraph_out[0], NULL, 0, &body) : code;
#endif
}

static cudaError_t run(unsigned *count, cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaError_t code = cudaGraphCreate(&graph, 0);
    if (code == cudaSuccess)
        code = make(graph, count);
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; code == cudaSuccess && i < LAUNCHES; i++) {
        code = cudaGraphLaunch(exec, stream);
        if (code == cudaSuccess)
            code = cudaStreamSynchronize(stream);
    }
    if (code == cudaSuccess)
        code = cudaGraphExecDestroy(exec);
    return code == cudaSuccess ? cudaGraphDestroy(graph) : code;
}

int main(void)
{
    unsigned *count = NULL, passes = 0;
    cudaStream_t stream;
    cudaError_t code = cudaStreamCreate(&stream);
    if (code == cudaSuccess)
        code = cudaMalloc(&count, sizeof(*count));
    if (code == cudaSuccess)
        code = cudaMemset(count, 0, sizeof(*count));
    if (code == cudaSuccess)
        code = cudaDeviceSynchronize();
    for (int i = 0; code == cudaSuccess && i < GRAPHS; i++)
        code = run(count, stream);
    if (code == cudaSuccess)
        code = cudaMemcpy(&passes, count, sizeof(passes), cudaMemcpyDeviceToHost);
    const int is_right = code == cudaSuccess && passes == GRAPHS * LAUNCHES * PASSES;
    printf("%s: %u passes of %d, %s\n", is_right ? "ok" : "FAIL", passes, GRAPHS * LAUNCHES * PASSES,
           cudaGetErrorString(code));
    return !is_right;
}

/** @file
 * @brief Graphs: chains of kernel nodes and while nodes. */
#include <stdlib.h>

#include "emulated_device.h"
#include "emulated_errors.h"
#include "emulated_graph.h"
#include "emulated_kernels.h"

enum { MOST_ROUNDS = 2000 };

struct CUgraphNode_st {
    struct CUgraphNode_st *next, *before; /* next node of the graph; node that it follows */
    struct emulated_launch launch;
    cudaGraph_t body; /* body of a while node; NULL: a kernel */
    struct condition *condition;
    int has_run;
};

struct condition {
    struct condition *next;
    unsigned at_launch, flags, value;
    int is_running, is_set; /* its loop runs; it was set in this round */
    unsigned set_by[2];     /* block and thread */
};

/* An executable graph is the graph itself, held once more. It is kept when nothing holds it, without its nodes, so
 * that its address does not come back. */
struct CUgraph_st {
    struct CUgraph_st *next;
    enum emulated_handle state, exec_state;
    int holders, is_final, queued;
    struct CUgraphNode_st *nodes;
    struct condition *conditions;
};

static struct CUgraph_st *graphs;

static cudaGraph_t graph_of(cudaGraphExec_t exec)
{
    return (cudaGraph_t)(void *)exec;
}

static void check_graph(const struct CUgraph_st *graph)
{
    emulated_check_handle(graph, graph ? graph->state : EMULATED_CLOSED, "a graph");
}

void emulated_graph_check(cudaGraphExec_t exec)
{
    emulated_check_handle(exec, exec ? graph_of(exec)->exec_state : EMULATED_CLOSED, "an executable graph");
}

static void let_go(cudaGraph_t graph)
{
    if (--graph->holders > 0)
        return;
    for (struct CUgraphNode_st *node = graph->nodes, *next; node; node = next) {
        next = node->next;
        if (node->body)
            let_go(node->body);
        free(node);
    }
    for (struct condition *condition = graph->conditions, *next; condition; condition = next) {
        next = condition->next;
        free(condition);
    }
    graph->nodes = NULL;
    graph->conditions = NULL;
}

void emulated_graphs_reset(void)
{
    for (struct CUgraph_st *graph = graphs; graph; graph = graph->next) {
        graph->state = graph->state == EMULATED_OPEN ? EMULATED_RESET : graph->state;
        graph->exec_state = graph->exec_state == EMULATED_OPEN ? EMULATED_RESET : graph->exec_state;
    }
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    *graph = flags == 0 ? calloc(1, sizeof(**graph)) : NULL;
    if (!*graph)
        return emulated_note(flags == 0 ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    **graph = (struct CUgraph_st){.next = graphs, .state = EMULATED_OPEN, .holders = 1};
    graphs = *graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    EMULATED_CONTEXT_CALL;
    check_graph(graph);
    graph->state = EMULATED_CLOSED;
    let_go(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned at_launch, unsigned flags)
{
    EMULATED_CONTEXT_CALL;
    check_graph(graph);
    if (flags & ~(unsigned)cudaGraphCondAssignDefault)
        return emulated_note(cudaErrorInvalidValue);
    struct condition *condition = emulated_has_loops() ? calloc(1, sizeof(*condition)) : NULL;
    if (!condition)
        return emulated_note(cudaErrorNotSupported);
    *condition = (struct condition){.next = graph->conditions, .at_launch = at_launch, .flags = flags};
    graph->conditions = condition;
    *handle = (uintptr_t)condition;
    return cudaSuccess;
}

static cudaError_t make_kernel(struct CUgraphNode_st *node, const struct cudaKernelNodeParamsV2 *params)
{
    const cudaError_t code = emulated_admit(params->func, params->gridDim, params->blockDim);
    return code != cudaSuccess ? code
                               : emulated_launch_make(&node->launch, params->func, params->gridDim,
                                                      params->blockDim, 1, params->kernelParams);
}

static cudaError_t make_loop(struct CUgraphNode_st *node, cudaGraph_t graph,
                             struct cudaConditionalNodeParams *params)
{
    struct condition *condition = graph->conditions;
    while (condition && (uintptr_t)condition != params->handle)
        condition = condition->next;
    if (!condition || params->type != cudaGraphCondTypeWhile || params->size != 1)
        return cudaErrorInvalidValue;
    node->condition = condition;
    const cudaError_t code = cudaGraphCreate(&node->body, 0);
    params->phGraph_out = &node->body;
    return code;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                             const struct cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *params)
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                             struct cudaGraphNodeParams *params)
#endif
{
    EMULATED_CONTEXT_CALL;
    check_graph(graph);
#if CUDART_VERSION >= 13000
    if (edges)
        emulated_misuse("a graph", "with data on its edges, which is not emulated");
#endif
    if (graph->is_final || count > 1)
        emulated_misuse("a graph", "that is not emulated: changed after it was made executable, or not a chain");
    struct CUgraphNode_st *node = calloc(1, sizeof(*node));
    if (!node)
        return emulated_note(cudaErrorMemoryAllocation);
    node->before = count ? before[0] : NULL;
    const cudaError_t code = params->type == cudaGraphNodeTypeKernel ? make_kernel(node, &params->kernel)
                                                                     : make_loop(node, graph, &params->conditional);
    if (code != cudaSuccess) {
        free(node);
        return emulated_note(code);
    }
    node->next = graph->nodes;
    graph->nodes = node;
    *out = node;
    return cudaSuccess;
}

static void make_final(cudaGraph_t graph)
{
    graph->is_final = 1;
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
        if (node->body)
            make_final(node->body);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    EMULATED_CONTEXT_CALL;
    check_graph(graph);
    if (flags != 0 || graph->exec_state != EMULATED_CLOSED)
        return emulated_note(cudaErrorInvalidValue);
    make_final(graph);
    graph->holders++;
    graph->exec_state = EMULATED_OPEN;
    *exec = (cudaGraphExec_t)(void *)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    EMULATED_CONTEXT_CALL;
    emulated_graph_check(exec);
    if (graph_of(exec)->queued > 0)
        emulated_misuse("a graph is destroyed", "that is queued");
    graph_of(exec)->exec_state = EMULATED_CLOSED;
    let_go(graph_of(exec));
    return cudaSuccess;
}

void emulated_graph_hold(cudaGraphExec_t exec, int more)
{
    graph_of(exec)->queued += more;
}

/* Set twice in a round by different threads, the value would depend on their order. */
void emulated_set_condition(uint64_t handle, unsigned value)
{
    struct condition *condition = (struct condition *)(uintptr_t)handle; /* a handle is the address */
    const unsigned by[2] = {emulated_grid_now.block.x, emulated_grid_now.thread.x};
    if (!condition || !condition->is_running)
        emulated_stop("a condition is set whose loop is not running");
    if (condition->is_set && (condition->set_by[0] != by[0] || condition->set_by[1] != by[1]))
        emulated_stop("two threads set the condition of a loop in one round");
    condition->is_set = 1;
    condition->set_by[0] = by[0];
    condition->set_by[1] = by[1];
    condition->value = value;
}

static void run_nodes(cudaGraph_t graph);

static void run_loop(cudaGraph_t body, struct condition *condition)
{
    condition->is_running = 1;
    for (int rounds = 0; condition->value != 0; rounds++) {
        if (rounds == MOST_ROUNDS)
            emulated_misuse("a loop in a graph", "that never ends");
        condition->is_set = 0;
        run_nodes(body);
    }
    condition->is_running = 0;
}

/* The node that may run now; NULL: all have run. */
static struct CUgraphNode_st *next_node(cudaGraph_t graph)
{
    struct CUgraphNode_st *found = NULL;
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next) {
        if (node->has_run || (node->before && !node->before->has_run))
            continue;
        if (found)
            emulated_misuse("two nodes of a graph", "have no order");
        found = node;
    }
    return found;
}

static void run_nodes(cudaGraph_t graph)
{
    struct CUgraphNode_st *node;
    for (node = graph->nodes; node; node = node->next)
        node->has_run = 0;
    while ((node = next_node(graph))) {
        if (node->body)
            run_loop(node->body, node->condition);
        else
            emulated_run(&node->launch);
        node->has_run = 1;
    }
}

void emulated_graph_run(cudaGraphExec_t exec)
{
    cudaGraph_t graph = graph_of(exec);
    for (struct condition *condition = graph->conditions; condition; condition = condition->next)
        if (condition->flags & cudaGraphCondAssignDefault)
            condition->value = condition->at_launch;
    run_nodes(graph);
}

/** @file
 * @brief The graphs of the resident pipelines, one per size of a batch. A graph is made when it is first needed;
 * the least recently used ones are freed when there are too many or their memory is needed. */
#ifndef NDT_CUDA_GRAPHS_H
#define NDT_CUDA_GRAPHS_H

#include "cuda_device.h"

enum {
    NDT_CUDA_GRAPHS = 32,               /**< largest number of graphs */
    NDT_CUDA_GRAPH_BYTES = 16 << 20,    /**< memory of all graphs on the device; one is kept in any case */
    NDT_CUDA_GRAPH_NODE_BYTES = 8 << 10 /**< estimate, where the device does not tell */
};

/** Launches of `kernel` for up to `items` of up to `blocks` each, `length` in a row (0: a loop). */
struct ndt_cuda_graph_size {
    const void *kernel;
    unsigned items, blocks, length;
};

struct ndt_cuda_cached_graph {
    struct ndt_cuda_graph graph;
    struct ndt_cuda_graph_size size;
    size_t bytes;
    uint64_t used; /**< time of the last use: larger is later */
};

/** Zero-initialised: empty. */
struct ndt_cuda_graphs {
    struct ndt_cuda_cached_graph entries[NDT_CUDA_GRAPHS];
    size_t bytes;
    uint64_t now;
};

/** Finds the graph for a batch of that size, or of the next larger one that is worth a graph. Counts the graphs
 * that were made, and the bytes of the existing ones, in device->counters. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_graphs_find(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device,
                                                    const struct ndt_cuda_graph_size *size,
                                                    const struct ndt_gpu_job *job, struct ndt_cuda_graph **out,
                                                    struct ndt_error *err);
void ndt_cuda_graphs_free(struct ndt_cuda_graphs *graphs, struct ndt_cuda_device *device);

#endif

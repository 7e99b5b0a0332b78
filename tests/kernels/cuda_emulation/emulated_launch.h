/* Kernels on their way, in the order in which a stream or a graph comes to them. */
#ifndef EMULATED_LAUNCH_H
#define EMULATED_LAUNCH_H

#include "cuda_runtime_api.h"
#include "gpu_job.h"

enum { EMULATED_MOST_THREADS = 1024, EMULATED_MOST_CLUSTER = 8 };

struct emulated_launch {
    const void *kernel;
    dim3 grid, block;
    unsigned cluster;
    struct ndt_gpu_job job;
};

/* cudaErrorInvalidConfiguration where the device does not know such a shape. */
cudaError_t emulated_launch_make(struct emulated_launch *out, const void *kernel, dim3 grid, dim3 block,
                                 unsigned cluster, void **arguments);

/* Whether the device knows clusters, and loops in graphs. */
int emulated_has_clusters(void);
int emulated_has_loops(void);

/* A launch begins: counts towards the failures that were asked for. Whether the device works. */
int emulated_begins(void);
int emulated_works(void);

/* Runs a graph from its first node to its last. */
void emulated_graph_run(cudaGraphExec_t exec);
/* One more place that will run it; one less. */
void emulated_graph_hold(cudaGraphExec_t exec, int more);

/* What memory is: bytes from `memory` on, all in one allocation. */
enum emulated_memory { EMULATED_PAGEABLE, EMULATED_PINNED, EMULATED_DEVICE, EMULATED_OUTSIDE };
enum emulated_memory emulated_memory_of(const void *memory, size_t bytes);

/* Everything that is queued runs, or is forgotten. */
void emulated_finish_all(void);
void emulated_forget_all(void);

#endif

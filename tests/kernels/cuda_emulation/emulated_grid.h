/* The blocks of a launch, and their threads as fibers; see include/cuda_runtime_api.h. */
#ifndef EMULATED_GRID_H
#define EMULATED_GRID_H

#include <stdint.h>

#include "cuda_runtime_api.h"
#include "gpu_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who runs now. */
extern struct emulated_grid {
    dim3 thread, block, threads, blocks;
    unsigned cluster; /* blocks of a cluster */
} emulated_grid_now;

/* All threads of the block that have not returned have to come; otherwise the program stops with a message. Returns
 * how many of them brought something other than zero. */
unsigned emulated_barrier(int brought);
/* The same for all blocks of the cluster. */
void emulated_cluster_barrier(void);
unsigned emulated_cluster_rank(void);
unsigned emulated_cluster_size(void);
/* All 32 lanes of the warp have to come, with a full mask. Returns what each of them brought, until the next one.
 */
const uint64_t *emulated_exchange(unsigned mask, uint64_t value);

/* After what other blocks can see: somebody else runs now, most likely of another block. */
void emulated_yield(void);

/* A kernel on its way, in the order in which a stream or a graph comes to it. */
struct emulated_launch {
    const void *kernel;
    dim3 grid, block;
    unsigned cluster;
    struct ndt_gpu_job job;
};
/* cudaErrorInvalidConfiguration where the device does not know such a shape. */
cudaError_t emulated_launch_make(struct emulated_launch *out, const void *kernel, dim3 grid, dim3 block,
                                 unsigned cluster, void **arguments);
/* Runs a whole launch, whose shape is known to be possible. */
void emulated_run(const struct emulated_launch *launch);
/* A message of the emulation about the kernel that runs, and the end of the program. */
void emulated_stop(const char *what);

#ifdef __cplusplus
}
#endif
#endif

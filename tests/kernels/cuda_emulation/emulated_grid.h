/* The threads of a block as fibers; see include/cuda_runtime_api.h. */
#ifndef EMULATED_GRID_H
#define EMULATED_GRID_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who runs now. */
extern struct emulated_grid {
    dim3 thread, block, threads, blocks;
} emulated_grid_now;

/* All threads of the block that have not returned have to come; otherwise the program stops with a message. */
void emulated_barrier(void);
/* All 32 lanes of the warp have to come, with a full mask. */
float emulated_shuffle_xor(unsigned mask, float value, int lanes);

/* After what other blocks can see: somebody else runs now, most likely of another block. */
void emulated_give_way(void);

struct ndt_gpu_job;
/* Runs a whole launch. */
void emulated_run(const void *kernel, dim3 grid, dim3 block, const struct ndt_gpu_job *job);

#ifdef __cplusplus
}
#endif
#endif

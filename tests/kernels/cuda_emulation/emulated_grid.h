/** @file
 * @brief The blocks of a launch, and their threads as fibers; see include/cuda_runtime_api.h. */
#ifndef EMULATED_GRID_H
#define EMULATED_GRID_H

#include <stdint.h>

#include "cuda_runtime_api.h"
#include "gpu_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The running thread and block. */
extern struct emulated_grid {
    dim3 thread, block, threads, blocks;
    unsigned cluster; /* blocks of a cluster */
} emulated_grid_now;

/* All threads of the block that have not returned have to call it; otherwise the program stops with a message.
 * Returns how many of them passed a value other than zero. */
unsigned emulated_barrier(int brought);
/* The block barrier without values. */
void emulated_plain_barrier(void);
/* The barrier of all blocks of the cluster. */
void emulated_cluster_barrier(void);
unsigned emulated_cluster_rank(void);
unsigned emulated_cluster_size(void);
/* All 32 lanes of the warp have to call it, with a full mask. Returns the value of each, valid until the next call.
 */
const uint64_t *emulated_exchange(unsigned mask, uint64_t value);
/* The warp barrier without values; orders memory. */
void emulated_warp_barrier(unsigned mask);
void emulated_fence(void);

/* Lets another thread run, most likely of another block, after a write that other blocks can see. */
void emulated_yield(void);
/* Another thread may run now. */
void emulated_pause(void);

/* A planted fault leaves out the next barrier, fence or atomic of this thread: its call follows at once. */
void emulated_leave_out(int is_left_out);
int emulated_is_left_out(void); /* the next one is now */

/* Accesses of the emulation on behalf of a kernel, for a race detector, before they happen. */
void emulated_plain(const void *at, unsigned bytes, int writes);
void emulated_constant(const void *at, unsigned bytes);
/* Whether the atomic is one; otherwise it is a load, emulated_between, and a store. */
int emulated_atomic_begins(const void *at, unsigned bytes);
void emulated_atomic(const void *at, unsigned bytes, int writes);
void emulated_between(const void *at, unsigned bytes);

/* Number of the block with this rank in the cluster of the running one. */
uint32_t emulated_block_of_rank(unsigned rank);
/* The address in another block's shared memory that corresponds to `at` in that of the running block, for reading
 * or writing so many bytes now; NULL once the other block has ended. */
void *emulated_shared_of(const void *at, unsigned bytes, uint32_t block);

/* The scheduler calls it after each step of a thread; NULL: nothing. */
extern void (*emulated_after_step)(void);

/* A queued launch of a kernel, by a stream or a graph. */
struct emulated_launch {
    const void *kernel;
    dim3 grid, block;
    unsigned cluster;
    struct ndt_gpu_job job;
    int has_single; /* a kernel with a second argument */
    struct ndt_gpu_single single;
};
/* cudaErrorInvalidConfiguration where the device does not support the shape. */
cudaError_t emulated_launch_make(struct emulated_launch *out, const void *kernel, dim3 grid, dim3 block,
                                 unsigned cluster, void **arguments);
/* Runs a whole launch, whose shape is known to be possible. */
void emulated_run(const struct emulated_launch *launch);
/* A message of the emulation about the kernel that runs, and the end of the program. */
void emulated_stop(const char *what) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif

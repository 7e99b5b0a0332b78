/** @file
 * @brief Kernels for check_device: each uses one ability of a device and writes its result to `job.sums`.
 */
#ifndef DEVICE_KERNELS_H
#define DEVICE_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Every block: sums[2 + block] is set. The last block of a launch (ticket) counts launches in
 * sums[1] and blocks in sums[0]; after `count` launches it ends the loop and sets sums[1] to zero. Without a loop
 * count is 0. */
const void *kernel_count_up(void);
/* Thread i: sums[i] = x_m[i], for i < count. */
const void *kernel_take(void);
/* Thread i of block b leaves 1000 b + i in block_sums; sums gets what thread i of the next block of the cluster
 * left, with the cluster's barrier between the two only where count > 0. */
const void *kernel_pass_on(void);
/* A kernel of one block with votes, shuffles and atomics; sums[0 ..] are 1 where they work. */
const void *kernel_work_together(void);
/* Faults: some threads at another barrier, a loop that two threads steer, a loop that never ends. */
const void *kernel_part_candidates(void);
const void *kernel_steer_twice(void);
const void *kernel_go_on(void);
/* An empty kernel with at most NDT_GPU_BLOCK threads per block. */
const void *kernel_bounded(void);

#ifdef __cplusplus
}
#endif
#endif

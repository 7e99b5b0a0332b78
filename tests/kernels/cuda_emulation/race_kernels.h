/** @file
 * @brief A kernel for check_race_detector: small patterns with and without what orders them. */
#ifndef RACE_KERNELS_H
#define RACE_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

enum race_pattern {
    /* One block. */
    RACE_BARRIER,
    RACE_NO_BARRIER,
    RACE_WARP_BARRIER,
    RACE_SHUFFLE,
    RACE_LOAD_THEN_STORE,
    RACE_SEPARATE_BYTES,
    RACE_SAME_BYTE,
    RACE_CONSTANT_WRITTEN,
    RACE_UNWRITTEN,
    /* Two blocks: one leaves a number and raises a flag, the other finds the flag and takes the number. */
    RACE_MESSAGE,
    RACE_MESSAGE_PLAIN_FLAG,
    RACE_MESSAGE_VOLATILE_FLAG,
    RACE_MESSAGE_NO_RELEASE,
    RACE_MESSAGE_NO_ACQUIRE,
    RACE_MESSAGE_NO_ACQUIRE_LDCG,
    RACE_MESSAGE_VOLATILE,          /* the number is volatile too */
    RACE_MESSAGE_VOLATILE_UNFENCED, /* no race, but the number may be an older one */
    /* All threads of each block leave numbers; the last block to count itself adds them. */
    RACE_LAST_BLOCK,
    RACE_LAST_BLOCK_NO_BARRIER,
    RACE_LAST_BLOCK_NO_FENCE,
    /* A cluster of two. */
    RACE_CLUSTER,
    RACE_CLUSTER_NO_BARRIER,
    RACE_SENT,
    RACE_SENT_NO_WAIT,
    RACE_SENT_GLOBAL, /* the wait hands over shared memory only */
    RACE_PATTERNS
};

/* job.count: the pattern. job.sums[0]: what was found, and sums[1] whether something was found. */
const void *kernel_race_pattern(void);

#ifdef __cplusplus
}
#endif
#endif

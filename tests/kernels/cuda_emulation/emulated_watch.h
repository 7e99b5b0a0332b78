/** @file
 * @brief Events of the running kernels for a race detector; see race_detector.c. Without a detector nothing is
 * watched. */
#ifndef EMULATED_WATCH_H
#define EMULATED_WATCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lane is a thread of the grid: block * threads + thread. Functions without a lane are about the running one. */
struct emulated_watch {
    void (*launch)(void); /* emulated_grid_now is set: what ran before has ended, and all can see what it wrote */
    void (*block)(const void *shared, size_t bytes, unsigned slot); /* a block starts in this slot */
    /* The lanes meet: what each did before is visible to all afterwards. */
    void (*meet)(const uint32_t *lanes, unsigned count);
    void (*fence)(void);                                        /* device scope, sequentially consistent */
    void (*atomic)(const void *at, unsigned bytes, int writes); /* relaxed; before its write */
    void (*plain)(const void *at, unsigned bytes, int writes);  /* an access that nothing instruments */
    void (*constant)(const void *at, unsigned bytes);           /* a load through the cache of constant data */
    void (*leave)(void);                                        /* another lane will run */
    /* Distributed shared memory: `at` lies in the shared memory of the running block, but block `owner` is meant.
     * Barriers of memory transactions are numbered within a block. */
    void (*remote)(const void *at, unsigned bytes, uint32_t owner, int writes);
    void (*sent)(const void *at, unsigned bytes, uint32_t owner, unsigned barrier);
    void (*arrive)(uint32_t owner, unsigned barrier);
    void (*complete)(uint32_t owner, unsigned barrier);
    void (*waited)(uint32_t owner, unsigned barrier);
};

extern const struct emulated_watch *emulated_watch; /* NULL: none */

#ifdef __cplusplus
}
#endif
#endif

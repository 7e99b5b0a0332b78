/** @file
 * @brief A thread of a block: runs on a stack of its own until it gives way.
 *
 * One scheduler, one system thread. */
#ifndef EMULATED_FIBER_H
#define EMULATED_FIBER_H

#include <stddef.h>

struct emulated_fiber {
    char *stack;         /* lowest byte of the stack; the page there is never touched */
    size_t unused_bytes; /* above the first frame */
    void *context;
    void *fake_stack; /* the sanitizer's */
};

enum { EMULATED_STACK_BYTES = 128 << 10 };

/* The range of all stacks: the first byte, and the one after the last. */
extern const char *emulated_stacks, *emulated_stacks_end;

/* Address space for so many stacks; memory comes as they are used. The lowest page of each is closed. */
void emulated_fiber_stacks(struct emulated_fiber *fibers, size_t count);
/* `start` will be called at the first emulated_fiber_enter; it must not return. */
void emulated_fiber_prepare(struct emulated_fiber *fiber, void (*start)(void));
/* Runs the fiber until it leaves; called by the scheduler. */
void emulated_fiber_enter(struct emulated_fiber *fiber);
/* Returns to the scheduler; called by the fiber that was entered. If not for good, the fiber goes on from here
 * later. */
void emulated_fiber_leave(int for_good);

#endif

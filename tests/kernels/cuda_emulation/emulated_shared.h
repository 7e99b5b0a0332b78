/** @file
 * @brief Shared memory: kernels name one place, where that of the running block lies; each block that waits has a
 * copy.
 *
 * Only chunks that a block of the launch has written differ between blocks, so only they are copied. */
#ifndef EMULATED_SHARED_H
#define EMULATED_SHARED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Place and size of the shared memory of all kernels; there may be none. */
char *emulated_shared_place(void);
size_t emulated_shared_bytes(void);
/* A copy for emulated_shared_swap. Never fails. */
char *emulated_shared_make(void);
/* A launch begins: the place and all copies are as for a block that begins. */
void emulated_shared_launch(void);
/* A block begins: what is in the place becomes 0xff. */
void emulated_shared_begin(void);
/* Saves the place to the copy `from`, unless it is NULL, and loads it from the copy `to`, unless it is NULL. */
void emulated_shared_swap(char *from, const char *to);
/* Bytes of a copy that another block writes. */
void emulated_shared_written(size_t at, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

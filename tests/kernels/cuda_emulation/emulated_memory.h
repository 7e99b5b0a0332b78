/** @file
 * @brief Memory of the emulated device, and memory of the host that it can read. */
#ifndef EMULATED_MEMORY_H
#define EMULATED_MEMORY_H

#include "cuda_runtime_api.h"

/* Kinds of memory: bytes from `memory` on, all in one allocation. Memory from before a reset ends the program. */
enum emulated_memory { EMULATED_PAGEABLE, EMULATED_PINNED, EMULATED_DEVICE, EMULATED_OUTSIDE };
enum emulated_memory emulated_memory_of(const void *memory, size_t bytes);

/* EMULATED_PINNED or EMULATED_DEVICE; NULL: no memory. Device memory is counted; whether it fits is the caller's.
 */
void *emulated_allocate(size_t bytes, enum emulated_memory kind);
void emulated_release(void *memory, enum emulated_memory kind);
/* Whether memory of the device holds a whole word, 8 bytes at a multiple of 8, that nothing has written since it
 * was allocated. */
int emulated_is_unwritten(const void *memory, size_t bytes);
/* Memory of the process, which becomes EMULATED_PINNED. It is filled with NaN, which the runtime does not do: what
 * nothing wrote is not to be zero by chance. */
cudaError_t emulated_register(void *memory, size_t bytes);
cudaError_t emulated_unregister(void *memory);

/* Of the device, all of it and what is free. */
size_t emulated_memory_bytes(void);
size_t emulated_free_bytes(void);
/* Takes some of it until the next reset; 0: there is too little. */
int emulated_take_bytes(size_t bytes);
/* Poisons everything, what is registered ends to be; nothing of it may be used or freed from now on. */
void emulated_memory_reset(void);

#endif

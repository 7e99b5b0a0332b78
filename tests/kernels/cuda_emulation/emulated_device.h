/** @file
 * @brief The emulated device: what it can do, its memory, its failures, and what is left to chance. */
#ifndef EMULATED_DEVICE_H
#define EMULATED_DEVICE_H

#include <stddef.h>

enum { EMULATED_MOST_THREADS = 1024, EMULATED_MOST_CLUSTER = 8 };

unsigned emulated_chance(unsigned limit); /* 0 .. limit - 1 */
/* Begins again as if NDT_EMULATION_SEED had been this: for tests that try several orders. */
void emulated_set_seed(unsigned seed);

/* Whether the device knows clusters, and loops in graphs. */
int emulated_has_clusters(void);
int emulated_has_loops(void);
/* Whether kernels can write pinned memory. */
int emulated_can_map(void);

/* A launch begins: counts towards the failures that were asked for. Whether the device works. */
int emulated_begins(void);
int emulated_works(void);
/* It works again. */
void emulated_reset(void);

/* What memory is: bytes from `memory` on, all in one allocation. */
enum emulated_memory { EMULATED_PAGEABLE, EMULATED_PINNED, EMULATED_DEVICE, EMULATED_OUTSIDE };
enum emulated_memory emulated_memory_of(const void *memory, size_t bytes);
/* EMULATED_PINNED or EMULATED_DEVICE; NULL: no memory. Device memory is counted; whether it fits is the caller's.
 */
void *emulated_allocate(size_t bytes, enum emulated_memory kind);
void emulated_release(void *memory, enum emulated_memory kind);
size_t emulated_memory_bytes(void);
size_t emulated_free_bytes(void);

#endif

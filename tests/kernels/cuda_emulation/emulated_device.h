/** @file
 * @brief The emulated device: what it can do, and what is left to chance. */
#ifndef EMULATED_DEVICE_H
#define EMULATED_DEVICE_H

#include "emulated_memory.h"

enum { EMULATED_MOST_THREADS = 1024, EMULATED_MOST_CLUSTER = 8 };
enum { EMULATED_PROCESSORS = EMULATED_MOST_CLUSTER, EMULATED_PROCESSOR_THREADS = 2048 };

unsigned emulated_chance(unsigned limit); /* 0 .. limit - 1 */
/* Begins again as if NDT_EMULATION_SEED had been this: for tests that try several orders. */
void emulated_set_seed(unsigned seed);

/* Whether the device knows clusters, and loops in graphs. */
int emulated_has_clusters(void);
unsigned emulated_cluster_room(void); /* most blocks of one */
int emulated_has_loops(void);
/* Whether kernels can write pinned memory. */
int emulated_can_map(void);

#endif

/** @file
 * @brief Shadow of each word of memory: its last writer, and its readers since then. */
#ifndef RACE_SHADOW_H
#define RACE_SHADOW_H

#include <stddef.h>
#include <stdint.h>

#include "race_clock.h"

/* Accesses that are strong ("volatile" and atomics) do not race with each other; weak ones do. */
enum race_kind { RACE_WEAK = 0, RACE_STRONG = 1, RACE_STORED = 2, RACE_CONSTANT = 4 };

/* Lanes of one warp that did the same in the same epoch, since the last ordered write. RACE_STORED: earlier strong
 * writes, which the last one does not know of. */
struct race_group {
    uint32_t warp, epoch, lanes;
    uint32_t kind, site;
};

struct race_cell {
    uint32_t lane, epoch; /* last write; epoch 0: none in this launch */
    uint32_t site, old;   /* site of the write, and the value before it */
    uint8_t is_strong, is_constant, is_split, is_shared;
    uint16_t group_count, group_capacity;
    struct race_group *groups;
    const struct race_clock *handed;     /* clock from the last strong write, and from the atomics before it */
    const struct race_clock *handed_old; /* clock with the value before it */
    struct race_cell *bytes;             /* is_split: a cell for each byte, and none for the word */
};

/* Forgets everything: a launch. */
void race_shadow_start(void);
/* A block begins in a slot; `shared` is where all blocks have their shared memory while they run. */
void race_shadow_block(const void *shared, size_t bytes, unsigned slot, uint32_t block);
/* The cell of the word at `at`, a multiple of 4; in shared memory that of `block`. */
struct race_cell *race_cell(uintptr_t at, uint32_t block);
int race_is_shared(uintptr_t at);
/* Splits the cell into one for each byte, from now on. */
void race_split(struct race_cell *cell);
/* Whether all of the group happened before the next access of the lane. */
int race_knows_group(uint32_t lane, const struct race_group *group, int is_shared);
void race_add(struct race_cell *cell, uint32_t lane, uint32_t epoch, unsigned kind, uint32_t site);

#endif

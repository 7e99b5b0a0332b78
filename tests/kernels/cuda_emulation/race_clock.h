/** @file
 * @brief Vector clocks: the knowledge of each lane of a grid about the others, after the memory consistency model
 * of the PTX ISA.
 *
 * Each lane counts its own epochs; a clock holds the epoch of each lane up to which everything is known. Clocks do
 * not change once they are made, so lanes share them. A lane has four:
 *  - seen: what happens before its next access ("causality order");
 *  - fenced: what was seen at its last fence: a strong write after a fence hands that over ("release pattern");
 *  - pending: what strong reads found: a fence after them makes it seen ("acquire pattern").
 *  - local: what the barriers of transactions handed over, besides what is seen: for accesses to shared memory
 * only. A wait at such a barrier with the scope of the block does not empty the L1 cache. A barrier joins them all:
 * a fence before a barrier and a strong write of another lane after it hand over too, because fences are
 * sequentially consistent: the fence of the reader cannot precede that of the writer in Fence-SC order, or the read
 * would precede the write that it observes.
 *
 * Each block has SPARE lanes of its own behind its threads; stores that are on their way (st.async) belong to them.
 */
#ifndef RACE_CLOCK_H
#define RACE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { RACE_SPARE = 32 };

struct race_clock {
    uint32_t first, end; /* lanes; all others are at 0 */
    uint32_t at[];
};

struct race_lane {
    uint32_t epoch; /* current epoch */
    const struct race_clock *seen, *fenced, *pending, *local;
};

/* Forgets everything; a grid of so many lanes begins. */
void race_clock_start(uint32_t lane_count);
/* Memory until the next start, not set. */
void *race_take(size_t bytes);

struct race_lane *race_lane(uint32_t lane);
/* Whether what `other` did in `epoch` happens before the next access of `lane`, to shared memory or to global. */
int race_knows(uint32_t lane, uint32_t other, uint32_t epoch, int is_shared);

void race_meet(const uint32_t *lanes, unsigned count);
void race_fence(uint32_t lane);
/* The clock that a strong write of the lane hands over, joined with `before` unless that is NULL. */
const struct race_clock *race_release(uint32_t lane, const struct race_clock *before);
/* A strong read found `clock`, which may be NULL. */
void race_observe(uint32_t lane, const struct race_clock *clock);

/* Barriers of memory transactions. What the lane knows, joined with `before`; and the way back. */
const struct race_clock *race_arrive(uint32_t lane, const struct race_clock *before);
void race_acquire(uint32_t lane, const struct race_clock *clock);
/* `clock` with everything that the lane, which may be a spare one, did until now; it begins an epoch. */
const struct race_clock *race_complete(uint32_t lane, const struct race_clock *clock);

#endif

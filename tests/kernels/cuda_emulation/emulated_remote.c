#include "emulated_remote.h"

#include <string.h>

#include "emulated_device.h"
#include "emulated_grid.h"
#include "emulated_watch.h"

enum { MOST_SENT = 1 << 14, MOST_BYTES = 16, MOST_COUNT = 1 << 11, BARRIERS = 32 };

/* A barrier as it lies in shared memory. */
struct barrier {
    int32_t bytes; /* still expected; below 0 while more came than was expected so far */
    uint32_t count : 11, missing : 11, phase : 1, number : 5, is_open : 1;
};
_Static_assert(sizeof(struct barrier) == sizeof(uint64_t), "a word");

/* On its way. */
struct sent {
    uint32_t block;
    unsigned bytes;
    void *at;
    uint64_t *barrier;
    unsigned char value[MOST_BYTES];
};

static struct sent sent[MOST_SENT];
static unsigned sent_count;

static struct barrier *open_barrier(uint64_t *barrier, uint32_t block)
{
    struct barrier *here = emulated_shared_of(barrier, sizeof(*barrier), block);
    if (!here)
        emulated_stop("a barrier of a block that has ended");
    if (!here->is_open)
        emulated_stop("a barrier that was not initialised");
    return here;
}

static void complete(struct barrier *barrier, uint32_t block)
{
    if (barrier->missing > 0 || barrier->bytes != 0)
        return;
    barrier->phase ^= 1u;
    barrier->missing = barrier->count;
    if (emulated_watch)
        emulated_watch->complete(block, barrier->number);
}

static void arrive(struct barrier *barrier, uint32_t block, unsigned bytes)
{
    if (barrier->missing == 0)
        emulated_stop("more arrivals at a barrier than a phase takes");
    if (emulated_watch)
        emulated_watch->arrive(block, barrier->number);
    barrier->missing--;
    barrier->bytes += (int32_t)bytes;
    complete(barrier, block);
}

void emulated_mbarrier_init(uint64_t *barrier, unsigned count)
{
    const uint32_t number = (uint32_t)((uintptr_t)barrier / sizeof(*barrier) % BARRIERS);
    const struct barrier first = {.count = count & (MOST_COUNT - 1),
                                  .missing = count & (MOST_COUNT - 1),
                                  .number = number & 31u,
                                  .is_open = 1};
    if (count == 0 || count >= MOST_COUNT || (uintptr_t)barrier % sizeof(*barrier) != 0)
        emulated_stop("a barrier that the emulation does not know");
    if (emulated_is_left_out())
        return;
    emulated_plain(barrier, sizeof(*barrier), 1);
    memcpy(barrier, &first, sizeof(first));
}

void emulated_mbarrier_expect(uint64_t *barrier, unsigned bytes)
{
    const uint32_t block = emulated_grid_now.block.x;
    if (emulated_is_left_out())
        return;
    emulated_plain(barrier, sizeof(*barrier), 0); /* it is known to be initialised */
    arrive(open_barrier(barrier, block), block, bytes);
}

void emulated_mbarrier_arrive(uint64_t *barrier, unsigned rank)
{
    const uint32_t block = emulated_block_of_rank(rank);
    if (emulated_is_left_out())
        return;
    if (emulated_watch)
        emulated_watch->remote(barrier, sizeof(*barrier), block, 0);
    arrive(open_barrier(barrier, block), block, 0);
}

int emulated_mbarrier_test(uint64_t *barrier, unsigned parity)
{
    const uint32_t block = emulated_grid_now.block.x;
    emulated_plain(barrier, sizeof(*barrier), 0);
    const struct barrier *here = open_barrier(barrier, block);
    if (here->phase == (parity & 1u)) {
        emulated_yield();
        return 0;
    }
    if (emulated_watch)
        emulated_watch->waited(block, here->number);
    return 1;
}

void emulated_mbarrier_wait(uint64_t *barrier, unsigned parity)
{
    while (!emulated_is_left_out() && !emulated_mbarrier_test(barrier, parity))
        ;
}

/* One of those on their way arrives, any of them, or none yet. */
static void deliver(void)
{
    if (sent_count == 0 || emulated_chance(4) != 0)
        return;
    const unsigned pick = emulated_chance(sent_count);
    const struct sent item = sent[pick];
    sent[pick] = sent[--sent_count];
    void *there = emulated_shared_of(item.at, item.bytes, item.block);
    if (!there)
        emulated_stop("a store arrives in a block that has ended");
    memcpy(there, item.value, item.bytes);
    struct barrier *barrier = open_barrier(item.barrier, item.block);
    barrier->bytes -= (int32_t)item.bytes;
    complete(barrier, item.block);
}

void emulated_remote_store(void *at, unsigned rank, uint64_t *barrier, const void *value, unsigned bytes)
{
    const uint32_t block = emulated_block_of_rank(rank);
    const struct barrier *there = open_barrier(barrier, block);
    if (sent_count == MOST_SENT || bytes > MOST_BYTES)
        emulated_stop("more is on its way between blocks than the emulation knows");
    if (emulated_watch) {
        emulated_watch->remote(barrier, sizeof(*barrier), block, 0);
        emulated_watch->sent(at, bytes, block, there->number);
    }
    emulated_after_step = deliver;
    struct sent *item = &sent[sent_count++];
    *item = (struct sent){.block = block, .bytes = bytes, .at = at, .barrier = barrier};
    memcpy(item->value, value, bytes);
}

void emulated_remote_write(void *at, unsigned rank, const void *value, unsigned bytes)
{
    const uint32_t block = emulated_block_of_rank(rank);
    if (emulated_watch)
        emulated_watch->remote(at, bytes, block, 1);
    void *there = emulated_shared_of(at, bytes, block);
    if (!there)
        emulated_stop("a store to a block that has ended");
    memcpy(there, value, bytes);
}

void emulated_remote_read(void *out, const void *at, unsigned rank, unsigned bytes)
{
    const uint32_t block = emulated_block_of_rank(rank);
    if (emulated_watch)
        emulated_watch->remote(at, bytes, block, 0);
    const void *there = emulated_shared_of(at, bytes, block);
    if (!there)
        emulated_stop("a load from a block that has ended");
    memcpy(out, there, bytes);
}

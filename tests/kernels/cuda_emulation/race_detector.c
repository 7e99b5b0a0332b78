#include "race_detector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_device.h"
#include "emulated_fiber.h"
#include "emulated_grid.h"
#include "emulated_memory.h"
#include "emulated_watch.h"
#include "race_places.h"
#include "race_shadow.h"

void (*race_reported)(const char *line);

/* An access to one word, or to a byte of it. */
struct access {
    uint32_t lane, owner, kind, site;
    unsigned bytes;
    uintptr_t at;
    int writes, is_atomic, is_sent;
};

/* A strong load that returns an older value: memory holds that until the next event. */
static struct {
    char *at;
    unsigned bytes;
    unsigned char now[8];
} older;

static struct {
    unsigned long long launches, loads, stores, atomics, pauses, older;
} counts;

static uint32_t threads, stride, pause_every;

static uint32_t lane_now(void)
{
    return emulated_grid_now.block.x * stride + emulated_grid_now.thread.x;
}

/* ---- reports ---- */

static const char *space(const struct access *a)
{
    return race_is_shared(a->at) ? "shared" : "global";
}

/* Ends the program, unless a test wants the reports. */
static void end_with(const char *line)
{
    if (race_reported) {
        race_reported(line);
        return;
    }
    fprintf(stderr, "%s\n", line);
    abort();
}

static void report(const struct access *a, const char *what, uint32_t lane, uint32_t site)
{
    char line[512], here[128], there[128];
    race_place_name(a->site, here, sizeof(here), !race_reported);
    race_place_name(site, there, sizeof(there), !race_reported);
    snprintf(line, sizeof(line),
             "CUDA emulation: race: a %s %s of %u bytes of %s memory by block %u, thread %u (%s): %s block %u, "
             "thread %u (%s)",
             a->is_atomic              ? "atomic"
             : a->is_sent              ? "sent"
             : a->kind & RACE_CONSTANT ? "constant"
             : a->kind & RACE_STRONG   ? "volatile"
                                       : "plain",
             a->writes ? "store" : "load", a->bytes, space(a), a->lane / stride, a->lane % stride, here, what,
             lane / stride, lane % stride, there);
    end_with(line);
}

/* A plain load of what another block stored in this launch may return what the L1 cache of its processor kept:
 * nothing but an acquire pattern empties that. */
static const char *about_store(const struct access *a, uint32_t lane)
{
    if (a->writes)
        return "no order with the store of";
    if (a->kind == RACE_WEAK && a->site != 0 && lane / stride != a->lane / stride && !race_is_shared(a->at))
        return "may be served from the L1 cache, no order with the store of";
    return "no order with the store of";
}

/* ---- rules ---- */

/* "Two operations conflict in a data race if they are not related in causality order and they are not morally
 * strong" (PTX ISA, memory consistency model, data races). */
static void check_groups(const struct access *a, const struct race_cell *cell)
{
    for (unsigned i = 0; i < cell->group_count; i++) {
        const struct race_group *group = &cell->groups[i];
        if (!a->writes && !(group->kind & RACE_STORED))
            continue;
        if ((a->kind & RACE_STRONG) && (group->kind & RACE_STRONG))
            continue;
        for (uint32_t left = group->lanes; left; left &= left - 1) {
            const uint32_t other = group->warp * 32 + (uint32_t)__builtin_ctz(left);
            if (race_knows(a->lane, other, group->epoch, cell->is_shared))
                continue;
            report(a, group->kind & RACE_STORED ? about_store(a, other) : "no order with the load of", other,
                   group->site);
            return;
        }
    }
}

/* Whether the lane knows of a read that found the last store: "X precedes some operation Z in observation order,
 * and Z precedes Y in base causality order" (PTX ISA, causality order). */
static int knows_observer(uint32_t lane, const struct race_cell *cell)
{
    for (unsigned i = 0; i < cell->group_count; i++) {
        const struct race_group *group = &cell->groups[i];
        if (group->kind != RACE_STRONG)
            continue;
        for (uint32_t left = group->lanes; left; left &= left - 1)
            if (race_knows(lane, group->warp * 32 + (uint32_t)__builtin_ctz(left), group->epoch, cell->is_shared))
                return 1;
    }
    return 0;
}

static int is_ordered(const struct access *a, const struct race_cell *cell)
{
    return cell->epoch == 0 || race_knows(a->lane, cell->lane, cell->epoch, cell->is_shared) ||
           (cell->is_strong && knows_observer(a->lane, cell));
}

static void check(const struct access *a, const struct race_cell *cell)
{
    if (!is_ordered(a, cell) && !(cell->is_strong && (a->kind & RACE_STRONG)))
        report(a, about_store(a, cell->lane), cell->lane, cell->site);
    if (cell->group_count > 0)
        check_groups(a, cell);
    /* ld.global.nc is for memory that is read-only while the kernel runs (Programming Guide, __ldg). */
    if ((a->kind & RACE_CONSTANT) && cell->epoch != 0)
        report(a, "not constant in this launch, because of the store of", cell->lane, cell->site);
    if (a->writes && cell->is_constant)
        report(a, "read as constant in this launch, perhaps by", a->lane, a->site);
}

static void note_load(const struct access *a, struct race_cell *cell)
{
    race_add(cell, a->lane, race_lane(a->lane)->epoch, a->kind & RACE_STRONG, a->site);
    cell->is_constant |= (a->kind & RACE_CONSTANT) != 0;
    if (a->kind & RACE_STRONG)
        race_observe(a->lane, cell->handed);
}

/* Strong stores may follow one another without order; the earlier ones and unknown reads of them are kept. */
static void note_store(const struct access *a, struct race_cell *cell, uint32_t old)
{
    const uint32_t writer = a->is_sent ? a->owner : a->lane;
    unsigned kept = 0;
    for (unsigned i = 0; i < cell->group_count; i++)
        if ((a->kind & RACE_STRONG) && !race_knows_group(a->lane, &cell->groups[i], cell->is_shared))
            cell->groups[kept++] = cell->groups[i];
    cell->group_count = (uint16_t)kept;
    if (!is_ordered(a, cell) && !a->is_atomic) /* an atomic observes the last store */
        race_add(cell, cell->lane, cell->epoch, RACE_STORED | RACE_STRONG, cell->site);
    if (a->is_atomic)
        race_observe(a->lane, cell->handed);
    cell->handed_old = cell->handed;
    cell->handed = a->kind & RACE_STRONG ? race_release(a->lane, a->is_atomic ? cell->handed : NULL) : NULL;
    cell->lane = writer;
    cell->epoch = race_lane(writer)->epoch;
    cell->is_strong = (a->kind & RACE_STRONG) != 0;
    cell->site = a->site;
    cell->old = old;
}

static void visit(const struct access *a, struct race_cell *cell, uint32_t old)
{
    check(a, cell);
    if (a->writes)
        note_store(a, cell, old);
    else
        note_load(a, cell);
}

/* All words of an access; memory of other blocks has no older values. */
static void visit_all(struct access a, uint32_t block)
{
    const uintptr_t first = a.at, end = a.at + a.bytes;
    for (uintptr_t word = first & ~(uintptr_t)3; word < end; word += 4) {
        struct race_cell *cell = race_cell(word, block);
        const int is_whole = word >= first && word + 4 <= end;
        uint32_t old;
        memcpy(&old, (const void *)word, sizeof(old));
        if (is_whole && !cell->is_split) {
            visit(&a, cell, old);
            continue;
        }
        race_split(cell);
        for (unsigned i = 0; i < 4; i++)
            if (word + i >= first && word + i < end)
                visit(&a, &cell->bytes[i], old >> (8 * i) & 255);
    }
}

/* ---- older values ---- */

static void restore(void)
{
    if (older.bytes > 0)
        memcpy(older.at, older.now, older.bytes);
    older.bytes = 0;
}

/* Whether the lane may still find what was there before the last store: that is strong, and neither the lane nor
 * anything that it knows of has seen it ("coherence"). */
static int may_be_older(const struct race_cell *cell, uint32_t lane)
{
    return !cell->is_split && cell->epoch != 0 && cell->is_strong &&
           !race_knows(lane, cell->lane, cell->epoch, cell->is_shared) && !knows_observer(lane, cell);
}

/* A strong load that is not ordered after the last store finds that or what was there before; 1 for the latter. */
static int finds_older(const struct access *a)
{
    unsigned char values[sizeof(older.now)];
    if ((a->bytes != 4 && a->bytes != 8) || a->at % 4 != 0)
        return 0;
    for (unsigned i = 0; i < a->bytes; i += 4) {
        const struct race_cell *cell = race_cell(a->at + i, a->lane / stride);
        if (!may_be_older(cell, a->lane))
            return 0;
        memcpy(values + i, &cell->old, sizeof(cell->old));
    }
    if (emulated_chance(4) == 0)
        return 0;
    for (unsigned i = 0; i < a->bytes; i += 4)
        race_observe(a->lane, race_cell(a->at + i, a->lane / stride)->handed_old);
    older.at = (char *)a->at;
    older.bytes = a->bytes;
    memcpy(older.now, older.at, older.bytes);
    memcpy(older.at, values, older.bytes);
    counts.older++;
    return 1;
}

/* ---- what nothing has written ---- */

static void check_written(const struct access *a)
{
    char line[256], here[128];
    const uintptr_t first = a->at & ~(uintptr_t)7, end = (a->at + a->bytes + 7) & ~(uintptr_t)7;
    if (!emulated_is_unwritten((const void *)first, end - first)) /* the whole words that it is part of */
        return;
    race_place_name(a->site, here, sizeof(here), !race_reported);
    snprintf(line, sizeof(line),
             "CUDA emulation: race: a load of %u bytes of global memory by block %u, thread %u (%s): nothing has "
             "written it",
             a->bytes, a->lane / stride, a->lane % stride, here);
    end_with(line);
}

/* ---- events ---- */

static int is_private(const void *at)
{
    const char *byte = at;
    return (byte >= emulated_stacks && byte < emulated_stacks_end) ||
           (byte >= (const char *)&emulated_grid_now && byte < (const char *)(&emulated_grid_now + 1)) ||
           stride == 0;
}

static void pause_sometimes(void)
{
    if (emulated_chance(pause_every) != 0)
        return;
    counts.pauses++;
    emulated_pause();
}

static struct access access_now(const void *at, unsigned bytes, int writes, unsigned kind, uint32_t site)
{
    return (struct access){
        .lane = lane_now(), .kind = kind, .site = site, .bytes = bytes, .at = (uintptr_t)at, .writes = writes};
}

void race_load(const void *at, unsigned long bytes, int is_volatile, const void *from)
{
    restore();
    if (is_private(at))
        return;
    pause_sometimes();
    counts.loads++;
    const uint32_t site = race_place(from);
    const unsigned kind = is_volatile && race_counts_as_volatile(site) ? RACE_STRONG : RACE_WEAK;
    const struct access a = access_now(at, (unsigned)bytes, 0, kind, site);
    check_written(&a);
    if (kind == RACE_STRONG && finds_older(&a))
        return;
    visit_all(a, emulated_grid_now.block.x);
}

void race_store(const void *at, unsigned long bytes, int is_volatile, const void *from)
{
    restore();
    if (is_private(at))
        return;
    pause_sometimes();
    counts.stores++;
    const uint32_t site = race_place(from);
    const unsigned kind = is_volatile && race_counts_as_volatile(site) ? RACE_STRONG : RACE_WEAK;
    visit_all(access_now(at, (unsigned)bytes, 1, kind, site), emulated_grid_now.block.x);
}

static void on_plain(const void *at, unsigned bytes, int writes)
{
    if (writes)
        race_store(at, bytes, 0, NULL);
    else
        race_load(at, bytes, 0, NULL);
}

static void on_constant(const void *at, unsigned bytes)
{
    restore();
    if (is_private(at))
        return;
    counts.loads++;
    const struct access a = access_now(at, bytes, 0, RACE_CONSTANT, race_place(NULL));
    check_written(&a);
    visit_all(a, emulated_grid_now.block.x);
}

/* "atom" without semantics is relaxed. One that does not write is a strong load of the latest value. */
static void on_atomic(const void *at, unsigned bytes, int writes)
{
    counts.atomics++;
    if (is_private(at))
        return;
    struct access a = access_now(at, bytes, writes, RACE_STRONG, race_place(NULL));
    a.is_atomic = 1;
    visit_all(a, emulated_grid_now.block.x);
}

static void on_remote(const void *at, unsigned bytes, uint32_t owner, int writes)
{
    restore();
    counts.loads += !writes;
    counts.stores += writes != 0;
    visit_all(access_now(at, bytes, writes, RACE_WEAK, race_place(NULL)), owner);
}

static uint32_t spare_lane(uint32_t owner, unsigned barrier)
{
    return owner * stride + threads + barrier % RACE_SPARE;
}

/* Handles the arrival of a spare lane: `seen` is what arrived at its barrier in this phase, `fenced` what the
 * previous phase hands over. */
static void on_arrive(uint32_t owner, unsigned barrier)
{
    struct race_lane *spare = race_lane(spare_lane(owner, barrier));
    spare->seen = race_arrive(lane_now(), spare->seen);
}

/* st.async is a weak store that only the barrier of its bytes orders, also for the lane that sends it. Counting the
 * bytes there "has .release semantics at the .cluster scope" (PTX ISA, st.async). */
static void on_sent(const void *at, unsigned bytes, uint32_t owner, unsigned barrier)
{
    restore();
    counts.stores++;
    struct access a = access_now(at, bytes, 1, RACE_WEAK, race_place(NULL));
    a.is_sent = 1;
    a.owner = spare_lane(owner, barrier);
    visit_all(a, owner);
    on_arrive(owner, barrier);
}

static void on_complete(uint32_t owner, unsigned barrier)
{
    const uint32_t lane = spare_lane(owner, barrier);
    struct race_lane *spare = race_lane(lane);
    spare->fenced = race_complete(lane, spare->seen);
    spare->seen = NULL;
}

static void on_waited(uint32_t owner, unsigned barrier)
{
    race_acquire(lane_now(), race_lane(spare_lane(owner, barrier))->fenced);
}

static void on_meet(const uint32_t *lanes, unsigned count)
{
    static uint32_t own[EMULATED_MOST_CLUSTER * EMULATED_MOST_THREADS];
    for (unsigned i = 0; i < count; i++)
        own[i] = lanes[i] / threads * stride + lanes[i] % threads;
    race_meet(own, count);
}

static void on_fence(void)
{
    restore();
    race_fence(lane_now());
}

static void on_block(const void *shared, size_t bytes, unsigned slot)
{
    race_shadow_block(shared, bytes, slot, emulated_grid_now.block.x);
}

static void count_all(void)
{
    char line[256];
    snprintf(line, sizeof(line), "launches %llu loads %llu stores %llu atomics %llu switches %llu older %llu",
             counts.launches, counts.loads, counts.stores, counts.atomics, counts.pauses, counts.older);
    fprintf(stderr, "race detector: %s\n", line);
    race_write_line("NDT_RACE_COUNTS", line);
    race_write_places();
}

/* Launches follow one another: what ran before is visible ("stream order", Programming Guide, streams). */
static void on_launch(void)
{
    const char *text = getenv("NDT_RACE_PAUSE");
    if (counts.launches++ == 0)
        (void)atexit(count_all);
    pause_every = text ? (uint32_t)strtoul(text, NULL, 10) : 32;
    threads = emulated_grid_now.threads.x;
    stride = threads + RACE_SPARE;
    race_clock_start(emulated_grid_now.blocks.x * stride);
    race_shadow_start();
}

static const struct emulated_watch detector = {
    .launch = on_launch,
    .block = on_block,
    .meet = on_meet,
    .fence = on_fence,
    .atomic = on_atomic,
    .plain = on_plain,
    .constant = on_constant,
    .leave = restore,
    .remote = on_remote,
    .sent = on_sent,
    .arrive = on_arrive,
    .complete = on_complete,
    .waited = on_waited,
};

__attribute__((constructor)) static void watch(void)
{
    emulated_watch = &detector;
}

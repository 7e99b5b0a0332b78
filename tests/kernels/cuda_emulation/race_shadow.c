#include "race_shadow.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BITS = 10, CELLS = 1 << (PAGE_BITS - 2), BUCKETS = 1 << 14, SLOTS = 64, WARP = 32 };

/* A page of global memory. */
struct page {
    struct page *next;
    uintptr_t number;
    uint32_t launch; /* the last one that touched it */
    struct race_cell cells[CELLS];
};

/* Shared memory of the block in a slot. */
struct slot {
    uint32_t block;
    struct race_cell *cells;
};

static struct page *buckets[BUCKETS], *last_page;
static struct slot slots[SLOTS];
static struct slot *last_slot;
static uint32_t launch;
static uintptr_t shared_at;
static size_t shared_bytes;

void race_shadow_start(void)
{
    launch++;
    last_page = NULL;
    last_slot = NULL;
    for (int i = 0; i < SLOTS; i++)
        slots[i].block = UINT32_MAX;
}

void race_shadow_block(const void *shared, size_t bytes, unsigned slot, uint32_t block)
{
    const size_t cells = bytes / 4 + 1;
    shared_at = (uintptr_t)shared;
    shared_bytes = bytes;
    if (!slots[slot].cells && !(slots[slot].cells = malloc(cells * sizeof(struct race_cell))))
        abort();
    memset(slots[slot].cells, 0, cells * sizeof(struct race_cell));
    slots[slot].block = block;
    last_slot = NULL;
}

int race_is_shared(uintptr_t at)
{
    return at - shared_at < shared_bytes;
}

static struct race_cell *shared_cell(uintptr_t at, uint32_t block)
{
    if (!last_slot || last_slot->block != block) {
        last_slot = slots;
        while (last_slot < slots + SLOTS && last_slot->block != block)
            last_slot++;
        if (last_slot == slots + SLOTS)
            abort();
    }
    struct race_cell *cell = &last_slot->cells[(at - (shared_at & ~(uintptr_t)3)) / 4];
    cell->is_shared = 1;
    return cell;
}

static struct page *find_page(uintptr_t number)
{
    struct page **bucket = &buckets[number * 0x9e3779b97f4a7c15u >> 50];
    for (struct page *page = *bucket; page; page = page->next)
        if (page->number == number)
            return page;
    struct page *page = calloc(1, sizeof(*page));
    if (!page)
        abort();
    page->number = number;
    page->next = *bucket;
    return *bucket = page;
}

struct race_cell *race_cell(uintptr_t at, uint32_t block)
{
    if (race_is_shared(at))
        return shared_cell(at, block);
    const uintptr_t number = at >> PAGE_BITS;
    if (!last_page || last_page->number != number)
        last_page = find_page(number);
    if (last_page->launch != launch) {
        memset(last_page->cells, 0, sizeof(last_page->cells));
        last_page->launch = launch;
    }
    return &last_page->cells[at / 4 % CELLS];
}

void race_split(struct race_cell *cell)
{
    if (cell->is_split)
        return;
    struct race_cell *bytes = race_take(4 * sizeof(*bytes));
    for (int i = 0; i < 4; i++) {
        bytes[i] = *cell;
        bytes[i].old = cell->old >> (8 * i) & 255;
        bytes[i].group_capacity = cell->group_count;
        if (cell->group_count == 0)
            continue;
        bytes[i].groups = race_take(cell->group_count * sizeof(*cell->groups));
        memcpy(bytes[i].groups, cell->groups, cell->group_count * sizeof(*cell->groups));
    }
    cell->bytes = bytes;
    cell->is_split = 1;
}

int race_knows_group(uint32_t lane, const struct race_group *group, int is_shared)
{
    for (uint32_t left = group->lanes; left; left &= left - 1)
        if (!race_knows(lane, group->warp * WARP + (uint32_t)__builtin_ctz(left), group->epoch, is_shared))
            return 0;
    return 1;
}

/* Reads of which the lane knows stand back behind its own, if that is not the stronger one. */
static void drop_known(struct race_cell *cell, uint32_t lane, unsigned kind)
{
    uint16_t kept = 0;
    for (unsigned i = 0; i < cell->group_count; i++) {
        const struct race_group group = cell->groups[i];
        if ((group.kind & RACE_STORED) || (kind & ~group.kind & RACE_STRONG) ||
            !race_knows_group(lane, &group, cell->is_shared))
            cell->groups[kept++] = group;
    }
    cell->group_count = kept;
}

void race_add(struct race_cell *cell, uint32_t lane, uint32_t epoch, unsigned kind, uint32_t site)
{
    const uint32_t warp = lane / WARP, bit = 1u << lane % WARP;
    for (unsigned i = cell->group_count; i-- > 0;) {
        struct race_group *group = &cell->groups[i];
        if (group->warp == warp && group->epoch == epoch && group->kind == kind) {
            group->lanes |= bit;
            return;
        }
    }
    if (cell->group_count == cell->group_capacity && !(kind & RACE_STORED))
        drop_known(cell, lane, kind);
    if (cell->group_count == cell->group_capacity || cell->group_capacity == 0) {
        const uint16_t capacity = (uint16_t)(cell->group_capacity ? 2 * cell->group_capacity : 2);
        struct race_group *groups = race_take(capacity * sizeof(*groups));
        if (cell->group_count > 0)
            memcpy(groups, cell->groups, cell->group_count * sizeof(*groups));
        cell->groups = groups;
        cell->group_capacity = capacity;
    }
    cell->groups[cell->group_count++] = (struct race_group){warp, epoch, bit, kind, site};
}

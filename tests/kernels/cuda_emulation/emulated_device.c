/** @file
 * @brief The emulated device: its abilities, memory, failures and random choices.
 *
 * NDT_EMULATION_SEED=N: the seed of all random choices (1).
 * NDT_EMULATION_MEMORY=BYTES: its memory (1 GiB).
 * NDT_EMULATION_CLUSTERS=0: no thread-block clusters. NDT_EMULATION_LOOPS=0: no conditional nodes in graphs.
 * NDT_EMULATION_MAPPED=0: kernels cannot write memory of the host.
 * NDT_EMULATION_FAIL=AFTER,COUNT: after AFTER good launches COUNT fail, and then all calls until the device is
 * reset. A launch fails when it runs, not when it is queued; a graph is one launch. */
#include "emulated_device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "ndt/random.h"

/* The header of every allocation, with its size; all of them form a list. */
struct header {
    size_t bytes;
    uint64_t mark;
    enum emulated_memory kind;
    struct header *next, *before;
};
enum { HEADER_BYTES = 256, POISONED_BYTES = 64 << 20 };
static const uint64_t MARK = 0x6e64742d63756461u;

static struct {
    int failing; /* until reset, as a real device after a fault */
    long fail_after, fail_count;
    int knows_environment;
    size_t used_bytes;
    struct header all; /* head of the list of allocations */
} device = {.fail_after = -1, .all = {.next = &device.all, .before = &device.all}};

static struct ndt_random chance;
static int is_seeded;

void emulated_set_seed(unsigned seed)
{
    chance.state = seed;
    is_seeded = 1;
}

unsigned emulated_chance(unsigned limit)
{
    const char *seed = is_seeded ? NULL : getenv("NDT_EMULATION_SEED");
    if (!is_seeded)
        chance.state = seed ? strtoull(seed, NULL, 10) : 1;
    is_seeded = 1;
    /* Multiply instead of divide: a division takes longer than a switch of fibers. */
    return (unsigned)((ndt_random_next(&chance) >> 32) * limit >> 32);
}

static void read_environment(void)
{
    const char *fail = getenv("NDT_EMULATION_FAIL");
    if (device.knows_environment)
        return;
    device.knows_environment = 1;
    if (fail && sscanf(fail, "%ld,%ld", &device.fail_after, &device.fail_count) != 2)
        device.fail_after = -1;
}

void emulated_fail_launches(int after, int count)
{
    device.knows_environment = 1;
    device.fail_after = after;
    device.fail_count = count;
}

int emulated_works(void)
{
    return !device.failing;
}

int emulated_begins(void)
{
    read_environment();
    if (device.fail_after == 0 && device.fail_count > 0) {
        device.fail_count--;
        device.failing = 1;
    } else if (device.fail_after > 0) {
        device.fail_after--;
    }
    return !device.failing;
}

static int is_left_out(const char *variable)
{
    const char *text = getenv(variable);
    return text && strcmp(text, "0") == 0;
}

int emulated_has_clusters(void)
{
    return !is_left_out("NDT_EMULATION_CLUSTERS");
}

int emulated_has_loops(void)
{
    return !is_left_out("NDT_EMULATION_LOOPS");
}

int emulated_can_map(void)
{
    return !is_left_out("NDT_EMULATION_MAPPED");
}

int emulated_reset_frees;

void emulated_reset(void)
{
    device.failing = 0;
    while (emulated_reset_frees && device.all.next != &device.all)
        emulated_release((char *)device.all.next + HEADER_BYTES, device.all.next->kind);
}

size_t emulated_memory_bytes(void)
{
    const char *text = getenv("NDT_EMULATION_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
}

size_t emulated_free_bytes(void)
{
    const size_t bytes = emulated_memory_bytes();
    return bytes > device.used_bytes ? bytes - device.used_bytes : 0;
}

/* Bytes that nothing wrote are NaN, as they may be on a device; of huge blocks only the beginning is touched. */
void *emulated_allocate(size_t bytes, enum emulated_memory kind)
{
    char *base =
        aligned_alloc(HEADER_BYTES, HEADER_BYTES + (bytes + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES);
    if (!base)
        return NULL;
    struct header *header = (struct header *)(void *)base;
    *header = (struct header){bytes, MARK, kind, device.all.next, &device.all};
    header->next->before = header->before->next = header;
    device.used_bytes += kind == EMULATED_DEVICE ? bytes : 0;
    memset(base + HEADER_BYTES, 0xff, bytes < POISONED_BYTES ? bytes : POISONED_BYTES);
    return base + HEADER_BYTES;
}

void emulated_release(void *memory, enum emulated_memory kind)
{
    struct header *header = (struct header *)(void *)((char *)memory - HEADER_BYTES);
    if (header->mark != MARK || header->kind != kind) {
        fprintf(stderr, "CUDA emulation: memory is freed that was not allocated by this call\n");
        abort();
    }
    header->next->before = header->before;
    header->before->next = header->next;
    device.used_bytes -= kind == EMULATED_DEVICE ? header->bytes : 0;
    header->mark = 0;
    free(header);
}

enum emulated_memory emulated_memory_of(const void *memory, size_t bytes)
{
    const uintptr_t at = (uintptr_t)memory;
    for (const struct header *header = device.all.next; header != &device.all; header = header->next) {
        const uintptr_t first = (uintptr_t)header + HEADER_BYTES;
        if (at >= first && at - first < header->bytes)
            return bytes <= header->bytes - (at - first) ? header->kind : EMULATED_OUTSIDE;
    }
    return EMULATED_PAGEABLE;
}

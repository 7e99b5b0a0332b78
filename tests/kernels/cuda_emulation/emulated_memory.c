/** @file
 * @brief Memory of the emulated device.
 *
 * NDT_EMULATION_MEMORY=BYTES: how much it has (1 GiB). Memory that a reset has freed is kept, filled with NaN, so
 * that its addresses do not come back: who uses one or frees it ends the program. */
#include "emulated_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_errors.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* Header in front of every allocation; all of them form a list. */
struct header {
    size_t bytes;
    uint64_t mark;
    enum emulated_memory kind;
    struct header *next, *before;
};
enum { HEADER_BYTES = 256, POISONED_BYTES = 64 << 20 };
static const uint64_t MARK = 0x6e64742d63756461u;

/* Memory of the process that cudaHostRegister was called for. */
struct range {
    struct range *next;
    uintptr_t first;
    size_t bytes;
};

static struct header all = {.next = &all, .before = &all}, old = {.next = &old, .before = &old};
static struct range *registered, *old_registered;
static size_t used_bytes, taken_bytes; /* bytes until freed; bytes until a reset */

/* ---- allocations ---- */

size_t emulated_memory_bytes(void)
{
    const char *text = getenv("NDT_EMULATION_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
}

size_t emulated_free_bytes(void)
{
    const size_t bytes = emulated_memory_bytes(), used = used_bytes + taken_bytes;
    return bytes > used ? bytes - used : 0;
}

int emulated_take_bytes(size_t bytes)
{
    if (bytes > emulated_free_bytes())
        return 0;
    taken_bytes += bytes;
    return 1;
}

static void link_to(struct header *list, struct header *header)
{
    header->next = list->next;
    header->before = list;
    header->next->before = list->next = header;
}

static void unlink_header(struct header *header)
{
    header->next->before = header->before;
    header->before->next = header->next;
}

/* Contents of a word of the device until something writes it: two floats or a double that are NaN, different at
 * each address, so that no computed or copied number is taken for it. */
static uint64_t unwritten(const void *word)
{
    const uint64_t mixed = ((uintptr_t)word | 1) * UINT64_C(0x9e3779b97f4a7c15);
    return UINT64_C(0x7ff000017ff00001) | (mixed & UINT64_C(0x800fffff800fffff));
}

int emulated_is_unwritten(const void *memory, size_t bytes)
{
    const char *end = (const char *)memory + bytes;
    for (const char *at = (const char *)memory + (8 - (uintptr_t)memory % 8) % 8; at + 8 <= end; at += 8) {
        const uint64_t mark = unwritten(at);
        if (memcmp(at, &mark, sizeof(mark)) == 0)
            return 1;
    }
    return 0;
}

/* Fills memory; of huge blocks only the beginning is touched. */
static void fill(char *memory, size_t bytes, enum emulated_memory kind)
{
    const size_t touched = bytes < POISONED_BYTES ? bytes : POISONED_BYTES;
    memset(memory, 0xff, touched);
    for (size_t at = 0; kind == EMULATED_DEVICE && at + 8 <= touched; at += 8) {
        const uint64_t mark = unwritten(memory + at);
        memcpy(memory + at, &mark, sizeof(mark));
    }
}

/* Bytes that nothing wrote are NaN, as they may be on a device. */
void *emulated_allocate(size_t bytes, enum emulated_memory kind)
{
    char *base =
        aligned_alloc(HEADER_BYTES, HEADER_BYTES + (bytes + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES);
    if (!base)
        return NULL;
    struct header *header = (struct header *)(void *)base;
    *header = (struct header){.bytes = bytes, .mark = MARK, .kind = kind};
    link_to(&all, header);
    used_bytes += kind == EMULATED_DEVICE ? bytes : 0;
    fill(base + HEADER_BYTES, bytes, kind);
    return base + HEADER_BYTES;
}

/* The allocation of the list that contains the address; NULL: none. */
static struct header *find(struct header *list, const void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    for (struct header *header = list->next; header != list; header = header->next) {
        const uintptr_t first = (uintptr_t)header + HEADER_BYTES;
        if (at >= first && at - first < header->bytes)
            return header;
    }
    return NULL;
}

void emulated_release(void *memory, enum emulated_memory kind)
{
    struct header *header = find(&all, memory);
    if (find(&old, memory))
        emulated_misuse("memory is freed", "that a reset of the device has freed");
    if (!header || header->kind != kind || (char *)header + HEADER_BYTES != memory)
        emulated_misuse("memory is freed", "that was not allocated by this call");
    unlink_header(header);
    used_bytes -= kind == EMULATED_DEVICE ? header->bytes : 0;
    free(header);
}

/* ---- registered memory ---- */

static struct range **find_range(struct range **list, const void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    while (*list && (at < (*list)->first || at - (*list)->first >= (*list)->bytes))
        list = &(*list)->next;
    return list;
}

static void remove_range(struct range **at)
{
    struct range *range = *at;
    if (!range)
        return;
    *at = range->next;
    free(range);
}

cudaError_t emulated_register(void *memory, size_t bytes)
{
    if (!memory || bytes == 0)
        return cudaErrorInvalidValue;
    if (emulated_memory_of(memory, bytes) != EMULATED_PAGEABLE)
        return cudaErrorHostMemoryAlreadyRegistered;
    struct range *range = malloc(sizeof(*range));
    if (!range)
        return cudaErrorMemoryAllocation;
    remove_range(find_range(&old_registered, memory)); /* freed meanwhile, and allocated again */
    *range = (struct range){registered, (uintptr_t)memory, bytes};
    registered = range;
    memset(memory, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t emulated_unregister(void *memory)
{
    struct range **at = find_range(&registered, memory);
    if (!*at && *find_range(&old_registered, memory))
        emulated_misuse("memory is unregistered", "that was registered before a reset of the device");
    if (!*at || (*at)->first != (uintptr_t)memory)
        return cudaErrorHostMemoryNotRegistered;
    remove_range(at);
    return cudaSuccess;
}

enum emulated_memory emulated_memory_of(const void *memory, size_t bytes)
{
    const uintptr_t at = (uintptr_t)memory;
    const struct header *header = find(&all, memory);
    const struct range *range = *find_range(&registered, memory);
    if (find(&old, memory))
        emulated_misuse("memory is used", "that a reset of the device has freed");
    if (header)
        return bytes <= header->bytes - (at - (uintptr_t)header - HEADER_BYTES) ? header->kind : EMULATED_OUTSIDE;
    if (range)
        return bytes <= range->bytes - (at - range->first) ? EMULATED_PINNED : EMULATED_OUTSIDE;
    return EMULATED_PAGEABLE;
}

void emulated_memory_reset(void)
{
    while (all.next != &all) {
        struct header *header = all.next;
        char *memory = (char *)header + HEADER_BYTES;
        unlink_header(header);
        link_to(&old, header);
        fill(memory, header->bytes, EMULATED_PINNED);
        ASAN_POISON_MEMORY_REGION(memory, header->bytes);
    }
    while (registered) {
        struct range *range = registered;
        registered = range->next;
        range->next = old_registered;
        old_registered = range;
    }
    used_bytes = taken_bytes = 0;
}

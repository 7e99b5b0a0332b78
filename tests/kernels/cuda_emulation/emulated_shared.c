#include "emulated_shared.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 2048, MOST_CHUNKS = 256, MOST_COPIES = 64, FRESH = 0xff };

/* Bounds of the section that holds all shared memory; there may be none. */
extern char __start_emulated_shared[] __attribute__((weak));
extern char __stop_emulated_shared[] __attribute__((weak));

static unsigned char
    is_written[MOST_CHUNKS]; /* by a block of this launch; the others are FRESH, here and in all copies */
static char *copies[MOST_COPIES];
static unsigned copy_count;

char *emulated_shared_place(void)
{
    return __start_emulated_shared;
}

size_t emulated_shared_bytes(void)
{
    return __start_emulated_shared ? (size_t)(__stop_emulated_shared - __start_emulated_shared) : 0;
}

static size_t chunk_bytes(size_t at)
{
    const size_t left = emulated_shared_bytes() - at;
    return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

char *emulated_shared_make(void)
{
    const size_t bytes = emulated_shared_bytes();
    char *copy = malloc(bytes + 1);
    if (!copy || bytes > (size_t)CHUNK_BYTES * MOST_CHUNKS || copy_count == MOST_COPIES)
        abort();
    memset(copy, FRESH, bytes);
    copies[copy_count++] = copy;
    return copy;
}

static void refresh(char *memory)
{
    for (size_t at = 0; at < emulated_shared_bytes(); at += CHUNK_BYTES)
        if (is_written[at / CHUNK_BYTES])
            memset(memory + at, FRESH, chunk_bytes(at));
}

/* Finds the chunks that the running block is the first to have written. */
static void look(void)
{
    static unsigned char fresh[CHUNK_BYTES];
    if (fresh[0] != FRESH)
        memset(fresh, FRESH, sizeof(fresh));
    for (size_t at = 0; at < emulated_shared_bytes(); at += CHUNK_BYTES)
        if (!is_written[at / CHUNK_BYTES])
            is_written[at / CHUNK_BYTES] = memcmp(__start_emulated_shared + at, fresh, chunk_bytes(at)) != 0;
}

void emulated_shared_launch(void)
{
    const size_t bytes = emulated_shared_bytes();
    if (bytes)
        memset(__start_emulated_shared, FRESH, bytes);
    for (unsigned i = 0; i < copy_count; i++)
        refresh(copies[i]);
    memset(is_written, 0, sizeof(is_written));
}

void emulated_shared_begin(void)
{
    look();
    refresh(__start_emulated_shared);
}

void emulated_shared_swap(char *from, const char *to)
{
    if (from)
        look();
    for (size_t at = 0; at < emulated_shared_bytes(); at += CHUNK_BYTES) {
        if (!is_written[at / CHUNK_BYTES])
            continue;
        if (from)
            memcpy(from + at, __start_emulated_shared + at, chunk_bytes(at));
        if (to)
            memcpy(__start_emulated_shared + at, to + at, chunk_bytes(at));
    }
}

void emulated_shared_written(size_t at, size_t bytes)
{
    for (size_t i = at / CHUNK_BYTES; i <= (at + bytes - 1) / CHUNK_BYTES && i < MOST_CHUNKS; i++)
        is_written[i] = 1;
}

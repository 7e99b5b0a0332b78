/* Parts that all fuzz targets share. A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput; libFuzzer calls
 * it with one input after the other, in one process and one thread. An oracle that does not hold ends the process
 * as a crash. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* libFuzzer's own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* A random number for mutators in 0 .. count - 1, and 0 for a count of 0. */
static inline size_t fuzz_below(struct ndt_random *random, size_t count)
{
    return count ? (size_t)(ndt_random_next(random) % count) : 0;
}

/* Bytes [at, end) become `count` others; returns the new size, or the old one where the new one is too large. */
static inline size_t fuzz_replace(uint8_t *data, size_t size, size_t max_size, size_t at, size_t end,
                                  const uint8_t *bytes, size_t count)
{
    if (size - (end - at) + count > max_size)
        return size;
    memmove(data + at + count, data + end, size - end);
    memcpy(data + at, bytes, count);
    return size - (end - at) + count;
}

/* An oracle: what must hold for every input. */
#define FUZZ_REQUIRE(condition, ...)                                                                               \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__, #condition);                          \
            fprintf(stderr, __VA_ARGS__);                                                                          \
            fputc('\n', stderr);                                                                                   \
            abort();                                                                                               \
        }                                                                                                          \
    } while (0)

#endif

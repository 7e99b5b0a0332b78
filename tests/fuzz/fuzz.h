/* What every fuzz target shares. A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput; libFuzzer calls it
 * with one input after the other, in one process and one thread. An oracle that does not hold ends the process as a
 * crash.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Of libFuzzer: its own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

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

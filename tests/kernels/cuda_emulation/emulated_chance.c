#include "emulated_chance.h"

#include <stdint.h>
#include <stdlib.h>

static uint64_t state;
static int has_begun;

void emulated_set_seed(unsigned seed)
{
    state = seed;
    has_begun = 1;
}

unsigned emulated_chance(unsigned limit)
{
    const char *seed = has_begun ? NULL : getenv("NDT_EMULATION_SEED");
    if (!has_begun)
        state = seed ? strtoull(seed, NULL, 10) : 1;
    has_begun = 1;
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) % limit);
}

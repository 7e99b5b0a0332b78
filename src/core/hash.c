#include "ndt/hash.h"

#include <string.h>

static uint64_t mix(uint64_t state, uint64_t word)
{
    state ^= word;
    state *= 0x9e3779b97f4a7c15u;
    return (state << 29 | state >> 35) + 0x632be59bd9b4e019u;
}

static uint64_t finish(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static uint64_t load(const unsigned char *p, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, p, size);
    return word;
}

uint64_t ndt_hash64(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t lane[4] = {seed, seed + 1, seed + 2, seed + 3};
    size_t left = size;
    for (; left >= 32; left -= 32, p += 32)
        for (size_t i = 0; i < 4; i++)
            lane[i] = mix(lane[i], load(p + 8 * i, 8));
    for (size_t i = 0; left > 0; i++) {
        const size_t part = left < 8 ? left : 8;
        lane[i % 4] = mix(lane[i % 4], load(p, part));
        p += part;
        left -= part;
    }
    uint64_t h = size;
    for (size_t i = 0; i < 4; i++)
        h = mix(h, finish(lane[i]));
    return finish(h);
}

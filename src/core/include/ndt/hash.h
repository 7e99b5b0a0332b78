/** @file
 * @brief A fast 64-bit hash for identity and damage detection, not for secrets.
 *
 * Four lanes of multiply and rotate over 8-byte words, little endian. The same bytes and seed give the same value
 * on every machine. Pure functions. */
#ifndef NDT_HASH_H
#define NDT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t ndt_hash_mix(uint64_t state, uint64_t word)
{
    state ^= word;
    state *= 0x9e3779b97f4a7c15u;
    return (state << 29 | state >> 35) + 0x632be59bd9b4e019u;
}

static inline uint64_t ndt_hash_finish(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static inline uint64_t ndt_hash_load(const unsigned char *p, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, p, size);
    return word;
}

/** A hash of bytes that come in parts. */
struct ndt_hash_state {
    uint64_t lane[4];
    uint64_t size; /* of all parts so far */
};

static inline void ndt_hash_begin(struct ndt_hash_state *state, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++)
        state->lane[i] = seed + i;
    state->size = 0;
}

/** The size of every part but the last is a multiple of 32. */
static inline void ndt_hash_add(struct ndt_hash_state *state, const void *data, size_t size)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t lane[4];
    size_t left = size;
    memcpy(lane, state->lane, sizeof(lane));
    for (; left >= 32; left -= 32, p += 32)
        for (size_t i = 0; i < 4; i++)
            lane[i] = ndt_hash_mix(lane[i], ndt_hash_load(p + 8 * i, 8));
    for (size_t i = 0; left > 0; i++) {
        const size_t part = left < 8 ? left : 8;
        lane[i % 4] = ndt_hash_mix(lane[i % 4], ndt_hash_load(p, part));
        p += part;
        left -= part;
    }
    memcpy(state->lane, lane, sizeof(lane));
    state->size += size;
}

/** The hash of all parts. */
static inline uint64_t ndt_hash_end(const struct ndt_hash_state *state)
{
    uint64_t h = state->size;
    for (size_t i = 0; i < 4; i++)
        h = ndt_hash_mix(h, ndt_hash_finish(state->lane[i]));
    return ndt_hash_finish(h);
}

/** The hash of `size` bytes at `data`. */
static inline uint64_t ndt_hash64(const void *data, size_t size, uint64_t seed)
{
    struct ndt_hash_state state;
    ndt_hash_begin(&state, seed);
    ndt_hash_add(&state, data, size);
    return ndt_hash_end(&state);
}

#endif

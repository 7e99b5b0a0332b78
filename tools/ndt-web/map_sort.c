/* Morton keys, and their sorting: radix sort from the most significant byte, in place ("American flag sort",
 * McIlroy, Bostic and McIlroy 1993), because a second copy of a large map would cost too much memory. */
#include "map_keys.h"

enum { BUCKETS = 256, TOP_SHIFT = 56, FEW = 40, MANY = 200000 };

static uint64_t spread(uint32_t value)
{
    uint64_t x = value & 0x1fffff;
    x = (x | x << 32) & UINT64_C(0x1f00000000ffff);
    x = (x | x << 16) & UINT64_C(0x1f0000ff0000ff);
    x = (x | x << 8) & UINT64_C(0x100f00f00f00f00f);
    x = (x | x << 4) & UINT64_C(0x10c30c30c30c30c3);
    return (x | x << 2) & UINT64_C(0x1249249249249249);
}

static uint32_t gather(uint64_t key)
{
    uint64_t x = key & UINT64_C(0x1249249249249249);
    x = (x | x >> 2) & UINT64_C(0x10c30c30c30c30c3);
    x = (x | x >> 4) & UINT64_C(0x100f00f00f00f00f);
    x = (x | x >> 8) & UINT64_C(0x1f0000ff0000ff);
    x = (x | x >> 16) & UINT64_C(0x1f00000000ffff);
    return (uint32_t)((x | x >> 32) & 0x1fffff);
}

uint64_t web_key_of(const uint32_t cell[3])
{
    return spread(cell[0]) | spread(cell[1]) << 1 | spread(cell[2]) << 2;
}

void web_key_cell(uint64_t key, uint32_t cell[3])
{
    for (int k = 0; k < 3; k++)
        cell[k] = gather(key >> k);
}

static void sort_few(uint64_t *keys, uint8_t *shades, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        const uint8_t shade = shades[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            shades[at] = shades[at - 1];
        }
        keys[at] = key;
        shades[at] = shade;
    }
}

/* Moves every point into the bucket of its byte, bucket by bucket, along the cycles of the permutation. */
static void permute(uint64_t *keys, uint8_t *shades, const size_t *end, size_t *next, int shift)
{
    for (size_t bucket = 0; bucket < BUCKETS; bucket++)
        while (next[bucket] < end[bucket]) {
            uint64_t key = keys[next[bucket]];
            uint8_t shade = shades[next[bucket]];
            for (size_t to = key >> shift & 255; to != bucket; to = key >> shift & 255) {
                const size_t at = next[to]++;
                const uint64_t other_key = keys[at];
                const uint8_t other_shade = shades[at];
                keys[at] = key;
                shades[at] = shade;
                key = other_key;
                shade = other_shade;
            }
            keys[next[bucket]] = key;
            shades[next[bucket]++] = shade;
        }
}

static int sort_range(uint64_t *keys, uint8_t *shades, size_t count, int shift, struct ndt_progress *progress)
{
    if (count <= FEW || shift < 0) {
        if (shift >= 0)
            sort_few(keys, shades, count);
        ndt_progress_add(progress, NDT_PROGRESS_POINTS, count);
        return 1;
    }
    if (count > MANY && !ndt_progress_step(progress))
        return 0;
    size_t next[BUCKETS] = {0}, end[BUCKETS];
    for (size_t i = 0; i < count; i++)
        next[keys[i] >> shift & 255]++;
    for (size_t bucket = 0, sum = 0; bucket < BUCKETS; bucket++) {
        sum += next[bucket];
        end[bucket] = sum;
        next[bucket] = sum - next[bucket];
    }
    permute(keys, shades, end, next, shift);
    for (size_t bucket = 0, from = 0; bucket < BUCKETS; from = end[bucket++])
        if (!sort_range(keys + from, shades + from, end[bucket] - from, shift - 8, progress))
            return 0;
    return 1;
}

enum ndt_status web_keys_sort(struct web_keys *keys, struct ndt_progress *progress, struct ndt_error *err)
{
    return sort_range(keys->keys, keys->shades, keys->count, TOP_SHIFT, progress)
               ? NDT_OK
               : ndt_fail(err, NDT_ERR_CANCELLED, "cancelled");
}

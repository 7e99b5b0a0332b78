#include "map_mutator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "fuzz.h"
#include "ndt/hash.h"
#include "ndt/map.h"

/* The layout of the file, as in src/io/compiled_map.c and src/search/field_codec.c. */
enum { BRICK_CELLS = 512, ARRAYS = 5, FIELD_HASH = 16, FIELD_HASHED_FROM = 24, FIELD_HEADER = 64 };

struct file_level {
    double leaf_m, d1, d2, d3;
    int32_t brick_min[3], brick_dim[3];
    uint32_t hashed, voxel_count, brick_slots, brick_count;
    uint64_t list_words;
    uint64_t offset[ARRAYS]; /* voxels, bricks, brick_keys, cells, lists */
};

struct file_header {
    char magic[8];
    uint32_t version, level_count;
    uint64_t file_bytes, hash;
    double origin_m[3];
    uint64_t id, points;
    uint32_t min_points, covariance;
    double min_eigenvalue_ratio, outlier_ratio;
    struct file_level levels[NDT_MAX_LEVELS];
};

static size_t below(struct ndt_random *random, size_t count)
{
    return count ? (size_t)(ndt_random_next(random) % count) : 0;
}

/* ---- hashes ---- */

static void fix_field(uint8_t *data, size_t size)
{
    static const char MAGIC[8] = "NDTFLD\r\n";
    for (size_t at = 0; at + FIELD_HEADER <= size; at += 64) /* attachments begin at such an offset */
        if (memcmp(data + at, MAGIC, sizeof(MAGIC)) == 0) {
            const uint64_t hash = ndt_hash64(data + at + FIELD_HASHED_FROM, size - at - FIELD_HASHED_FROM, 0);
            memcpy(data + at + FIELD_HASH, &hash, sizeof(hash));
            return;
        }
}

void map_fix(uint8_t *data, size_t size)
{
    const uint64_t bytes = size;
    uint64_t hash = 0;
    if (size < sizeof(struct file_header))
        return;
    fix_field(data, size);
    memcpy(data + offsetof(struct file_header, file_bytes), &bytes, sizeof(bytes));
    memcpy(data + offsetof(struct file_header, hash), &hash, sizeof(hash));
    hash = ndt_hash64(data, size, 0);
    memcpy(data + offsetof(struct file_header, hash), &hash, sizeof(hash));
}

/* ---- places ---- */

static struct file_level level_of(const uint8_t *data, struct ndt_random *random)
{
    struct file_header header;
    memcpy(&header, data, sizeof(header));
    const size_t count = header.level_count < NDT_MAX_LEVELS ? header.level_count : NDT_MAX_LEVELS;
    return header.levels[below(random, count)];
}

/* Some item of an array of the level: its offset, or that of the header where the array is not in the file. */
static size_t place_in(const struct file_level *level, int array, size_t count, size_t item_bytes, size_t size,
                       struct ndt_random *random)
{
    const uint64_t at = level->offset[array] + (uint64_t)below(random, count) * item_bytes;
    return at < size && size - at >= item_bytes ? (size_t)at : below(random, sizeof(struct file_header) / 4) * 4;
}

static int is_empty(const uint8_t *at)
{
    static const uint8_t zero[sizeof(struct ndt_cell_ref)];
    return memcmp(at, zero, sizeof(zero)) == 0;
}

/* The reference of a cell, in half of the calls one that is used. */
static size_t place_of_cell(const struct file_level *level, const uint8_t *data, size_t size,
                            struct ndt_random *random)
{
    const size_t bytes = sizeof(struct ndt_cell_ref), count = (size_t)level->brick_count * BRICK_CELLS;
    size_t at = place_in(level, 3, count, bytes, size, random);
    if (below(random, 2))
        for (size_t left = 2 * BRICK_CELLS; left > 0 && at + 2 * bytes <= size && is_empty(data + at); left--)
            at += bytes;
    return at;
}

static size_t place(const uint8_t *data, size_t size, struct ndt_random *random)
{
    const struct file_level level = level_of(data, random);
    switch (below(random, 8)) {
    case 0:
    case 1:
        return below(random, sizeof(struct file_header) / 4) * 4;
    case 2:
        return place_in(&level, 0, level.voxel_count, sizeof(struct ndt_voxel), size, random) +
               4 * below(random, 16);
    case 3:
        return place_in(&level, 1 + (int)below(random, 2), level.brick_slots, 4, size, random);
    case 4:
    case 5:
        return place_of_cell(&level, data, size, random) + 4 * below(random, 2);
    case 6:
        return place_in(&level, 4, (size_t)level.list_words, 4, size, random);
    default: /* the field, if there is one, is at the end */
        return size - size / 4 + below(random, size / 16) * 4;
    }
}

/* ---- values ---- */

static void put_limit(uint8_t *at, size_t left, struct ndt_random *random)
{
    static const uint32_t words[] = {
        0,          1,          2,          7,          8,          27,         28,         32,         33,
        64,         255,        256,        511,        512,        1u << 20,   0x7fffffff, 0x80000000, 0xffffffff,
        0xfffffff8, 0x1b1b0701, 0x20010101, 0x7fc00000, 0x7f800000, 0x4e6e6b28, 0xbf800000, 0x00000100};
    static const double reals[] = {0, 0.1, 1, 2, 100, -1, 1e-300, 1e300, 1e9, NAN, INFINITY, 0.0999, 1048576};
    static const uint8_t counts[] = {0, 1, 7, 8, 16, 24, 27, 28, 32, 40, 255};
    const uint32_t word = words[below(random, sizeof(words) / sizeof(words[0]))];
    const double real = reals[below(random, sizeof(reals) / sizeof(reals[0]))];
    const float single = (float)real;
    switch (below(random, 6)) {
    case 0:
    case 1:
        memcpy(at, &word, left < 4 ? left : 4);
        break;
    case 2:
        memcpy(at, &real, left < 8 ? left : 8);
        break;
    case 3:
        memcpy(at, &single, left < 4 ? left : 4);
        break;
    case 4: /* counts of a reference */
        for (size_t i = 0; i < 4 && i < left; i++)
            if (below(random, 2))
                at[i] = counts[below(random, sizeof(counts))];
        break;
    default:
        (void)LLVMFuzzerMutate(at, left < 8 ? left : 8, left < 8 ? left : 8);
    }
}

size_t map_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    if (size < sizeof(struct file_header) || below(random, 32) == 0)
        size = LLVMFuzzerMutate(data, size, max_size);
    if (size < sizeof(struct file_header))
        return size;
    for (size_t left = 1 + below(random, 4); left > 0; left--) {
        const size_t at = place(data, size, random);
        if (at < size)
            put_limit(data + at, size - at, random);
    }
    if (below(random, 16))
        map_fix(data, size);
    return size;
}

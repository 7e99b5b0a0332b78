#include "map_mutator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compiled_map_file.h"
#include "fuzz.h"
#include "ndt/hash.h"

/* Layout of the attached field, as in src/search/field_codec.c. */
enum { FIELD_HASH = 16, FIELD_HASHED_FROM = 24, FIELD_HEADER = 64 };

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

/* Makes the sizes and hashes of the file and of its attachment right. */
static void fix(uint8_t *data, size_t size)
{
    const uint64_t bytes = size;
    uint64_t hash = 0;
    if (size < sizeof(struct ndt_file_header))
        return;
    fix_field(data, size);
    memcpy(data + offsetof(struct ndt_file_header, file_bytes), &bytes, sizeof(bytes));
    memcpy(data + offsetof(struct ndt_file_header, hash), &hash, sizeof(hash));
    hash = ndt_hash64(data, size, 0);
    memcpy(data + offsetof(struct ndt_file_header, hash), &hash, sizeof(hash));
}

/* ---- places ---- */

static struct ndt_file_level level_of(const uint8_t *data, struct ndt_random *random)
{
    struct ndt_file_header header;
    memcpy(&header, data, sizeof(header));
    const size_t count = header.level_count < NDT_MAX_LEVELS ? header.level_count : NDT_MAX_LEVELS;
    return header.levels[fuzz_below(random, count)];
}

/* Offset of some item of an array of the level, or that of the header where the array is not in the file. */
static size_t place_in(const struct ndt_file_level *level, int array, size_t count, size_t item_bytes, size_t size,
                       struct ndt_random *random)
{
    const uint64_t at = level->offset[array] + (uint64_t)fuzz_below(random, count) * item_bytes;
    return at < size && size - at >= item_bytes ? (size_t)at
                                                : fuzz_below(random, sizeof(struct ndt_file_header) / 4) * 4;
}

static int is_empty(const uint8_t *at)
{
    static const uint8_t zero[sizeof(struct ndt_cell_ref)];
    return memcmp(at, zero, sizeof(zero)) == 0;
}

/* The reference of a cell, in half of the calls one that is used. */
static size_t place_of_cell(const struct ndt_file_level *level, const uint8_t *data, size_t size,
                            struct ndt_random *random)
{
    const size_t bytes = sizeof(struct ndt_cell_ref), count = (size_t)level->brick_count * NDT_FILE_BRICK_CELLS;
    size_t at = place_in(level, NDT_FILE_CELLS, count, bytes, size, random);
    if (fuzz_below(random, 2))
        for (size_t left = 2 * NDT_FILE_BRICK_CELLS; left > 0 && at + 2 * bytes <= size && is_empty(data + at);
             left--)
            at += bytes;
    return at;
}

static size_t place(const uint8_t *data, size_t size, struct ndt_random *random)
{
    const struct ndt_file_level level = level_of(data, random);
    switch (fuzz_below(random, 8)) {
    case 0:
    case 1:
        return fuzz_below(random, sizeof(struct ndt_file_header) / 4) * 4;
    case 2:
        return place_in(&level, NDT_FILE_VOXELS, level.voxel_count, sizeof(struct ndt_voxel), size, random) +
               4 * fuzz_below(random, 16);
    case 3:
        return place_in(&level, NDT_FILE_BRICKS + (int)fuzz_below(random, 2), level.brick_slots, 4, size, random);
    case 4:
    case 5:
        return place_of_cell(&level, data, size, random) + 4 * fuzz_below(random, 2);
    case 6:
        return place_in(&level, NDT_FILE_LISTS, (size_t)level.list_words, 4, size, random);
    default: /* the field, if there is one, is at the end */
        return size - size / 4 + fuzz_below(random, size / 16) * 4;
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
    const uint32_t word = words[fuzz_below(random, sizeof(words) / sizeof(words[0]))];
    const double real = reals[fuzz_below(random, sizeof(reals) / sizeof(reals[0]))];
    const float single = (float)real;
    switch (fuzz_below(random, 6)) {
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
            if (fuzz_below(random, 2))
                at[i] = counts[fuzz_below(random, sizeof(counts))];
        break;
    default:
        (void)LLVMFuzzerMutate(at, left < 8 ? left : 8, left < 8 ? left : 8);
    }
}

/* A Gaussian that is as wide or narrow as can be, and still one. */
static void put_gaussian(uint8_t *at, struct ndt_random *random)
{
    static const float sizes[] = {1e-30f, 1e-6f, 1, 100, 1e6f, 1e12f, 1e30f};
    struct ndt_voxel voxel;
    memcpy(&voxel, at, sizeof(voxel));
    memset(voxel.icov, 0, sizeof(voxel.icov));
    for (size_t i = 0; i < 3; i++)
        voxel.icov[i == 0 ? 0 : 2 * i + (i == 1)] = sizes[fuzz_below(random, sizeof(sizes) / sizeof(sizes[0]))];
    memcpy(at, &voxel, sizeof(voxel));
}

/* A list without some of its voxels: fewer that count for a kind of neighbours, or none at all. */
static void put_reference(uint8_t *at, struct ndt_random *random)
{
    struct ndt_cell_ref ref;
    memcpy(&ref, at, sizeof(ref));
    if (fuzz_below(random, 4) == 0)
        memset(&ref, 0, sizeof(ref));
    ref.n7 = (uint8_t)fuzz_below(random, ref.n27 + 1u);
    ref.n1 = (uint8_t)fuzz_below(random, ref.n7 + 1u);
    memcpy(at, &ref, sizeof(ref));
}

/* Changes what a file may hold: it is not refused, and is evaluated. */
static void mutate_gently(uint8_t *data, size_t size, struct ndt_random *random)
{
    static const double origins_m[] = {0, -1e-300, 0.3, -1e9, 1e12, -1e12}, sizes[] = {1e-300, 1e-9, 1, 1e9, 1e300};
    static const size_t members[] = {offsetof(struct ndt_file_header, id), offsetof(struct ndt_file_header, points),
                                     offsetof(struct ndt_file_header, min_points)};
    const struct ndt_file_level level = level_of(data, random);
    const size_t which = fuzz_below(random, 3);
    double real;
    size_t at;
    switch (fuzz_below(random, 5)) {
    case 0:
        at = place_in(&level, NDT_FILE_VOXELS, level.voxel_count, sizeof(struct ndt_voxel), size, random);
        if (at >= level.offset[NDT_FILE_VOXELS] + sizeof(struct ndt_voxel)) /* leaves out the null voxel */
            put_gaussian(data + at, random);
        break;
    case 1:
        at = place_of_cell(&level, data, size, random);
        if (at >= sizeof(struct ndt_file_header))
            put_reference(data + at, random);
        break;
    case 2:
        at = offsetof(struct ndt_file_header, origin_m) + 8 * which;
        real = origins_m[fuzz_below(random, 6)];
        memcpy(data + at, &real, sizeof(real));
        break;
    case 3: /* d1 is negative, d2 positive */
        at = offsetof(struct ndt_file_header, levels) + offsetof(struct ndt_file_level, d1) + 8 * which;
        real = (which == 0 ? -1 : 1) * sizes[fuzz_below(random, 5)];
        memcpy(data + at, &real, sizeof(real));
        break;
    default:
        at = members[which];
        (void)LLVMFuzzerMutate(data + at, 4, 4);
    }
}

/* Bytes of the field behind its header; most of them may be anything. */
static void mutate_field(uint8_t *data, size_t size, struct ndt_random *random)
{
    const size_t begin = size - size / 3, at = begin + fuzz_below(random, size - begin);
    const size_t count = size - at < 16 ? size - at : 16;
    (void)LLVMFuzzerMutate(data + at, count, count);
}

/* ---- maps that open: those that are refused are most of a corpus, and their offspring is refused as well ---- */

enum { KEPT = 16, MOST_BYTES = 65536 };
static struct {
    uint8_t data[MOST_BYTES];
    size_t size;
} kept[KEPT];
static size_t kept_count;

void map_keep(const uint8_t *data, size_t size)
{
    if (size > MOST_BYTES)
        return;
    const size_t to = kept_count++ % KEPT;
    memcpy(kept[to].data, data, size);
    kept[to].size = size;
}

/* Replaces the file by one that opens; returns its size, or the old one where there is none. */
static size_t take_kept(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    const size_t from = fuzz_below(random, kept_count < KEPT ? kept_count : KEPT);
    if (kept_count == 0 || kept[from].size > max_size)
        return size;
    memcpy(data, kept[from].data, kept[from].size);
    return kept[from].size;
}

size_t map_mutate(uint8_t *data, size_t size, size_t max_size, struct ndt_random *random)
{
    if (size < sizeof(struct ndt_file_header) || fuzz_below(random, 32) == 0)
        size = LLVMFuzzerMutate(data, size, max_size);
    if (size < sizeof(struct ndt_file_header))
        return size;
    const size_t kind = fuzz_below(random, 4);
    if (kind < 2 || fuzz_below(random, 2))
        size = take_kept(data, size, max_size, random);
    for (size_t left = 1 + fuzz_below(random, 4); left > 0; left--) {
        const size_t at = place(data, size, random);
        if (kind == 0)
            mutate_field(data, size, random);
        else if (kind == 1)
            mutate_gently(data, size, random);
        else if (at < size)
            put_limit(data + at, size - at, random);
    }
    if (fuzz_below(random, 16))
        fix(data, size);
    return size;
}

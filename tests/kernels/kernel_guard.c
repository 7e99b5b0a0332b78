#include "kernel_guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAD = 16, GUARD_BYTE = 0xa5 };

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* The array ends where the unreadable page begins. */
static float *array_at(const struct guarded_cloud *guarded, int i, size_t padded)
{
    unsigned char *end = guarded->region + (size_t)i * guarded->stride + guarded->array_bytes;
    return (float *)(void *)(end - padded * sizeof(float));
}

static void fill(float *array, const float *source, size_t count, size_t padded)
{
    if (count)
        memcpy(array, source, count * sizeof(float));
    for (size_t i = count; i < padded; i++)
        array[i] = source[0];
}

static int protect_and_copy(struct guarded_cloud *guarded, size_t page)
{
    for (size_t i = 0; i < 3; i++) {
        unsigned char *readable = guarded->region + i * guarded->stride;
        memcpy(guarded->copy + i * guarded->array_bytes, readable, guarded->array_bytes);
        if (mprotect(readable + guarded->array_bytes, page, PROT_NONE) != 0)
            return 0;
    }
    return 1;
}

int guarded_cloud_make(struct guarded_cloud *guarded, const struct ndt_cloud *source)
{
    memset(guarded, 0, sizeof(*guarded));
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), padded = round_up(source->count, PAD);
    guarded->array_bytes = round_up(padded * sizeof(float) + 64, page);
    guarded->stride = guarded->array_bytes + page;
    guarded->region_bytes = 3 * guarded->stride;
    void *region = mmap(NULL, guarded->region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guarded->copy = malloc(3 * guarded->array_bytes);
    guarded->region = region == MAP_FAILED ? NULL : region;
    if (!guarded->region || !guarded->copy) {
        guarded_cloud_free(guarded);
        return 0;
    }
    memset(guarded->region, GUARD_BYTE, guarded->region_bytes);
    guarded->cloud.count = source->count;
    guarded->cloud.capacity = padded;
    guarded->cloud.x_m = array_at(guarded, 0, padded);
    guarded->cloud.y_m = array_at(guarded, 1, padded);
    guarded->cloud.z_m = array_at(guarded, 2, padded);
    fill(guarded->cloud.x_m, source->x_m, source->count, padded);
    fill(guarded->cloud.y_m, source->y_m, source->count, padded);
    fill(guarded->cloud.z_m, source->z_m, source->count, padded);
    return protect_and_copy(guarded, page);
}

void guarded_cloud_free(struct guarded_cloud *guarded)
{
    if (guarded->region)
        munmap(guarded->region, guarded->region_bytes);
    free(guarded->copy);
    memset(guarded, 0, sizeof(*guarded));
}

int guarded_cloud_intact(const struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < 3; i++)
        if (memcmp(guarded->region + i * guarded->stride, guarded->copy + i * guarded->array_bytes,
                   guarded->array_bytes) != 0)
            return 0;
    return 1;
}

void guarded_cloud_spoil(struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < guarded->cloud.count; i++)
        guarded->cloud.x_m[i] = guarded->cloud.y_m[i] = guarded->cloud.z_m[i] = NAN;
}

void guarded_cloud_restore(struct guarded_cloud *guarded)
{
    for (size_t i = 0; i < 3; i++)
        memcpy(guarded->region + i * guarded->stride, guarded->copy + i * guarded->array_bytes,
               guarded->array_bytes);
}

uint64_t guard_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    hash ^= 0xcbf29ce484222325u;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; size > 0; size--)
        hash = (hash ^ *bytes++) * 0x100000001b3u;
    return hash;
}

uint64_t guard_hash_map(const struct ndt_map *map)
{
    uint64_t hash = guard_hash(0, map->origin_m, sizeof(map->origin_m));
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        hash = guard_hash(hash, level->voxels, level->voxel_count * sizeof(*level->voxels));
        hash = guard_hash(hash, level->bricks, level->brick_slots * sizeof(*level->bricks));
        hash = guard_hash(hash, level->cells, (size_t)level->brick_count * 512u * sizeof(*level->cells));
        hash = guard_hash(hash, level->lists, level->list_words * sizeof(*level->lists));
    }
    return hash;
}

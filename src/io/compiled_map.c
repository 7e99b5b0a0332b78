#define _GNU_SOURCE /* madvise */
#include "ndt_io/compiled_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiled_map_file.h"
#include "input.h"
#include "ndt/hash.h"
#include "ndt_io/output_file.h"

static const char MAGIC[8] = {'N', 'D', 'T', 'M', 'A', 'P', '\r', '\n'};
enum { HASH_AT = offsetof(struct ndt_file_header, hash) };
#define HUGE_PAGE ((size_t)2 << 20)
#define READ_SIZE ((size_t)2 << 20) /* small enough to be hashed from the cache; a multiple of 32 */
static void level_arrays(const struct ndt_map_level *level, const void *arrays[NDT_FILE_ARRAYS])
{
    arrays[0] = level->voxels;
    arrays[1] = level->bricks;
    arrays[2] = level->brick_keys;
    arrays[3] = level->cells;
    arrays[4] = level->lists;
}

static void describe_level(struct ndt_file_level *out, const struct ndt_map_level *level, uint64_t *at)
{
    uint64_t sizes[NDT_FILE_ARRAYS];
    out->leaf_m = level->leaf_m;
    out->d1 = level->d1;
    out->d2 = level->d2;
    out->d3 = level->d3;
    memcpy(out->brick_min, level->brick_min, sizeof(out->brick_min));
    memcpy(out->brick_dim, level->brick_dim, sizeof(out->brick_dim));
    out->hashed = (uint32_t)level->hashed;
    out->voxel_count = level->voxel_count;
    out->brick_slots = level->brick_slots;
    out->brick_count = level->brick_count;
    out->list_words = level->list_words;
    ndt_file_array_sizes(out, sizes);
    for (int i = 0; i < NDT_FILE_ARRAYS; i++) {
        out->offset[i] = *at;
        *at += (sizes[i] + NDT_FILE_ALIGNMENT - 1) / NDT_FILE_ALIGNMENT * NDT_FILE_ALIGNMENT;
    }
}

/* End of the arrays, where an attachment begins; the sizes have been checked. */
static uint64_t arrays_end(const struct ndt_file_header *header)
{
    uint64_t end = (sizeof(*header) + NDT_FILE_ALIGNMENT - 1) / NDT_FILE_ALIGNMENT * NDT_FILE_ALIGNMENT;
    for (uint32_t i = 0; i < header->level_count; i++) {
        uint64_t sizes[NDT_FILE_ARRAYS];
        ndt_file_array_sizes(&header->levels[i], sizes);
        for (int k = 0; k < NDT_FILE_ARRAYS; k++) {
            const uint64_t array_end = header->levels[i].offset[k] + sizes[k];
            end = array_end > end ? array_end : end;
        }
    }
    return (end + NDT_FILE_ALIGNMENT - 1) / NDT_FILE_ALIGNMENT * NDT_FILE_ALIGNMENT;
}

static void describe_map(struct ndt_file_header *out, const struct ndt_map *map, size_t attached)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->magic, MAGIC, sizeof(out->magic));
    out->version = NDT_COMPILED_MAP_VERSION;
    out->level_count = (uint32_t)map->level_count;
    memcpy(out->origin_m, map->origin_m, sizeof(out->origin_m));
    out->id = map->id;
    out->points = map->points;
    out->min_points = map->config.min_points;
    out->covariance = map->config.covariance;
    out->min_eigenvalue_ratio = map->config.min_eigenvalue_ratio;
    out->outlier_ratio = map->config.outlier_ratio;
    uint64_t at = (sizeof(*out) + NDT_FILE_ALIGNMENT - 1) / NDT_FILE_ALIGNMENT * NDT_FILE_ALIGNMENT;
    for (size_t i = 0; i < map->level_count; i++)
        describe_level(&out->levels[i], &map->levels[i], &at);
    out->file_bytes = at + attached;
}

static void fill_image(unsigned char *image, const struct ndt_file_header *header, const struct ndt_map *map,
                       const void *attachment, size_t attached)
{
    memcpy(image, header, sizeof(*header));
    for (size_t i = 0; i < map->level_count; i++) {
        uint64_t sizes[NDT_FILE_ARRAYS];
        const void *arrays[NDT_FILE_ARRAYS];
        ndt_file_array_sizes(&header->levels[i], sizes);
        level_arrays(&map->levels[i], arrays);
        for (int k = 0; k < NDT_FILE_ARRAYS; k++)
            if (sizes[k] > 0)
                memcpy(image + header->levels[i].offset[k], arrays[k], sizes[k]);
    }
    if (attached > 0)
        memcpy(image + header->file_bytes - attached, attachment, attached);
    const uint64_t hash = ndt_hash64(image, header->file_bytes, 0);
    memcpy(image + HASH_AT, &hash, sizeof(hash));
}

enum ndt_status ndt_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err)
{
    return ndt_map_save_with(map, NULL, 0, path, err);
}

enum ndt_status ndt_map_save_with(const struct ndt_map *map, const void *attachment, size_t attached,
                                  const char *path, struct ndt_error *err)
{
    struct ndt_file_header header;
    struct ndt_output output;
    describe_map(&header, map, attached);
    unsigned char *image = calloc(1, header.file_bytes);
    if (!image)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for a map file of %llu bytes", path,
                        (unsigned long long)header.file_bytes);
    fill_image(image, &header, map, attachment, attached);
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status == NDT_OK) {
        const size_t written = fwrite(image, 1, header.file_bytes, output.file);
        if (written == header.file_bytes) {
            status = ndt_output_commit(&output, err);
        } else {
            status =
                ndt_fail(err, NDT_ERR_IO, "%s: write failed after %zu bytes: %s", path, written, strerror(errno));
            ndt_output_discard(&output);
        }
    }
    free(image);
    return status;
}

static void release_storage(struct ndt_map *map)
{
    if (map->storage)
        munmap(map->storage, map->storage_bytes);
    free(map);
}

size_t ndt_map_attachment(const struct ndt_map *map, const void **data)
{
    *data = NULL;
    if (map->release != release_storage)
        return 0;
    const struct ndt_file_header *header = map->storage;
    const uint64_t end = arrays_end(header);
    if (end >= header->file_bytes)
        return 0;
    *data = (const unsigned char *)map->storage + end;
    return (size_t)(header->file_bytes - end);
}

/* ---- opening: the whole file is copied, so that no later change of it reaches the map ---- */

static enum ndt_status check_header(const char *path, const struct ndt_file_header *header, uint64_t size,
                                    struct ndt_error *err)
{
    if (memcmp(header->magic, MAGIC, sizeof(MAGIC)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a compiled map (magic bytes differ)", path);
    if (header->version != NDT_COMPILED_MAP_VERSION)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: version %u; this program reads version %d: compile it again",
                        path, header->version, NDT_COMPILED_MAP_VERSION);
    if (header->file_bytes != size)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: %" PRIu64 " bytes long, but the header says %" PRIu64, path, size,
                        header->file_bytes);
    if (header->level_count < 1 || header->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: %u levels; the range is 1 to %d", path, header->level_count,
                        NDT_MAX_LEVELS);
    const char *fault = ndt_file_header_fault(header, size);
    return fault ? ndt_fail(err, NDT_ERR_FORMAT, "%s: not a valid map: %s", path, fault) : NDT_OK;
}

static size_t allocated(size_t size)
{
    return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* Allocates memory for the map, in huge pages where the kernel has them: these save evaluations most misses of the
 * address translation, and the opening most page faults. */
static void *allocate(size_t size)
{
    const size_t whole = allocated(size);
    char *base = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    const size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        munmap(base, before);
    munmap(base + before + whole, HUGE_PAGE - before);
    if (size >= HUGE_PAGE)
        (void)madvise(base + before, whole, MADV_HUGEPAGE);
    return base + before;
}

/* Checks that the memory suffices for a file: otherwise the kernel would kill a process instead of an error. */
static enum ndt_status check_memory(const struct ndt_input *input, struct ndt_error *err)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    if (input->size < memory)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_LIMIT, "%s: %" PRIu64 " bytes; this machine has %" PRIu64 " bytes of memory",
                    input->path, input->size, memory);
}

/* Reads the file into `image` and checks its hash, which covers the file with a zero hash field. */
static enum ndt_status read_image(const struct ndt_input *input, unsigned char *image,
                                  struct ndt_progress *progress, struct ndt_error *err)
{
    struct ndt_hash_state hash;
    uint64_t stored = 0;
    ndt_hash_begin(&hash, 0);
    ndt_progress_set(progress, NDT_PROGRESS_ALL_BYTES, input->size);
    for (uint64_t at = 0; at < input->size; at += READ_SIZE) {
        const size_t size = input->size - at < READ_SIZE ? (size_t)(input->size - at) : READ_SIZE;
        enum ndt_status status = ndt_progress_check(progress, err);
        if (status == NDT_OK)
            status = ndt_input_read(input, at, image + at, size, err);
        if (status != NDT_OK)
            return status;
        if (at == 0) {
            memcpy(&stored, image + HASH_AT, sizeof(stored));
            memset(image + HASH_AT, 0, sizeof(stored));
        }
        ndt_hash_add(&hash, image + at, size);
        ndt_progress_set(progress, NDT_PROGRESS_BYTES, at + size);
    }
    const uint64_t found = ndt_hash_end(&hash);
    if (found != stored)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: damaged: hash is %016" PRIx64 ", the header says %016" PRIx64,
                        input->path, found, stored);
    return NDT_OK;
}

static void attach_level(struct ndt_map_level *out, const struct ndt_file_level *level, const unsigned char *image)
{
    out->leaf_m = level->leaf_m;
    out->d1 = level->d1;
    out->d2 = level->d2;
    out->d3 = level->d3;
    memcpy(out->brick_min, level->brick_min, sizeof(out->brick_min));
    memcpy(out->brick_dim, level->brick_dim, sizeof(out->brick_dim));
    out->hashed = (int)level->hashed;
    out->voxel_count = level->voxel_count;
    out->brick_slots = level->brick_slots;
    out->brick_count = level->brick_count;
    out->list_words = level->list_words;
    out->voxels = (const struct ndt_voxel *)(image + level->offset[0]);
    out->bricks = (const uint32_t *)(image + level->offset[1]);
    out->brick_keys = level->hashed ? (const uint64_t *)(image + level->offset[2]) : NULL;
    out->cells = (const struct ndt_cell_ref *)(image + level->offset[3]);
    out->lists = (const uint32_t *)(image + level->offset[4]);
}

static void attach_header(struct ndt_map *map, const struct ndt_file_header *header)
{
    memcpy(map->origin_m, header->origin_m, sizeof(map->origin_m));
    map->id = header->id;
    map->points = header->points;
    map->config.level_count = map->level_count = header->level_count;
    map->config.min_points = header->min_points;
    map->config.covariance =
        header->covariance == NDT_COVARIANCE_AUTOWARE ? NDT_COVARIANCE_AUTOWARE : NDT_COVARIANCE_UNBIASED;
    map->config.min_eigenvalue_ratio = header->min_eigenvalue_ratio;
    map->config.outlier_ratio = header->outlier_ratio;
    map->references = 1;
    map->release = release_storage;
    map->bytes = header->file_bytes;
}

static enum ndt_status attach(struct ndt_map *map, const char *path, const unsigned char *image,
                              struct ndt_progress *progress, struct ndt_error *err)
{
    const struct ndt_file_header *header = (const struct ndt_file_header *)image;
    attach_header(map, header);
    ndt_progress_set(progress, NDT_PROGRESS_ALL_LEVELS, map->level_count);
    for (size_t i = 0; i < map->level_count; i++) {
        const char *fault = NULL;
        attach_level(&map->levels[i], &header->levels[i], image);
        map->config.leaf_m[i] = map->levels[i].leaf_m;
        enum ndt_status status = ndt_file_level_check(&map->levels[i], progress, &fault, err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", path);
        if (fault)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: level %zu: not a valid map: %s", path, i, fault);
        ndt_progress_add(progress, NDT_PROGRESS_LEVELS, 1);
    }
    return NDT_OK;
}

/* The header is checked before memory for the file is taken, and again as a part of the file: it may have changed.
 */
static enum ndt_status copy_file(struct ndt_map *map, const struct ndt_input *input, struct ndt_progress *progress,
                                 struct ndt_error *err)
{
    struct ndt_file_header header;
    if (input->size < sizeof(header))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a compiled map: %" PRIu64 " bytes, the header alone has %zu",
                        input->path, input->size, sizeof(header));
    enum ndt_status status = ndt_input_read(input, 0, &header, sizeof(header), err);
    if (status == NDT_OK)
        status = check_header(input->path, &header, input->size, err);
    if (status == NDT_OK)
        status = check_memory(input, err);
    if (status != NDT_OK)
        return status;
    map->storage_bytes = allocated((size_t)input->size);
    map->storage = allocate((size_t)input->size);
    if (!map->storage)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for %" PRIu64 " bytes", input->path, input->size);
    status = read_image(input, map->storage, progress, err);
    if (status == NDT_OK)
        status = check_header(input->path, map->storage, input->size, err);
    if (status == NDT_OK)
        status = attach(map, input->path, map->storage, progress, err);
    return status;
}

enum ndt_status ndt_map_open_with(struct ndt_map **out, const char *path, struct ndt_progress *progress,
                                  struct ndt_error *err)
{
    struct ndt_input input;
    *out = NULL;
    enum ndt_status status = ndt_input_open(&input, path, err);
    if (status != NDT_OK)
        return status;
    struct ndt_map *map = calloc(1, sizeof(*map));
    status = map ? copy_file(map, &input, progress, err) : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    ndt_input_close(&input);
    if (status == NDT_OK && map) {
        (void)mprotect(map->storage, map->storage_bytes, PROT_READ);
        *out = map;
    } else if (map) {
        release_storage(map);
    }
    return status;
}

enum ndt_status ndt_map_open(struct ndt_map **out, const char *path, struct ndt_error *err)
{
    return ndt_map_open_with(out, path, NULL, err);
}

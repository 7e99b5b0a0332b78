#include "ndt_io/compiled_map.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt/hash.h"
#include "ndt_io/output_file.h"

static const char MAGIC[8] = "NDTMAP\r\n";
enum { BRICK_CELLS = 512, ARRAYS = 5, ALIGNMENT = 64 };

struct file_level {
    double leaf_m, d1, d2, d3;
    int32_t brick_min[3], brick_dim[3];
    uint32_t hashed, voxel_count, brick_slots, brick_count;
    uint64_t list_words;
    uint64_t offset[ARRAYS]; /* voxels, bricks, brick_keys, cells, lists */
};

struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t level_count;
    uint64_t file_bytes;
    uint64_t hash; /* of the whole file with this field zero */
    double origin_m[3];
    uint64_t id, points;
    uint32_t min_points, covariance;
    double min_eigenvalue_ratio, outlier_ratio;
    struct file_level levels[NDT_MAX_LEVELS];
};

/* Sizes of a level's arrays in bytes, in the order of file_level.offset; counts were checked before. */
static void array_sizes(const struct file_level *level, uint64_t sizes[ARRAYS])
{
    sizes[0] = (uint64_t)level->voxel_count * sizeof(struct ndt_voxel);
    sizes[1] = (uint64_t)level->brick_slots * sizeof(uint32_t);
    sizes[2] = level->hashed ? (uint64_t)level->brick_slots * sizeof(uint64_t) : 0;
    sizes[3] = (uint64_t)level->brick_count * BRICK_CELLS * sizeof(struct ndt_cell_ref);
    sizes[4] = level->list_words * sizeof(uint32_t);
}

static void level_arrays(const struct ndt_map_level *level, const void *arrays[ARRAYS])
{
    arrays[0] = level->voxels;
    arrays[1] = level->bricks;
    arrays[2] = level->brick_keys;
    arrays[3] = level->cells;
    arrays[4] = level->lists;
}

static void describe_level(struct file_level *out, const struct ndt_map_level *level, uint64_t *at)
{
    uint64_t sizes[ARRAYS];
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
    array_sizes(out, sizes);
    for (int i = 0; i < ARRAYS; i++) {
        out->offset[i] = *at;
        *at += (sizes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

/* The end of the arrays, where an attachment begins; sizes were checked before. */
static uint64_t arrays_end(const struct file_header *header)
{
    uint64_t end = (sizeof(*header) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (uint32_t i = 0; i < header->level_count; i++) {
        uint64_t sizes[ARRAYS];
        array_sizes(&header->levels[i], sizes);
        for (int k = 0; k < ARRAYS; k++) {
            const uint64_t array_end = header->levels[i].offset[k] + sizes[k];
            end = array_end > end ? array_end : end;
        }
    }
    return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void describe_map(struct file_header *out, const struct ndt_map *map, size_t attached)
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
    uint64_t at = (sizeof(*out) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (size_t i = 0; i < map->level_count; i++)
        describe_level(&out->levels[i], &map->levels[i], &at);
    out->file_bytes = at + attached;
}

static void fill_image(unsigned char *image, const struct file_header *header, const struct ndt_map *map,
                       const void *attachment, size_t attached)
{
    memcpy(image, header, sizeof(*header));
    for (size_t i = 0; i < map->level_count; i++) {
        uint64_t sizes[ARRAYS];
        const void *arrays[ARRAYS];
        array_sizes(&header->levels[i], sizes);
        level_arrays(&map->levels[i], arrays);
        for (int k = 0; k < ARRAYS; k++)
            if (sizes[k] > 0)
                memcpy(image + header->levels[i].offset[k], arrays[k], sizes[k]);
    }
    if (attached > 0)
        memcpy(image + header->file_bytes - attached, attachment, attached);
    const uint64_t hash = ndt_hash64(image, header->file_bytes, 0);
    memcpy(image + offsetof(struct file_header, hash), &hash, sizeof(hash));
}

enum ndt_status ndt_map_save(const struct ndt_map *map, const char *path, struct ndt_error *err)
{
    return ndt_map_save_with(map, NULL, 0, path, err);
}

enum ndt_status ndt_map_save_with(const struct ndt_map *map, const void *attachment, size_t attached,
                                  const char *path, struct ndt_error *err)
{
    struct file_header header;
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

static void unmap(struct ndt_map *map)
{
    munmap(map->storage, map->storage_bytes);
    free(map);
}

size_t ndt_map_attachment(const struct ndt_map *map, const void **data)
{
    *data = NULL;
    if (map->release != unmap)
        return 0;
    const struct file_header *header = map->storage;
    const uint64_t end = arrays_end(header);
    if (end >= header->file_bytes)
        return 0;
    *data = (const unsigned char *)map->storage + end;
    return (size_t)(header->file_bytes - end);
}

static enum ndt_status map_whole_file(const char *path, void **out, size_t *size, struct ndt_error *err)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        enum ndt_status status = ndt_fail(err, NDT_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    *size = (size_t)info.st_size;
    if (!S_ISREG(info.st_mode) || *size < sizeof(struct file_header)) {
        close(fd);
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a compiled map: %zu bytes, the header alone has %zu", path,
                        *size, sizeof(struct file_header));
    }
    *out = mmap(NULL, *size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    close(fd);
    if (*out == MAP_FAILED)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    return NDT_OK;
}

static enum ndt_status check_header(const char *path, const struct file_header *header, size_t size,
                                    struct ndt_error *err)
{
    if (memcmp(header->magic, MAGIC, sizeof(MAGIC)) != 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: not a compiled map (magic bytes differ)", path);
    if (header->version != NDT_COMPILED_MAP_VERSION)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: version %u; this program reads version %d: compile it again",
                        path, header->version, NDT_COMPILED_MAP_VERSION);
    if (header->file_bytes != size)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: %zu bytes long, but the header says %llu", path, size,
                        (unsigned long long)header->file_bytes);
    if (header->level_count < 1 || header->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: %u levels; the range is 1 to %d", path, header->level_count,
                        NDT_MAX_LEVELS);
    return NDT_OK;
}

/* The hash was computed with its own field zero; the mapping is private, so the field can be zeroed temporarily
 * without changing the file. */
static enum ndt_status check_hash(const char *path, unsigned char *image, size_t size, struct ndt_error *err)
{
    struct file_header *header = (struct file_header *)image;
    const uint64_t stored = header->hash;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (mprotect(image, page < size ? page : size, PROT_READ | PROT_WRITE) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be checked: %s", path, strerror(errno));
    header->hash = 0;
    const uint64_t hash = ndt_hash64(image, size, 0);
    header->hash = stored;
    if (hash != stored)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: damaged: hash is %016llx, the header says %016llx", path,
                        (unsigned long long)hash, (unsigned long long)stored);
    return NDT_OK;
}

static int array_fits(uint64_t offset, uint64_t size, uint64_t file_bytes)
{
    return offset % ALIGNMENT == 0 && offset >= sizeof(struct file_header) && offset <= file_bytes &&
           size <= file_bytes - offset;
}

static int sizes_fit(const struct file_level *level, uint64_t file_bytes)
{
    uint64_t sizes[ARRAYS], slots = 1;
    if (level->hashed > 1 || level->voxel_count < 1 || level->brick_count < 1 || level->brick_slots < 1 ||
        level->list_words < 32 || level->list_words > file_bytes)
        return 0;
    if (!(level->leaf_m >= 0.1 && level->leaf_m <= 100.0) || !isfinite(level->d1 + level->d2 + level->d3))
        return 0;
    for (int i = 0; i < 3; i++) {
        if (level->brick_dim[i] < 0 || level->brick_dim[i] > 1 << 20 || abs(level->brick_min[i]) > 1 << 20)
            return 0;
        slots = slots > UINT32_MAX ? slots : slots * (uint64_t)level->brick_dim[i];
    }
    if (level->hashed ? (level->brick_slots & (level->brick_slots - 1)) != 0 : slots > level->brick_slots)
        return 0;
    array_sizes(level, sizes);
    for (int i = 0; i < ARRAYS; i++)
        if (!array_fits(level->offset[i], sizes[i], file_bytes))
            return 0;
    return 1;
}

static int cell_fits(const struct ndt_map_level *level, const struct ndt_cell_ref *ref)
{
    const uint64_t first = (uint64_t)ref->offset * 8;
    return ref->n1 <= ref->n7 && ref->n7 <= ref->n27 && ref->n27 <= 27 && ref->n27 <= ref->padded &&
           ref->padded <= 32 && ref->padded % 8 == 0 && first + 4u * ref->padded <= level->list_words;
}

/* Every index in the level points into the level. Lists are checked where cells refer to them. */
static int indexes_fit(const struct ndt_map_level *level)
{
    int good = 1, free_slots = !level->hashed;
    for (uint32_t i = 0; i < level->brick_slots; i++) {
        good &= level->bricks[i] < level->brick_count;
        free_slots |= level->hashed && level->brick_keys[i] == 0; /* a full table would never end a search */
    }
    for (size_t i = 0; good && i < (size_t)level->brick_count * BRICK_CELLS; i++) {
        const struct ndt_cell_ref *ref = &level->cells[i];
        if (ref->padded == 0 && ref->n27 == 0 && ref->offset == 0)
            continue;
        good &= cell_fits(level, ref);
        for (uint32_t k = 0; good && k < ref->padded; k++)
            good &= level->lists[(size_t)ref->offset * 8 + 3u * ref->padded + k] < level->voxel_count;
    }
    for (uint32_t v = 0; v < level->voxel_count; v++)
        for (int k = 0; k < 3; k++)
            good &= abs(level->voxels[v].cell[k]) <= 1 << 20;
    return good && free_slots;
}

static void attach_level(struct ndt_map_level *out, const struct file_level *level, const unsigned char *image)
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

static void attach_header(struct ndt_map *map, const struct file_header *header)
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
    map->release = unmap;
    map->bytes = header->file_bytes;
}

static enum ndt_status attach(struct ndt_map *map, const char *path, unsigned char *image, size_t size,
                              struct ndt_error *err)
{
    const struct file_header *header = (const struct file_header *)image;
    enum ndt_status status = check_header(path, header, size, err);
    if (status == NDT_OK)
        status = check_hash(path, image, size, err);
    if (status != NDT_OK)
        return status;
    attach_header(map, header);
    for (size_t i = 0; i < map->level_count; i++) {
        if (!sizes_fit(&header->levels[i], size))
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: level %zu: sizes contradict each other or the file", path, i);
        attach_level(&map->levels[i], &header->levels[i], image);
        map->config.leaf_m[i] = map->levels[i].leaf_m;
        if (!indexes_fit(&map->levels[i]))
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: level %zu: an index points outside of the file", path, i);
    }
    return NDT_OK;
}

enum ndt_status ndt_map_open(struct ndt_map **out, const char *path, struct ndt_error *err)
{
    void *image = NULL;
    size_t size = 0;
    *out = NULL;
    enum ndt_status status = map_whole_file(path, &image, &size, err);
    if (status != NDT_OK)
        return status;
    struct ndt_map *map = calloc(1, sizeof(*map));
    status = map ? attach(map, path, image, size, err) : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    if (status != NDT_OK || !map) {
        munmap(image, size);
        free(map);
        return status;
    }
    map->storage = image;
    map->storage_bytes = size;
    *out = map;
    return NDT_OK;
}

#include "cuda_map.h"

#include <math.h>
#include <string.h>

_Static_assert((int)NDT_CUDA_STAGING <= (int)NDT_CUDA_MARKS, "the mark of a buffer is its number");

/* ---- synchronous upload ---- */

void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device)
{
    ndt_cuda_release(device, on_device->memory);
    memset(on_device, 0, sizeof(*on_device));
}

static enum ndt_status refuse(struct ndt_cuda_device *device, const struct ndt_map *map, size_t bytes,
                              struct ndt_error *err)
{
    size_t free_bytes;
    enum ndt_status status = ndt_cuda_free_bytes(device, &free_bytes, err);
    if (status != NDT_OK)
        return status;
    return ndt_fail(
        err, NDT_ERR_LIMIT,
        "a map of %zu bytes with %zu levels; CUDA device %d has %zu bytes free, so about %.0f %% of it would fit",
        bytes, map->level_count, device->index, free_bytes, fmin(99.0, 100.0 * (double)free_bytes / (double)bytes));
}

/* Reserves memory, and frees the old memory first, because both may not fit at once. It tries the allocation,
 * because the free memory is too small a number on devices that share the memory of the host. */
static enum ndt_status reserve(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                               const struct ndt_map *map, size_t bytes, struct ndt_error *err)
{
    if (bytes <= on_device->capacity)
        return NDT_OK;
    ndt_cuda_map_free(on_device, device);
    enum ndt_status status = ndt_cuda_allocate(device, &on_device->memory, bytes, "the map", err);
    on_device->capacity = status == NDT_OK ? bytes : 0;
    return status == NDT_ERR_MEMORY ? refuse(device, map, bytes, err) : status;
}

static void describe_level(struct ndt_gpu_level *out, const struct ndt_map_level *level, const char *memory,
                           const struct ndt_cuda_array arrays[NDT_CUDA_LEVEL_ARRAYS])
{
    *out = (struct ndt_gpu_level){
        .voxels = (const struct ndt_voxel *)(const void *)(memory + arrays[0].offset),
        .bricks = (const uint32_t *)(const void *)(memory + arrays[1].offset),
        .brick_keys = (const uint64_t *)(const void *)(memory + arrays[2].offset),
        .cells = (const struct ndt_cell_ref *)(const void *)(memory + arrays[3].offset),
        .lists = (const uint32_t *)(const void *)(memory + arrays[4].offset),
        .brick_slots = level->brick_slots,
        .hashed = level->hashed,
        .leaf_m = (float)level->leaf_m,
        .d2 = (float)level->d2,
        .d1d2 = (float)(level->d1 * level->d2),
        .d1 = level->d1,
        .leaf_exact_m = level->leaf_m,
    };
    memcpy(out->brick_min, level->brick_min, sizeof(out->brick_min));
    memcpy(out->brick_dim, level->brick_dim, sizeof(out->brick_dim));
}

/* Sets `levels`, the argument of the kernels, once the bytes are at the offsets of the plan. */
static void describe(struct ndt_cuda_map *on_device, const struct ndt_map *map,
                     const struct ndt_cuda_map_plan *plan)
{
    for (size_t i = 0; i < map->level_count; i++)
        describe_level(&on_device->levels[i], &map->levels[i], on_device->memory, plan->arrays[i]);
}

enum ndt_status ndt_cuda_map_load(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                  const struct ndt_map *map, struct ndt_error *err)
{
    struct ndt_cuda_map_plan plan;
    if (on_device->is_loaded && on_device->id == map->id)
        return NDT_OK;
    ndt_cuda_map_plan_make(&plan, map);
    enum ndt_status status = reserve(on_device, device, map, plan.bytes, err);
    if (status != NDT_OK)
        return status;
    on_device->is_loaded = 0;
    describe(on_device, map, &plan);
    for (size_t i = 0; status == NDT_OK && i < map->level_count; i++) {
        for (int k = 0; status == NDT_OK && k < NDT_CUDA_LEVEL_ARRAYS; k++) {
            const struct ndt_cuda_array *array = &plan.arrays[i][k];
            if (array->bytes)
                status = ndt_cuda_upload(device, (char *)on_device->memory + array->offset, array->data,
                                         array->bytes, err);
        }
    }
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err); /* the caller may free the map after the return */
    on_device->is_loaded = status == NDT_OK;
    on_device->id = map->id;
    return status;
}

/* ---- asynchronous upload ---- */

void ndt_cuda_map_upload_cancel(struct ndt_cuda_map_upload *upload)
{
    ndt_map_release(upload->map);
    upload->map = NULL;
}

void ndt_cuda_map_upload_free(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device)
{
    ndt_cuda_map_upload_cancel(upload);
    ndt_cuda_map_free(&upload->target, device);
}

/* Makes room, as large as the memory in use if possible: then maps of that size need no other allocation. */
static enum ndt_status make_room(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device,
                                 const struct ndt_cuda_map *on_device, const struct ndt_map *map,
                                 struct ndt_error *err)
{
    const size_t bytes = upload->plan.bytes;
    enum ndt_status status = NDT_ERR_LIMIT;
    if (bytes > upload->target.capacity && bytes < on_device->capacity)
        status = reserve(&upload->target, device, map, on_device->capacity, err);
    if (status == NDT_ERR_LIMIT || status == NDT_ERR_MEMORY)
        status = reserve(&upload->target, device, map, bytes, err);
    return status;
}

/* Begins an upload. Queued copies of another map write to the same memory, but earlier: a stream keeps the order.
 */
static enum ndt_status begin(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device,
                             const struct ndt_cuda_map *on_device, struct ndt_map *map, struct ndt_error *err)
{
    ndt_cuda_map_upload_cancel(upload);
    ndt_cuda_map_plan_make(&upload->plan, map);
    enum ndt_status status = make_room(upload, device, on_device, map, err);
    if (status != NDT_OK)
        return status;
    describe(&upload->target, map, &upload->plan);
    upload->staged = 0;
    upload->map = ndt_map_retain(map);
    return NDT_OK;
}

/* Fills bytes first .. first + bytes - 1 of the map on the device. Leaves the gaps between arrays unchanged. */
static void pack(const struct ndt_cuda_map_upload *upload, size_t first, size_t bytes, char *out)
{
    const size_t end = first + bytes;
    for (size_t i = 0; i < upload->map->level_count; i++)
        for (int k = 0; k < NDT_CUDA_LEVEL_ARRAYS; k++) {
            const struct ndt_cuda_array *array = &upload->plan.arrays[i][k];
            const size_t array_end = array->offset + array->bytes;
            const size_t from = array->offset > first ? array->offset : first;
            const size_t to = array_end < end ? array_end : end;
            if (from < to)
                memcpy(out + (from - first), (const char *)array->data + (from - array->offset), to - from);
        }
}

static enum ndt_status fill_next(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device,
                                 struct ndt_error *err)
{
    const size_t left = upload->plan.bytes - upload->staged;
    const size_t bytes = left < NDT_CUDA_STAGING_BYTES ? left : NDT_CUDA_STAGING_BYTES;
    char *buffer = upload->pinned + (size_t)upload->next * NDT_CUDA_STAGING_BYTES;
    pack(upload, upload->staged, bytes, buffer);
    enum ndt_status status = ndt_cuda_upload_on(device, NDT_CUDA_MAP,
                                                (char *)upload->target.memory + upload->staged, buffer, bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_set_mark(device, (int)upload->next, NDT_CUDA_MAP, err);
    if (status != NDT_OK) /* no mark guards the buffer */
        return ndt_cuda_settle(device, NDT_CUDA_MAP, status);
    upload->staged += bytes;
    upload->last = upload->next;
    upload->next = (upload->next + 1) % NDT_CUDA_STAGING;
    return NDT_OK;
}

/* Fills each free buffer at most once; buffers become free in their order. */
static enum ndt_status fill_free(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device,
                                 struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    int is_free = 1;
    for (int i = 0; i < NDT_CUDA_STAGING && upload->staged < upload->plan.bytes; i++) {
        status = ndt_cuda_mark_reached(device, (int)upload->next, &is_free, err);
        if (status == NDT_OK && is_free)
            status = fill_next(upload, device, err);
        if (status != NDT_OK || !is_free)
            break;
    }
    return status;
}

static void swap(struct ndt_cuda_map_upload *upload, struct ndt_cuda_map *on_device)
{
    const struct ndt_cuda_map before = *on_device;
    *on_device = upload->target;
    on_device->id = upload->map->id;
    on_device->is_loaded = 1;
    upload->target = before;
    upload->target.is_loaded = 0;
    ndt_cuda_map_upload_cancel(upload);
}

enum ndt_status ndt_cuda_map_upload_carry(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device,
                                          struct ndt_cuda_map *on_device, struct ndt_map *map, int *is_there,
                                          struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    *is_there = 0;
    if (!upload->map || upload->map->id != map->id)
        status = begin(upload, device, on_device, map, err);
    if (status == NDT_OK)
        status = fill_free(upload, device, err);
    if (status == NDT_OK && upload->staged == upload->plan.bytes)
        status = ndt_cuda_mark_reached(device, (int)upload->last, is_there, err);
    if (status != NDT_OK)
        ndt_cuda_map_upload_cancel(upload);
    else if (*is_there)
        swap(upload, on_device);
    return status;
}

#include "cuda_map.h"

#include <string.h>

void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device)
{
    ndt_cuda_release(device, on_device->memory);
    memset(on_device, 0, sizeof(*on_device));
}

/* The old memory goes first: both at once may not fit. */
enum ndt_status ndt_cuda_map_reserve(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                     const struct ndt_map *map, size_t bytes, struct ndt_error *err)
{
    size_t free_bytes;
    if (bytes <= on_device->capacity)
        return NDT_OK;
    enum ndt_status status = ndt_cuda_free_bytes(device, &free_bytes, err);
    if (status != NDT_OK)
        return status;
    free_bytes += on_device->capacity;
    if (bytes > free_bytes)
        return ndt_fail(
            err, NDT_ERR_LIMIT,
            "a map of %zu bytes with %zu levels; CUDA device %d has %zu bytes free, so about %.0f %% of "
            "it would fit",
            bytes, map->level_count, device->index, free_bytes, 100.0 * (double)free_bytes / (double)bytes);
    ndt_cuda_map_free(on_device, device);
    status = ndt_cuda_allocate(device, &on_device->memory, bytes, "the map", err);
    on_device->capacity = status == NDT_OK ? bytes : 0;
    return status;
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

void ndt_cuda_map_describe(struct ndt_cuda_map *on_device, const struct ndt_map *map,
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
    enum ndt_status status = ndt_cuda_map_reserve(on_device, device, map, plan.bytes, err);
    if (status != NDT_OK)
        return status;
    on_device->is_loaded = 0;
    ndt_cuda_map_describe(on_device, map, &plan);
    for (size_t i = 0; status == NDT_OK && i < map->level_count; i++) {
        for (int k = 0; status == NDT_OK && k < NDT_CUDA_LEVEL_ARRAYS; k++) {
            const struct ndt_cuda_array *array = &plan.arrays[i][k];
            if (array->bytes)
                status = ndt_cuda_upload(device, (char *)on_device->memory + array->offset, array->data,
                                         array->bytes, err);
        }
    }
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err); /* the caller may free the map once we are back */
    on_device->is_loaded = status == NDT_OK;
    on_device->id = map->id;
    return status;
}

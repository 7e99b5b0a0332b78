/* A map on the device: one allocation for all levels, kept and reused while the next map fits into it. */
#ifndef NDT_CUDA_MAP_H
#define NDT_CUDA_MAP_H

#include "cuda_device.h"
#include "ndt/map.h"

/* All zero is empty. */
struct ndt_cuda_map {
    void *memory;
    size_t capacity;
    int is_loaded;
    uint64_t id; /* of the map that is there */
    struct ndt_gpu_level levels[NDT_MAX_LEVELS];
};

/* Uploads the levels, once per map id. A map that does not fit is refused with NDT_ERR_LIMIT and the number of
 * bytes that would; the map that was there is gone then, if its memory had to be given back. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_load(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                                 const struct ndt_map *map, struct ndt_error *err);
void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device);

#endif

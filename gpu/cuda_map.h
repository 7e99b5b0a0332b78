/* A map on the device: one allocation for all levels, kept and reused while the next map fits into it. The way up
 * that waits; cuda_map_upload.h is the one that does not. */
#ifndef NDT_CUDA_MAP_H
#define NDT_CUDA_MAP_H

#include "cuda_plan.h"

/* All zero is empty. */
struct ndt_cuda_map {
    void *memory;
    size_t capacity;
    int is_loaded;
    uint64_t id; /* of the map that is there */
    struct ndt_gpu_level levels[NDT_MAX_LEVELS];
};

/* Uploads the levels and waits, once per map id. A map that does not fit, even without the one that is there, is
 * refused with NDT_ERR_LIMIT and the number of bytes that would, and the one that is there stays. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_load(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                                 const struct ndt_map *map, struct ndt_error *err);
/* The two halves of it. Memory for `bytes`: NDT_ERR_LIMIT as above; what was there is gone when more is needed. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_reserve(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                                    const struct ndt_map *map, size_t bytes, struct ndt_error *err);
/* What kernels are told of the levels, once the bytes are where the plan wants them. */
void ndt_cuda_map_describe(struct ndt_cuda_map *on_device, const struct ndt_map *map,
                           const struct ndt_cuda_map_plan *plan);
void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device);

#endif

/* A map on the device: one allocation for all levels, kept and reused while the next map fits into it. It is
 * uploaded at once (ndt_cuda_map_load, which waits) or beside the map in use (struct ndt_cuda_map_upload, which
 * does not). */
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
/* Its two halves. Memory for `bytes`: NDT_ERR_LIMIT as above; what was there is gone when more is needed. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_reserve(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                                    const struct ndt_map *map, size_t bytes, struct ndt_error *err);
/* What kernels are told of the levels, once the bytes are where the plan wants them. */
void ndt_cuda_map_describe(struct ndt_cuda_map *on_device, const struct ndt_map *map,
                           const struct ndt_cuda_map_plan *plan);
void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device);

/* An upload beside the map in use. Its bytes go through a small pool of pinned buffers on NDT_CUDA_MAP; repeated
 * calls continue the upload and never wait for it. The buffers are small because copies of all streams go up one
 * after the other: the 24 bytes of an evaluation may have to wait for those that are queued. The memory of the map
 * before is kept for the next one. */

/* Marks of the buffers. */
enum { NDT_CUDA_FIRST_MAP_MARK = NDT_CUDA_MARKS - NDT_CUDA_STAGING };

/* All zero but for `pinned`: none. */
struct ndt_cuda_map_upload {
    char *pinned;        /* NDT_CUDA_STAGING buffers, borrowed */
    struct ndt_map *map; /* on its way, a reference; NULL: none */
    struct ndt_cuda_map_plan plan;
    size_t staged;              /* bytes of the plan that are on the device or in a buffer */
    unsigned next, last;        /* buffer to fill next, and the one filled last */
    struct ndt_cuda_map target; /* where it goes */
};

/* Begins, or goes on with, the upload of `map` (another one that is on its way is given up): fills what buffers are
 * free. *is_there becomes 1 when it is complete: then `on_device` is that map, its old memory is kept here, and
 * no reference. Nothing on NDT_CUDA_MAIN that reads `on_device` may be queued then. Allocates when the map is
 * larger than all that came this way before. NDT_ERR_LIMIT, NDT_ERR_MEMORY: there is no room beside the one in use.
 * After a failure nothing is on its way. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_upload_carry(struct ndt_cuda_map_upload *upload,
                                                         struct ndt_cuda_device *device,
                                                         struct ndt_cuda_map *on_device, struct ndt_map *map,
                                                         int *is_there, struct ndt_error *err);
/* Gives up what is on its way; what is queued runs on, into memory that is kept. */
void ndt_cuda_map_upload_cancel(struct ndt_cuda_map_upload *upload);
/* Frees the memory as well, which waits for the device. */
void ndt_cuda_map_upload_free(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device);

#endif

/** @file
 * @brief A map on the device: one allocation for all levels, kept and reused while the next map fits into it.
 *
 * It is uploaded at once (ndt_cuda_map_load, which waits) or beside the map in use (struct ndt_cuda_map_upload,
 * which does not wait). */
#ifndef NDT_CUDA_MAP_H
#define NDT_CUDA_MAP_H

#include "cuda_plan.h"

/** Zero-initialised: empty. */
struct ndt_cuda_map {
    void *memory;
    size_t capacity;
    int is_loaded;
    uint64_t id; /**< id of the map on the device */
    struct ndt_gpu_level levels[NDT_MAX_LEVELS];
};

/** Uploads the levels and waits, once per map id. The current map is freed when both do not fit. A map that does
 * not fit even then is refused with NDT_ERR_LIMIT and the number of bytes that would fit, and no map is loaded. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_load(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device,
                                                 const struct ndt_map *map, struct ndt_error *err);
void ndt_cuda_map_free(struct ndt_cuda_map *on_device, struct ndt_cuda_device *device);

/** An upload beside the map in use. Its bytes go through a small pool of pinned buffers on NDT_CUDA_MAP; repeated
 * calls continue the upload and never wait for it. The buffers are small because uploads of all streams run one
 * after the other, and the upload of a scan may wait for queued ones. The memory of the previous map is kept for
 * the next one. */

/** Zero-initialised except for `pinned`: no upload. */
struct ndt_cuda_map_upload {
    char *pinned;        /**< NDT_CUDA_STAGING buffers, borrowed */
    struct ndt_map *map; /**< map in upload, a reference; NULL: none */
    struct ndt_cuda_map_plan plan;
    size_t staged;              /**< bytes of the plan on the device or in a buffer */
    unsigned next, last;        /**< buffer to fill next, and the one filled last */
    struct ndt_cuda_map target; /**< memory that receives it */
};

/** Begins or continues the upload of `map` and cancels that of another one: fills the free buffers. Sets *is_there
 * to 1 when it is complete: then `on_device` is that map, its old memory is kept here, and the reference is
 * dropped. Nothing on NDT_CUDA_MAIN that reads `on_device` may be queued at that time. Allocates when the map is
 * larger than every map uploaded before. NDT_ERR_LIMIT, NDT_ERR_MEMORY: there is no room beside the map in use. A
 * failure cancels the upload. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_map_upload_carry(struct ndt_cuda_map_upload *upload,
                                                         struct ndt_cuda_device *device,
                                                         struct ndt_cuda_map *on_device, struct ndt_map *map,
                                                         int *is_there, struct ndt_error *err);
/** Cancels the upload; queued copies still write to memory that is kept. */
void ndt_cuda_map_upload_cancel(struct ndt_cuda_map_upload *upload);
/** Frees the memory as well, which waits for the device. */
void ndt_cuda_map_upload_free(struct ndt_cuda_map_upload *upload, struct ndt_cuda_device *device);

#endif

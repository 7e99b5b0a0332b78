/* A map on its way to the device beside the one in use. Its bytes go through a small pool of pinned buffers on
 * NDT_CUDA_MAP; whoever asks again and again carries the upload on, and never waits for it. The buffers are small
 * because copies of all streams go up one after the other: the 24 bytes of an evaluation may have to wait for those
 * that are queued. The memory of the map before is kept for the next one. */
#ifndef NDT_CUDA_MAP_UPLOAD_H
#define NDT_CUDA_MAP_UPLOAD_H

#include "cuda_map.h"
#include "cuda_plan.h"

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

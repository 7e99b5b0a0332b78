/** @file
 * @brief The scans of a backend: their places in the memory of the device, and the pinned buffers that they go
 * through.
 */
#ifndef NDT_CUDA_SCANS_H
#define NDT_CUDA_SCANS_H

#include "cuda_plan.h"
#include "cuda_resident.h"

/** Zero-initialised except for the first line. */
struct ndt_cuda_scans {
    char *pinned; /**< pinned memory of the plan, borrowed */
    unsigned next;
    struct {
        int is_used;
        uint64_t queued_at; /**< value of device.waits */
    } used[NDT_CUDA_POOL];
    void *last; /**< buffer of the last upload, and its bytes; 0: there was none */
    size_t last_bytes;
};

/** Sets scans, scan_count and times_at of `out`: columns x y z of whole blocks, packed, so that the copy is as
 * short as possible, and behind all of them the times, if there are any. NDT_ERR_LIMIT: more than the plan has room
 * for. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_scans_place(struct ndt_cuda_resident *out, const struct ndt_cuda_plan *plan,
                                                    const struct ndt_cloud *const *scans, size_t count,
                                                    struct ndt_error *err);
/** Queues the upload of the scans to `to`, in one copy. Waits only where the pinned buffers are all in use. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_scans_upload(struct ndt_cuda_scans *buffers, struct ndt_cuda_device *device,
                                                     const struct ndt_cuda_plan *plan, void *to,
                                                     const struct ndt_cuda_resident *placed,
                                                     const struct ndt_cloud *const *scans, struct ndt_error *err);

#endif

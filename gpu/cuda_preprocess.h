/** @file
 * @brief Preprocessing on the device: a raw scan is uploaded after a header with the parameters, and the resulting
 * points stay there.
 *
 * No call synchronises or downloads: the solve reports the number of points. */
#ifndef NDT_CUDA_PREPROCESS_H
#define NDT_CUDA_PREPROCESS_H

#include "cuda_device.h"
#include "cuda_plan.h"

struct ndt_cuda_preprocess {
    struct ndt_cuda_device *device;
    const struct ndt_cuda_plan *layout;
    char *memory, *pinned;  /**< memory of the plan */
    struct ndt_gpu_job job; /**< job.preprocess is on the device */
    uint32_t round;
    int is_queued; /**< copies read the pinned buffer since queued_at (device->waits) */
    uint64_t queued_at;
    size_t most;    /**< upper bound of the points of the last scan after preprocessing */
    int has_sample; /**< ndt_cuda_preprocess_again is possible */
};

/** Opens preprocessing once its memory is allocated: clears the table and the state, loads the kernels, waits. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_open(struct ndt_cuda_preprocess *preprocess,
                                                        struct ndt_error *err);
/** Preprocesses a scan. NDT_ERR_LIMIT: more points than the memory is laid out for. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_load(struct ndt_cuda_preprocess *preprocess,
                                                        const struct ndt_preprocess_plan *plan,
                                                        const struct ndt_cloud *raw, struct ndt_error *err);
/** Deskews the last sample with another motion; NDT_ERR_UNSUPPORTED: there is none. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_preprocess_again(struct ndt_cuda_preprocess *preprocess,
                                                         const struct ndt_preprocess_plan *plan,
                                                         struct ndt_error *err);

#endif

/* Measures what an evaluation costs besides its kernels. */
#ifndef NDT_CUDA_OVERHEADS_H
#define NDT_CUDA_OVERHEADS_H

#include "cuda_device.h"

/* Buffers for the copies, as an evaluation uses them. */
struct ndt_cuda_copies {
    void *device_angles;
    const void *pinned_angles;
    void *pinned_sums;
};

NDT_MUST_CHECK enum ndt_status ndt_cuda_overheads(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                                  const struct ndt_cuda_copies *copies, int rounds,
                                                  struct ndt_overheads *out, struct ndt_error *err);

#endif

/* What is asked of a device apart from results: the intermediates of an evaluation, and what one costs besides its
 * kernels. */
#ifndef NDT_CUDA_DIAGNOSTICS_H
#define NDT_CUDA_DIAGNOSTICS_H

#include <stdio.h>

#include "cuda_device.h"

/* Writes what a pipeline left in its buffers, one line per point. CSV: point; x y z; moved relative to the corner
 * of near_cell; Jacobian by rows (x y z) and columns (tx ty tz a b c); second derivatives (aa ab ac bb bc cc) x (x
 * y z); terms of the 31 sums. The pipeline must have intermediates, and `job` must be its last one. Writing errors
 * are left to the caller (ferror). */
NDT_MUST_CHECK enum ndt_status ndt_cuda_dump(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                             FILE *file, struct ndt_error *err);

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

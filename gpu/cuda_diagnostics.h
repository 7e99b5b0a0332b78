/** @file
 * @brief Diagnostics of a device: the intermediates of an evaluation, its cost apart from the kernels, and the
 * memory of a configuration. */
#ifndef NDT_CUDA_DIAGNOSTICS_H
#define NDT_CUDA_DIAGNOSTICS_H

#include <stdio.h>

#include "cuda_device.h"

/** Writes the intermediates in the buffers of a pipeline, one line per point. CSV: point; x y z; moved relative to
 * the corner of near_cell; Jacobian by rows (x y z) and columns (tx ty tz a b c); second derivatives (aa ab ac bb
 * bc cc) x (x y z); terms of the 31 sums. The pipeline must have intermediates, and `job` must be its last one. The
 * caller checks for writing errors (ferror). */
NDT_MUST_CHECK enum ndt_status ndt_cuda_dump(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                             FILE *file, struct ndt_error *err);

/** Buffers for measuring copies. */
struct ndt_cuda_copies {
    void *device;   /**< 24 bytes up, the sums down */
    const void *up; /**< pinned, as the next two */
    void *down;
    void *scan, *staged; /**< the scan on the device, and the pinned buffer that it came from */
    size_t scan_bytes;   /**< 0: there is no scan */
};

/** Measures medians over `rounds` (1 to 1000); see ndt_backend_ops.overheads. */
NDT_MUST_CHECK enum ndt_status ndt_cuda_overheads(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                                  const struct ndt_cuda_copies *copies, int rounds,
                                                  struct ndt_overheads *out, struct ndt_error *err);

/** See ndt_backend_ops.plan. */
void ndt_cuda_describe_plan(const struct ndt_backend_config *config, char *text, size_t size);

#endif

/* Writes what a pipeline left in its buffers, one line per point. */
#ifndef NDT_CUDA_DUMP_H
#define NDT_CUDA_DUMP_H

#include <stdio.h>

#include "cuda_device.h"

/* CSV: point; x y z; moved relative to the corner of near_cell; Jacobian by rows (x y z) and columns (tx ty tz a b
 * c); second derivatives (aa ab ac bb bc cc) x (x y z); terms of the 31 sums. The pipeline must have intermediates,
 * and `job` must be its last one. Writing errors are left to the caller (ferror). */
NDT_MUST_CHECK enum ndt_status ndt_cuda_dump(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                             FILE *file, struct ndt_error *err);

#endif

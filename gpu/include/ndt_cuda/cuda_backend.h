/* The CUDA backend, as the table of backends sees it. See gpu/cuda_pipeline.h for what is behind it. */
#ifndef NDT_CUDA_BACKEND_H
#define NDT_CUDA_BACKEND_H

#include "ndt/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Touches no CUDA library before probe, plan or open is called. `isa` and `threads` of the configuration mean
 * nothing to it; `pipeline` is staged or fused. */
extern const struct ndt_backend_ops ndt_cuda_backend;

#ifdef __cplusplus
}
#endif
#endif

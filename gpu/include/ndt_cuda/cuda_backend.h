/** @file
 * @brief The CUDA backend, an entry of the table of backends.
 *
 * gpu/cuda_pipeline.h describes its pipelines. */
#ifndef NDT_CUDA_BACKEND_H
#define NDT_CUDA_BACKEND_H

#include "ndt/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The row of the backend. It calls no CUDA library before probe, plan or open, and ignores `isa` and `threads` of
 * the configuration; `pipeline` is a name of ndt_cuda/pipelines.h. */
extern const struct ndt_backend_ops ndt_cuda_backend;

/** Allows resets, see ndt_backends_own_process; 0, as initially: no device is reset. */
void ndt_cuda_allow_reset(int is_allowed);

#ifdef __cplusplus
}
#endif
#endif

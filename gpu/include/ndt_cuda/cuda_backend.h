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

/** Calls no CUDA library before probe, plan or open. Ignores `isa` and `threads` of the configuration; `pipeline`
 * is a name of ndt_cuda/pipelines.h. */
extern const struct ndt_backend_ops ndt_cuda_backend;

/** 1: see ndt_backends_own_process; 0, as at first: no device is reset. */
void ndt_cuda_allow_reset(int is_allowed);

#ifdef __cplusplus
}
#endif
#endif

/* The ways in which the CUDA backend evaluates: one row per pipeline in cuda_backend.c. They share the map, the
 * scan, the 24 bytes up and the sums down; a pipeline adds its own buffers and its kernels. */
#ifndef NDT_CUDA_PIPELINE_H
#define NDT_CUDA_PIPELINE_H

#include "cuda_device.h"

struct ndt_cuda_pipeline {
    const char *name;  /* cuda.pipeline */
    const char *about; /* a few words */
    /* Buffers of its own: floats per point. `place` is told where they begin; job->stride is set. */
    size_t floats_per_point;
    void (*place)(struct ndt_gpu_job *job, float *buffers);
    /* Queues the kernels that turn job->angles into job->sums. */
    enum ndt_status (*launch)(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, struct ndt_error *err);
    int has_intermediates; /* leaves them in its buffers, for ndt_cuda_dump */
};

extern const struct ndt_cuda_pipeline ndt_cuda_staged;
extern const struct ndt_cuda_pipeline ndt_cuda_fused;

/* Blocks for so many points. */
static inline unsigned ndt_cuda_blocks(size_t points)
{
    return (unsigned)((points + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK);
}

#endif

/** @file
 * @brief The pipelines of the CUDA backend.
 *
 * All pipelines share the map, the scan, the 24 bytes of a launch and the sums; each adds buffers and kernels of
 * its own. */
#ifndef NDT_CUDA_PIPELINE_H
#define NDT_CUDA_PIPELINE_H

#include "cuda_device.h"

/** Shapes of whole alignments on the device; see kernels_resident.cu. */
enum ndt_cuda_shape {
    NDT_CUDA_HOST,      /**< Newton's method runs on the host */
    NDT_CUDA_AUTOMATIC, /**< chosen by device and size */
    NDT_CUDA_BLOCK,     /**< a block per alignment */
    NDT_CUDA_CLUSTER,   /**< a cluster of blocks per alignment; compute capability 9.0 */
    NDT_CUDA_LOOP,      /**< a graph that loops on the device; CUDA 12.4 */
    NDT_CUDA_CHAIN      /**< a graph of NDT_CUDA_CHAIN_LENGTH passes, as often as needed */
};
enum { NDT_CUDA_CHAIN_LENGTH = 24 };

struct ndt_cuda_pipeline {
    const char *name;  /**< name in cuda.pipeline */
    const char *about; /**< a few words */
    /* Floats per point in buffers of its own. `place` sets the pointers from the begin of these; job->stride is
     * set. */
    size_t floats_per_point;
    void (*place)(struct ndt_gpu_job *job, float *buffers);
    /* Queues the kernels that turn job->angles into job->sums. */
    enum ndt_status (*launch)(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, struct ndt_error *err);
    enum ndt_cuda_shape shape;
    int has_intermediates; /**< keeps intermediates in its buffers for ndt_cuda_dump */
};

/** One row per name of ndt_cuda/pipelines.h, in the same order; the name of the last one is NULL. */
extern const struct ndt_cuda_pipeline ndt_cuda_pipelines[];
/** Finds a pipeline; NULL, "" and "auto" are the first. For an unknown name, NULL and an error that lists the
 * names. */
const struct ndt_cuda_pipeline *ndt_cuda_pipeline_find(const char *name, struct ndt_error *err);
/** Name of a shape: "block" for NDT_CUDA_BLOCK, and so on. */
const char *ndt_cuda_shape_name(enum ndt_cuda_shape shape);

/** Splits a pose p for the kernels: the whole cell near_cell of its position, the rest t_m, and the sines and
 * cosines of its angles, as in struct ndt_gpu_job. The CPU backend splits a pose in the same way. */
void ndt_cuda_split_pose(const double p[6], double leaf_m, int32_t near_cell[3], float t_m[3], float angles[6]);

/** Unpacks NDT_GPU_PLANES rows of sums. */
void ndt_cuda_read_information(struct ndt_information *out, const double *planes);

/** Number of blocks for `points`. */
static inline unsigned ndt_cuda_blocks(size_t points)
{
    return (unsigned)((points + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK);
}

#endif

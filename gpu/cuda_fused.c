/* fused: one kernel, no buffers. It is not captured as a graph: the translation of the pose is an argument of the
 * kernel, so the graph's node would have to be updated for every launch, which saves nothing with one node. */
#include "cuda_pipeline.h"
#include "kernels.h"

static void place(struct ndt_gpu_job *job, float *buffers)
{
    (void)job;
    (void)buffers;
}

static enum ndt_status launch(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, struct ndt_error *err)
{
    return ndt_cuda_launch(device, ndt_kernel_fused(), job->blocks, job, err);
}

const struct ndt_cuda_pipeline ndt_cuda_fused = {
    .name = "fused", .about = "one kernel per evaluation", .place = place, .launch = launch};

/* Three floats per point: the turned scan. */
#define RESIDENT(pipeline_name, text, how)                                                                         \
    {                                                                                                              \
        .name = (pipeline_name), .about = (text), .floats_per_point = 3, .place = place, .launch = launch,         \
        .shape = (how)                                                                                             \
    }
const struct ndt_cuda_pipeline ndt_cuda_resident_pipelines[NDT_CUDA_RESIDENT_PIPELINES] = {
    RESIDENT("resident", "whole searches on the device, the shape as it fits", NDT_CUDA_AUTOMATIC),
    RESIDENT("resident-block", "one block per search", NDT_CUDA_BLOCK),
    RESIDENT("resident-cluster", "a cluster of blocks per search", NDT_CUDA_CLUSTER),
    RESIDENT("resident-graph", "a graph that loops on the device", NDT_CUDA_LOOP),
    RESIDENT("resident-chain", "a graph of passes in a row", NDT_CUDA_CHAIN),
};

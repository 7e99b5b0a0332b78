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

/* staged: five kernels, every intermediate kept until the next evaluation. */
#include "cuda_pipeline.h"
#include "kernels.h"

static void place(struct ndt_gpu_job *job, float *buffers)
{
    job->moved_m = buffers;
    job->jacobian = job->moved_m + 3 * job->stride;
    job->point_hessian = job->jacobian + NDT_GPU_JACOBIAN * job->stride;
    job->terms = job->point_hessian + NDT_GPU_POINT_HESSIAN * job->stride;
}

static enum ndt_status launch(struct ndt_cuda_device *device, const struct ndt_gpu_job *job, struct ndt_error *err)
{
    const void *const per_point[] = {ndt_kernel_jacobian(), ndt_kernel_point_hessian(), ndt_kernel_terms(),
                                     ndt_kernel_reduce()};
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizeof(per_point) / sizeof(per_point[0]); i++)
        status = ndt_cuda_launch(device, per_point[i], job->blocks, job, err);
    return status == NDT_OK ? ndt_cuda_launch(device, ndt_kernel_finish(), 1, job, err) : status;
}

const struct ndt_cuda_pipeline ndt_cuda_staged = {
    .name = "staged",
    .about = "a kernel per step, every intermediate in a buffer",
    .floats_per_point = 3 + NDT_GPU_JACOBIAN + NDT_GPU_POINT_HESSIAN + NDT_GPU_SUMS,
    .place = place,
    .launch = launch,
    .has_intermediates = 1,
};

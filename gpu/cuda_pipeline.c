#include "cuda_pipeline.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "ndt_cuda/pipelines.h"

/* fused: one kernel, no buffers, no graph. The translation of the pose is an argument of the kernel, so the graph's
 * node would have to be updated for every launch, which saves nothing with one node. */

static void place_nothing(struct ndt_gpu_job *job, float *buffers)
{
    (void)job;
    (void)buffers;
}

static enum ndt_status launch_fused(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                    struct ndt_error *err)
{
    return ndt_cuda_launch(device, ndt_kernel_fused(), job->blocks, job, err);
}

/* staged: five kernels, every intermediate is kept until the next evaluation. */

static void place_staged(struct ndt_gpu_job *job, float *buffers)
{
    job->moved_m = buffers;
    job->jacobian = job->moved_m + 3 * job->stride;
    job->point_hessian = job->jacobian + NDT_GPU_JACOBIAN * job->stride;
    job->terms = job->point_hessian + NDT_GPU_POINT_HESSIAN * job->stride;
}

static enum ndt_status launch_staged(struct ndt_cuda_device *device, const struct ndt_gpu_job *job,
                                     struct ndt_error *err)
{
    const void *const per_point[] = {ndt_kernel_jacobian(), ndt_kernel_point_hessian(), ndt_kernel_terms(),
                                     ndt_kernel_reduce()};
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizeof(per_point) / sizeof(per_point[0]); i++)
        status = ndt_cuda_launch(device, per_point[i], job->blocks, job, err);
    return status == NDT_OK ? ndt_cuda_launch(device, ndt_kernel_finish(), 1, job, err) : status;
}

#define FUSED .place = place_nothing, .launch = launch_fused
#define STAGED                                                                                                     \
    .floats_per_point = 3 + NDT_GPU_JACOBIAN + NDT_GPU_POINT_HESSIAN + NDT_GPU_SUMS, .place = place_staged,        \
    .launch = launch_staged, .has_intermediates = 1
/* resident: three floats per point for the turned scan. */
#define RESIDENT .floats_per_point = 3, FUSED
#define PIPELINE(kernels, pipeline_shape, pipeline_name, text)                                                     \
    {.name = (pipeline_name), .about = (text), .shape = NDT_CUDA_##pipeline_shape, kernels},

const struct ndt_cuda_pipeline ndt_cuda_pipelines[] = {NDT_CUDA_PIPELINES(PIPELINE){.name = NULL}};

const struct ndt_cuda_pipeline *ndt_cuda_pipeline_find(const char *name, struct ndt_error *err)
{
    if (!name || name[0] == '\0' || strcmp(name, "auto") == 0)
        return &ndt_cuda_pipelines[0];
    char known[160] = "";
    for (const struct ndt_cuda_pipeline *pipeline = ndt_cuda_pipelines; pipeline->name; pipeline++) {
        if (strcmp(pipeline->name, name) == 0)
            return pipeline;
        strncat(known, known[0] ? ", " : "", sizeof(known) - strlen(known) - 1);
        strncat(known, pipeline->name, sizeof(known) - strlen(known) - 1);
    }
    (void)ndt_fail(err, NDT_ERR_ARGUMENT, "CUDA pipeline '%s' is not known; there are: %s", name, known);
    return NULL;
}

void ndt_cuda_split_pose(const double p[6], double leaf_m, int32_t near_cell[3], float t_m[3], float angles[6])
{
    for (int i = 0; i < 3; i++) {
        const double cell = floor(p[i] / leaf_m);
        const double near = fmax(-1e9, fmin(1e9, cell)); /* far off the map: no voxel will be found */
        near_cell[i] = (int32_t)near;
        t_m[i] = (float)(p[i] - near * leaf_m);
        angles[2 * i] = (float)sin(p[3 + i]);
        angles[2 * i + 1] = (float)cos(p[3 + i]);
    }
}

void ndt_cuda_read_information(struct ndt_information *out, const double *planes)
{
    memcpy(&out->eval, planes, sizeof(out->eval));
    memcpy(out->time_gradient, planes + NDT_GPU_ROW + NDT_GPU_GRADIENT, sizeof(out->time_gradient));
    for (size_t k = 0; k < 3; k++)
        memcpy(out->information[k], planes + (1 + k) * NDT_GPU_ROW + NDT_GPU_HESSIAN, sizeof(out->information[k]));
}

const char *ndt_cuda_shape_name(enum ndt_cuda_shape shape)
{
    for (const struct ndt_cuda_pipeline *pipeline = ndt_cuda_pipelines; pipeline->name; pipeline++)
        if (pipeline->shape == shape && shape > NDT_CUDA_AUTOMATIC)
            return pipeline->name + strlen("resident-");
    return "automatic";
}

/** @file
 * @brief staged: one kernel per step, with all intermediates in buffers that can be dumped. */
#include "kernels.h"
#include "eval_point.cuh"
#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_jacobian(const struct ndt_gpu_job job)
{
    __shared__ struct ndt_tables_f tables;
    share_tables(job, &tables);
    const uint32_t i = point_index();
    if (i >= job.count)
        return;
    float x[3], J[3][3];
    load_point(job, i, x);
    ndt_jacobian_f(&tables, x, J);
    for (uint32_t row = 0; row < 3; row++) {
        job.moved_m[row * job.stride + i] = ndt_dot_f(tables.R + 3 * row, x) + job.t_m[row];
        for (uint32_t column = 0; column < 3; column++) {
            job.jacobian[(6 * row + column) * job.stride + i] = row == column ? 1.0f : 0.0f;
            job.jacobian[(6 * row + 3 + column) * job.stride + i] = J[column][row];
        }
    }
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_point_hessians(const struct ndt_gpu_job job)
{
    __shared__ struct ndt_tables_f tables;
    share_tables(job, &tables);
    const uint32_t i = point_index();
    if (i >= job.count)
        return;
    float x[3], H[6][3];
    load_point(job, i, x);
    ndt_point_hessian_f(&tables, x, H);
    for (uint32_t k = 0; k < (uint32_t)NDT_GPU_POINT_HESSIAN; k++)
        job.point_hessian[k * job.stride + i] = H[k / 3][k % 3];
}

/* Gradient and Hessian of a point from its Jacobian and Hessian in the buffers. */
static __device__ inline void point_terms(const struct ndt_gpu_job &job, uint32_t i,
                                          const struct ndt_point_sums_f &sums, float g[6], float H[21])
{
    const float S[3][3] = {
        {sums.S[0], sums.S[1], sums.S[2]}, {sums.S[1], sums.S[3], sums.S[4]}, {sums.S[2], sums.S[4], sums.S[5]}};
    float J[6][3], SJ[6][3];
    for (uint32_t column = 0; column < 6; column++) {
        for (uint32_t row = 0; row < 3; row++)
            J[column][row] = job.jacobian[(6 * row + column) * job.stride + i];
        g[column] = ndt_dot_f(J[column], sums.A);
        for (int row = 0; row < 3; row++)
            SJ[column][row] = ndt_dot_f(S[row], J[column]);
    }
    uint32_t packed = 0; /* place in the point Hessian: pairs of angles come in the order of its packing */
    for (int r = 0, at = 0; r < 6; r++) {
        for (int c = r; c < 6; c++, at++) {
            H[at] = ndt_dot_f(J[r], SJ[c]);
            for (uint32_t k = 0; r >= 3 && k < 3; k++, packed++)
                H[at] += job.point_hessian[packed * job.stride + i] * sums.A[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_terms(const struct ndt_gpu_job job)
{
    const uint32_t i = point_index();
    if (i >= job.count)
        return;
    float near_m[3], terms[NDT_GPU_SUMS] = {};
    for (uint32_t k = 0; k < 3; k++)
        near_m[k] = job.moved_m[k * job.stride + i];
    struct ndt_point_sums_f sums = {};
    const uint32_t pairs = add_neighbours(job, near_m, &sums);
    if (pairs > 0) {
        terms[NDT_GPU_SCORE] = sums.score;
        terms[NDT_GPU_NEAREST] = sums.best;
        terms[NDT_GPU_MATCHED] = 1.0f;
        terms[NDT_GPU_PAIRS] = (float)pairs;
        point_terms(job, i, sums, terms + NDT_GPU_GRADIENT, terms + NDT_GPU_HESSIAN);
    }
    for (uint32_t k = 0; k < (uint32_t)NDT_GPU_SUMS; k++)
        job.terms[k * job.stride + i] = terms[k];
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_reduce(const struct ndt_gpu_job job)
{
    float values[NDT_GPU_ROW] = {};
    const uint32_t i = point_index();
    for (uint32_t k = 0; i < job.count && k < (uint32_t)NDT_GPU_SUMS; k++)
        values[k] = job.terms[k * job.stride + i];
    store_block_sums(job, values);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_finish(const struct ndt_gpu_job job)
{
    add_block_sums(job);
}

extern "C" const void *ndt_kernel_jacobian(void)
{
    return (const void *)ndt_jacobian;
}

extern "C" const void *ndt_kernel_point_hessian(void)
{
    return (const void *)ndt_point_hessians;
}

extern "C" const void *ndt_kernel_terms(void)
{
    return (const void *)ndt_terms;
}

extern "C" const void *ndt_kernel_reduce(void)
{
    return (const void *)ndt_reduce;
}

extern "C" const void *ndt_kernel_finish(void)
{
    return (const void *)ndt_finish;
}

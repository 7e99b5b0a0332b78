/** @file
 * @brief The information of a scan about its pose (ndt/eval.h): the terms of a point, and their sums over the
 * blocks, plane by plane in the order of an evaluation. */
#ifndef NDT_INFORM_POINT_CUH
#define NDT_INFORM_POINT_CUH

#include "eval_point.cuh"
#include "reduce.cuh"

/* The first plane: rows of the blocks, and final sums. */
struct planes {
    double *block_sums, *sums;
};

/* Time of a point; one that is not finite counts as zero. */
static __device__ inline float load_time(const float *times_s, uint32_t i)
{
    return times_s && isfinite(times_s[i]) ? times_s[i] : 0.0f;
}

/* Adds the terms of point i to the planes, which are zero before. */
static __device__ inline void inform_point(const struct ndt_gpu_job &job, const struct ndt_tables_f *tables,
                                           const float *times_s, uint32_t i,
                                           float values[NDT_GPU_PLANES][NDT_GPU_ROW])
{
    float x[3], K[6] = {}, information[3][21] = {};
    struct ndt_point_sums_f sums = {};
    const uint32_t pairs = meet_voxels(job, tables, i, x, &sums, K);
    if (pairs == 0)
        return;
    add_terms(tables, x, &sums, pairs, values[0]);
    ndt_add_information_f(tables, x, load_time(times_s, i), sums.A, K, values[1] + NDT_GPU_GRADIENT, information);
    for (int k = 0; k < 3; k++)
        for (int at = 0; at < 21; at++)
            values[1 + k][NDT_GPU_HESSIAN + at] = information[k][at];
}

/* Directs `view`, in shared memory, to a plane. Every thread of the block has to call it. */
static __device__ inline void take_plane(struct ndt_gpu_job *view, const struct planes &first, uint32_t plane)
{
    __syncthreads(); /* the plane before is done */
    if (threadIdx.x == 0) {
        view->block_sums = first.block_sums + (size_t)plane * view->blocks * NDT_GPU_ROW;
        view->sums = first.sums + plane * NDT_GPU_ROW;
    }
    __syncthreads(); /* the plane is taken */
}

/* Computes row `row` of every plane; `view` and `rows` are shared memory of the block. */
static __device__ inline void inform_row(struct ndt_gpu_job *view, const struct ndt_tables_f *tables,
                                         const struct planes &first, const float *times_s, uint32_t row,
                                         float rows[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    float values[NDT_GPU_PLANES][NDT_GPU_ROW] = {};
    const uint32_t i = row * (uint32_t)NDT_GPU_BLOCK + threadIdx.x;
    if (i < view->count)
        inform_point(*view, tables, times_s, i, values);
#pragma unroll
    for (uint32_t plane = 0; plane < NDT_GPU_PLANES; plane++) {
        take_plane(view, first, plane);
        store_row(*view, row, values[plane], rows);
    }
}

/* Adds the rows of all planes, once all of them are there; `view` and `parts` are shared memory of the block. */
static __device__ inline void add_planes(struct ndt_gpu_job *view, const struct planes &first,
                                         double parts[NDT_GPU_WARPS][NDT_GPU_ROW])
{
    for (uint32_t plane = 0; plane < NDT_GPU_PLANES; plane++) {
        take_plane(view, first, plane);
        add_rows(*view, parts);
    }
}

#endif

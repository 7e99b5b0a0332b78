/* Everything about one point in registers: what it adds to the 31 sums. */
#ifndef NDT_EVAL_POINT_CUH
#define NDT_EVAL_POINT_CUH

#include "lookup.cuh"

/* What point i adds to the sums; `values` is zero before. */
static __device__ inline void eval_point(const struct ndt_gpu_job &job, const struct ndt_tables_f *tables,
                                         uint32_t i, float values[NDT_GPU_ROW])
{
    float x[3], near_m[3];
    load_point(job, i, x);
    for (int k = 0; k < 3; k++)
        near_m[k] = ndt_dot_f(tables->R + 3 * k, x) + job.t_m[k];
    struct ndt_point_sums_f sums = {};
    const uint32_t pairs = add_neighbours(job, near_m, &sums);
    if (pairs == 0)
        return;
    values[NDT_GPU_SCORE] = sums.score;
    values[NDT_GPU_NEAREST] = sums.best;
    values[NDT_GPU_MATCHED] = 1.0f;
    values[NDT_GPU_PAIRS] = (float)pairs;
    ndt_add_point_f(tables, x, &sums, values + NDT_GPU_GRADIENT, values + NDT_GPU_HESSIAN);
}

#endif

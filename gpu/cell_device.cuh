/** @file
 * @brief The cell of a point at a pose, with the result of double arithmetic: float decides, except near the
 * borders of cells. Consumer devices make a 64th of their operations in double. */
#ifndef NDT_CELL_DEVICE_CUH
#define NDT_CELL_DEVICE_CUH

#include "point_device.cuh"

enum { NDT_FAR_CELL = 1000000 }; /* cells from here on are outside of every map */

/* One coordinate at a pose: a row of the rotation, and the translation relative to the origin of the map. */
struct exact_axis {
    const double *R;
    double p_m, leaf_m;
};

/* Computes a coordinate in the steps of assess_result.c, never contracted. A function of its own, because it is
 * rarely called. */
static __device__ __noinline__ double exact_steps(const double *R, double p_m, double leaf_m, float x, float y,
                                                  float z)
{
    const double xy_m = __dadd_rn(__dmul_rn(R[0], (double)x), __dmul_rn(R[1], (double)y));
    return floor(__dadd_rn(__dadd_rn(xy_m, __dmul_rn(R[2], (double)z)), p_m) / leaf_m);
}

/* Finds the cell by float arithmetic, along axis k; returns whether it is certain. R: row k of the rotation.
 *
 * With s = |x| + |y| + |z|: an element of the rotation is wrong by less than 9e-7 (two products of three rounded
 * sines and cosines), so the coordinate by less than 1.2e-6 s and, from the last sum and the leaf, 3e-7 (s + |t| +
 * leaf). The margin is twice that. It exceeds the cell before the conversion to an integer could overflow. */
static __device__ inline bool is_certain_cell(const struct ndt_gpu_job &view, const float R[3], const float x[3],
                                              int k, int32_t *cell)
{
    const float leaf_m = view.level.leaf_m, t_m = view.t_m[k], near_m = ndt_dot_f(R, x) + t_m;
    const float steps = floorf(near_m * (1.0f / leaf_m)), inside_m = near_m - steps * leaf_m;
    const float margin_m = 3e-6f * (fabsf(x[0]) + fabsf(x[1]) + fabsf(x[2]) + fabsf(t_m) + leaf_m);
    if (!(inside_m > margin_m && inside_m < leaf_m - margin_m)) /* NaN too */
        return false;
    *cell = view.near_cell[k] + (int32_t)steps;
    return true;
}

/* Finds the cell of point x along axis k; returns false if it is outside of every map. `view` and R have the pose
 * in float. */
static __device__ inline bool find_cell(const struct ndt_gpu_job &view, const float R[3],
                                        const struct exact_axis &exact, const float x[3], int k, int32_t *cell)
{
    if (is_certain_cell(view, R, x, k, cell))
        return *cell > -NDT_FAR_CELL && *cell < NDT_FAR_CELL;
    const double steps = exact_steps(exact.R, exact.p_m, exact.leaf_m, x[0], x[1], x[2]);
    if (!(fabs(steps) < NDT_FAR_CELL)) /* NaN too */
        return false;
    *cell = (int32_t)steps;
    return true;
}

#endif

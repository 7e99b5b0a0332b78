/** @file
 * @brief Private: the arithmetic of preprocessing that the CPU and the CUDA kernels share.
 *
 * CUDA code defines NDT_DEVICE as __device__ before including it. Compiled without contraction (gcc:
 * -ffp-contract=off, nvcc: -fmad=false) both are bit-identical.
 *
 * Voxel filter: sums are integers, so a mean does not depend on the order of the additions. The unit is 1 / 2^20
 * of a cell's edge (0.5 um at 0.5 m) and of the sweep's duration (0.1 us at 0.1 s). Values are truncated, not
 * rounded: means are low by half a unit. The quotient point / edge is a float: for edges that are not a power of
 * two it is off by half a unit in the last place, about the precision of the coordinate itself (4 um at 100 m). */
#ifndef NDT_PREPROCESS_MATH_H
#define NDT_PREPROCESS_MATH_H

#include <math.h>
#include <stdint.h>

#include "ndt/preprocess_plan.h"

#ifndef NDT_DEVICE
#define NDT_DEVICE
#endif

/** Units per edge of a cell, and per sweep: sums of 2^32 points fit into 64 bits, and into a double. */
#define NDT_FILTER_PARTS 1048576
/** Offset of cell numbers in a key. */
#define NDT_FILTER_CELLS 1048576

/** Adding and then subtracting it rounds a float below 2^22 to the nearest whole number, halves to even. */
#define NDT_ROUNDING 12582912.0f

/** Whether a time of a scan is finite and within NDT_PREPROCESS_TIME_LIMIT_S. */
static inline NDT_DEVICE int ndt_preprocess_has_time(float time_s)
{
    return fabsf(time_s) <= (float)NDT_PREPROCESS_TIME_LIMIT_S;
}

/** A time of a scan relative to a moment, in whole microseconds (up to 4 s; beyond, up to the limit, good to one),
 * because the floats that tell one time relative to different stamps differ in their last digits. */
static inline NDT_DEVICE float ndt_preprocess_microseconds(float time_s, float reference_us)
{
    return (time_s * 1e6f + NDT_ROUNDING) - (NDT_ROUNDING + reference_us);
}

/** The same in seconds. */
static inline NDT_DEVICE float ndt_preprocess_since_reference(float time_s, float reference_us)
{
    return ndt_preprocess_microseconds(time_s, reference_us) * 1e-6f;
}

/** The fixed-point scale of a sweep. */
static inline NDT_DEVICE struct ndt_filter_times ndt_filter_times_of(double begin_s, double end_s)
{
    struct ndt_filter_times times;
    times.begin_s = begin_s;
    times.length_s = end_s - begin_s > 1e-9 ? end_s - begin_s : 1e-9;
    times.first_s = (float)begin_s;
    times.parts_per_s = (float)(NDT_FILTER_PARTS / times.length_s);
    return times;
}

/** Number of a cell along an axis, from its key. */
static inline NDT_DEVICE int32_t ndt_filter_cell(uint64_t key, int axis)
{
    return (int32_t)(key >> (21 * axis) & 0x1fffff) - NDT_FILTER_CELLS;
}

/** Factor from a sum of n points to their mean, in edges or sweeps. */
static inline NDT_DEVICE double ndt_filter_weight(uint32_t n)
{
    return 1.0 / ((double)n * NDT_FILTER_PARTS);
}

/** Mean coordinate of the points in a cell. */
static inline NDT_DEVICE float ndt_filter_mean(int32_t cell, uint64_t sum, double weight, float voxel_m)
{
    return (float)(((double)cell + (double)(int64_t)sum * weight) * (double)voxel_m);
}

/** Mean time of the points in a cell. */
static inline NDT_DEVICE float ndt_filter_mean_time(struct ndt_filter_times times, uint64_t sum, double weight)
{
    return (float)(times.begin_s + (double)(int64_t)sum * weight * times.length_s);
}

/* ---- per point; on the CPU crop.c, deskew.c and voxel_filter.c do the same to a vector of points ---- */

/** atan2 after Abramowitz & Stegun 4.4.49 on [0, 1], unfolded to the full circle. */
static inline NDT_DEVICE float ndt_preprocess_arc_tangent(float y, float x)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    const float a = high > 0 ? low / high : 0, s = a * a;
    float r = (((0.0208351f * s - 0.0851330f) * s + 0.1801410f) * s - 0.3302995f) * s + 0.9998660f;
    r *= a;
    r = ay > ax ? 1.57079633f - r : r;
    r = x < 0 ? 3.14159265f - r : r;
    return y < 0 ? -r : r;
}

/** When a point was measured, relative to the reference moment [s]; not finite where the time cannot be used.
 * time_s: from the time field of the cloud. */
static inline NDT_DEVICE float ndt_preprocess_time(const struct ndt_preprocess_plan *plan, float x_m, float y_m,
                                                   float time_s)
{
    if (plan->deskew == NDT_DESKEW_OFF)
        return 0;
    if (plan->deskew == NDT_DESKEW_TIME) {
        const float since_s = ndt_preprocess_since_reference(time_s, plan->reference_us);
        const int is_in_sweep =
            ndt_preprocess_has_time(time_s) && since_s >= plan->begin_s && since_s <= plan->end_s;
        return is_in_sweep ? since_s : NAN;
    }
    const float turn = ndt_preprocess_arc_tangent(y_m, x_m) * 0.159154943f; /* -1/2 .. 1/2 */
    return plan->sweep_s * (plan->deskew == NDT_DESKEW_AZIMUTH_CW ? -turn : turn);
}

/** Whether a point is used; comparisons with NaN are false. */
static inline NDT_DEVICE int ndt_preprocess_is_usable(const struct ndt_preprocess_plan *plan, const float p_m[3],
                                                      float time_s)
{
    for (int k = 0; k < 3; k++)
        if (!(p_m[k] >= plan->low_m[k] && p_m[k] <= plan->high_m[k]))
            return 0;
    if (!(time_s - time_s == 0))
        return 0;
    const float r2 = p_m[0] * p_m[0] + p_m[1] * p_m[1] + p_m[2] * p_m[2];
    if (r2 >= plan->certain_low_m2 && r2 <= plan->certain_high_m2)
        return 1;
    if (!(r2 >= plan->possible_low_m2 && r2 <= plan->possible_high_m2))
        return 0;
    const double x = (double)p_m[0], y = (double)p_m[1], z = (double)p_m[2], exact = x * x + y * y + z * z;
    return exact >= plan->near_m2 && exact <= plan->far_m2;
}

/** Adds offset_m to the range of a point; a point that would pass the origin ends there. */
static inline NDT_DEVICE void ndt_preprocess_lengthen(float offset_m, float p_m[3])
{
    const float range_m = sqrtf(p_m[0] * p_m[0] + p_m[1] * p_m[1] + p_m[2] * p_m[2]);
    const float scale = (range_m + offset_m) / range_m;
    for (int k = 0; k < 3; k++)
        p_m[k] *= range_m > 0 && scale > 0 ? scale : 0;
}

/** One coordinate of T p; T: columns of the rotation and the translation. */
static inline NDT_DEVICE float ndt_preprocess_transform_row(const float T[4][4], int row, const float p_m[3])
{
    return T[0][row] * p_m[0] + T[1][row] * p_m[1] + T[2][row] * p_m[2] + T[3][row];
}

/** Moves a point to the reference moment. */
static inline NDT_DEVICE void ndt_preprocess_move(const struct ndt_preprocess_plan *plan, float time_s,
                                                  float p_m[3])
{
    float at = (time_s - plan->start_s) * plan->segments_per_s;
    at = at > 0 ? at : 0;
    at = at < (float)NDT_PREPROCESS_SEGMENTS ? at : (float)NDT_PREPROCESS_SEGMENTS;
    const int segment = (int)at;
    const float s = at - (float)segment, before[3] = {p_m[0], p_m[1], p_m[2]};
    for (int row = 0; row < 3; row++) {
        const float first = ndt_preprocess_transform_row(plan->boundaries[segment], row, before);
        const float second = ndt_preprocess_transform_row(plan->boundaries[segment + 1], row, before);
        p_m[row] = first + s * (second - first);
    }
}

/** The key of a point's cell, and the position of the point in it and in the sweep, in NDT_FILTER_PARTS. 0: the
 * point is a million cells away, or not finite. */
static inline NDT_DEVICE int ndt_preprocess_place(const struct ndt_preprocess_plan *plan, const float p_m[3],
                                                  float time_s, uint64_t *key, uint32_t parts[4])
{
    *key = 0;
    for (int k = 0; k < 3; k++) {
        const float at = p_m[k] / plan->voxel_m;
        if (!(at >= -999999.0f && at < 1e6f))
            return 0;
        const int32_t cut = (int32_t)at, cell = cut - ((float)cut > at);
        parts[k] = (uint32_t)((at - (float)cell) * (float)NDT_FILTER_PARTS);
        *key |= (uint64_t)(uint32_t)(cell + NDT_FILTER_CELLS) << (21 * k);
    }
    float since = (time_s - plan->times.first_s) * plan->times.parts_per_s;
    since = since > 0 ? since : 0;
    parts[3] = (uint32_t)(since < (float)NDT_FILTER_PARTS ? since : (float)NDT_FILTER_PARTS);
    return 1;
}

/* ---- sampling ---- */

/** Seed of the sample of scan `sequence`. */
static inline NDT_DEVICE uint64_t ndt_sample_seed(uint64_t seed, uint64_t sequence)
{
    return seed * 0x9e3779b97f4a7c15u + sequence;
}

/** The upper half of output j = 0, 1, ... of splitmix64 (Steele, Lea, Flood 2014). */
static inline NDT_DEVICE uint32_t ndt_sample_random(uint64_t seed, uint32_t j)
{
    uint64_t z = seed + ((uint64_t)j + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/** Stratified sampling (Cochran, Sampling Techniques, ch. 5): index in 0 .. count - 1 of element j of a sample of
 * `wanted` <= count, one at random from each of as many equal parts. */
static inline NDT_DEVICE uint32_t ndt_sample_pick(uint64_t seed, uint32_t j, uint32_t wanted, uint32_t count)
{
    const uint64_t low = (uint64_t)j * count / wanted, high = ((uint64_t)j + 1) * count / wanted;
    return (uint32_t)(low + (ndt_sample_random(seed, j) * (high - low) >> 32));
}

/* ---- second moments ---- */

/** Points are assigned to lanes in turn, and lanes are added in their order, so the sums on a device and on the CPU
 * are equal. */
#define NDT_MOMENT_LANES 64

/** Adds x x^T of a point to the sums of a lane, upper triangle; sum[6]: number of finite points. */
static inline NDT_DEVICE void ndt_moments_add(double sum[7], float x_m, float y_m, float z_m)
{
    const double x[3] = {(double)x_m, (double)y_m, (double)z_m}, all = x[0] + x[1] + x[2];
    if (!(all - all == 0))
        return;
    for (int r = 0, at = 0; r < 3; r++)
        for (int c = r; c < 3; c++)
            sum[at++] += x[r] * x[c];
    sum[6]++;
}

#endif

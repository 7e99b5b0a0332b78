/* Private: the arithmetic of preprocessing that the CPU and kernels have in common, once, for gcc and nvcc. CUDA
 * code defines NDT_DEVICE as __device__ before. Compiled without contraction (gcc: -ffp-contract=off, nvcc:
 * -fmad=false) both give the same bits.
 *
 * Voxel filter: whatever is added up is a whole number, so that a mean does not depend on who adds what when:
 * 1 / 2^20 of a cell's edge (0.5 um at 0.5 m) and of the sweep's length (0.1 us at 0.1 s), cut off, not rounded:
 * means are low by half of that. What is cut is the quotient point / edge, a float: at edges that are no power of
 * two it is off by half a unit in the last place, about as much as the coordinate itself is (4 um at 100 m). */
#ifndef NDT_PREPROCESS_MATH_H
#define NDT_PREPROCESS_MATH_H

#include <math.h>
#include <stdint.h>

#include "ndt/preprocess_plan.h"

#ifndef NDT_DEVICE
#define NDT_DEVICE
#endif

/* Parts of a cell's edge, and of the sweep: sums of 2^32 points fit into 64 bits, and into a double. */
#define NDT_FILTER_PARTS 1048576
/* The first cell lies this many before the origin. */
#define NDT_FILTER_CELLS 1048576

static inline NDT_DEVICE struct ndt_filter_times ndt_filter_times_of(double begin_s, double end_s)
{
    struct ndt_filter_times times;
    times.begin_s = begin_s;
    times.length_s = end_s - begin_s > 1e-9 ? end_s - begin_s : 1e-9;
    times.first_s = (float)begin_s;
    times.parts_per_s = (float)(NDT_FILTER_PARTS / times.length_s);
    return times;
}

/* Number of a cell along an axis, in its key. */
static inline NDT_DEVICE int32_t ndt_filter_cell(uint64_t key, int axis)
{
    return (int32_t)(key >> (21 * axis) & 0x1fffff) - NDT_FILTER_CELLS;
}

/* What a part counts for in the mean of n points. */
static inline NDT_DEVICE double ndt_filter_weight(uint32_t n)
{
    return 1.0 / ((double)n * NDT_FILTER_PARTS);
}

/* Mean coordinate of the points in a cell, from the sum of their parts. */
static inline NDT_DEVICE float ndt_filter_mean(int32_t cell, uint64_t sum, double weight, float voxel_m)
{
    return (float)(((double)cell + (double)(int64_t)sum * weight) * (double)voxel_m);
}

static inline NDT_DEVICE float ndt_filter_mean_time(struct ndt_filter_times times, uint64_t sum, double weight)
{
    return (float)(times.begin_s + (double)(int64_t)sum * weight * times.length_s);
}

/* ---- point by point; on the CPU crop.c, deskew.c and voxel_filter.c do the same to a vector of points ---- */

/* Abramowitz & Stegun 4.4.49 on [0, 1], unfolded to the full circle. */
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

/* When in the sweep a point was seen [s]; time_s: what the cloud says. */
static inline NDT_DEVICE float ndt_preprocess_time(const struct ndt_preprocess_plan *plan, float x_m, float y_m,
                                                   float time_s)
{
    if (plan->deskew == NDT_DESKEW_OFF)
        return 0;
    if (plan->deskew == NDT_DESKEW_TIME)
        return time_s;
    const float turn = ndt_preprocess_arc_tangent(y_m, x_m) * 0.159154943f; /* -1/2 .. 1/2 */
    return plan->sweep_s * (plan->deskew == NDT_DESKEW_AZIMUTH_CW ? -turn : turn);
}

/* Whether a point is used; comparisons with NaN are false. */
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

static inline NDT_DEVICE float ndt_preprocess_at_segment(const float segment[4][4], int row, const float p_m[3])
{
    return segment[0][row] * p_m[0] + segment[1][row] * p_m[1] + segment[2][row] * p_m[2] + segment[3][row];
}

/* Moves a point to the reference moment. */
static inline NDT_DEVICE void ndt_preprocess_move(const struct ndt_preprocess_plan *plan, float time_s,
                                                  float p_m[3])
{
    float at = (time_s - plan->start_s) * plan->per_s;
    at = at > 0 ? at : 0;
    at = at < (float)NDT_PREPROCESS_SEGMENTS ? at : (float)NDT_PREPROCESS_SEGMENTS;
    const int segment = (int)at;
    const float s = at - (float)segment, before[3] = {p_m[0], p_m[1], p_m[2]};
    for (int row = 0; row < 3; row++) {
        const float first = ndt_preprocess_at_segment(plan->segments[segment], row, before);
        const float second = ndt_preprocess_at_segment(plan->segments[segment + 1], row, before);
        p_m[row] = first + s * (second - first);
    }
}

/* The key of a point's cell, and where in it and in the sweep the point is, in NDT_FILTER_PARTS. 0: a million cells
 * away, or no number. */
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

static inline NDT_DEVICE uint64_t ndt_sample_seed(uint64_t seed, uint64_t sequence)
{
    return seed * 0x9e3779b97f4a7c15u + sequence;
}

/* The upper half of number j = 0, 1, ... of splitmix64 (Steele, Lea, Flood 2014). */
static inline NDT_DEVICE uint32_t ndt_sample_random(uint64_t seed, uint32_t j)
{
    uint64_t z = seed + ((uint64_t)j + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* Stratified sampling (Cochran, Sampling Techniques, ch. 5): which of `count` is number j of the `wanted` <= count
 * that are taken: one at random from each of as many equal parts. */
static inline NDT_DEVICE uint32_t ndt_sample_pick(uint64_t seed, uint32_t j, uint32_t wanted, uint32_t count)
{
    const uint64_t low = (uint64_t)j * count / wanted, high = ((uint64_t)j + 1) * count / wanted;
    return (uint32_t)(low + (ndt_sample_random(seed, j) * (high - low) >> 32));
}

/* ---- second moments ---- */

/* Points go to lanes in turn, and lanes are added in their order: the same sums on a device and on the CPU. */
#define NDT_MOMENT_LANES 64

/* Adds x x^T of a point to a lane's sums, upper triangle; sum[6]: finite points. */
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

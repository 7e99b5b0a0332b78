/* Private: the arithmetic of preprocessing that the CPU and kernels have in common, once, for gcc and nvcc. Define
 * NDT_DEVICE before: empty for C, __device__ for CUDA. Compiled without contraction (gcc: -ffp-contract=off, nvcc:
 * -fmad=false) both give the same bits.
 *
 * Voxel filter: whatever is added up is a whole number, so that a mean does not depend on who adds what when:
 * 1 / 2^20 of a cell's edge (0.5 um at 0.5 m) and of the sweep's length (0.1 us at 0.1 s), cut off, not rounded:
 * means are low by half of that. What is cut is the quotient point / edge, a float: at edges that are no power of
 * two it is off by half a unit in the last place, about as much as the coordinate itself is (4 um at 100 m). */
#ifndef NDT_FRONT_MATH_H
#define NDT_FRONT_MATH_H

#include <stdint.h>

#ifndef NDT_DEVICE
#error "define NDT_DEVICE before including front_math.h"
#endif

/* Parts of a cell's edge, and of the sweep: sums of 2^32 points fit into 64 bits, and into a double. */
#define NDT_FILTER_PARTS 1048576
/* The first cell lies this many before the origin. */
#define NDT_FILTER_CELLS 1048576

/* A sweep; times outside count as its ends. */
struct ndt_filter_times {
    double begin_s, length_s;
    float first_s, parts_per_s; /* parts = (time - first) * parts_per_s */
};

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

/* Mean coordinate of n points in a cell, from the sum of their parts. */
static inline NDT_DEVICE float ndt_filter_mean(int32_t cell, uint64_t sum, uint32_t n, float voxel_m)
{
    return (float)(((double)cell + (double)(int64_t)sum / ((double)n * NDT_FILTER_PARTS)) * (double)voxel_m);
}

static inline NDT_DEVICE float ndt_filter_mean_time(struct ndt_filter_times times, uint64_t sum, uint32_t n)
{
    return (float)(times.begin_s + (double)(int64_t)sum / ((double)n * NDT_FILTER_PARTS) * times.length_s);
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

#endif

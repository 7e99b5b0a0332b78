/** @file
 * @brief Private: poses and scores as the CPU and the CUDA kernel exchange them. Plain data, for gcc and nvcc. */
#ifndef NDT_SCORE_TYPES_H
#define NDT_SCORE_TYPES_H

#include <stdint.h>

/** The value of a pair, 0 .. 1, is counted in units of 1 / NDT_SCORE_UNITS: the spacing of floats in 1 .. 2. The at
 * most 27 pairs of each of 8 points add up to less than 2^32, those of 2^32 points to less than 2^64. */
#define NDT_SCORE_UNITS 8388608

/** A pose as it goes to the backend: x' = R x + near_cell * leaf + t_m. */
struct ndt_packed_pose {
    float R[9], t_m[3];
    int32_t near_cell[3], unused;
};

/** Sums over points. */
struct ndt_score_sums {
    uint64_t score, nearest; /**< in units: of all pairs, and of the best pair of each point */
    uint32_t matched, pairs; /**< points with a pair, and pairs */
};

/** Constants of a level. */
struct ndt_score_scale {
    float leaf_m, per_leaf, radius_m2;
    float exponent; /**< -d2 / 2 log2(e): the value of a pair is 2^(exponent q.Bq) */
};

#endif

/** @file
 * @brief Private: the arithmetic of scores at many poses that the CPU and the CUDA kernel share.
 *
 * CUDA code defines NDT_DEVICE as __device__ before including it. Every operation is rounded once, as IEEE 754
 * says: products and sums are fused by fmaf alone (gcc: -ffp-contract=off, nvcc: -fmad=false). CUDA: fmaf is
 * computed with infinite precision and rounded once, and additions and products are IEEE-compliant (CUDA C++
 * Programming Guide, "Mathematical Functions"), denormals included unless -ftz=true. */
#ifndef NDT_SCORE_MATH_H
#define NDT_SCORE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ndt/score_types.h"

#ifndef NDT_DEVICE
#define NDT_DEVICE
#endif

/** The moved point relative to the corner of near_cell. */
static inline NDT_DEVICE void ndt_score_move(const struct ndt_packed_pose *pose, const float x[3], float near_m[3])
{
    for (int k = 0; k < 3; k++) {
        const float *R = pose->R + 3 * k;
        near_m[k] = fmaf(x[2], R[2], fmaf(x[1], R[1], x[0] * R[0])) + pose->t_m[k];
    }
}

/** The cell of a moved point, and its position in it. 0: it is not finite, or absurdly far away. */
static inline NDT_DEVICE int ndt_score_locate(const struct ndt_packed_pose *pose,
                                              const struct ndt_score_scale *scale, const float near_m[3],
                                              int32_t cell[3], float inside_m[3])
{
    for (int k = 0; k < 3; k++) {
        if (!(near_m[k] < 1e6f && near_m[k] > -1e6f)) /* NaN too */
            return 0;
        const float steps = floorf(near_m[k] * scale->per_leaf);
        cell[k] = (int32_t)steps + pose->near_cell[k];
        inside_m[k] = fmaf(-steps, scale->leaf_m, near_m[k]);
    }
    return 1;
}

/** Whether a mean of a neighbour list is within the radius of the point. */
static inline NDT_DEVICE int ndt_score_is_within(const struct ndt_score_scale *scale, const float inside_m[3],
                                                 float x_m, float y_m, float z_m)
{
    const float dx = x_m - inside_m[0], dy = y_m - inside_m[1], dz = z_m - inside_m[2];
    return fmaf(dz, dz, fmaf(dy, dy, dx * dx)) <= scale->radius_m2;
}

static inline NDT_DEVICE uint32_t ndt_score_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/** 2^x for x <= 0, to 2e-7 of it, in units; the polynomial of the CPU backend. Adding 1 rounds to units. */
static inline NDT_DEVICE uint32_t ndt_score_exp2(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to whole numbers */
    x = fmaxf(fminf(x, 0.0f), -115.0f);
    const float shifted = x + magic, f = x - (shifted - magic), f2 = f * f;
    const float low = fmaf(f, 0.693146967f, 1.0f);
    const float mid = fmaf(f, 0.0555071327f, 0.240221197f);
    const float high = fmaf(f, 0.0013276472f, 0.00967554133f);
    const float p = fmaf(fmaf(high, f2, mid), f2, low);
    const uint32_t bits = ndt_score_bits(p) + ((ndt_score_bits(shifted) - ndt_score_bits(magic)) << 23);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return ndt_score_bits(value + 1.0f) - ndt_score_bits(1.0f);
}

/** The value of a pair in units: a point near near_cell, and the voxel's mean, inverse covariance and cell. */
static inline NDT_DEVICE uint32_t ndt_score_pair(const struct ndt_packed_pose *pose,
                                                 const struct ndt_score_scale *scale, const float near_m[3],
                                                 const float mean_m[3], const float icov[6], const int32_t cell[3])
{
    float q[3], u[3];
    for (int k = 0; k < 3; k++)
        q[k] = fmaf(-(float)(cell[k] - pose->near_cell[k]), scale->leaf_m, near_m[k]) - mean_m[k];
    u[0] = fmaf(icov[2], q[2], fmaf(icov[1], q[1], icov[0] * q[0]));
    u[1] = fmaf(icov[4], q[2], fmaf(icov[3], q[1], icov[1] * q[0]));
    u[2] = fmaf(icov[5], q[2], fmaf(icov[4], q[1], icov[2] * q[0]));
    return ndt_score_exp2(fmaf(q[2], u[2], fmaf(q[1], u[1], q[0] * u[0])) * scale->exponent);
}

#endif

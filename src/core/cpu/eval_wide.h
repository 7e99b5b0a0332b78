/* Private to the CPU backend: the evaluation of one chunk of points, compiled once per CPU variant. */
#ifndef NDT_EVAL_WIDE_H
#define NDT_EVAL_WIDE_H

#include "ndt/map.h"
#include "ndt/score_types.h"

/* Points per chunk. Each chunk is summed in float, then all are added in double in their order, so the result does
 * not depend on the number of threads. */
enum { NDT_CHUNK_POINTS = 128 };

/* Sums over points, with y = R x the rotated point, and per point over its voxels A = sum w u and
 * S = sum w (B - d2 u u^T) (names as in point_math.h). The derivative of y by a rotation about axis e is
 * e x y, and the second one by axes e and f is e x (f x y): so the sums below hold all that the gradient and
 * the Hessian need, for any parametrisation of the rotation, with 60 flops per point instead of the 250 of
 * J^T S J and the fifteen second-derivative rows. Exact algebra, no approximation. */
enum {
    NDT_SUM_SCORE = 0, /* sum of exp(...) */
    NDT_SUM_BEST = 1,  /* sum of the best exp(...) of each point */
    NDT_SUM_A = 2,     /* 3 */
    NDT_SUM_N = 5,     /* 9: A_i y_j */
    NDT_SUM_S = 14,    /* 6: upper triangle */
    NDT_SUM_K = 20,    /* 9: S_i . (e_j x y) */
    NDT_SUM_L = 29,    /* 6: (e_i x y) . S (e_j x y), upper triangle */
    NDT_SUM_FLOATS = 35,
    NDT_SUM_MATCHED = 35,
    NDT_SUM_PAIRS = 36,
    NDT_SUM_COUNT = 37
};

/* Further sums for the information, K = the sum of the voxels' matrices of struct ndt_information without their
 * factor -d1 d2, a = the time of the point. Rotations are again about fixed axes. */
enum {
    NDT_INFORM_A = 0,      /* 3: a A */
    NDT_INFORM_TORQUE = 3, /* 3: a (y x A) */
    NDT_INFORM_BLOCKS =
        6, /* with the weights 1, a and a^2: K (6), K_i . (e_j x y) (9), (e_i x y) . K (e_j x y) (6) */
    NDT_INFORM_BLOCK = 21,
    NDT_INFORM_COUNT = 69
};

struct ndt_wide_job {
    const struct ndt_map_level *level;
    enum ndt_neighbours neighbours;
    size_t count;
    const float *x_m, *y_m, *z_m; /* padded to a multiple of 16 */
    const float *time_s;          /* finite; NULL: all zero */
    float R[9];
    /* The translation of the pose is near_cell * leaf_m + t_m: float holds only coordinates near the sensor. */
    int32_t near_cell[3];
    float t_m[3];
};

/* Overwrites sums[NDT_SUM_COUNT]. */
void ndt_eval_chunk_baseline(const struct ndt_wide_job *job, size_t chunk, double *sums);
void ndt_eval_chunk_avx2(const struct ndt_wide_job *job, size_t chunk, double *sums);
void ndt_eval_chunk_avx512(const struct ndt_wide_job *job, size_t chunk, double *sums);
void ndt_eval_chunk_neon(const struct ndt_wide_job *job, size_t chunk, double *sums);

/* The same sums, bit for bit, and overwrites informed[NDT_INFORM_COUNT]. */
void ndt_inform_chunk_baseline(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed);
void ndt_inform_chunk_avx2(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed);
void ndt_inform_chunk_avx512(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed);
void ndt_inform_chunk_neon(const struct ndt_wide_job *job, size_t chunk, double *sums, double *informed);

/* Adds the scores of a chunk, bit for bit those of ndt/score_math.h. */
void ndt_score_chunk_baseline(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums);
void ndt_score_chunk_avx2(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums);
void ndt_score_chunk_avx512(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums);
void ndt_score_chunk_neon(const struct ndt_wide_job *job, size_t chunk, struct ndt_score_sums *sums);

/* The score of each of at most NDT_CHUNK_POINTS points, in the same units; 0 without a voxel. */
void ndt_score_each_baseline(const struct ndt_wide_job *job, uint32_t *units);
void ndt_score_each_avx2(const struct ndt_wide_job *job, uint32_t *units);
void ndt_score_each_avx512(const struct ndt_wide_job *job, uint32_t *units);
void ndt_score_each_neon(const struct ndt_wide_job *job, uint32_t *units);

#endif

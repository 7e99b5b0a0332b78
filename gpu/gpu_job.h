/* What every kernel gets, by value, as its one argument: where the scan, the map level and the buffers lie on the
 * device, and the translation of the pose. Plain data for gcc and nvcc; all pointers are the device's. */
#ifndef NDT_GPU_JOB_H
#define NDT_GPU_JOB_H

#include "ndt/map.h"

/* Threads of a block, one point each. Sums leave the block as doubles, one row of NDT_GPU_ROW per block, and are
 * added in the order of the blocks, so the result depends on neither the device nor its load. */
enum { NDT_GPU_BLOCK = 128, NDT_GPU_WARP = 32, NDT_GPU_WARPS = NDT_GPU_BLOCK / NDT_GPU_WARP, NDT_GPU_ROW = 32 };

/* Order within a row: that of struct ndt_eval; the last number is unused. */
enum {
    NDT_GPU_SCORE = 0,
    NDT_GPU_GRADIENT = 1,
    NDT_GPU_HESSIAN = 7,
    NDT_GPU_NEAREST = 28,
    NDT_GPU_MATCHED = 29,
    NDT_GPU_PAIRS = 30,
    NDT_GPU_SUMS = 31
};

/* Numbers per point in the buffers of `staged`; number k of point i is at [k * stride + i].
 * Jacobian: rows x, y, z of x', columns tx ty tz a b c. Point Hessian: the 18x6 matrix is zero but for the second
 * derivatives by angles and symmetric, so its packing is (aa ab ac bb bc cc) x (x y z). */
enum { NDT_GPU_JACOBIAN = 18, NDT_GPU_POINT_HESSIAN = 18 };

struct ndt_gpu_level {
    const struct ndt_voxel *voxels;
    const uint32_t *bricks;
    const uint64_t *brick_keys; /* hashed only */
    const struct ndt_cell_ref *cells;
    const uint32_t *lists;
    int32_t brick_min[3], brick_dim[3];
    uint32_t brick_slots;
    int32_t hashed;
    float leaf_m, d2, d1d2;
    double d1;
};

struct ndt_gpu_job {
    struct ndt_gpu_level level;
    const float *x_m, *y_m, *z_m;
    uint32_t count;
    int32_t neighbours; /* enum ndt_neighbours */
    /* x' = R x + near_cell * leaf + t_m: float only ever holds what lies around the sensor */
    int32_t near_cell[3];
    float t_m[3];
    const float *angles; /* sx cx sy cy sz cz: the 24 bytes */
    double *block_sums;  /* a row per block */
    uint32_t *ticket;    /* blocks that are done; zero between launches */
    double *sums;        /* NDT_GPU_SUMS */
    uint32_t blocks;     /* rows in block_sums */
    /* staged */
    uint64_t stride;
    float *moved_m; /* 3: x' relative to the corner of near_cell */
    float *jacobian;
    float *point_hessian;
    float *terms; /* NDT_GPU_SUMS: what each point adds to the sums, score and nearest without the factor -d1 */
};

#endif

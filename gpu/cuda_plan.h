/** @file
 * @brief The memory plan: the layout of the allocations for max_points and for a map.
 *
 * Plain arithmetic, no CUDA. */
#ifndef NDT_CUDA_PLAN_H
#define NDT_CUDA_PLAN_H

#include "cuda_pipeline.h"
#include "ndt/map.h"

enum { NDT_CUDA_POOL = 2, NDT_CUDA_ALIGNMENT = 256 };
/** Staging buffers for the upload of a map, and the size of each. */
enum { NDT_CUDA_STAGING = 4, NDT_CUDA_STAGING_BYTES = 512 << 10 };
/** Alignments per launch, and rows of the trace of each. */
enum { NDT_CUDA_ITEMS = 256, NDT_CUDA_TRACE = 48 };

/** Bytes of struct ndt_gpu_preprocess in front of a raw scan. */
enum {
    NDT_CUDA_PREPROCESS_HEAD =
        (sizeof(struct ndt_gpu_preprocess) + NDT_CUDA_ALIGNMENT - 1) / NDT_CUDA_ALIGNMENT * NDT_CUDA_ALIGNMENT
};

/** Scores: poses per launch, parts of all their scans, and bytes in front of the poses. */
enum { NDT_CUDA_POSES = 4096, NDT_CUDA_SCORE_PARTS = 8192, NDT_CUDA_SCORES_HEAD = NDT_CUDA_ALIGNMENT };

/** Offsets into the one device allocation and the one pinned allocation, in bytes. */
struct ndt_cuda_plan {
    size_t max_points;
    size_t stride; /**< points, padded, of a column of a buffer */
    size_t sums, ticket, scan, block_sums, buffers;
    size_t batch; /**< struct ndt_gpu_batch, its items, their information and their rows */
    size_t batch_bytes;
    size_t scores, score_sums; /**< struct ndt_gpu_scores and behind it poses; their sums */
    size_t preprocess,
        preprocess_state; /**< struct ndt_gpu_preprocess and behind it the raw scan; with preprocessing only */
    size_t preprocess_bytes, preprocess_slots;
    size_t keys, slots, cell_of, cell_sums, cell_sizes, block_cells, firsts, sampled;
    size_t device_bytes;
    size_t pinned_sums, pinned_scans[NDT_CUDA_POOL], pinned_batch, pinned_results;
    size_t pinned_scores, pinned_score_sums;
    size_t pinned_staging;    /**< NDT_CUDA_STAGING buffers in a row */
    size_t pinned_preprocess; /**< preprocess in pinned memory */
    size_t pinned_bytes;
};

/** Makes the plan. has_preprocess: with memory to preprocess raw scans of up to max_points; for pipelines with
 * alignments only. */
void ndt_cuda_plan_make(struct ndt_cuda_plan *out, const struct ndt_cuda_pipeline *pipeline, size_t max_points,
                        int has_preprocess);
/** The largest number of points whose plan fits into `bytes` of device memory. */
size_t ndt_cuda_points_that_fit(const struct ndt_cuda_pipeline *pipeline, size_t bytes, int has_preprocess);

/** The arrays of a map level, in their order on the device. */
enum { NDT_CUDA_LEVEL_ARRAYS = 5 };
struct ndt_cuda_array {
    const void *data; /**< data on the host */
    size_t bytes, offset;
};
struct ndt_cuda_map_plan {
    struct ndt_cuda_array arrays[NDT_MAX_LEVELS][NDT_CUDA_LEVEL_ARRAYS]; /**< voxels bricks keys cells lists */
    size_t bytes;
};
void ndt_cuda_map_plan_make(struct ndt_cuda_map_plan *out, const struct ndt_map *map);

#endif

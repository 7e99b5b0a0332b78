#include "cuda_plan.h"

/* Reserves `bytes` at the end of *total, aligned, and returns their offset. */
static size_t reserve(size_t *total, size_t bytes)
{
    const size_t at = *total;
    *total += (bytes + NDT_CUDA_ALIGNMENT - 1) / NDT_CUDA_ALIGNMENT * NDT_CUDA_ALIGNMENT;
    return at;
}

/* Plans the buffers of dense scores, on the device and pinned. */
static void plan_scores(struct ndt_cuda_plan *out)
{
    const size_t poses = NDT_CUDA_SCORES_HEAD + NDT_CUDA_POSES * sizeof(struct ndt_packed_pose);
    const size_t sums = NDT_CUDA_SCORE_PARTS * sizeof(struct ndt_score_sums);
    out->scores = reserve(&out->device_bytes, poses);
    out->score_sums = reserve(&out->device_bytes, sums);
    out->pinned_scores = reserve(&out->pinned_bytes, poses);
    out->pinned_score_sums = reserve(&out->pinned_bytes, sums);
}

/* Plans preprocessing: 16 bytes per raw point for itself, 16 to 32 for the table, 64 for its cell, 16 sampled. */
static void plan_preprocess(struct ndt_cuda_plan *out)
{
    const size_t n = out->stride;
    out->preprocess_slots = 1024;
    while (out->preprocess_slots < 2 * out->max_points)
        out->preprocess_slots *= 2;
    out->preprocess_bytes = NDT_CUDA_PREPROCESS_HEAD + 4 * n * sizeof(float);
    out->preprocess = reserve(&out->device_bytes, out->preprocess_bytes);
    out->preprocess_state = reserve(&out->device_bytes, sizeof(struct ndt_gpu_preprocess_state));
    out->keys = reserve(&out->device_bytes, n * sizeof(uint64_t));
    out->slots = reserve(&out->device_bytes, out->preprocess_slots * sizeof(uint64_t));
    out->cell_of = reserve(&out->device_bytes, n * sizeof(uint32_t));
    out->cell_sums = reserve(&out->device_bytes, 4 * n * sizeof(uint64_t));
    out->cell_sizes = reserve(&out->device_bytes, n * sizeof(uint32_t));
    out->block_cells = reserve(&out->device_bytes, n / NDT_GPU_BLOCK * sizeof(uint32_t));
    out->firsts = reserve(&out->device_bytes, n * sizeof(uint32_t));
    out->sampled = reserve(&out->device_bytes, 4 * n * sizeof(float));
    out->pinned_preprocess = reserve(&out->pinned_bytes, out->preprocess_bytes);
}

void ndt_cuda_plan_make(struct ndt_cuda_plan *out, const struct ndt_cuda_pipeline *pipeline, size_t max_points,
                        int has_preprocess)
{
    *out = (struct ndt_cuda_plan){.max_points = max_points};
    out->stride = (max_points + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK * NDT_GPU_BLOCK;
    const size_t scan_bytes = 4 * out->stride * sizeof(float); /* x y z time */
    const size_t row_bytes = NDT_GPU_ROW * sizeof(double), planes_bytes = NDT_GPU_PLANES * row_bytes;
    out->sums = reserve(&out->device_bytes, planes_bytes);
    out->ticket = reserve(&out->device_bytes, sizeof(uint32_t));
    out->scan = reserve(&out->device_bytes, scan_bytes);
    out->block_sums = reserve(&out->device_bytes, ndt_cuda_blocks(max_points) * planes_bytes);
    out->buffers = reserve(&out->device_bytes, pipeline->floats_per_point * out->stride * sizeof(float));
    const size_t head_bytes = sizeof(struct ndt_gpu_batch) + NDT_CUDA_ITEMS * sizeof(struct ndt_gpu_item);
    if (pipeline->shape != NDT_CUDA_HOST)
        out->batch_bytes =
            head_bytes + NDT_CUDA_ITEMS * (planes_bytes + NDT_CUDA_TRACE * sizeof(struct ndt_newton_row));
    out->batch = reserve(&out->device_bytes, out->batch_bytes);
    out->pinned_sums = reserve(&out->pinned_bytes, planes_bytes);
    out->pinned_batch = reserve(&out->pinned_bytes, out->batch_bytes ? head_bytes : 0);
    out->pinned_results = reserve(&out->pinned_bytes, out->batch_bytes);
    for (int i = 0; i < NDT_CUDA_POOL; i++)
        out->pinned_scans[i] = reserve(&out->pinned_bytes, scan_bytes);
    out->pinned_staging = reserve(&out->pinned_bytes, (size_t)NDT_CUDA_STAGING * NDT_CUDA_STAGING_BYTES);
    plan_scores(out);
    if (has_preprocess && pipeline->shape != NDT_CUDA_HOST)
        plan_preprocess(out);
}

size_t ndt_cuda_points_that_fit(const struct ndt_cuda_pipeline *pipeline, size_t bytes, int has_preprocess)
{
    size_t low = 0, high = bytes / (3 * sizeof(float)) + 1; /* low fits, or is 0; high does not */
    while (high - low > 1) {
        struct ndt_cuda_plan plan;
        const size_t middle = low + (high - low) / 2;
        ndt_cuda_plan_make(&plan, pipeline, middle, has_preprocess);
        *(plan.device_bytes <= bytes ? &low : &high) = middle;
    }
    return low;
}

void ndt_cuda_map_plan_make(struct ndt_cuda_map_plan *out, const struct ndt_map *map)
{
    *out = (struct ndt_cuda_map_plan){.bytes = 0};
    for (size_t i = 0; i < map->level_count; i++) {
        const struct ndt_map_level *level = &map->levels[i];
        const struct ndt_cuda_array arrays[NDT_CUDA_LEVEL_ARRAYS] = {
            {level->voxels, level->voxel_count * sizeof(struct ndt_voxel), 0},
            {level->bricks, level->brick_slots * sizeof(uint32_t), 0},
            {level->brick_keys, level->hashed ? level->brick_slots * sizeof(uint64_t) : 0, 0},
            {level->cells, (size_t)level->brick_count * 512 * sizeof(struct ndt_cell_ref), 0},
            {level->lists, level->list_words * sizeof(uint32_t), 0}};
        for (int k = 0; k < NDT_CUDA_LEVEL_ARRAYS; k++) {
            out->arrays[i][k] = arrays[k];
            out->arrays[i][k].offset = reserve(&out->bytes, arrays[k].bytes);
        }
    }
}

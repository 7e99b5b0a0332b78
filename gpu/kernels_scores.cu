/** @file
 * @brief Scores of one scan at many poses, without derivatives: the bits of ndt/score_math.h.
 *
 * A block has one pose and up to NDT_GPU_SCORE_POINTS points, a thread up to eight of them. Values of pairs are
 * whole numbers: neither the order in which they are added nor the shape of the launch changes the sums. */
#include <cuda_runtime.h>

#include "eval_point.cuh"
#include "kernels.h"
#include "ndt/score_math.h"

/* The data that the threads of a block share. */
struct score_place {
    const struct ndt_gpu_level *level;
    const struct ndt_packed_pose *pose;
    const struct ndt_score_scale *scale;
    int32_t neighbours;
};

/* Sums of one thread: those of eight points stay within 32 bits. */
struct thread_sums {
    uint32_t score, nearest, matched, pairs;
};

/* Returns the entries of a list whose mean is within the radius, as bits. Padding is farther away than any radius.
 * Sixteen entries are loaded at a time. */
static __device__ inline uint32_t find_within(const struct ndt_score_scale *scale, const uint32_t *list,
                                              uint32_t padded, const float inside_m[3])
{
    const float *means = (const float *)(const void *)list;
    struct entries next = load_entries(means, padded);
    uint32_t hits = 0;
    for (uint32_t k = 0; k < padded; k += 8) {
        const struct entries here = next;
        next = load_entries(k + 8 < padded ? means + k + 8 : means, padded);
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            hits |= (uint32_t)ndt_score_is_within(scale, inside_m, here.mean_m[0][i], here.mean_m[1][i],
                                                  here.mean_m[2][i])
                    << (k + i);
    }
    return hits;
}

static __device__ inline uint32_t score_voxel(const struct score_place &at, const float near_m[3],
                                              const struct voxel_words &voxel)
{
    const float4 &a = voxel.a, &b = voxel.b, &c = voxel.c;
    const float mean_m[3] = {a.x, a.y, a.z}, icov[6] = {a.w, b.x, b.y, b.z, b.w, c.x};
    const int32_t cell[3] = {__float_as_int(c.y), __float_as_int(c.z), __float_as_int(c.w)};
    return ndt_score_pair(at.pose, at.scale, near_m, mean_m, icov, cell);
}

/* Adds the voxels of the entries in `hits`, at least one. The record of the next voxel and the number of the one
 * after it are loaded meanwhile. */
static __device__ inline void score_hits(const struct score_place &at, const float near_m[3], const uint32_t *ids,
                                         uint32_t hits, struct thread_sums *sums)
{
    const uint32_t pairs = (uint32_t)__popc(hits);
    struct voxel_words voxel = load_voxel(*at.level, take_voxel(ids, &hits));
    uint32_t next_id = take_voxel(ids, &hits), best = 0;
#pragma unroll 2
    for (uint32_t k = 0; k < pairs; k++) {
        const struct voxel_words next = load_voxel(*at.level, next_id);
        next_id = take_voxel(ids, &hits);
        const uint32_t value = score_voxel(at, near_m, voxel);
        sums->score += value;
        best = value > best ? value : best;
        voxel = next;
    }
    sums->nearest += best;
    sums->matched++;
    sums->pairs += pairs;
}

static __device__ inline void score_point(const struct score_place &at, const float x[3], struct thread_sums *sums)
{
    float near_m[3], inside_m[3];
    int32_t cell[3];
    ndt_score_move(at.pose, x, near_m);
    if (!ndt_score_locate(at.pose, at.scale, near_m, cell, inside_m))
        return;
    const size_t brick = brick_of_cell(*at.level, cell);
    const int32_t inner = (cell[2] & 7) * 64 + (cell[1] & 7) * 8 + (cell[0] & 7);
    const struct ndt_cell_ref ref = load_cell(at.level->cells + brick * 512 + (size_t)inner);
    const uint32_t *list = at.level->lists + (size_t)ref.offset * 8;
    uint32_t hits = (1u << list_length(ref, at.neighbours)) - 1;
    if (hits != 0 && at.neighbours == NDT_RADIUS)
        hits = find_within(at.scale, list, ref.padded, inside_m);
    if (hits != 0)
        score_hits(at, near_m, list + 3u * ref.padded, hits, sums);
}

/* Adds the sums of a warp; points and pairs share a word: at most 256 and 6912 of them. */
static __device__ inline struct ndt_score_sums add_lanes(const struct thread_sums *mine)
{
    uint64_t score = mine->score;
    uint32_t nearest = mine->nearest, counts = mine->matched << 16 | mine->pairs;
    for (int lanes = NDT_GPU_WARP / 2; lanes > 0; lanes /= 2) {
        score += __shfl_xor_sync(0xffffffffu, score, lanes);
        nearest += __shfl_xor_sync(0xffffffffu, nearest, lanes);
        counts += __shfl_xor_sync(0xffffffffu, counts, lanes);
    }
    const struct ndt_score_sums sums = {score, nearest, counts >> 16, counts & 0xffff};
    return sums;
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_score_poses(const struct ndt_gpu_job job)
{
    __shared__ struct ndt_packed_pose pose;
    __shared__ struct ndt_score_scale scale;
    __shared__ struct ndt_score_sums warps[NDT_GPU_WARPS];
    const uint32_t parts = job.scores->parts, first = blockIdx.x % parts * NDT_GPU_SCORE_POINTS;
    const uint32_t last = job.count - first < NDT_GPU_SCORE_POINTS ? job.count : first + NDT_GPU_SCORE_POINTS;
    const struct score_place at = {&job.level, &pose, &scale, job.neighbours};
    struct thread_sums mine = {};
    if (threadIdx.x == 0) {
        pose = job.scores->poses[blockIdx.x / parts];
        scale = job.scores->scale;
    }
    __syncthreads(); /* the pose is there */
    for (uint32_t i = first + threadIdx.x; i < last; i += NDT_GPU_BLOCK) {
        const float x[3] = {job.x_m[i], job.y_m[i], job.z_m[i]};
        score_point(at, x, &mine);
    }
    const struct ndt_score_sums sums = add_lanes(&mine);
    if (threadIdx.x % NDT_GPU_WARP == 0)
        warps[threadIdx.x / NDT_GPU_WARP] = sums;
    __syncthreads(); /* all warps are done */
    if (threadIdx.x == 0) {
        struct ndt_score_sums all = warps[0];
        for (int i = 1; i < NDT_GPU_WARPS; i++) {
            all.score += warps[i].score;
            all.nearest += warps[i].nearest;
            all.matched += warps[i].matched;
            all.pairs += warps[i].pairs;
        }
        job.scores->sums[blockIdx.x] = all;
    }
}

extern "C" const void *ndt_kernel_score_poses(void)
{
    return (const void *)ndt_score_poses;
}

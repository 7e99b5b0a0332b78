/** @file
 * @brief One point in registers: from the moved point to the voxels around it (the two-level index of ndt/map.h,
 * dense or hashed, and the neighbour list of the point's cell, with the steps and roundings of the CPU backend),
 * and to its terms in the 31 sums. */
#ifndef NDT_EVAL_POINT_CUH
#define NDT_EVAL_POINT_CUH

#include "point_device.cuh"

struct place {
    float inside_m[3]; /* relative to the corner of the point's own cell */
    struct ndt_cell_ref ref;
};

static __device__ inline uint32_t hashed_brick(const struct ndt_gpu_level &level, const int32_t brick[3])
{
    uint64_t key = (uint64_t)1 << 63;
    for (int k = 0; k < 3; k++)
        key |= (uint64_t)(uint32_t)(brick[k] + 1048576) << (21 * k);
    uint64_t at = key * 0x9e3779b97f4a7c15u;
    at ^= at >> 29;
    const uint64_t mask = level.brick_slots - 1;
    for (at &= mask; level.brick_keys[at] != key; at = (at + 1) & mask)
        if (level.brick_keys[at] == 0)
            return 0;
    return level.bricks[at];
}

/* Number of the cell's brick; 0, the empty one, for cells outside of the map. */
static __device__ inline uint32_t brick_of_cell(const struct ndt_gpu_level &level, const int32_t cell[3])
{
    int32_t brick[3];
    uint32_t slot = 0;
    for (int k = 2; k >= 0; k--) {
        brick[k] = cell[k] >> 3;
        const int32_t from_edge = brick[k] - level.brick_min[k];
        if (from_edge < 0 || from_edge >= level.brick_dim[k])
            return 0;
        slot = slot * (uint32_t)level.brick_dim[k] + (uint32_t)from_edge;
    }
    return level.hashed ? hashed_brick(level, brick) : level.bricks[slot];
}

/* near_m: the point relative to the corner of near_cell. Points that are not finite or absurdly far have no list.
 */
static __device__ inline struct place find_place(const struct ndt_gpu_job &job, const float near_m[3])
{
    struct place place = {};
    int32_t cell[3];
    const float per_leaf = 1.0f / job.level.leaf_m;
    for (int k = 0; k < 3; k++) {
        if (!(near_m[k] < 1e6f && near_m[k] > -1e6f)) /* NaN too */
            return place;
        const float steps = floorf(near_m[k] * per_leaf);
        cell[k] = (int32_t)steps + job.near_cell[k];
        place.inside_m[k] = near_m[k] - steps * job.level.leaf_m;
    }
    const size_t brick = brick_of_cell(job.level, cell);
    const int32_t inner = (cell[2] & 7) * 64 + (cell[1] & 7) * 8 + (cell[0] & 7);
    place.ref = job.level.cells[brick * 512 + (size_t)inner];
    return place;
}

static __device__ inline uint32_t list_length(const struct ndt_cell_ref &ref, int32_t neighbours)
{
    return neighbours == NDT_DIRECT1 ? ref.n1 : neighbours == NDT_DIRECT7 ? ref.n7 : ref.n27;
}

/* The first 48 bytes of a voxel record as three aligned loads. K: sums for the information, NULL: not wanted. */
static __device__ inline void add_voxel(const struct ndt_gpu_job &job, const float near_m[3], uint32_t id,
                                        struct ndt_point_sums_f *sums, float *K)
{
    const float4 *words = (const float4 *)(const void *)(job.level.voxels + id);
    const float4 a = words[0], b = words[1], c = words[2];
    const float mean_m[3] = {a.x, a.y, a.z};
    const float icov[6] = {a.w, b.x, b.y, b.z, b.w, c.x};
    const int32_t cell[3] = {__float_as_int(c.y), __float_as_int(c.z), __float_as_int(c.w)};
    float q[3];
    for (int k = 0; k < 3; k++)
        q[k] = (near_m[k] - (float)(cell[k] - job.near_cell[k]) * job.level.leaf_m) - mean_m[k];
    const float e = ndt_add_pair_f(sums, q, icov, job.level.d1d2, job.level.d2);
    if (K)
        ndt_add_normal_f(K, icov, -job.level.d1d2 * e);
}

/* Adds all pairs of one point; returns their number. */
static __device__ inline uint32_t add_neighbours(const struct ndt_gpu_job &job, const float near_m[3],
                                                 struct ndt_point_sums_f *sums, float *K = nullptr)
{
    const struct place place = find_place(job, near_m);
    const uint32_t length = list_length(place.ref, job.neighbours), padded = place.ref.padded;
    const uint32_t *list = job.level.lists + (size_t)place.ref.offset * 8;
    const float *means = (const float *)(const void *)list;
    const float r2 = job.level.leaf_m * job.level.leaf_m;
    uint32_t pairs = 0;
    for (uint32_t k = 0; k < length; k++) {
        if (job.neighbours == NDT_RADIUS) {
            const float dx = place.inside_m[0] - means[k], dy = place.inside_m[1] - means[padded + k];
            const float dz = place.inside_m[2] - means[2 * padded + k];
            if (!(dx * dx + dy * dy + dz * dz <= r2))
                continue;
        }
        add_voxel(job, near_m, list[3 * padded + k], sums, K);
        pairs++;
    }
    return pairs;
}

/* Moves point i and adds its pairs; returns their number. */
static __device__ inline uint32_t meet_voxels(const struct ndt_gpu_job &job, const struct ndt_tables_f *tables,
                                              uint32_t i, float x[3], struct ndt_point_sums_f *sums,
                                              float *K = nullptr)
{
    float near_m[3];
    load_point(job, i, x);
    for (int k = 0; k < 3; k++)
        near_m[k] = ndt_dot_f(tables->R + 3 * k, x) + job.t_m[k];
    return add_neighbours(job, near_m, sums, K);
}

/* Adds the terms of a point that has pairs to `values`, which are zero before. */
static __device__ inline void add_terms(const struct ndt_tables_f *tables, const float x[3],
                                        const struct ndt_point_sums_f *sums, uint32_t pairs,
                                        float values[NDT_GPU_ROW])
{
    values[NDT_GPU_SCORE] = sums->score;
    values[NDT_GPU_NEAREST] = sums->best;
    values[NDT_GPU_MATCHED] = 1.0f;
    values[NDT_GPU_PAIRS] = (float)pairs;
    ndt_add_point_f(tables, x, sums, values + NDT_GPU_GRADIENT, values + NDT_GPU_HESSIAN);
}

/* Adds the terms of point i to `values`, which are zero before. */
static __device__ inline void eval_point(const struct ndt_gpu_job &job, const struct ndt_tables_f *tables,
                                         uint32_t i, float values[NDT_GPU_ROW])
{
    float x[3];
    struct ndt_point_sums_f sums = {};
    const uint32_t pairs = meet_voxels(job, tables, i, x, &sums);
    if (pairs > 0)
        add_terms(tables, x, &sums, pairs, values);
}

#endif

/** @file
 * @brief One point in registers: from the moved point to the voxels around it (the two-level index of ndt/map.h,
 * dense or hashed, and the neighbour list of the point's cell, with the steps and roundings of the CPU backend),
 * and to its terms in the 31 sums. */
#ifndef NDT_EVAL_POINT_CUH
#define NDT_EVAL_POINT_CUH

#include "point_device.cuh"

struct place {
    float inside_m[3]; /* place relative to the corner of the point's own cell */
    struct ndt_cell_ref ref;
};

/* Loads from the map, which does not change while a kernel runs: the cache for constants may be used (PTX ISA,
 * ld.global.nc). */
template <class T> static __device__ inline T load_map(const T *at)
{
    return __ldg(at);
}

static __device__ inline uint32_t hashed_brick(const struct ndt_gpu_level &level, const int32_t brick[3])
{
    uint64_t key = (uint64_t)1 << 63;
    for (int k = 0; k < 3; k++)
        key |= (uint64_t)(uint32_t)(brick[k] + 1048576) << (21 * k);
    uint64_t at = key * 0x9e3779b97f4a7c15u;
    at ^= at >> 29;
    const uint64_t mask = level.brick_slots - 1;
    for (at &= mask;; at = (at + 1) & mask) {
        const uint64_t seen = load_map(level.brick_keys + at);
        if (seen == key)
            return load_map(level.bricks + at);
        if (seen == 0)
            return 0;
    }
}

/* Number of the cell's brick; 0, the empty brick, for cells outside of the map. */
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
    return level.hashed ? hashed_brick(level, brick) : load_map(level.bricks + slot);
}

static __device__ inline struct ndt_cell_ref load_cell(const struct ndt_cell_ref *at)
{
    static_assert(sizeof(*at) == 2 * sizeof(uint32_t), "two words");
    const uint32_t *words = (const uint32_t *)(const void *)at;
    const uint32_t lengths = load_map(words + 1);
    return {load_map(words), (uint8_t)lengths, (uint8_t)(lengths >> 8), (uint8_t)(lengths >> 16),
            (uint8_t)(lengths >> 24)};
}

/* Finds the cell of a point. near_m: the point relative to the corner of near_cell. Points that are not finite or
 * absurdly far have no list. */
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
    place.ref = load_cell(job.level.cells + brick * 512 + (size_t)inner);
    return place;
}

static __device__ inline uint32_t list_length(const struct ndt_cell_ref &ref, int32_t neighbours)
{
    return neighbours == NDT_DIRECT1 ? ref.n1 : neighbours == NDT_DIRECT7 ? ref.n7 : ref.n27;
}

/* The first 48 bytes of a voxel record. */
struct voxel_words {
    float4 a, b, c;
};

static __device__ inline struct voxel_words load_voxel(const struct ndt_gpu_level &level, uint32_t id)
{
    const float4 *words = (const float4 *)(const void *)(level.voxels + id);
    return {load_map(words), load_map(words + 1), load_map(words + 2)};
}

/* Adds a voxel. K: sums for the information, NULL: not wanted. */
static __device__ inline void add_voxel(const struct ndt_gpu_job &job, const float near_m[3],
                                        const struct voxel_words &voxel, struct ndt_point_sums_f *sums, float *K)
{
    const float4 &a = voxel.a, &b = voxel.b, &c = voxel.c;
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

/* Removes the lowest bit and returns the voxel of its entry; the null voxel if there is none. */
static __device__ inline uint32_t take_voxel(const uint32_t *ids, uint32_t *hits)
{
    if (*hits == 0)
        return 0;
    const uint32_t below = *hits - 1, entry = (uint32_t)__popc(~*hits & below);
    *hits &= below;
    return load_map(ids + entry);
}

/* Adds the voxels of the entries in `hits`, from the lowest bit on; returns their number. The record of the next
 * voxel and the number of the one after it are loaded meanwhile. */
static __device__ inline uint32_t add_hits(const struct ndt_gpu_job &job, const float near_m[3],
                                           const uint32_t *ids, uint32_t hits, struct ndt_point_sums_f *sums,
                                           float *K)
{
    const uint32_t pairs = (uint32_t)__popc(hits);
    if (pairs == 0)
        return 0;
    struct voxel_words voxel = load_voxel(job.level, take_voxel(ids, &hits));
    uint32_t next_id = take_voxel(ids, &hits);
#pragma unroll 2
    for (uint32_t k = 0; k < pairs; k++) {
        const struct voxel_words next = load_voxel(job.level, next_id);
        next_id = take_voxel(ids, &hits);
        add_voxel(job, near_m, voxel, sums, K);
        voxel = next;
    }
    return pairs;
}

/* Eight entries of a list. */
struct entries {
    float mean_m[3][8];
};

static __device__ inline struct entries load_entries(const float *means, uint32_t padded)
{
    struct entries out;
#pragma unroll
    for (uint32_t i = 0; i < 6; i++) {
        const float4 four = load_map((const float4 *)(const void *)(means + i / 2 * padded) + i % 2);
        float *to = out.mean_m[i / 2] + i % 2 * 4;
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    }
    return out;
}

/* Returns the entries within the radius, of eight, as bits. */
static __device__ inline uint32_t bits_within(const struct entries &entries, const float inside_m[3], float r2)
{
    uint32_t hits = 0;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const float dx = inside_m[0] - entries.mean_m[0][i], dy = inside_m[1] - entries.mean_m[1][i];
        const float dz = inside_m[2] - entries.mean_m[2][i];
        hits |= dx * dx + dy * dy + dz * dz <= r2 ? 1u << i : 0;
    }
    return hits;
}

/* Returns the entries within the radius, of the first `count` of a list (at most 32), as bits. Entries between
 * the last one and the next multiple of eight are padding, far away. Sixteen are loaded at a time. */
static __device__ inline uint32_t entries_within(const float *means, uint32_t padded, uint32_t count,
                                                 const float inside_m[3], float r2)
{
    uint32_t hits = 0;
    struct entries next = load_entries(means, padded);
    for (uint32_t k = 0; k < count; k += 8) {
        const struct entries here = next;
        next = load_entries(k + 8 < count ? means + k + 8 : means, padded);
        hits |= bits_within(here, inside_m, r2) << k;
    }
    return hits;
}

/* Adds all pairs of one point, in the order of the list; returns their number. */
static __device__ inline uint32_t add_neighbours(const struct ndt_gpu_job &job, const float near_m[3],
                                                 struct ndt_point_sums_f *sums, float *K = nullptr)
{
    const struct place place = find_place(job, near_m);
    const uint32_t length = list_length(place.ref, job.neighbours), padded = place.ref.padded;
    const uint32_t *list = job.level.lists + (size_t)place.ref.offset * 8;
    const float r2 = job.level.leaf_m * job.level.leaf_m;
    uint32_t pairs = 0;
    for (uint32_t first = 0; first < length; first += 32) {
        const uint32_t count = length - first < 32 ? length - first : 32;
        uint32_t hits = 0xffffffffu >> (32 - count);
        if (job.neighbours == NDT_RADIUS)
            hits &= entries_within((const float *)(const void *)list + first, padded, count, place.inside_m, r2);
        pairs += add_hits(job, near_m, list + 3 * padded + first, hits, sums, K);
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
    const uint32_t pairs = add_neighbours(job, near_m, sums, K);
    return pairs;
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

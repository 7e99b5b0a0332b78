/** @file
 * @brief Preprocessing: the raw points of a scan become the points that are matched, bit for bit those of
 * ndt_preprocess.
 *
 * This file is compiled without contraction (-fmad=false).
 *
 *  - place: crops, corrects ranges, deskews and finds the cell of each point. The hash table has one word per slot:
 * the round (the number of the scan) and the first point of the cell. Slots of other rounds count as empty, so that
 * the table is not cleared between scans.
 *  - add: integer sums per cell, in any order; counts the cells that begin in each block of points.
 *  - list: the first points of the cells, in ascending order.
 *  - sample: the sample, its means and its second moments.
 *
 * Without the voxel filter every usable point is a cell. `again` deskews the sample with another motion. `begin`
 * copies the number of points and the rotation scale, which only the device knows, to the items of a batch. */
#include <cuda_runtime.h>

#include "coherent.cuh"
#include "kernels.h"

#define NDT_DEVICE  __device__
#define NDT_INLINED static __device__ inline
#include "ndt/preprocess_math.h"
#include "ndt/newton_steps.h"

enum { NO_CELL = 0xffffffffu };
enum { MOMENTS = 7 }; /* six and the number of points */

typedef unsigned long long word;

static __device__ inline uint32_t point_of_thread()
{
    return blockIdx.x * (uint32_t)NDT_GPU_BLOCK + threadIdx.x;
}

/* Loads a word that other threads of the same launch have written. */
static __device__ inline word load_word(const word *at)
{
    return *(const volatile word *)at;
}

/* ---- place ---- */

/* Finds the slot of the cell with this key; point i is in the cell, and its key is written. */
static __device__ inline uint32_t find_slot(const struct ndt_gpu_preprocess *work, word key, uint32_t i)
{
    const uint32_t mask = (1u << work->slot_bits) - 1;
    const word mine = (word)work->round << 32 | i;
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - work->slot_bits));
    for (;; at = (at + 1) & mask) { /* half of the slots stay empty */
        word seen = load_word(&work->slots[at]);
        if (seen >> 32 != work->round) {
            const word before = seen;
            seen = atomicCAS(&work->slots[at], before, mine);
            if (seen == before)
                return at;
        }
        __threadfence(); /* the key was written before the slot */
        if (load_word(&work->keys[(uint32_t)seen]) != key)
            continue;
        if (mine < seen)
            (void)atomicMin(&work->slots[at], mine);
        return at;
    }
}

static __device__ inline uint32_t place_point(const struct ndt_gpu_preprocess *work, uint32_t i)
{
    const struct ndt_preprocess_plan *plan = &work->plan;
    float p_m[3] = {work->raw[0][i], work->raw[1][i], work->raw[2][i]};
    const float given_s = plan->deskew == NDT_DESKEW_TIME ? work->raw[3][i] : 0;
    const float time_s = ndt_preprocess_time(plan, p_m[0], p_m[1], given_s);
    uint32_t parts[4];
    uint64_t key;
    if (!ndt_preprocess_is_usable(plan, p_m, time_s))
        return NO_CELL;
    if (plan->range_offset_m != 0)
        ndt_preprocess_lengthen(plan->range_offset_m, p_m);
    if (plan->deskew != NDT_DESKEW_OFF)
        ndt_preprocess_move(plan, time_s, p_m);
    for (int k = 0; k < 3; k++)
        work->raw[k][i] = p_m[k];
    work->raw[3][i] = time_s;
    if (!plan->filtered)
        return i;
    if (!ndt_preprocess_place(plan, p_m, time_s, &key, parts))
        return NO_CELL;
    work->keys[i] = key;
    __threadfence(); /* the key is there before the slot names it */
    return find_slot(work, key, i);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK)
    ndt_preprocess_place_points(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *work = job.preprocess;
    const uint32_t i = point_of_thread();
    if (i >= work->count)
        return;
    for (int k = 0; k < 4; k++)
        work->sums[4 * (size_t)i + (size_t)k] = 0;
    work->sizes[i] = 0;
    work->cell_of[i] = place_point(work, i);
}

/* ---- add ---- */

static __device__ inline uint32_t add_point(const struct ndt_gpu_preprocess *work, uint32_t i)
{
    const uint32_t at = work->cell_of[i];
    if (at == NO_CELL || !work->plan.filtered)
        return at;
    const uint32_t first = (uint32_t)work->slots[at];
    const float p_m[3] = {work->raw[0][i], work->raw[1][i], work->raw[2][i]};
    uint32_t parts[4];
    uint64_t key;
    (void)ndt_preprocess_place(&work->plan, p_m, work->raw[3][i], &key, parts);
    for (int k = 0; k < 4; k++)
        (void)atomicAdd(&work->sums[4 * (size_t)first + (size_t)k], (word)parts[k]);
    (void)atomicAdd(&work->sizes[first], 1u);
    work->cell_of[i] = first;
    return first;
}

/* Whether this block is the last of the grid to arrive; the same value for all its threads. */
static __device__ inline bool is_last_block(struct ndt_gpu_preprocess_state *state)
{
    __shared__ uint32_t place;
    __threadfence(); /* all see the writes of this block before it is counted */
    __syncthreads(); /* every thread has written its part */
    if (threadIdx.x == 0)
        place = atomicAdd(&state->ticket, 1u);
    __syncthreads(); /* place is known */
    if (place != gridDim.x - 1)
        return false;
    if (threadIdx.x == 0)
        state->ticket = 0; /* for the next launch */
    __threadfence();
    return true;
}

enum { AHEAD = 8 }; /* loads under way at a time */

/* Loads numbers i .. i + AHEAD - 1 of an array that other blocks wrote; zero from `end` on. */
static __device__ inline void load_ahead(const uint32_t *array, uint32_t i, uint32_t end, uint32_t next[AHEAD])
{
#pragma unroll
    for (uint32_t k = 0; k < AHEAD; k++)
        next[k] = i + k < end ? load_coherent(array + i + k) : 0;
}

/* Computes the exclusive prefix sum of the cells per block, and their total. Runs in one block; each thread sums a
 * stretch. */
static __device__ inline void add_up_blocks(const struct ndt_gpu_preprocess *work)
{
    __shared__ uint32_t stretch[NDT_GPU_BLOCK];
    const uint32_t length = (work->blocks + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK;
    const uint32_t begin = threadIdx.x * length, after = begin + length;
    const uint32_t end = after < work->blocks ? after : work->blocks;
    uint32_t *cells = work->block_cells;
    uint32_t sum = 0, next[AHEAD];
    for (uint32_t i = begin; i < end; i += AHEAD) {
        load_ahead(cells, i, end, next);
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; k++)
            sum += next[k];
    }
    stretch[threadIdx.x] = sum;
    __syncthreads(); /* all stretches are there */
    uint32_t before = 0;
    for (uint32_t i = 0; i < threadIdx.x; i++)
        before += stretch[i];
    if (threadIdx.x == NDT_GPU_BLOCK - 1)
        work->state->cells = before + sum;
    for (uint32_t i = begin; i < end; i += AHEAD) {
        load_ahead(cells, i, end, next);
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; k++) {
            if (i + k < end)
                cells[i + k] = before;
            before += next[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_add_points(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *work = job.preprocess;
    const uint32_t i = point_of_thread();
    const bool is_first = i < work->count && add_point(work, i) == i;
    const int cells = __syncthreads_count(is_first);
    if (threadIdx.x == 0)
        work->block_cells[blockIdx.x] = (uint32_t)cells;
    if (is_last_block(work->state))
        add_up_blocks(work);
}

/* ---- list ---- */

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_list_cells(const struct ndt_gpu_job job)
{
    __shared__ uint32_t warp_cells[NDT_GPU_WARPS];
    const struct ndt_gpu_preprocess *work = job.preprocess;
    const uint32_t i = point_of_thread(), lane = threadIdx.x % NDT_GPU_WARP, warp = threadIdx.x / NDT_GPU_WARP;
    const bool is_first = i < work->count && work->cell_of[i] == i;
    const uint32_t firsts = __ballot_sync(0xffffffffu, is_first);
    if (lane == 0)
        warp_cells[warp] = (uint32_t)__popc(firsts);
    __syncthreads(); /* all warps have counted */
    uint32_t number = work->block_cells[blockIdx.x] + (uint32_t)__popc(firsts & ((1u << lane) - 1));
    for (uint32_t k = 0; k < warp; k++)
        number += warp_cells[k];
    if (is_first)
        work->firsts[number] = i;
}

/* ---- sample ---- */

/* Writes point j of the scan; columns are whole blocks. */
static __device__ inline void store_point(const struct ndt_gpu_preprocess *work, uint32_t count, uint32_t j,
                                          const float p_m[3])
{
    const uint32_t blocks = (count + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK;
    for (int k = 0; k < 3; k++)
        work->scan[(size_t)k * blocks * NDT_GPU_BLOCK + j] = p_m[k];
}

/* Sums one lane's moments as ndt_second_moments does; NDT_MOMENT_LANES threads of the block. */
static __device__ inline void moments_of_lane(const struct ndt_gpu_preprocess *work, uint32_t count, uint32_t lane,
                                              double sum[MOMENTS])
{
    const size_t column = (size_t)((count + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK) * NDT_GPU_BLOCK;
    for (uint32_t first = lane; first < count; first += AHEAD * NDT_MOMENT_LANES) {
        float next[AHEAD][3];
#pragma unroll
        for (uint32_t k = 0; k < 3 * AHEAD; k++) {
            const uint32_t j = first + k / 3 * NDT_MOMENT_LANES;
            next[k / 3][k % 3] = j < count ? load_coherent(work->scan + k % 3 * column + j) : 0;
        }
#pragma unroll
        for (uint32_t k = 0; k < AHEAD; k++)
            if (first + k * NDT_MOMENT_LANES < count)
                ndt_moments_add(sum, next[k][0], next[k][1], next[k][2]);
    }
}

/* Stores the number of points and the second moments, for the alignments that follow. One block. */
static __device__ inline void store_scan_summary(const struct ndt_gpu_preprocess *work, uint32_t count)
{
    __shared__ double lanes[NDT_MOMENT_LANES][MOMENTS], total[MOMENTS];
    struct ndt_gpu_scan *scan = &work->state->scan;
    double sum[MOMENTS] = {};
    if (threadIdx.x < NDT_MOMENT_LANES) {
        moments_of_lane(work, count, threadIdx.x, sum);
        for (int k = 0; k < MOMENTS; k++)
            lanes[threadIdx.x][k] = sum[k];
    }
    __syncthreads(); /* all lanes are there */
    if (threadIdx.x < MOMENTS) {
        double all = 0;
        for (int lane = 0; lane < NDT_MOMENT_LANES; lane++)
            all += lanes[lane][threadIdx.x];
        total[threadIdx.x] = all;
    }
    __syncthreads(); /* the totals are there */
    if (threadIdx.x < 6)
        scan->second_m2[threadIdx.x] = total[6] > 0 ? total[threadIdx.x] / total[6] : 0;
    if (threadIdx.x == 0) {
        scan->count = count;
        scan->blocks = count > 0 ? (count + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK : 1;
    }
}

static __device__ inline void mean_of_cell(const struct ndt_gpu_preprocess *work, uint32_t first, float out[4])
{
    const struct ndt_preprocess_plan *plan = &work->plan;
    const word *sums = work->sums + 4 * (size_t)first;
    const double weight = ndt_filter_weight(work->sizes[first]);
    for (int k = 0; k < 3; k++)
        out[k] = ndt_filter_mean(ndt_filter_cell(work->keys[first], k), sums[k], weight, plan->voxel_m);
    out[3] = ndt_filter_mean_time(plan->times, sums[3], weight);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_sample(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *work = job.preprocess;
    const uint32_t cells = work->state->cells, wanted = work->plan.wanted, j = point_of_thread();
    const uint32_t count = wanted > 0 && wanted < cells ? wanted : cells;
    if (j < count) {
        const uint32_t pick = count < cells ? ndt_sample_pick(work->plan.seed, j, count, cells) : j;
        const uint32_t first = work->firsts[pick];
        float point[4] = {work->raw[0][first], work->raw[1][first], work->raw[2][first], work->raw[3][first]};
        if (work->plan.filtered)
            mean_of_cell(work, first, point);
        for (int k = 0; k < 4; k++)
            work->sampled[k][j] = point[k];
        store_point(work, count, j, point);
    }
    if (is_last_block(work->state))
        store_scan_summary(work, count);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_move_again(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *work = job.preprocess;
    const uint32_t count = work->state->scan.count, j = point_of_thread();
    if (j < count) {
        float p_m[3] = {work->sampled[0][j], work->sampled[1][j], work->sampled[2][j]};
        if (work->plan.deskew != NDT_DESKEW_OFF)
            ndt_preprocess_move(&work->plan, work->sampled[3][j], p_m);
        store_point(work, count, j, p_m);
    }
    if (is_last_block(work->state))
        store_scan_summary(work, count);
}

/* ---- begin ---- */

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK)
    ndt_preprocess_begin_solves(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_scan *scan = &job.preprocess->state->scan;
    const uint32_t i = point_of_thread();
    if (i >= (uint32_t)job.batch->item_count)
        return;
    struct ndt_gpu_item *item = job.batch->items + i;
    item->count = scan->count;
    item->blocks = scan->blocks;
    set_rotation_scale(&item->newton, scan->second_m2);
}

extern "C" const void *ndt_kernel_preprocess_place(void)
{
    return (const void *)ndt_preprocess_place_points;
}

extern "C" const void *ndt_kernel_preprocess_add(void)
{
    return (const void *)ndt_preprocess_add_points;
}

extern "C" const void *ndt_kernel_preprocess_list(void)
{
    return (const void *)ndt_preprocess_list_cells;
}

extern "C" const void *ndt_kernel_preprocess_sample(void)
{
    return (const void *)ndt_preprocess_sample;
}

extern "C" const void *ndt_kernel_preprocess_again(void)
{
    return (const void *)ndt_preprocess_move_again;
}

extern "C" const void *ndt_kernel_preprocess_begin(void)
{
    return (const void *)ndt_preprocess_begin_solves;
}

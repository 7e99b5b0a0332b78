/* Preprocessing: the raw points of a scan become the points that are matched, bit for bit those of ndt_preprocess.
 * This file is compiled without contraction (-fmad=false).
 *
 *  - place: crop, motion, cell. Cells are found in a table of one word per slot: the round (a scan) and the first
 * point of the cell; what is left from other rounds counts as empty, so that nothing is cleared.
 *  - add: whole-number sums of the cells, in any order; the cells that begin in each block of points are counted.
 *  - list: the first points of the cells, in their order.
 *  - take: the sample, its means, its second moments.
 *
 * Without the voxel filter every usable point is a cell. `again` moves the sample with another motion. `begin`
 * hands what only the device knows, the number of points and the levers, to the searches of a batch. */
#include <cuda_runtime.h>

#include "kernels.h"

#define NDT_DEVICE  __device__
#define NDT_INLINED static __device__ inline
#include "ndt/preprocess_math.h"
#include "ndt/newton_steps.h"

enum { NO_CELL = 0xffffffffu };
enum { MOMENTS = 7 }; /* six and the number of points */

typedef unsigned long long word;

static __device__ inline uint32_t plan_point()
{
    return blockIdx.x * (uint32_t)NDT_GPU_BLOCK + threadIdx.x;
}

/* Written by other threads of the same launch. */
static __device__ inline word load_word(const word *at)
{
    return *(const volatile word *)at;
}

/* ---- place ---- */

/* The slot of the cell with this key; point i is one of the cell's and its key is written. */
static __device__ inline uint32_t find_slot(const struct ndt_gpu_preprocess *plan, word key, uint32_t i)
{
    const uint32_t mask = (1u << plan->slot_bits) - 1;
    const word mine = (word)plan->round << 32 | i;
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - plan->slot_bits));
    for (;; at = (at + 1) & mask) { /* half of the slots stay empty */
        word seen = load_word(&plan->slots[at]);
        if (seen >> 32 != plan->round) {
            const word before = seen;
            seen = atomicCAS(&plan->slots[at], before, mine);
            if (seen == before)
                return at;
        }
        __threadfence(); /* whoever wrote the slot wrote the key before */
        if (load_word(&plan->keys[(uint32_t)seen]) != key)
            continue;
        if (mine < seen)
            (void)atomicMin(&plan->slots[at], mine);
        return at;
    }
}

static __device__ inline uint32_t place_point(const struct ndt_gpu_preprocess *plan, uint32_t i)
{
    const struct ndt_preprocess_plan *rules = &plan->rules;
    float p_m[3] = {plan->raw[0][i], plan->raw[1][i], plan->raw[2][i]};
    const float given_s = rules->deskew == NDT_DESKEW_TIME ? plan->raw[3][i] : 0;
    const float time_s = ndt_preprocess_time(rules, p_m[0], p_m[1], given_s);
    uint32_t parts[4];
    uint64_t key;
    if (!ndt_preprocess_is_usable(rules, p_m, time_s))
        return NO_CELL;
    if (rules->deskew != NDT_DESKEW_OFF)
        ndt_preprocess_move(rules, time_s, p_m);
    for (int k = 0; k < 3; k++)
        plan->raw[k][i] = p_m[k];
    plan->raw[3][i] = time_s;
    if (!rules->filtered)
        return i;
    if (!ndt_preprocess_place(rules, p_m, time_s, &key, parts))
        return NO_CELL;
    *(volatile word *)&plan->keys[i] = key;
    __threadfence(); /* the key is there before the slot names it */
    return find_slot(plan, key, i);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK)
    ndt_preprocess_place_points(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *plan = job.preprocess;
    const uint32_t i = plan_point();
    if (i >= plan->count)
        return;
    for (int k = 0; k < 4; k++)
        plan->sums[4 * (size_t)i + (size_t)k] = 0;
    plan->sizes[i] = 0;
    plan->cell_of[i] = place_point(plan, i);
}

/* ---- add ---- */

static __device__ inline uint32_t add_point(const struct ndt_gpu_preprocess *plan, uint32_t i)
{
    const uint32_t at = plan->cell_of[i];
    if (at == NO_CELL || !plan->rules.filtered)
        return at;
    const uint32_t first = (uint32_t)plan->slots[at];
    const float p_m[3] = {plan->raw[0][i], plan->raw[1][i], plan->raw[2][i]};
    uint32_t parts[4];
    uint64_t key;
    (void)ndt_preprocess_place(&plan->rules, p_m, plan->raw[3][i], &key, parts);
    for (int k = 0; k < 4; k++)
        (void)atomicAdd(&plan->sums[4 * (size_t)first + (size_t)k], (word)parts[k]);
    (void)atomicAdd(&plan->sizes[first], 1u);
    plan->cell_of[i] = first;
    return first;
}

/* Whether this block is the last of the grid to come here; all its threads get the answer. */
static __device__ inline bool is_last_block(struct ndt_gpu_preprocess_state *state)
{
    __shared__ uint32_t place;
    __threadfence(); /* what this block wrote is seen by all before it is counted */
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

/* The cells of all blocks before, for each block, and of all together. One block, which gives each thread a
 * stretch. */
static __device__ inline void add_up_blocks(const struct ndt_gpu_preprocess *plan)
{
    __shared__ uint32_t stretch[NDT_GPU_BLOCK];
    const uint32_t length = (plan->blocks + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK;
    const uint32_t begin = threadIdx.x * length, after = begin + length;
    const uint32_t end = after < plan->blocks ? after : plan->blocks;
    volatile uint32_t *cells = plan->block_cells;
    uint32_t sum = 0;
    for (uint32_t i = begin; i < end; i++)
        sum += cells[i];
    stretch[threadIdx.x] = sum;
    __syncthreads(); /* all stretches are there */
    uint32_t before = 0;
    for (uint32_t i = 0; i < threadIdx.x; i++)
        before += stretch[i];
    if (threadIdx.x == NDT_GPU_BLOCK - 1)
        plan->state->cells = before + sum;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t here = cells[i];
        cells[i] = before;
        before += here;
    }
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_add_points(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *plan = job.preprocess;
    const uint32_t i = plan_point();
    const bool is_first = i < plan->count && add_point(plan, i) == i;
    const int cells = __syncthreads_count(is_first);
    if (threadIdx.x == 0)
        plan->block_cells[blockIdx.x] = (uint32_t)cells;
    if (is_last_block(plan->state))
        add_up_blocks(plan);
}

/* ---- list ---- */

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_list_cells(const struct ndt_gpu_job job)
{
    __shared__ uint32_t warp_cells[NDT_GPU_WARPS];
    const struct ndt_gpu_preprocess *plan = job.preprocess;
    const uint32_t i = plan_point(), lane = threadIdx.x % NDT_GPU_WARP, warp = threadIdx.x / NDT_GPU_WARP;
    const bool is_first = i < plan->count && plan->cell_of[i] == i;
    const uint32_t firsts = __ballot_sync(0xffffffffu, is_first);
    if (lane == 0)
        warp_cells[warp] = (uint32_t)__popc(firsts);
    __syncthreads(); /* all warps have counted */
    uint32_t number = plan->block_cells[blockIdx.x] + (uint32_t)__popc(firsts & ((1u << lane) - 1));
    for (uint32_t k = 0; k < warp; k++)
        number += warp_cells[k];
    if (is_first)
        plan->firsts[number] = i;
}

/* ---- take ---- */

/* Where point j of the scan goes; columns are whole blocks. */
static __device__ inline void store_point(const struct ndt_gpu_preprocess *plan, uint32_t count, uint32_t j,
                                          const float p_m[3])
{
    const uint32_t blocks = (count + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK;
    for (int k = 0; k < 3; k++)
        plan->scan[(size_t)k * blocks * NDT_GPU_BLOCK + j] = p_m[k];
}

/* One lane's sums, as ndt_second_moments has them; NDT_MOMENT_LANES threads of the block. */
static __device__ inline void moments_of_lane(const struct ndt_gpu_preprocess *plan, uint32_t count, uint32_t lane,
                                              double sum[MOMENTS])
{
    const size_t column = (size_t)((count + NDT_GPU_BLOCK - 1) / NDT_GPU_BLOCK) * NDT_GPU_BLOCK;
    const volatile float *scan = plan->scan; /* other blocks wrote it */
    for (uint32_t j = lane; j < count; j += NDT_MOMENT_LANES)
        ndt_moments_add(sum, scan[j], scan[column + j], scan[2 * column + j]);
}

/* What searches will want to know. One block. */
static __device__ inline void tell_scan(const struct ndt_gpu_preprocess *plan, uint32_t count)
{
    __shared__ double lanes[NDT_MOMENT_LANES][MOMENTS], total[MOMENTS];
    struct ndt_gpu_scan *scan = &plan->state->scan;
    double sum[MOMENTS] = {};
    if (threadIdx.x < NDT_MOMENT_LANES) {
        moments_of_lane(plan, count, threadIdx.x, sum);
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

static __device__ inline void take_cell(const struct ndt_gpu_preprocess *plan, uint32_t first, float out[4])
{
    const struct ndt_preprocess_plan *rules = &plan->rules;
    const word *sums = plan->sums + 4 * (size_t)first;
    const double weight = ndt_filter_weight(plan->sizes[first]);
    for (int k = 0; k < 3; k++)
        out[k] = ndt_filter_mean(ndt_filter_cell(plan->keys[first], k), sums[k], weight, rules->voxel_m);
    out[3] = ndt_filter_mean_time(rules->times, sums[3], weight);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_take_sample(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *plan = job.preprocess;
    const uint32_t cells = plan->state->cells, wanted = plan->rules.wanted, j = plan_point();
    const uint32_t count = wanted > 0 && wanted < cells ? wanted : cells;
    if (j < count) {
        const uint32_t pick = count < cells ? ndt_sample_pick(plan->rules.seed, j, count, cells) : j;
        const uint32_t first = plan->firsts[pick];
        float point[4] = {plan->raw[0][first], plan->raw[1][first], plan->raw[2][first], plan->raw[3][first]};
        if (plan->rules.filtered)
            take_cell(plan, first, point);
        for (int k = 0; k < 4; k++)
            plan->sampled[k][j] = point[k];
        store_point(plan, count, j, point);
    }
    if (is_last_block(plan->state))
        tell_scan(plan, count);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_preprocess_move_again(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_preprocess *plan = job.preprocess;
    const uint32_t count = plan->state->scan.count, j = plan_point();
    if (j < count) {
        float p_m[3] = {plan->sampled[0][j], plan->sampled[1][j], plan->sampled[2][j]};
        if (plan->rules.deskew != NDT_DESKEW_OFF)
            ndt_preprocess_move(&plan->rules, plan->sampled[3][j], p_m);
        store_point(plan, count, j, p_m);
    }
    if (is_last_block(plan->state))
        tell_scan(plan, count);
}

/* ---- begin ---- */

extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK)
    ndt_preprocess_begin_solves(const struct ndt_gpu_job job)
{
    const struct ndt_gpu_scan *scan = &job.preprocess->state->scan;
    const uint32_t i = plan_point();
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

extern "C" const void *ndt_kernel_preprocess_take(void)
{
    return (const void *)ndt_preprocess_take_sample;
}

extern "C" const void *ndt_kernel_preprocess_again(void)
{
    return (const void *)ndt_preprocess_move_again;
}

extern "C" const void *ndt_kernel_preprocess_begin(void)
{
    return (const void *)ndt_preprocess_begin_solves;
}

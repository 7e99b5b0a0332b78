/** @file
 * @brief Common code of the resident kernels: one pass over the points of one alignment, and the step of Newton's
 * method after it.
 *
 * Newton's method itself is the host's code, ndt/newton_steps.h. */
#ifndef NDT_SOLVE_DEVICE_CUH
#define NDT_SOLVE_DEVICE_CUH

#include "cell_device.cuh"
#include "eval_point.cuh"
#include "reduce.cuh"

#define NDT_DEVICE  __device__
#define NDT_APART   static __device__ __noinline__
#define NDT_INLINED static __device__ inline
struct eigen6;
static __device__ inline struct eigen6 *eigen6_of_block();
static __device__ inline void eigen6_solve(struct eigen6 *e);
#define EIGEN6_PLACE(name) struct eigen6 *const name = eigen6_of_block()
#include "ndt/newton_steps.h"

/* ---- eigenvalues by the lanes of a warp ---- */

static __device__ inline struct eigen6 *eigen6_of_block()
{
    __shared__ struct eigen6 of_block;
    return &of_block;
}

enum { EIGEN6_FIRST = 1 }; /* lane; the one before is busy with the step */
static const unsigned EIGEN6_MASK = 0xfffffffeu;
static_assert(EIGEN6_FIRST + EIGEN6_LANES <= NDT_GPU_WARP, "lanes of a warp");

/* Meets the other lanes, from different places of the code: a function of its own, so that all lanes wait at one
 * place. */
NDT_APART void eigen6_meet()
{
    __syncwarp(); /* all writes are visible */
}

/* Computes, by the other lanes, the eigenvalues of the matrix from the first lane. */
static __device__ inline void eigen6_by_lanes(struct eigen6 *e)
{
    const int lane = (int)(threadIdx.x % (unsigned)NDT_GPU_WARP) - EIGEN6_FIRST;
    int has_turned = 1;
    if (lane < EIGEN6_LANES)
        eigen6_begin(e, lane);
    for (int sweep = 0; has_turned && sweep < EIGEN6_SWEEPS; sweep++) {
        has_turned = 0;
        for (int round = 0; round < EIGEN6_ROUNDS; round++) {
            if (lane < EIGEN6_PAIRS)
                eigen6_turn(e, round, lane);
            __syncwarp(EIGEN6_MASK); /* the angles are there */
            const int turns = eigen6_has_turned(e);
            has_turned |= turns;
            if (turns && lane < EIGEN6_LANES)
                eigen6_apply(e, round, lane);
            __syncwarp(EIGEN6_MASK); /* the matrix is turned */
        }
    }
    if (lane < 6)
        eigen6_sort(e, lane);
}

/* Asks for eigenvalues, by the first lane, deep in a Newton step. */
static __device__ inline void eigen6_solve(struct eigen6 *e)
{
    e->is_wanted = 1;
    eigen6_meet();
    eigen6_meet(); /* the answer is there */
}

/* Ends the step of the first lane. */
static __device__ inline void eigen6_dismiss()
{
    eigen6_of_block()->is_wanted = 0;
    eigen6_meet();
}

/* Rotates with the first lane, by lanes of its warp that have no step of their own. */
static __device__ inline void eigen6_help()
{
    struct eigen6 *e = eigen6_of_block();
    for (eigen6_meet(); e->is_wanted; eigen6_meet()) {
        eigen6_by_lanes(e);
        eigen6_meet();
    }
}

/* Microseconds on a clock of the device; for timing rows only. */
static __device__ inline double device_clock_us()
{
#ifdef EMULATED_CUDA_RUNTIME_H
    return ndt_clock_us();
#else
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return (double)ns * 1e-3;
#endif
}

/* Shared by the threads of a block while they work on an item. */
struct pass_state {
    struct ndt_gpu_job view; /* job of the item, for the code of `fused` */
    struct ndt_tables_f tables;
    double turns[6]; /* sines and cosines, while orders are given */
    double sums[NDT_GPU_ROW];
    double parts[NDT_GPU_WARPS][NDT_GPU_ROW];
    uint32_t seen;
};

/* Copies by all threads of the block. Other blocks wrote the source: it is volatile, so that it does not come from
 * the L1 cache. Four loads are under way at a time. */
static __device__ inline void copy_words(void *to, const void *from, unsigned bytes)
{
    uint32_t *words = (uint32_t *)to;
    const volatile uint32_t *source = (const volatile uint32_t *)from;
    for (unsigned first = threadIdx.x; first < bytes / 4; first += 4 * blockDim.x) {
        uint32_t next[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            next[k] = first + k * blockDim.x < bytes / 4 ? source[first + k * blockDim.x] : 0;
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            if (first + k * blockDim.x < bytes / 4)
                words[first + k * blockDim.x] = next[k];
    }
}

/* Sets the members of an item's view that stay through all passes. One thread. */
static __device__ inline void begin_view(struct pass_state *share, const struct ndt_gpu_batch *batch,
                                         const struct ndt_gpu_item *item)
{
    struct ndt_gpu_job *view = &share->view;
    const uint32_t column = item->blocks * (uint32_t)NDT_GPU_BLOCK;
    view->x_m = batch->turned + item->turned_at;
    view->y_m = view->x_m + column;
    view->z_m = view->y_m + column;
    view->count = item->count;
    view->blocks = item->blocks;
    view->block_sums = batch->block_sums + (size_t)item->row_at * NDT_GPU_ROW;
    view->sums = share->sums;
}

/* Sets the members of the view for one pass. Every thread of the block has to call it. */
static __device__ inline void prepare_pass(struct pass_state *share, const struct ndt_gpu_orders *orders,
                                           const struct ndt_gpu_batch *batch)
{
    struct ndt_gpu_job *view = &share->view;
    copy_words(&view->level, &batch->levels[orders->level], sizeof(view->level));
    if (threadIdx.x == 0) {
        view->neighbours = orders->neighbours;
        for (int k = 0; k < 3; k++) {
            view->near_cell[k] = orders->near_cell[k];
            view->t_m[k] = orders->t_m[k];
        }
        share->seen = 0;
        make_tables(orders->angles, &share->tables);
    }
    __syncthreads(); /* the view is complete */
}

/* Rotates a point by R0, once for all passes; rounded as on the host, so never contracted. */
static __device__ inline void rotate_point(const struct ndt_gpu_batch *batch, const struct ndt_gpu_item *item,
                                           uint32_t i)
{
    const uint32_t column = item->blocks * (uint32_t)NDT_GPU_BLOCK;
    const float *from = batch->scan + item->scan_at + i;
    float *to = batch->turned + item->turned_at + i;
    const double *R = item->newton.R0;
    const double x = (double)from[0], y = (double)from[column], z = (double)from[2 * column];
    for (int k = 0; k < 3; k++)
        to[(size_t)k * column] = (float)__dadd_rn(__dadd_rn(__dmul_rn(R[3 * k], x), __dmul_rn(R[3 * k + 1], y)),
                                                  __dmul_rn(R[3 * k + 2], z));
}

/* Computes the terms of this thread's point in row `row` of the item. `values` are zero before. */
static __device__ inline void evaluate_point(const struct pass_state *share, const struct ndt_gpu_orders *orders,
                                             const struct ndt_gpu_batch *batch, const struct ndt_gpu_item *item,
                                             uint32_t row, float values[NDT_GPU_ROW])
{
    const uint32_t i = row * (uint32_t)NDT_GPU_BLOCK + threadIdx.x % (unsigned)NDT_GPU_BLOCK;
    if (i >= share->view.count)
        return;
    if (orders->first)
        rotate_point(batch, item, i);
    eval_point(share->view, &share->tables, i, values);
}

/* Sector 0..31 of a direction, by comparing slopes within its octant; see assess_result.c. */
static __device__ inline uint32_t sector_bit(float x, float y)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float low = ax < ay ? ax : ay, high = ax < ay ? ay : ax;
    const uint32_t part = (uint32_t)(low > 0.19891237f * high) + (uint32_t)(low > 0.41421356f * high) +
                          (uint32_t)(low > 0.66817864f * high);
    const uint32_t octant = (ax < ay ? 1u : 0u) | (x < 0 ? 2u : 0u) | (y < 0 ? 4u : 0u);
    return 1u << (octant * 4 + part);
}

/* Whether point i has a voxel around it at the pose. */
static __device__ inline bool meets_map(const struct pass_state *share, const struct ndt_gpu_orders *orders,
                                        const float x[3])
{
    const struct ndt_gpu_level &level = share->view.level;
    int32_t cell[3];
    for (int k = 0; k < 3; k++) {
        const struct exact_axis exact = {orders->R + 3 * k, orders->p[k], level.leaf_exact_m};
        if (!find_cell(share->view, share->tables.R + 3 * k, exact, x, k, cell + k))
            return false;
    }
    const size_t brick = brick_of_cell(level, cell);
    const int32_t inner = (cell[2] & 7) * 64 + (cell[1] & 7) * 8 + (cell[0] & 7);
    return load_cell(level.cells + brick * 512 + (size_t)inner).n7 > 0;
}

/* Adds the sectors of the horizon in which points of one row meet the map. */
static __device__ inline void coverage_row(struct pass_state *share, const struct ndt_gpu_orders *orders,
                                           uint32_t row)
{
    const uint32_t i = row * (uint32_t)NDT_GPU_BLOCK + threadIdx.x % (unsigned)NDT_GPU_BLOCK;
    float x[3];
    if (i >= share->view.count)
        return;
    load_point(share->view, i, x);
    const uint32_t bit = sector_bit(x[0], x[1]);
    if (meets_map(share, orders, x))
        (void)atomicOr(&share->seen, bit);
}

/* Sets the orders for the next pass from the state of newton, all but the prepared pose. One thread. */
static __device__ inline void give_orders(struct ndt_gpu_orders *orders, const struct ndt_newton *newton)
{
    const double *at = newton->wants_eval ? newton->query_pose : newton->p;
    for (int k = 0; k < 6; k++)
        orders->p[k] = at[k];
    orders->level = newton->level;
    orders->neighbours = newton->neighbours;
    orders->first = 0;
    orders->stage = newton->wants_eval                 ? NDT_GPU_EVALUATE
                    : newton->stop == NDT_STOP_OFF_MAP ? NDT_GPU_FINISHED
                                                       : NDT_GPU_COVERAGE;
}

/* Splits a coordinate of the pose into a whole cell and the rest, as ndt_cuda_split_pose does. One thread per axis.
 * turn: the sine and cosine of the angle. */
NDT_APART void split_axis(struct ndt_gpu_orders *orders, double turn[2], double leaf_m, int k)
{
    const double at_m = orders->p[k], cell = floor(at_m / leaf_m);
    const double near = fmax(-1e9, fmin(1e9, cell)); /* far off the map: no voxel will be found */
    orders->near_cell[k] = (int32_t)near;
    orders->t_m[k] = (float)(at_m - near * leaf_m);
    turn[0] = sin(orders->p[3 + k]);
    turn[1] = cos(orders->p[3 + k]);
    orders->angles[2 * k] = (float)turn[0];
    orders->angles[2 * k + 1] = (float)turn[1];
}

/* Sets R = Rx(a) Ry(b) Rz(c). */
static __device__ inline void set_rotation(const double turns[6], double R[9])
{
    const double sa = turns[0], ca = turns[1], sb = turns[2], cb = turns[3], sc = turns[4], cc = turns[5];
    R[0] = cb * cc;
    R[1] = -cb * sc;
    R[2] = sb;
    R[3] = ca * sc + sa * sb * cc;
    R[4] = ca * cc - sa * sb * sc;
    R[5] = -sa * cb;
    R[6] = sa * sc - ca * sb * cc;
    R[7] = sa * cc + ca * sb * sc;
    R[8] = ca * cb;
}

/* Sets the times of the rows that this step closed; the first of them gets the time since the previous row. */
static __device__ inline void time_rows(int32_t row_capacity, struct ndt_gpu_item *item,
                                        struct ndt_newton_row *rows, int32_t closed_before, int32_t closed)
{
    if (closed == closed_before)
        return;
    const double now_us = device_clock_us();
    for (int32_t i = closed_before; i < closed && i < row_capacity; i++)
        rows[i].took_us = i == closed_before ? now_us - item->clock_us : 0;
    item->clock_us = now_us;
}

/* The data that a step reads and writes besides the state of newton and the orders. */
struct step_data {
    const struct ndt_newton_rules *rules;
    struct ndt_gpu_item *item;
    struct ndt_newton_row *rows;
    int32_t row_capacity;
    uint32_t seen;
    int32_t last; /* 1: no evaluation may follow */
};

/* Ends a pass: gives the sums to newton, or counts the sectors of the coverage. One thread. newton and orders,
 * those of the item or copies of them, are arguments of their own, so that the compiler sees that they lie in
 * shared memory. */
NDT_APART void step(struct ndt_newton *newton, struct ndt_gpu_orders *orders, const double *sums,
                    const struct step_data &data)
{
    if (orders->stage == NDT_GPU_COVERAGE) {
        data.item->coverage = (double)__popc(data.seen) / 32;
        orders->stage = NDT_GPU_FINISHED;
        return;
    }
    const int32_t closed = newton->rows_closed;
    newton_step(newton, data.rules, data.rows, data.row_capacity, (const struct ndt_eval *)(const void *)sums);
    if (data.last && newton->wants_eval)
        newton_give_up(newton, data.rows, data.row_capacity);
    time_rows(data.row_capacity, data.item, data.rows, closed, newton->rows_closed);
    give_orders(orders, newton);
}

/* Makes a step, and the orders for the next pass. Every thread of the block has to call it with the same data;
 * `orders` are shared memory. */
static __device__ inline void step_and_prepare(struct pass_state *share, const struct ndt_gpu_batch *batch,
                                               struct ndt_newton *newton, struct ndt_gpu_orders *orders,
                                               const struct step_data &data)
{
    if (threadIdx.x == 0) {
        step(newton, orders, share->sums, data);
        eigen6_dismiss();
    } else if (threadIdx.x < (unsigned)NDT_GPU_WARP) {
        eigen6_help();
    }
    __syncthreads(); /* the next pose is known */
    const int32_t stage = orders->stage;
    const bool moves = stage != NDT_GPU_FINISHED || newton->stop == NDT_STOP_OFF_MAP; /* off the map: back */
    if (threadIdx.x < 3 && moves) {
        const int k = (int)threadIdx.x;
        split_axis(orders, share->turns + 2 * k, batch->levels[orders->level].leaf_exact_m, k);
    }
    __syncthreads(); /* it is prepared */
    if (stage != NDT_GPU_COVERAGE)
        return;
    if (threadIdx.x == 0)
        set_rotation(share->turns, orders->R);
    __syncthreads(); /* the rotation is there, too */
}

#endif

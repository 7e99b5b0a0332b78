/** @file
 * @brief resident: whole alignments on the device, in several shapes that give the same bits: in all of them (and
 * in `fused`) points are summed into the same rows, and rows are added in the same order.
 *
 *  - team: one block or one cluster of blocks per alignment. One launch loops over the passes, with barriers in
 * between.
 *  - pass: one launch per pass over all alignments, one block per NDT_GPU_BLOCK points; the last block of an
 * alignment makes the Newton step. A graph repeats the launch, in a loop on the device or a fixed number of times.
 *
 * A pass is an evaluation or, after the last one, the computation of the coverage. Where the information is wanted,
 * one more launch computes it at the answers. */
#include "cluster.cuh"
#include "inform_point.cuh"
#include "kernels.h"
#include "solve_device.cuh"

/* ---- team ---- */

struct team_share {
    struct pass_state pass;
    struct ndt_newton newton; /* the leader's */
    float rows[NDT_GPU_GROUPS][NDT_GPU_WARPS][NDT_GPU_ROW];
};

struct team {
    struct ndt_gpu_batch *batch;
    struct ndt_gpu_item *item;
    unsigned rank, size; /* of this block among those of the item */
};

/* Barrier for all threads of all blocks of the item; writes before it are visible to all after it. */
static __device__ inline void team_barrier(const struct team &team)
{
    if (team.size > 1)
        cluster_barrier();
    else
        __syncthreads(); /* a team of one block */
}

/* This block's rows of the pass: group by group, the blocks of the team in turn. */
static __device__ inline void team_rows(const struct team &team, struct team_share *share)
{
    const bool is_coverage = share->pass.orders.stage == NDT_GPU_COVERAGE;
    const uint32_t stride = team.size * (uint32_t)NDT_GPU_GROUPS;
    for (uint32_t first = team.rank * (uint32_t)NDT_GPU_GROUPS; first < team.item->blocks; first += stride) {
        const uint32_t row = first + group_of_thread();
        if (is_coverage)
            coverage_row(&share->pass, row);
        else
            evaluate_row(&share->pass, team.batch, team.item, row, share->rows[group_of_thread()]);
        __syncthreads(); /* the rows may be written again */
    }
    if (is_coverage && threadIdx.x == 0 && share->pass.seen != 0)
        (void)atomicOr(&team.item->seen, share->pass.seen);
}

/* The work of the leader between two passes. */
static __device__ inline void team_step(const struct team &team, struct team_share *share, bool last)
{
    if (share->pass.orders.stage == NDT_GPU_EVALUATE)
        add_rows(share->pass.view, share->pass.parts);
    __syncthreads(); /* the sums are there */
    if (threadIdx.x == 0) {
        const volatile uint32_t *seen = &team.item->seen;
        step(&share->newton, &share->pass, team.batch, team.item, *seen, last);
        team.item->orders = share->pass.orders;
    }
}

static __device__ inline void run_team(const struct team &team, struct team_share *share)
{
    const struct ndt_gpu_control control = team.batch->control;
    copy_words(&share->newton, &team.item->newton, sizeof(share->newton));
    for (int32_t pass = 0;; pass++) {
        copy_words(&share->pass.orders, &team.item->orders, sizeof(share->pass.orders));
        __syncthreads(); /* the orders are there */
        if (share->pass.orders.stage == NDT_GPU_FINISHED ||
            (share->pass.orders.stage == NDT_GPU_EVALUATE && pass >= control.pass_limit))
            break;
        if (share->pass.orders.first && threadIdx.x == 0 && team.rank == 0)
            team.item->clock_us = device_clock_us();
        prepare_pass(&share->pass, team.batch, team.item);
        team_rows(team, share);
        team_barrier(team); /* all rows of the item are there */
        if (team.rank == 0)
            team_step(team, share, control.give_up && pass + 1 >= control.pass_limit);
        team_barrier(team); /* the orders are given */
    }
    if (team.rank == 0)
        copy_words(&team.item->newton, &share->newton, sizeof(share->newton));
}

/* Two blocks share a processor: this shape is for batches. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_TEAM, 2) ndt_resident_block(const struct ndt_gpu_job job)
{
    __shared__ struct team_share share;
    const struct team team = {job.batch, job.batch->items + blockIdx.x, 0, 1};
    run_team(team, &share);
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_TEAM) ndt_resident_cluster(const struct ndt_gpu_job job)
{
    __shared__ struct team_share share;
    const unsigned size = cluster_size();
    const struct team team = {job.batch, job.batch->items + blockIdx.x / size, cluster_rank(), size};
    run_team(team, &share);
}

/* ---- pass ---- */

struct pass_block {
    struct pass_state pass;
    struct ndt_newton newton; /* of the last block of an item */
    float rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    uint32_t place;
};

/* Whether this block is the last of the item to arrive; the same value for all its threads. */
static __device__ inline bool is_last_of_item(struct ndt_gpu_item *item, struct pass_block *share)
{
    __threadfence(); /* this block's row is seen by all before it is counted */
    __syncthreads(); /* every thread's part of the row is written */
    if (threadIdx.x == 0)
        share->place = atomicAdd(&item->ticket, 1u);
    __syncthreads(); /* place is known */
    return share->place == item->blocks - 1;
}

/* The last block of an item: the Newton step. */
static __device__ inline void step_item(struct ndt_gpu_batch *batch, struct ndt_gpu_item *item,
                                        struct pass_block *share, bool last)
{
    __threadfence();
    if (share->pass.orders.stage == NDT_GPU_EVALUATE)
        add_rows(share->pass.view, share->pass.parts);
    copy_words(&share->newton, &item->newton, sizeof(share->newton));
    __syncthreads(); /* sums and newton are there */
    if (threadIdx.x == 0) {
        const volatile uint32_t *seen = &item->seen;
        step(&share->newton, &share->pass, batch, item, *seen, last);
        item->orders = share->pass.orders;
        item->ticket = 0; /* for the next pass */
    }
    __syncthreads(); /* newton is as it is now */
    copy_words(&item->newton, &share->newton, sizeof(share->newton));
}

/* Counts an item that is done with this pass; the last of all items ends the pass, and finally the loop. One
 * thread. */
static __device__ inline void count_item(struct ndt_gpu_batch *batch, uint64_t loop, uint32_t active, bool finished)
{
    struct ndt_gpu_control *control = &batch->control;
    if (finished)
        (void)atomicAdd(&control->finished, 1u);
    __threadfence(); /* counted before the ticket */
    if (atomicAdd(&control->ticket, 1u) != active - 1)
        return;
    __threadfence();
    const volatile uint32_t *finished_now = &control->finished;
    control->active = active - *finished_now;
    control->finished = 0;
    control->ticket = 0;
    control->passes++;
    const bool more =
        control->passes < control->pass_limit || (control->give_up && control->passes == control->pass_limit);
    if (loop != 0 && (control->active == 0 || !more))
        cudaGraphSetConditional(loop, 0);
}

/* Bounds the loop in any case: a launch ends after control.pass_limit passes (and one for the coverage). A
 * launch without work has the limit 0. Only one block ends the loop: `active` may be zero here because the others
 * are done already. */
static __device__ inline void end_idle_loop(struct ndt_gpu_batch *batch, uint64_t loop)
{
    if (blockIdx.x != 0 || threadIdx.x != 0 || loop == 0)
        return;
    const int32_t runs = ++batch->control.runs;
    if (runs > batch->control.pass_limit + batch->control.give_up)
        cudaGraphSetConditional(loop, 0);
}

/* job.blocks: blocks of the grid per item, at least as many as each has. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_resident_pass(const struct ndt_gpu_job job)
{
    __shared__ struct pass_block share;
    struct ndt_gpu_batch *batch = job.batch;
    const uint32_t number = blockIdx.x / job.blocks, row = blockIdx.x % job.blocks;
    const volatile struct ndt_gpu_control *control = &batch->control;
    const uint32_t active = control->active; /* read before any block counts: it changes afterwards */
    const int32_t passes = control->passes, limit = control->pass_limit;
    end_idle_loop(batch, job.loop);
    if (number >= (uint32_t)batch->item_count)
        return;
    struct ndt_gpu_item *item = batch->items + number;
    if (row >= item->blocks || passes > limit)
        return;
    copy_words(&share.pass.orders, &item->orders, sizeof(share.pass.orders));
    __syncthreads(); /* the orders are there */
    const int32_t stage = share.pass.orders.stage;
    if (stage == NDT_GPU_FINISHED || (stage == NDT_GPU_EVALUATE && passes >= limit))
        return;
    if (share.pass.orders.first && row == 0 && threadIdx.x == 0)
        item->clock_us = device_clock_us();
    prepare_pass(&share.pass, batch, item);
    if (stage == NDT_GPU_COVERAGE) {
        coverage_row(&share.pass, row);
        __syncthreads(); /* all have looked */
        if (threadIdx.x == 0 && share.pass.seen != 0)
            (void)atomicOr(&item->seen, share.pass.seen);
    } else {
        evaluate_row(&share.pass, batch, item, row, share.rows);
    }
    if (!is_last_of_item(item, &share))
        return;
    step_item(batch, item, &share, batch->control.give_up && passes + 1 >= limit);
    if (threadIdx.x == 0)
        count_item(batch, job.loop, active, share.pass.orders.stage == NDT_GPU_FINISHED);
}

/* ---- information ---- */

/* job.blocks: as for a pass. The orders of a finished item name its answer. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK) ndt_resident_inform(const struct ndt_gpu_job job)
{
    __shared__ struct pass_block share;
    const struct ndt_gpu_batch *batch = job.batch;
    const uint32_t number = blockIdx.x / job.blocks, row = blockIdx.x % job.blocks;
    struct ndt_gpu_item *item = batch->items + number;
    if (row >= item->blocks)
        return;
    copy_words(&share.pass.orders, &item->orders, sizeof(share.pass.orders));
    __syncthreads(); /* the answer is there */
    if (share.pass.orders.stage != NDT_GPU_FINISHED)
        return;
    prepare_pass(&share.pass, batch, item);
    const struct planes first = {batch->block_sums + (size_t)item->row_at * NDT_GPU_PLANES * NDT_GPU_ROW,
                                 batch->information + (size_t)number * NDT_GPU_PLANES * NDT_GPU_ROW};
    inform_row(&share.pass.view, &share.pass.tables, first,
               batch->times_s ? batch->times_s + item->scan_at / 3 : NULL, row, share.rows);
    if (!is_last_of_item(item, &share))
        return;
    __threadfence();
    add_planes(&share.pass.view, first, share.pass.parts);
    if (threadIdx.x == 0)
        item->ticket = 0; /* for the next launch */
}

extern "C" const void *ndt_kernel_resident_block(void)
{
    return (const void *)ndt_resident_block;
}

extern "C" const void *ndt_kernel_resident_cluster(void)
{
    return (const void *)ndt_resident_cluster;
}

extern "C" const void *ndt_kernel_resident_pass(void)
{
    return (const void *)ndt_resident_pass;
}

extern "C" const void *ndt_kernel_resident_inform(void)
{
    return (const void *)ndt_resident_inform;
}

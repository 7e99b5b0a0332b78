/** @file
 * @brief One pass of all alignments of a batch in one launch: a block per row; the last block of an alignment makes
 * the Newton step and gives the orders for the next pass. A graph repeats the launch, a fixed number of times
 * (kernels_resident.cu) or in a loop on the device (kernels_loop.cu). */
#ifndef NDT_PASS_DEVICE_CUH
#define NDT_PASS_DEVICE_CUH

#include "kernels.h"
#include "solve_device.cuh"

struct pass_block {
    struct pass_state pass;
    struct ndt_gpu_orders orders;
    struct ndt_newton newton; /* state of the last block of an item */
    float rows[NDT_GPU_WARPS][NDT_GPU_ROW];
    uint32_t place;
};

/* Whether this block is the last of the item to arrive; the same value for all its threads. Only the warp that owns
 * the sums of the block has written for others. */
static __device__ inline bool is_last_of_item(struct ndt_gpu_item *item, struct pass_block *share)
{
    if (owns_sums())
        __threadfence(); /* this block's row is seen by all before it is counted */
    __syncthreads();     /* every thread's part of the row is written */
    if (threadIdx.x == 0)
        share->place = atomicAdd(&item->ticket, 1u);
    __syncthreads(); /* place is known */
    return share->place == share->pass.view.blocks - 1;
}

/* Makes the Newton step in the last block of an item, and sets the orders for the next pass. */
static __device__ inline void step_item(struct ndt_gpu_batch *batch, struct ndt_gpu_item *item,
                                        struct pass_block *share, bool last)
{
    __threadfence();
    if (share->orders.stage == NDT_GPU_EVALUATE)
        add_rows(share->pass.view, share->pass.parts);
    copy_words(&share->newton, &item->newton, sizeof(share->newton));
    __syncthreads(); /* sums and newton are there */
    const struct step_data data = {&batch->rules,
                                   item,
                                   batch->rows + (size_t)(item - batch->items) * (size_t)batch->row_capacity,
                                   batch->row_capacity,
                                   load_coherent(&item->seen),
                                   last};
    step_and_prepare(&share->pass, batch, &share->newton, &share->orders, data);
    copy_words(&item->newton, &share->newton, sizeof(share->newton));
    copy_words(&item->orders, &share->orders, sizeof(share->orders));
    if (threadIdx.x == 0)
        item->ticket = 0; /* for the next pass */
}

/* Counts an item that is done with this pass; the last of all items ends the pass. One thread. Returns whether no
 * further pass follows in this launch of the graph. */
static __device__ inline bool count_item(struct ndt_gpu_batch *batch, uint32_t active, bool finished)
{
    struct ndt_gpu_control *control = &batch->control;
    if (finished)
        (void)atomicAdd(&control->finished, 1u);
    __threadfence(); /* counted before the ticket */
    if (atomicAdd(&control->ticket, 1u) != active - 1)
        return false;
    __threadfence();
    const uint32_t left = active - load_coherent(&control->finished);
    const int32_t passes = control->passes + 1, limit = control->pass_limit;
    control->finished = 0;
    control->ticket = 0;
    *(volatile uint32_t *)&control->active = left; /* volatile both: blocks without rows may read them only now */
    *(volatile int32_t *)&control->passes = passes;
    return left == 0 || !(passes < limit || (control->give_up && passes == limit));
}

/* Computes row `row` of an item in a pass. Returns whether the row was the last one of the pass and no other pass
 * follows; in one thread at most. */
static __device__ inline bool pass_row(struct ndt_gpu_batch *batch, uint32_t number, uint32_t row, uint32_t active,
                                       int32_t passes, struct pass_block *share)
{
    struct ndt_gpu_item *item = batch->items + number;
    const int32_t limit = batch->control.pass_limit;
    copy_words(&share->orders, &item->orders, sizeof(share->orders));
    if (threadIdx.x == 0)
        begin_view(&share->pass, batch, item);
    __syncthreads(); /* the orders are there */
    const int32_t stage = share->orders.stage;
    if (stage == NDT_GPU_FINISHED || (stage == NDT_GPU_EVALUATE && passes >= limit))
        return false;
    if (share->orders.first && row == 0 && threadIdx.x == 0)
        item->clock_us = device_clock_us();
    prepare_pass(&share->pass, &share->orders, batch);
    if (stage == NDT_GPU_COVERAGE) {
        coverage_row(&share->pass, &share->orders, row);
        __syncthreads(); /* all have looked */
        if (threadIdx.x == 0 && share->pass.seen != 0)
            (void)atomicOr(&item->seen, share->pass.seen);
    } else {
        float values[NDT_GPU_ROW] = {};
        evaluate_point(&share->pass, &share->orders, batch, item, row, values);
        store_row(share->pass.view, row, values, share->rows);
    }
    if (!is_last_of_item(item, share))
        return false;
    step_item(batch, item, share, batch->control.give_up && passes + 1 >= limit);
    return threadIdx.x == 0 && count_item(batch, active, share->orders.stage == NDT_GPU_FINISHED);
}

/* Runs a pass, by the whole grid; job.blocks: blocks per item, at least as many as each item has. Returns true in
 * one thread of the last pass of the launch. */
static __device__ inline bool run_pass(const struct ndt_gpu_job &job, struct pass_block *share)
{
    struct ndt_gpu_batch *batch = job.batch;
    const uint32_t number = blockIdx.x / job.blocks, row = blockIdx.x % job.blocks;
    const volatile struct ndt_gpu_control *control = &batch->control;
    const uint32_t active = control->active; /* read before any block counts: it changes afterwards */
    const int32_t passes = control->passes;
    if (number >= (uint32_t)batch->item_count || row >= batch->items[number].blocks ||
        passes > batch->control.pass_limit)
        return false;
    return pass_row(batch, number, row, active, passes, share);
}

#endif

/** @file
 * @brief resident: whole alignments on the device, in several shapes that give the same bits: in all of them (and
 * in `fused`) points are summed into the same rows, and rows are added in the same order.
 *
 *  - team: one block or one cluster of blocks per alignment. One launch loops over the passes.
 *  - pass: one launch per pass over all alignments, one block per NDT_GPU_BLOCK points; see pass_device.cuh.
 *
 * A pass is an evaluation or, after the last one, the computation of the coverage. Where the information is wanted,
 * one more launch computes it at the answers. */
#include "cluster.cuh"
#include "inform_point.cuh"
#include "pass_device.cuh"

/* ---- team ---- */

struct team_share {
    struct pass_state pass;
    struct ndt_gpu_batch batch; /* copies of the arguments, then the state of the item */
    struct ndt_gpu_item item;
    float rows[NDT_GPU_GROUPS][NDT_GPU_WARPS][NDT_GPU_ROW];
};

static __device__ inline unsigned groups_of_team()
{
    return blockDim.x / (unsigned)NDT_GPU_BLOCK;
}

/* Copies data of the host or of an earlier kernel, by all threads of the block. */
template <class T> static __device__ inline void copy_argument(T *to, const T &from)
{
    static_assert(sizeof(T) % sizeof(uint32_t) == 0 && alignof(T) >= alignof(uint32_t), "words");
    for (unsigned i = threadIdx.x; i < sizeof(T) / sizeof(uint32_t); i += blockDim.x)
        ((uint32_t *)(void *)to)[i] = ((const uint32_t *)(const void *)&from)[i];
}

/* Copies batch and item. Every thread of the block has to call it. */
static __device__ inline void begin_team(struct team_share *share, const struct ndt_gpu_job &job,
                                         const struct ndt_gpu_single &single, uint32_t number)
{
    if (job.batch) {
        copy_argument(&share->batch, *job.batch);
        copy_argument(&share->item, job.batch->items[number]);
    } else {
        copy_argument(&share->batch, single.batch);
        copy_argument(&share->item, single.item);
    }
    __syncthreads(); /* the item is there */
    if (threadIdx.x == 0)
        begin_view(&share->pass, &share->batch, &share->item);
}

/* Hands the item back: to the host, and to the kernel of the information. Every thread of the block has to call it.
 */
static __device__ inline void end_team(const struct team_share *share, uint32_t number)
{
    copy_words(share->batch.items + number, &share->item, sizeof(share->item));
    if (share->batch.results)
        copy_words(share->batch.results + number, &share->item, sizeof(share->item));
}

/* Whether no pass follows. */
static __device__ inline bool ends_team(const struct team_share *share, const struct ndt_gpu_orders *orders,
                                        int32_t pass)
{
    return orders->stage == NDT_GPU_FINISHED ||
           (orders->stage == NDT_GPU_EVALUATE && pass >= share->batch.control.pass_limit);
}

/* Collects the data that the leader's step reads and writes. */
static __device__ inline struct step_data data_of_team(struct team_share *share, uint32_t number, int32_t pass,
                                                       uint32_t seen)
{
    const struct ndt_gpu_batch *batch = &share->batch;
    return {&batch->rules,       &share->item, batch->rows + (size_t)number * (size_t)batch->row_capacity,
            batch->row_capacity, seen,         batch->control.give_up && pass + 1 >= batch->control.pass_limit};
}

/* ---- a block per item ---- */

/* Computes the rows of a pass, group by group. */
static __device__ inline void block_rows(struct team_share *share)
{
    const struct ndt_gpu_orders *orders = &share->item.orders;
    for (uint32_t first = 0; first < share->item.blocks; first += groups_of_team()) {
        const uint32_t row = first + group_of_thread();
        if (orders->stage == NDT_GPU_COVERAGE) {
            coverage_row(&share->pass, orders, row);
        } else {
            float values[NDT_GPU_ROW] = {};
            evaluate_point(&share->pass, orders, &share->batch, &share->item, row, values);
            store_row(share->pass.view, row, values, share->rows[group_of_thread()]);
        }
        __syncthreads(); /* the rows may be written again */
    }
}

/* The block shape, for batches: two blocks share a processor. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_TEAM, 2)
    ndt_resident_block(const struct ndt_gpu_job job, const __grid_constant__ struct ndt_gpu_single single)
{
    __shared__ struct team_share share;
    const uint32_t number = blockIdx.x;
    begin_team(&share, job, single, number);
    for (int32_t pass = 0; !ends_team(&share, &share.item.orders, pass); pass++) {
        if (share.item.orders.first && threadIdx.x == 0)
            share.item.clock_us = device_clock_us();
        prepare_pass(&share.pass, &share.item.orders, &share.batch);
        block_rows(&share);
        if (share.item.orders.stage == NDT_GPU_EVALUATE)
            add_rows(share.pass.view, share.pass.parts);
        const uint32_t seen = share.pass.seen;
        __syncthreads(); /* the sums are there */
        step_and_prepare(&share.pass, &share.batch, &share.item.newton, &share.item.orders,
                         data_of_team(&share, number, pass, seen));
    }
    end_team(&share, number);
}

/* ---- a cluster per item ---- */

/* The memory in which the blocks of a cluster write to one another. The rows go to the block with rank 0, the
 * leader. The leader writes the orders for a pass while a slow thread still reads those of the previous pass, so
 * two copies alternate. */
struct cluster_share {
    double sums[NDT_GPU_CLUSTER_ROWS][NDT_GPU_ROW];
    uint64_t seen[NDT_GPU_CLUSTER];
    uint64_t orders[2][NDT_GPU_ORDER_WORDS];
    byte_barrier rows_come, orders_come;
};

struct cluster_team {
    struct team_share *share;
    struct cluster_share *exchange;
    unsigned rank, size; /* size: blocks of the cluster that have rows */
    uint32_t number;
};

static __device__ inline const struct ndt_gpu_orders *orders_of(const struct cluster_team &team, int32_t pass)
{
    return (const struct ndt_gpu_orders *)(const void *)team.exchange->orders[pass & 1];
}

/* Sets the number of bytes that belong to this pass. One thread. */
static __device__ inline void expect_bytes(const struct cluster_team &team, int32_t stage)
{
    const uint32_t words = stage == NDT_GPU_COVERAGE ? team.size : team.share->item.blocks * (uint32_t)NDT_GPU_ROW;
    if (team.rank == 0)
        byte_barrier_expect(&team.exchange->rows_come, words * (uint32_t)sizeof(uint64_t));
    byte_barrier_expect(&team.exchange->orders_come, (unsigned)sizeof(struct ndt_gpu_orders));
}

/* Sends a row of an evaluation to the leader. */
static __device__ inline void send_row(const struct cluster_team &team, uint32_t row, double sum)
{
    const unsigned lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    if (!owns_sums() || row >= team.share->item.blocks)
        return;
    uint64_t word;
    memcpy(&word, &sum, sizeof(word));
    store_at_rank(0, (uint64_t *)(void *)&team.exchange->sums[row][lane], word, &team.exchange->rows_come);
}

/* Computes this block's rows of the pass: group by group, the blocks of the team in turn. */
static __device__ inline void cluster_rows(const struct cluster_team &team, const struct ndt_gpu_orders *orders)
{
    struct team_share *share = team.share;
    const uint32_t groups = groups_of_team(), stride = team.size * groups;
    const int32_t stage = orders->stage;
    for (uint32_t first = team.rank * groups; first < share->item.blocks; first += stride) {
        const uint32_t row = first + group_of_thread();
        if (stage == NDT_GPU_COVERAGE) {
            coverage_row(&share->pass, orders, row);
        } else {
            float values[NDT_GPU_ROW] = {};
            evaluate_point(&share->pass, orders, &share->batch, &share->item, row, values);
            send_row(team, row, sum_group(values, share->rows[group_of_thread()]));
        }
        __syncthreads(); /* the rows may be written again */
    }
    if (stage == NDT_GPU_COVERAGE && threadIdx.x == 0)
        store_at_rank(0, &team.exchange->seen[team.rank], share->pass.seen, &team.exchange->rows_come);
}

/* Adds the rows of all blocks in the order of add_rows. */
static __device__ inline void add_cluster_rows(const struct cluster_team &team)
{
    const unsigned warp = threadIdx.x / (unsigned)NDT_GPU_WARP, lane = threadIdx.x % (unsigned)NDT_GPU_WARP;
    struct pass_state *pass = &team.share->pass;
    if (warp < (unsigned)NDT_GPU_WARPS) {
        double part = 0;
#pragma unroll 4
        for (uint32_t row = warp; row < pass->view.blocks; row += (uint32_t)NDT_GPU_WARPS)
            part += team.exchange->sums[row][lane];
        pass->parts[warp][lane] = part;
    }
    add_parts(pass->view, pass->parts);
}

/* Does the leader's work between two passes: a step, and the orders for the next pass to every block with rows. */
static __device__ inline void lead_cluster(const struct cluster_team &team, int32_t stage, int32_t pass)
{
    struct team_share *share = team.share;
    uint32_t seen = 0;
    if (stage == NDT_GPU_EVALUATE)
        add_cluster_rows(team);
    else
        for (unsigned i = 0; i < team.size; i++)
            seen |= (uint32_t)team.exchange->seen[i];
    __syncthreads(); /* the sums are there */
    step_and_prepare(&share->pass, &share->batch, &share->item.newton, &share->item.orders,
                     data_of_team(share, team.number, pass, seen));
    const uint64_t *words = (const uint64_t *)(const void *)&share->item.orders;
    uint64_t *orders = team.exchange->orders[(pass + 1) & 1];
    for (unsigned i = threadIdx.x; i < team.size * NDT_GPU_ORDER_WORDS; i += blockDim.x) {
        const unsigned at = i % NDT_GPU_ORDER_WORDS;
        store_at_rank(i / NDT_GPU_ORDER_WORDS, orders + at, words[at], &team.exchange->orders_come);
    }
}

[[maybe_unused]] static __device__ inline void run_cluster(const struct cluster_team &team)
{
    struct team_share *share = team.share;
    const struct ndt_gpu_orders *orders = orders_of(team, 0);
    for (int32_t pass = 0; !ends_team(share, orders, pass); orders = orders_of(team, ++pass)) {
        const int32_t stage = orders->stage;
        if (threadIdx.x == 0) {
            expect_bytes(team, stage);
            if (orders->first)
                share->item.clock_us = device_clock_us();
        }
        prepare_pass(&share->pass, orders, &share->batch);
        cluster_rows(team, orders);
        if (team.rank == 0) {
            byte_barrier_wait(&team.exchange->rows_come, (unsigned)pass); /* all rows of the item are there */
            lead_cluster(team, stage, pass);
        }
        byte_barrier_wait(&team.exchange->orders_come, (unsigned)pass); /* the orders are given */
    }
    if (team.rank == 0)
        end_team(share, team.number);
}

/* "The user also needs to ensure that all distributed shared memory operations happen before the exit of a thread
 * block" (programming guide, "Distributed Shared Memory"): a block waits for every word that is sent to it, rows or
 * orders, and blocks without rows get none. Therefore no barrier is needed at the end. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_CLUSTER_TEAM)
    ndt_resident_cluster(const struct ndt_gpu_job job, const __grid_constant__ struct ndt_gpu_single single)
{
#if defined(EMULATED_CUDA_RUNTIME_H) || defined(NDT_HAS_CLUSTERS)
    __shared__ struct team_share share;
    __shared__ struct cluster_share exchange;
    const unsigned size = cluster_size(), groups = groups_of_team();
    const uint32_t number = blockIdx.x / size;
    begin_team(&share, job, single, number);
    copy_words(exchange.orders[0], &share.item.orders, sizeof(share.item.orders));
    if (threadIdx.x == 0) {
        byte_barrier_begin(&exchange.rows_come);
        byte_barrier_begin(&exchange.orders_come);
    }
    const uint32_t needed = (share.item.blocks + groups - 1) / groups;
    const struct cluster_team team = {&share, &exchange, cluster_rank(), size < needed ? size : needed, number};
    cluster_barrier(); /* every block runs, and its barriers count */
    if (team.rank < team.size)
        run_cluster(team);
#else
    (void)job;
    (void)single;
#endif
}

/* ---- pass ---- */

/* One pass; job.blocks: blocks of the grid per item, at least as many as each item has. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK, 4) ndt_resident_pass(const struct ndt_gpu_job job)
{
    __shared__ struct pass_block share;
    (void)run_pass(job, &share);
}

/* ---- information ---- */

/* The information at the answers; job.blocks: as for a pass. The orders of a finished item name its answer. */
extern "C" __global__ void __launch_bounds__(NDT_GPU_BLOCK, 4)
    ndt_resident_inform(const struct ndt_gpu_job job, const __grid_constant__ struct ndt_gpu_single single)
{
    __shared__ struct pass_block share;
    __shared__ struct ndt_gpu_batch arguments;
    const struct ndt_gpu_batch *batch = &arguments;
    const uint32_t number = blockIdx.x / job.blocks, row = blockIdx.x % job.blocks;
    if (job.batch)
        copy_argument(&arguments, *job.batch);
    else
        copy_argument(&arguments, single.batch);
    __syncthreads(); /* the batch is there */
    struct ndt_gpu_item *item = batch->items + number;
    if (row >= item->blocks)
        return;
    copy_words(&share.orders, &item->orders, sizeof(share.orders));
    if (threadIdx.x == 0)
        begin_view(&share.pass, batch, item);
    __syncthreads(); /* the answer is there */
    if (share.orders.stage != NDT_GPU_FINISHED)
        return;
    prepare_pass(&share.pass, &share.orders, batch);
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

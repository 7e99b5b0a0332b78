#include "cuda_resident.h"

#include <math.h>
#include <string.h>

#include "cuda_shape.h"
#include "kernels.h"
#include "ndt/clock.h"

/* Evaluations of the first launch while the cost of one is unknown, and the reserve for the rest of the work. */
enum { UNKNOWN_LIMIT = 4 };
static const double COST_MARGIN = 2, REST_US = 50;
/* Part of the time until a deadline that a launch may take before the device counts as lost; COST_MARGIN lets it
 * plan with half of it. */
static const double SOLVE_PART = 0.8;
/* Limit that no alignment reaches, and passes of the longest alignments. A launch that takes ENDLESS times the
 * recent time of its evaluations, and most of the remaining time, counts as endless: a debugger slows all of them
 * down. */
enum { NO_LIMIT = 1 << 20, MANY_PASSES = 40, ENDLESS = 20 };

/* ---- the batch ---- */

/* A launch: items first .. first + count - 1 of the call. */
struct launch {
    struct ndt_solve_item *items;
    size_t count;
    unsigned blocks; /* blocks of the largest item */
    enum ndt_cuda_shape shape;
    int is_direct; /* no copies: see cuda_resident.h */
    int32_t row_capacity;
    int wants_rows, wants_information;
    struct ndt_gpu_batch *batch;    /* pinned, to upload */
    struct ndt_gpu_item *gpu_items; /* behind the batch */
    struct ndt_gpu_item *results;   /* pinned, downloaded */
};

static struct ndt_gpu_batch *device_batch(const struct ndt_cuda_resident *resident)
{
    return (struct ndt_gpu_batch *)(void *)(resident->memory + resident->plan->batch);
}

static struct ndt_gpu_item *device_items(const struct ndt_cuda_resident *resident)
{
    return (struct ndt_gpu_item *)(void *)(device_batch(resident) + 1);
}

/* Information of a launch, which lies behind the items where it is wanted; the rows follow it. */
static double *information_of(struct ndt_gpu_item *items, const struct launch *launch)
{
    return (double *)(void *)(items + launch->count);
}

static struct ndt_newton_row *rows_of(struct ndt_gpu_item *items, const struct launch *launch)
{
    const size_t numbers = launch->wants_information ? launch->count * NDT_GPU_PLANES * NDT_GPU_ROW : 0;
    return (struct ndt_newton_row *)(void *)(information_of(items, launch) + numbers);
}

static const float *times_of(const struct ndt_cuda_resident *resident)
{
    const struct ndt_cuda_plan *plan = resident->plan;
    const float *scan = (const float *)(void *)(resident->memory + plan->scan);
    if (resident->preprocess)
        return (const float *)(void *)(resident->memory + plan->sampled) + 3 * plan->stride;
    return resident->times_at > 0 ? scan + resident->times_at : NULL;
}

static enum ndt_cuda_shape shape_for(const struct ndt_cuda_resident *resident, size_t count, unsigned blocks)
{
    return ndt_cuda_shape_for(resident->shape, resident->facts, resident->largest_cluster, count, blocks);
}

/* Limits the items by the memory for rows and rotated points. */
static struct launch cut_launch(const struct ndt_cuda_resident *resident, const struct ndt_newton_rules *rules,
                                struct ndt_solve_item *items, size_t count)
{
    struct launch launch = {.items = items, .wants_information = rules->wants_information};
    size_t points = 0;
    for (; launch.count < count && launch.count < NDT_CUDA_ITEMS; launch.count++) {
        const struct ndt_cuda_scan *scan = &resident->scans[items[launch.count].scan];
        points += (size_t)scan->blocks * NDT_GPU_BLOCK;
        if (points > resident->plan->stride && launch.count > 0)
            break;
        launch.blocks = scan->blocks > launch.blocks ? scan->blocks : launch.blocks;
        launch.wants_rows |= items[launch.count].row_capacity > 0;
    }
    launch.shape = shape_for(resident, launch.count, launch.blocks);
    launch.is_direct = launch.count == 1 && resident->mapped && !resident->preprocess &&
                       (launch.shape == NDT_CUDA_BLOCK || launch.shape == NDT_CUDA_CLUSTER);
    launch.row_capacity = NDT_CUDA_TRACE;
    launch.batch = (struct ndt_gpu_batch *)(void *)(resident->pinned + resident->plan->pinned_batch);
    launch.gpu_items = (struct ndt_gpu_item *)(void *)(launch.batch + 1);
    launch.results = (struct ndt_gpu_item *)(void *)(resident->pinned + resident->plan->pinned_results);
    return launch;
}

static void write_item(const struct ndt_cuda_resident *resident, const struct ndt_cuda_map *on_device,
                       const struct ndt_newton_rules *rules, const struct ndt_solve_item *item, uint32_t row_at,
                       struct ndt_gpu_item *out)
{
    const struct ndt_cuda_scan *scan = &resident->scans[item->scan];
    memset(out, 0, sizeof(*out));
    out->newton = item->newton;
    ndt_newton_begin(&out->newton, rules);
    memcpy(out->orders.p, out->newton.query_pose, sizeof(out->orders.p));
    out->orders.level = out->newton.level;
    out->orders.neighbours = out->newton.neighbours;
    out->orders.stage = NDT_GPU_EVALUATE;
    out->orders.first = 1;
    ndt_cuda_split_pose(out->orders.p, on_device->levels[out->orders.level].leaf_exact_m, out->orders.near_cell,
                        out->orders.t_m, out->orders.angles);
    out->count = scan->count;
    out->blocks = scan->blocks;
    out->scan_at = scan->at;
    out->row_at = row_at;
    out->turned_at = 3 * row_at * NDT_GPU_BLOCK;
}

static void write_batch(const struct ndt_cuda_resident *resident, const struct ndt_cuda_map *on_device,
                        const struct ndt_newton_rules *rules, const struct launch *launch)
{
    uint32_t row_at = 0;
    struct ndt_gpu_item *items = device_items(resident), *back = launch->is_direct ? resident->mapped : items;
    *launch->batch = (struct ndt_gpu_batch){
        .item_count = (int32_t)launch->count,
        .row_capacity = launch->row_capacity,
        .rules = *rules,
        .scan = (const float *)(void *)(resident->memory + resident->plan->scan),
        .times_s = times_of(resident),
        .turned = (float *)(void *)(resident->memory + resident->plan->buffers),
        .block_sums = (double *)(void *)(resident->memory + resident->plan->block_sums),
        .information = information_of(back, launch),
        .items = items,
        .results = launch->is_direct ? back : NULL,
        .rows = rows_of(back, launch),
    };
    memcpy(launch->batch->levels, on_device->levels, sizeof(launch->batch->levels));
    for (size_t i = 0; i < launch->count; i++) {
        write_item(resident, on_device, rules, &launch->items[i], row_at, &launch->gpu_items[i]);
        row_at += launch->gpu_items[i].blocks;
    }
}

/* ---- launching ---- */

static enum ndt_status find_graph(struct ndt_cuda_resident *resident, enum ndt_cuda_shape shape, size_t count,
                                  unsigned blocks, struct ndt_cuda_graph **out, struct ndt_error *err)
{
    const int is_chain = shape == NDT_CUDA_CHAIN;
    const struct ndt_cuda_graph_size size = {.kernel =
                                                 is_chain ? ndt_kernel_resident_pass() : ndt_kernel_resident_loop(),
                                             .items = (unsigned)count,
                                             .blocks = blocks,
                                             .length = is_chain ? NDT_CUDA_CHAIN_LENGTH : 0};
    return ndt_cuda_graphs_find(&resident->graphs, resident->device, &size, &resident->job, out, err);
}

static enum ndt_status prepare_for(struct ndt_cuda_resident *resident, size_t count, unsigned blocks,
                                   struct ndt_error *err)
{
    struct ndt_cuda_graph *graph;
    const enum ndt_cuda_shape shape = shape_for(resident, count, blocks);
    if (shape != NDT_CUDA_LOOP && shape != NDT_CUDA_CHAIN)
        return NDT_OK;
    return find_graph(resident, shape, count, blocks, &graph, err);
}

enum ndt_status ndt_cuda_resident_prepare(struct ndt_cuda_resident *resident, struct ndt_error *err)
{
    unsigned blocks = 1;
    for (size_t i = 0; i < resident->scan_count; i++)
        blocks = resident->scans[i].blocks > blocks ? resident->scans[i].blocks : blocks;
    const enum ndt_status status = prepare_for(resident, resident->scan_count, blocks, err);
    if (status != NDT_OK || resident->recent_items <= resident->scan_count)
        return status;
    return prepare_for(resident, resident->recent_items, blocks,
                       err); /* several guesses for a scan, as last time */
}

/* A kernel of a team, or that of the information: it knows the batch as its argument or by its address. */
static enum ndt_status launch_kernel(struct ndt_cuda_resident *resident, const struct launch *launch,
                                     const void *kernel, unsigned blocks, const struct ndt_cuda_team *team,
                                     struct ndt_error *err)
{
    struct ndt_gpu_job job = resident->job;
    job.batch = launch->is_direct ? NULL : job.batch;
    job.blocks = launch->blocks;
    return ndt_cuda_launch_single(resident->device, kernel, blocks, team->threads, team->size, &job,
                                  &resident->single, err);
}

static enum ndt_status start(struct ndt_cuda_resident *resident, const struct launch *launch, struct ndt_error *err)
{
    const unsigned count = (unsigned)launch->count;
    struct ndt_cuda_team team = {1, NDT_GPU_TEAM};
    struct ndt_cuda_graph *graph;
    if (launch->shape == NDT_CUDA_BLOCK)
        return launch_kernel(resident, launch, ndt_kernel_resident_block(), count, &team, err);
    if (launch->shape == NDT_CUDA_CLUSTER) {
        team = ndt_cuda_cluster_team(resident->facts, resident->largest_cluster, launch->count, launch->blocks);
        return launch_kernel(resident, launch, ndt_kernel_resident_cluster(), count * team.size, &team, err);
    }
    enum ndt_status status = find_graph(resident, launch->shape, launch->count, launch->blocks, &graph, err);
    return status == NDT_OK ? ndt_cuda_graph_launch(resident->device, graph, err) : status;
}

/* Sets the number of evaluations that the launch may make, and whether it is the last one. */
static void set_limit(const struct ndt_cuda_resident *resident, const struct launch *launch, int is_first,
                      double until_us)
{
    struct ndt_gpu_control *control = &launch->batch->control;
    const int most = launch->shape == NDT_CUDA_CHAIN ? NDT_CUDA_CHAIN_LENGTH - 1 : NO_LIMIT;
    *control = (struct ndt_gpu_control){.pass_limit = most, .active = (uint32_t)launch->count};
    for (size_t i = 0; !is_first && i < launch->count; i++)
        control->active -= launch->results[i].orders.stage == NDT_GPU_FINISHED;
    if (until_us <= 0)
        return;
    const double left_us = until_us - ndt_clock_us() - REST_US;
    const int is_known = resident->pass_us > 0 && launch->blocks <= 2 * resident->pass_blocks;
    const double affordable = is_known ? left_us / (COST_MARGIN * resident->pass_us) : UNKNOWN_LIMIT;
    control->give_up = (is_known && affordable <= most) || left_us <= 0;
    control->pass_limit = left_us > 0 ? (int32_t)fmax(1, fmin(affordable, most)) : 1;
}

/* The moment at which the wait for a launch gives up. */
static double give_up_at(const struct ndt_cuda_resident *resident, const struct launch *launch, double until_us)
{
    if (until_us <= 0)
        return 0;
    const int32_t passes = launch->batch->control.pass_limit;
    const double usual_us = resident->pass_us * (4 + (passes < MANY_PASSES ? passes : MANY_PASSES));
    return fmax(ndt_cuda_give_up_at(until_us, SOLVE_PART), ndt_clock_us() + ENDLESS * usual_us);
}

/* The largest number of evaluations of an item. */
static int32_t evaluations(const struct launch *launch)
{
    int32_t most = 0;
    for (size_t i = 0; i < launch->count; i++)
        most = launch->results[i].newton.evaluations > most ? launch->results[i].newton.evaluations : most;
    return most;
}

/* Completes the items: only the device knows the size of a scan that it preprocessed. */
static enum ndt_status begin(struct ndt_cuda_resident *resident, const struct launch *launch, struct ndt_error *err)
{
    struct ndt_gpu_job job = resident->job;
    job.preprocess = resident->preprocess;
    return ndt_cuda_launch(resident->device, ndt_kernel_preprocess_begin(), ndt_cuda_blocks(launch->count), &job,
                           err);
}

static enum ndt_status inform(struct ndt_cuda_resident *resident, const struct launch *launch,
                              struct ndt_error *err)
{
    const struct ndt_cuda_team block = {1, NDT_GPU_BLOCK};
    return launch_kernel(resident, launch, ndt_kernel_resident_inform(), (unsigned)launch->count * launch->blocks,
                         &block, err);
}

/* The kernels of a launch. */
static enum ndt_status run_kernels(struct ndt_cuda_resident *resident, const struct launch *launch, int is_first,
                                   struct ndt_error *err)
{
    enum ndt_status status = ndt_cuda_clock_start(resident->device, err);
    if (status == NDT_OK && resident->preprocess && is_first)
        status = begin(resident, launch, err);
    if (status == NDT_OK)
        status = start(resident, launch, err);
    if (status == NDT_OK && launch->wants_information)
        status = inform(resident, launch, err);
    return status == NDT_OK ? ndt_cuda_clock_stop(resident->device, err) : status;
}

/* The alignment goes up as an argument, in the state in which the launch before left it, and comes back by itself.
 */
static void pass_directly(struct ndt_cuda_resident *resident, const struct launch *launch, int is_first,
                          size_t back)
{
    resident->single.batch = *launch->batch;
    resident->single.item = is_first ? launch->gpu_items[0] : launch->results[0];
    resident->device->counters.h2d_bytes += sizeof(resident->single);
    resident->device->counters.d2h_bytes += back;
}

/* Runs a launch: one upload, one launch and one more for the information, one download, one wait. Later launches
 * upload the control only. */
static enum ndt_status run_once(struct ndt_cuda_resident *resident, const struct launch *launch, int is_first,
                                struct ndt_error *err)
{
    struct ndt_cuda_device *device = resident->device;
    const size_t bytes = is_first ? sizeof(struct ndt_gpu_batch) + launch->count * sizeof(struct ndt_gpu_item)
                                  : sizeof(struct ndt_gpu_control);
    const size_t row_count = launch->wants_rows ? launch->count * (size_t)launch->row_capacity : 0;
    const size_t back = (size_t)((char *)(rows_of(launch->results, launch) + row_count) - (char *)launch->results);
    enum ndt_status status = NDT_OK;
    if (launch->is_direct)
        pass_directly(resident, launch, is_first, back);
    else
        status = ndt_cuda_upload(device, device_batch(resident), launch->batch, bytes, err);
    if (status == NDT_OK)
        status = run_kernels(resident, launch, is_first, err);
    if (status == NDT_OK && !launch->is_direct)
        status = ndt_cuda_download(device, launch->results, device_items(resident), back, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    return status == NDT_OK ? ndt_cuda_add_kernel_time(device, err) : status;
}

static int all_finished(const struct launch *launch)
{
    for (size_t i = 0; i < launch->count; i++)
        if (launch->results[i].orders.stage != NDT_GPU_FINISHED)
            return 0;
    return 1;
}

/* Launches until all items are finished: once, unless a deadline is near while costs are unknown, or a chain ends.
 */
static enum ndt_status run_launch(struct ndt_cuda_resident *resident, const struct launch *launch, double until_us,
                                  struct ndt_error *err)
{
    int32_t before = 0, after = 0;
    int is_first = 1;
    do {
        const double start_us = ndt_clock_us();
        set_limit(resident, launch, is_first, until_us);
        resident->device->until_us = give_up_at(resident, launch, until_us);
        enum ndt_status status = run_once(resident, launch, is_first, err);
        resident->device->until_us = 0;
        if (status != NDT_OK)
            return status;
        after = evaluations(launch);
        if (after == before && !all_finished(launch))
            return ndt_fail(err, NDT_ERR_DEVICE, "a launch of %zu alignments made no progress", launch->count);
        if (after > before)
            resident->pass_us = (ndt_clock_us() - start_us) / (after - before);
        resident->pass_blocks = launch->blocks;
        before = after;
        is_first = 0;
    } while (!all_finished(launch));
    return NDT_OK;
}

static void read_items(struct ndt_cuda_resident *resident, const struct launch *launch)
{
    const struct ndt_newton_row *rows = rows_of(launch->results, launch);
    const double *information = information_of(launch->results, launch);
    for (size_t i = 0; i < launch->count; i++) {
        struct ndt_solve_item *item = &launch->items[i];
        item->newton = launch->results[i].newton;
        item->coverage = launch->results[i].coverage;
        item->points = launch->results[i].count;
        if (launch->wants_information)
            ndt_cuda_read_information(&item->information, information + i * NDT_GPU_PLANES * NDT_GPU_ROW);
        int32_t count =
            item->newton.row_count < launch->row_capacity ? item->newton.row_count : launch->row_capacity;
        count = count < item->row_capacity ? count : item->row_capacity;
        item->row_count = count > 0 ? count : 0;
        if (count > 0)
            memcpy(item->rows, rows + i * (size_t)launch->row_capacity, (size_t)count * sizeof(*rows));
        resident->device->counters.evaluations += (uint64_t)item->newton.evaluations;
    }
}

enum ndt_status ndt_cuda_resident_solve(struct ndt_cuda_resident *resident, const struct ndt_cuda_map *on_device,
                                        const struct ndt_newton_rules *rules, struct ndt_solve_item *items,
                                        size_t count, double until_us, struct ndt_error *err)
{
    resident->recent_items = count;
    for (size_t done = 0; done < count;) {
        const struct launch launch = cut_launch(resident, rules, items + done, count - done);
        write_batch(resident, on_device, rules, &launch);
        enum ndt_status status = run_launch(resident, &launch, until_us, err);
        if (status != NDT_OK)
            return status;
        read_items(resident, &launch);
        done += launch.count;
    }
    return NDT_OK;
}

/* Launches with one finished item, so that the first solve does not have to load kernels and make the graph. */
static enum ndt_status warm_up(struct ndt_cuda_resident *resident, enum ndt_cuda_shape shape, struct ndt_error *err)
{
    const enum ndt_cuda_shape wanted = resident->shape;
    const struct ndt_cuda_map no_map = {.memory = NULL};
    const struct ndt_newton_rules rules = {.level_count = 1, .wants_information = 1};
    struct ndt_solve_item item = {.scan = 0};
    resident->scans[0] = (struct ndt_cuda_scan){.blocks = 1};
    resident->shape = shape;
    const struct launch launch = cut_launch(resident, &rules, &item, 1);
    resident->shape = wanted;
    write_batch(resident, &no_map, &rules, &launch);
    launch.gpu_items[0].orders.stage = NDT_GPU_FINISHED;
    launch.batch->control = (struct ndt_gpu_control){.pass_limit = 0};
    return run_once(resident, &launch, 1, err);
}

/* Finds out what this device can do beyond its facts. */
static enum ndt_status explore(struct ndt_cuda_resident *resident, struct ndt_error *err)
{
    resident->job.batch = device_batch(resident);
    resident->mapped = ndt_cuda_mapped(resident->device, resident->pinned + resident->plan->pinned_results);
    resident->largest_cluster = (unsigned)resident->facts->largest_cluster;
    if (resident->largest_cluster < 2)
        return NDT_OK;
    const enum ndt_status status =
        ndt_cuda_largest_cluster(resident->device, ndt_kernel_resident_cluster(), NDT_GPU_CLUSTER_TEAM,
                                 resident->largest_cluster, &resident->largest_cluster, err);
    if (status == NDT_OK && resident->largest_cluster < (unsigned)resident->facts->largest_cluster)
        resident->facts->largest_cluster = (int)resident->largest_cluster;
    return status;
}

/* Kernels are loaded with their first launch. That of the loop is left alone where the driver cannot load it. */
enum ndt_status ndt_cuda_resident_warm_up(struct ndt_cuda_resident *resident, struct ndt_error *err)
{
    const struct ndt_cuda_facts *facts = resident->facts;
    const int automatic = resident->shape == NDT_CUDA_AUTOMATIC, knows_clusters = facts->largest_cluster > 1;
    if (resident->shape == NDT_CUDA_CLUSTER && !knows_clusters)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "cuda.pipeline resident-cluster: %s has no thread-block clusters (compute capability 9.0)",
                        facts->name);
    if (resident->shape == NDT_CUDA_LOOP && !facts->has_loops)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "cuda.pipeline resident-graph: graphs that loop need a driver for CUDA 12.4");
    enum ndt_status status = explore(resident, err);
    const int has_clusters = facts->largest_cluster > 1; /* there is room for them, too */
    if (status == NDT_OK && resident->shape == NDT_CUDA_CLUSTER && !has_clusters)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "cuda.pipeline resident-cluster: this part of %s has no room for a thread-block cluster",
                        facts->name);
    if (!automatic)
        return status == NDT_OK ? warm_up(resident, resident->shape, err) : status;
    if (status == NDT_OK)
        status = warm_up(resident, NDT_CUDA_BLOCK, err);
    if (status == NDT_OK && has_clusters)
        status = warm_up(resident, NDT_CUDA_CLUSTER, err);
    return status == NDT_OK ? warm_up(resident, facts->has_loops ? NDT_CUDA_LOOP : NDT_CUDA_CHAIN, err) : status;
}

void ndt_cuda_resident_close(struct ndt_cuda_resident *resident)
{
    if (resident->device)
        ndt_cuda_graphs_free(&resident->graphs, resident->device);
}

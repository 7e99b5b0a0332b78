#include "emulated_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulated_device.h"
#include "emulated_fiber.h"
#include "emulated_shared.h"
#include "emulated_watch.h"

enum {
    WARP = 32,
    MOST_WARPS = EMULATED_MOST_THREADS / WARP,
    MOST_FIBERS = EMULATED_MOST_CLUSTER * EMULATED_MOST_THREADS,
    MOST_TEAMS = 3, /* running at a time, as far as there are fibers */
    MOST_BLOCKS = MOST_TEAMS * EMULATED_MOST_CLUSTER,
    MOST_YIELDS = 1 << 21
};

enum state { READY, AT_BARRIER, AT_CLUSTER_BARRIER, AT_EXCHANGE, DONE, STATES };

/* Values that lanes offer each other; two sets, because a lane can be one exchange ahead of another, never two. */
struct warp {
    unsigned arrived, set;
    unsigned some, some_arrived; /* lanes of a barrier for some of them */
    uint64_t offered[2][WARP];
};

/* A running block. Several run at a time, as on a device: one may see the incomplete work of another. */
struct block {
    unsigned index, team;
    int is_running, waits_for_cluster;
    struct emulated_fiber *fibers;
    unsigned char states[EMULATED_MOST_THREADS];     /* enum state */
    unsigned char leaves_out[EMULATED_MOST_THREADS]; /* the next barrier, fence or atomic: a planted fault */
    struct warp warps[MOST_WARPS];
    unsigned ready[EMULATED_MOST_THREADS], ready_count;
    unsigned brought, all_brought; /* numbers brought to the barrier that fills up, and to the last one */
    char *shared;                  /* shared memory while another block runs */
};

/* Blocks that run together: a cluster. */
struct team {
    unsigned running, waiting; /* blocks that have not ended; those of them at the cluster's barrier */
};

struct emulated_grid emulated_grid_now;
const struct emulated_watch *emulated_watch;
void (*emulated_after_step)(void);

static struct emulated_fiber fibers[MOST_FIBERS];
static struct block blocks[MOST_BLOCKS];
static struct team teams[MOST_TEAMS];
static struct block *active; /* block whose shared memory is in place */
static unsigned thread_count, current, cluster;
static int yield_to;         /* another block should run now */
static unsigned long yields; /* yields in a row of all threads, since a thread last reached a barrier or its end */
static void (*running)(struct ndt_gpu_job);
static void (*running_single)(struct ndt_gpu_job, struct ndt_gpu_single); /* NULL: one argument */
static const struct emulated_launch *launch_now;

void emulated_stop(const char *what)
{
    fprintf(stderr, "CUDA emulation: %s (block %u, thread %u)\n", what, emulated_grid_now.block.x, current);
    abort();
}

static void make_ready(struct block *block, unsigned thread)
{
    block->states[thread] = READY;
    block->ready[block->ready_count++] = thread;
}

static uint32_t lane_of(const struct block *block, unsigned thread)
{
    return block->index * thread_count + thread;
}

static void leave(int for_good)
{
    if (emulated_watch)
        emulated_watch->leave();
    emulated_fiber_leave(for_good);
}

static void start_of_fiber(void)
{
    if (running_single)
        running_single(launch_now->job, launch_now->single);
    else
        running(launch_now->job);
    active->states[current] = DONE;
    yields = 0;
    leave(1);
}

static void wait_as(enum state state)
{
    active->states[current] = (unsigned char)state;
    yields = 0;
    leave(0);
}

void emulated_leave_out(int is_left_out)
{
    if (is_left_out)
        active->leaves_out[current] = 1;
}

int emulated_is_left_out(void)
{
    const int is_it = active->leaves_out[current];
    active->leaves_out[current] = 0;
    return is_it;
}

unsigned emulated_barrier(int brought)
{
    if (emulated_is_left_out())
        return brought != 0;
    active->brought += brought != 0;
    wait_as(AT_BARRIER);
    return active->all_brought;
}

void emulated_plain_barrier(void)
{
    if (!emulated_is_left_out())
        wait_as(AT_BARRIER);
}

void emulated_cluster_barrier(void)
{
    if (!emulated_is_left_out())
        wait_as(AT_CLUSTER_BARRIER);
}

unsigned emulated_cluster_rank(void)
{
    return emulated_grid_now.block.x % cluster;
}

unsigned emulated_cluster_size(void)
{
    return cluster;
}

static const uint64_t *exchange(unsigned mask, uint64_t value, int orders)
{
    const unsigned lane = current % WARP, first = current - lane;
    struct warp *warp = &active->warps[current / WARP];
    if (mask != 0xffffffffu)
        emulated_stop("a shuffle without all lanes");
    if (warp->arrived & (1u << lane))
        emulated_stop("a shuffle that another lane of the warp did not take part in");
    const unsigned set = warp->set;
    warp->offered[set][lane] = value;
    warp->arrived |= 1u << lane;
    if (warp->arrived == 0xffffffffu) {
        uint32_t lanes[WARP];
        warp->arrived = 0;
        warp->set ^= 1;
        for (unsigned i = 0; i < WARP; i++) {
            lanes[i] = lane_of(active, first + i);
            make_ready(active, first + i);
        }
        if (orders && emulated_watch)
            emulated_watch->meet(lanes, WARP);
        leave(0);
    } else {
        wait_as(AT_EXCHANGE);
    }
    return warp->offered[set];
}

const uint64_t *emulated_exchange(unsigned mask, uint64_t value)
{
    return exchange(mask, value, 0);
}

/* A barrier for the lanes that the mask names, one at a time per warp. */
static void meet_some(unsigned mask)
{
    const unsigned lane = current % WARP, first = current - lane;
    struct warp *warp = &active->warps[current / WARP];
    uint32_t lanes[WARP];
    unsigned count = 0;
    if (!(mask & 1u << lane) || (warp->some_arrived != 0 && warp->some != mask) || warp->some_arrived & 1u << lane)
        emulated_stop("a barrier of a warp with a mask that its lanes do not share");
    warp->some = mask;
    warp->some_arrived |= 1u << lane;
    if (warp->some_arrived != mask) {
        wait_as(AT_EXCHANGE);
        return;
    }
    warp->some_arrived = 0;
    for (unsigned i = 0; i < WARP; i++)
        if (mask & 1u << i) {
            lanes[count++] = lane_of(active, first + i);
            make_ready(active, first + i);
        }
    if (emulated_watch)
        emulated_watch->meet(lanes, count);
    leave(0);
}

void emulated_warp_barrier(unsigned mask)
{
    if (emulated_is_left_out())
        return;
    if (mask == 0xffffffffu)
        (void)exchange(mask, 0, 1);
    else
        meet_some(mask);
}

void emulated_fence(void)
{
    if (!emulated_is_left_out() && emulated_watch)
        emulated_watch->fence();
}

void emulated_yield(void)
{
    if (++yields > MOST_YIELDS)
        emulated_stop("threads spin without progress");
    yield_to = 1;
    make_ready(active, current);
    leave(0);
}

void emulated_pause(void)
{
    yield_to = emulated_chance(8) == 0;
    make_ready(active, current);
    leave(0);
}

void emulated_plain(const void *at, unsigned bytes, int writes)
{
    if (emulated_watch)
        emulated_watch->plain(at, bytes, writes);
}

void emulated_constant(const void *at, unsigned bytes)
{
    if (emulated_watch)
        emulated_watch->constant(at, bytes);
}

int emulated_atomic_begins(const void *at, unsigned bytes)
{
    if (!emulated_is_left_out()) {
        if (emulated_watch)
            emulated_watch->leave();
        return 1;
    }
    emulated_plain(at, bytes, 0);
    return 0;
}

void emulated_atomic(const void *at, unsigned bytes, int writes)
{
    if (emulated_watch)
        emulated_watch->atomic(at, bytes, writes);
}

void emulated_between(const void *at, unsigned bytes)
{
    emulated_pause();
    emulated_plain(at, bytes, 1);
}

/* Puts shared memory and block number of `block` in place. */
static void activate(struct block *block)
{
    if (active != block)
        emulated_shared_swap(active ? active->shared : NULL, block->shared);
    active = block;
    emulated_grid_now.block.x = block->index;
}

static void start_block(struct block *block, unsigned index)
{
    if (active && active != block && active->is_running)
        emulated_shared_swap(active->shared, NULL);
    active = block;
    block->index = emulated_grid_now.block.x = index;
    block->is_running = 1;
    block->waits_for_cluster = 0;
    block->ready_count = block->brought = 0;
    memset(block->warps, 0, sizeof(block->warps));
    memset(block->leaves_out, 0, sizeof(block->leaves_out));
    emulated_shared_begin();
    if (emulated_watch)
        emulated_watch->block(emulated_shared_place(), emulated_shared_bytes(), (unsigned)(block - blocks));
    for (unsigned i = 0; i < thread_count; i++) {
        emulated_fiber_prepare(&block->fibers[i], start_of_fiber);
        make_ready(block, i);
    }
}

static void start_team(unsigned team, unsigned index)
{
    teams[team] = (struct team){.running = cluster};
    for (unsigned i = 0; i < cluster; i++)
        start_block(&blocks[team * cluster + i], index * cluster + i);
}

/* Lanes of a block at a barrier go on; returns how many meet there. */
static unsigned open_all(struct block *block, enum state state, uint32_t *lanes)
{
    unsigned count = 0;
    for (unsigned i = 0; i < thread_count; i++) {
        if (block->states[i] != state)
            continue;
        lanes[count++] = lane_of(block, i);
        make_ready(block, i);
    }
    return count;
}

static void open_barrier(struct block *block)
{
    uint32_t lanes[EMULATED_MOST_THREADS];
    const unsigned count = open_all(block, AT_BARRIER, lanes);
    if (emulated_watch)
        emulated_watch->meet(lanes, count);
}

/* No block of the team can continue: those that have not ended are at the barrier of the cluster. */
static void open_cluster_barrier(unsigned team)
{
    static uint32_t lanes[MOST_FIBERS];
    unsigned count = 0;
    teams[team].waiting = 0;
    for (unsigned i = 0; i < cluster; i++) {
        struct block *block = &blocks[team * cluster + i];
        if (!block->is_running)
            continue;
        block->waits_for_cluster = 0;
        count += open_all(block, AT_CLUSTER_BARRIER, lanes + count);
    }
    if (emulated_watch)
        emulated_watch->meet(lanes, count);
}

static void end_or_wait(struct block *block, int ends)
{
    struct team *team = &teams[block->team];
    block->is_running = !ends;
    block->waits_for_cluster = !ends;
    team->running -= ends != 0;
    team->waiting += !ends;
    if (team->running > 0 && team->waiting == team->running)
        open_cluster_barrier(block->team);
}

/* No thread of the active block can continue: the remaining ones must be at the same barrier. */
static void settle(struct block *block)
{
    unsigned count[STATES] = {0};
    for (unsigned i = 0; i < thread_count; i++) {
        current = i;
        count[block->states[i]]++;
        if (block->states[i] == AT_EXCHANGE)
            emulated_stop("a shuffle that other lanes of the warp never reach");
    }
    if (count[AT_BARRIER] && count[AT_CLUSTER_BARRIER])
        emulated_stop("some threads wait for the block, others for the cluster");
    block->all_brought = block->brought;
    block->brought = 0;
    if (count[AT_BARRIER])
        open_barrier(block);
    else
        end_or_wait(block, count[AT_CLUSTER_BARRIER] == 0);
}

/* Runs one thread of the block until it waits for others or returns. */
static void step_block(struct block *block)
{
    activate(block);
    if (block->ready_count == 0) {
        settle(block);
        return;
    }
    const unsigned pick = emulated_chance(block->ready_count);
    current = block->ready[pick];
    block->ready[pick] = block->ready[--block->ready_count];
    emulated_grid_now.thread.x = current;
    emulated_fiber_enter(&block->fibers[current]);
}

/* Teams in an order that changes from launch to launch: i -> (first + i * step) mod count, step prime to it. */
static unsigned step_for(unsigned count)
{
    unsigned step = 1 + emulated_chance(count);
    for (;; step++) {
        unsigned a = step, b = count;
        while (b != 0) {
            const unsigned rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

/* Runs some steps of one block, few or very many, then of another; the next team replaces one that ends. */
static void run_teams(unsigned count, unsigned resident)
{
    const unsigned first = emulated_chance(count), step = step_for(count);
    unsigned started = 0, ended = 0;
    while (ended < count) {
        struct block *block = &blocks[emulated_chance(resident * cluster)];
        struct team *team = &teams[block->team];
        yield_to = 0;
        if (team->running == 0 && started < count)
            start_team(block->team, (unsigned)((first + (uint64_t)started++ * step) % count));
        for (unsigned left = 1u << emulated_chance(14);
             block->is_running && !block->waits_for_cluster && left > 0 && !yield_to; left--) {
            step_block(block);
            if (emulated_after_step)
                emulated_after_step();
            ended += team->running == 0;
        }
    }
}

/* Sets up fibers and shared memory of every running block; returns the number of teams. */
static unsigned set_up(void)
{
    unsigned resident = MOST_FIBERS / (cluster * thread_count);
    resident = resident > MOST_TEAMS ? MOST_TEAMS : resident;
    if (!fibers[0].stack)
        emulated_fiber_stacks(fibers, MOST_FIBERS);
    for (unsigned i = 0; i < resident * cluster; i++) {
        blocks[i].team = i / cluster;
        blocks[i].is_running = 0;
        blocks[i].fibers = fibers + (size_t)i * thread_count;
        if (!blocks[i].shared)
            blocks[i].shared = emulated_shared_make();
    }
    emulated_shared_launch();
    memset(teams, 0, sizeof(teams));
    active = NULL;
    return resident;
}

uint32_t emulated_block_of_rank(unsigned rank)
{
    if (rank >= cluster)
        emulated_stop("no block of the cluster has this rank");
    return emulated_grid_now.block.x - emulated_cluster_rank() + rank;
}

void *emulated_shared_of(const void *at, unsigned bytes, uint32_t index)
{
    const uintptr_t from = (uintptr_t)at - (uintptr_t)emulated_shared_place();
    if (from >= emulated_shared_bytes() || bytes == 0 || bytes > emulated_shared_bytes() - from)
        emulated_stop("no shared memory of a cluster");
    for (struct block *block = blocks; block < blocks + MOST_BLOCKS; block++)
        if (block->is_running && block->index == index) {
            emulated_shared_written(from, bytes);
            return (block == active ? emulated_shared_place() : block->shared) + from;
        }
    return NULL;
}

cudaError_t emulated_launch_make(struct emulated_launch *out, const void *kernel, dim3 grid, dim3 block,
                                 unsigned team_size, void **arguments)
{
    if (block.x == 0 || block.x > EMULATED_MOST_THREADS || block.x % 32 != 0 || block.y != 1 || block.z != 1 ||
        grid.x == 0 || grid.y != 1 || grid.z != 1 || team_size == 0 || team_size > EMULATED_MOST_CLUSTER ||
        (team_size > 1 && team_size > emulated_cluster_room()) || grid.x % team_size != 0 ||
        (team_size > 1 && !emulated_has_clusters()))
        return cudaErrorInvalidConfiguration;
    *out = (struct emulated_launch){
        .kernel = kernel, .grid = grid, .block = block, .cluster = team_size, .has_single = arguments[1] != NULL};
    out->job = *(const struct ndt_gpu_job *)arguments[0];
    if (arguments[1])
        out->single = *(const struct ndt_gpu_single *)arguments[1];
    return cudaSuccess;
}

void emulated_run(const struct emulated_launch *launch)
{
    memcpy(&running, &launch->kernel, sizeof(running)); /* ISO C knows no cast from object to function pointer */
    running_single = NULL;
    if (launch->has_single)
        memcpy(&running_single, &launch->kernel, sizeof(running_single));
    launch_now = launch;
    thread_count = launch->block.x;
    cluster = launch->cluster;
    emulated_grid_now = (struct emulated_grid){{0, 0, 0}, {0, 0, 0}, launch->block, launch->grid, cluster};
    const unsigned resident = set_up();
    if (emulated_watch)
        emulated_watch->launch();
    run_teams(launch->grid.x / cluster, resident);
}

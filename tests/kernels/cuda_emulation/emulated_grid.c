#include "emulated_grid.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "gpu_job.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum { MOST_THREADS = 256, WARP = 32, STACK_BYTES = 256 << 10, RESIDENT = 3, SHARED_BYTES = 48 << 10 };

enum state { READY, AT_BARRIER, AT_SHUFFLE, DONE };

struct fiber {
    ucontext_t context;
    enum state state;
    void *fake_stack; /* the sanitizer's */
};

/* Values that lanes offer each other; two sets, because a lane can be one shuffle ahead of another, never two. */
struct warp {
    unsigned arrived, set;
    float offered[2][WARP];
};

/* A block on its way. Several are, as on a device: one may see what another has half done. */
struct block {
    int is_running;
    unsigned index;
    struct fiber fibers[MOST_THREADS];
    struct warp warps[MOST_THREADS / WARP];
    unsigned ready[MOST_THREADS], ready_count;
    char shared[SHARED_BYTES]; /* while another block runs */
    char *stacks;
};

struct emulated_grid emulated_grid_now;

static struct block blocks[RESIDENT];
static struct block *active; /* its shared memory is in place */
static ucontext_t scheduler;
static unsigned thread_count, current;
static int give_way; /* another block should run now */
static void (*running)(struct ndt_gpu_job);
static struct ndt_gpu_job job_now;
static uint64_t random_state;
#ifdef WITH_ASAN
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
#endif

/* Bounds of the section that holds all shared memory; there may be none. */
extern char __start_emulated_shared[] __attribute__((weak));
extern char __stop_emulated_shared[] __attribute__((weak));

static void stop(const char *what)
{
    fprintf(stderr, "CUDA emulation: %s (block %u, thread %u)\n", what, emulated_grid_now.block.x, current);
    abort();
}

static unsigned random_below(unsigned limit)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) % limit);
}

static void to_scheduler(int for_good)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(for_good ? NULL : &active->fibers[current].fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
#else
    (void)for_good;
#endif
    struct fiber *fiber = &active->fibers[current];
    if (swapcontext(&fiber->context, &scheduler) != 0)
        abort();
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

static void run_fiber(unsigned thread)
{
    current = thread;
    emulated_grid_now.thread.x = thread;
#ifdef WITH_ASAN
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, active->stacks + (size_t)thread * STACK_BYTES, STACK_BYTES);
#endif
    if (swapcontext(&scheduler, &active->fibers[thread].context) != 0)
        abort();
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
}

static void make_ready(unsigned thread)
{
    active->fibers[thread].state = READY;
    active->ready[active->ready_count++] = thread;
}

static void start_of_fiber(void)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
#endif
    running(job_now);
    active->fibers[current].state = DONE;
    to_scheduler(1);
}

void emulated_barrier(void)
{
    active->fibers[current].state = AT_BARRIER;
    to_scheduler(0);
}

float emulated_shuffle_xor(unsigned mask, float value, int lanes)
{
    const unsigned self = current, lane = self % WARP;
    struct warp *warp = &active->warps[self / WARP];
    if (mask != 0xffffffffu)
        stop("a shuffle without all lanes");
    if (warp->arrived & (1u << lane))
        stop("a shuffle that another lane of the warp did not take part in");
    const unsigned set = warp->set;
    warp->offered[set][lane] = value;
    warp->arrived |= 1u << lane;
    active->fibers[self].state = AT_SHUFFLE;
    if (warp->arrived == 0xffffffffu) {
        warp->arrived = 0;
        warp->set ^= 1;
        for (unsigned i = 0; i < WARP; i++)
            make_ready(self - lane + i);
    }
    to_scheduler(0);
    return warp->offered[set][lane ^ (unsigned)lanes];
}

void emulated_give_way(void)
{
    give_way = 1;
    make_ready(current);
    to_scheduler(0);
}

/* Nobody of the active block can go on: everybody who is left must be at the barrier. 0 when all have returned. */
static int open_barrier(void)
{
    for (unsigned i = 0; i < thread_count; i++) {
        current = i;
        if (active->fibers[i].state == AT_SHUFFLE)
            stop("a shuffle that other lanes of the warp never reach");
        if (active->fibers[i].state == AT_BARRIER)
            make_ready(i);
    }
    return active->ready_count > 0;
}

static void prepare_fiber(unsigned thread)
{
    struct fiber *fiber = &active->fibers[thread];
    if (getcontext(&fiber->context) != 0)
        abort();
    fiber->context.uc_stack.ss_sp = active->stacks + (size_t)thread * STACK_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, start_of_fiber, 0);
    make_ready(thread);
}

static size_t shared_bytes(void)
{
    return __start_emulated_shared ? (size_t)(__stop_emulated_shared - __start_emulated_shared) : 0;
}

/* Shared memory and block number of `block` take their places. */
static void activate(struct block *block)
{
    const size_t bytes = shared_bytes();
    if (active != block && bytes) {
        if (active)
            memcpy(active->shared, __start_emulated_shared, bytes);
        memcpy(__start_emulated_shared, block->shared, bytes);
    }
    active = block;
    emulated_grid_now.block.x = block->index;
}

static void start_block(struct block *block, unsigned index)
{
    block->is_running = 1;
    block->index = index;
    block->ready_count = 0;
    memset(block->warps, 0, sizeof(block->warps));
    activate(block);
    if (shared_bytes())
        memset(__start_emulated_shared, 0xff, shared_bytes());
    for (unsigned i = 0; i < thread_count; i++)
        prepare_fiber(i);
}

/* One thread of the block runs until it waits for others or returns. */
static void step_block(struct block *block)
{
    activate(block);
    if (block->ready_count == 0 && !open_barrier()) {
        block->is_running = 0;
        return;
    }
    const unsigned pick = random_below(block->ready_count), thread = block->ready[pick];
    block->ready[pick] = block->ready[--block->ready_count];
    run_fiber(thread);
}

static void set_up(void)
{
    const char *seed = getenv("NDT_EMULATION_SEED");
    const size_t bytes = (size_t)MOST_THREADS * STACK_BYTES;
    if (blocks[0].stacks)
        return;
    random_state = seed ? strtoull(seed, NULL, 10) : 1;
    char *stacks =
        mmap(NULL, RESIDENT * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED || shared_bytes() > SHARED_BYTES)
        abort();
    for (int i = 0; i < RESIDENT; i++)
        blocks[i].stacks = stacks + (size_t)i * bytes;
}

/* Blocks in an order that changes from launch to launch: i -> (first + i * step) mod count, step prime to it. */
static unsigned step_for(unsigned count)
{
    unsigned step = 1 + random_below(count);
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

/* Some steps of one block, few or very many, then of another; a block that ends makes room for the next. */
static void run_blocks(unsigned count)
{
    const unsigned first = random_below(count), step = step_for(count);
    unsigned started = 0, running_count = 0;
    active = NULL;
    for (int i = 0; i < RESIDENT; i++)
        blocks[i].is_running = 0;
    do {
        struct block *block = &blocks[random_below(RESIDENT)];
        give_way = 0;
        if (!block->is_running && started < count) {
            start_block(block, (unsigned)((first + (uint64_t)started++ * step) % count));
            running_count++;
        }
        for (unsigned left = 1u << random_below(14); block->is_running && left > 0 && !give_way; left--) {
            step_block(block);
            running_count -= !block->is_running;
        }
    } while (running_count > 0 || started < count);
}

void emulated_run(const void *kernel, dim3 grid, dim3 block, const struct ndt_gpu_job *job)
{
    set_up();
    if (block.x == 0 || block.x > MOST_THREADS || block.x % WARP != 0 || grid.x == 0 || grid.y != 1 ||
        grid.z != 1 || block.y != 1 || block.z != 1)
        stop("a launch of a shape that is not emulated");
    memcpy(&running, &kernel, sizeof(running)); /* ISO C knows no cast from object to function pointer */
    job_now = *job;
    thread_count = block.x;
    emulated_grid_now = (struct emulated_grid){{0, 0, 0}, {0, 0, 0}, block, grid};
    run_blocks(grid.x);
}

#define _GNU_SOURCE
#include "ndt/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ndt/clock.h"

enum { MAX_THREADS = 256, SPINS = 4096 };
#define GATE_OPEN 0x80000000u

struct ndt_pool {
    int threads, workers; /* workers: threads started, threads - 1 */
    double spin_us;
    pthread_t ids[MAX_THREADS];
    int core_of[MAX_THREADS]; /* of each worker; -1 = not pinned */
    atomic_uint named;        /* workers that have a name */
    int caller_core;
    struct ndt_pool_job job;     /* the current one */
    _Atomic unsigned generation; /* raised when it can be joined */
    _Atomic int quit;
    pthread_mutex_t mutex; /* only to fall asleep and to wake up */
    pthread_cond_t wake;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_items(struct ndt_pool_job *job)
{
    for (;;) {
        const size_t item = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (item >= job->items)
            return;
        job->work(job->context, item);
    }
}

static void open_job(struct ndt_pool_job *job, void (*work)(void *context, size_t item), void *context,
                     size_t items)
{
    job->work = work;
    job->context = context;
    job->items = items;
    atomic_store_explicit(&job->next, 0, memory_order_relaxed);
    atomic_store_explicit(&job->gate, GATE_OPEN, memory_order_release);
}

/* Does not wait for a thread that has not joined when the work is done, for example because it was preempted. */
static void finish_job(struct ndt_pool_job *job)
{
    run_items(job);
    atomic_fetch_and_explicit(&job->gate, ~GATE_OPEN, memory_order_acq_rel);
    for (int spins = 0; atomic_load_explicit(&job->gate, memory_order_acquire) > 0; spins++)
        ndt_pool_relax(spins);
}

void ndt_pool_run_alone(struct ndt_pool_job *job, void (*work)(void *context, size_t item), void *context,
                        size_t items)
{
    open_job(job, work, context, items);
    finish_job(job);
}

int ndt_pool_help(struct ndt_pool_job *job)
{
    unsigned gate = atomic_load_explicit(&job->gate, memory_order_relaxed);
    while (gate & GATE_OPEN)
        if (atomic_compare_exchange_weak_explicit(&job->gate, &gate, gate + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            run_items(job);
            atomic_fetch_sub_explicit(&job->gate, 1, memory_order_release);
            return 1;
        }
    return 0;
}

void ndt_pool_relax(int spins)
{
    relax();
    if (spins > SPINS) /* another thread may have lost its core: let it run */
        sched_yield();
}

static void sleep_until(struct ndt_pool *pool, unsigned seen)
{
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_for_job(struct ndt_pool *pool, unsigned seen)
{
    const double until_us = ndt_clock_us() + pool->spin_us;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen)
                return;
            relax();
        }
    } while (ndt_clock_us() < until_us);
    sleep_until(pool, seen);
}

static void *worker(void *argument)
{
    struct ndt_pool *pool = argument;
    char name[16];
    snprintf(name, sizeof(name), "ndt-work-%u", (1 + atomic_fetch_add(&pool->named, 1)) & 255);
    (void)pthread_setname_np(pthread_self(),
                             name); /* others' names are files, which a sandbox may forbid to write */
    for (unsigned seen = 0;;) {
        wait_for_job(pool, seen);
        seen = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (atomic_load(&pool->quit))
            return NULL;
        (void)ndt_pool_help(&pool->job);
    }
}

static void announce(struct ndt_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

static void pin_worker(struct ndt_pool *pool, int index, int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    if (pthread_setaffinity_np(pool->ids[index], sizeof(one), &one) == 0)
        pool->core_of[index] = core;
}

/* Pins the workers to allowed cores other than the caller's; the caller itself is not pinned. */
static void pin_workers(struct ndt_pool *pool)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    int index = 0;
    pool->caller_core = sched_getcpu();
    for (int core = 0; core < CPU_SETSIZE && index < pool->workers; core++)
        if (CPU_ISSET((size_t)core, &allowed) && core != pool->caller_core)
            pin_worker(pool, index++, core);
}

/* The caller is not pinned. If the scheduler moves it to a worker's core, both would share that core although
 * another one is idle; therefore the worker moves to the core that the caller left. */
static void follow_caller(struct ndt_pool *pool)
{
    const int core = sched_getcpu();
    if (pool->caller_core < 0 || core == pool->caller_core || core < 0) /* not pinned, or nothing changed */
        return;
    for (int i = 0; i < pool->workers; i++)
        if (pool->core_of[i] == core)
            pin_worker(pool, i, pool->caller_core);
    pool->caller_core = core;
}

void ndt_pool_run(struct ndt_pool *pool, void (*work)(void *context, size_t item), void *context, size_t items)
{
    if (pool->workers == 0 || items < 2) {
        for (size_t i = 0; i < items; i++)
            work(context, i);
        return;
    }
    follow_caller(pool);
    open_job(&pool->job, work, context, items);
    announce(pool);
    finish_job(&pool->job);
}

int ndt_pool_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

static enum ndt_status start_workers(struct ndt_pool *pool, int pin, struct ndt_error *err)
{
    for (int i = 1; i < pool->threads; i++) {
        if (pthread_create(&pool->ids[pool->workers], NULL, worker, pool) != 0)
            return ndt_fail(err, NDT_ERR_MEMORY, "worker thread %d of %d could not be started", i, pool->threads);
        pool->core_of[pool->workers++] = -1;
    }
    if (pin)
        pin_workers(pool);
    return NDT_OK;
}

enum ndt_status ndt_pool_create(struct ndt_pool **out, int threads, double spin_us, int pin, struct ndt_error *err)
{
    *out = NULL;
    if (threads < 1 || threads > MAX_THREADS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d threads; the range is 1 to %d", threads, MAX_THREADS);
    struct ndt_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a thread pool");
    pool->threads = threads;
    pool->spin_us = spin_us;
    pool->caller_core = -1;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    enum ndt_status status = start_workers(pool, pin, err);
    if (status != NDT_OK)
        ndt_pool_destroy(pool);
    else
        *out = pool;
    return status;
}

void ndt_pool_destroy(struct ndt_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->quit, 1);
    announce(pool);
    for (int i = 0; i < pool->workers; i++)
        pthread_join(pool->ids[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int ndt_pool_threads(const struct ndt_pool *pool)
{
    return pool->threads;
}

/** @file
 * @brief A small pinned thread pool with bounded spinning.
 *
 * Waking a sleeping thread costs 20-50 us, about as much as a whole evaluation; unbounded spinning occupies a core
 * while no scans arrive. Therefore workers spin for spin_us after their last job and then sleep. (OpenMP runtimes
 * do one or the other, and unpinned threads gave outliers of ten times the median.) ndt_pool_run is called by one
 * thread at a time. */
#ifndef NDT_POOL_H
#define NDT_POOL_H

#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stddef.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndt_pool;

/** threads: including the caller; 1 starts none. pin: every worker stays on its own core, among those this process
 * may use; the caller is not pinned, and a worker whose core it moves to takes the core it left. */
NDT_MUST_CHECK enum ndt_status ndt_pool_create(struct ndt_pool **out, int threads, double spin_us, int pin,
                                               struct ndt_error *err);
/** `pool` may be NULL. */
void ndt_pool_destroy(struct ndt_pool *pool);
/** Threads, the caller's included. */
int ndt_pool_threads(const struct ndt_pool *pool);
/** Calls work(context, i) once for every i in [0, items), in any order, on any thread, the caller's included;
 * returns when all are done. */
void ndt_pool_run(struct ndt_pool *pool, void (*work)(void *context, size_t item), void *context, size_t items);
/** Cores this process may use. */
int ndt_pool_cores(void);

#ifndef __cplusplus /* for the atomics of C11 */
/** Work within an item of ndt_pool_run, of the thread that runs it; others may help. Starts as zeros. */
struct ndt_pool_job {
    /** @name Written before the gate opens, read after it is joined
     * @{ */
    void (*work)(void *context, size_t item);
    void *context;
    size_t items;
    /** @} */
    _Atomic size_t next;
    _Atomic unsigned gate; /**< open or not, and the number of threads that have joined */
};
/** As ndt_pool_run, on the calling thread and on those that help meanwhile. */
void ndt_pool_run_alone(struct ndt_pool_job *job, void (*work)(void *context, size_t item), void *context,
                        size_t items);
/** Takes part in a job that another thread runs; 0: none is running. The job must outlive the call. */
int ndt_pool_help(struct ndt_pool_job *job);
/** A pause within a loop that waits for other threads; spins: how many there have been. */
void ndt_pool_relax(int spins);
#endif

#ifdef __cplusplus
}
#endif
#endif

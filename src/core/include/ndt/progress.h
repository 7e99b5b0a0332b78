/** @file
 * @brief Progress of a long call, such as loading a map, and the request to end it.
 *
 * The thread that makes the call and its helpers count what is done; any other thread reads the counters and may
 * cancel the call, which then fails with NDT_ERR_CANCELLED within some tenths of a second. Every function takes
 * NULL for a call without. Threads: all functions but ndt_progress_init may be called by any thread; no
 * locks. Determinism: no result depends on it. */
#ifndef NDT_PROGRESS_H
#define NDT_PROGRESS_H

#include <stdint.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of work that is counted. A total of 0 is not known, or there is none. */
enum ndt_progress_item {
    NDT_PROGRESS_TILES,      /**< files that were read completely */
    NDT_PROGRESS_ALL_TILES,  /**< files to be read */
    NDT_PROGRESS_BYTES,      /**< of the current file that were read */
    NDT_PROGRESS_ALL_BYTES,  /**< of the current file */
    NDT_PROGRESS_POINTS,     /**< points that are in the sums, of all files so far */
    NDT_PROGRESS_ALL_POINTS, /**< points of the files that have been read so far */
    NDT_PROGRESS_LEVELS,     /**< levels of the map that were built, or checked in a compiled map */
    NDT_PROGRESS_ALL_LEVELS, /**< levels of the map */
    NDT_PROGRESS_ITEMS
};

/** The members are private. */
struct ndt_progress {
    int is_cancelled;
    uint64_t items[NDT_PROGRESS_ITEMS];
    void (*report)(void *context, const struct ndt_progress *progress);
    void *context;
    int64_t interval_us, next_report_us;
};

/** Zeros. report (may be NULL) is called by a thread that works on the call, each interval_s from now on. */
static inline void ndt_progress_init(struct ndt_progress *progress,
                                     void (*report)(void *context, const struct ndt_progress *progress),
                                     void *context, double interval_s)
{
    memset(progress, 0, sizeof(*progress));
    progress->report = report;
    progress->context = context;
    progress->interval_us = (int64_t)(interval_s * 1e6);
    progress->next_report_us = (int64_t)ndt_clock_us() + progress->interval_us;
}

/** Zeros all counters for another call, which is reported from one interval on; what is cancelled stays so. */
static inline void ndt_progress_begin(struct ndt_progress *progress)
{
    for (int i = 0; i < NDT_PROGRESS_ITEMS; i++)
        __atomic_store_n(&progress->items[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&progress->next_report_us, (int64_t)ndt_clock_us() + progress->interval_us, __ATOMIC_RELAXED);
}

/** The call is to end. */
static inline void ndt_progress_cancel(struct ndt_progress *progress)
{
    __atomic_store_n(&progress->is_cancelled, 1, __ATOMIC_RELEASE);
}

/** Whether the call is to end. */
static inline int ndt_progress_is_cancelled(const struct ndt_progress *progress)
{
    return progress && __atomic_load_n(&progress->is_cancelled, __ATOMIC_ACQUIRE);
}

/** The value of a counter. */
static inline uint64_t ndt_progress_get(const struct ndt_progress *progress, enum ndt_progress_item item)
{
    return progress ? __atomic_load_n(&progress->items[item], __ATOMIC_RELAXED) : 0;
}

/** Sets a counter. */
static inline void ndt_progress_set(struct ndt_progress *progress, enum ndt_progress_item item, uint64_t value)
{
    if (progress)
        __atomic_store_n(&progress->items[item], value, __ATOMIC_RELAXED);
}

/** Adds to a counter. */
static inline void ndt_progress_add(struct ndt_progress *progress, enum ndt_progress_item item, uint64_t more)
{
    if (progress)
        __atomic_fetch_add(&progress->items[item], more, __ATOMIC_RELAXED);
}

/** Called by the work several times per second: reports when that is due, and returns 0 when the work is to end. */
static inline int ndt_progress_step(struct ndt_progress *progress)
{
    if (!progress)
        return 1;
    if (progress->report) {
        const int64_t now_us = (int64_t)ndt_clock_us();
        int64_t due_us = __atomic_load_n(&progress->next_report_us, __ATOMIC_RELAXED);
        if (now_us >= due_us &&
            __atomic_compare_exchange_n(&progress->next_report_us, &due_us, now_us + progress->interval_us, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            progress->report(progress->context, progress);
    }
    return !ndt_progress_is_cancelled(progress);
}

/** As ndt_progress_step, for functions that return a status. */
NDT_MUST_CHECK static inline enum ndt_status ndt_progress_check(struct ndt_progress *progress,
                                                                struct ndt_error *err)
{
    return ndt_progress_step(progress) ? NDT_OK : ndt_fail(err, NDT_ERR_CANCELLED, "cancelled");
}

#ifdef __cplusplus
}
#endif
#endif

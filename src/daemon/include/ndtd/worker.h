/* The matching thread "ndt-match": takes what waits in the queue, aligns scan by scan, tells every scan's result.
 *
 * It takes all that wait, up to batch.max scans, and handles them in their order; a batch is never waited for.
 * Between frames it takes over new maps and what was asked for with the functions below: so a thing asked for
 * before a scan was sent holds for that scan. Every scan that was taken leaves exactly one result. A new map goes
 * to a device part by part, one before each frame and one every millisecond without frames, and holds once it is
 * there.
 *
 * Deadline: budget_s after the arrival of the last byte, less what publishing took lately. The clock bounds the
 * work and writes timings, nothing else: without a deadline hit the results are those of the replay, bit for bit.
 *
 * What computes: autotuner.h says how it is chosen, at the start when there is a map, else beside the work with the
 * first one, and again when scans take longer. The thread changes over between scans.
 *
 * publish_us in a result is the time that publishing the result before it took: its own is not known yet.
 * Threads: start and stop by one thread; the other functions by any. After warm-up no allocation per scan. */
#ifndef NDTD_WORKER_H
#define NDTD_WORKER_H

#include "ndtd/frame_queue.h"
#include "ndtd/map_loader.h"
#include "ndtd/autotuner.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TIMINGS_KEPT 1000

/* Where results go. All three are called by the worker's thread only. open and close may be NULL. */
struct ndtd_worker_sink {
    void *context;
    enum ndt_status (*open)(void *context, struct ndt_error *err);
    enum ndt_status (*send)(void *context, const struct ndt_result_message *result, struct ndt_error *err);
    void (*close)(void *context);
};

struct ndtd_worker_parts {
    const struct ndtd_settings_snapshot *settings; /* the worker acquires a reference */
    struct ndtd_queue *queue;                      /* borrowed, as are the rest */
    struct ndtd_map_loader *loader;                /* NULL: `map` is all there is */
    struct ndt_map *map;                           /* to begin with; NULL: none yet */
    struct ndtd_worker_sink sink;
};

struct ndtd_worker;
/* Starts the thread and waits until backend and sink are open, or could not be opened. */
NDT_MUST_CHECK enum ndt_status ndtd_worker_start(struct ndtd_worker **out, const struct ndtd_worker_parts *parts,
                                                 struct ndt_error *err);
/* Closes the queue, lets the thread answer what waits, ends it and frees everything. */
void ndtd_worker_stop(struct ndtd_worker *worker);

/* A stamp of 0: from the next scan on. */
void ndtd_worker_start_at(struct ndtd_worker *worker, const struct ndt_pose_message *pose);
/* 0: scans are answered `rejected` until it is 1 again. */
void ndtd_worker_set_active(struct ndtd_worker *worker, int active);
/* The snapshot holds from the next scan on, for the worker, its pipeline and its autotuner. It differs from the one
 * before in reloadable options only. */
void ndtd_worker_apply(struct ndtd_worker *worker, const struct ndtd_settings_snapshot *snapshot);

struct ndtd_worker_status {
    int active;
    uint64_t map_id, config_hash;
    uint64_t outcomes[NDT_OUTCOME_COUNT]; /* of the scans that reached the matcher */
    uint64_t scans, frames_refused, send_failures;
    int has_pose; /* the tracker has one */
    struct ndt_pose T_map_sensor;
    char backend[160];
};
void ndtd_worker_status(struct ndtd_worker *worker, struct ndtd_worker_status *out);
/* What was chosen to compute, and from what numbers; the source is the default as long as nothing was. */
void ndtd_worker_autotune_result(struct ndtd_worker *worker, struct ndtd_autotune_result *out);

/* A scan as the worker saw it. */
struct ndtd_worker_timing {
    struct ndtd_scan_record record; /* without trace; publish_us is its own */
    double latency_us;              /* from the last byte to the result handed on */
    uint32_t queue_depth;
};
/* The newest `max` at most, oldest first; returns how many. */
size_t ndtd_worker_timings(struct ndtd_worker *worker, struct ndtd_worker_timing *out, size_t max);

#ifdef __cplusplus
}
#endif
#endif

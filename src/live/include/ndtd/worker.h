/** @file
 * @brief The matching thread "ndt-match": takes frames from the queue, processes them one by one and publishes the
 * result of every scan.
 *
 * Frames: the thread pops all waiting frames at once, up to batch.max scans, and processes them one by one, in
 * their order, because the prediction for each scan needs the previous result. With batch.together it aligns the
 * scans together beforehand (ndtd_pipeline_expect). The thread never waits for a batch to fill. Every popped scan
 * gets exactly one result.
 *
 * Between frames the thread applies updates (the functions below) and new maps: an update requested before a scan
 * was sent is in force for that scan. A new map goes to a device in parts, one before each frame and one every
 * millisecond without frames, and is used once it is complete.
 *
 * Deadline: the budget (live.budget_ms) after the arrival of the last byte, less the recent duration of publishing.
 * The clock bounds the work and is used for timings, nothing else: if no deadline is hit, the results are
 * bit-identical to those of the replay, unless scans went together.
 *
 * Backend: measured and chosen with the first map (autotune.h), at the start if there is one. Scans that arrive
 * during these 0.1 s wait.
 *
 * publish_us of a result is the time of publishing the previous one, because its own is not known yet. Threads:
 * start and stop by one thread; the other functions by any thread. No allocation per scan after warm-up. Source:
 * worker.c. */
#ifndef NDTD_WORKER_H
#define NDTD_WORKER_H

#include "ndtd/autotune.h"
#include "ndtd/localizer.h"
#include "ndtd/message_queue.h"
#include "ndtd/map_loader.h"
#include "ndtd/points_publisher.h"
#include "ndtd/pose_stream.h"
#include "ndtd/scan_state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TIMINGS_KEPT 1000 /**< number of newest scans in ndtd_worker_timings */

/** Destination of the results. Only the worker's thread calls the functions; `open` and `close` may be NULL
 * (nothing to open or close). */
struct ndtd_worker_sink {
    void *context;
    enum ndt_status (*open)(void *context, struct ndt_error *err);
    enum ndt_status (*send)(void *context, const struct ndt_result_message *result, struct ndt_error *err);
    void (*close)(void *context);
};

/** Inputs and outputs of the worker. */
struct ndtd_worker_parts {
    const struct ndtd_settings_snapshot *settings; /**< the worker acquires a reference */
    struct ndtd_queue *queue;                      /**< borrowed, as the others below */
    struct ndtd_map_loader *loader;                /**< may be NULL (`map` never changes) */
    struct ndtd_localizer *localizer;              /**< may be NULL (no requests to localise) */
    struct ndt_map *map;                           /**< the first map; may be NULL (none yet) */
    struct ndtd_worker_sink sink;
    struct ndtd_points_publisher *points; /**< may be NULL (no viewers) */
    struct ndtd_pose_stream *stream;      /**< may be NULL (no poses between scans) */
};

struct ndtd_worker;
/** Starts the thread and waits until backend and sink are open, or have failed to open. */
NDT_MUST_CHECK enum ndt_status ndtd_worker_start(struct ndtd_worker **out, const struct ndtd_worker_parts *parts,
                                                 struct ndt_error *err);
/** Closes the queue, answers the waiting frames, ends the thread and frees everything. */
void ndtd_worker_stop(struct ndtd_worker *worker);

/** Sets the pose of the estimator. A stamp of 0 means the stamp of the next scan. */
void ndtd_worker_set_initial_pose(struct ndtd_worker *worker, const struct ndt_pose_message *pose);
/** active = 0: scans are answered `rejected` until active is 1 again. */
void ndtd_worker_set_active(struct ndtd_worker *worker, int active);
/** Uses this snapshot from the next scan on, in worker and pipeline. It differs from the previous one in
 * reloadable options only. */
void ndtd_worker_apply_settings(struct ndtd_worker *worker, const struct ndtd_settings_snapshot *snapshot);

/** Status of the worker. */
struct ndtd_worker_status {
    int active;
    uint64_t map_id, config_hash;
    uint64_t outcomes[NDT_OUTCOME_COUNT]; /**< outcomes of the scans that left the queue */
    uint64_t states[NDT_STATE_COUNT];     /**< states after the same scans */
    uint64_t state_changes;
    struct ndtd_state_change state_change; /**< last change */
    uint64_t scans, frames_refused, send_failures;
    double budget_us; /**< budget of the last scan; 0: none yet */
    struct ndtd_pipeline_events events;
    int has_pose; /**< whether the estimator has a pose */
    struct ndt_pose T_map_sensor;
    char backend[160];
};
/** Copies the status. */
void ndtd_worker_status(struct ndtd_worker *worker, struct ndtd_worker_status *out);
/** A counter that grows before every frame, and every 50 ms without frames: a sign of life. Any thread. */
uint64_t ndtd_worker_beats(const struct ndtd_worker *worker);
/** The autotune result in use, with its measurements; all zero until there is one. */
void ndtd_worker_autotune_result(struct ndtd_worker *worker, struct ndtd_autotune_result *out);

/** The timing of one scan. */
struct ndtd_worker_timing {
    struct ndtd_scan_record record; /**< without trace; publish_us is that of this scan */
    double latency_us;              /**< from the last byte until the result was handed to the sink */
    uint32_t queue_depth;
};
/** Copies at most the newest `max` timings, oldest first; returns their number. */
size_t ndtd_worker_timings(struct ndtd_worker *worker, struct ndtd_worker_timing *out, size_t max);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief The matching thread: wait for frames, apply updates and maps, process, publish; autotune with the first
 * map.
 *
 * Requests of other threads are collected in `pending` under the lock and applied by the thread between frames;
 * ndtd_pipeline_process() does the work on a frame. */
#include "ndtd/worker.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"
#include "ndtd/scan_result.h"
#include "ndtd/settings_snapshot.h"
#include "ndt/clock.h"
#include "worker_log.h"

enum { FRAMES_AT_ONCE = 64, LINE_BYTES = 2000, GAPS_KEPT = 8 };
/* Part of the time between scans that one scan may take, and the longest time between scans that counts. */
static const double GAP_PART = 0.8, MOST_GAP_US = 1e6;
/* Longest wait for a frame; then the thread checks for new maps. While a map is uploaded to
 * a device, each round uploads a part. */
static const double WAIT_US = 50e3, MAP_WAIT_US = 1e3;
/* Time after which a lost pose may be out of reach of the tiles around the last one. */
static const double UNTRUSTED_S = 10;
/* Time reserved for publishing: the longest recent duration, which decays with every scan, plus RESERVE_LEAST_US,
 * and at most this fraction of the budget, so that one slow publication does not shorten the time of many scans. */
static const double RESERVE_DECAY = 0.8, RESERVE_LEAST_US = 300, RESERVE_MOST = 0.2;

/* Updates that other threads request. */
struct updates {
    int has_pose, has_active;
    int active;
    struct ndt_pose_message pose;
    const struct ndtd_settings_snapshot *settings; /* NULL: unchanged */
};

struct ndtd_worker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members up to published_autotune */
    pthread_cond_t opened;
    int is_open;
    enum ndt_status open_status;
    struct ndt_error open_error;
    struct updates pending;
    atomic_int has_pending; /* read without the lock */
    struct ndtd_worker_status status;
    struct ndtd_worker_timing ring[NDTD_TIMINGS_KEPT];
    uint64_t ring_count;
    struct ndtd_autotune_result published_autotune;

    /* Members of the thread. */
    struct updates updates; /* taken from `pending` */
    const struct ndtd_settings_snapshot *snapshot;
    const struct ndtd_settings *settings; /* settings of the snapshot */
    struct ndtd_worker_parts parts;
    struct ndtd_pipeline *pipeline;
    struct ndtd_autotune_result autotune; /* published under the lock */
    int is_tuned;                         /* the measurement with the first map is done */
    struct ndt_map *map;                  /* map of the pipeline */
    struct ndt_result_message message;
    struct ndt_map *next_map; /* a reference; NULL when the map is removed */
    int has_next_map;         /* `next_map` replaces `map` as soon as the device has it */
    uint64_t map_id, config_hash;
    int64_t trusted_ns; /* stamp of the last scan with a trusted pose, or of the first scan */
    double publish_us, reserve_us;
    double arrival_us, gaps_us[GAPS_KEPT]; /* arrival of the last scan; gaps between the last scans */
    unsigned gap_count;
    double budget_us; /* budget of the current scan */
    struct ndtd_worker_log log;
    atomic_uint_fast64_t beats;
};

static void publish_state(struct ndtd_worker *worker)
{
    const struct ndt_track *track = ndtd_pipeline_track(worker->pipeline);
    pthread_mutex_lock(&worker->lock);
    worker->status.map_id = worker->map_id;
    worker->status.config_hash = worker->snapshot->hash;
    worker->status.has_pose = track->has_pose;
    worker->status.T_map_sensor = track->state.T_map_base;
    pthread_mutex_unlock(&worker->lock);
}

/* Reports the pose to the loader, which loads the tiles around it: that of a result, or an initial pose before the
 * first scan there. */
static void load_map_around(struct ndtd_worker *worker, const struct ndt_pose *T_map_sensor)
{
    if (worker->parts.loader)
        ndtd_map_loader_follow(worker->parts.loader, T_map_sensor->t_m);
}

static void use_settings(struct ndtd_worker *worker, const struct ndtd_settings_snapshot *snapshot)
{
    ndtd_settings_snapshot_replace(&worker->snapshot, snapshot);
    worker->settings = &snapshot->settings;
}

static void apply_pending_updates(struct ndtd_worker *worker)
{
    struct updates *updates = &worker->updates;
    if (!atomic_exchange(&worker->has_pending, 0))
        return;
    pthread_mutex_lock(&worker->lock);
    *updates = worker->pending;
    worker->pending.has_pose = worker->pending.has_active = 0;
    worker->pending.settings = NULL;
    pthread_mutex_unlock(&worker->lock);
    if (updates->has_pose) {
        ndtd_pipeline_set_initial_pose(worker->pipeline, &updates->pose);
        load_map_around(worker, &updates->pose.pose);
    }
    if (updates->has_active)
        ndtd_pipeline_set_active(worker->pipeline, updates->active);
    if (updates->settings) {
        use_settings(worker, updates->settings);
        ndtd_pipeline_apply_settings(worker->pipeline, worker->snapshot);
        ndtd_settings_snapshot_release(updates->settings);
    }
    publish_state(worker);
}

static void set_next_map(struct ndtd_worker *worker, struct ndt_map *map, int has_next_map)
{
    ndt_map_release(worker->next_map);
    worker->next_map = map;
    worker->has_next_map = has_next_map;
}

/* Switches to the newest map of the loader, part by part; a newer map replaces one whose upload is not complete. */
static void change_map(struct ndtd_worker *worker)
{
    struct ndt_map *map;
    struct ndt_error err = {""};
    int taken;
    if (worker->parts.loader && ndtd_map_loader_take(worker->parts.loader, &map))
        set_next_map(worker, map, 1);
    if (!worker->has_next_map)
        return;
    enum ndt_status status = ndtd_pipeline_set_map_async(worker->pipeline, worker->next_map, &taken, &err);
    if (status == NDT_OK && !taken)
        return;
    if (status == NDT_OK) {
        worker->map_id = worker->next_map ? worker->next_map->id : 0;
        worker->map = worker->next_map;
    } else
        ndtd_log_always(NDTD_LOG_ERROR, "the new map could not be used, the previous one is kept: %s", err.text);
    set_next_map(worker, NULL, 0);
    publish_state(worker);
}

static void describe(struct ndtd_worker *worker)
{
    const struct ndt_backend *backend = ndtd_pipeline_backend(worker->pipeline);
    char text[sizeof(worker->status.backend)];
    snprintf(text, sizeof(text), "%s", backend->ops->name);
    if (backend->ops->describe)
        backend->ops->describe(backend, text, sizeof(text));
    pthread_mutex_lock(&worker->lock);
    memcpy(worker->status.backend, text, sizeof(text));
    worker->published_autotune = worker->autotune;
    pthread_mutex_unlock(&worker->lock);
}

/* Logs one line for a device backend that is built in and that `auto` does not use. */
static void report_unused_device(const struct ndtd_worker *worker, const struct ndtd_autotune_result *tuned)
{
    const struct ndt_backend_ops *ops;
    char text[LINE_BYTES];
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        const char *why = ops->pipelines
                              ? ndtd_autotune_why_unused(worker->settings, tuned, ops->name, text, sizeof(text))
                              : NULL;
        if (why)
            ndtd_log_always(NDTD_LOG_INFO, "backend.name: auto does not use %s: %s", ops->name, why);
    }
}

/* Measures with the first map, before scans are matched with it; without a result the default backend stays. */
static void autotune(struct ndtd_worker *worker)
{
    const struct ndtd_settings *settings = worker->settings;
    const struct ndtd_autotune_request request = {
        .settings = settings, .map = worker->map, .time_us = settings->autotune_limit_s * 1e6};
    struct ndtd_autotune_result *tuned = &worker->autotune;
    struct ndt_error err = {""};
    char line[LINE_BYTES];
    if (worker->is_tuned || !worker->map)
        return;
    worker->is_tuned = 1;
    if (!settings->autotune) {
        report_unused_device(worker, NULL);
        return;
    }
    enum ndt_status status = ndtd_autotune_measure(&request, tuned, &err);
    if (status == NDT_OK && tuned->choice.row < 0)
        status = ndt_fail(&err, NDT_ERR_UNSUPPORTED, "nothing could be measured: %s",
                          tuned->row_count ? tuned->rows[0].why : "there is no backend");
    if (status == NDT_OK)
        status = ndtd_pipeline_set_autotune_result(worker->pipeline, tuned, &err);
    if (status != NDT_OK) {
        *tuned = (struct ndtd_autotune_result){0};
        ndtd_log_always(NDTD_LOG_WARNING, "autotune: the backend stays: %s", err.text);
        return;
    }
    describe(worker);
    ndtd_log_always(NDTD_LOG_INFO, "autotune: %s", ndtd_autotune_line(tuned, line, sizeof(line)));
    report_unused_device(worker, tuned);
}

static void between_frames(struct ndtd_worker *worker)
{
    apply_pending_updates(worker);
    change_map(worker);
    autotune(worker);
    ndtd_localizer_serve(worker->parts.localizer, worker->pipeline, worker->parts.loader, worker->has_next_map);
    atomic_fetch_add(&worker->beats, 1);
}

/* Puts the state into the status, and a change of it into the log. */
static void report_state(struct ndtd_worker *worker, const struct ndtd_scan_record *record)
{
    pthread_mutex_lock(&worker->lock);
    worker->status.states[record->state]++;
    const int is_changed = ndtd_state_change_update(&worker->status.state_change, record);
    worker->status.state_changes += is_changed != 0;
    const struct ndtd_state_change change = worker->status.state_change;
    pthread_mutex_unlock(&worker->lock);
    if (is_changed)
        ndtd_worker_log_state(&worker->log, &change);
}

static void fill_message(struct ndtd_worker *worker, const struct ndtd_scan_record *record, uint32_t queue_depth)
{
    struct ndt_result_message *message = &worker->message;
    ndtd_scan_result(record, message);
    message->map_id = worker->map_id;
    message->config_hash = worker->snapshot->hash;
    message->queue_depth = queue_depth;
    message->drop_counter = ndtd_queue_counters(worker->parts.queue).dropped;
    message->publish_us = worker->publish_us;
}

static void keep_timing(struct ndtd_worker *worker, const struct ndtd_scan_record *record, double latency_us,
                        uint32_t queue_depth)
{
    pthread_mutex_lock(&worker->lock);
    struct ndtd_worker_timing *row = &worker->ring[worker->ring_count++ % NDTD_TIMINGS_KEPT];
    row->record = *record;
    row->record.trace = NULL;
    row->record.trace_count = 0;
    row->latency_us = latency_us;
    row->queue_depth = queue_depth;
    worker->status.scans++;
    worker->status.budget_us = worker->budget_us;
    worker->status.outcomes[record->result.outcome]++;
    pthread_mutex_unlock(&worker->lock);
}

static enum ndt_status send(struct ndtd_worker *worker, const struct ndtd_scan_record *record, uint32_t queue_depth,
                            struct ndt_error *err)
{
    fill_message(worker, record, queue_depth);
    return worker->parts.sink.send(worker->parts.sink.context, &worker->message, err);
}

/* Publishes an answer. A result that cannot be encoded is replaced by one that can: no scan goes unanswered. */
static void answer(struct ndtd_worker *worker, const struct ndtd_message *frame, struct ndtd_scan_record *record,
                   uint32_t queue_depth)
{
    struct ndt_error err = {""};
    const double start_us = ndt_clock_us();
    enum ndt_status status = send(worker, record, queue_depth, &err);
    if (status == NDT_ERR_ARGUMENT) {
        ndtd_log(NDTD_LOG_ERROR, "scan %" PRIu64 " is rejected: %s", record->seq, err.text);
        ndtd_scan_record_reject(record, err.text);
        status = send(worker, record, queue_depth, &err);
    }
    if (status != NDT_OK) {
        ndtd_log(NDTD_LOG_ERROR, "the result of scan %" PRIu64 " could not be published: %s", record->seq,
                 err.text);
        pthread_mutex_lock(&worker->lock);
        worker->status.send_failures++;
        pthread_mutex_unlock(&worker->lock);
    }
    const double end_us = ndt_clock_us();
    worker->publish_us = record->publish_us = end_us - start_us;
    worker->reserve_us = fmax(worker->publish_us, RESERVE_DECAY * worker->reserve_us);
    keep_timing(worker, record, end_us - frame->arrival_us, queue_depth);
    report_state(worker, record);
    publish_state(worker);
}

/* Sets the answer to a scan that the pipeline could not process. */
static void refuse_scan(const struct ndtd_worker *worker, const struct ndtd_message *frame, const char *why,
                        struct ndtd_scan_record *record)
{
    *record = (struct ndtd_scan_record){
        .seq = frame->scan.seq, .stamp_ns = frame->scan.stamp_ns, .state = ndtd_pipeline_state(worker->pipeline)};
    ndtd_scan_record_reject(record, why);
}

static void refuse_frame(struct ndtd_worker *worker, const struct ndtd_message *frame, const char *why)
{
    ndtd_log(NDTD_LOG_WARNING, "message %s could not be used: %s", ndt_message_name(frame->type), why);
    pthread_mutex_lock(&worker->lock);
    worker->status.frames_refused++;
    pthread_mutex_unlock(&worker->lock);
}

/* Notes the time since the previous scan, for live.budget_ms = auto. */
static void follow_gaps(struct ndtd_worker *worker, const struct ndtd_message *frame)
{
    if (worker->arrival_us > 0)
        worker->gaps_us[worker->gap_count++ % GAPS_KEPT] = frame->arrival_us - worker->arrival_us;
    worker->arrival_us = frame->arrival_us;
}

/* Budget with live.budget_ms = auto: while no scan waits, a scan may take most of the time between scans. The least
 * of the last gaps counts, so that the next scan does not wait. */
static double budget_of(const struct ndtd_worker *worker)
{
    const double budget_us = ndtd_settings_budget_s(worker->settings) * 1e6;
    double least_us = MOST_GAP_US;
    if (worker->settings->budget_s > 0 || worker->gap_count == 0 ||
        ndtd_queue_counters(worker->parts.queue).scans_waiting > 0)
        return budget_us;
    for (unsigned i = 0; i < worker->gap_count && i < GAPS_KEPT; i++)
        least_us = fmin(least_us, worker->gaps_us[i]);
    return fmax(budget_us, GAP_PART * least_us);
}

static double deadline_of(struct ndtd_worker *worker, const struct ndtd_message *frame)
{
    const double budget_us = worker->budget_us = budget_of(worker);
    return frame->arrival_us + budget_us - fmin(worker->reserve_us + RESERVE_LEAST_US, RESERVE_MOST * budget_us);
}

/* Loads the tiles around a trusted or given pose; without one those around the GNSS position, and after a while
 * without either all tiles. */
static void load_map(struct ndtd_worker *worker, const struct ndtd_message *frame,
                     const struct ndtd_scan_record *record)
{
    const struct ndt_track *track = ndtd_pipeline_track(worker->pipeline);
    const int is_trusted = ndtd_state_is_trusted(ndtd_pipeline_state(worker->pipeline));
    double position_m[3];
    if (!worker->parts.loader)
        return;
    if (track->has_pose && (frame->type == NDT_MESSAGE_INITIAL_POSE || (record && is_trusted)))
        load_map_around(worker, &track->state.T_map_base);
    else if (frame->type == NDT_MESSAGE_GNSS && !is_trusted && ndtd_pipeline_gnss(worker->pipeline, position_m))
        ndtd_map_loader_follow(worker->parts.loader, position_m);
    if (!record)
        return;
    if (is_trusted || worker->trusted_ns == 0)
        worker->trusted_ns = record->stamp_ns;
    else if (ndt_track_seconds(worker->trusted_ns, record->stamp_ns) > UNTRUSTED_S &&
             !ndtd_pipeline_gnss(worker->pipeline, position_m))
        ndtd_map_loader_lose(worker->parts.loader);
}

/* Sets the events of the status. */
static void share_events(struct ndtd_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->status.events = *ndtd_pipeline_events(worker->pipeline);
    pthread_mutex_unlock(&worker->lock);
}

/* Reports the events of the pipeline in the log and the status. */
static void report_events(struct ndtd_worker *worker)
{
    ndtd_worker_log_events(&worker->log, ndtd_pipeline_events(worker->pipeline));
    share_events(worker);
}

/* Hands the state after the scan to the stream of poses. */
static void lead_stream(const struct ndtd_worker *worker, const struct ndtd_message *frame)
{
    const struct ndtd_pose_stream_scan scan = {.track = ndtd_pipeline_track(worker->pipeline),
                                               .step = ndtd_pipeline_step(worker->pipeline),
                                               .state = ndtd_pipeline_state(worker->pipeline),
                                               .max_ahead_s = worker->settings->max_ahead_s,
                                               .arrival_us = frame->arrival_us};
    if (worker->parts.stream)
        ndtd_pose_stream_follow(worker->parts.stream, &scan);
}

/* Gives viewers the points of the scan, after the answer, which has priority. */
static void show(struct ndtd_worker *worker)
{
    struct ndt_error err = {""};
    struct ndtd_points_slot *slot = ndtd_points_publisher_take(worker->parts.points);
    if (!slot)
        return;
    const enum ndt_status status =
        ndtd_pipeline_points(worker->pipeline, worker->settings->points_max, &slot->message, &slot->points, &err);
    if (status == NDT_OK)
        ndtd_points_publisher_give(worker->parts.points);
    else if (status != NDT_END)
        ndtd_log(NDTD_LOG_WARNING, "the points of a scan are not published: %s", err.text);
}

static void handle(struct ndtd_worker *worker, const struct ndtd_message *frame, uint32_t queue_depth)
{
    struct ndtd_scan_record record;
    struct ndt_error err = {""};
    const int is_scan = frame->type == NDT_MESSAGE_SCAN;
    const double queue_us = ndt_clock_us() - frame->arrival_us;
    const int is_watched = worker->parts.points && ndtd_points_publisher_is_wanted(worker->parts.points);
    ndtd_pipeline_watch(worker->pipeline, is_watched);
    if (is_scan)
        follow_gaps(worker, frame);
    ndtd_pipeline_set_deadline(worker->pipeline, deadline_of(worker, frame));
    const enum ndt_status status = ndtd_pipeline_process(worker->pipeline, frame, &record, &err);
    if (status != NDT_OK)
        refuse_frame(worker, frame, err.text);
    if (status != NDT_OK && is_scan)
        refuse_scan(worker, frame, err.text, &record);
    record.queue_us = queue_us;
    if (is_scan) {
        ndtd_worker_log_times(&worker->log, worker->settings, &frame->scan);
        share_events(worker); /* whoever has the answer finds its scan in the status */
        answer(worker, frame, &record, queue_depth);
        lead_stream(worker, frame);
        if (ndtd_pipeline_follow_up(worker->pipeline, &err) != NDT_OK)
            ndtd_log(NDTD_LOG_WARNING, "search: scan %" PRIu64 " is of no use: %s", record.seq, err.text);
        if (is_watched && status == NDT_OK)
            show(worker);
    }
    load_map(worker, frame, is_scan ? &record : NULL);
    report_events(worker);
}

/* Announces waiting scans, so that they are aligned together ahead of their turn. Returns the number of frames
 * announced. */
static size_t expect(struct ndtd_worker *worker, struct ndtd_message **frames, size_t count)
{
    size_t first = 0;
    while (first < count && frames[first]->type != NDT_MESSAGE_SCAN)
        first++;
    if (first == count)
        return 0;
    ndtd_pipeline_set_deadline(worker->pipeline, deadline_of(worker, frames[first]));
    return ndtd_pipeline_expect(worker->pipeline, frames, count);
}

/* Processes frames one by one: the prediction for a scan needs the previous result. */
static void handle_frames(struct ndtd_worker *worker, struct ndtd_message **frames, size_t count)
{
    uint32_t waiting = ndtd_queue_counters(worker->parts.queue).scans_waiting;
    for (size_t i = 0; i < count; i++)
        waiting += frames[i]->type == NDT_MESSAGE_SCAN;
    between_frames(worker);
    size_t announced = expect(worker, frames, count);
    for (size_t i = 0; i < count; i++) {
        between_frames(worker);
        if (i > 0 && i == announced) /* the next group; where there was none, there is none now */
            announced += expect(worker, frames + i, count - i);
        handle(worker, frames[i], waiting);
        waiting -= frames[i]->type == NDT_MESSAGE_SCAN;
        ndtd_queue_release(worker->parts.queue, &frames[i], 1);
    }
}

static void run(struct ndtd_worker *worker)
{
    struct ndtd_message *frames[FRAMES_AT_ONCE];
    for (;;) {
        const int closed =
            ndtd_queue_closed(worker->parts.queue); /* read before pop: waiting frames are still processed */
        const size_t count = ndtd_queue_pop(worker->parts.queue, worker->has_next_map ? MAP_WAIT_US : WAIT_US,
                                            (unsigned)worker->settings->batch_max, frames, FRAMES_AT_ONCE);
        if (count == 0) {
            ndtd_pipeline_idle(worker->pipeline);
            between_frames(worker);
        }
        if (count == 0 && closed)
            return;
        handle_frames(worker, frames, count);
    }
}

/* Opens backend and sink in the thread: the threads of the backend inherit its cores and priority. */
static enum ndt_status open_parts(struct ndtd_worker *worker, struct ndt_error *err)
{
    const struct ndtd_worker_sink *sink = &worker->parts.sink;
    enum ndt_status status = ndtd_pipeline_create(&worker->pipeline, worker->snapshot, worker->parts.map, 1, err);
    if (status == NDT_OK && sink->open)
        status = sink->open(sink->context, err);
    if (status != NDT_OK)
        return status;
    worker->map = worker->parts.map;
    worker->map_id = worker->parts.map ? worker->parts.map->id : 0;
    change_map(worker);
    describe(worker);
    autotune(worker);
    publish_state(worker);
    return NDT_OK;
}

static void report_opened(struct ndtd_worker *worker, enum ndt_status status, const struct ndt_error *err)
{
    pthread_mutex_lock(&worker->lock);
    worker->is_open = 1;
    worker->open_status = status;
    worker->open_error = *err;
    pthread_cond_signal(&worker->opened);
    pthread_mutex_unlock(&worker->lock);
}

static void *work(void *context)
{
    struct ndtd_worker *worker = context;
    struct ndt_error err = {""};
    ndtd_thread_name("ndt-match");
    ndtd_realtime_enter(worker->settings->rt_cpus, worker->settings->rt_priority);
    enum ndt_status status = open_parts(worker, &err);
    report_opened(worker, status, &err);
    if (status == NDT_OK) {
        run(worker);
        if (worker->parts.sink.close)
            worker->parts.sink.close(worker->parts.sink.context);
    }
    set_next_map(worker, NULL, 0);
    ndtd_pipeline_destroy(worker->pipeline);
    return NULL;
}

static void free_worker(struct ndtd_worker *worker)
{
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->opened);
    ndtd_settings_snapshot_release(worker->pending.settings);
    ndtd_settings_snapshot_release(worker->snapshot);
    free(worker);
}

/* Initialises the locks with priority inheritance: a thread that reads the status does not delay the matching
 * thread. */
static void init_locks(struct ndtd_worker *worker)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&worker->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_cond_init(&worker->opened, NULL);
}

enum ndt_status ndtd_worker_start(struct ndtd_worker **out, const struct ndtd_worker_parts *parts,
                                  struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the matching thread");
    init_locks(worker);
    worker->parts = *parts;
    use_settings(worker, parts->settings);
    worker->status.active = 1;
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
        free_worker(worker);
        return ndt_fail(err, NDT_ERR_MEMORY, "the matching thread could not be started");
    }
    pthread_mutex_lock(&worker->lock);
    while (!worker->is_open)
        pthread_cond_wait(&worker->opened, &worker->lock);
    const enum ndt_status status = worker->open_status;
    if (err)
        *err = worker->open_error;
    pthread_mutex_unlock(&worker->lock);
    if (status == NDT_OK) {
        *out = worker;
        return NDT_OK;
    }
    pthread_join(worker->thread, NULL);
    free_worker(worker);
    return status;
}

void ndtd_worker_stop(struct ndtd_worker *worker)
{
    if (!worker)
        return;
    ndtd_queue_close(worker->parts.queue);
    pthread_join(worker->thread, NULL);
    free_worker(worker);
}

/* Posts updates; called with the lock held and `pending` changed; unlocks. */
static void post_updates(struct ndtd_worker *worker)
{
    atomic_store(&worker->has_pending, 1);
    pthread_mutex_unlock(&worker->lock);
    ndtd_queue_wake(worker->parts.queue);
}

void ndtd_worker_set_initial_pose(struct ndtd_worker *worker, const struct ndt_pose_message *pose)
{
    pthread_mutex_lock(&worker->lock);
    worker->pending.pose = *pose;
    worker->pending.has_pose = 1;
    post_updates(worker);
}

void ndtd_worker_set_active(struct ndtd_worker *worker, int active)
{
    pthread_mutex_lock(&worker->lock);
    worker->pending.active = active;
    worker->pending.has_active = 1;
    worker->status.active = active;
    post_updates(worker);
}

void ndtd_worker_apply_settings(struct ndtd_worker *worker, const struct ndtd_settings_snapshot *snapshot)
{
    pthread_mutex_lock(&worker->lock);
    ndtd_settings_snapshot_replace(&worker->pending.settings, snapshot);
    post_updates(worker);
}

void ndtd_worker_status(struct ndtd_worker *worker, struct ndtd_worker_status *out)
{
    pthread_mutex_lock(&worker->lock);
    *out = worker->status;
    pthread_mutex_unlock(&worker->lock);
}

void ndtd_worker_autotune_result(struct ndtd_worker *worker, struct ndtd_autotune_result *out)
{
    pthread_mutex_lock(&worker->lock);
    *out = worker->published_autotune;
    pthread_mutex_unlock(&worker->lock);
}

size_t ndtd_worker_timings(struct ndtd_worker *worker, struct ndtd_worker_timing *out, size_t max)
{
    pthread_mutex_lock(&worker->lock);
    const uint64_t kept = worker->ring_count < NDTD_TIMINGS_KEPT ? worker->ring_count : NDTD_TIMINGS_KEPT;
    const size_t count = max < kept ? max : (size_t)kept;
    for (size_t i = 0; i < count; i++)
        out[i] = worker->ring[(worker->ring_count - count + i) % NDTD_TIMINGS_KEPT];
    pthread_mutex_unlock(&worker->lock);
    return count;
}

uint64_t ndtd_worker_beats(const struct ndtd_worker *worker)
{
    return atomic_load(&worker->beats);
}

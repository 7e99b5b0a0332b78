#include "live_status.h"

#include <stdio.h>
#include <sys/resource.h>

#include "ndt_proto/control_message.h"
#include "ndtd/log.h"
#include "ndtd/process_memory.h"
#include "ndtd/samples.h"
#include "ndt/clock.h"
#include "ndt/version.h"
#include "libzmq_guard.h"
#include "live_state.h"

static void write_progress(const struct ndtd_map_loader_progress *progress, struct ndt_reply_writer *writer)
{
    ndt_reply_open_map(writer, "loading");
    ndt_reply_real(writer, "elapsed_s", progress->elapsed_s);
    ndt_reply_uint(writer, "files", progress->tiles);
    ndt_reply_uint(writer, "all_files", progress->all_tiles);
    ndt_reply_uint(writer, "bytes", progress->bytes);
    ndt_reply_uint(writer, "all_bytes", progress->all_bytes);
    ndt_reply_uint(writer, "points", progress->points);
    ndt_reply_uint(writer, "all_points", progress->all_points);
    ndt_reply_uint(writer, "levels", progress->levels);
    ndt_reply_uint(writer, "all_levels", progress->all_levels);
    ndt_reply_close(writer);
}

static void write_map(struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    struct ndtd_map_loader_status map;
    ndtd_map_loader_status(live->loader, &map);
    ndt_reply_open_map(writer, "map");
    ndt_reply_text(writer, "path", map.path);
    ndt_reply_bool(writer, "busy", map.busy);
    ndt_reply_bool(writer, "failed", map.failed);
    ndt_reply_text(writer, "error", map.error);
    ndt_reply_uint(writer, "map_id", map.map_id);
    ndt_reply_uint(writer, "points", map.points);
    ndt_reply_uint(writer, "tiles_loaded", map.tiles_loaded);
    ndt_reply_uint(writer, "tiles_known", map.tiles_known);
    ndt_reply_uint(writer, "loads", map.loads);
    ndt_reply_real(writer, "last_load_ms", map.last_load_ms);
    if (map.progress.busy)
        write_progress(&map.progress, writer);
    ndt_reply_close(writer);
}

static void write_recorder(const struct ndtd_recorder_status *recorder, struct ndt_reply_writer *writer)
{
    ndt_reply_open_map(writer, "recorder");
    ndt_reply_text(writer, "state", ndtd_recorder_state_name(recorder->state));
    ndt_reply_text(writer, "file", recorder->file);
    ndt_reply_uint(writer, "frames", recorder->frames);
    ndt_reply_uint(writer, "bytes", recorder->bytes);
    ndt_reply_uint(writer, "missing", recorder->missing);
    ndt_reply_uint(writer, "waiting", recorder->waiting);
    ndt_reply_uint(writer, "waiting_bytes", recorder->waiting_bytes);
    ndt_reply_uint(writer, "dropped", recorder->dropped);
    ndt_reply_text(writer, "error", recorder->error);
    ndt_reply_close(writer);
}

static void write_motion(const struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    const struct ndtd_pose_stream_counters motion = ndtd_pose_stream_counters(live->stream);
    ndt_reply_open_map(writer, "motion");
    ndt_reply_uint(writer, "published", motion.published);
    ndt_reply_uint(writer, "lost", motion.lost);
    ndt_reply_uint(writer, "subscribers", motion.subscribers);
    ndt_reply_close(writer);
}

static void write_points(const struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    const struct ndtd_points_counters points =
        live->points ? ndtd_points_publisher_counters(live->points) : (struct ndtd_points_counters){0};
    ndt_reply_open_map(writer, "points");
    ndt_reply_uint(writer, "published", points.published);
    ndt_reply_uint(writer, "lost", points.lost);
    ndt_reply_uint(writer, "subscribers", points.subscribers);
    ndt_reply_close(writer);
}

static void write_flow(struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    const struct ndtd_queue_counters queue = ndtd_queue_counters(live->queue);
    const struct ndtd_receiver_counters in =
        live->receiver ? ndtd_receiver_counters(live->receiver) : (struct ndtd_receiver_counters){0};
    struct ndtd_recorder_status recorder;
    ndtd_recorder_status(live->recorder, &recorder);
    const struct ndtd_publisher_counters out = ndtd_publisher_counters(live->publisher);
    ndt_reply_open_map(writer, "queue");
    ndt_reply_uint(writer, "depth", queue.depth);
    ndt_reply_uint(writer, "waiting", queue.scans_waiting);
    ndt_reply_uint(writer, "given", queue.given);
    ndt_reply_uint(writer, "dropped", queue.dropped);
    ndt_reply_uint(writer, "messages_lost", queue.messages_lost);
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "receiver");
    ndt_reply_uint(writer, "frames", in.frames);
    ndt_reply_uint(writer, "scans", in.scans);
    ndt_reply_uint(writer, "bytes", in.bytes);
    ndt_reply_uint(writer, "bad", in.bad);
    ndt_reply_uint(writer, "recorded", recorder.recorded);
    ndt_reply_uint(writer, "record_failures", recorder.failures);
    ndt_reply_bool(writer, "recording", recorder.state == NDTD_RECORDER_RUNNING);
    ndt_reply_close(writer);
    write_recorder(&recorder, writer);
    ndt_reply_open_map(writer, "publisher");
    ndt_reply_uint(writer, "published", out.published);
    ndt_reply_uint(writer, "lost", out.lost);
    ndt_reply_uint(writer, "subscribers", out.subscribers);
    ndt_reply_close(writer);
    write_points(live, writer);
    write_motion(live, writer);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void write_process(struct ndt_reply_writer *writer)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    ndt_reply_open_map(writer, "process");
    ndt_reply_uint(writer, "resident_bytes", ndtd_resident_bytes());
    ndt_reply_uint(writer, "peak_resident_bytes", ndtd_peak_resident_bytes());
    ndt_reply_real(writer, "cpu_s", seconds(usage.ru_utime) + seconds(usage.ru_stime));
    ndt_reply_close(writer);
}

static void write_candidates(const struct ndtd_autotune_result *tuned, struct ndt_reply_writer *writer)
{
    char name[80];
    ndt_reply_open_array(writer, "measured");
    for (size_t i = 0; i < tuned->row_count; i++) {
        const struct ndtd_autotune_row *row = &tuned->rows[i];
        ndt_reply_open_map(writer, NULL);
        ndt_reply_text(writer, "candidate", ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)));
        if (row->samples > 0) {
            ndt_reply_real(writer, "p50_ms", row->p50_us * 1e-3);
            ndt_reply_real(writer, "p95_ms", row->p95_us * 1e-3);
            ndt_reply_uint(writer, "samples", row->samples);
        } else
            ndt_reply_text(writer, "unavailable", row->why);
        ndt_reply_close(writer);
    }
    ndt_reply_close(writer);
}

/* Writes the backend in use and the measurements behind the choice. The key is part of the wire format. */
static void write_autotune(struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    const double budget_us =
        ndtd_settings_budget_s(&live->settings->settings) * 1e6; /* may have changed since the measurement */
    struct ndtd_autotune_result tuned = {0};
    if (live->worker)
        ndtd_worker_autotune_result(live->worker, &tuned);
    ndt_reply_open_map(writer, "route");
    ndt_reply_text(writer, "source", tuned.row_count > 0 ? "measured" : "default");
    if (tuned.row_count > 0 && tuned.choice.row >= 0) {
        const struct ndtd_backend_candidate *candidate = &tuned.rows[tuned.choice.row].candidate;
        ndt_reply_text(writer, "backend", candidate->backend);
        ndt_reply_text(writer, "pipeline", candidate->pipeline);
        ndt_reply_uint(writer, "threads", (uint64_t)candidate->threads);
        ndt_reply_uint(writer, "batch", 1);
        ndt_reply_text(writer, "reason", tuned.choice.reason);
        ndt_reply_bool(writer, "meets_budget", tuned.rows[tuned.choice.row].p95_us <= budget_us);
        ndt_reply_real(writer, "budget_ms", budget_us * 1e-3);
        ndt_reply_uint(writer, "points", tuned.points);
        ndt_reply_int(writer, "measured_s", tuned.measured_s);
        write_candidates(&tuned, writer);
    }
    ndt_reply_close(writer);
}

/* The queue counts dropped scans; they do not reach the worker. */
static void write_outcomes(const struct ndtd_worker_status *worker, uint64_t dropped,
                           struct ndt_reply_writer *writer)
{
    ndt_reply_open_map(writer, "outcomes");
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++)
        ndt_reply_uint(writer, ndt_outcome_name((enum ndt_outcome)i),
                       worker->outcomes[i] + (i == NDT_DROPPED ? dropped : 0));
    ndt_reply_close(writer);
}

/* Writes the state after the newest scan, the change that led to it, if any, and the number of scans per state. */
static void write_localisation(const struct ndtd_worker_status *worker, struct ndt_reply_writer *writer)
{
    const struct ndtd_state_change *change = &worker->state_change;
    ndt_reply_open_map(writer, "localisation");
    ndt_reply_text(writer, "state", ndt_state_name(change->to));
    ndt_reply_uint(writer, "changes", worker->state_changes);
    if (worker->state_changes > 0) {
        ndt_reply_text(writer, "from", ndt_state_name(change->from));
        ndt_reply_uint(writer, "since_seq", change->seq);
        ndt_reply_int(writer, "since_stamp_ns", change->stamp_ns);
        ndt_reply_text(writer, "reason", change->reason);
    }
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "states");
    for (int i = 0; i < NDT_STATE_COUNT; i++)
        ndt_reply_uint(writer, ndt_state_name((enum ndt_state)i), worker->states[i]);
    ndt_reply_close(writer);
}

/* Writes the progress of a search, whose result the operation `search` gives. */
static void write_search_progress(struct ndtd_live *live, struct ndt_reply_writer *writer)
{
    struct ndt_localize_report report = {0};
    ndtd_localizer_report(live->localizer, &report);
    report.has_result = 0;
    ndt_reply_search(writer, &report);
}

/* Writes the latency over the last NDTD_TIMINGS_KEPT scans. */
static void write_latency(struct ndtd_live *live, const struct ndtd_worker_status *worker,
                          struct ndtd_worker_timing *timings, struct ndt_reply_writer *writer)
{
    const double least_us = ndtd_settings_budget_s(&live->settings->settings) * 1e6;
    struct ndtd_samples latency = {0};
    const size_t count = live->worker ? ndtd_worker_timings(live->worker, timings, NDTD_TIMINGS_KEPT) : 0;
    for (size_t i = 0; i < count; i++)
        if (ndtd_samples_add(&latency, timings[i].latency_us * 1e-3, NULL) != NDT_OK)
            break;
    ndt_reply_open_map(writer, "latency_ms");
    ndt_reply_uint(writer, "scans", latency.count);
    ndt_reply_real(writer, "p50", ndtd_samples_quantile(&latency, 0.5));
    ndt_reply_real(writer, "p90", ndtd_samples_quantile(&latency, 0.9));
    ndt_reply_real(writer, "p99", ndtd_samples_quantile(&latency, 0.99));
    ndt_reply_real(writer, "max", ndtd_samples_quantile(&latency, 1));
    ndt_reply_real(writer, "budget", (worker->budget_us > 0 ? worker->budget_us : least_us) * 1e-3);
    ndt_reply_close(writer);
    ndtd_samples_free(&latency);
}

static void write_pose(const struct ndtd_worker_status *worker, struct ndt_reply_writer *writer)
{
    if (!worker->has_pose)
        return;
    ndt_reply_open_array(writer, "pose");
    for (int i = 0; i < 3; i++)
        ndt_reply_real(writer, NULL, worker->T_map_sensor.t_m[i]);
    for (int i = 0; i < 4; i++)
        ndt_reply_real(writer, NULL, worker->T_map_sensor.q_xyzw[i]);
    ndt_reply_close(writer);
}

/* Name of the state. A removed map is in use until the next scan, and the sensor may be silent. */
static const char *state_name(const struct ndtd_live *live, const struct ndtd_worker_status *worker)
{
    struct ndtd_map_loader_status map;
    if (!worker->active)
        return "stopped";
    ndtd_map_loader_status(live->loader, &map);
    return worker->map_id == 0 || map.map_id == 0 ? "no_map" : worker->has_pose ? "localising" : "no_guess";
}

void ndtd_live_write_status(struct ndtd_live *live, struct ndtd_worker_timing *timings,
                            struct ndt_reply_writer *writer)
{
    struct ndtd_worker_status worker = {0};
    if (live->worker)
        ndtd_worker_status(live->worker, &worker);
    ndt_reply_text(writer, "version", ndt_version());
    ndt_reply_real(writer, "uptime_s", (ndt_clock_us() - live->start_us) * 1e-6);
    ndt_reply_text(writer, "state", live->receiver ? state_name(live, &worker) : "loading");
    ndt_reply_text(writer, "backend", worker.backend);
    ndt_reply_uint(writer, "config_hash", live->settings->hash);
    ndt_reply_text(writer, "needs_restart", live->needs_restart);
    ndt_reply_uint(writer, "map_id", worker.map_id);
    ndt_reply_uint(writer, "scans", worker.scans);
    ndt_reply_uint(writer, "frames_refused", worker.frames_refused);
    ndt_reply_uint(writer, "send_failures", worker.send_failures);
    ndt_reply_uint(writer, "scans_thinned", worker.events.thinned);
    ndt_reply_uint(writer, "odometry_restarts", worker.events.odometry_restarts.count);
    ndt_reply_uint(writer, "results_not_finite", worker.events.unsound);
    ndt_reply_uint(writer, "estimates_not_finite", worker.events.reinitialised);
    ndt_reply_uint(writer, "memory_released", worker.events.memory_released);
    ndt_reply_uint(writer, "poses_far", worker.events.far);
    ndt_reply_uint(writer, "scans_slow", worker.events.slow);
    ndt_reply_uint(writer, "row_not_converged", worker.events.row);
    ndt_reply_uint(writer, "map_checks", worker.events.map_checks);
    ndt_reply_uint(writer, "fits_elsewhere", worker.events.fits_elsewhere);
    ndt_reply_uint(writer, "log_lines_lost", ndtd_log_lost());
    ndt_reply_uint(writer, "connections_refused", ndtd_guard_refused());
    write_pose(&worker, writer);
    write_localisation(&worker, writer);
    write_search_progress(live, writer);
    write_outcomes(&worker, ndtd_queue_counters(live->queue).dropped, writer);
    write_latency(live, &worker, timings, writer);
    write_map(live, writer);
    write_flow(live, writer);
    write_process(writer);
    write_autotune(live, writer);
}

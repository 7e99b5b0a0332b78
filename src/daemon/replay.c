/** @file
 * @brief The replay: records of a bag to the pipeline, results to the sinks. */
#include "ndtd/replay.h"

#include <math.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "ndt_io/bag.h"
#include "ndt_io/map_file.h"
#include "ndt_proto/message.h"
#include "ndtd/report.h"
#include "ndtd/options.h"
#include "ndt/clock.h"

enum { KIND_COUNT = NDT_MESSAGE_END }; /* kind 0: unknown types */

static volatile sig_atomic_t stop_requested;

/* Frames of one kind that could not be decoded. */
struct bad_frames {
    uint64_t count;
    char first[300];
};

struct replay {
    const struct ndtd_settings *settings;
    const struct ndtd_replay_options *options;
    struct ndt_map *map;
    struct ndtd_pipeline *pipeline;
    struct ndt_bag_reader *bag;
    struct ndtd_sinks sinks;
    struct ndtd_progress progress;
    uint64_t scans_seen; /* in the bag so far, including skipped ones */
    int started;         /* set by the first replayed scan */
    int truth_is_known;  /* all ground truth was read before the replay */
    int has_dumped;
    int bag_is_damaged;
    char damage[512];
    struct bad_frames bad[KIND_COUNT];
};

void ndtd_replay_stop(void)
{
    stop_requested = 1;
}

static int is_kind(uint32_t type)
{
    return type >= NDT_MESSAGE_SCAN && type < NDT_MESSAGE_END;
}

static void count_bad(struct replay *replay, uint32_t type, const char *why)
{
    struct bad_frames *bad = &replay->bad[is_kind(type) ? type : 0];
    if (bad->count++ == 0)
        snprintf(bad->first, sizeof(bad->first), "before byte %" PRIu64 ": %.250s", ndt_bag_offset(replay->bag),
                 why);
}

static void warn_malformed(const struct replay *replay)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const struct bad_frames *bad = &replay->bad[kind];
        if (bad->count)
            fprintf(stderr, "ndtd: warning: %s: %" PRIu64 " %s frame%s could not be used; the first, %s\n",
                    replay->options->bag, bad->count,
                    kind ? ndt_message_name((enum ndt_message_type)kind) : "unknown", bad->count > 1 ? "s" : "",
                    bad->first);
    }
}

/* Whether a failure concerns this frame only; others (memory, device) end the run. */
static int is_about_frame(enum ndt_status status)
{
    return status == NDT_ERR_FORMAT || status == NDT_ERR_LIMIT || status == NDT_ERR_UNSUPPORTED ||
           status == NDT_ERR_ARGUMENT;
}

static enum ndt_status add_ground_truth(struct replay *replay, const struct ndt_bag_record *record,
                                        struct ndt_error *err)
{
    struct ndt_pose_message truth;
    struct ndt_error why;
    enum ndt_status status =
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &truth, &why);
    if (status != NDT_OK) {
        count_bad(replay, record->type, why.text);
        return NDT_OK;
    }
    return ndtd_trajectory_error_add_truth(&replay->sinks.trajectory_error, truth.stamp_ns, &truth.pose, err);
}

/* Reads all ground truth before the replay, for a start in the middle of the bag. */
static enum ndt_status collect_truth(struct replay *replay, struct ndt_error *err)
{
    struct ndt_bag_record record;
    while (!stop_requested && ndt_bag_next(replay->bag, &record, NULL) == NDT_OK) {
        const enum ndt_status status =
            record.type == NDT_MESSAGE_TRUTH ? add_ground_truth(replay, &record, err) : NDT_OK;
        if (status != NDT_OK)
            return status;
    }
    ndt_bag_rewind(replay->bag);
    replay->truth_is_known = 1;
    return NDT_OK;
}

/* A start in the middle of the bag without a configured pose begins at the true one, if that is allowed. */
static int wants_truth(const struct replay *replay)
{
    return replay->options->skip > 0 && !ndtd_settings_starts_at_pose(replay->settings) &&
           replay->settings->initial_pose_mode != NDTD_POSE_SEARCH;
}

/* Without a pose at the start the first scans are searched for in the map. */
static int is_searched(const struct replay *replay)
{
    return replay->settings->recovery.enable && replay->settings->initial_pose_mode != NDTD_POSE_GIVEN;
}

static enum ndt_status start_from_truth(struct replay *replay, int64_t stamp_ns, struct ndt_error *err)
{
    struct ndt_pose_message start = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .has_twist = 1};
    if (!ndtd_trajectory_error_truth_at(&replay->sinks.trajectory_error, stamp_ns, &start.pose, &start.twist))
        return is_searched(replay)
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_ARGUMENT,
                              "--skip %" PRIu64
                              ": %s has no ground truth at the first replayed scan; give --initial-pose",
                              replay->options->skip, replay->options->bag);
    ndtd_pipeline_set_initial_pose(replay->pipeline, &start);
    return NDT_OK;
}

static enum ndt_status reject_scan(struct replay *replay, const struct ndt_bag_record *record, const char *why,
                                   struct ndt_error *err)
{
    struct ndtd_scan_record out = {.seq = replay->scans_seen - 1,
                                   .stamp_ns = record->receive_time_ns,
                                   .confidence = NAN,
                                   .margin = NAN,
                                   .state = ndtd_pipeline_state(replay->pipeline)};
    out.result.outcome = NDT_REJECTED;
    out.result.T_map_sensor = ndt_pose_identity();
    snprintf(out.result.reason, sizeof(out.result.reason), "%.95s", why);
    count_bad(replay, record->type, why);
    return ndtd_sinks_emit(&replay->sinks, &out, err);
}

/* Writes the intermediate values of the scan that --dump-scan names. */
static enum ndt_status dump(struct replay *replay, const struct ndtd_scan_record *record, struct ndt_error *err)
{
    const struct ndtd_replay_options *options = replay->options;
    struct ndt_output output = {0};
    if (!options->dump || replay->has_dumped || record->seq != options->dump_scan)
        return NDT_OK;
    if (options->dump_iteration >= record->trace_count)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--dump-iteration %" PRIu64 ": scan %" PRIu64 " has %zu iterations",
                        options->dump_iteration, record->seq, record->trace_count);
    enum ndt_status status = ndt_output_open(&output, options->dump, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_dump(replay->pipeline, (size_t)options->dump_iteration, output.file, err);
    if (status == NDT_OK)
        status = ndt_output_commit(&output, err);
    ndt_output_discard(&output);
    replay->has_dumped = status == NDT_OK;
    return status;
}

static enum ndt_status emit(struct replay *replay, struct ndtd_scan_record *record, struct ndt_error *err)
{
    enum ndt_status status = dump(replay, record, err);
    return status == NDT_OK ? ndtd_sinks_emit(&replay->sinks, record, err) : status;
}

/* A frame that cannot be used is counted, and answered when it is a scan. Other failures end the run. */
static enum ndt_status fail_frame(struct replay *replay, const struct ndt_bag_record *record,
                                  enum ndt_status status, struct ndt_error *err)
{
    const struct ndt_error why = err ? *err : (struct ndt_error){""};
    if (!is_about_frame(status))
        return status;
    if (record->type == NDT_MESSAGE_SCAN)
        return reject_scan(replay, record, why.text, err);
    count_bad(replay, record->type, why.text);
    return NDT_OK;
}

/* The frame of a record, without the header of a scan; its bytes stay in the buffer of the bag. */
static struct ndtd_frame frame_of(const struct ndt_bag_record *record)
{
    return (struct ndtd_frame){
        .type = (enum ndt_message_type)record->type, .data = record->payload, .size = record->length};
}

static enum ndt_status replay_scan(struct replay *replay, const struct ndt_bag_record *record,
                                   struct ndt_error *err)
{
    struct ndtd_frame frame = frame_of(record);
    struct ndtd_scan_record out;
    const int starts_from_truth = wants_truth(replay);
    if (replay->scans_seen++ < replay->options->skip)
        return NDT_OK;
    replay->started = replay->started || !starts_from_truth;
    enum ndt_status status = ndt_scan_header_decode(frame.data, frame.size, &frame.scan, err);
    if (status != NDT_OK)
        return fail_frame(replay, record, status, err);
    if (!replay->started) {
        status = start_from_truth(replay, frame.scan.stamp_ns, err);
        if (status != NDT_OK)
            return status;
        replay->started = 1;
    }
    status = ndtd_pipeline_frame(replay->pipeline, &frame, &out, err);
    return status == NDT_OK ? emit(replay, &out, err) : fail_frame(replay, record, status, err);
}

static enum ndt_status replay_message(struct replay *replay, const struct ndt_bag_record *record,
                                      struct ndt_error *err)
{
    const struct ndtd_frame frame = frame_of(record);
    struct ndtd_scan_record unused;
    const enum ndt_status status = ndtd_pipeline_frame(replay->pipeline, &frame, &unused, err);
    return status == NDT_OK ? NDT_OK : fail_frame(replay, record, status, err);
}

static enum ndt_status replay_record(struct replay *replay, const struct ndt_bag_record *record,
                                     struct ndt_error *err)
{
    switch (record->type) {
    case NDT_MESSAGE_SCAN:
        return replay_scan(replay, record, err);
    case NDT_MESSAGE_TRUTH:
        return replay->truth_is_known ? NDT_OK : add_ground_truth(replay, record, err);
    case NDT_MESSAGE_INITIAL_POSE:
        if (!replay->started && (ndtd_settings_starts_at_pose(replay->settings) || replay->options->skip ||
                                 replay->settings->initial_pose_mode == NDTD_POSE_SEARCH))
            return NDT_OK;
        return replay_message(replay, record, err);
    case NDT_MESSAGE_ODOMETRY:
    case NDT_MESSAGE_GNSS:
    case NDT_MESSAGE_IMU:
        return replay_message(replay, record, err);
    case NDT_MESSAGE_RESULT: /* recorded results and control messages are ignored */
    case NDT_MESSAGE_REQUEST:
    case NDT_MESSAGE_REPLY:
        return NDT_OK;
    default: {
        char why[48];
        snprintf(why, sizeof(why), "type %" PRIu32 " is not known", record->type);
        count_bad(replay, record->type, why);
        return NDT_OK;
    }
    }
}

/* Stops at the scan after the last replayed one: the ground truth of the last scan may follow it. */
static int is_past_limit(const struct replay *replay, const struct ndt_bag_record *record)
{
    uint64_t limit = replay->options->limit;
    return limit && replay->sinks.summary.scans >= limit && record->type == NDT_MESSAGE_SCAN;
}

static double part_done(const struct replay *replay)
{
    double bytes = (double)ndt_bag_offset(replay->bag) / (double)(ndt_bag_size(replay->bag) + 1);
    double scans = (double)replay->sinks.summary.scans / (double)(replay->options->limit + 1);
    return replay->options->limit && scans > bytes ? scans : bytes;
}

static enum ndt_status run(struct replay *replay, struct ndt_error *err)
{
    struct ndt_bag_record record;
    struct ndt_error why;
    enum ndt_status status, next;
    while ((next = ndt_bag_next(replay->bag, &record, &why)) == NDT_OK && !is_past_limit(replay, &record)) {
        if (stop_requested)
            return ndt_fail(err, NDT_ERR_IO, "stopped after %" PRIu64 " scans; nothing was written",
                            replay->sinks.summary.scans);
        if ((status = replay_record(replay, &record, err)) != NDT_OK)
            return status;
        ndtd_progress_update(&replay->progress, part_done(replay), replay->sinks.summary.scans);
    }
    if (next == NDT_OK || next == NDT_END)
        return NDT_OK;
    if (next != NDT_ERR_FORMAT && next != NDT_ERR_LIMIT)
        return ndt_fail(err, next, "%s", why.text);
    replay->bag_is_damaged = 1;
    snprintf(replay->damage, sizeof(replay->damage), "%s", why.text);
    return NDT_OK;
}

/* A run without a scan is an error; the most specific reason is reported. */
static enum ndt_status check_ran(const struct replay *replay, struct ndt_error *err)
{
    const char *bag = replay->options->bag;
    if (replay->sinks.summary.scans && replay->options->dump && !replay->has_dumped)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--dump-scan %" PRIu64 ": no such scan was replayed",
                        replay->options->dump_scan);
    if (replay->sinks.summary.scans)
        return NDT_OK;
    if (replay->bag_is_damaged)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s (no scan before it)", replay->damage);
    if (replay->scans_seen)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--skip %" PRIu64 ": %s holds only %" PRIu64 " scans",
                        replay->options->skip, bag, replay->scans_seen);
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: no scan in it", bag);
}

static void describe(struct replay *replay, double replay_us)
{
    struct ndtd_summary *summary = &replay->sinks.summary;
    const struct ndt_backend *backend = ndtd_pipeline_backend(replay->pipeline);
    struct rusage usage;
    summary->backend = backend->ops->name;
    snprintf(summary->description, sizeof(summary->description), "%s", backend->ops->name);
    if (backend->ops->describe)
        backend->ops->describe(backend, summary->description, sizeof(summary->description));
    summary->threads =
        strcmp(backend->ops->name, ndt_cpu_backend.name) == 0 ? ndtd_settings_threads(replay->settings) : 1;
    summary->variant = ndt_variant_name(replay->settings->align.variant);
    summary->map_id = replay->map->id;
    summary->map_points = replay->map->points;
    summary->replay_s = replay_us * 1e-6;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        summary->peak_memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static void warn_events(const struct replay *replay)
{
    struct ndtd_pipeline_events none = {0};
    char text[NDTD_EVENT_BYTES], line[NDTD_EVENT_BYTES + 32];
    const char *format;
    for (size_t kind = 0;
         (format = ndtd_pipeline_event(ndtd_pipeline_events(replay->pipeline), &none, &kind, text)) != NULL;) {
        snprintf(line, sizeof(line), format, text);
        fprintf(stderr, "ndtd: warning: %s\n", line);
    }
}

static void warn(const struct replay *replay)
{
    const struct ndtd_summary *summary = &replay->sinks.summary;
    warn_malformed(replay);
    warn_events(replay);
    if (replay->bag_is_damaged)
        fprintf(stderr, "ndtd: warning: %s; replayed the %" PRIu64 " scans before it\n", replay->damage,
                summary->scans);
    if (summary->outcomes[NDT_NO_GUESS] == summary->scans)
        fprintf(stderr, "ndtd: warning: %s: no initial pose in it; give --initial-pose\n", replay->options->bag);
}

/* The checks that the exit code tells: --expect and --max-lost. */
static int has_failed(struct replay *replay)
{
    struct ndtd_sinks *sinks = &replay->sinks;
    const struct ndtd_summary *summary = &sinks->summary;
    const int differs =
        sinks->expects && !ndtd_reference_trajectory_matches(&sinks->reference, summary->trajectory_hash);
    const int is_lost = summary->untrusted > replay->options->max_lost;
    if (differs)
        fprintf(stderr, "ndtd: %s: differs: %s\n", replay->options->files.expect, sinks->reference.difference);
    if (is_lost)
        fprintf(stderr,
                "ndtd: --max-lost %" PRIu64 ": %" PRIu64 " scans ended without a trusted pose: %" PRIu64
                " initialising, %" PRIu64 " lost, %" PRIu64 " recovering\n",
                replay->options->max_lost, summary->untrusted, summary->states[NDT_STATE_INITIALISING],
                summary->states[NDT_STATE_LOST], summary->states[NDT_STATE_RECOVERING]);
    return differs || is_lost;
}

static enum ndt_status finish(struct replay *replay, int *failed, struct ndt_error *err)
{
    struct ndtd_sinks *sinks = &replay->sinks;
    enum ndt_status status = ndtd_sinks_finish(sinks, err);
    if (status != NDT_OK)
        return status;
    warn(replay);
    ndtd_report_table(stdout, &sinks->summary);
    *failed = has_failed(replay);
    return NDT_OK;
}

static enum ndt_status prepare(struct replay *replay, struct ndt_error *err)
{
    const struct ndtd_settings *settings = replay->settings;
    const struct ndtd_settings_snapshot *snapshot = NULL;
    if (!*settings->map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "no map: give --map FILE|DIR, or map.path in the configuration");
    enum ndt_status status = ndtd_sinks_open(&replay->sinks, &replay->options->files, err);
    if (status == NDT_OK)
        status = ndt_bag_open(&replay->bag, replay->options->bag, err);
    double start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_map_load(&replay->map, settings->map_path, &settings->map, err);
    replay->sinks.summary.map_load_ms = (ndt_clock_us() - start_us) / 1000;
    if (status == NDT_OK)
        status = ndtd_settings_snapshot_create(&snapshot, settings, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&replay->pipeline, snapshot, replay->map, 0, err);
    if (status == NDT_OK) {
        replay->sinks.map_id = replay->map->id;
        replay->sinks.config_hash = snapshot->hash;
    }
    ndtd_settings_snapshot_release(snapshot);
    if (status == NDT_OK && wants_truth(replay))
        status = collect_truth(replay, err);
    return status;
}

static void close_all(struct replay *replay)
{
    ndtd_progress_end(&replay->progress);
    if (replay->pipeline)
        ndtd_pipeline_destroy(replay->pipeline);
    ndt_map_release(replay->map);
    if (replay->bag)
        ndt_bag_close(replay->bag);
    ndtd_sinks_close(&replay->sinks);
}

enum ndt_status ndtd_replay(const struct ndtd_settings *settings, const struct ndtd_replay_options *options,
                            int *failed, struct ndt_error *err)
{
    struct ndtd_settings timed = *settings;
    struct replay replay = {.settings = &timed, .options = options};
    timed.compute.kernel_times = options->files.timing != NULL;
    *failed = 0;
    enum ndt_status status = prepare(&replay, err);
    double start_us = ndt_clock_us();
    if (status == NDT_OK) {
        replay.progress = ndtd_progress_start(stderr);
        status = run(&replay, err);
        ndtd_progress_end(&replay.progress);
    }
    if (status == NDT_OK)
        status = check_ran(&replay, err);
    if (status == NDT_OK) {
        describe(&replay, ndt_clock_us() - start_us);
        status = finish(&replay, failed, err);
    }
    close_all(&replay);
    return status;
}

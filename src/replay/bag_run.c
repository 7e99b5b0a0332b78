/** @file
 * @brief Passes the records of a recording to the pipeline, and results to the caller. */
#include "ndtd/bag_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt_proto/message.h"
#include "ndtd/map_reading.h"
#include "ndtd/options.h"
#include "ndtd/record_source.h"
#include "ndtd/scan_state.h"

enum { KIND_COUNT = NDT_MESSAGE_END }; /* kind 0: unknown types */

/* Stop flag that ndtd_bag_run_stop sets; the reading of a stream waits with it. */
static struct ndt_progress stop;

/* Frames of one kind that could not be decoded. */
struct bad_frames {
    uint64_t count;
    char first[300];
};

struct ndtd_bag_run {
    struct ndtd_settings settings;
    char bag_name[NDTD_PATH_MAX];
    uint64_t skip, limit;
    struct ndtd_trajectory_error *truth;
    struct ndt_map *map;
    double map_load_ms;
    uint64_t config_hash;
    struct ndtd_pipeline *pipeline;
    struct ndtd_record_source *source;
    uint64_t scans_seen; /* scans in the bag so far, including skipped ones */
    uint64_t scans;      /* replayed scans */
    int started;         /* set by the first replayed scan */
    int truth_is_known;  /* all ground truth was read in advance */
    int bag_is_damaged;
    char damage[512];
    struct bad_frames bad[KIND_COUNT];
    uint64_t messages[KIND_COUNT]; /* taken in, besides scans */
    struct ndtd_hints hints;
    uint64_t untrusted; /* number of such scans */
    int has_hints;      /* the hints are complete */
};

void ndtd_bag_run_stop(void)
{
    ndt_progress_cancel(&stop);
}

static int is_kind(uint32_t type)
{
    return type >= NDT_MESSAGE_SCAN && type < NDT_MESSAGE_END;
}

static uint32_t bit_of(enum ndt_message_type type)
{
    return UINT32_C(1) << (unsigned)type;
}

static void count_bad(struct ndtd_bag_run *run, uint32_t type, const char *why)
{
    struct bad_frames *bad = &run->bad[is_kind(type) ? type : 0];
    if (bad->count++ == 0)
        snprintf(bad->first, sizeof(bad->first), "before byte %" PRIu64 ": %.250s",
                 ndtd_record_source_offset(run->source), why);
}

/* Whether a failure concerns this frame only; others (memory, device) end the run. */
static int is_about_frame(enum ndt_status status)
{
    return status == NDT_ERR_FORMAT || status == NDT_ERR_LIMIT || status == NDT_ERR_UNSUPPORTED ||
           status == NDT_ERR_ARGUMENT;
}

static enum ndt_status add_ground_truth(struct ndtd_bag_run *run, const struct ndt_bag_record *record,
                                        struct ndt_error *err)
{
    struct ndt_pose_message truth;
    struct ndt_error why;
    enum ndt_status status =
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_TRUTH, &truth, &why);
    if (status != NDT_OK) {
        count_bad(run, record->type, why.text);
        return NDT_OK;
    }
    return ndtd_trajectory_error_add_truth(run->truth, truth.stamp_ns, &truth.pose, err);
}

/* Reads all ground truth before the replay, for a start in the middle of the bag. */
static enum ndt_status collect_truth(struct ndtd_bag_run *run, struct ndt_error *err)
{
    struct ndt_bag_record record;
    if (!ndtd_record_source_can_rewind(run->source))
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "--skip %" PRIu64
            ": %s is read once, but the ground truth for the start has to be read before the scans; give "
            "--initial-pose, or replay a file",
            run->skip, run->bag_name);
    ndtd_record_source_pass(run->source, ~bit_of(NDT_MESSAGE_TRUTH));
    while (!ndt_progress_is_cancelled(&stop) && ndtd_record_source_next(run->source, &record, NULL) == NDT_OK) {
        const enum ndt_status status =
            record.type == NDT_MESSAGE_TRUTH ? add_ground_truth(run, &record, err) : NDT_OK;
        if (status != NDT_OK)
            return status;
    }
    run->truth_is_known = 1;
    return ndtd_record_source_rewind(run->source, err);
}

/* Whether a start in the middle of the bag uses the true pose: without a configured one, if that is allowed. */
static int wants_truth(const struct ndtd_bag_run *run)
{
    return run->skip > 0 && run->map && !ndtd_settings_starts_at_pose(&run->settings) &&
           run->settings.initial_pose_mode != NDTD_POSE_SEARCH;
}

/* Whether the first scans are searched for in the map, because there is no pose at the start. */
static int is_searched(const struct ndtd_bag_run *run)
{
    return run->settings.recovery.enable && run->settings.initial_pose_mode != NDTD_POSE_GIVEN;
}

static enum ndt_status start_from_truth(struct ndtd_bag_run *run, int64_t stamp_ns, struct ndt_error *err)
{
    struct ndt_pose_message start = {.stamp_ns = stamp_ns, .frame_id = "map", .has_pose = 1, .has_twist = 1};
    if (!ndtd_trajectory_error_truth_at(run->truth, stamp_ns, &start.pose, &start.twist))
        return is_searched(run)
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_ARGUMENT,
                              "--skip %" PRIu64
                              ": %s has no ground truth at the first replayed scan; give --initial-pose",
                              run->skip, run->bag_name);
    ndtd_pipeline_set_initial_pose(run->pipeline, &start);
    ndtd_hints_start(&run->hints, run->map, "initial pose", start.pose.t_m);
    return NDT_OK;
}

static void reject_scan(struct ndtd_bag_run *run, const struct ndt_bag_record *record, const char *why,
                        struct ndtd_scan_record *out)
{
    *out = (struct ndtd_scan_record){.seq = run->scans_seen - 1,
                                     .stamp_ns = record->receive_time_ns,
                                     .confidence = NAN,
                                     .margin = NAN,
                                     .state = ndtd_pipeline_state(run->pipeline)};
    out->result.outcome = NDT_REJECTED;
    out->result.T_map_sensor = ndt_pose_identity();
    snprintf(out->result.reason, sizeof(out->result.reason), "%.95s", why);
    count_bad(run, record->type, why);
}

/* The frame of a record, without the header of a scan; its bytes stay in the buffer of the bag. */
static struct ndtd_message frame_of(const struct ndt_bag_record *record)
{
    return (struct ndtd_message){
        .type = (enum ndt_message_type)record->type, .data = record->payload, .size = record->length};
}

/* Replays a scan. *has_result: 1 when `out` is its result. */
static enum ndt_status replay_scan(struct ndtd_bag_run *run, const struct ndt_bag_record *record,
                                   struct ndtd_scan_record *out, int *has_result, struct ndt_error *err)
{
    struct ndtd_message frame = frame_of(record);
    struct ndt_error why = {""};
    const int starts_from_truth = wants_truth(run);
    if (run->scans_seen++ < run->skip)
        return NDT_OK;
    run->started = run->started || !starts_from_truth;
    *has_result = 1;
    enum ndt_status status = ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &why);
    if (status == NDT_OK && !run->started) {
        status = start_from_truth(run, frame.scan.stamp_ns, err);
        if (status != NDT_OK)
            return status;
        run->started = 1;
    }
    if (status == NDT_OK)
        status = ndtd_pipeline_process(run->pipeline, &frame, out, &why);
    if (status != NDT_OK && !is_about_frame(status))
        return ndt_fail(err, status, "%s", why.text);
    if (status != NDT_OK)
        reject_scan(run, record, why.text, out);
    else if (!run->hints.has_scan)
        ndtd_hints_scan(&run->hints, frame.data, frame.size, &run->settings,
                        ndtd_pipeline_extrinsics(run->pipeline, frame.scan.frame_id));
    return NDT_OK;
}

static void look(struct ndtd_bag_run *run, const char *what, const double t_m[3])
{
    if (run->map)
        ndtd_hints_start(&run->hints, run->map, what, t_m);
}

/* Notes the start of the drive and its positions, by a message that the pipeline has taken. */
static void look_at_message(struct ndtd_bag_run *run, const struct ndt_bag_record *record)
{
    struct ndt_pose_message pose;
    struct ndt_gnss_message gnss;
    if (record->type == NDT_MESSAGE_INITIAL_POSE && !run->hints.has_start &&
        ndt_pose_message_decode(record->payload, record->length, NDT_MESSAGE_INITIAL_POSE, &pose, NULL) == NDT_OK)
        look(run, "initial pose", pose.pose.t_m);
    if (record->type == NDT_MESSAGE_GNSS &&
        ndt_gnss_decode(record->payload, record->length, &gnss, NULL) == NDT_OK) {
        look(run, "GNSS position", gnss.position_m);
        ndtd_hints_gnss(&run->hints, gnss.stamp_ns, gnss.position_m);
    }
}

static enum ndt_status replay_message(struct ndtd_bag_run *run, const struct ndt_bag_record *record,
                                      struct ndt_error *err)
{
    const struct ndtd_message frame = frame_of(record);
    struct ndtd_scan_record unused;
    struct ndt_error why = {""};
    const enum ndt_status status = ndtd_pipeline_process(run->pipeline, &frame, &unused, &why);
    if (status != NDT_OK && !is_about_frame(status))
        return ndt_fail(err, status, "%s", why.text);
    if (status != NDT_OK) {
        count_bad(run, record->type, why.text);
        return NDT_OK;
    }
    run->messages[record->type]++;
    look_at_message(run, record);
    return NDT_OK;
}

/* Whether the start is known, so that initial poses of the bag do not count. */
static int is_start_known(const struct ndtd_bag_run *run)
{
    return !run->started && (ndtd_settings_starts_at_pose(&run->settings) || run->skip ||
                             run->settings.initial_pose_mode == NDTD_POSE_SEARCH);
}

static enum ndt_status replay_record(struct ndtd_bag_run *run, const struct ndt_bag_record *record,
                                     struct ndtd_scan_record *out, int *has_result, struct ndt_error *err)
{
    char why[48];
    switch (record->type) {
    case NDT_MESSAGE_SCAN:
        return replay_scan(run, record, out, has_result, err);
    case NDT_MESSAGE_TRUTH:
        return run->truth_is_known ? NDT_OK : add_ground_truth(run, record, err);
    case NDT_MESSAGE_INITIAL_POSE:
        return is_start_known(run) ? NDT_OK : replay_message(run, record, err);
    case NDT_MESSAGE_ODOMETRY:
    case NDT_MESSAGE_GNSS:
    case NDT_MESSAGE_IMU:
    case NDT_MESSAGE_TRANSFORM:
        return replay_message(run, record, err);
    case NDT_MESSAGE_RESULT: /* output of a daemon and control messages are ignored */
    case NDT_MESSAGE_POINTS:
    case NDT_MESSAGE_REQUEST:
    case NDT_MESSAGE_REPLY:
        return NDT_OK;
    default:
        snprintf(why, sizeof(why), "type %" PRIu32 " is not known", record->type);
        count_bad(run, record->type, why);
        return NDT_OK;
    }
}

/* Reads only the headers of skipped scans: a start in the middle of a large bag costs only the replayed part. */
static void pass_skipped(struct ndtd_bag_run *run)
{
    const uint32_t unused = bit_of(NDT_MESSAGE_SCAN) | bit_of(NDT_MESSAGE_RESULT) | bit_of(NDT_MESSAGE_POINTS);
    ndtd_record_source_pass(run->source, run->scans_seen < run->skip ? unused : 0);
}

/* Whether the record ends the replay: the scan after the last replayed one, because the ground truth of the last
 * scan may follow it. */
static int is_past_limit(const struct ndtd_bag_run *run, const struct ndt_bag_record *record)
{
    uint64_t limit = run->limit;
    return limit && run->scans >= limit && record->type == NDT_MESSAGE_SCAN;
}

/* Ends a bag: a damaged one is replayed as far as it is intact. */
static enum ndt_status end_of_bag(struct ndtd_bag_run *run, enum ndt_status status, const struct ndt_error *why,
                                  struct ndt_error *err)
{
    if (status == NDT_END)
        return NDT_END;
    if (status != NDT_ERR_FORMAT && status != NDT_ERR_LIMIT)
        return ndt_fail(err, status, "%s", why->text);
    run->bag_is_damaged = 1;
    snprintf(run->damage, sizeof(run->damage), "%s", why->text);
    return NDT_END;
}

enum ndt_status ndtd_bag_run_next(struct ndtd_bag_run *run, struct ndtd_scan_record *record, struct ndt_error *err)
{
    struct ndt_bag_record next;
    struct ndt_error why = {""};
    int has_result = 0;
    while (!has_result) {
        pass_skipped(run);
        enum ndt_status status = ndtd_record_source_next(run->source, &next, &why);
        if (status != NDT_OK && status != NDT_ERR_CANCELLED)
            return end_of_bag(run, status, &why, err);
        if (status == NDT_OK && is_past_limit(run, &next))
            return NDT_END;
        if (ndt_progress_is_cancelled(&stop))
            return ndt_fail(err, NDT_ERR_CANCELLED, "stopped after %" PRIu64 " scans", run->scans);
        status = replay_record(run, &next, record, &has_result, err);
        if (status != NDT_OK)
            return status;
    }
    run->scans++;
    run->untrusted += ndtd_scan_is_untrusted(record) != 0;
    if (ndtd_scan_has_trusted_pose(record))
        ndtd_hints_pose(&run->hints, record->stamp_ns, record->result.T_map_sensor.t_m);
    return NDT_OK;
}

static enum ndt_status prepare(struct ndtd_bag_run *run, const struct ndtd_bag_run_options *options,
                               struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    if (!*run->settings.map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s", NDTD_NO_MAP_TEXT);
    enum ndt_status status = ndtd_record_source_open(&run->source, run->bag_name, options->import_args,
                                                     options->import_arg_count, &stop, err);
    const double start_us = ndt_clock_us();
    if (status == NDT_OK && !ndtd_settings_has_no_map(&run->settings))
        status = ndtd_map_read(&run->map, run->settings.map_path, &run->settings.map, &stop, err);
    run->map_load_ms = (ndt_clock_us() - start_us) / 1000;
    if (status == NDT_OK)
        status = ndtd_settings_snapshot_create(&snapshot, &run->settings, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&run->pipeline, snapshot, run->map, 0, err);
    if (status == NDT_OK)
        run->config_hash = snapshot->hash;
    ndtd_settings_snapshot_release(snapshot);
    if (status == NDT_OK && ndtd_settings_starts_at_pose(&run->settings))
        look(run, "initial pose", run->settings.initial_pose);
    return status == NDT_OK && wants_truth(run) ? collect_truth(run, err) : status;
}

enum ndt_status ndtd_bag_run_open(struct ndtd_bag_run **out, const struct ndtd_settings *settings,
                                  const struct ndtd_bag_run_options *options, struct ndtd_trajectory_error *truth,
                                  struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_bag_run *run = calloc(1, sizeof(*run));
    if (!run)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a replay");
    run->settings = *settings;
    run->skip = options->skip;
    run->limit = options->limit;
    run->truth = truth;
    const int length = snprintf(run->bag_name, sizeof(run->bag_name), "%s", options->bag);
    enum ndt_status status =
        (size_t)length < sizeof(run->bag_name)
            ? prepare(run, options, err)
            : ndt_fail(err, NDT_ERR_LIMIT, "the name of the bag has %d bytes; the limit is %zu", length,
                       sizeof(run->bag_name) - 1);
    if (status == NDT_OK)
        *out = run;
    else
        ndtd_bag_run_close(run);
    return status;
}

void ndtd_bag_run_close(struct ndtd_bag_run *run)
{
    if (!run)
        return;
    if (run->pipeline)
        ndtd_pipeline_destroy(run->pipeline);
    ndt_map_release(run->map);
    ndtd_record_source_close(run->source);
    free(run);
}

/* Gives the most specific reason. */
enum ndt_status ndtd_bag_run_check(const struct ndtd_bag_run *run, struct ndt_error *err)
{
    if (run->scans)
        return NDT_OK;
    if (run->bag_is_damaged)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s (no scan before it)", run->damage);
    if (run->scans_seen)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--skip %" PRIu64 ": %s holds only %" PRIu64 " scans", run->skip,
                        run->bag_name, run->scans_seen);
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: no scan in it", run->bag_name);
}

void ndtd_bag_run_warnings(const struct ndtd_bag_run *run, void (*line)(void *context, const char *text),
                           void *context)
{
    const struct ndtd_pipeline_events *events = ndtd_pipeline_events(run->pipeline);
    struct ndtd_pipeline_events told = {.unplaced = events->unplaced}; /* that is a hint */
    char event[NDTD_EVENT_BYTES], text[NDTD_PATH_MAX + 600];
    const char *format;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const struct bad_frames *bad = &run->bad[kind];
        if (!bad->count)
            continue;
        snprintf(text, sizeof(text), "%s: %" PRIu64 " %s frame%s could not be used; the first, %s", run->bag_name,
                 bad->count, kind ? ndt_message_name((enum ndt_message_type)kind) : "unknown",
                 bad->count > 1 ? "s" : "", bad->first);
        line(context, text);
    }
    if (run->map && ndtd_map_coarse_text(text, sizeof(text), run->settings.map_path, run->map->spacing_m))
        line(context, text);
    for (size_t kind = 0; (format = ndtd_pipeline_event(events, &told, &kind, event)) != NULL;) {
        snprintf(text, sizeof(text), format, event);
        line(context, text);
    }
    if (!run->bag_is_damaged)
        return;
    snprintf(text, sizeof(text), "%s; replayed the %" PRIu64 " scans before it", run->damage, run->scans);
    line(context, text);
}

const uint64_t *ndtd_bag_run_messages(const struct ndtd_bag_run *run)
{
    return run->messages;
}

const struct ndtd_hints *ndtd_bag_run_hints(struct ndtd_bag_run *run)
{
    if (!run->has_hints && ndtd_settings_has_no_map(&run->settings))
        ndtd_trajectory_error_anchor(run->truth);
    if (!run->has_hints)
        ndtd_hints_finish(&run->hints, ndtd_pipeline_events(run->pipeline)->poseless ? NULL : run->map, run->truth,
                          run->scans, run->untrusted);
    run->has_hints = 1;
    return &run->hints;
}

double ndtd_bag_run_done(const struct ndtd_bag_run *run)
{
    const double read = ndtd_record_source_done(run->source);
    const double scans = (double)run->scans / (double)(run->limit + 1);
    return run->limit && scans > read ? scans : read;
}

double ndtd_bag_run_map_load_ms(const struct ndtd_bag_run *run)
{
    return run->map_load_ms;
}

const struct ndt_map *ndtd_bag_run_map(const struct ndtd_bag_run *run)
{
    return run->map;
}

uint64_t ndtd_bag_run_config_hash(const struct ndtd_bag_run *run)
{
    return run->config_hash;
}

struct ndtd_pipeline *ndtd_bag_run_pipeline(struct ndtd_bag_run *run)
{
    return run->pipeline;
}

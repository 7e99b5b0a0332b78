/** @file
 * @brief ndt-bag join: several bags into one, in the order of their receive times. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bag_file.h"
#include "output_guard.h"

enum { MAX_BAGS = 64, MAX_SENSORS = 16 };

static struct {
    struct tool_operands bags;
    const char *out;
    int renumber, skip_repeated, force;
} args;

/* The last scan of a sensor that was written. */
struct sensor {
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    int64_t stamp_ns;
    uint64_t seq;
};

struct join {
    struct bag_cursor cursors[MAX_BAGS];
    int has_record[MAX_BAGS];
    size_t count;
    struct sensor sensors[MAX_SENSORS];
    size_t sensor_count;
    uint64_t scans, skipped, steps_back;
    int64_t last_ns;
};

static enum ndt_status advance(struct join *join, size_t i, struct ndt_error *err)
{
    const enum ndt_status status = bag_cursor_next(&join->cursors[i], err);
    join->has_record[i] = status == NDT_OK;
    return status == NDT_END ? NDT_OK : status;
}

/* The bag whose record was received first; of equal ones the first on the command line. count: all are at their
 * end.
 */
static size_t next_bag(const struct join *join)
{
    size_t best = join->count;
    for (size_t i = 0; i < join->count; i++)
        if (join->has_record[i] && (best == join->count || join->cursors[i].record.receive_time_ns <
                                                               join->cursors[best].record.receive_time_ns))
            best = i;
    return best;
}

static struct sensor *find_sensor(struct join *join, const char *frame_id)
{
    for (size_t i = 0; i < join->sensor_count; i++)
        if (strcmp(join->sensors[i].frame_id, frame_id) == 0)
            return &join->sensors[i];
    return NULL;
}

/* Stamps of a sensor rise from scan to scan. *repeated: the scan does not, and is left out. */
static enum ndt_status check_stamp(struct join *join, const struct bag_cursor *cursor, const struct sensor *sensor,
                                   int *repeated, struct ndt_error *err)
{
    *repeated = sensor && cursor->scan.stamp_ns <= sensor->stamp_ns;
    if (*repeated && args.skip_repeated)
        join->skipped++;
    else if (*repeated)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: record %" PRIu64 ": scan %" PRIu64
                        " of %s is not later than the scan before it: the bags "
                        "overlap, or a clock went back; --skip-repeated leaves such scans out",
                        cursor->path, cursor->number, cursor->scan.seq, cursor->scan.frame_id);
    return NDT_OK;
}

static enum ndt_status note_scan(struct join *join, const struct bag_cursor *cursor, struct sensor *sensor,
                                 struct ndt_error *err)
{
    const struct ndt_scan_message *scan = &cursor->scan;
    if (!args.renumber && sensor && scan->seq <= sensor->seq)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: record %" PRIu64 ": scan %" PRIu64 " of %s follows scan %" PRIu64
                        ": --renumber numbers the scans anew",
                        cursor->path, cursor->number, scan->seq, scan->frame_id, sensor->seq);
    if (!sensor && join->sensor_count == MAX_SENSORS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: scans of more than %d frames", cursor->path, MAX_SENSORS);
    if (!sensor) {
        sensor = &join->sensors[join->sensor_count++];
        memcpy(sensor->frame_id, scan->frame_id, sizeof(sensor->frame_id));
    }
    sensor->stamp_ns = scan->stamp_ns;
    sensor->seq = scan->seq;
    return NDT_OK;
}

static enum ndt_status put_scan(struct join *join, struct bag_cursor *cursor, struct bag_target *target,
                                struct ndt_error *err)
{
    struct ndt_bag_record record = cursor->record;
    int repeated = 0;
    enum ndt_status status = bag_cursor_decode(cursor, err);
    if (status != NDT_OK)
        return status;
    struct sensor *sensor = find_sensor(join, cursor->scan.frame_id);
    status = check_stamp(join, cursor, sensor, &repeated, err);
    if (status == NDT_OK && !repeated)
        status = note_scan(join, cursor, sensor, err);
    if (status != NDT_OK || repeated)
        return status;
    if (args.renumber && cursor->scan.seq != join->scans) {
        cursor->scan.seq = join->scans;
        status = ndt_scan_encode(&target->frame, &cursor->scan, &cursor->cloud, err);
        record.payload = target->frame.data;
        record.length = (uint32_t)target->frame.size;
    }
    join->scans++;
    return status == NDT_OK ? bag_target_put(target, &record, err) : status;
}

static void show_progress(const struct join *join, struct ndtd_progress_line *line)
{
    uint64_t done = 0, all = 0;
    for (size_t i = 0; i < join->count; i++) {
        done += join->cursors[i].offset;
        all += ndt_bag_size(join->cursors[i].reader);
    }
    ndtd_progress_line_show(line, done, all);
}

static enum ndt_status merge(struct join *join, struct bag_target *target, struct ndt_error *err)
{
    struct ndtd_progress_line line;
    enum ndt_status status = NDT_OK;
    ndtd_progress_line_begin(&line, args.out, NULL);
    for (size_t i = 0; status == NDT_OK && i < join->count; i++)
        status = advance(join, i, err);
    for (size_t i; status == NDT_OK && (i = next_bag(join)) < join->count;) {
        struct bag_cursor *cursor = &join->cursors[i];
        join->steps_back += target->records > 0 && cursor->record.receive_time_ns < join->last_ns;
        join->last_ns = cursor->record.receive_time_ns;
        status = cursor->record.type == NDT_MESSAGE_SCAN ? put_scan(join, cursor, target, err)
                                                         : bag_target_put(target, &cursor->record, err);
        if (status == NDT_OK)
            status = advance(join, i, err);
        show_progress(join, &line);
    }
    ndtd_progress_line_end(&line);
    return status;
}

static enum ndt_status write_joined(struct join *join, struct ndt_error *err)
{
    struct bag_target target;
    enum ndt_status status = bag_target_open(&target, args.out, args.force, &args.bags, err);
    if (status != NDT_OK)
        return status;
    status = merge(join, &target, err);
    const uint64_t records = target.records, bytes = target.bytes;
    status = bag_target_close(&target, status, err);
    if (status != NDT_OK)
        return status;
    printf("%s: %zu bags, %" PRIu64 " records, %.3f MB, %" PRIu64 " scans\n", args.out, join->count, records,
           (double)bytes * 1e-6, join->scans);
    if (join->skipped)
        fprintf(stderr,
                "ndt-bag: warning: %" PRIu64 " scans that were not later than the one before are left out\n",
                join->skipped);
    if (join->steps_back)
        fprintf(stderr, "ndt-bag: warning: receive times go back %" PRIu64 " times within a bag\n",
                join->steps_back);
    return NDT_OK;
}

static enum ndt_status run(struct ndt_error *err)
{
    static struct join join;
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && join.count < args.bags.count) {
        status = bag_cursor_open(&join.cursors[join.count], args.bags.words[join.count], err);
        join.cursors[join.count].line.is_terminal = 0; /* one progress line for all inputs */
        join.count += status == NDT_OK;
    }
    if (status == NDT_OK)
        status = write_joined(&join, err);
    for (size_t i = 0; i < join.count; i++)
        bag_cursor_close(&join.cursors[i]);
    return status;
}

static const struct tool_option options[] = {
    {"out", "FILE", TOOL_TEXT, &args.out, .required = 1, .help = "the bag to write"},
    {"renumber", NULL, TOOL_FLAG, &args.renumber,
     .help = "number the scans from 0; those whose number changes are written with x y z, intensity and time"},
    {"skip-repeated", NULL, TOOL_FLAG, &args.skip_repeated,
     .help = "leave out scans that are not later than the one before of the same frame"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command bag_join_command = {
    .name = "join",
    .summary = "makes one bag of several, in the order of their receive times",
    .details =
        "For the parts of a drive, and for messages that were recorded apart, such as scans and odometry. Records "
        "are copied byte for byte; those of a bag keep their order. Stamps and numbers of scans have to rise, per "
        "frame: otherwise it ends with one line. One record of each bag is in memory.",
    TOOL_OPERANDS("BAG", 1, MAX_BAGS, &args.bags),
    TOOL_OPTIONS(options),
    .run = run,
};

/** @file
 * @brief ndt-bag restamp: moves the stamps of the scans in a bag to the begin, middle or end of their points. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bag_file.h"
#include "output_guard.h"

enum place { BEGIN, MIDDLE, END };
static const char *const place_names[] = {[BEGIN] = "begin", [MIDDLE] = "middle", [END] = "end", NULL};
static const char *const place_of[] = {
    [BEGIN] = "at their begin", [MIDDLE] = "at their middle", [END] = "at their end"};
enum times { FIELD, AZIMUTH_CW, AZIMUTH_CCW };
static const char *const times_names[] = {
    [FIELD] = "field", [AZIMUTH_CW] = "azimuth_cw", [AZIMUTH_CCW] = "azimuth_ccw", NULL};

static struct {
    const char *out;
    int stamp, times, force;
    double sweep_s, shift_s;
    struct tool_operands bags;
} args = {.sweep_s = 0.1};

static const double PI = 3.14159265358979323846;

/* Replaces the times: whole microseconds, so that they are the same relative to every stamp. */
static enum ndt_status set_times(struct ndt_cloud *cloud, struct ndt_error *err)
{
    const double turn_s = args.times == AZIMUTH_CW ? -args.sweep_s : args.sweep_s;
    const enum ndt_status status = ndt_cloud_reserve(cloud, cloud->count, NDT_CLOUD_TIME, err);
    for (size_t i = 0; status == NDT_OK && i < cloud->count; i++) {
        const double azimuth_rad = atan2((double)cloud->y_m[i], (double)cloud->x_m[i]);
        const double time_us = 1e6 * turn_s * azimuth_rad / (2.0 * PI);
        cloud->time_s[i] = isfinite(time_us) ? (float)(round(time_us) * 1e-6) : 0.0f;
    }
    return status;
}

/* Shift from the old stamp to the new one, in whole microseconds; 0 for a scan without a finite time. */
static int64_t shift_us(const struct ndt_cloud *cloud)
{
    if (args.shift_s != 0)
        return llround(1e6 * args.shift_s);
    double first_s = INFINITY, last_s = -INFINITY;
    for (size_t i = 0; i < cloud->count; i++) {
        if (!isfinite(cloud->time_s[i]))
            continue;
        first_s = fmin(first_s, (double)cloud->time_s[i]);
        last_s = fmax(last_s, (double)cloud->time_s[i]);
    }
    if (!(first_s <= last_s))
        return 0;
    const double to_s = args.stamp == BEGIN ? first_s : args.stamp == END ? last_s : 0.5 * (first_s + last_s);
    const double shift = round(1e6 * to_s);
    return fabs(shift) < 1e15 ? (int64_t)shift : 0;
}

static enum ndt_status move_stamp(struct bag_cursor *cursor, struct ndt_error *err)
{
    struct ndt_cloud *cloud = &cursor->cloud;
    if (args.times != FIELD) {
        const enum ndt_status status = set_times(cloud, err);
        if (status != NDT_OK)
            return status;
    } else if (cloud->count > 0 && !cloud->time_s && args.shift_s == 0) {
        return ndt_fail(err, NDT_ERR_FORMAT, "the scan has no times; --times gives it those of a rotating sensor");
    }
    const int64_t shift = shift_us(cloud);
    if (__builtin_add_overflow(cursor->scan.stamp_ns, shift * 1000, &cursor->scan.stamp_ns))
        return ndt_fail(err, NDT_ERR_FORMAT, "the stamp cannot be moved by %" PRId64 " us", shift);
    for (size_t i = 0; cloud->time_s && i < cloud->count; i++)
        cloud->time_s[i] = (float)((double)cloud->time_s[i] - (double)shift * 1e-6);
    return NDT_OK;
}

static enum ndt_status put_moved(struct bag_cursor *cursor, struct bag_target *target, struct ndt_error *err)
{
    struct ndt_bag_record record = cursor->record;
    enum ndt_status status = bag_cursor_decode(cursor, err);
    if (status != NDT_OK)
        return status;
    status = move_stamp(cursor, err);
    if (status == NDT_OK)
        status = ndt_scan_encode(&target->frame, &cursor->scan, &cursor->cloud, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s: record %" PRIu64, cursor->path, cursor->number);
    record.payload = target->frame.data;
    record.length = (uint32_t)target->frame.size;
    return bag_target_put(target, &record, err);
}

static enum ndt_status copy(struct bag_cursor *cursor, struct bag_target *target, uint64_t *scans,
                            struct ndt_error *err)
{
    enum ndt_status status;
    while ((status = bag_cursor_next(cursor, err)) == NDT_OK) {
        const int is_scan = cursor->record.type == NDT_MESSAGE_SCAN;
        status = is_scan ? put_moved(cursor, target, err) : bag_target_put(target, &cursor->record, err);
        if (status != NDT_OK)
            return status;
        *scans += is_scan ? 1 : 0;
    }
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct bag_cursor cursor;
    struct bag_target target;
    uint64_t scans = 0;
    enum ndt_status status = bag_cursor_open(&cursor, args.bags.words[0], err);
    if (status != NDT_OK)
        return status;
    status = bag_target_open(&target, args.out, args.force, &args.bags, err);
    if (status == NDT_OK) {
        status = copy(&cursor, &target, &scans, err);
        const uint64_t records = target.records, bytes = target.bytes;
        status = bag_target_close(&target, status, err);
        if (status == NDT_OK)
            printf("%s: %" PRIu64 " records, %.3f MB, %" PRIu64 " scans stamped %s\n", args.out, records,
                   (double)bytes * 1e-6, scans, args.shift_s != 0 ? "anew" : place_of[args.stamp]);
    }
    bag_cursor_close(&cursor);
    return status;
}

static const struct tool_option options[] = {
    {"out", "FILE", TOOL_TEXT, &args.out, .required = 1, .help = "the bag to write"},
    {"stamp", "WHERE", TOOL_CHOICE, &args.stamp, .choices = place_names,
     .help = "begin (the first point), middle or end (the last point)"},
    {"times", "NAME", TOOL_CHOICE, &args.times, .choices = times_names,
     .help =
         "times of the points: those of the scan (field), or those of a sensor that turns once per sweep, starts "
         "and ends behind and is stamped in the middle (azimuth_cw: clockwise seen from above, azimuth_ccw)"},
    {"sweep", "S", TOOL_REAL, &args.sweep_s, 1e-6, 10,
     .help = "duration of a sweep, for azimuth_cw and azimuth_ccw"},
    {"shift", "S", TOOL_REAL, &args.shift_s, -10, 10,
     .help = "move the stamps by this time instead of to --stamp; scans need no times"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command bag_restamp_command = {
    .name = "restamp",
    .summary = "moves the stamps of scans to the begin, middle or end of their points",
    .details =
        "Stamps move by whole microseconds and the times of the points with them, so that every point keeps its "
        "absolute time. Scans are written with x y z, intensity and time. All other records are copied, byte for "
        "byte, with their receive times: a replay interpolates the truth at the new stamps.",
    TOOL_OPTIONS(options),
    TOOL_OPERANDS("BAG", 1, 1, &args.bags),
    .run = run,
};

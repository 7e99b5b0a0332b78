/** @file
 * @brief ndt-bag: the program, and the commands that read a bag (info, check, dump). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bag_file.h"
#include "result_print.h"

/* The operand of all three commands. */
static struct tool_operands bags;

/* ---- info, check ---- */

enum { BAG_MESSAGE_TYPES = NDT_MESSAGE_END, MAX_FRAMES = 8 };

struct bag_summary {
    uint64_t records, bytes; /* bytes: header and complete records */
    uint64_t by_type[BAG_MESSAGE_TYPES];
    uint64_t min_points, max_points, points;         /* points of scans */
    unsigned fields;                                 /* fields of any scan: NDT_CLOUD_* */
    char frames[MAX_FRAMES][NDT_PROTO_MAX_NAME + 1]; /* first different frames of scans */
    int frame_count;
    int64_t first_ns, last_ns;           /* receive times */
    int64_t first_scan_ns, last_scan_ns; /* stamps */
    uint64_t scans_back;                 /* scans whose stamp is not after the one before */
    uint64_t unreadable;                 /* records whose message cannot be decoded */
    struct ndt_error first_unreadable;
    struct ndt_error damage; /* damage at which reading ended; empty for an undamaged file */
};

static void add_frame(struct bag_summary *summary, const char *frame_id)
{
    for (int i = 0; i < summary->frame_count; i++)
        if (strcmp(summary->frames[i], frame_id) == 0)
            return;
    if (summary->frame_count < MAX_FRAMES)
        snprintf(summary->frames[summary->frame_count++], sizeof(summary->frames[0]), "%s", frame_id);
}

static void add_scan(struct bag_summary *summary, const struct bag_cursor *cursor)
{
    const uint64_t count = cursor->cloud.count;
    const int64_t stamp_ns = cursor->scan.stamp_ns;
    const int is_first = summary->by_type[NDT_MESSAGE_SCAN] == 1;
    if (is_first) {
        summary->min_points = count;
        summary->first_scan_ns = stamp_ns;
    } else if (stamp_ns <= summary->last_scan_ns) {
        summary->scans_back++;
    }
    summary->last_scan_ns = stamp_ns;
    summary->min_points = count < summary->min_points ? count : summary->min_points;
    summary->max_points = count > summary->max_points ? count : summary->max_points;
    summary->points += count;
    summary->fields |= cursor->cloud.fields;
    add_frame(summary, cursor->scan.frame_id);
}

static void add_record(struct bag_summary *summary, struct bag_cursor *cursor)
{
    struct ndt_error reason;
    if (summary->records++ == 0)
        summary->first_ns = cursor->record.receive_time_ns;
    summary->last_ns = cursor->record.receive_time_ns;
    if (bag_cursor_decode(cursor, &reason) != NDT_OK) {
        if (summary->unreadable++ == 0)
            summary->first_unreadable = reason;
        return;
    }
    summary->by_type[cursor->type]++;
    if (cursor->type == NDT_MESSAGE_SCAN)
        add_scan(summary, cursor);
}

/* Fails only if the file cannot be read; damage is part of the summary. */
static enum ndt_status bag_summary_read(struct bag_summary *summary, const char *path, struct ndt_error *err)
{
    struct bag_cursor cursor;
    *summary = (struct bag_summary){0};
    enum ndt_status status = bag_cursor_open(&cursor, path, err);
    if (status != NDT_OK)
        return status;
    while ((status = bag_cursor_next(&cursor, err)) == NDT_OK && !tool_interrupted())
        add_record(summary, &cursor);
    summary->bytes = ndt_bag_offset(cursor.reader);
    bag_cursor_close(&cursor);
    if (status == NDT_OK)
        return ndt_fail(err, NDT_ERR_IO, "%s: interrupted", path);
    if (status == NDT_ERR_FORMAT)
        summary->damage = *err;
    return status == NDT_END || status == NDT_ERR_FORMAT ? NDT_OK : status;
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return ((double)to_ns - (double)from_ns) * 1e-9;
}

static void print_stamp(const char *label, int64_t stamp_ns)
{
    const int64_t part = stamp_ns % 1000000000, whole = stamp_ns / 1000000000;
    const int64_t part_size = part < 0 ? -part : part;
    printf("%-16s%s%" PRId64 ".%09" PRId64 " s\n", label, stamp_ns < 0 && whole == 0 ? "-" : "", whole, part_size);
}

static void print_scans(const struct bag_summary *summary)
{
    const uint64_t scans = summary->by_type[NDT_MESSAGE_SCAN];
    if (scans == 0)
        return;
    const double duration_s = seconds(summary->first_scan_ns, summary->last_scan_ns);
    print_stamp("first scan", summary->first_scan_ns);
    print_stamp("last scan", summary->last_scan_ns);
    if (duration_s > 0)
        printf("%-16s%.3f Hz\n", "scan rate", (double)(scans - 1) / duration_s);
    printf("%-16s%" PRIu64 " to %" PRIu64 ", mean %.0f\n", "points per scan", summary->min_points,
           summary->max_points, (double)summary->points / (double)scans);
    printf("%-16sx y z%s%s\n", "fields", summary->fields & NDT_CLOUD_INTENSITY ? " intensity" : "",
           summary->fields & NDT_CLOUD_TIME ? " time" : "");
    printf("%-16s", summary->frame_count > 1 ? "frames" : "frame");
    for (int i = 0; i < summary->frame_count; i++)
        printf("%s%s", i ? ", " : "", summary->frames[i]);
    putchar('\n');
    if (summary->scans_back)
        printf("%-16s%" PRIu64 " scans are not later than the one before\n", "order", summary->scans_back);
}

static enum ndt_status run_info(struct ndt_error *err)
{
    struct bag_summary summary;
    const enum ndt_status status = bag_summary_read(&summary, bags.words[0], err);
    if (status != NDT_OK)
        return status;
    printf("%-16s%s\n", "bag", bags.words[0]);
    printf("%-16s%" PRIu64 " in %.3f MB, %.3f s\n", "records", summary.records, (double)summary.bytes * 1e-6,
           seconds(summary.first_ns, summary.last_ns));
    for (int type = NDT_MESSAGE_SCAN; type < BAG_MESSAGE_TYPES; type++)
        if (summary.by_type[type])
            printf("  %-14s%" PRIu64 "\n", ndt_message_name((enum ndt_message_type)type), summary.by_type[type]);
    print_scans(&summary);
    if (summary.unreadable)
        printf("%-16s%" PRIu64 " records; the first: %s\n", "unreadable", summary.unreadable,
               summary.first_unreadable.text);
    if (*summary.damage.text)
        printf("%-16s%s\n", "damaged", summary.damage.text);
    return NDT_OK;
}

static enum ndt_status run_check(struct ndt_error *err)
{
    struct bag_summary summary;
    const enum ndt_status status = bag_summary_read(&summary, bags.words[0], err);
    if (status != NDT_OK)
        return status;
    if (summary.unreadable > 1)
        fprintf(stderr, "ndt-bag: %s: %" PRIu64 " records cannot be read, the first:\n", bags.words[0],
                summary.unreadable);
    if (summary.unreadable && *summary.damage.text)
        fprintf(stderr, "ndt-bag: %s\n", summary.first_unreadable.text);
    else if (summary.unreadable)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s", summary.first_unreadable.text);
    if (*summary.damage.text)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s", summary.damage.text);
    printf("%s: undamaged: %" PRIu64 " records, %" PRIu64 " scans\n", bags.words[0], summary.records,
           summary.by_type[NDT_MESSAGE_SCAN]);
    return NDT_OK;
}

/* ---- dump ---- */

static struct {
    uint32_t type; /* 0: all */
    uint64_t limit, points;
} dump_args = {.limit = UINT64_MAX};

static void print_points(const struct ndt_cloud *cloud, uint64_t limit)
{
    const size_t count = limit < cloud->count ? (size_t)limit : cloud->count;
    printf(",\"xyz_m\":[");
    for (size_t i = 0; i < count; i++) {
        const double point[3] = {cloud->origin_m[0] + (double)cloud->x_m[i],
                                 cloud->origin_m[1] + (double)cloud->y_m[i],
                                 cloud->origin_m[2] + (double)cloud->z_m[i]};
        if (i)
            putchar(',');
        json_reals(stdout, NULL, point, 3);
    }
    putchar(']');
    for (size_t i = 0; cloud->intensity && i < count; i++) {
        printf(i ? "," : ",\"intensity\":[");
        json_number(stdout, (double)cloud->intensity[i]);
    }
    printf(cloud->intensity && count ? "]" : "");
    for (size_t i = 0; cloud->time_s && i < count; i++) {
        printf(i ? "," : ",\"time_s\":[");
        json_number(stdout, (double)cloud->time_s[i]);
    }
    printf(cloud->time_s && count ? "]" : "");
}

static void print_scan(const struct bag_cursor *cursor, uint64_t points)
{
    printf(",\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64, cursor->scan.seq, cursor->scan.stamp_ns);
    json_text(stdout, "frame_id", cursor->scan.frame_id);
    printf(",\"points\":%zu", cursor->cloud.count);
    if (points)
        print_points(&cursor->cloud, points);
}

/* A `points` message. */
static void print_viewed(const struct bag_cursor *cursor, uint64_t points)
{
    const struct ndt_points_message *message = &cursor->points;
    printf(",\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64, message->seq, message->stamp_ns);
    json_text(stdout, "frame_id", message->frame_id);
    printf(",\"points\":%zu,\"iterations\":%zu,\"candidates\":%zu", cursor->cloud.count, message->iteration_count,
           message->candidate_count);
    if (points)
        print_points(&cursor->cloud, points);
}

static void print_pose(const struct ndt_pose_message *message)
{
    printf(",\"stamp_ns\":%" PRId64, message->stamp_ns);
    json_text(stdout, "frame_id", message->frame_id);
    if (message->has_pose)
        json_pose(stdout, &message->pose);
    if (message->has_twist)
        json_twist(stdout, &message->twist);
    if (message->has_covariance)
        json_reals(stdout, "covariance", message->covariance, 36);
}

static void print_gnss(const struct ndt_gnss_message *message)
{
    printf(",\"stamp_ns\":%" PRId64, message->stamp_ns);
    json_text(stdout, "frame_id", message->frame_id);
    json_reals(stdout, "position", message->position_m, 3);
    if (message->has_deviation)
        json_reals(stdout, "deviation", message->deviation_m, 3);
    if (message->has_antenna)
        json_text(stdout, "antenna", message->antenna);
}

static void print_imu(const struct ndt_imu_message *message)
{
    printf(",\"stamp_ns\":%" PRId64, message->stamp_ns);
    json_text(stdout, "frame_id", message->frame_id);
    json_reals(stdout, "angular_velocity", message->angular_velocity_radps, 3);
    if (message->has_acceleration)
        json_reals(stdout, "linear_acceleration", message->linear_acceleration_mps2, 3);
    if (message->has_angular_velocity_covariance)
        json_reals(stdout, "angular_velocity_covariance", message->angular_velocity_covariance, 9);
    if (message->has_linear_acceleration_covariance)
        json_reals(stdout, "linear_acceleration_covariance", message->linear_acceleration_covariance, 9);
}

static void print_body(const struct bag_cursor *cursor, uint64_t points)
{
    switch (cursor->type) {
    case NDT_MESSAGE_SCAN:
        print_scan(cursor, points);
        break;
    case NDT_MESSAGE_POINTS:
        print_viewed(cursor, points);
        break;
    case NDT_MESSAGE_RESULT:
        putchar(',');
        result_print_json(stdout, &cursor->result);
        break;
    case NDT_MESSAGE_GNSS:
        print_gnss(&cursor->gnss);
        break;
    case NDT_MESSAGE_IMU:
        print_imu(&cursor->imu);
        break;
    case NDT_MESSAGE_REQUEST:
        printf(",\"id\":%" PRIu64, cursor->request.id);
        json_text(stdout, "op", ndt_operation_name(cursor->request.op));
        break;
    case NDT_MESSAGE_REPLY:
        break;
    default:
        print_pose(&cursor->pose);
    }
}

static void print_message(const struct bag_cursor *cursor, uint64_t points)
{
    printf("{\"record\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"receive_time_ns\":%" PRId64 ",\"type\":\"%s\"",
           cursor->number, cursor->offset, cursor->record.receive_time_ns, ndt_message_name(cursor->type));
    print_body(cursor, points);
    puts("}");
}

static enum ndt_status parse_type(void *value, const char *text, struct ndt_error *err)
{
    enum ndt_message_type type;
    const enum ndt_status status = bag_type_of(text, &type, err);
    if (status == NDT_OK)
        *(uint32_t *)value = (uint32_t)type;
    return status;
}

static enum ndt_status dump(struct bag_cursor *cursor, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    uint64_t left = dump_args.limit;
    while (left > 0 && !ferror(stdout) && (status = bag_cursor_next(cursor, err)) == NDT_OK) {
        if (dump_args.type && cursor->record.type != dump_args.type)
            continue;
        status = bag_cursor_decode(cursor, err);
        if (status == NDT_OK && tool_interrupted())
            status = ndt_fail(err, NDT_ERR_IO, "%s: interrupted", cursor->path);
        if (status != NDT_OK)
            return status;
        print_message(cursor, dump_args.points);
        left--;
    }
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run_dump(struct ndt_error *err)
{
    struct bag_cursor cursor;
    enum ndt_status status = bag_cursor_open(&cursor, bags.words[0], err);
    if (status != NDT_OK)
        return status;
    cursor.line.is_terminal &= !isatty(STDOUT_FILENO); /* the lines go there */
    status = dump(&cursor, err);
    bag_cursor_close(&cursor);
    return status;
}

/* ---- program ---- */

static const struct tool_command info_command = {
    .name = "info",
    .summary = "prints what a bag contains",
    .details = "A damaged bag is described up to the damage.",
    TOOL_OPERANDS("BAG", 1, 1, &bags),
    .run = run_info,
};

static const struct tool_command check_command = {
    .name = "check",
    .summary = "reads every record and decodes every message",
    .details = "A damaged bag ends in exit status 3 and a line with record, byte and reason.",
    TOOL_OPERANDS("BAG", 1, 1, &bags),
    .run = run_check,
};

static const struct tool_option dump_options[] = {
    {"type", "NAME", TOOL_CUSTOM, &dump_args.type, .parse = parse_type,
     .help = "only messages of this type: scan, initial_pose, odometry, truth, result, gnss, imu, transform, "
             "request or reply"},
    {"limit", "N", TOOL_COUNT, &dump_args.limit, 1, INFINITY, .help = "stop after N lines"},
    {"points", "N", TOOL_COUNT, &dump_args.points, 0, NDT_CLOUD_MAX_POINTS,
     .help = "also print the first N points of every scan"},
};
static const struct tool_command dump_command = {
    .name = "dump",
    .summary = "prints the messages as lines of JSON",
    .details =
        "One object per record: record (from 1), offset in the file, receive_time_ns, type, then the members "
        "of the message (proto/SCHEMA.md). A scan has the number of its points in place of the points. "
        "Numbers that are not finite are null.",
    TOOL_OPTIONS(dump_options),
    TOOL_OPERANDS("BAG", 1, 1, &bags),
    .run = run_dump,
};

static const struct tool_command *const commands[] = {
    &bag_pack_command, &info_command,        &check_command, &bag_cut_command,
    &bag_join_command, &bag_restamp_command, &dump_command,  NULL,
};
static const struct tool_command program = {
    .name = "ndt-bag",
    .summary = "makes bags from files, describes, checks, cuts, joins, restamps and dumps them",
    .details = "A bag is a recorded drive: the raw messages, as they arrive over the wire.",
    .commands = commands,
};

int main(int argc, char **argv)
{
    return tool_main(&program, argc, argv);
}

/* ndt-bag dump: the messages as lines of JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bag_cursor.h"
#include "bag_tool.h"

enum dump_option { TYPE, LIMIT, POINTS };

static const struct bag_option options[] = {
    [TYPE] = {"type", "NAME", "only messages of this type: scan, initial_pose, odometry, gnss, truth, result ...",
              0},
    [LIMIT] = {"limit", "N", "at most N lines", 0},
    [POINTS] = {"points", "N", "the first N points of every scan (0)", 0},
};

/* JSON has no NaN; 17 digits give every double back. */
static void print_number(double value)
{
    if (isfinite(value))
        printf("%.17g", value);
    else
        printf("null");
}

static void print_real(const char *key, double value)
{
    printf(",\"%s\":", key);
    print_number(value);
}

static void print_reals(const char *key, const double *values, size_t count)
{
    if (*key)
        printf(",\"%s\":", key);
    for (size_t i = 0; i < count; i++) {
        putchar(i == 0 ? '[' : ',');
        print_number(values[i]);
    }
    putchar(']');
}

/* Names on the wire are printable ASCII. */
static void print_text(const char *key, const char *text)
{
    printf(",\"%s\":\"", key);
    for (; *text; text++)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

/* A result may have none, its quaternion is then zero. */
static void print_pose_value(const struct ndt_pose *pose)
{
    double values[7];
    const double *q = pose->q_xyzw;
    if (q[0] == 0 && q[1] == 0 && q[2] == 0 && q[3] == 0)
        return;
    memcpy(values, pose->t_m, sizeof(pose->t_m));
    memcpy(values + 3, pose->q_xyzw, sizeof(pose->q_xyzw));
    print_reals("pose", values, 7);
}

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
        print_reals("", point, 3);
    }
    putchar(']');
    for (size_t i = 0; cloud->intensity && i < count; i++) {
        printf(i ? "," : ",\"intensity\":[");
        print_number((double)cloud->intensity[i]);
    }
    printf(cloud->intensity && count ? "]" : "");
    for (size_t i = 0; cloud->time_s && i < count; i++) {
        printf(i ? "," : ",\"time_s\":[");
        print_number((double)cloud->time_s[i]);
    }
    printf(cloud->time_s && count ? "]" : "");
}

static void print_scan(const struct bag_cursor *cursor, uint64_t points)
{
    printf(",\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64, cursor->scan.seq, cursor->scan.stamp_ns);
    print_text("frame_id", cursor->scan.frame_id);
    printf(",\"points\":%zu", cursor->cloud.count);
    if (points)
        print_points(&cursor->cloud, points);
}

static void print_pose(const struct ndt_pose_message *message)
{
    printf(",\"stamp_ns\":%" PRId64, message->stamp_ns);
    print_text("frame_id", message->frame_id);
    if (message->has_pose)
        print_pose_value(&message->pose);
    if (message->has_twist) {
        double values[6];
        memcpy(values, message->twist.v_mps, sizeof(message->twist.v_mps));
        memcpy(values + 3, message->twist.w_radps, sizeof(message->twist.w_radps));
        print_reals("twist", values, 6);
    }
    if (message->has_covariance)
        print_reals("covariance", message->covariance, 36);
}

static void print_scores(const struct ndt_result_message *message)
{
    const struct ndt_align_result *result = &message->result;
    print_real("transform_probability", result->scores.transform_probability);
    print_real("nvtl", result->scores.nvtl);
    print_real("nvtl_normalized", result->scores.nvtl_normalized);
    print_real("match_ratio", result->scores.match_ratio);
    print_real("coverage", result->scores.coverage);
    printf(",\"iterations\":%d,\"evaluations\":%d,\"oscillation\":%d,\"map_id\":%" PRIu64, result->iterations,
           result->evaluations, result->oscillation, message->map_id);
    print_real("decode_us", message->decode_us);
    print_real("queue_us", message->queue_us);
    print_real("preprocess_us", message->preprocess_us);
    print_real("upload_us", message->upload_us);
    print_real("align_us", result->align_us);
    print_real("publish_us", message->publish_us);
    printf(",\"config_hash\":%" PRIu64 ",\"queue_depth\":%" PRIu32 ",\"drop_counter\":%" PRIu64,
           message->config_hash, message->queue_depth, message->drop_counter);
}

static void print_result(const struct ndt_result_message *message)
{
    const struct ndt_align_result *result = &message->result;
    printf(",\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64, message->seq, message->stamp_ns);
    print_text("frame_id", message->frame_id);
    print_text("outcome", ndt_outcome_name(result->outcome));
    print_text("reason", result->reason);
    print_pose_value(&result->T_map_sensor);
    if (result->has_covariance)
        print_reals("covariance", result->covariance, 36);
    printf(",\"weak_axes\":[");
    for (int i = 0; i < result->weak_count; i++) {
        printf("%s", i ? "," : "");
        print_reals("", result->weak_axes[i], 6);
    }
    putchar(']');
    print_scores(message);
}

static void print_gnss(const struct ndt_gnss_message *message)
{
    printf(",\"stamp_ns\":%" PRId64, message->stamp_ns);
    print_text("frame_id", message->frame_id);
    print_reals("position", message->position_m, 3);
    if (message->has_deviation)
        print_reals("deviation", message->deviation_m, 3);
}

static void print_body(const struct bag_cursor *cursor, uint64_t points)
{
    switch (cursor->type) {
    case NDT_MESSAGE_SCAN:
        print_scan(cursor, points);
        break;
    case NDT_MESSAGE_RESULT:
        print_result(&cursor->result);
        break;
    case NDT_MESSAGE_GNSS:
        print_gnss(&cursor->gnss);
        break;
    case NDT_MESSAGE_REQUEST:
        printf(",\"id\":%" PRIu64, cursor->request.id);
        print_text("op", ndt_operation_name(cursor->request.op));
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

static enum ndt_status parse_type(const char *text, uint32_t *type, struct ndt_error *err)
{
    for (*type = NDT_MESSAGE_SCAN; *type <= NDT_MESSAGE_LAST; (*type)++)
        if (strcmp(ndt_message_name((enum ndt_message_type) * type), text) == 0)
            return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT, "--type: '%s' is no type of message; --help lists them", text);
}

static enum ndt_status dump(struct bag_cursor *cursor, uint32_t type, uint64_t limit, uint64_t points,
                            struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    while (limit > 0 && !ferror(stdout) && (status = bag_cursor_next(cursor, err)) == NDT_OK) {
        if (type && cursor->record.type != type)
            continue;
        status = bag_cursor_decode(cursor, err);
        if (status == NDT_OK && bag_interrupted())
            status = ndt_fail(err, NDT_ERR_IO, "%s: interrupted", cursor->path);
        if (status != NDT_OK)
            return status;
        print_message(cursor, points);
        limit--;
    }
    return status == NDT_END ? NDT_OK : status;
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    struct bag_cursor cursor;
    uint32_t type = 0;
    uint64_t limit = UINT64_MAX, points = 0;
    enum ndt_status status = NDT_OK;
    if (args->values[TYPE])
        status = parse_type(args->values[TYPE], &type, err);
    if (status == NDT_OK && args->values[LIMIT])
        status = bag_parse_count("limit", args->values[LIMIT], 1, UINT64_MAX, &limit, err);
    if (status == NDT_OK && args->values[POINTS])
        status = bag_parse_count("points", args->values[POINTS], 0, NDT_CLOUD_MAX_POINTS, &points, err);
    if (status == NDT_OK)
        status = bag_cursor_open(&cursor, args->operand, err);
    if (status != NDT_OK)
        return status;
    status = dump(&cursor, type, limit, points, err);
    bag_cursor_close(&cursor);
    return status;
}

const struct bag_command bag_dump_command = {
    .name = "dump",
    .operand = "BAG",
    .summary = "writes the messages as lines of JSON",
    .details =
        "\n"
        "One object per record: record (from 1), offset in the file, receive_time_ns, type, then the fields of\n"
        "the message (proto/SCHEMA.md); of a scan the number of points instead of the points. Numbers that do\n"
        "not exist (NaN) are null.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

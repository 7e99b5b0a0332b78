/** @file
 * @brief ndt-bag cut: copies a part of a bag, record by record. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bag_file.h"
#include "output_guard.h"

static const char *const initial_names[] = {"none", "first", NULL};
static struct {
    const char *out;
    struct tool_range records, scans;
    int64_t from_ns, to_ns; /* range relative to the first record */
    int initial;            /* index of initial_names */
    uint64_t every;
    uint64_t drop[2];              /* the first scan that is left out, and how many */
    int64_t wall_ns[2];            /* begin relative to the first record, and duration */
    struct tool_reals offset_pose; /* x y z [m], yaw [deg]; none: 0 */
    struct tool_reals
        point_times;  /* factor, shift [s], every which point is off, by how much [s]; none: as they are */
    uint64_t without; /* bit TYPE: records of this type are left out */
    int salvage, force;
    struct tool_operands bags;
} args = {.records = {1, UINT64_MAX}, .scans = {1, UINT64_MAX}, .to_ns = INT64_MAX, .every = 1};

struct cut {
    int64_t begin_ns;
    uint64_t scan_count;               /* scans up to and including the current record */
    struct ndt_pose_message truths[2]; /* the first ones of the part, for --initial first */
    int truth_count;
    struct ndt_error damage;
};

static const double WALL_M = 2.5, WALL_REACH_M = 40.0, DEG = 0.017453292519943295;

/* Whether a scan of the part stays; `scan` counts from 1. */
static int scan_stays(uint64_t scan)
{
    return (scan - args.scans.first) % args.every == 0 &&
           !(scan >= args.drop[0] && scan - args.drop[0] < args.drop[1]);
}

/* Whether the current record belongs to the part; must be called for every record in turn. */
static int wanted(struct cut *cut, const struct bag_cursor *cursor)
{
    const int64_t time_ns = cursor->record.receive_time_ns;
    if (cursor->number == 1) {
        cut->begin_ns = time_ns;
        cut->scan_count = 0;
    }
    const uint64_t scan = cut->scan_count + 1; /* records belong to the scan that follows them */
    if (cursor->record.type == NDT_MESSAGE_SCAN)
        cut->scan_count++;
    int64_t after_ns;
    if (__builtin_sub_overflow(time_ns, cut->begin_ns, &after_ns))
        return 0;
    if (args.initial && cursor->record.type == NDT_MESSAGE_INITIAL_POSE)
        return 0;
    if (cursor->record.type < 64 && args.without >> cursor->record.type & 1)
        return 0;
    if (cursor->record.type == NDT_MESSAGE_SCAN && scan >= args.scans.first && !scan_stays(scan))
        return 0;
    /* Transforms before the part hold in it, too. */
    const int holds = cursor->record.type == NDT_MESSAGE_TRANSFORM;
    return cursor->number >= args.records.first && cursor->number <= args.records.last &&
           (holds || (scan >= args.scans.first && after_ns >= args.from_ns)) && scan <= args.scans.last &&
           after_ns < args.to_ns;
}

/* NDT_OK at the end, and at damage with --salvage. */
static enum ndt_status end_of_reading(struct cut *cut, enum ndt_status status, struct ndt_error *err)
{
    if (status == NDT_ERR_FORMAT && args.salvage)
        cut->damage = *err;
    else if (status != NDT_END)
        return status;
    return NDT_OK;
}

static enum ndt_status find_truths(struct cut *cut, struct bag_cursor *cursor, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    while (cut->truth_count < 2 && (status = bag_cursor_next(cursor, err)) == NDT_OK) {
        if (!wanted(cut, cursor) || cursor->record.type != NDT_MESSAGE_TRUTH)
            continue;
        status = bag_cursor_decode(cursor, err);
        if (status != NDT_OK)
            return status;
        cut->truths[cut->truth_count++] = cursor->pose;
    }
    bag_cursor_rewind(cursor);
    if (status != NDT_OK)
        status = end_of_reading(cut, status, err);
    if (status == NDT_OK && cut->truth_count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: --initial first: this part has no true pose", cursor->path);
    return status;
}

/* Moves a pose along the axes of the map and turns it about z, for an initial pose that is wrong. */
static struct ndt_pose offset_pose(const struct ndt_pose *pose)
{
    static const double none[4];
    const double *v = args.offset_pose.count ? args.offset_pose.values : none;
    const double half_rad = 0.5 * v[3] * DEG;
    const struct ndt_pose turn = {.q_xyzw = {0, 0, sin(half_rad), cos(half_rad)}};
    struct ndt_pose turned = ndt_pose_compose(&turn, pose);
    for (int k = 0; k < 3; k++)
        turned.t_m[k] = pose->t_m[k] + v[k];
    return turned;
}

static enum ndt_status put_initial(const struct cut *cut, struct bag_target *target, struct ndt_error *err)
{
    const struct ndt_pose_message *first = &cut->truths[0], *next = &cut->truths[1];
    struct ndt_pose_message message =
        bag_initial_pose(first->stamp_ns, &first->pose, next->stamp_ns, cut->truth_count > 1 ? &next->pose : NULL);
    message.pose = offset_pose(&message.pose);
    return args.initial ? bag_target_put_pose(target, NDT_MESSAGE_INITIAL_POSE, &message, err) : NDT_OK;
}

/* Points to the left of the sensor become a wall that stays beside it. */
static void put_wall(struct ndt_cloud *cloud)
{
    size_t kept = 0;
    for (size_t i = 0; i < cloud->count; i++) {
        const double scale = cloud->y_m[i] > 0 ? WALL_M / (double)cloud->y_m[i] : 1.0;
        const double x_m = scale * (double)cloud->x_m[i], z_m = scale * (double)cloud->z_m[i];
        if (!(fabs(x_m) < WALL_REACH_M) && scale != 1.0)
            continue;
        cloud->x_m[kept] = (float)x_m;
        cloud->y_m[kept] = (float)(scale * (double)cloud->y_m[i]);
        cloud->z_m[kept] = (float)z_m;
        if (cloud->intensity)
            cloud->intensity[kept] = cloud->intensity[i];
        if (cloud->time_s)
            cloud->time_s[kept] = cloud->time_s[i];
        kept++;
    }
    cloud->count = kept;
}

/* Another unit, another clock, strays. */
static void change_times(struct ndt_cloud *cloud)
{
    const double *v = args.point_times.values;
    const size_t every = args.point_times.count == 4 ? (size_t)v[2] : cloud->count + 1;
    for (size_t i = 0; cloud->time_s && i < cloud->count; i++)
        cloud->time_s[i] = (float)((double)cloud->time_s[i] * v[0] + v[1] + (i % every == every - 1 ? v[3] : 0));
}

/* Copies the record, or what --wall, --point-times and --offset-pose make of it. */
static enum ndt_status put_record(const struct cut *cut, struct bag_cursor *cursor, struct bag_target *target,
                                  struct ndt_error *err)
{
    struct ndt_bag_record record = cursor->record;
    const int64_t after_ns = record.receive_time_ns - cut->begin_ns; /* wanted() has checked it */
    const int behind_wall = record.type == NDT_MESSAGE_SCAN && after_ns >= args.wall_ns[0] &&
                            after_ns - args.wall_ns[0] < args.wall_ns[1];
    const int has_other_times = record.type == NDT_MESSAGE_SCAN && args.point_times.count > 0;
    if (!behind_wall && !has_other_times &&
        (record.type != NDT_MESSAGE_INITIAL_POSE || args.offset_pose.count == 0))
        return bag_target_put(target, &record, err);
    enum ndt_status status = bag_cursor_decode(cursor, err);
    if (status != NDT_OK)
        return status;
    if (behind_wall)
        put_wall(&cursor->cloud);
    if (has_other_times)
        change_times(&cursor->cloud);
    if (record.type == NDT_MESSAGE_SCAN) {
        status = ndt_scan_encode(&target->frame, &cursor->scan, &cursor->cloud, err);
    } else {
        cursor->pose.pose = offset_pose(&cursor->pose.pose);
        status = ndt_pose_message_encode(&target->frame, NDT_MESSAGE_INITIAL_POSE, &cursor->pose, err);
    }
    record.payload = target->frame.data;
    record.length = (uint32_t)target->frame.size;
    return status == NDT_OK ? bag_target_put(target, &record, err) : status;
}

static enum ndt_status copy(struct cut *cut, struct bag_cursor *cursor, struct bag_target *target,
                            struct ndt_error *err)
{
    enum ndt_status status = put_initial(cut, target, err);
    const uint64_t before = target->records;
    while (status == NDT_OK && (status = bag_cursor_next(cursor, err)) == NDT_OK)
        if (wanted(cut, cursor))
            status = put_record(cut, cursor, target, err);
    status = end_of_reading(cut, status, err);
    if (status == NDT_OK && target->records == before)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "%s: no record is in this part (%" PRIu64 " records, %" PRIu64 " scans)", cursor->path,
                        cursor->number, cut->scan_count);
    return status;
}

static enum ndt_status write_part(struct cut *cut, struct bag_cursor *cursor, struct ndt_error *err)
{
    struct bag_target target;
    enum ndt_status status = bag_target_open(&target, args.out, args.force, &args.bags, err);
    if (status != NDT_OK)
        return status;
    status = copy(cut, cursor, &target, err);
    const uint64_t records = target.records, bytes = target.bytes;
    status = bag_target_close(&target, status, err);
    if (status != NDT_OK)
        return status;
    printf("%s: %" PRIu64 " records, %.3f MB\n", args.out, records, (double)bytes * 1e-6);
    if (*cut->damage.text)
        fprintf(stderr, "ndt-bag: warning: the rest is left out: %s\n", cut->damage.text);
    return NDT_OK;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct cut cut = {0};
    struct bag_cursor cursor;
    if (args.offset_pose.count != 0 && args.offset_pose.count != 4)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--offset-pose: %zu numbers; x,y,z,yaw are needed",
                        args.offset_pose.count);
    if (args.point_times.count % 2 || args.point_times.count > 4 ||
        (args.point_times.count == 4 && !(args.point_times.values[2] >= 1)))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--point-times: F,S or F,S,N,O with N from 1 is needed");
    enum ndt_status status = bag_cursor_open(&cursor, args.bags.words[0], err);
    if (status != NDT_OK)
        return status;
    if (args.initial)
        status = find_truths(&cut, &cursor, err);
    if (status == NDT_OK)
        status = write_part(&cut, &cursor, err);
    bag_cursor_close(&cursor);
    return status;
}

static enum ndt_status parse_types(void *value, const char *text, struct ndt_error *err)
{
    struct tool_list names;
    enum ndt_status status = tool_parse_list(text, &names, err);
    for (size_t i = 0; status == NDT_OK && i < names.count; i++) {
        enum ndt_message_type type = NDT_MESSAGE_END;
        status = bag_type_of(names.items[i], &type, err);
        *(uint64_t *)value |= UINT64_C(1) << type;
    }
    return status;
}

/* Two parts with a colon between them. */
static enum ndt_status split(const char *text, char first[32], const char **second, struct ndt_error *err)
{
    const char *colon = strchr(text, ':');
    if (!colon || colon - text >= 32)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is not two numbers with a colon between them", text);
    memcpy(first, text, (size_t)(colon - text));
    first[colon - text] = 0;
    *second = colon + 1;
    return NDT_OK;
}

static enum ndt_status parse_drop(void *value, const char *text, struct ndt_error *err)
{
    uint64_t *drop = value;
    char first[32];
    const char *second = NULL;
    enum ndt_status status = split(text, first, &second, err);
    if (status == NDT_OK)
        status = tool_parse_count(first, 1, INFINITY, &drop[0], err);
    return status == NDT_OK ? tool_parse_count(second, 1, INFINITY, &drop[1], err) : status;
}

static enum ndt_status parse_wall(void *value, const char *text, struct ndt_error *err)
{
    int64_t *wall_ns = value;
    char first[32];
    const char *second = NULL;
    double from_s = 0, duration_s = 0;
    enum ndt_status status = split(text, first, &second, err);
    if (status == NDT_OK)
        status = tool_parse_real(first, 0, 1e6, &from_s, err);
    if (status == NDT_OK)
        status = tool_parse_real(second, 0, 1e6, &duration_s, err);
    wall_ns[0] = llround(1e9 * from_s);
    wall_ns[1] = llround(1e9 * duration_s);
    return status;
}

static const struct tool_option options[] = {
    {"out", "FILE", TOOL_TEXT, &args.out, .required = 1, .help = "the bag to write"},
    {"records", "A-B", TOOL_RANGE, &args.records, .help = "records A to B, from 1; 3- and -7 are open ranges"},
    {"scans", "A-B", TOOL_RANGE, &args.scans,
     .help = "scans A to B, from 1, each with the records since the scan before it"},
    {"from", "S", TOOL_SECONDS, &args.from_ns, .help = "from S seconds after the first record"},
    {"to", "S", TOOL_SECONDS, &args.to_ns, .help = "before S seconds after the first record"},
    {"without", "TYPES", TOOL_CUSTOM, &args.without, .parse = parse_types,
     .help =
         "leave out the messages of these types, such as odometry,imu (types: scan, initial_pose, odometry, truth, "
         "result, gnss, imu, transform, request, reply)"},
    {"initial", "WHAT", TOOL_CHOICE, &args.initial, .choices = initial_names,
     .help = "first: begin with the first true pose of the part as initial pose, with the twist to the second one"},
    {"every", "N", TOOL_COUNT, &args.every, 1, 1e6, .help = "every Nth scan only, with the first of the part"},
    {"drop", "FROM:COUNT", TOOL_CUSTOM, args.drop, .parse = parse_drop,
     .help = "leave out COUNT scans from number FROM on, but none of their truth, odometry and IMU"},
    {"offset-pose", "X,Y,Z,YAW", TOOL_REALS, &args.offset_pose, -1e6, 1e6,
     .help = "initial poses wrong by these metres along the axes of the map and degrees about z"},
    {"wall", "FROM:DURATION", TOOL_CUSTOM, args.wall_ns, .parse = parse_wall,
     .help = "from FROM seconds after the first record, for DURATION seconds: what is to the left of the sensor "
             "becomes a wall 2.5 m beside it that moves with it"},
    {"point-times", "F,S[,N,O]", TOOL_REALS, &args.point_times, -1e12, 1e12,
     .help = "times of points become F times as much plus S seconds, and of every Nth point O seconds more: "
             "another unit, "
             "another clock, strays"},
    {"salvage", NULL, TOOL_FLAG, &args.salvage, .help = "copy the undamaged beginning of a damaged bag"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command bag_cut_command = {
    .name = "cut",
    .summary = "copies a part of a bag: records, scans, or a time; thins or disturbs it",
    .details =
        "A record is copied, byte for byte, when it is within all the limits given; --offset-pose, --wall and "
        "--point-times, for tests, change initial poses and scans. A part from the middle "
        "begins without an initial pose; --initial first adds one and leaves out those of the bag. A damaged "
        "bag is refused without --salvage.",
    TOOL_OPTIONS(options),
    TOOL_OPERANDS("BAG", 1, 1, &args.bags),
    .run = run,
};

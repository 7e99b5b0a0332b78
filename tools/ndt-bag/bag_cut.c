/** @file
 * @brief ndt-bag cut: copies a part of a bag, record by record. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bag_file.h"

static const char *const initial_names[] = {"none", "first", NULL};
static struct {
    const char *out;
    struct tool_range records, scans;
    int64_t from_ns, to_ns; /* after the first record */
    int initial;            /* index of initial_names */
    uint64_t without;       /* bit TYPE: records of this type are left out */
    int salvage, force;
    struct tool_operands bags;
} args = {.records = {1, UINT64_MAX}, .scans = {1, UINT64_MAX}, .to_ns = INT64_MAX};

struct cut {
    int64_t begin_ns;
    uint64_t scan_count;               /* scans up to and including the current record */
    struct ndt_pose_message truths[2]; /* the first ones of the part, for --initial first */
    int truth_count;
    struct ndt_error damage;
};

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
    return cursor->number >= args.records.first && cursor->number <= args.records.last &&
           scan >= args.scans.first && scan <= args.scans.last && after_ns >= args.from_ns && after_ns < args.to_ns;
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

static enum ndt_status put_initial(const struct cut *cut, struct bag_target *target, struct ndt_error *err)
{
    const struct ndt_pose_message *first = &cut->truths[0], *next = &cut->truths[1];
    const struct ndt_pose_message message =
        bag_initial_pose(first->stamp_ns, &first->pose, next->stamp_ns, cut->truth_count > 1 ? &next->pose : NULL);
    return args.initial ? bag_target_put_pose(target, NDT_MESSAGE_INITIAL_POSE, &message, err) : NDT_OK;
}

static enum ndt_status copy(struct cut *cut, struct bag_cursor *cursor, struct bag_target *target,
                            struct ndt_error *err)
{
    enum ndt_status status = put_initial(cut, target, err);
    const uint64_t before = target->records;
    while (status == NDT_OK && (status = bag_cursor_next(cursor, err)) == NDT_OK)
        if (wanted(cut, cursor))
            status = bag_target_put(target, &cursor->record, err);
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
    enum ndt_status status = bag_target_open(&target, args.out, args.force, err);
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
         "result, gnss, imu, request, reply)"},
    {"initial", "WHAT", TOOL_CHOICE, &args.initial, .choices = initial_names,
     .help = "first: begin with the first true pose of the part as initial pose, with the twist to the second one"},
    {"salvage", NULL, TOOL_FLAG, &args.salvage, .help = "copy the undamaged beginning of a damaged bag"},
    {"force", NULL, TOOL_FLAG, &args.force, .help = "overwrite the bag if it exists"},
};

const struct tool_command bag_cut_command = {
    .name = "cut",
    .summary = "copies a part of a bag: records, scans, or a time",
    .details =
        "A record is copied, byte for byte, when it is within all the limits given. A part from the middle "
        "begins without an initial pose; --initial first adds one and leaves out those of the bag. A damaged "
        "bag is refused without --salvage.",
    TOOL_OPTIONS(options),
    TOOL_OPERANDS("BAG", 1, 1, &args.bags),
    .run = run,
};

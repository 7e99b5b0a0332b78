/* ndt-bag cut: a part of a bag, its records copied as they are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bag_cursor.h"
#include "bag_target.h"
#include "bag_tool.h"

enum cut_option { OUT, RECORDS, SCANS, FROM, TO, INITIAL, SALVAGE, FORCE };

static const struct bag_option options[] = {
    [OUT] = {"out", "FILE", "the bag to write", 1},
    [RECORDS] = {"records", "A-B", "records A to B, from 1; 3- and -7 are open", 0},
    [SCANS] = {"scans", "A-B", "scans A to B, from 1, each with what came since the scan before it", 0},
    [FROM] = {"from", "S", "from S seconds after the first record", 0},
    [TO] = {"to", "S", "before S seconds after the first record", 0},
    [INITIAL] = {"initial", "first", "put the first true pose of the part, with the twist to the second, in front",
                 0},
    [SALVAGE] = {"salvage", NULL, "take what is whole of a damaged bag", 0},
    [FORCE] = {"force", NULL, "overwrite the bag if it exists", 0},
};

struct cut {
    uint64_t first_record, last_record, first_scan, last_scan;
    int64_t from_ns, to_ns; /* after the first record */
    int with_initial, salvage;
    /* while reading */
    int64_t begin_ns;
    uint64_t scans; /* begun: those before the current record, and its own */
    /* what the first pass found */
    struct ndt_pose_message truths[2];
    int truth_count;
    struct ndt_error damage;
};

static enum ndt_status parse(struct cut *cut, const struct bag_args *args, struct ndt_error *err)
{
    const char *const *values = args->values;
    enum ndt_status status = NDT_OK;
    *cut = (struct cut){.first_record = 1,
                        .last_record = UINT64_MAX,
                        .first_scan = 1,
                        .last_scan = UINT64_MAX,
                        .to_ns = INT64_MAX,
                        .with_initial = values[INITIAL] != NULL,
                        .salvage = values[SALVAGE] != NULL};
    if (values[INITIAL] && strcmp(values[INITIAL], "first") != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--initial: '%s' is not first", values[INITIAL]);
    if (values[RECORDS])
        status = bag_parse_range("records", values[RECORDS], &cut->first_record, &cut->last_record, err);
    if (status == NDT_OK && values[SCANS])
        status = bag_parse_range("scans", values[SCANS], &cut->first_scan, &cut->last_scan, err);
    if (status == NDT_OK && values[FROM])
        status = bag_parse_seconds("from", values[FROM], &cut->from_ns, err);
    if (status == NDT_OK && values[TO])
        status = bag_parse_seconds("to", values[TO], &cut->to_ns, err);
    return status;
}

/* Whether the current record belongs to the part; to be asked for every record in turn. */
static int wanted(struct cut *cut, const struct bag_cursor *cursor)
{
    const int64_t time_ns = cursor->record.receive_time_ns;
    if (cursor->number == 1) {
        cut->begin_ns = time_ns;
        cut->scans = 0;
    }
    const uint64_t scan = cut->scans + 1; /* a record belongs to the scan that it comes before */
    if (cursor->record.type == NDT_MESSAGE_SCAN)
        cut->scans++;
    int64_t after_ns;
    if (__builtin_sub_overflow(time_ns, cut->begin_ns, &after_ns))
        return 0;
    if (cut->with_initial && cursor->record.type == NDT_MESSAGE_INITIAL_POSE)
        return 0;
    return cursor->number >= cut->first_record && cursor->number <= cut->last_record && scan >= cut->first_scan &&
           scan <= cut->last_scan && after_ns >= cut->from_ns && after_ns < cut->to_ns;
}

/* NDT_OK at the end, and at damage that may be left behind. */
static enum ndt_status end_of_reading(struct cut *cut, enum ndt_status status, struct ndt_error *err)
{
    if (status == NDT_ERR_FORMAT && cut->salvage)
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
    return cut->with_initial ? bag_target_put_pose(target, NDT_MESSAGE_INITIAL_POSE, &message, err) : NDT_OK;
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
                        cursor->number, cut->scans);
    return status;
}

static enum ndt_status write_part(struct cut *cut, struct bag_cursor *cursor, const struct bag_args *args,
                                  struct ndt_error *err)
{
    struct bag_target target;
    enum ndt_status status = bag_target_open(&target, args->values[OUT], args->values[FORCE] != NULL, err);
    if (status != NDT_OK)
        return status;
    status = copy(cut, cursor, &target, err);
    const uint64_t records = target.records, bytes = target.bytes;
    status = bag_target_close(&target, status, err);
    if (status != NDT_OK)
        return status;
    printf("%s: %" PRIu64 " records, %.3f MB\n", args->values[OUT], records, (double)bytes * 1e-6);
    if (*cut->damage.text)
        fprintf(stderr, "ndt-bag: warning: left behind from here on: %s\n", cut->damage.text);
    return NDT_OK;
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    struct cut cut;
    struct bag_cursor cursor;
    enum ndt_status status = parse(&cut, args, err);
    if (status == NDT_OK)
        status = bag_cursor_open(&cursor, args->operand, err);
    if (status != NDT_OK)
        return status;
    if (cut.with_initial)
        status = find_truths(&cut, &cursor, err);
    if (status == NDT_OK)
        status = write_part(&cut, &cursor, args, err);
    bag_cursor_close(&cursor);
    return status;
}

const struct bag_command bag_cut_command = {
    .name = "cut",
    .operand = "BAG",
    .summary = "copies a part of a bag: records, scans, or a time",
    .details =
        "\n"
        "A record is copied when it is within all the limits given. Records are copied byte for byte. A part\n"
        "from the middle begins without an initial pose; --initial first gives it one, in place of its own.\n"
        "A damaged bag is refused unless --salvage.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

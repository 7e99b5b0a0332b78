/* ndt-bag info and check: what is in a bag, and whether it is whole. */
#include <inttypes.h>
#include <stdio.h>

#include "bag_summary.h"
#include "bag_tool.h"

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
    printf("%-16s%s\n", "frame", summary->frame_id);
    if (summary->scans_back)
        printf("%-16s%" PRIu64 " scans are not later than the one before\n", "order", summary->scans_back);
}

static enum ndt_status run_info(const struct bag_args *args, struct ndt_error *err)
{
    struct bag_summary summary;
    const enum ndt_status status = bag_summary_read(&summary, args->operand, err);
    if (status != NDT_OK)
        return status;
    printf("%-16s%s\n", "bag", args->operand);
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

static enum ndt_status run_check(const struct bag_args *args, struct ndt_error *err)
{
    struct bag_summary summary;
    const enum ndt_status status = bag_summary_read(&summary, args->operand, err);
    if (status != NDT_OK)
        return status;
    if (summary.unreadable > 1)
        fprintf(stderr, "ndt-bag: %s: %" PRIu64 " records cannot be read, the first:\n", args->operand,
                summary.unreadable);
    if (summary.unreadable && *summary.damage.text)
        fprintf(stderr, "ndt-bag: %s\n", summary.first_unreadable.text);
    else if (summary.unreadable)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s", summary.first_unreadable.text);
    if (*summary.damage.text)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s", summary.damage.text);
    printf("%s: whole: %" PRIu64 " records, %" PRIu64 " scans\n", args->operand, summary.records,
           summary.by_type[NDT_MESSAGE_SCAN]);
    return NDT_OK;
}

const struct bag_command bag_info_command = {
    .name = "info",
    .operand = "BAG",
    .summary = "says what is in a bag",
    .details = "\nA damaged bag is described up to the damage.\n",
    .run = run_info,
};

const struct bag_command bag_check_command = {
    .name = "check",
    .operand = "BAG",
    .summary = "reads every record and decodes every message",
    .details = "\nExit code 3, with record, byte and reason, when something is damaged.\n",
    .run = run_check,
};

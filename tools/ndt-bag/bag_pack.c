/* ndt-bag pack: a folder of scans, a list of stamps and trajectories become one bag. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bag_drive.h"
#include "bag_target.h"
#include "bag_tool.h"
#include "ndt_io/cloud_file.h"

enum pack_option { SCANS, TIMES, OUT, TRUTH, ODOMETRY, FORMAT, INITIAL, EVERY, OFFSET, FORCE };

static const struct bag_option options[] = {
    [SCANS] = {"scans", "DIR", "folder of .pcd, .ply or KITTI .bin scans", 1},
    [TIMES] = {"times", "FILE", "stamps of the scans in seconds, one per line", 1},
    [OUT] = {"out", "FILE", "the bag to write", 1},
    [TRUTH] = {"truth", "FILE", "true poses T_map_sensor", 0},
    [ODOMETRY] = {"odometry", "FILE", "poses T_odom_sensor", 0},
    [FORMAT] = {"format", "NAME", "of truth and odometry: kitti (12 numbers per line) or tum (tum)", 0},
    [INITIAL] = {"initial", "WHAT",
                 "first: the first true pose, with the twist to the second; or x,y,z,qx,qy,qz,qw", 0},
    [EVERY] = {"every", "N", "take the scans whose number n has n % N == K (1)", 0},
    [OFFSET] = {"offset", "K", "see --every (0)", 0},
    [FORCE] = {"force", NULL, "overwrite the bag if it exists", 0},
};

struct pack {
    struct bag_drive_files files;
    struct bag_drive drive;
    struct bag_target target;
    int has_initial, initial_from_truth;
    struct ndt_pose initial;
    size_t odometry_next; /* the first odometry not written yet */
    size_t truths, odometries, steps_back;
    uint64_t points;
};

static enum ndt_status parse_format(const char *text, enum ndt_trajectory_format *out, struct ndt_error *err)
{
    if (!text || strcmp(text, "tum") == 0)
        *out = NDT_TUM;
    else if (strcmp(text, "kitti") == 0)
        *out = NDT_KITTI;
    else
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--format: '%s' is neither kitti nor tum", text);
    return NDT_OK;
}

static enum ndt_status parse_initial(struct pack *pack, const char *text, struct ndt_error *err)
{
    if (!text)
        return NDT_OK;
    pack->has_initial = 1;
    pack->initial_from_truth = strcmp(text, "first") == 0;
    if (pack->initial_from_truth && !pack->files.truth)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--initial first needs --truth");
    return pack->initial_from_truth ? NDT_OK : bag_parse_pose("initial", text, &pack->initial, err);
}

static enum ndt_status parse(struct pack *pack, const struct bag_args *args, struct ndt_error *err)
{
    pack->files = (struct bag_drive_files){.scans = args->values[SCANS],
                                           .times = args->values[TIMES],
                                           .truth = args->values[TRUTH],
                                           .odometry = args->values[ODOMETRY],
                                           .every = 1};
    enum ndt_status status = parse_format(args->values[FORMAT], &pack->files.format, err);
    if (status == NDT_OK && args->values[EVERY])
        status = bag_parse_count("every", args->values[EVERY], 1, UINT32_MAX, &pack->files.every, err);
    if (status == NDT_OK && args->values[OFFSET])
        status =
            bag_parse_count("offset", args->values[OFFSET], 0, pack->files.every - 1, &pack->files.offset, err);
    return status == NDT_OK ? parse_initial(pack, args->values[INITIAL], err) : status;
}

/* The first scan must have a true pose; the twist leads to the next scan that has one. */
static enum ndt_status initial_from_truth(const struct bag_drive *drive, struct ndt_pose_message *out,
                                          struct ndt_error *err)
{
    const struct bag_scan_file *first = &drive->scans[0], *next = NULL;
    struct ndt_pose pose, next_pose;
    if (!bag_drive_truth(drive, first, &pose))
        return ndt_fail(err, NDT_ERR_FORMAT, "--initial first: %s, the first scan, has no true pose", first->path);
    for (size_t i = 1; i < drive->scan_count && !next; i++)
        if (bag_drive_truth(drive, &drive->scans[i], &next_pose))
            next = &drive->scans[i];
    *out = bag_initial_pose(first->stamp_ns, &pose, next ? next->stamp_ns : 0, next ? &next_pose : NULL);
    return NDT_OK;
}

static enum ndt_status put_initial(struct pack *pack, struct ndt_error *err)
{
    struct ndt_pose_message message = bag_initial_pose(pack->drive.scans[0].stamp_ns, &pack->initial, 0, NULL);
    if (!pack->has_initial)
        return NDT_OK;
    if (pack->initial_from_truth) {
        const enum ndt_status status = initial_from_truth(&pack->drive, &message, err);
        if (status != NDT_OK)
            return status;
    }
    return bag_target_put_pose(&pack->target, NDT_MESSAGE_INITIAL_POSE, &message, err);
}

static enum ndt_status put_odometry(struct pack *pack, int64_t until_ns, struct ndt_error *err)
{
    const struct ndt_trajectory *odometry = &pack->drive.odometry;
    enum ndt_status status = NDT_OK;
    for (; status == NDT_OK && pack->odometry_next < odometry->count; pack->odometry_next++) {
        const struct ndt_stamped_pose *at = &odometry->poses[pack->odometry_next];
        if (at->stamp_ns > until_ns)
            break;
        const struct ndt_pose_message message = {
            .stamp_ns = at->stamp_ns, .frame_id = "odom", .has_pose = 1, .pose = at->T_map_sensor};
        status = bag_target_put_pose(&pack->target, NDT_MESSAGE_ODOMETRY, &message, err);
        pack->odometries++;
    }
    return status;
}

static enum ndt_status put_truth(struct pack *pack, const struct bag_scan_file *scan, struct ndt_error *err)
{
    struct ndt_pose_message message = {.stamp_ns = scan->stamp_ns, .frame_id = "map", .has_pose = 1};
    if (!bag_drive_truth(&pack->drive, scan, &message.pose))
        return NDT_OK;
    pack->truths++;
    return bag_target_put_pose(&pack->target, NDT_MESSAGE_TRUTH, &message, err);
}

/* A fresh cloud every time: a reused one would keep fields that this file does not have. */
static enum ndt_status put_scan(struct pack *pack, const struct bag_scan_file *scan, struct ndt_error *err)
{
    const struct ndt_scan_message message = {.seq = scan->number, .stamp_ns = scan->stamp_ns, .frame_id = "lidar"};
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status = ndt_cloud_read(&cloud, scan->path, err);
    if (status == NDT_OK) {
        pack->points += cloud.count;
        status = bag_target_put_scan(&pack->target, &message, &cloud, err);
        if (status == NDT_ERR_LIMIT) /* too large for a message; what else can go wrong names the bag */
            (void)ndt_fail_prefix(err, status, "%s", scan->path);
    }
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status put_all(struct pack *pack, struct ndt_error *err)
{
    const struct bag_drive *drive = &pack->drive;
    enum ndt_status status = put_initial(pack, err);
    for (size_t i = 0; status == NDT_OK && i < drive->scan_count; i++) {
        const struct bag_scan_file *scan = &drive->scans[i];
        pack->steps_back += i > 0 && scan->stamp_ns <= scan[-1].stamp_ns ? 1 : 0;
        status = put_odometry(pack, scan->stamp_ns, err);
        if (status == NDT_OK)
            status = put_truth(pack, scan, err);
        if (status == NDT_OK)
            status = put_scan(pack, scan, err);
    }
    return status;
}

static void report(const struct pack *pack, const char *path, uint64_t records)
{
    const struct bag_drive *drive = &pack->drive;
    const struct bag_scan_file *first = &drive->scans[0], *last = &drive->scans[drive->scan_count - 1];
    printf("%s: %" PRIu64 " records: %zu scans with %" PRIu64 " points, %zu true poses, %zu odometry, %s initial "
           "pose; %.3f s\n",
           path, records, drive->scan_count, pack->points, pack->truths, pack->odometries,
           pack->has_initial ? "an" : "no", ((double)last->stamp_ns - (double)first->stamp_ns) * 1e-9);
    if (pack->files.truth && pack->truths < drive->scan_count)
        fprintf(stderr, "ndt-bag: warning: %zu scans have no true pose near their stamp\n",
                drive->scan_count - pack->truths);
    if (pack->steps_back)
        fprintf(stderr, "ndt-bag: warning: %zu scans are not later than the scan before them\n", pack->steps_back);
}

static enum ndt_status run(const struct bag_args *args, struct ndt_error *err)
{
    struct pack pack = {0};
    enum ndt_status status = parse(&pack, args, err);
    if (status == NDT_OK)
        status = bag_drive_open(&pack.drive, &pack.files, err);
    if (status != NDT_OK)
        return status;
    status = bag_target_open(&pack.target, args->values[OUT], args->values[FORCE] != NULL, err);
    if (status == NDT_OK) {
        status = put_all(&pack, err);
        const uint64_t records = pack.target.records;
        status = bag_target_close(&pack.target, status, err);
        if (status == NDT_OK)
            report(&pack, args->values[OUT], records);
    }
    bag_drive_close(&pack.drive);
    return status;
}

const struct bag_command bag_pack_command = {
    .name = "pack",
    .summary = "makes a bag from a folder of scans, their stamps and trajectories",
    .details =
        "\n"
        "The last number in the name of a scan is its line, from 0, in the files of times and of KITTI poses\n"
        "(000007.pcd: line 7), and its seq in the bag. TUM poses belong to a scan by their stamps: truth is\n"
        "interpolated between the poses before and after the scan when these are at most 1.5 scan periods\n"
        "apart, and otherwise taken from a pose within 1 ms; a scan without one has no truth in the bag.\n"
        "Order: the initial pose, then for every scan the odometry up to it, its truth, the scan. Receive\n"
        "times are the stamps.\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = run,
};

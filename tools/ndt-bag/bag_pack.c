/** @file
 * @brief ndt-bag pack: makes one bag from a folder of scans, a list of stamps and trajectories. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bag_calib.h"
#include "bag_file.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/trajectory.h"
#include "output_guard.h"

/* ---- the files of a recorded drive ---- */

enum { FORMAT_TUM, FORMAT_KITTI };
static const char *const format_names[] = {[FORMAT_TUM] = "tum", [FORMAT_KITTI] = "kitti", NULL};

static struct {
    const char *scans, *times, *out;
    const char *truth, *odometry, *calib; /* may be NULL */
    int format;
    uint64_t every, offset; /* scans whose number n has n % every == offset are taken */
    int has_initial, initial_from_truth, force;
    struct ndt_pose initial;
} args = {.every = 1};

struct bag_scan_file {
    char *path;
    uint64_t number; /* number in its name: the line, from 0, in the files of times and KITTI poses */
    int64_t stamp_ns;
};

struct bag_drive {
    enum ndt_trajectory_format format;
    struct bag_scan_file *scans; /* the selected ones, sorted by number */
    size_t scan_count;
    int64_t *times_ns;
    size_t time_count;
    int64_t period_ns;                     /* median distance of the stamps */
    struct ndt_trajectory truth, odometry; /* may be empty; KITTI poses receive stamps too */
};

static int is_cloud_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name && (!strcasecmp(dot, ".pcd") || !strcasecmp(dot, ".ply") || !strcasecmp(dot, ".bin"));
}

/* The last run of digits before the extension: 7 in "000007.pcd" and in "drive5_scan0007.pcd". */
static int number_in_name(const char *name, uint64_t *number)
{
    const char *end = strrchr(name, '.');
    while (end > name && !isdigit((unsigned char)end[-1]))
        end--;
    const char *begin = end;
    while (begin > name && isdigit((unsigned char)begin[-1]))
        begin--;
    if (begin == end || end - begin > 19)
        return 0;
    *number = strtoull(begin, NULL, 10);
    return 1;
}

static enum ndt_status add_scan(struct bag_drive *drive, const char *folder, const char *name, uint64_t number,
                                struct ndt_error *err)
{
    const size_t count = drive->scan_count;
    if ((count & (count - 1)) == 0) { /* grow to the next power of two */
        struct bag_scan_file *grown = realloc(drive->scans, (count ? 2 * count : 1) * sizeof(*grown));
        if (!grown)
            return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for its list of scans", folder);
        drive->scans = grown;
    }
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for its list of scans", folder);
    snprintf(path, size, "%s/%s", folder, name);
    drive->scans[drive->scan_count++] = (struct bag_scan_file){.path = path, .number = number};
    return NDT_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t na = ((const struct bag_scan_file *)a)->number, nb = ((const struct bag_scan_file *)b)->number;
    return na < nb ? -1 : na > nb;
}

static enum ndt_status check_scans(struct bag_drive *drive, struct ndt_error *err)
{
    if (drive->scan_count == 0)
        return ndt_fail(err, NDT_ERR_IO,
                        "%s: no scan (.pcd, .ply, .bin) with a number n for which n %% %" PRIu64 " is %" PRIu64,
                        args.scans, args.every, args.offset);
    qsort(drive->scans, drive->scan_count, sizeof(*drive->scans), by_number);
    for (size_t i = 1; i < drive->scan_count; i++)
        if (drive->scans[i].number == drive->scans[i - 1].number)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s and %s have the same number", drive->scans[i - 1].path,
                            drive->scans[i].path);
    return NDT_OK;
}

static enum ndt_status list_scans(struct bag_drive *drive, struct ndt_error *err)
{
    DIR *folder = opendir(args.scans);
    if (!folder)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot list it: %s", args.scans, strerror(errno));
    enum ndt_status status = NDT_OK;
    const struct dirent *entry;
    while (status == NDT_OK && (entry = readdir(folder)) != NULL) {
        uint64_t number;
        if (!is_cloud_name(entry->d_name))
            continue;
        if (!number_in_name(entry->d_name, &number))
            status = ndt_fail(err, NDT_ERR_FORMAT, "%s/%s: no number in its name, which selects its line",
                              args.scans, entry->d_name);
        else if (number % args.every == args.offset)
            status = add_scan(drive, args.scans, entry->d_name, number, err);
    }
    closedir(folder);
    return status == NDT_OK ? check_scans(drive, err) : status;
}

static int by_size(const void *a, const void *b)
{
    const int64_t va = *(const int64_t *)a, vb = *(const int64_t *)b;
    return va < vb ? -1 : va > vb;
}

/* The median of the steps; 100 ms when it is not between 0 and one hour. */
static enum ndt_status find_period(struct bag_drive *drive, struct ndt_error *err)
{
    static const int64_t COMMON_NS = 100000000, LONGEST_NS = INT64_C(3600000000000);
    drive->period_ns = COMMON_NS;
    if (drive->time_count < 2)
        return NDT_OK;
    const size_t count = drive->time_count - 1;
    int64_t *steps = malloc(count * sizeof(*steps));
    if (!steps)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu stamps", count);
    for (size_t i = 0; i < count; i++)
        steps[i] = (int64_t)((uint64_t)drive->times_ns[i + 1] - (uint64_t)drive->times_ns[i]);
    qsort(steps, count, sizeof(*steps), by_size);
    if (steps[count / 2] > 0 && steps[count / 2] <= LONGEST_NS)
        drive->period_ns = steps[count / 2];
    free(steps);
    return NDT_OK;
}

static enum ndt_status read_times(struct bag_drive *drive, struct ndt_error *err)
{
    const enum ndt_status status = ndt_times_read(&drive->times_ns, &drive->time_count, args.times, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < drive->scan_count; i++) {
        struct bag_scan_file *scan = &drive->scans[i];
        if (scan->number >= drive->time_count)
            return ndt_fail(err, NDT_ERR_FORMAT,
                            "%s: its stamp is number %" PRIu64 " (from 0) of %s, which has %zu", scan->path,
                            scan->number, args.times, drive->time_count);
        scan->stamp_ns = drive->times_ns[scan->number];
    }
    return find_period(drive, err);
}

static enum ndt_status check_stamps(const struct ndt_trajectory *trajectory, const char *path,
                                    struct ndt_error *err)
{
    for (size_t i = 1; i < trajectory->count; i++)
        if (trajectory->poses[i].stamp_ns <= trajectory->poses[i - 1].stamp_ns)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: the stamp of pose %zu (from 1) is not after that of pose %zu",
                            path, i + 1, i);
    return NDT_OK;
}

/* KITTI's poses have no stamps; line n of the poses belongs to line n of the times. */
static enum ndt_status read_poses(const struct bag_drive *drive, const char *path,
                                  struct ndt_trajectory *trajectory, struct ndt_error *err)
{
    struct bag_calib calib;
    enum ndt_status status = ndt_trajectory_read(trajectory, path, drive->format, err);
    if (status == NDT_OK && args.calib)
        status = bag_calib_read(&calib, args.calib, err);
    if (status == NDT_OK && args.calib)
        bag_calib_apply(&calib, trajectory);
    if (status != NDT_OK || drive->format == NDT_TUM)
        return status == NDT_OK ? check_stamps(trajectory, path, err) : status;
    if (trajectory->count > drive->time_count)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: has %zu poses, but there are only %zu times", path,
                        trajectory->count, drive->time_count);
    for (size_t i = 0; i < trajectory->count; i++)
        trajectory->poses[i].stamp_ns = drive->times_ns[i];
    return NDT_OK;
}

/* Index of the first pose at or after the stamp; the count if there is none. */
static size_t first_from(const struct ndt_trajectory *trajectory, int64_t stamp_ns)
{
    size_t low = 0, high = trajectory->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trajectory->poses[middle].stamp_ns < stamp_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Time from a to b; it saturates where the difference overflows. */
static int64_t distance_ns(int64_t a, int64_t b)
{
    int64_t distance;
    return __builtin_sub_overflow(b, a, &distance) ? INT64_MAX : distance;
}

static int pose_at(const struct ndt_trajectory *trajectory, int64_t stamp_ns, int64_t max_gap_ns,
                   struct ndt_pose *out)
{
    static const int64_t NEAR_NS = 1000000;
    const size_t i = first_from(trajectory, stamp_ns);
    const struct ndt_stamped_pose *after = i < trajectory->count ? &trajectory->poses[i] : NULL;
    const struct ndt_stamped_pose *before = i > 0 ? &trajectory->poses[i - 1] : NULL;
    const int64_t to_after = after ? distance_ns(stamp_ns, after->stamp_ns) : INT64_MAX;
    const int64_t to_before = before ? distance_ns(before->stamp_ns, stamp_ns) : INT64_MAX;
    if (to_after == 0) {
        *out = after->T_map_sensor;
        return 1;
    }
    if (after && before && to_before <= max_gap_ns - to_after) {
        const double part = (double)to_before / (double)(after->stamp_ns - before->stamp_ns);
        *out = ndt_pose_interpolate(&before->T_map_sensor, &after->T_map_sensor, part);
        return 1;
    }
    if (to_after > NEAR_NS && to_before > NEAR_NS)
        return 0;
    *out = to_after <= to_before ? after->T_map_sensor : before->T_map_sensor;
    return 1;
}

/* The true pose of a scan; 0 if it has none. KITTI: the line of the scan's number. TUM: by stamp, on the screw
 * motion between the poses before and after it, if these are at most 1.5 periods apart; else the pose within 1 ms.
 */
static int truth_of(const struct bag_drive *drive, const struct bag_scan_file *scan, struct ndt_pose *out)
{
    if (drive->format == NDT_TUM)
        return pose_at(&drive->truth, scan->stamp_ns, drive->period_ns + drive->period_ns / 2, out);
    if (scan->number >= drive->truth.count)
        return 0;
    *out = drive->truth.poses[scan->number].T_map_sensor;
    return 1;
}

static enum ndt_status read_truth(struct bag_drive *drive, struct ndt_error *err)
{
    const enum ndt_status status = read_poses(drive, args.truth, &drive->truth, err);
    if (status != NDT_OK)
        return status;
    size_t found = 0;
    for (size_t i = 0; i < drive->scan_count; i++) {
        struct ndt_pose pose;
        const struct bag_scan_file *scan = &drive->scans[i];
        if (drive->format == NDT_KITTI && scan->number >= drive->truth.count)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: its pose is number %" PRIu64 " (from 0) of %s, which has %zu",
                            scan->path, scan->number, args.truth, drive->truth.count);
        found += truth_of(drive, scan, &pose) ? 1 : 0;
    }
    if (found == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: no pose is near the stamp of any scan (%s)", args.truth,
                        args.times);
    return NDT_OK;
}

static void close_drive(struct bag_drive *drive)
{
    for (size_t i = 0; i < drive->scan_count; i++)
        free(drive->scans[i].path);
    free(drive->scans);
    free(drive->times_ns);
    ndt_trajectory_free(&drive->truth);
    ndt_trajectory_free(&drive->odometry);
    *drive = (struct bag_drive){0};
}

/* Reads everything but the points. Errors name the file and the missing line. */
static enum ndt_status open_drive(struct bag_drive *drive, struct ndt_error *err)
{
    *drive = (struct bag_drive){.format = args.format == FORMAT_KITTI ? NDT_KITTI : NDT_TUM};
    enum ndt_status status = list_scans(drive, err);
    if (status == NDT_OK)
        status = read_times(drive, err);
    if (status == NDT_OK && args.truth)
        status = read_truth(drive, err);
    if (status == NDT_OK && args.odometry)
        status = read_poses(drive, args.odometry, &drive->odometry, err);
    if (status != NDT_OK)
        close_drive(drive);
    return status;
}

/* ---- the command ---- */

struct pack {
    struct bag_drive drive;
    struct bag_target target;
    size_t odometry_next; /* the first odometry not written yet */
    size_t truths, odometries, steps_back;
    uint64_t points;
};

/* The first scan must have a true pose; the twist leads to the next scan that has one. */
static enum ndt_status initial_from_truth(const struct bag_drive *drive, struct ndt_pose_message *out,
                                          struct ndt_error *err)
{
    const struct bag_scan_file *first = drive->scans, *next = NULL;
    struct ndt_pose pose, next_pose;
    if (!first)
        return ndt_fail(err, NDT_ERR_FORMAT, "--initial first: there is no scan");
    if (!truth_of(drive, first, &pose))
        return ndt_fail(err, NDT_ERR_FORMAT, "--initial first: %s, the first scan, has no true pose", first->path);
    for (size_t i = 1; i < drive->scan_count && !next; i++)
        if (truth_of(drive, &drive->scans[i], &next_pose))
            next = &drive->scans[i];
    *out = bag_initial_pose(first->stamp_ns, &pose, next ? next->stamp_ns : 0, next ? &next_pose : NULL);
    return NDT_OK;
}

static enum ndt_status put_initial(struct pack *pack, struct ndt_error *err)
{
    struct ndt_pose_message message = bag_initial_pose(pack->drive.scans[0].stamp_ns, &args.initial, 0, NULL);
    if (!args.has_initial)
        return NDT_OK;
    if (args.initial_from_truth) {
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
    if (!truth_of(&pack->drive, scan, &message.pose))
        return NDT_OK;
    pack->truths++;
    return bag_target_put_pose(&pack->target, NDT_MESSAGE_TRUTH, &message, err);
}

/* A new cloud for every file: a reused one keeps the fields of earlier files. */
static enum ndt_status put_scan(struct pack *pack, const struct bag_scan_file *scan, struct ndt_error *err)
{
    const struct ndt_scan_message message = {.seq = scan->number, .stamp_ns = scan->stamp_ns, .frame_id = "lidar"};
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    enum ndt_status status = ndt_cloud_read(&cloud, scan->path, err);
    if (status == NDT_OK) {
        pack->points += cloud.count;
        status = bag_target_put_scan(&pack->target, &message, &cloud, err);
        if (status == NDT_ERR_LIMIT) /* too large for a message; other errors name the bag already */
            (void)ndt_fail_prefix(err, status, "%s", scan->path);
    }
    ndt_cloud_free(&cloud);
    return status;
}

static enum ndt_status put_all(struct pack *pack, struct ndt_error *err)
{
    const struct bag_drive *drive = &pack->drive;
    struct ndtd_progress_line line;
    enum ndt_status status = put_initial(pack, err);
    ndtd_progress_line_begin(&line, args.out, NULL);
    for (size_t i = 0; status == NDT_OK && i < drive->scan_count; i++) {
        const struct bag_scan_file *scan = &drive->scans[i];
        pack->steps_back += i > 0 && scan->stamp_ns <= scan[-1].stamp_ns ? 1 : 0;
        status = put_odometry(pack, scan->stamp_ns, err);
        if (status == NDT_OK)
            status = put_truth(pack, scan, err);
        if (status == NDT_OK)
            status = put_scan(pack, scan, err);
        /* the estimate assumes that the other scans are as large as those so far */
        ndtd_progress_line_show(&line, pack->target.bytes, pack->target.bytes / (i + 1) * drive->scan_count);
    }
    ndtd_progress_line_end(&line);
    return status;
}

static void report(const struct pack *pack, const char *path, uint64_t records)
{
    const struct bag_drive *drive = &pack->drive;
    const struct bag_scan_file *first = &drive->scans[0], *last = &drive->scans[drive->scan_count - 1];
    printf("%s: %" PRIu64 " records: %zu scans with %" PRIu64 " points, %zu true poses, %zu odometry, %s initial "
           "pose; %.3f s\n",
           path, records, drive->scan_count, pack->points, pack->truths, pack->odometries,
           args.has_initial ? "an" : "no", ((double)last->stamp_ns - (double)first->stamp_ns) * 1e-9);
    if (args.truth && pack->truths < drive->scan_count)
        fprintf(stderr, "ndt-bag: warning: %zu scans have no true pose near their stamp\n",
                drive->scan_count - pack->truths);
    if (pack->steps_back)
        fprintf(stderr, "ndt-bag: warning: %zu scans are not later than the scan before them\n", pack->steps_back);
}

static enum ndt_status run(struct ndt_error *err)
{
    struct pack pack = {0};
    if (args.initial_from_truth && !args.truth)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--initial first needs --truth");
    if (args.calib && !args.truth && !args.odometry)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--calib needs --truth or --odometry");
    if (args.offset >= args.every)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "--offset: '%" PRIu64 "' is not a whole number from 0 to %" PRIu64 " (--every less 1)",
                        args.offset, args.every - 1);
    enum ndt_status status = open_drive(&pack.drive, err);
    if (status != NDT_OK)
        return status;
    status = bag_target_open(&pack.target, args.out, args.force, NULL, err);
    if (status == NDT_OK) {
        status = put_all(&pack, err);
        const uint64_t records = pack.target.records;
        status = bag_target_close(&pack.target, status, err);
        if (status == NDT_OK)
            report(&pack, args.out, records);
    }
    close_drive(&pack.drive);
    return status;
}

static enum ndt_status parse_initial(void *value, const char *text, struct ndt_error *err)
{
    args.has_initial = 1;
    args.initial_from_truth = strcmp(text, "first") == 0;
    return args.initial_from_truth ? NDT_OK : tool_parse_pose(text, value, err);
}

static const struct tool_option options[] = {
    {"scans", "DIR", TOOL_TEXT, &args.scans, .required = 1, .help = "folder of .pcd, .ply or KITTI .bin scans"},
    {"times", "FILE", TOOL_TEXT, &args.times, .required = 1,
     .help = "stamps of the scans in seconds, one per line"},
    {"out", "FILE", TOOL_TEXT, &args.out, .required = 1, .help = "the bag to write"},
    {"truth", "FILE", TOOL_TEXT, &args.truth, .help = "true poses T_map_sensor"},
    {"odometry", "FILE", TOOL_TEXT, &args.odometry, .help = "poses T_odom_sensor"},
    {"calib", "FILE", TOOL_TEXT, &args.calib,
     .help = "of KITTI: truth and odometry are poses of a camera (calib.txt, calib_velo_to_cam.txt) or of the IMU "
             "(calib_imu_to_velo.txt) and become those of the LiDAR"},
    {"format", "NAME", TOOL_CHOICE, &args.format, .choices = format_names,
     .help = "format of truth and odometry: kitti (12 numbers per line) or tum"},
    {"initial", "WHAT", TOOL_CUSTOM, &args.initial, .parse = parse_initial,
     .help = "initial pose: x,y,z,qx,qy,qz,qw or x,y,z,yaw (m, deg); or first: the first true pose, with the twist "
             "to the second one"},
    {"every", "N", TOOL_COUNT, &args.every, 1, UINT32_MAX, .help = "take the scans whose number n has n % N == K"},
    {"offset", "K", TOOL_COUNT, &args.offset, 0, UINT32_MAX, .help = "K of --every"},
    TOOL_FORCE_OPTION(args.force),
};

const struct tool_command bag_pack_command = {
    .name = "pack",
    .summary = "makes a bag from a folder of scans, their stamps and trajectories",
    .details =
        "The last number in the name of a scan is its line, from 0, in the files of times and of KITTI poses "
        "(000007.pcd: line 7), and its seq in the bag. TUM poses belong to a scan by their stamps: truth is "
        "interpolated between the poses before and after the scan when these are at most 1.5 scan periods apart, "
        "and otherwise taken from a pose within 1 ms; a scan without one has no truth in the bag.\n\n"
        "With --calib the camera's axes (z forward) are exchanged for the LiDAR's, also those of the map.\n\n"
        "Order: the initial pose, then for every scan the odometry up to it, its truth, the scan. Receive times "
        "are the stamps.",
    TOOL_OPTIONS(options),
    .run = run,
};

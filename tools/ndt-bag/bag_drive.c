#include "bag_drive.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    if ((count & (count - 1)) == 0) { /* room for the next power of two */
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

static enum ndt_status check_scans(struct bag_drive *drive, const struct bag_drive_files *files,
                                   struct ndt_error *err)
{
    if (drive->scan_count == 0)
        return ndt_fail(err, NDT_ERR_IO,
                        "%s: no scan (.pcd, .ply, .bin) with a number n for which n %% %" PRIu64 " is %" PRIu64,
                        files->scans, files->every, files->offset);
    qsort(drive->scans, drive->scan_count, sizeof(*drive->scans), by_number);
    for (size_t i = 1; i < drive->scan_count; i++)
        if (drive->scans[i].number == drive->scans[i - 1].number)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s and %s have the same number", drive->scans[i - 1].path,
                            drive->scans[i].path);
    return NDT_OK;
}

static enum ndt_status list_scans(struct bag_drive *drive, const struct bag_drive_files *files,
                                  struct ndt_error *err)
{
    DIR *folder = opendir(files->scans);
    if (!folder)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot list it: %s", files->scans, strerror(errno));
    enum ndt_status status = NDT_OK;
    const struct dirent *entry;
    while (status == NDT_OK && (entry = readdir(folder)) != NULL) {
        uint64_t number;
        if (!is_cloud_name(entry->d_name))
            continue;
        if (!number_in_name(entry->d_name, &number))
            status = ndt_fail(err, NDT_ERR_FORMAT, "%s/%s: no number in its name that says which line is its own",
                              files->scans, entry->d_name);
        else if (number % files->every == files->offset)
            status = add_scan(drive, files->scans, entry->d_name, number, err);
    }
    closedir(folder);
    return status == NDT_OK ? check_scans(drive, files, err) : status;
}

static int by_size(const void *a, const void *b)
{
    const int64_t va = *(const int64_t *)a, vb = *(const int64_t *)b;
    return va < vb ? -1 : va > vb;
}

/* The median of the steps; that of a common LiDAR when they make no sense. */
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

static enum ndt_status read_times(struct bag_drive *drive, const struct bag_drive_files *files,
                                  struct ndt_error *err)
{
    const enum ndt_status status = ndt_times_read(&drive->times_ns, &drive->time_count, files->times, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < drive->scan_count; i++) {
        struct bag_scan_file *scan = &drive->scans[i];
        if (scan->number >= drive->time_count)
            return ndt_fail(err, NDT_ERR_FORMAT,
                            "%s: its stamp is number %" PRIu64 " (from 0) of %s, which has %zu", scan->path,
                            scan->number, files->times, drive->time_count);
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
    enum ndt_status status = ndt_trajectory_read(trajectory, path, drive->format, err);
    if (status != NDT_OK || drive->format == NDT_TUM)
        return status == NDT_OK ? check_stamps(trajectory, path, err) : status;
    if (trajectory->count > drive->time_count)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: has %zu poses, but there are only %zu times", path,
                        trajectory->count, drive->time_count);
    for (size_t i = 0; i < trajectory->count; i++)
        trajectory->poses[i].stamp_ns = drive->times_ns[i];
    return NDT_OK;
}

static enum ndt_status read_truth(struct bag_drive *drive, const struct bag_drive_files *files,
                                  struct ndt_error *err)
{
    const enum ndt_status status = read_poses(drive, files->truth, &drive->truth, err);
    if (status != NDT_OK)
        return status;
    size_t found = 0;
    for (size_t i = 0; i < drive->scan_count; i++) {
        struct ndt_pose pose;
        const struct bag_scan_file *scan = &drive->scans[i];
        if (drive->format == NDT_KITTI && scan->number >= drive->truth.count)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: its pose is number %" PRIu64 " (from 0) of %s, which has %zu",
                            scan->path, scan->number, files->truth, drive->truth.count);
        found += bag_drive_truth(drive, scan, &pose) ? 1 : 0;
    }
    if (found == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: no pose is near the stamp of any scan (%s)", files->truth,
                        files->times);
    return NDT_OK;
}

enum ndt_status bag_drive_open(struct bag_drive *drive, const struct bag_drive_files *files, struct ndt_error *err)
{
    *drive = (struct bag_drive){.format = files->format};
    enum ndt_status status = list_scans(drive, files, err);
    if (status == NDT_OK)
        status = read_times(drive, files, err);
    if (status == NDT_OK && files->truth)
        status = read_truth(drive, files, err);
    if (status == NDT_OK && files->odometry)
        status = read_poses(drive, files->odometry, &drive->odometry, err);
    if (status != NDT_OK)
        bag_drive_close(drive);
    return status;
}

void bag_drive_close(struct bag_drive *drive)
{
    for (size_t i = 0; i < drive->scan_count; i++)
        free(drive->scans[i].path);
    free(drive->scans);
    free(drive->times_ns);
    ndt_trajectory_free(&drive->truth);
    ndt_trajectory_free(&drive->odometry);
    *drive = (struct bag_drive){0};
}

/* The first pose that is not before the stamp; the count when there is none. */
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

/* From a to b, for stamps that come in any order and size. */
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

int bag_drive_truth(const struct bag_drive *drive, const struct bag_scan_file *scan, struct ndt_pose *out)
{
    if (drive->format == NDT_TUM)
        return pose_at(&drive->truth, scan->stamp_ns, drive->period_ns + drive->period_ns / 2, out);
    if (scan->number >= drive->truth.count)
        return 0;
    *out = drive->truth.poses[scan->number].T_map_sensor;
    return 1;
}

/* The files of a recorded drive: a folder of scans, a list of stamps, and poses that belong to them. */
#ifndef BAG_DRIVE_H
#define BAG_DRIVE_H

#include "ndt_io/trajectory.h"

struct bag_drive_files {
    const char *scans, *times;
    const char *truth, *odometry; /* or NULL */
    enum ndt_trajectory_format format;
    uint64_t every, offset; /* scans whose number n has n % every == offset are taken */
};

struct bag_scan_file {
    char *path;
    uint64_t number; /* in its name: the line, from 0, in the files of times and KITTI poses */
    int64_t stamp_ns;
};

struct bag_drive {
    enum ndt_trajectory_format format;
    struct bag_scan_file *scans; /* those taken, by number */
    size_t scan_count;
    int64_t *times_ns;
    size_t time_count;
    int64_t period_ns;                     /* median distance of the stamps */
    struct ndt_trajectory truth, odometry; /* empty when there is none; stamps filled in for KITTI's too */
};

/* Reads all but the points. Errors name the file and the line that is missing. */
NDT_MUST_CHECK enum ndt_status bag_drive_open(struct bag_drive *drive, const struct bag_drive_files *files,
                                              struct ndt_error *err);
void bag_drive_close(struct bag_drive *drive);

/* The true pose of a scan; 0 when there is none. KITTI: the line of the scan's number. TUM: by stamp, on the screw
 * motion between the poses before and after it, if these are at most 1.5 periods apart; else the pose within 1 ms.
 */
int bag_drive_truth(const struct bag_drive *drive, const struct bag_scan_file *scan, struct ndt_pose *out);

#endif

/* What a simulation leaves in its folder: map.pcd and drive.bag. Both appear whole or not at all.
 *
 * The bag holds, by receive time: an initial pose with the twist of the first scan; odometry at 50 Hz when asked
 * for; for every scan the exact truth at its stamp, then the scan itself, both received when the sweep is over. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include <signal.h>

#include "sim_lidar.h"

struct sim_recording {
    const char *map_path, *bag_path;
    const struct sim_drive *drive; /* borrowed, as are caster and lidar */
    struct sim_caster *caster;
    const struct sim_lidar *lidar;
    struct sim_survey survey;
    double origin_m[3]; /* of the local frame in the map frame, added to everything */
    int scans;
    int odometry;
    int overwrite;
    const volatile sig_atomic_t *interrupted; /* looked at between scans */
    /* filled in */
    size_t map_points, scan_points;
};

/* Stamp of scan i: the first sweep begins at 1700000000 s. */
int64_t sim_record_stamp_ns(const struct sim_recording *recording, int scan);
/* Seconds since the begin of the first sweep, for the drive. */
double sim_record_time_s(int64_t stamp_ns);

NDT_MUST_CHECK enum ndt_status sim_record(struct sim_recording *recording, struct ndt_error *err);

#endif

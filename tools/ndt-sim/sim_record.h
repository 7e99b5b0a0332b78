/** @file
 * @brief The files of a simulated drive: the prior map and the bag.
 *
 * Both are written atomically: both or none. The bag holds, by receive time: an initial pose with the twist at the
 * middle of the first sweep; odometry and IMU measurements as they are made, and further truth; for every scan the
 * exact ground truth at its stamp, then the scan, both with the receive time of the end of its part of the sweep.
 * Poses, twists and IMU measurements are of the base. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "sim_change.h"

/* Place of the stamp within the points of a scan. */
enum sim_stamp { SIM_STAMP_BEGIN, SIM_STAMP_MIDDLE, SIM_STAMP_END };

struct sim_recording {
    const char *map_path, *bag_path;
    const struct sim_drive *drive; /* borrowed, like caster and lidar */
    struct sim_caster *caster;
    struct sim_caster *surveyed; /* borrowed: of the world on the day of the survey */
    int map_sweeps;              /* the map is that many sweeps at their true poses; 0: a survey */
    const struct sim_lidar *lidar;
    struct sim_survey survey;
    struct sim_change change;    /* change of the map: sizes only */
    const struct sim_city *city; /* borrowed: the map is a folder of tiles; NULL: one file */
    struct sim_imu imu;
    double odometry_hz;   /* 0: none */
    double wheel_scale;   /* of the speeds that odometry tells; 1: right */
    double truth_hz;      /* besides that of the scans; 0: none */
    double scan_hz;       /* sweeps per second; one takes as long as a turn of the LiDAR */
    const double *late_s; /* borrowed: of every sweep, the sum of the gaps before it */
    enum sim_stamp stamp;
    double origin_m[3]; /* origin of the local frame in the map frame, added to everything */
    int sweeps;
    int overwrite; /* existing files */
    /* results */
    size_t map_points, scan_points;
    double length_m; /* length from the first sweep to the last */
};

NDT_MUST_CHECK enum ndt_status sim_record(struct sim_recording *recording, struct ndt_error *err);

#endif

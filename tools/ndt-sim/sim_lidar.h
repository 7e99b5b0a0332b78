/* The spinning LiDAR on the drive, and the survey that the prior map comes from.
 *
 * A sweep is one turn, clockwise seen from above, that starts and ends behind the sensor (as KITTI's
 * HDL-64); its stamp is the middle of the sweep, when the head looks ahead. All beams of a column fire at
 * once, each column from where the sensor is at that moment. time_s of a point is relative to the stamp.
 * Points are in the sensor frame, x forward, y left, z up, beam by beam within a column. */
#ifndef SIM_LIDAR_H
#define SIM_LIDAR_H

#include "ndt/cloud.h"
#include "sim_drive.h"

#define SIM_MAX_BEAMS 64

struct sim_lidar {
    int beams;   /* 16, 32 or 64 */
    int columns; /* firings per turn */
    double rate_hz;
    double min_range_m, max_range_m;
    double noise_m; /* standard deviation of a range */
    double dropout; /* part of the returns that is lost, besides those lost by distance */
    uint64_t seed;
};

/* Elevations of the beams, from low to high [rad]; 0 when there is no such device. */
int sim_lidar_elevations(int beams, double elevation_rad[SIM_MAX_BEAMS]);
/* The sweep whose middle is at t_s. The cloud is reused; `sequence` picks the random numbers. */
NDT_MUST_CHECK enum ndt_status sim_lidar_sweep(const struct sim_lidar *lidar, const struct sim_drive *drive,
                                               struct sim_caster *caster, double t_s, uint64_t sequence,
                                               struct ndt_cloud *cloud, struct ndt_error *err);

struct sim_survey {
    double spacing_m; /* edge of the cells of which each keeps one point */
    double noise_m;   /* standard deviation of every coordinate */
    double range_m;
    uint64_t seed;
};
/* Points on what can be seen from the course between both lengths, from standpoints, in directions and with
 * noise of its own; no moving cars. Local map frame, no time, intensity. */
NDT_MUST_CHECK enum ndt_status sim_survey_run(const struct sim_survey *survey, const struct sim_drive *drive,
                                              struct sim_caster *caster, double begin_m, double end_m,
                                              struct ndt_cloud *cloud, struct ndt_error *err);

#endif

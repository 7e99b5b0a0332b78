/** @file
 * @brief The scan that a LiDAR would take at a place of a map: the parts of its surface in sight.
 *
 * A range image of one degree: every patch in range hides what lies behind it. A spinning sensor sees from 25 deg
 * below to 15 deg above. Deterministic. */
#ifndef MAP_SCAN_H
#define MAP_SCAN_H

#include "map_patches.h"
#include "ndt/cloud.h"
#include "ndt/pose.h"
#include "ndt/random.h"

struct map_scanner {
    const struct map_patches *patches; /**< borrowed */
    double range_m;
    double noise_m; /**< standard deviation along the ray */
    float *depth_m; /**< the range image */
    size_t limit;   /**< most points of a scan */
};

/** Makes a scanner. */
NDT_MUST_CHECK enum ndt_status map_scanner_open(struct map_scanner *scanner, const struct map_patches *patches,
                                                double range_m, struct ndt_error *err);
/** Allowed on a zeroed one. */
void map_scanner_close(struct map_scanner *scanner);
/** The scan in the frame of the sensor; `scan` is initialised, and reused. `seed`: of the noise. */
NDT_MUST_CHECK enum ndt_status map_scanner_scan(struct map_scanner *scanner, const struct ndt_pose *T_map_sensor,
                                                uint64_t seed, struct ndt_cloud *scan, struct ndt_error *err);

#endif

/** @file
 * @brief Sense of rotation of a spinning LiDAR, from the order of its points. */
#ifndef NDTD_SCAN_TURN_H
#define NDTD_SCAN_TURN_H

#include "ndt/cloud.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sense of rotation, seen from above. */
enum ndtd_turn { NDTD_TURN_UNKNOWN, NDTD_TURN_CLOCKWISE, NDTD_TURN_COUNTER_CLOCKWISE };

/** Finds the sense of rotation where the points are in the order of measurement: column after column of all lasers,
 * in one turn that begins and ends behind the sensor. It is unknown for every other order: ring after ring (whose
 * direction is the choice of a program), shuffled, voxels, sorted by azimuth; for less or more than a turn, a
 * single ring, and columns that are not upright, as in a scan whose motion is undone. Pure; looks at 1024 points.
 */
enum ndtd_turn ndtd_scan_turn(const struct ndt_cloud *scan);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief Which way a spinning LiDAR turns, as the order of its points tells. */
#ifndef NDTD_SCAN_TURN_H
#define NDTD_SCAN_TURN_H

#include "ndt/cloud.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sense of rotation, seen from above. */
enum ndtd_turn { NDTD_TURN_UNKNOWN, NDTD_TURN_CLOCKWISE, NDTD_TURN_COUNTER_CLOCKWISE };

/** Known where the points are in the order in which they were measured: column after column of all lasers, in one
 * turn that begins and ends behind the sensor. Unknown for every other order: ring after ring (whose direction is
 * the choice of a program), shuffled, voxels, sorted by azimuth; for less or more than a turn, a single ring, and
 * columns that are not upright, as in a scan whose motion is undone. Pure; looks at 1024 points. */
enum ndtd_turn ndtd_scan_turn(const struct ndt_cloud *scan);

#ifdef __cplusplus
}
#endif
#endif

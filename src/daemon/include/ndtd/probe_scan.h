/**
 * @file
 * A synthetic scan of a map, to measure with before there is a real one: points drawn from the Gaussians of the
 * finest level around a place, more of them near the sensor, and a tenth that matches nothing.
 *
 * Seeded: the same map, place and count give the same scan. Pure functions; they allocate.
 */
#ifndef NDTD_PROBE_SCAN_H
#define NDTD_PROBE_SCAN_H

#include "ndt/map.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/** near_m: a position in the map, used if there are voxels around it; may be NULL. Otherwise the densest of some
 * random places is taken, at the height of a vehicle's roof. T_map_sensor becomes the true pose of the scan.
 * NDT_ERR_ARGUMENT: the map has no voxels. */
NDT_MUST_CHECK enum ndt_status ndtd_probe_scan(struct ndt_cloud *scan, struct ndt_pose *T_map_sensor,
                                               const struct ndt_map *map, const double near_m[3], size_t count,
                                               struct ndt_error *err);
/** A start pose, off by up to 0.2 m and 0.6 deg, as while tracking. The same for the same `number`. */
struct ndt_pose ndtd_probe_guess(const struct ndt_pose *T_map_sensor, size_t number);

#ifdef __cplusplus
}
#endif
#endif

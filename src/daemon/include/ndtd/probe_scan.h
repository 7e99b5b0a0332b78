/* A scan as a sensor in this map might see it, for measuring before there is a real one: points drawn from the
 * Gaussians of the finest level around a place, more of them near the sensor, and a tenth that fits to nothing.
 * Seeded: the same map, place and count give the same scan. Pure functions; allocate. */
#ifndef NDTD_PROBE_SCAN_H
#define NDTD_PROBE_SCAN_H

#include "ndt/map.h"
#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/* near_m: a position in the map, used when there are voxels around it; NULL, or else: of some places of the map the
 * one with the most around it, at the height of a vehicle's roof. T_map_sensor becomes the true pose of the scan.
 * NDT_ERR_ARGUMENT: the map has no voxels. */
NDT_MUST_CHECK enum ndt_status ndtd_probe_scan(struct ndt_cloud *scan, struct ndt_pose *T_map_sensor,
                                               const struct ndt_map *map, const double near_m[3], size_t count,
                                               struct ndt_error *err);
/* The pose off by what tracking is typically off by, up to 0.2 m and 0.6 deg; `number` from 0. */
struct ndt_pose ndtd_probe_guess(const struct ndt_pose *T_map_sensor, size_t number);

#ifdef __cplusplus
}
#endif
#endif

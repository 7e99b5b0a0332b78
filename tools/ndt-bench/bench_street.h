/** @file
 * @brief A synthetic street for measuring without a recording: ground and two rows of houses, 5 m wide each, some
 * of which protrude, so that the position along the street is observed. Seeded. Needs the core only. */
#ifndef BENCH_STREET_H
#define BENCH_STREET_H

#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/pose.h"

/** `points` points of the street in the map frame. */
NDT_MUST_CHECK enum ndt_status bench_street_map(struct ndt_cloud *out, size_t points, struct ndt_error *err);
/** Scan `number` of a drive along the street in steps of half a metre, with `points` points in the sensor frame,
 * all measured at the same time. */
NDT_MUST_CHECK enum ndt_status bench_street_scan(struct ndt_cloud *out, struct ndt_pose *T_map_sensor,
                                                 size_t number, size_t points, struct ndt_error *err);
/** One revolution of a stationary LiDAR with 64 beams in the street, column by column, with times. */
NDT_MUST_CHECK enum ndt_status bench_street_revolution(struct ndt_cloud *out, size_t points, uint64_t seed,
                                                       struct ndt_error *err);

#endif

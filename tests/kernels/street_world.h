/** @file
 * @brief Seeded synthetic surroundings that tests share: clouds for maps and for scans of the same surfaces.
 *
 * The street runs along x from 0 to its length: ground with a slope, facades whose depth changes every
 * 7 m (so that x is observed), poles and bushes. The corridor has a floor, two walls and a ceiling and
 * nothing else, so that x is not observed. World coordinates in metres, z up.
 * Noise is a sum of uniform numbers: no function of libm, the same points on every machine. */
#ifndef STREET_WORLD_H
#define STREET_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/pose.h"
#include "ndt/random.h"

/** Mean 0, standard deviation 1, never beyond 6: a sum of 12 uniform numbers, which needs no function of libm. */
double world_normal(struct ndt_random *random);

enum world_kind { WORLD_STREET, WORLD_CORRIDOR };
struct world {
    enum world_kind kind;
    uint64_t seed;
    double length_m;
    double noise_m; /* deviation of a measured point, each axis */
};

/* `count` points on all surfaces, relative to origin_m: the world's zero lies at origin_m. */
NDT_MUST_CHECK enum ndt_status world_map(struct ndt_cloud *out, const struct world *world, size_t count,
                                         const double origin_m[3], struct ndt_error *err);
/* A map of `count` points with the default levels; the world's zero is that of the map. */
NDT_MUST_CHECK enum ndt_status world_build_map(struct ndt_map **out, const struct world *world, size_t count,
                                               struct ndt_error *err);
/* `count` points within range_m (along x) of the sensor, in the sensor frame, drawn anew for each seed. */
NDT_MUST_CHECK enum ndt_status world_scan(struct ndt_cloud *out, const struct world *world, uint64_t seed,
                                          size_t count, const struct ndt_pose *T_world_sensor, double range_m,
                                          struct ndt_error *err);
/* Moves the points of a scan as in a sensor that moves by `twist` within a sweep of sweep_s: each point is seen at
 * its own time, in the order of the points, with the stamp in the middle. */
NDT_MUST_CHECK enum ndt_status world_sweep(struct ndt_cloud *scan, const struct ndt_twist *twist, double sweep_s,
                                           struct ndt_error *err);
/* A pose on the road: `s` in [0, 1] along the street, heading, roll and pitch of a few degrees. */
struct ndt_pose world_pose(const struct world *world, double s, double heading_rad);
/* `pose` moved by up to shift_m in a random direction and turned by up to turn_rad about a random axis;
 * distance and angle are uniform in [0, limit]. */
struct ndt_pose world_perturb(struct ndt_random *random, const struct ndt_pose *pose, double shift_m,
                              double turn_rad);

#endif

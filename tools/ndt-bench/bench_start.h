/* Wrong starts. Needs the core only. */
#ifndef BENCH_START_H
#define BENCH_START_H

#include <stdint.h>

#include "ndt/pose.h"

/* Start number `start`: `truth` moved by up to shift_m in a random direction and turned by up to turn_rad
 * about a random axis, both uniform between 0 and the limit. */
struct ndt_pose bench_start(uint64_t seed, uint64_t start, const struct ndt_pose *truth, double shift_m,
                            double turn_rad);

#endif

/* One number that says whether two replays gave the same: over seq, stamp, outcome and the exact bits of
 * the seven numbers of the pose, in the order of the results. Equal on every machine for equal bits. */
#ifndef NDTD_TRAJECTORY_HASH_H
#define NDTD_TRAJECTORY_HASH_H

#include <stdint.h>

#include "ndt/align.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TRAJECTORY_HASH_START UINT64_C(0x6e64746400000001)

/* The hash after one more result; start with NDTD_TRAJECTORY_HASH_START. */
uint64_t ndtd_trajectory_hash(uint64_t hash, uint64_t seq, int64_t stamp_ns, enum ndt_outcome outcome,
                              const struct ndt_pose *T_map_sensor);

#ifdef __cplusplus
}
#endif
#endif

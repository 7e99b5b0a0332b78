/** @file
 * @brief The trajectory that a replay is compared with (--expect), and the hash of a trajectory.
 *
 * The file is one of:
 *  - a TUM trajectory as --out writes it. With a comment line `# trajectory_hash HEX` the hashes are compared; with
 *    `# tolerance_m X` and `# tolerance_deg X` the poses, to these tolerances; without either the poses, to
 *    1e-9 m and 1e-7 deg;
 *  - a summary.json as --summary writes it: its trajectory_hash;
 *  - 16 hexadecimal digits.
 *
 * One owner, one thread. */
#ifndef NDTD_REFERENCE_TRAJECTORY_H
#define NDTD_REFERENCE_TRAJECTORY_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt_io/trajectory.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_REFERENCE_TRAJECTORY_MAX_BYTES ((size_t)268435456)          /**< largest size of a file */
#define NDTD_TRAJECTORY_HASH_START          UINT64_C(0x6e64746400000001) /**< hash of an empty trajectory */

/** Hash after one more result, over seq, stamp, outcome and the bits of the pose's seven numbers. Starts with
 * NDTD_TRAJECTORY_HASH_START; equal on every machine for equal bits. */
uint64_t ndtd_trajectory_hash(uint64_t hash, uint64_t seq, int64_t stamp_ns, enum ndt_outcome outcome,
                              const struct ndt_pose *T_map_sensor);

/** All zero: no reference, everything matches. */
struct ndtd_reference_trajectory {
    int has_hash, has_tolerance;
    uint64_t hash;
    double tolerance_m, tolerance_deg;
    struct ndt_trajectory poses; /**< Empty when the file holds only a hash. */
    size_t seen;                 /**< Poses compared so far. */
    char difference[256];        /**< The first difference; empty if there is none. */
};

/** Reads the file. NDT_ERR_IO, NDT_ERR_FORMAT, NDT_ERR_LIMIT, NDT_ERR_MEMORY; `out` is then empty. */
NDT_MUST_CHECK enum ndt_status ndtd_reference_trajectory_read(struct ndtd_reference_trajectory *out,
                                                              const char *path, struct ndt_error *err);
/** Frees the poses; the struct is then empty. */
void ndtd_reference_trajectory_free(struct ndtd_reference_trajectory *reference);
/** Compares the next pose of the replay. */
void ndtd_reference_trajectory_compare(struct ndtd_reference_trajectory *reference, int64_t stamp_ns,
                                       const struct ndt_pose *T_map_sensor);
/** Returns 1 when the whole replay, with this hash, matches; else 0, and `difference` describes the first
 * difference. */
int ndtd_reference_trajectory_matches(struct ndtd_reference_trajectory *reference, uint64_t hash);

#ifdef __cplusplus
}
#endif
#endif

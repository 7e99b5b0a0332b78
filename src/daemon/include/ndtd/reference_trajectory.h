/* What a replay should give (--expect), and where it first differs.
 *
 * The file is one of:
 *  - a TUM trajectory as --out writes it. Comment lines may add `# trajectory_hash HEX`, which decides then,
 *    or `# tolerance_m X` and `# tolerance_deg X`, which replace the hash by a comparison of poses. With
 *    none of them poses must agree to 1e-9 m and 1e-7 deg;
 *  - a summary.json as --summary writes it: its trajectory_hash;
 *  - 16 hexadecimal digits.
 * One owner, one thread. */
#ifndef NDTD_REFERENCE_TRAJECTORY_H
#define NDTD_REFERENCE_TRAJECTORY_H

#include "ndt_io/trajectory.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_REFERENCE_TRAJECTORY_MAX_BYTES ((size_t)268435456)

/* All zero expects nothing. */
struct ndtd_reference_trajectory {
    int has_hash, has_tolerance;
    uint64_t hash;
    double tolerance_m, tolerance_deg;
    struct ndt_trajectory poses; /* empty when the file holds only a hash */
    size_t seen;                 /* poses compared so far */
    char difference[256];        /* the first one; empty so far */
};

NDT_MUST_CHECK enum ndt_status ndtd_reference_trajectory_read(struct ndtd_reference_trajectory *out,
                                                              const char *path, struct ndt_error *err);
void ndtd_reference_trajectory_free(struct ndtd_reference_trajectory *reference);
/* Every pose of the replay, in order. */
void ndtd_reference_trajectory_pose(struct ndtd_reference_trajectory *reference, int64_t stamp_ns,
                                    const struct ndt_pose *T_map_sensor);
/* 1 when all is as expected; else 0, and `difference` says where it first differs. */
int ndtd_reference_trajectory_met(struct ndtd_reference_trajectory *reference, uint64_t hash);

#ifdef __cplusplus
}
#endif
#endif

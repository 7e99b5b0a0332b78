/** @file
 * @brief Trajectories as text: TUM (stamp_s tx ty tz qx qy qz qw) and KITTI (the 12 numbers of a 3x4 matrix). */
#ifndef NDT_IO_TRAJECTORY_H
#define NDT_IO_TRAJECTORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/pose.h"
#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The text formats. */
enum ndt_trajectory_format { NDT_TUM, NDT_KITTI };

/** A pose at a time. */
struct ndt_stamped_pose {
    int64_t stamp_ns; /**< in KITTI files, which have no stamps, the line number, from 0 */
    struct ndt_pose T_map_sensor;
};
/** Poses in the order of the file. */
struct ndt_trajectory {
    struct ndt_stamped_pose *poses;
    size_t count;
};
/** Reads a trajectory. '#' starts a comment, empty lines are skipped. Stamps are read as decimal text into int64 ns
 * without passing through double. Errors name file and line; after a failure `out` is empty. */
NDT_MUST_CHECK enum ndt_status ndt_trajectory_read(struct ndt_trajectory *out, const char *path,
                                                   enum ndt_trajectory_format format, struct ndt_error *err);
/** Frees the poses; allowed on an empty trajectory. */
void ndt_trajectory_free(struct ndt_trajectory *trajectory);
/** Writes one line: seconds with 9 decimals, numbers with 17 significant digits, so that reading restores them
 * bit-identically. Independent of the locale. Returns the result of fprintf. */
int ndt_trajectory_write_pose(FILE *file, enum ndt_trajectory_format format, int64_t stamp_ns,
                              const struct ndt_pose *pose);
/** Reads times in seconds, one per line ("1317042272.349000"), as int64 ns; the times files of KITTI have this
 * form. The caller frees *out. */
NDT_MUST_CHECK enum ndt_status ndt_times_read(int64_t **out, size_t *count, const char *path,
                                              struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Trajectories as text: TUM (stamp_s tx ty tz qx qy qz qw) and KITTI (12 numbers of the 3x4 matrix). */
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

enum ndt_trajectory_format { NDT_TUM, NDT_KITTI };

struct ndt_stamped_pose {
    int64_t stamp_ns; /* KITTI files carry none: the line number, from 0 */
    struct ndt_pose T_map_sensor;
};
struct ndt_trajectory {
    struct ndt_stamped_pose *poses;
    size_t count;
};
/* '#' starts a comment, empty lines are skipped. Errors name file and line. Stamps are read as decimal
 * text into int64 ns without passing through double. */
NDT_MUST_CHECK enum ndt_status ndt_trajectory_read(struct ndt_trajectory *out, const char *path,
                                                   enum ndt_trajectory_format format, struct ndt_error *err);
void ndt_trajectory_free(struct ndt_trajectory *trajectory);
/* One line; 9 decimals for seconds, 17 significant digits never lost. Returns fprintf's result. */
int ndt_trajectory_write_pose(FILE *file, enum ndt_trajectory_format format, int64_t stamp_ns,
                              const struct ndt_pose *pose);
/* Numbers, one per line ("1317042272.349000" seconds), as int64 ns; for KITTI's times files. */
NDT_MUST_CHECK enum ndt_status ndt_times_read(int64_t **out, size_t *count, const char *path,
                                              struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Results against truth, by stamp. Truth may come before or after the result that it concerns; between
 * two truths that are at most NDTD_TRUTH_GAP_S apart the pose is interpolated on the screw motion. One
 * owner, one thread. */
#ifndef NDTD_TRAJECTORY_ERROR_H
#define NDTD_TRAJECTORY_ERROR_H

#include <stdint.h>

#include "ndt/pose.h"
#include "ndt/status.h"
#include "ndtd/samples.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TRUTH_GAP_S 0.5
/* Beyond either a scan counts as lost. */
#define NDTD_LOST_M   1.0
#define NDTD_LOST_DEG 5.0

struct ndtd_timed_pose {
    int64_t stamp_ns;
    int has_pose;
    struct ndt_pose T_map_sensor;
};
struct ndtd_timed_poses {
    struct ndtd_timed_pose *items;
    size_t count, capacity;
};

/* All zero is an evaluator that knows nothing. */
struct ndtd_trajectory_error {
    struct ndtd_timed_poses truth;
    struct ndtd_timed_poses results;
    int truth_is_sorted;
};

void ndtd_trajectory_error_free(struct ndtd_trajectory_error *trajectory_error);
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_truth(struct ndtd_trajectory_error *trajectory_error,
                                                           int64_t stamp_ns, const struct ndt_pose *T_map_sensor,
                                                           struct ndt_error *err);
/* T_map_sensor NULL: the scan got no pose; it is lost when there is a truth for its stamp. */
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_result(struct ndtd_trajectory_error *trajectory_error,
                                                            int64_t stamp_ns, const struct ndt_pose *T_map_sensor,
                                                            struct ndt_error *err);

/* Truth at a stamp, and the motion there (twist may be NULL); 0 when there is none. */
int ndtd_trajectory_error_truth_at(struct ndtd_trajectory_error *trajectory_error, int64_t stamp_ns,
                                   struct ndt_pose *T_map_sensor, struct ndt_twist *twist);

/* Error of every result that has a truth. Rows are appended to empty lists, which the caller frees. */
struct ndtd_errors {
    size_t compared; /* results with a truth, lost ones included */
    size_t lost;
    struct ndtd_samples translation_m, rotation_deg;
};
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_summary(struct ndtd_trajectory_error *trajectory_error,
                                                             struct ndtd_errors *out, struct ndt_error *err);
void ndtd_errors_free(struct ndtd_errors *errors);

#ifdef __cplusplus
}
#endif
#endif

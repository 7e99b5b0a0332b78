/** @file
 * @brief Errors of results against ground truth, matched by stamp.
 *
 * Ground truth may be added before or after the results. Between two poses at most NDTD_TRUTH_GAP_S apart it is
 * interpolated on the screw motion. One owner, one thread. */
#ifndef NDTD_TRAJECTORY_ERROR_H
#define NDTD_TRAJECTORY_ERROR_H

#include <stdint.h>

#include "ndt/pose.h"
#include "ndt/status.h"
#include "ndtd/samples.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_TRUTH_GAP_S 0.5 /**< longest time over which ground truth is interpolated */
#define NDTD_OFF_M       1.0 /**< a scan with a larger error is off */
#define NDTD_OFF_DEG     5.0 /**< a scan with a larger rotation error is off */

/** A pose at a stamp. */
struct ndtd_timed_pose {
    int64_t stamp_ns;
    int has_pose;
    struct ndt_pose T_map_sensor;
};
/** A growing list of poses. */
struct ndtd_timed_poses {
    struct ndtd_timed_pose *items;
    size_t count, capacity;
};

/** Results and ground truth; all zero: empty. */
struct ndtd_trajectory_error {
    struct ndtd_timed_poses truth;
    struct ndtd_timed_poses results;
    int truth_is_sorted;
};

/** Errors of all results that have a ground truth. All zero: none. */
struct ndtd_errors {
    size_t compared; /**< Results with a ground truth, including those that are off. */
    size_t off;
    struct ndtd_samples translation_m, rotation_deg;
};

/** Frees the poses; the struct is then empty. */
void ndtd_trajectory_error_free(struct ndtd_trajectory_error *error);
/** Adds a ground-truth pose. */
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_add_truth(struct ndtd_trajectory_error *error,
                                                               int64_t stamp_ns,
                                                               const struct ndt_pose *T_map_sensor,
                                                               struct ndt_error *err);
/** Adds a result. T_map_sensor may be NULL (the scan has no pose): it counts as off if its stamp has a ground
 * truth. */
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_add_result(struct ndtd_trajectory_error *error,
                                                                int64_t stamp_ns,
                                                                const struct ndt_pose *T_map_sensor,
                                                                struct ndt_error *err);
/** Finds the ground truth at a stamp, and the motion there (twist may be NULL). Returns 0 if there is none at that
 * stamp. */
int ndtd_trajectory_error_truth_at(struct ndtd_trajectory_error *error, int64_t stamp_ns,
                                   struct ndt_pose *T_map_sensor, struct ndt_twist *twist);
/** Moves the ground truth into the frame of the results, by the first pose that has a ground truth. */
void ndtd_trajectory_error_anchor(struct ndtd_trajectory_error *error);
/** Adds the errors of all results to `out`, which the caller frees. */
NDT_MUST_CHECK enum ndt_status ndtd_trajectory_error_compute(struct ndtd_trajectory_error *error,
                                                             struct ndtd_errors *out, struct ndt_error *err);
/** Frees the samples. */
void ndtd_errors_free(struct ndtd_errors *errors);

#ifdef __cplusplus
}
#endif
#endif

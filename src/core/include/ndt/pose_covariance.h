/** @file
 * @brief The covariance of an aligned pose by the ways of Autoware's ndt_scan_matcher, in place of an estimator's.
 *
 *   FIXED            params->fixed
 *   LAPLACE          the inverse of the curvature of the score, all six axes
 *   MULTI_NDT        aligns again from each offset, without prior: mean of d d^T over the poses that are found
 *   MULTI_NDT_SCORE  scores each offset without aligning: sum of w d d^T, w = softmax(NVTL / temperature) over the
 *                    offsets and the pose
 *
 * with d = Log(T_map_base^-1 T_offset), in the axes of the base. All but FIXED are multiplied by the scale factor
 * of the alignment; then every variance is raised to that of params->fixed, which also holds where nothing can be
 * estimated (the score is not at a maximum, no time left). Differences from Autoware: six axes instead of x and y,
 * the full inverse instead of that of the block of x and y, and unbiased means about the pose. */
#ifndef NDT_POSE_COVARIANCE_H
#define NDT_POSE_COVARIANCE_H

#include "ndt/align.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDT_POSE_COVARIANCE_OFFSETS = 16 };

/** The numbers are Autoware's, but for the last one. */
enum ndt_pose_covariance_kind {
    NDT_POSE_COVARIANCE_FIXED,
    NDT_POSE_COVARIANCE_LAPLACE,
    NDT_POSE_COVARIANCE_MULTI_NDT,
    NDT_POSE_COVARIANCE_MULTI_NDT_SCORE,
    NDT_POSE_COVARIANCE_POSTERIOR /**< covariance of the estimator: nothing to do here */
};

/** Parameters; ndt_pose_covariance_params_default gives the values in brackets. */
struct ndt_pose_covariance_params {
    enum ndt_pose_covariance_kind kind; /**< [NDT_POSE_COVARIANCE_POSTERIOR] */
    /** Row-major, x y z rx ry rz, axes of the base [0.15 m, 0.025 rad on the diagonal] */
    double fixed[36];
    /** Offsets of the base, forward and to the left [m] [(0, 0.5) (0, -0.5) (0.5, 0) (-0.5, 0) (1, 0) (-1, 0)] */
    double offset_x_m[NDT_POSE_COVARIANCE_OFFSETS], offset_y_m[NDT_POSE_COVARIANCE_OFFSETS];
    size_t offset_x_count, offset_y_count; /**< equal [6] */
    double temperature;                    /**< [0.05] */
};
/** Sets the defaults, Autoware's but for the kind. */
void ndt_pose_covariance_params_default(struct ndt_pose_covariance_params *params);

/** A pose that was aligned, and whose covariance is asked for. */
struct ndt_aligned_pose {
    const struct ndt_align_params *align; /**< of the alignment; its deadline bounds the estimation as a whole */
    const struct ndt_cloud *scan;         /**< only for the two kinds of multi-NDT */
    const struct ndt_pose *T_base_sensor;
};
/** Replaces result->covariance by that of T_map_base, in the axes of the map, about the base; adds evaluations and
 * time. Allocates as ndt_align_batch and, like it, leaves no trace. */
NDT_MUST_CHECK enum ndt_status ndt_pose_covariance_estimate(struct ndt_aligner *aligner,
                                                            const struct ndt_pose_covariance_params *params,
                                                            const struct ndt_aligned_pose *pose,
                                                            struct ndt_align_result *result, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief What an alignment tells an estimator about the pose and about the twist that deskewing has undone.
 *
 * The alignment leaves raw sums (struct ndt_observation). ndt_observation_weigh turns them into information that
 * can be added to that of a prediction:
 *
 *  - The sums K per voxel (ndt/eval.h) can be indefinite: the joint matrix of pose and twist is made positive
 *    semidefinite.
 *  - An eigenvalue l of the information about the pose counts l^2 / (l^2 + (discount l_max)^2) of itself: a
 *    direction that the scan hardly observes fades out smoothly, without a threshold. The information about the
 *    twist fades out along the same directions, and along those that the sweep itself hardly observes.
 *  - Along a direction in which the score curves less than a quarter of what the information along normals says,
 *    the information fades out with the curvature; where that is negative, the scan tells nothing.
 *  - The floor F, the error that is common to all points of a scan (map noise, calibration of the sensor), bounds
 *    the information: W = (A^-1 + F)^-1.
 *
 * Error convention: d = (rho, phi) in T = T_estimate Exp(d), translation [m] and rotation [rad] in the frame of the
 * sensor (right error). Matrices are row-major. Pure functions without allocation. */
#ifndef NDT_OBSERVATION_H
#define NDT_OBSERVATION_H

#include "ndt/pose.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sums at the final pose with respect to its right error, and to the twist [m/s, rad/s] for the parts with time.
 */
struct ndt_observation {
    double gradient[6];        /**< of the score, without prior and regularisation */
    double time_gradient[6];   /**< of the score by the twist */
    double curvature[36];      /**< minus the Hessian of the score */
    double information[3][36]; /**< pose, pose and twist, twist; see struct ndt_information */
};

/** How observations are weighed; ndt_observation_noise_default gives the values in brackets. */
struct ndt_observation_noise {
    /** standard deviation per axis of the error common to all points: a few points of a voxel deviate from its mean
     * by 3 mm, and a map bends by 1 cm in 50 m [3 mm, 0.2 mrad] */
    double floor_m, floor_rad;
    double discount;       /**< see above [1e-3] */
    double twist_discount; /**< the same for the information about the twist and its own eigenvalues [1e-2] */
    /** points per independent point, for the twist: after a filter of 0.5 m about four points lie on the same face
     * of a voxel of 1 m and share the error of its mean [4] */
    double correlation;
};
/** Sets the defaults. */
void ndt_observation_noise_default(struct ndt_observation_noise *noise);

/** A linear measurement z = M x with information: x = (d, dv), d the error of T, dv the change of the twist. */
struct ndt_weighed_observation {
    double step[6]; /**< from T to the maximum of the score alone, without the prior; at most 0.5 m per axis */
    double information[36];       /**< W, of d + twist_to_pose dv, as far as the curvature of the score backs it */
    double claimed[36];           /**< the same whatever the curvature: by it a scan contradicts its prediction */
    double twist_to_pose[36];     /**< how an error of the twist moves the pose that is found [s] */
    double twist_information[36]; /**< of dv alone */
    double twist_gradient[6];     /**< its right-hand side */
    double weakest; /**< smallest over largest eigenvalue of the information about the pose; in [0, 1] */
};

/** Weighs an observation. */
void ndt_observation_weigh(const struct ndt_observation *observation, const struct ndt_observation_noise *noise,
                           struct ndt_weighed_observation *out);
/** The directions in which an observation informs about the pose, from worst to best: eigenvectors of its
 * information in units in which translations and rotations compare, a rotation counted as the movement of typical
 * points. ratio[k]: eigenvalue over the largest one, in [0, 1]; all 0 where nothing is observed. axes: row k is
 * unit length in these units and projects an error d to metres along direction k. */
void ndt_observation_directions(const struct ndt_observation *observation, double ratio[6], double axes[36]);
/** The error d that moves a pose by one metre along direction k: the inverse of row k of `axes`. */
void ndt_observation_step(const double axes[36], int k, double step[6]);
/** Removes all that an observation says along a direction, about the pose and about the twist. axis, step: as given
 * by ndt_observation_directions and ndt_observation_step. */
void ndt_observation_forget(struct ndt_observation *observation, const double axis[6], const double step[6]);
/** The observation of a body that carries the sensor: errors of T_map_body instead of T_map_sensor. */
void ndt_observation_to_body(const struct ndt_observation *observation, const struct ndt_pose *T_body_sensor,
                             struct ndt_observation *out);

#ifdef __cplusplus
}
#endif
#endif

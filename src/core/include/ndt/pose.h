/** @file
 * @brief Rigid transforms in double precision.
 *
 * T_a_b maps coordinates in frame b to frame a: x_a = T_a_b x_b. Frames follow REP-103/105 (x forward, y left, z
 * up), quaternions are x y z w. Twists are body-frame velocities: T(t + dt) = T(t) exp(twist dt).
 *
 * The six coordinates of the optimiser are p = (tx, ty, tz, a, b, c) with R = Rx(a) Ry(b) Rz(c) (Magnusson 2009,
 * eq. 6.17). That is not the roll-pitch-yaw of ROS, which is Rz Ry Rx.
 *
 * All functions are pure and thread-safe. Inputs must be finite unless stated otherwise. */
#ifndef NDT_POSE_H
#define NDT_POSE_H

#ifdef __cplusplus
extern "C" {
#endif

/** A rigid transform. */
struct ndt_pose {
    double t_m[3];
    double q_xyzw[4]; /**< unit length */
};

/** Velocity of a body in its own frame. */
struct ndt_twist {
    double v_mps[3];
    double w_radps[3];
};

/** Kind of the pose of an estimator at some moment; names: ndt_pose_kind_name (ndt/names.h). */
enum ndt_pose_kind {
    NDT_POSE_SMOOTHED,  /**< scans before and after it */
    NDT_POSE_FILTERED,  /**< scans and motion up to it */
    NDT_POSE_PREDICTED, /**< extrapolated beyond all of them */
    NDT_POSE_KIND_COUNT
};

/** The identity. */
struct ndt_pose ndt_pose_identity(void);
/** T_a_c = T_a_b T_b_c */
struct ndt_pose ndt_pose_compose(const struct ndt_pose *T_a_b, const struct ndt_pose *T_b_c);
/** T_b_a */
struct ndt_pose ndt_pose_inverse(const struct ndt_pose *T_a_b);
/** T_b_c = inverse(T_a_b) T_a_c, without losing digits at large coordinates */
struct ndt_pose ndt_pose_between(const struct ndt_pose *T_a_b, const struct ndt_pose *T_a_c);
/** Scales the quaternion to unit length; 0, and the identity rotation, when it is zero or not finite. */
int ndt_pose_normalize(struct ndt_pose *pose);
/** Whether all seven numbers are finite. */
int ndt_pose_is_finite(const struct ndt_pose *pose);

/** The rotation matrix, row-major. */
void ndt_pose_rotation(const struct ndt_pose *pose, double R[9]);
/** From a rotation matrix (row-major) and a translation. */
struct ndt_pose ndt_pose_from_rotation(const double R[9], const double t_m[3]);
/** x_a = T_a_b x_b */
void ndt_pose_apply(const struct ndt_pose *T_a_b, const double x_b[3], double x_a[3]);

/** From the coordinates of the optimiser. */
struct ndt_pose ndt_pose_from_euler(const double p[6]);
/** To the coordinates of the optimiser; b in [-pi/2, pi/2], a and c in [-pi, pi]; c = 0 at gimbal lock. */
void ndt_pose_to_euler(const struct ndt_pose *pose, double p[6]);

/** SE(3) exponential: the motion in dt_s of a body that keeps its twist. */
struct ndt_pose ndt_pose_exp(const struct ndt_twist *twist, double dt_s);
/** SE(3) logarithm: the twist that leads to `pose` in dt_s, which is not 0. */
struct ndt_twist ndt_pose_log(const struct ndt_pose *pose, double dt_s);
/** On the screw motion from a (s = 0) to b (s = 1); s may leave [0, 1]. */
struct ndt_pose ndt_pose_interpolate(const struct ndt_pose *a, const struct ndt_pose *b, double s);

/** The adjoint, row-major 6x6 for (translation, rotation): T Exp(d) = Exp(Ad d) T. */
void ndt_pose_adjoint(const struct ndt_pose *T, double Ad[36]);
/** The twist of a frame that the base carries, from that of the base; each in its own axes. */
struct ndt_twist ndt_pose_carried_twist(const struct ndt_pose *T_base_sensor, const struct ndt_twist *twist);
/** Roll, pitch and yaw of ROS: R = Rz(yaw) Ry(pitch) Rx(roll) [rad]. */
struct ndt_pose ndt_pose_from_rpy(const double t_m[3], const double rpy_rad[3]);

/** Heading of the x axis, from that of the parent frame, about its z axis: yaw. */
double ndt_pose_heading_rad(const struct ndt_pose *T_a_b);

/** Distance between two positions [m]. */
double ndt_pose_distance_m(const struct ndt_pose *a, const struct ndt_pose *b);
/** Squared Mahalanobis distance of a pose from a mean. covariance: of the error d, T = mean Exp(d), row-major,
 * translation before rotation. INFINITY: the covariance is not positive definite. */
double ndt_pose_squared_mahalanobis(const struct ndt_pose *mean, const double covariance[36],
                                    const struct ndt_pose *pose);
/** Rotation angle between two attitudes, in [0, pi]. */
double ndt_pose_angle_rad(const struct ndt_pose *a, const struct ndt_pose *b);

#ifdef __cplusplus
}
#endif
#endif

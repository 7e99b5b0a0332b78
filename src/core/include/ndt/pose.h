/* Rigid transforms in double precision.
 *
 * T_a_b maps coordinates in frame b to frame a: x_a = T_a_b x_b. Frames follow REP-103/105 (x forward,
 * y left, z up), quaternions are x y z w. All functions are pure, thread-safe and never fail; inputs
 * must be finite. Twists are body-frame velocities: T(t + dt) = T(t) exp(twist dt).
 *
 * The six-vector of the optimiser is p = (tx, ty, tz, a, b, c) with R = Rx(a) Ry(b) Rz(c)
 * (Magnusson 2009, eq. 6.17). That is not the roll-pitch-yaw of ROS, which is Rz Ry Rx. */
#ifndef NDT_POSE_H
#define NDT_POSE_H

#ifdef __cplusplus
extern "C" {
#endif

struct ndt_pose {
    double t_m[3];
    double q_xyzw[4]; /* unit length */
};

struct ndt_twist {
    double v_mps[3];
    double w_radps[3];
};

struct ndt_pose ndt_pose_identity(void);
struct ndt_pose ndt_pose_compose(const struct ndt_pose *T_a_b, const struct ndt_pose *T_b_c);
struct ndt_pose ndt_pose_inverse(const struct ndt_pose *T_a_b);
/* T_b_c = inverse(T_a_b) T_a_c */
struct ndt_pose ndt_pose_between(const struct ndt_pose *T_a_b, const struct ndt_pose *T_a_c);
/* Scales the quaternion to unit length; false (and identity rotation) when it is zero or not finite. */
int ndt_pose_normalize(struct ndt_pose *pose);
int ndt_pose_is_finite(const struct ndt_pose *pose);

void ndt_pose_rotation(const struct ndt_pose *pose, double R[9]); /* row-major */
struct ndt_pose ndt_pose_from_rotation(const double R[9], const double t_m[3]);
void ndt_pose_apply(const struct ndt_pose *T_a_b, const double x_b[3], double x_a[3]);

/* Optimiser vector and back; c in (-pi, pi], b clamped to [-pi/2, pi/2]. */
struct ndt_pose ndt_pose_from_euler(const double p[6]);
void ndt_pose_to_euler(const struct ndt_pose *pose, double p[6]);

/* SE(3) exponential and logarithm with the screw coupling of translation and rotation;
 * exp(twist * dt_s) is the motion of a body that keeps its twist for dt_s. */
struct ndt_pose ndt_pose_exp(const struct ndt_twist *twist, double dt_s);
struct ndt_twist ndt_pose_log(const struct ndt_pose *pose, double dt_s); /* dt_s != 0 */
/* On the screw motion from a (s = 0) to b (s = 1); s may leave [0, 1]. */
struct ndt_pose ndt_pose_interpolate(const struct ndt_pose *a, const struct ndt_pose *b, double s);

/* Distance and rotation angle between two poses: [m] and [rad] in [0, pi]. */
double ndt_pose_distance_m(const struct ndt_pose *a, const struct ndt_pose *b);
double ndt_pose_angle_rad(const struct ndt_pose *a, const struct ndt_pose *b);

#ifdef __cplusplus
}
#endif
#endif

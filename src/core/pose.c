#include "ndt/pose.h"

#include <math.h>
#include <string.h>

#include "ndt/linalg.h"

struct ndt_pose ndt_pose_identity(void)
{
    return (struct ndt_pose){.t_m = {0, 0, 0}, .q_xyzw = {0, 0, 0, 1}};
}

static void quaternion_multiply(const double a[4], const double b[4], double out[4])
{
    out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

/* v' = v + 2 w (u x v) + 2 u x (u x v) for q = (u, w) */
static void quaternion_rotate(const double q[4], const double v[3], double out[3])
{
    const double cx = q[1] * v[2] - q[2] * v[1];
    const double cy = q[2] * v[0] - q[0] * v[2];
    const double cz = q[0] * v[1] - q[1] * v[0];
    const double x = v[0] + 2 * (q[3] * cx + q[1] * cz - q[2] * cy);
    const double y = v[1] + 2 * (q[3] * cy + q[2] * cx - q[0] * cz);
    const double z = v[2] + 2 * (q[3] * cz + q[0] * cy - q[1] * cx);
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

struct ndt_pose ndt_pose_compose(const struct ndt_pose *T_a_b, const struct ndt_pose *T_b_c)
{
    struct ndt_pose out;
    quaternion_rotate(T_a_b->q_xyzw, T_b_c->t_m, out.t_m);
    for (int i = 0; i < 3; i++)
        out.t_m[i] += T_a_b->t_m[i];
    quaternion_multiply(T_a_b->q_xyzw, T_b_c->q_xyzw, out.q_xyzw);
    (void)ndt_pose_normalize(&out);
    return out;
}

struct ndt_pose ndt_pose_inverse(const struct ndt_pose *T_a_b)
{
    struct ndt_pose out;
    for (int i = 0; i < 3; i++)
        out.q_xyzw[i] = -T_a_b->q_xyzw[i];
    out.q_xyzw[3] = T_a_b->q_xyzw[3];
    quaternion_rotate(out.q_xyzw, T_a_b->t_m, out.t_m);
    for (int i = 0; i < 3; i++)
        out.t_m[i] = -out.t_m[i];
    return out;
}

struct ndt_pose ndt_pose_between(const struct ndt_pose *T_a_b, const struct ndt_pose *T_a_c)
{
    /* Subtracts first: at UTM coordinates, rotating the two large positions separately would lose digits. */
    struct ndt_pose rotation = *T_a_b;
    struct ndt_pose moved = *T_a_c;
    for (int i = 0; i < 3; i++) {
        rotation.t_m[i] = 0;
        moved.t_m[i] = T_a_c->t_m[i] - T_a_b->t_m[i];
    }
    rotation = ndt_pose_inverse(&rotation);
    return ndt_pose_compose(&rotation, &moved);
}

int ndt_pose_normalize(struct ndt_pose *pose)
{
    double norm = 0;
    for (int i = 0; i < 4; i++)
        norm += pose->q_xyzw[i] * pose->q_xyzw[i];
    norm = sqrt(norm);
    if (!(norm > 1e-12) || !isfinite(norm)) {
        memcpy(pose->q_xyzw, (double[4]){0, 0, 0, 1}, sizeof(pose->q_xyzw));
        return 0;
    }
    for (int i = 0; i < 4; i++)
        pose->q_xyzw[i] /= norm;
    return 1;
}

int ndt_pose_is_finite(const struct ndt_pose *pose)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += pose->t_m[i] * 0;
    for (int i = 0; i < 4; i++)
        sum += pose->q_xyzw[i] * 0;
    return sum == 0;
}

void ndt_pose_rotation(const struct ndt_pose *pose, double R[9])
{
    const double x = pose->q_xyzw[0], y = pose->q_xyzw[1], z = pose->q_xyzw[2], w = pose->q_xyzw[3];
    R[0] = 1 - 2 * (y * y + z * z);
    R[1] = 2 * (x * y - z * w);
    R[2] = 2 * (x * z + y * w);
    R[3] = 2 * (x * y + z * w);
    R[4] = 1 - 2 * (x * x + z * z);
    R[5] = 2 * (y * z - x * w);
    R[6] = 2 * (x * z - y * w);
    R[7] = 2 * (y * z + x * w);
    R[8] = 1 - 2 * (x * x + y * y);
}

double ndt_pose_heading_rad(const struct ndt_pose *T_a_b)
{
    const double *q = T_a_b->q_xyzw;
    return atan2(2 * (q[3] * q[2] + q[0] * q[1]), 1 - 2 * (q[1] * q[1] + q[2] * q[2]));
}

/* Shepperd's method: divide by the largest of the four components. */
struct ndt_pose ndt_pose_from_rotation(const double R[9], const double t_m[3])
{
    struct ndt_pose out;
    memcpy(out.t_m, t_m, sizeof(out.t_m));
    double *q = out.q_xyzw;
    const double trace = R[0] + R[4] + R[8];
    if (trace >= R[0] && trace >= R[4] && trace >= R[8]) {
        const double s = 2 * sqrt(1 + trace);
        q[3] = s / 4;
        q[0] = (R[7] - R[5]) / s;
        q[1] = (R[2] - R[6]) / s;
        q[2] = (R[3] - R[1]) / s;
    } else {
        const int i = R[0] >= R[4] && R[0] >= R[8] ? 0 : (R[4] >= R[8] ? 1 : 2);
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const double s = 2 * sqrt(1 + R[4 * i] - R[4 * j] - R[4 * k]);
        q[i] = s / 4;
        q[3] = (R[3 * k + j] - R[3 * j + k]) / s;
        q[j] = (R[3 * j + i] + R[3 * i + j]) / s;
        q[k] = (R[3 * k + i] + R[3 * i + k]) / s;
    }
    (void)ndt_pose_normalize(&out);
    return out;
}

void ndt_pose_apply(const struct ndt_pose *T_a_b, const double x_b[3], double x_a[3])
{
    quaternion_rotate(T_a_b->q_xyzw, x_b, x_a);
    for (int i = 0; i < 3; i++)
        x_a[i] += T_a_b->t_m[i];
}

struct ndt_pose ndt_pose_from_euler(const double p[6])
{
    const double qx[4] = {sin(p[3] / 2), 0, 0, cos(p[3] / 2)};
    const double qy[4] = {0, sin(p[4] / 2), 0, cos(p[4] / 2)};
    const double qz[4] = {0, 0, sin(p[5] / 2), cos(p[5] / 2)};
    double qxy[4];
    struct ndt_pose out = {.t_m = {p[0], p[1], p[2]}};
    quaternion_multiply(qx, qy, qxy);
    quaternion_multiply(qxy, qz, out.q_xyzw);
    (void)ndt_pose_normalize(&out);
    return out;
}

void ndt_pose_to_euler(const struct ndt_pose *pose, double p[6])
{
    double R[9];
    ndt_pose_rotation(pose, R);
    memcpy(p, pose->t_m, sizeof(pose->t_m));
    p[4] = asin(fmax(-1, fmin(1, R[2])));
    if (fabs(R[2]) < 1 - 1e-12) {
        p[3] = atan2(-R[5], R[8]);
        p[5] = atan2(-R[1], R[0]);
    } else { /* gimbal lock: only a + c or a - c is determined; put all of it into a */
        p[3] = atan2(R[7], R[4]);
        p[5] = 0;
    }
}

/* sin(x)/x, (1-cos(x))/x^2, (x-sin(x))/x^3 without cancellation near zero */
static void rotation_series(double angle, double *a, double *b, double *c)
{
    const double x2 = angle * angle;
    if (angle < 1e-3) {
        *a = 1 - x2 / 6 + x2 * x2 / 120;
        *b = 0.5 - x2 / 24 + x2 * x2 / 720;
        *c = 1.0 / 6 - x2 / 120 + x2 * x2 / 5040;
    } else {
        *a = sin(angle) / angle;
        *b = (1 - cos(angle)) / x2;
        *c = (angle - sin(angle)) / (x2 * angle);
    }
}

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

struct ndt_pose ndt_pose_exp(const struct ndt_twist *twist, double dt_s)
{
    double v[3], w[3], wv[3], wwv[3], a, b, c;
    for (int i = 0; i < 3; i++) {
        v[i] = twist->v_mps[i] * dt_s;
        w[i] = twist->w_radps[i] * dt_s;
    }
    const double angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    rotation_series(angle, &a, &b, &c);
    cross(w, v, wv);
    cross(w, wv, wwv);
    struct ndt_pose out;
    const double half = angle < 1e-3 ? 0.5 - angle * angle / 48 : sin(angle / 2) / angle;
    for (int i = 0; i < 3; i++) {
        out.t_m[i] = v[i] + b * wv[i] + c * wwv[i];
        out.q_xyzw[i] = half * w[i];
    }
    out.q_xyzw[3] = cos(angle / 2);
    (void)ndt_pose_normalize(&out);
    return out;
}

/* Rotation vector of a unit quaternion, angle in [0, pi]. */
static double rotation_vector(const double q[4], double w[3])
{
    const double sign = q[3] < 0 ? -1 : 1;
    const double s = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
    const double angle = 2 * atan2(s, sign * q[3]);
    const double scale = s < 1e-9 ? 2 * sign : sign * angle / s;
    for (int i = 0; i < 3; i++)
        w[i] = scale * q[i];
    return angle;
}

struct ndt_twist ndt_pose_log(const struct ndt_pose *pose, double dt_s)
{
    double w[3], wt[3], wwt[3], a, b, c;
    const double angle = rotation_vector(pose->q_xyzw, w);
    rotation_series(angle, &a, &b, &c);
    cross(w, pose->t_m, wt);
    cross(w, wt, wwt);
    /* V^-1 = I - W/2 + k W^2 with k = (1/x^2)(1 - a / (2 b)) */
    const double k = angle < 1e-3 ? 1.0 / 12 + angle * angle / 720 : (1 - a / (2 * b)) / (angle * angle);
    struct ndt_twist out;
    for (int i = 0; i < 3; i++) {
        out.v_mps[i] = (pose->t_m[i] - 0.5 * wt[i] + k * wwt[i]) / dt_s;
        out.w_radps[i] = w[i] / dt_s;
    }
    return out;
}

struct ndt_pose ndt_pose_interpolate(const struct ndt_pose *a, const struct ndt_pose *b, double s)
{
    const struct ndt_pose step = ndt_pose_between(a, b);
    const struct ndt_twist twist = ndt_pose_log(&step, 1.0);
    const struct ndt_pose part = ndt_pose_exp(&twist, s);
    return ndt_pose_compose(a, &part);
}

double ndt_pose_distance_m(const struct ndt_pose *a, const struct ndt_pose *b)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (a->t_m[i] - b->t_m[i]) * (a->t_m[i] - b->t_m[i]);
    return sqrt(sum);
}

double ndt_pose_angle_rad(const struct ndt_pose *a, const struct ndt_pose *b)
{
    double inverse[4] = {-a->q_xyzw[0], -a->q_xyzw[1], -a->q_xyzw[2], a->q_xyzw[3]};
    double q[4], w[3];
    quaternion_multiply(inverse, b->q_xyzw, q);
    return rotation_vector(q, w);
}

void ndt_pose_adjoint(const struct ndt_pose *T, double Ad[36])
{
    const double *t = T->t_m;
    const double cross[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0};
    double R[9];
    ndt_pose_rotation(T, R);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            Ad[6 * i + j] = Ad[6 * (3 + i) + 3 + j] = R[3 * i + j];
            Ad[6 * (3 + i) + j] = 0;
            Ad[6 * i + 3 + j] = cross[3 * i] * R[j] + cross[3 * i + 1] * R[3 + j] + cross[3 * i + 2] * R[6 + j];
        }
}

struct ndt_twist ndt_pose_carried_twist(const struct ndt_pose *T_base_sensor, const struct ndt_twist *twist)
{
    const struct ndt_pose T_sensor_base = ndt_pose_inverse(T_base_sensor);
    double Ad[36], in[6], out[6];
    struct ndt_twist moved;
    ndt_pose_adjoint(&T_sensor_base, Ad);
    memcpy(in, twist->v_mps, sizeof(twist->v_mps));
    memcpy(in + 3, twist->w_radps, sizeof(twist->w_radps));
    ndt_multiply(6, 6, 1, Ad, in, out);
    memcpy(moved.v_mps, out, sizeof(moved.v_mps));
    memcpy(moved.w_radps, out + 3, sizeof(moved.w_radps));
    return moved;
}

struct ndt_pose ndt_pose_from_rpy(const double t_m[3], const double rpy_rad[3])
{
    const double sr = sin(rpy_rad[0] / 2), cr = cos(rpy_rad[0] / 2), sp = sin(rpy_rad[1] / 2);
    const double cp = cos(rpy_rad[1] / 2), sy = sin(rpy_rad[2] / 2), cy = cos(rpy_rad[2] / 2);
    return (struct ndt_pose){.t_m = {t_m[0], t_m[1], t_m[2]},
                             .q_xyzw = {sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
                                        cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy}};
}

double ndt_pose_squared_mahalanobis(const struct ndt_pose *mean, const double covariance[36],
                                    const struct ndt_pose *pose)
{
    const struct ndt_pose off = ndt_pose_between(mean, pose);
    const struct ndt_twist error = ndt_pose_log(&off, 1);
    double factor[36], z[6], solved[6], sum = 0;
    memcpy(z, error.v_mps, sizeof(error.v_mps));
    memcpy(z + 3, error.w_radps, sizeof(error.w_radps));
    memcpy(factor, covariance, sizeof(factor));
    memcpy(solved, z, sizeof(solved));
    if (!ndt_factor_cholesky(6, factor))
        return INFINITY;
    ndt_solve_cholesky(6, factor, solved);
    for (int i = 0; i < 6; i++)
        sum += z[i] * solved[i];
    return sum;
}

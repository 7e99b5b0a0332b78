/** @file
 * @brief Score, gradient and Hessian of one point, shared by gcc and nvcc: a template over the real type.
 *
 * Define NDT_REAL (float, double), NDT_NAME(x) (a suffix per type), NDT_DEVICE (empty for C), NDT_NAME(ndt_exp)
 * and NDT_NAME(ndt_root) before including it. Source: Magnusson 2009, eq. 6.9-6.21, with the signs corrected.
 *
 * With q = x' - m, u = B q, E = exp(-d2/2 q.u), w = d1 d2 E, the Jacobian J (3x6) and second derivatives H
 * depend on the point only, so the voxels are summed first:
 *     A = sum w u,  S = sum w (B - d2 u u^T),  g = J^T A,  H = J^T S J + sum_c A_c H_c. */
#if !defined(NDT_REAL) || !defined(NDT_NAME) || !defined(NDT_DEVICE)
#error "define NDT_REAL, NDT_NAME and NDT_DEVICE before including point_math.h"
#endif

#include "ndt/eval.h"

/** Sines and cosines of (a, b, c): the 24 bytes (as float) that an evaluation needs besides the translation. */
struct NDT_NAME(ndt_angles) {
    NDT_REAL sx, cx, sy, cy, sz, cz;
};

/** Rows whose dot products with a point are the Jacobian and the second derivatives. */
struct NDT_NAME(ndt_tables) {
    NDT_REAL R[9];
    NDT_REAL j[8][3];  /**< j0 .. j7 */
    NDT_REAL h[15][3]; /**< a2 a3 b2 b3 c2 c3 d1 d2 d3 e1 e2 e3 f1 f2 f3 */
};

static inline NDT_DEVICE void NDT_NAME(ndt_set_row)(NDT_REAL row[3], NDT_REAL x, NDT_REAL y, NDT_REAL z)
{
    row[0] = x;
    row[1] = y;
    row[2] = z;
}

static inline NDT_DEVICE void NDT_NAME(ndt_set_tables)(struct NDT_NAME(ndt_tables) * t,
                                                       const struct NDT_NAME(ndt_angles) * s)
{
    const NDT_REAL sx = s->sx, cx = s->cx, sy = s->sy, cy = s->cy, sz = s->sz, cz = s->cz;
    NDT_NAME(ndt_set_row)(t->R, cy * cz, -cy * sz, sy);
    NDT_NAME(ndt_set_row)(t->R + 3, cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy);
    NDT_NAME(ndt_set_row)(t->R + 6, sx * sz - cx * sy * cz, sx * cz + cx * sy * sz, cx * cy);
    NDT_NAME(ndt_set_row)(t->j[0], -sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, -cx * cy);
    NDT_NAME(ndt_set_row)(t->j[1], cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy);
    NDT_NAME(ndt_set_row)(t->j[2], -sy * cz, sy * sz, cy);
    NDT_NAME(ndt_set_row)(t->j[3], sx * cy * cz, -sx * cy * sz, sx * sy);
    NDT_NAME(ndt_set_row)(t->j[4], -cx * cy * cz, cx * cy * sz, -cx * sy);
    NDT_NAME(ndt_set_row)(t->j[5], -cy * sz, -cy * cz, 0);
    NDT_NAME(ndt_set_row)(t->j[6], cx * cz - sx * sy * sz, -cx * sz - sx * sy * cz, 0);
    NDT_NAME(ndt_set_row)(t->j[7], sx * cz + cx * sy * sz, cx * sy * cz - sx * sz, 0);
    NDT_NAME(ndt_set_row)(t->h[0], -cx * sz - sx * sy * cz, -cx * cz + sx * sy * sz, sx * cy);
    NDT_NAME(ndt_set_row)(t->h[1], -sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, -cx * cy);
    NDT_NAME(ndt_set_row)(t->h[2], cx * cy * cz, -cx * cy * sz, cx * sy);
    NDT_NAME(ndt_set_row)(t->h[3], sx * cy * cz, -sx * cy * sz, sx * sy);
    NDT_NAME(ndt_set_row)(t->h[4], -sx * cz - cx * sy * sz, sx * sz - cx * sy * cz, 0);
    NDT_NAME(ndt_set_row)(t->h[5], cx * cz - sx * sy * sz, -cx * sz - sx * sy * cz, 0);
    NDT_NAME(ndt_set_row)(t->h[6], -cy * cz, cy * sz, -sy);
    NDT_NAME(ndt_set_row)(t->h[7], -sx * sy * cz, sx * sy * sz, sx * cy);
    NDT_NAME(ndt_set_row)(t->h[8], cx * sy * cz, -cx * sy * sz, -cx * cy);
    NDT_NAME(ndt_set_row)(t->h[9], sy * sz, sy * cz, 0);
    NDT_NAME(ndt_set_row)(t->h[10], -sx * cy * sz, -sx * cy * cz, 0);
    NDT_NAME(ndt_set_row)(t->h[11], cx * cy * sz, cx * cy * cz, 0);
    NDT_NAME(ndt_set_row)(t->h[12], -cy * cz, cy * sz, 0);
    NDT_NAME(ndt_set_row)(t->h[13], -cx * sz - sx * sy * cz, -cx * cz + sx * sy * sz, 0);
    NDT_NAME(ndt_set_row)(t->h[14], -sx * sz + cx * sy * cz, -sx * cz - cx * sy * sz, 0);
}

static inline NDT_DEVICE NDT_REAL NDT_NAME(ndt_dot)(const NDT_REAL a[3], const NDT_REAL b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/** Sums of one point over its voxels. */
struct NDT_NAME(ndt_point_sums) {
    NDT_REAL score, best; /**< sum and maximum of E; times -d1 they are scores */
    NDT_REAL A[3], S[6];
};

/** Adds one pair of point and voxel; q = x' - mean, B = inverse covariance (upper triangle). Returns E. */
static inline NDT_DEVICE NDT_REAL NDT_NAME(ndt_add_pair)(struct NDT_NAME(ndt_point_sums) * p, const NDT_REAL q[3],
                                                         const NDT_REAL B[6], NDT_REAL d1d2, NDT_REAL d2)
{
    const NDT_REAL u[3] = {B[0] * q[0] + B[1] * q[1] + B[2] * q[2], B[1] * q[0] + B[3] * q[1] + B[4] * q[2],
                           B[2] * q[0] + B[4] * q[1] + B[5] * q[2]};
    const NDT_REAL e = NDT_NAME(ndt_exp)(-d2 / 2 * NDT_NAME(ndt_dot)(q, u));
    const NDT_REAL w = d1d2 * e;
    p->score += e;
    p->best = e > p->best ? e : p->best;
    for (int i = 0, at = 0; i < 3; i++) {
        p->A[i] += w * u[i];
        for (int j = i; j < 3; j++, at++)
            p->S[at] += w * B[at] - w * u[i] * d2 * u[j];
    }
    return e;
}

/** Jacobian columns 3..5 (by a, b, c) of x' at the original point x; the first three are the unit vectors. */
static inline NDT_DEVICE void NDT_NAME(ndt_jacobian)(const struct NDT_NAME(ndt_tables) * t, const NDT_REAL x[3],
                                                     NDT_REAL J[3][3])
{
    J[0][0] = 0;
    J[0][1] = NDT_NAME(ndt_dot)(t->j[0], x);
    J[0][2] = NDT_NAME(ndt_dot)(t->j[1], x);
    for (int i = 0; i < 3; i++) {
        J[1][i] = NDT_NAME(ndt_dot)(t->j[2 + i], x);
        J[2][i] = NDT_NAME(ndt_dot)(t->j[5 + i], x);
    }
}

/** Second derivatives of x' by (a,a) (a,b) (a,c) (b,b) (b,c) (c,c). */
static inline NDT_DEVICE void NDT_NAME(ndt_point_hessian)(const struct NDT_NAME(ndt_tables) * t,
                                                          const NDT_REAL x[3], NDT_REAL H[6][3])
{
    for (int k = 0; k < 3; k++) {
        H[k][0] = 0;
        H[k][1] = NDT_NAME(ndt_dot)(t->h[2 * k], x);
        H[k][2] = NDT_NAME(ndt_dot)(t->h[2 * k + 1], x);
        for (int i = 0; i < 3; i++)
            H[3 + k][i] = NDT_NAME(ndt_dot)(t->h[6 + 3 * k + i], x);
    }
}

/** Adds gradient (6) and Hessian (upper triangle, 21) of one point to g and H. */
static inline NDT_DEVICE void NDT_NAME(ndt_add_point)(const struct NDT_NAME(ndt_tables) * t, const NDT_REAL x[3],
                                                      const struct NDT_NAME(ndt_point_sums) * p, NDT_REAL g[6],
                                                      NDT_REAL H[21])
{
    const NDT_REAL S[3][3] = {
        {p->S[0], p->S[1], p->S[2]}, {p->S[1], p->S[3], p->S[4]}, {p->S[2], p->S[4], p->S[5]}};
    const int at_t[3] = {0, 6, 11}, at_r[3] = {15, 18, 20};
    NDT_REAL J[3][3], SJ[3][3], P[6][3];
    NDT_NAME(ndt_jacobian)(t, x, J);
    NDT_NAME(ndt_point_hessian)(t, x, P);
    for (int i = 0; i < 3; i++) {
        g[i] += p->A[i];
        g[3 + i] += NDT_NAME(ndt_dot)(J[i], p->A);
        for (int k = 0; k < 3; k++)
            SJ[i][k] = NDT_NAME(ndt_dot)(S[k], J[i]);
    }
    for (int i = 0, at = 0; i < 3; i++) {
        for (int j = i; j < 3; j++, at++) {
            H[at_t[i] + j - i] += S[i][j];
            H[at_r[i] + j - i] += NDT_NAME(ndt_dot)(J[i], SJ[j]) + NDT_NAME(ndt_dot)(P[at], p->A);
        }
        for (int j = 0; j < 3; j++)
            H[at_t[i] + 3 - i + j] += SJ[j][i];
    }
}

/* ---- information, see struct ndt_information ---- */

/** cos(acos(r) / 3) by t = sqrt((1 + r) / 2) in 0 .. 1, where it is smooth: Chebyshev polynomial, within 2e-7. */
static inline NDT_DEVICE NDT_REAL NDT_NAME(ndt_third_of_angle)(NDT_REAL t)
{
    const NDT_REAL factors[6] = {(NDT_REAL)0.01050175,  (NDT_REAL)-0.02639975, (NDT_REAL)0.05147476,
                                 (NDT_REAL)-0.11080547, (NDT_REAL)0.5773319,   (NDT_REAL)0.50000019};
    NDT_REAL cosine = (NDT_REAL)-0.00210349;
    for (int i = 0; i < 6; i++)
        cosine = t * cosine + factors[i];
    return cosine;
}

/** Adds w ((b3 - b2) n n^T - s^2 b3 (I - n n^T)) of the inverse covariance B to K, upper triangles.
 *
 * Without an eigenvector: with D = B - trace/3 I, whose eigenvalues are l1 <= l2 <= l3, by Cayley and Hamilton
 * n n^T = (D - l1 I)(D - l2 I) / ((l3 - l1)(l3 - l2)) = (D^2 + l3 D + (l3^2 - h) I) / (3 l3^2 - h), 2 h the trace
 * of D^2. The characteristic polynomial l^3 - h l - det D has the root l3 = 2 s cos(acos(r) / 3) with s^2 = h / 3
 * and r = det D / (2 s^3); in double, Newton's method improves it. */
static inline NDT_DEVICE void NDT_NAME(ndt_add_normal)(NDT_REAL K[6], const NDT_REAL B[6], NDT_REAL w)
{
    const NDT_REAL third = (B[0] + B[3] + B[5]) / 3, tiny = (NDT_REAL)1e-30;
    const NDT_REAL a = B[0] - third, b = B[1], c = B[2], d = B[3] - third, e = B[4], f = B[5] - third;
    const NDT_REAL squared[6] = {a * a + b * b + c * c, c * e - b * f, b * e - c * d,
                                 b * b + d * d + e * e, b * c - a * e, c * c + e * e + f * f};
    const NDT_REAL h = (squared[0] + squared[3] + squared[5]) / 2, s = NDT_NAME(ndt_root)(h / 3);
    const NDT_REAL det = a * (squared[0] - h) + b * squared[1] + c * squared[2], cubed = h / 3 * s;
    const NDT_REAL t2 = det / (cubed > tiny ? cubed : tiny) / 4 + (NDT_REAL)0.5;
    NDT_REAL l3 = 2 * s * NDT_NAME(ndt_third_of_angle)(NDT_NAME(ndt_root)(t2 > 0 ? t2 : 0));
    for (int i = 0; i < (sizeof(NDT_REAL) > 4 ? 2 : 0); i++) {
        const NDT_REAL slope = 3 * l3 * l3 - h, least = (NDT_REAL)1e-7 * h + tiny;
        l3 -= ((l3 * l3 - h) * l3 - det) / (slope > least ? slope : least);
    }
    const NDT_REAL square = h - (NDT_REAL)0.75 * l3 * l3, half = NDT_NAME(ndt_root)(square > 0 ? square : 0);
    const NDT_REAL b3 = l3 + third, turn = (NDT_REAL)(NDT_NORMAL_DEVIATION_RAD * NDT_NORMAL_DEVIATION_RAD) * b3;
    const NDT_REAL least_gap = (NDT_REAL)1e-3 * b3, least_apart = (NDT_REAL)1e-6 * b3;
    NDT_REAL gap = (NDT_REAL)1.5 * l3 - half, apart = (NDT_REAL)1.5 * l3 + half;
    gap = gap > least_gap ? gap : least_gap;
    apart = apart > least_apart ? apart : least_apart;
    const NDT_REAL along = w * (gap + turn) / (gap * apart > tiny ? gap * apart : tiny), within = w * turn;
    const NDT_REAL last = l3 * l3 - h;
    K[0] += along * (squared[0] + l3 * a + last) - within;
    K[1] += along * (squared[1] + l3 * b);
    K[2] += along * (squared[2] + l3 * c);
    K[3] += along * (squared[3] + l3 * d + last) - within;
    K[4] += along * (squared[4] + l3 * e);
    K[5] += along * (squared[5] + l3 * f + last) - within;
}

/** Adds a^k J^T K J of a point at x and time `a` to information[k], and a times its gradient to time_gradient. */
static inline NDT_DEVICE void NDT_NAME(ndt_add_information)(const struct NDT_NAME(ndt_tables) * t,
                                                            const NDT_REAL x[3], NDT_REAL a, const NDT_REAL A[3],
                                                            const NDT_REAL K6[6], NDT_REAL time_gradient[6],
                                                            NDT_REAL information[3][21])
{
    const NDT_REAL K[3][3] = {{K6[0], K6[1], K6[2]}, {K6[1], K6[3], K6[4]}, {K6[2], K6[4], K6[5]}};
    NDT_REAL J[6][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, KJ[3];
    NDT_NAME(ndt_jacobian)(t, x, J + 3);
    for (int i = 0, at = 0; i < 6; i++) {
        time_gradient[i] += a * NDT_NAME(ndt_dot)(J[i], A);
        for (int k = 0; k < 3; k++)
            KJ[k] = NDT_NAME(ndt_dot)(K[k], J[i]);
        for (int j = i; j < 6; j++, at++) {
            const NDT_REAL value = NDT_NAME(ndt_dot)(J[j], KJ);
            information[0][at] += value;
            information[1][at] += a * value;
            information[2][at] += a * a * value;
        }
    }
}

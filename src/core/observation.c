/* Weighing what an alignment observed; see ndt/observation.h. */
#include "ndt/observation.h"

#include <math.h>
#include <string.h>

#include "ndt/linalg.h"

/* Smallest curvature, relative to the largest, along which the step to the maximum of the score is computed. */
static const double CURVATURE_FLOOR = 1e-4;
/* A longer step leaves the region in which the score is a parabola: a prior that is wrong and too sure held the
 * pose far from the maximum. */
static const double MOST_STEP_M = 0.5;
/* Part of the information along normals that the curvature of the score has to reach. Usually it reaches 0.6 to
 * 0.9; less where points pull to different places, and next to nothing or below zero on the side of a peak. */
static const double BACKED_PART = 0.25;
/* Where every pivot is above this part of the largest curvature, so is every eigenvalue, nearly. */
static const double SAFE_PIVOT = 1e-3;

void ndt_observation_noise_default(struct ndt_observation_noise *noise)
{
    *noise = (struct ndt_observation_noise){
        .floor_m = 0.003, .floor_rad = 0.0002, .discount = 1e-3, .twist_discount = 1e-2, .correlation = 4.0};
}

/* Units in which translations and rotations, pose and twist are comparable: 1 for metres, `arm_m` for radians,
 * `span_s` for the twist. */
struct units {
    double pose[6];
    double span_s;
};

static double trace_of(const double A[36], int first)
{
    return A[7 * first] + A[7 * (first + 1)] + A[7 * (first + 2)];
}

static struct units units_of(const struct ndt_observation *observation)
{
    const double *A = observation->information[0], *D = observation->information[2];
    const double moved = trace_of(A, 0), turned = trace_of(A, 3);
    const double arm_m = moved > 0 && turned > 0 ? fmax(1, sqrt(turned / moved)) : 1;
    const double rate = trace_of(D, 0) / (moved > 0 ? moved : 1);
    struct units units = {.pose = {1, 1, 1, arm_m, arm_m, arm_m}, .span_s = rate > 1e-12 ? sqrt(rate) : 1};
    return units;
}

/* The joint information in these units, 12x12. */
static void join(const struct ndt_observation *observation, const struct units *units, double joint[144])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            const double unit = 1 / (units->pose[i] * units->pose[j]), s = 1 / units->span_s;
            joint[12 * i + j] = unit * observation->information[0][6 * i + j];
            joint[12 * i + 6 + j] = joint[12 * (6 + i) + j] = s * unit * observation->information[1][6 * i + j];
            joint[12 * (6 + i) + 6 + j] = s * s * unit * observation->information[2][6 * i + j];
        }
}

/* Raises negative eigenvalues to zero. Usually there are none. */
static void make_semidefinite(double joint[144])
{
    double root[144], values[12], V[144];
    memcpy(root, joint, sizeof(root));
    for (int i = 0; i < 12; i++)
        root[13 * i] *= 1 + 1e-9;
    if (ndt_factor_cholesky(12, root))
        return;
    ndt_eigen_full(12, joint, values, V);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++) {
            double sum = 0;
            for (int k = 0; k < 12; k++)
                sum += V[12 * i + k] * fmax(values[k], 0) * V[12 * j + k];
            joint[12 * i + j] = sum;
        }
}

/* The curvature of the score in these units. */
static void scale_curvature(const struct ndt_observation *observation, const struct units *units, double H[36])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            H[6 * i + j] = observation->curvature[6 * i + j] / (units->pose[i] * units->pose[j]);
}

/* out = V diag(scale) V^T */
static void compose(const double V[36], const double scale[6], double out[36])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double sum = 0;
            for (int k = 0; k < 6; k++)
                sum += V[6 * i + k] * scale[k] * V[6 * j + k];
            out[6 * i + j] = sum;
        }
}

/* Whether the curvature H reaches BACKED_PART of the information A in every direction. */
static int is_backed(const double H[36], const double A[36])
{
    double rest[36];
    for (int i = 0; i < 36; i++)
        rest[i] = H[i] - BACKED_PART * A[i];
    return ndt_factor_cholesky(6, rest);
}

/* Reduces the information W about the pose to what the curvature of the score backs: W <- S^T W S. The directions
 * are those in which the curvature H and the information A, both in units, differ most: the eigenvectors of H where
 * A is whitened (of an eigenvalue of A below `least` of the largest: as if it were that).
 *
 * A strong prior holds the alignment on the side of a peak. The step to the maximum is long there, H^-1 g with H
 * near zero, and the information A along it would be that of a peak: the pull of the scan, A H^-1 g, would be many
 * times its gradient g. Near a wall, with a gyro, that tilted poses by 6 deg that were aligned to 0.5 deg. */
static void fade_unbacked(const double H[36], const double A[36], const struct units *units, double least,
                          double W[36])
{
    double l[6], V[36], G[36], inverse[36], white[36], values[6], U[36], root[6], T[36], GT[36], S[36], before[36];
    ndt_eigen_full(6, A, l, V);
    if (!(l[5] > 0))
        return;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            const double size = sqrt(fmax(l[k], least * l[5]));
            G[6 * i + k] = V[6 * i + k] / size;
            inverse[6 * k + i] = V[6 * i + k] * size;
        }
    ndt_congruence(6, 6, G, H, white);
    ndt_eigen_full(6, white, values, U);
    if (values[0] >= BACKED_PART)
        return;
    for (int k = 0; k < 6; k++)
        root[k] = sqrt(fmin(fmax(values[k], 0) / BACKED_PART, 1));
    compose(U, root, T);
    ndt_multiply(6, 6, 6, G, T, GT);
    ndt_multiply(6, 6, 6, GT, inverse, S);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            S[6 * i + j] *= units->pose[j] / units->pose[i];
    memcpy(before, W, sizeof(before));
    ndt_congruence(6, 6, S, before, W);
}

static void limit_step(double step[6])
{
    double norm2 = 0;
    for (int i = 0; i < 6; i++)
        norm2 += step[i] * step[i];
    for (int i = 0; i < 6 && norm2 > MOST_STEP_M * MOST_STEP_M; i++)
        step[i] *= MOST_STEP_M / sqrt(norm2);
}

/* The step H^-1 g with the size of the curvature at least CURVATURE_FLOOR of the largest, and BACKED_PART of the
 * information A; where all of it is safely above, by a Cholesky factor. A strong prior can hold the search at a
 * saddle of the score: the size of a negative curvature keeps that step short. */
static void newton_step(const struct ndt_observation *observation, const struct units *units, const double H[36],
                        const double A[36], int backed, double step[6])
{
    double factor[36], gradient[6], values[6], V[36], in_V[36], along[6];
    double largest = 0, least = INFINITY;
    memcpy(factor, H, sizeof(factor));
    for (int i = 0; i < 6; i++) {
        gradient[i] = observation->gradient[i] / units->pose[i];
        largest = fmax(largest, H[7 * i]);
    }
    const int is_definite = backed && ndt_factor_cholesky(6, factor);
    for (int i = 0; i < 6; i++)
        least = is_definite ? fmin(least, factor[7 * i] * factor[7 * i]) : 0;
    memcpy(step, gradient, sizeof(gradient));
    if (least > SAFE_PIVOT * largest) {
        ndt_solve_cholesky(6, factor, step);
        limit_step(step);
    } else {
        ndt_eigen_full(6, H, values, V);
        ndt_congruence(6, 6, V, A, in_V);
        largest = fmax(fabs(values[0]), fabs(values[5]));
        ndt_multiply_transposed(6, 6, 1, V, gradient, along);
        for (int k = 0; k < 6; k++) {
            const double floor = fmax(CURVATURE_FLOOR * largest, BACKED_PART * in_V[7 * k]);
            const double curvature = fmax(fabs(values[k]), floor);
            along[k] = largest > 0 ? fmax(-MOST_STEP_M, fmin(along[k] / curvature, MOST_STEP_M)) : 0;
        }
        ndt_multiply(6, 6, 1, V, along, step);
    }
    for (int i = 0; i < 6; i++)
        step[i] /= units->pose[i];
}

/* W = (A^-1 + F)^-1 = F^-1/2 K (I + K)^-1 F^-1/2 with K = F^1/2 A F^1/2, also for a singular A and a tiny F. */
static void limit_information(const double A[36], const struct ndt_observation_noise *noise, double W[36])
{
    double K[36], sum[36], part[36], f[6];
    for (int i = 0; i < 6; i++)
        f[i] = fmax(i < 3 ? noise->floor_m : noise->floor_rad, 1e-9);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            K[6 * i + j] = f[i] * A[6 * i + j] * f[j];
            sum[6 * i + j] = K[6 * i + j] + (i == j);
        }
    memset(W, 0, 36 * sizeof(*W));
    if (!ndt_invert_symmetric(6, sum, sum))
        return;
    ndt_multiply(6, 6, 6, K, sum, part);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            W[6 * i + j] = 0.5 * (part[6 * i + j] + part[6 * j + i]) / (f[i] * f[j]);
}

/* How the twist moves the pose, M = (S A S)^+ S C, and the part of the joint information about the twist that the
 * pose does not use up, T2 = D - C^T A^+ C, in the units of `joint`. In the eigenvectors V of A, with eigenvalues l
 * of which the part f counts, S^2 = V diag(f) V^T; f = 0 leaves a direction out. */
static void split(const double V[36], const double l[6], const double f[6], const double joint[144], double M[36],
                  double T2[36])
{
    double C[36], in_V[36], scaled[36];
    for (int i = 0; i < 6; i++) {
        memcpy(C + 6 * i, joint + 12 * i + 6, 6 * sizeof(double));
        memcpy(T2 + 6 * i, joint + 12 * (6 + i) + 6, 6 * sizeof(double));
    }
    ndt_multiply_transposed(6, 6, 6, V, C, in_V);
    for (int k = 0; k < 6; k++)
        for (int j = 0; j < 6; j++)
            scaled[6 * k + j] = f[k] > 0 ? in_V[6 * k + j] / (sqrt(f[k]) * l[k]) : 0;
    ndt_multiply(6, 6, 6, V, scaled, M);
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < 6 && f[k] > 0; i++)
            for (int j = 0; j < 6; j++)
                T2[6 * i + j] -= in_V[6 * k + i] * in_V[6 * k + j] / l[k];
}

/* Discounts directions of the twist as those of the pose, which the scan hardly observes: M <- M S, T2 <- S T2 S, S
 * = V diag(f^1/2) V^T. */
static void discount_twist(const double V[36], const double f[6], double M[36], double T2[36], double S[36])
{
    double root[6], before[36];
    for (int k = 0; k < 6; k++)
        root[k] = sqrt(f[k]);
    compose(V, root, S);
    memcpy(before, M, sizeof(before));
    ndt_multiply(6, 6, 6, before, S, M);
    memcpy(before, T2, sizeof(before));
    ndt_congruence(6, 6, S, before, T2);
}

/* Fades out what a sweep hardly tells of the twist: in the eigenvectors V of its information T2, an eigenvalue l
 * counts f = l^2 / (l^2 + (discount l_max)^2) of itself. S <- V diag(f) V^T S, for the gradient: the twist that the
 * sweep tells stays, and weighs less.
 *
 * Between shelves the information about the velocity along the aisle is 0.002 of that about its best direction.
 * Systematic errors of the other directions (map, calibration, the linear model) end up in it: at the exact pose
 * and twist, a sweep tells velocities that are 7 m/s wrong, with a deviation of 1.1 m/s. */
static void fade_twist(double discount, double T2[36], double S[36])
{
    double values[6], V[36], root[6], fade[36], before[36];
    memcpy(before, T2, sizeof(before));
    ndt_eigen_full(6, before, values, V);
    const double small = discount * values[5];
    for (int k = 0; k < 6; k++) {
        const double l = fmax(values[k], 0), both = sqrt(l * l + small * small);
        root[k] = both > 0 ? l / both : 0;
    }
    compose(V, root, fade);
    ndt_congruence(6, 6, fade, before, T2);
    for (int k = 0; k < 2; k++) { /* fade is the root of V diag(f) V^T */
        memcpy(before, S, sizeof(before));
        ndt_multiply(6, 6, 6, fade, before, S);
    }
}

/* S (g_nu - C^T H^-1 g), over the correlation; S: of discount_twist and fade_twist. */
static void set_twist_gradient(const struct ndt_observation *observation, const struct units *units,
                               const double S[36], double correlation, struct ndt_weighed_observation *out)
{
    double gradient[6];
    for (int i = 0; i < 6; i++) {
        gradient[i] = observation->time_gradient[i];
        for (int k = 0; k < 6; k++)
            gradient[i] -= observation->information[1][6 * k + i] * out->step[k];
        gradient[i] /= units->pose[i] * correlation;
    }
    ndt_multiply(6, 6, 1, S, gradient, out->twist_gradient);
    for (int i = 0; i < 6; i++)
        out->twist_gradient[i] *= units->pose[i];
}

void ndt_observation_weigh(const struct ndt_observation *observation, const struct ndt_observation_noise *noise,
                           struct ndt_weighed_observation *out)
{
    const struct units units = units_of(observation);
    double joint[144], H[36], A[36], W[36], values[6], V[36], part[6], kept[6], S[36], M[36], T2[36];
    join(observation, &units, joint);
    make_semidefinite(joint);
    scale_curvature(observation, &units, H);
    for (int i = 0; i < 6; i++)
        memcpy(A + 6 * i, joint + 12 * i, 6 * sizeof(double));
    const int backed = is_backed(H, A);
    newton_step(observation, &units, H, A, backed, out->step);
    ndt_eigen_full(6, A, values, V);
    const double largest = fmax(values[5], 0), small = noise->discount * largest;
    out->weakest = largest > 0 ? fmax(values[0], 0) / largest : 0;
    for (int k = 0; k < 6; k++) {
        const double l = fmax(values[k], 0), f = largest > 0 ? l * l / (l * l + small * small) : 0;
        kept[k] = f * l;
        part[k] = kept[k] > 1e-12 * largest ? f : 0;
    }
    split(V, values, part, joint, M, T2);
    discount_twist(V, part, M, T2, S);
    fade_twist(noise->twist_discount, T2, S);
    compose(V, kept, W);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            const double unit = units.pose[i] * units.pose[j];
            W[6 * i + j] *= unit;
            out->twist_to_pose[6 * i + j] = M[6 * i + j] * units.span_s * units.pose[j] / units.pose[i];
            out->twist_information[6 * i + j] =
                T2[6 * i + j] * unit * units.span_s * units.span_s / noise->correlation;
        }
    limit_information(W, noise, out->claimed);
    memcpy(out->information, out->claimed, sizeof(out->information));
    if (!backed)
        fade_unbacked(H, A, &units, noise->discount, out->information);
    set_twist_gradient(observation, &units, S, noise->correlation, out);
}

void ndt_observation_directions(const struct ndt_observation *observation, double ratio[6], double axes[36])
{
    const struct units units = units_of(observation);
    double A[36], values[6], V[36];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            A[6 * i + j] = observation->information[0][6 * i + j] / (units.pose[i] * units.pose[j]);
    ndt_eigen_full(6, A, values, V);
    for (int k = 0; k < 6; k++) {
        ratio[k] = values[5] > 0 ? fmax(values[k], 0) / values[5] : 0;
        for (int i = 0; i < 6; i++)
            axes[6 * k + i] = V[6 * i + k] * units.pose[i];
    }
}

/* The axes are rows of V^T U, the steps columns of U^-1 V, with U = diag(units) and V orthogonal. */
void ndt_observation_step(const double axes[36], int k, double step[6])
{
    for (int i = 0; i < 6; i++) {
        double square = 0; /* of the unit: the length of a column of V^T U */
        for (int row = 0; row < 6; row++)
            square += axes[6 * row + i] * axes[6 * row + i];
        step[i] = square > 0 ? axes[6 * k + i] / square : 0;
    }
}

void ndt_observation_forget(struct ndt_observation *observation, const double axis[6], const double step[6])
{
    double rest[36], vector[6]; /* rest: I - step axis^T, an error without its part along the direction */
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            rest[6 * i + j] = (i == j) - step[i] * axis[j];
    memcpy(vector, observation->gradient, sizeof(vector));
    ndt_multiply_transposed(6, 6, 1, rest, vector, observation->gradient);
    memcpy(vector, observation->time_gradient, sizeof(vector));
    ndt_multiply_transposed(6, 6, 1, rest, vector, observation->time_gradient);
    double matrix[36];
    memcpy(matrix, observation->curvature, sizeof(matrix));
    ndt_congruence(6, 6, rest, matrix, observation->curvature);
    for (int k = 0; k < 3; k++) {
        memcpy(matrix, observation->information[k], sizeof(matrix));
        ndt_congruence(6, 6, rest, matrix, observation->information[k]);
    }
}

/* An error d of T_map_body is an error Ad(T_sensor_body) d of T_map_sensor, and twists transform alike. */
void ndt_observation_to_body(const struct ndt_observation *observation, const struct ndt_pose *T_body_sensor,
                             struct ndt_observation *out)
{
    static const struct ndt_pose same = {.q_xyzw = {0, 0, 0, 1}};
    const struct ndt_pose T_sensor_body = ndt_pose_inverse(T_body_sensor);
    const struct ndt_observation in = *observation;
    *out = in;
    if (memcmp(T_body_sensor, &same, sizeof(same)) == 0)
        return;
    double Ad[36];
    ndt_pose_adjoint(&T_sensor_body, Ad);
    ndt_multiply_transposed(6, 6, 1, Ad, in.gradient, out->gradient);
    ndt_multiply_transposed(6, 6, 1, Ad, in.time_gradient, out->time_gradient);
    ndt_congruence(6, 6, Ad, in.curvature, out->curvature);
    for (int k = 0; k < 3; k++)
        ndt_congruence(6, 6, Ad, in.information[k], out->information[k]);
}

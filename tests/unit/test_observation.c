/* Tests of the observation of an alignment: weighing, marginalisation and change of frame against brute force. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/observation.h"
#include "ndt/random.h"
#include "run_tests.h"

enum { POINTS = 60 };

/* A linear scan: point k at p says that (R d + n . residual) ... with weight 1 along its normal; its row is
 * J (d + time dv) = residual. */
struct point {
    double p_m[3], normal[3], time_s, residual_m, weight;
};

static struct ndt_random random_state;
static struct ndt_observation_noise noise;
static struct point points[POINTS];
static struct ndt_weighed_observation weighed;

static void setup(void)
{
    random_state = (struct ndt_random){23};
    ndt_observation_noise_default(&noise);
    memset(&weighed, 0x55, sizeof(weighed));
}

static void direction(double out[3])
{
    double norm = 0;
    for (int i = 0; i < 3; i++)
        out[i] = ndt_random_normal(&random_state);
    norm = sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2]);
    for (int i = 0; i < 3; i++)
        out[i] /= norm;
}

/* Points around the sensor at all times of a sweep of 0.1 s. */
static void make_points(void)
{
    for (int k = 0; k < POINTS; k++) {
        struct point *point = &points[k];
        direction(point->normal);
        for (int i = 0; i < 3; i++)
            point->p_m[i] = ndt_random_between(&random_state, -20, 20);
        point->time_s = ndt_random_between(&random_state, -0.05, 0.05);
        point->residual_m = ndt_random_between(&random_state, -0.05, 0.05);
        point->weight = ndt_random_between(&random_state, 50, 150);
    }
}

/* Jacobian of d in T Exp(d): n . (rho + phi x p). */
static void row_of(const struct point *point, double J[6])
{
    const double *p = point->p_m, *n = point->normal;
    const double row[6] = {
        n[0], n[1], n[2], p[1] * n[2] - p[2] * n[1], p[2] * n[0] - p[0] * n[2], p[0] * n[1] - p[1] * n[0]};
    memcpy(J, row, sizeof(row));
}

static struct ndt_observation observe(const struct point *list)
{
    struct ndt_observation out = {0};
    for (int k = 0; k < POINTS; k++) {
        const double time_s = list[k].time_s, w = list[k].weight;
        double J[6];
        row_of(&list[k], J);
        for (int i = 0; i < 6; i++) {
            out.gradient[i] += J[i] * w * list[k].residual_m;
            out.time_gradient[i] += time_s * J[i] * w * list[k].residual_m;
            for (int j = 0; j < 6; j++) {
                const double part = J[i] * w * J[j];
                out.curvature[6 * i + j] += part;
                out.information[0][6 * i + j] += part;
                out.information[1][6 * i + j] += time_s * part;
                out.information[2][6 * i + j] += time_s * time_s * part;
            }
        }
    }
    return out;
}

/* Gauss-Jordan with pivots: x = A^-1 B, B n x m. */
static void solve_long(int n, int m, const long double *A, const long double *B, long double *x)
{
    long double work[12 * 24] = {0};
    const int width = n + m;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < width; j++)
            work[i * width + j] = j < n ? A[i * n + j] : B[i * m + j - n];
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c; i < n; i++)
            if (fabsl(work[i * width + c]) > fabsl(work[pivot * width + c]))
                pivot = i;
        for (int j = 0; j < width; j++) {
            const long double swap = work[c * width + j];
            work[c * width + j] = work[pivot * width + j];
            work[pivot * width + j] = swap;
        }
        ck_assert(work[c * width + c] != 0);
        for (int i = 0; i < n; i++) {
            const long double f = work[i * width + c] / work[c * width + c];
            for (int j = 0; j < width && i != c; j++)
                work[i * width + j] -= f * work[c * width + j];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            x[i * m + j] = work[i * width + n + j] / work[i * width + i];
}

static void close_to(double is, long double expected, double scale)
{
    ck_assert_msg(fabsl((long double)is - expected) <= 1e-9L * (long double)scale,
                  "%.17g, expected %.17Lg, scale %g", is, expected, scale);
}

/* Units in which the entries of a matrix over (pose or twist) compare. */
static double unit(int i)
{
    return i % 6 < 3 ? 1 : 20;
}

static void exact_noise(void)
{
    noise = (struct ndt_observation_noise){.floor_m = 0, .floor_rad = 0, .discount = 0, .correlation = 1};
}

FIXTURE(setup, NULL)

/* M^T W M plus the information about the twist alone is the whole joint information again. */
TEST(parts_add_up_to_the_joint_information)
{
    make_points();
    exact_noise();
    const struct ndt_observation observation = observe(points);
    ndt_observation_weigh(&observation, &noise, &weighed);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            long double C = 0, D = weighed.twist_information[6 * i + j];
            for (int k = 0; k < 6; k++) {
                C += (long double)weighed.information[6 * i + k] * weighed.twist_to_pose[6 * k + j];
                for (int l = 0; l < 6; l++)
                    D += (long double)weighed.twist_to_pose[6 * k + i] * weighed.information[6 * k + l] *
                         weighed.twist_to_pose[6 * l + j];
            }
            const double scale = 1e4 * unit(i) * unit(j);
            close_to(weighed.information[6 * i + j], observation.information[0][6 * i + j], scale);
            close_to((double)C, observation.information[1][6 * i + j], scale);
            close_to((double)D, observation.information[2][6 * i + j], scale);
        }
}

/* The motion of the pose by the twist, and the information about the twist when nothing is known about the pose:
 * A^-1 C and D - C^T A^-1 C, in long double. */
TEST(twist_against_brute_force_marginalisation)
{
    long double A[36], C[36], M[36];
    make_points();
    noise.discount = noise.twist_discount = 0;
    const struct ndt_observation observation = observe(points);
    ndt_observation_weigh(&observation, &noise, &weighed);
    for (int i = 0; i < 36; i++) {
        A[i] = observation.information[0][i];
        C[i] = observation.information[1][i];
    }
    solve_long(6, 6, A, C, M);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            long double T2 = observation.information[2][6 * i + j];
            for (int k = 0; k < 6; k++)
                T2 -= C[6 * k + i] * M[6 * k + j];
            close_to(weighed.twist_to_pose[6 * i + j], M[6 * i + j], unit(j) / unit(i));
            close_to(weighed.twist_information[6 * i + j], T2 / (long double)noise.correlation, unit(i) * unit(j));
        }
}

/* Pose and twist from the weighed parts are those of one least-squares problem over all points. */
TEST(solution_is_that_of_the_joint_problem)
{
    long double joint[144], right[12], expected[12], sums[144], sides[12], x[12];
    make_points();
    exact_noise();
    const struct ndt_observation o = observe(points);
    ndt_observation_weigh(&o, &noise, &weighed);
    memset(joint, 0, sizeof(joint));
    memset(right, 0, sizeof(right));
    for (int k = 0; k < POINTS; k++) {
        double J[6];
        long double row[12];
        row_of(&points[k], J);
        for (int i = 0; i < 12; i++)
            row[i] = i < 6 ? (long double)J[i] : (long double)points[k].time_s * J[i - 6];
        for (int i = 0; i < 12; i++) {
            right[i] += row[i] * points[k].weight * points[k].residual_m;
            for (int j = 0; j < 12; j++)
                joint[12 * i + j] += row[i] * points[k].weight * row[j];
        }
    }
    solve_long(12, 1, joint, right, expected);
    /* [W, W M; M^T W, M^T W M + T2] x = [W step; M^T W step + gradient] */
    const double *W = weighed.information, *M = weighed.twist_to_pose;
    for (int i = 0; i < 6; i++) {
        sides[i] = 0;
        sides[6 + i] = weighed.twist_gradient[i];
        for (int j = 0; j < 6; j++) {
            long double WM = 0, MWM = weighed.twist_information[6 * i + j];
            for (int k = 0; k < 6; k++) {
                WM += (long double)W[6 * i + k] * M[6 * k + j];
                for (int l = 0; l < 6; l++)
                    MWM += (long double)M[6 * k + i] * W[6 * k + l] * M[6 * l + j];
                sides[6 + i] += (long double)M[6 * k + i] * W[6 * k + j] * weighed.step[j];
            }
            sides[i] += (long double)W[6 * i + j] * weighed.step[j];
            sums[12 * i + j] = W[6 * i + j];
            sums[12 * i + 6 + j] = sums[12 * (6 + j) + i] = WM;
            sums[12 * (6 + i) + 6 + j] = MWM;
        }
    }
    solve_long(12, 1, sums, sides, x);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq_tol((double)x[i], (double)expected[i], i < 6 ? 1e-9 : 1e-7);
}

TEST(step_leads_to_the_maximum)
{
    const double there[6] = {0.01, -0.02, 0.005, 0.001, -0.0005, 0.002};
    make_points();
    struct ndt_observation observation = observe(points);
    ndt_multiply(6, 6, 1, observation.curvature, there, observation.gradient);
    ndt_observation_weigh(&observation, &noise, &weighed);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(weighed.step[i], there[i], 1e-12);
}

/* The step along an axis without curvature is that of a small curvature, and finite; at a saddle, where a strong
 * prior holds the search, it is short. */
TEST(step_along_flat_axes_is_bounded)
{
    const double flat[] = {0, 1e-3, -5}, least = 1e-4 * 100;
    for (size_t f = 0; f < sizeof(flat) / sizeof(flat[0]); f++) {
        struct ndt_observation observation = {.gradient = {1, 2, 0, 0, 0, 0}};
        for (int i = 0; i < 6; i++)
            observation.curvature[7 * i] = observation.information[0][7 * i] = 100;
        observation.curvature[0] = flat[f];
        observation.information[0][0] = 0;
        ndt_observation_weigh(&observation, &noise, &weighed);
        ck_assert_double_eq_tol(weighed.step[0], fmin(1 / fmax(fabs(flat[f]), least), 0.5), 1e-9);
        ck_assert_double_eq_tol(weighed.step[1], 0.02, 1e-12);
    }
}

/* Equal information l about every axis but one; units are metres, as rotations have the same trace. */
static struct ndt_observation diagonal(double l, int axis, double weak)
{
    struct ndt_observation out = {0};
    for (int i = 0; i < 6; i++)
        out.information[0][7 * i] = out.curvature[7 * i] = i == axis ? weak : l;
    return out;
}

TEST(floor_bounds_the_information)
{
    noise =
        (struct ndt_observation_noise){.floor_m = 0.01, .floor_rad = 0.001, .discount = 1e-3, .correlation = 10};
    struct ndt_observation observation = diagonal(1e12, 0, 1e12);
    ndt_observation_weigh(&observation, &noise, &weighed);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(weighed.information[7 * i] * (i < 3 ? 1e-4 : 1e-6), 1, 1e-3);
    observation = diagonal(2500, 0, 2500);
    ndt_observation_weigh(&observation, &noise, &weighed);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(weighed.information[7 * i] * (1 / 2500.0 + (i < 3 ? 1e-4 : 1e-6)), 1, 1e-5);
}

/* The information does not change without a floor, whether it is large or small. */
TEST(no_floor_changes_nothing)
{
    for (double l = 1e-6; l < 1e12; l *= 10) {
        const struct ndt_observation observation = diagonal(l, 0, l);
        exact_noise();
        ndt_observation_weigh(&observation, &noise, &weighed);
        for (int i = 0; i < 6; i++)
            ck_assert_msg(fabs(weighed.information[7 * i] / l - 1) < 1e-5, "%g became %g", l,
                          weighed.information[7 * i]);
    }
}

/* l^3 / (l^2 + (discount l_max)^2): smooth, half of it at the discount, in any direction. */
TEST(weak_directions_fade_out)
{
    const double ratios[] = {1, 0.1, 1e-2, 1e-3, 1e-4, 0}, l = 1000;
    noise = (struct ndt_observation_noise){.floor_m = 1e-6, .floor_rad = 1e-6, .discount = 1e-3, .correlation = 10};
    const double half = 0.7, turn[9] = {cos(half), -sin(half), 0, sin(half), cos(half), 0, 0, 0, 1};
    for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++) {
        const struct ndt_observation straight = diagonal(l, 0, ratios[r] * l);
        struct ndt_observation observation = straight;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                observation.information[0][6 * i + j] = 0;
                for (int k = 0; k < 3; k++)
                    observation.information[0][6 * i + j] +=
                        turn[3 * i + k] * straight.information[0][7 * k] * turn[3 * j + k];
                observation.curvature[6 * i + j] = observation.information[0][6 * i + j];
            }
        ndt_observation_weigh(&observation, &noise, &weighed);
        const double x[3] = {cos(half), sin(half), 0}, weak = ratios[r] * l;
        double along = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                along += x[i] * weighed.information[6 * i + j] * x[j];
        /* of all six axes: the units keep the trace of the rotations equal to that of the translations */
        ck_assert_double_eq_tol(weighed.weakest, ratios[r], 0.5 * ratios[r] + 1e-12);
        const double ratio = weighed.weakest;
        const double f = ratio > 0 ? ratio * ratio / (ratio * ratio + 1e-6) : 0;
        ck_assert_double_eq_tol(along, f * weak, 1e-6 * l * ratios[r] + 1e-9);
    }
}

/* On the side of a peak the score hardly curves, or the other way: there a scan tells no more than four times the
 * curvature, and nothing where that is negative; its pull on the pose is at most four times its gradient. In any
 * direction, and without a change of the others. */
TEST(information_without_curvature_fades_out)
{
    const double parts[] = {1, 0.26, 0.1, 0.01, 0, -1}, l = 1000, g = 30, half = 0.7;
    const double axis[6] = {cos(half), 0, sin(half), 0, 0, 0}, across[6] = {-sin(half), 0, cos(half), 0, 0, 0};
    exact_noise();
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
        struct ndt_observation observation = diagonal(l, 0, l);
        double along = 0, beside = 0, pull = 0;
        for (int i = 0; i < 6; i++) {
            observation.gradient[i] = g * axis[i];
            for (int j = 0; j < 6; j++)
                observation.curvature[6 * i + j] += (parts[p] - 1) * l * axis[i] * axis[j];
        }
        ndt_observation_weigh(&observation, &noise, &weighed);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++) {
                along += axis[i] * weighed.information[6 * i + j] * axis[j];
                beside += across[i] * weighed.information[6 * i + j] * across[j];
                pull += axis[i] * weighed.information[6 * i + j] * weighed.step[j];
            }
        ck_assert_double_eq_tol(along, l * fmin(1, 4 * fmax(parts[p], 0)), 1e-5 * l);
        ck_assert_double_eq_tol(beside, l, 1e-5 * l);
        ck_assert_double_le(pull, 4.001 * g);
    }
}

/* A tunnel along x: what the scan says of the velocity along it counts no more than what it says of the pose. */
TEST(weak_directions_of_the_twist_fade)
{
    double information[2], gradient[2];
    make_points();
    for (int k = 0; k < POINTS; k++)
        points[k].normal[0] *= 0.005;
    const struct ndt_observation observation = observe(points);
    noise.twist_discount = 0;
    for (int i = 0; i < 2; i++) {
        noise.discount = i == 0 ? 0 : 1e-2;
        ndt_observation_weigh(&observation, &noise, &weighed);
        information[i] = weighed.twist_information[0];
        gradient[i] = fabs(weighed.twist_gradient[0]);
        ck_assert_double_gt(weighed.twist_information[7], 0.1 * observation.information[2][7] / noise.correlation);
    }
    ck_assert_double_gt(information[0], 0.1 * observation.information[2][0] / noise.correlation);
    ck_assert_double_lt(information[1], 0.05 * information[0]);
    ck_assert_double_lt(gradient[1], 0.5 * gradient[0]);
}

/* An aisle whose surfaces across it are seen in the middle of the sweep: they tell where the sensor is, and hardly
 * how it moves along the aisle. The weak direction fades with its right-hand side, the others stay. */
TEST(a_velocity_that_the_sweep_hardly_observes_fades)
{
    double information[2][2], gradient[2][2], told[2][6], inverse[36];
    make_points();
    for (int k = 0; k < POINTS; k++) {
        const int is_across = k % 2;
        points[k].time_s *= is_across ? 0.04 : 1;
        points[k].normal[0] = is_across;
        points[k].normal[1] *= !is_across;
        points[k].normal[2] *= !is_across;
    }
    const struct ndt_observation observation = observe(points);
    for (int i = 0; i < 2; i++) {
        noise.twist_discount = i == 0 ? 0 : 1e-2;
        ndt_observation_weigh(&observation, &noise, &weighed);
        ck_assert(ndt_invert_symmetric(6, weighed.twist_information, inverse));
        ndt_multiply(6, 6, 1, inverse, weighed.twist_gradient, told[i]);
        for (int k = 0; k < 2; k++) {
            information[i][k] = weighed.twist_information[7 * k];
            gradient[i][k] = fabs(weighed.twist_gradient[k]);
        }
    }
    ck_assert_double_lt(information[1][0], 0.3 * information[0][0]);
    ck_assert_double_lt(gradient[1][0], 0.5 * gradient[0][0]);
    ck_assert_double_eq_tol(information[1][1], information[0][1], 0.01 * information[0][1]);
    ck_assert_double_eq_tol(gradient[1][1], gradient[0][1], 0.05 * gradient[0][1]);
    for (int k = 0; k < 6; k++) /* the twist that is told is the same */
        ck_assert_double_eq_tol(told[1][k], told[0][k], 1e-6 * fabs(told[0][k]));
}

static void must_be_semidefinite(const double A[36], const char *what)
{
    double scaled[36], values[6], V[36];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            ck_assert_msg(isfinite(A[6 * i + j]), "%s", what);
            scaled[6 * i + j] = A[6 * i + j] / (unit(i) * unit(j));
        }
    ndt_eigen_full(6, scaled, values, V);
    ck_assert_msg(values[0] >= -1e-9 * fmax(values[5], 1), "%s: %g .. %g", what, values[0], values[5]);
}

/* Sums per voxel can be indefinite: seconds of a point more than its first, or normals that cancel. */
TEST(indefinite_sums_become_semidefinite)
{
    for (int trial = 0; trial < 200; trial++) {
        make_points();
        for (int k = 0; k < POINTS; k++) /* the curvature of voxels seen from the side is negative */
            points[k].weight = ndt_random_between(&random_state, -100, 60 + trial);
        struct ndt_observation observation = observe(points);
        ndt_observation_weigh(&observation, &noise, &weighed);
        must_be_semidefinite(weighed.information, "pose");
        must_be_semidefinite(weighed.twist_information, "twist");
        for (int i = 0; i < 36; i++)
            ck_assert(isfinite(weighed.twist_to_pose[i]));
        for (int i = 0; i < 6; i++)
            ck_assert(isfinite(weighed.step[i]) && isfinite(weighed.twist_gradient[i]));
        ck_assert(weighed.weakest >= 0 && weighed.weakest <= 1);
    }
}

TEST(nothing_observed_is_no_information)
{
    const struct ndt_observation nothing = {0};
    double ratio[6], axes[36];
    ndt_observation_weigh(&nothing, &noise, &weighed);
    for (int i = 0; i < 36; i++) {
        ck_assert_double_eq(weighed.information[i], 0);
        ck_assert_double_eq(weighed.twist_information[i], 0);
        ck_assert_double_eq(weighed.twist_to_pose[i], 0);
    }
    for (int i = 0; i < 6; i++)
        ck_assert(weighed.step[i] == 0 && weighed.twist_gradient[i] == 0);
    ck_assert_double_eq(weighed.weakest, 0);
    ndt_observation_directions(&nothing, ratio, axes);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(ratio[i], 0);
}

TEST(directions_name_the_weak_axis)
{
    double ratio[6], axes[36];
    const struct ndt_observation observation = diagonal(1000, 1, 10);
    ndt_observation_directions(&observation, ratio, axes);
    ck_assert_double_eq_tol(fabs(axes[1]), 1, 1e-9); /* y, in metres */
    ck_assert_double_eq_tol(ratio[0], 0.01, 0.006);
    ck_assert_double_eq_tol(ratio[5], 1, 1e-12);
    for (int k = 0; k + 1 < 6; k++)
        ck_assert_double_le(ratio[k], ratio[k + 1]);
}

static double square_of(const double matrix[36], const double step[6])
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            sum += step[i] * matrix[6 * i + j] * step[j];
    return sum;
}

TEST(a_step_is_a_metre_along_its_direction)
{
    double ratio[6], axes[36], step[6];
    make_points();
    const struct ndt_observation observation = observe(points);
    ndt_observation_directions(&observation, ratio, axes);
    for (int k = 0; k < 6; k++) {
        ndt_observation_step(axes, k, step);
        for (int row = 0; row < 6; row++) {
            double along = 0;
            for (int i = 0; i < 6; i++)
                along += axes[6 * row + i] * step[i];
            close_to(along, row == k, 1);
        }
    }
}

/* No information is left along the direction, and that of the others stays. */
TEST(a_forgotten_direction_says_nothing)
{
    double ratio[6], axes[36], step[6], other[6];
    make_points();
    const struct ndt_observation original = observe(points);
    ndt_observation_directions(&original, ratio, axes);
    for (int k = 0; k < 6; k++) {
        struct ndt_observation left = original;
        double along = 0, along_time = 0;
        ndt_observation_step(axes, k, step);
        ndt_observation_forget(&left, axes + 6 * k, step);
        for (int i = 0; i < 6; i++) {
            along += step[i] * left.gradient[i];
            along_time += step[i] * left.time_gradient[i];
        }
        close_to(along, 0, 1e4);
        close_to(along_time, 0, 1e3);
        close_to(square_of(left.curvature, step), 0, 1e4);
        for (int part = 0; part < 3; part++)
            close_to(square_of(left.information[part], step), 0, 1e4);
        for (int row = 0; row < 6; row++) {
            ndt_observation_step(axes, row, other);
            if (row != k)
                close_to(square_of(left.information[0], other), square_of(original.information[0], other), 1e4);
        }
    }
}

/* The same points seen from the body: moved by T_body_sensor, normals turned. */
TEST(of_the_body_against_moving_the_points)
{
    const struct ndt_pose T_body_sensor =
        ndt_pose_from_rpy((double[3]){1.2, -0.4, 1.8}, (double[3]){0.1, -0.2, 0.6});
    struct ndt_pose turn = T_body_sensor;
    struct point moved[POINTS];
    struct ndt_observation of_body;
    memset(turn.t_m, 0, sizeof(turn.t_m));
    make_points();
    for (int k = 0; k < POINTS; k++) {
        moved[k] = points[k];
        ndt_pose_apply(&T_body_sensor, points[k].p_m, moved[k].p_m);
        ndt_pose_apply(&turn, points[k].normal, moved[k].normal);
    }
    const struct ndt_observation of_sensor = observe(points), expected = observe(moved);
    ndt_observation_to_body(&of_sensor, &T_body_sensor, &of_body);
    for (int i = 0; i < 6; i++) {
        close_to(of_body.gradient[i], expected.gradient[i], 1e4 * unit(i));
        close_to(of_body.time_gradient[i], expected.time_gradient[i], 1e3 * unit(i));
        for (int j = 0; j < 6; j++) {
            const double scale = 1e4 * unit(i) * unit(j);
            close_to(of_body.curvature[6 * i + j], expected.curvature[6 * i + j], scale);
            for (int k = 0; k < 3; k++)
                close_to(of_body.information[k][6 * i + j], expected.information[k][6 * i + j], scale);
        }
    }
}

TEST(of_the_body_in_place_and_back)
{
    const struct ndt_pose T = ndt_pose_from_rpy((double[3]){1.2, -0.4, 1.8}, (double[3]){0.1, -0.2, 0.6});
    const struct ndt_pose back = ndt_pose_inverse(&T);
    make_points();
    const struct ndt_observation original = observe(points);
    struct ndt_observation observation = original;
    ndt_observation_to_body(&observation, &T, &observation);
    ndt_observation_to_body(&observation, &back, &observation);
    for (int i = 0; i < 36; i++)
        close_to(observation.curvature[i], original.curvature[i], 1e4 * unit(i / 6) * unit(i));
}

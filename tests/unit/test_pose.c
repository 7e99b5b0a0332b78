/* Rigid transforms and small linear algebra: identities that hold for any input. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/small_matrix.h"
#include "ndt/pose.h"
#include "run_tests.h"

static uint64_t state;

static double uniform(double low, double high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(state >> 11) / 9007199254740992.0;
}

static void setup(void)
{
    state = 42;
}

static struct ndt_pose random_pose(double reach_m)
{
    struct ndt_pose pose;
    for (int i = 0; i < 3; i++)
        pose.t_m[i] = uniform(-reach_m, reach_m);
    for (int i = 0; i < 4; i++)
        pose.q_xyzw[i] = uniform(-1, 1);
    ck_assert(ndt_pose_normalize(&pose));
    return pose;
}

static void assert_same(const struct ndt_pose *a, const struct ndt_pose *b, double tolerance)
{
    ck_assert_double_le(ndt_pose_distance_m(a, b), tolerance);
    ck_assert_double_le(ndt_pose_angle_rad(a, b), tolerance);
}

FIXTURE(setup, NULL)

TEST(inverse_undoes_compose)
{
    for (int i = 0; i < 100; i++) {
        const struct ndt_pose a = random_pose(100), b = random_pose(100);
        const struct ndt_pose ab = ndt_pose_compose(&a, &b), between = ndt_pose_between(&a, &ab);
        assert_same(&between, &b, 1e-12);
        const struct ndt_pose inverse = ndt_pose_inverse(&a), one = ndt_pose_compose(&inverse, &a);
        const struct ndt_pose identity = ndt_pose_identity();
        assert_same(&one, &identity, 1e-12);
    }
}

TEST(apply_agrees_with_the_matrix)
{
    for (int i = 0; i < 100; i++) {
        const struct ndt_pose T = random_pose(10);
        const double x[3] = {uniform(-9, 9), uniform(-9, 9), uniform(-9, 9)};
        double R[9], y[3];
        ndt_pose_rotation(&T, R);
        ndt_pose_apply(&T, x, y);
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq_tol(y[k], R[3 * k] * x[0] + R[3 * k + 1] * x[1] + R[3 * k + 2] * x[2] + T.t_m[k],
                                    1e-12);
        const struct ndt_pose back = ndt_pose_from_rotation(R, T.t_m);
        assert_same(&back, &T, 1e-12);
    }
}

TEST(from_rotation_takes_every_branch)
{
    const double half_turns[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    for (int i = 0; i < 4; i++) {
        struct ndt_pose T = ndt_pose_identity();
        double R[9];
        memcpy(T.q_xyzw, half_turns[i], sizeof(T.q_xyzw));
        ndt_pose_rotation(&T, R);
        const struct ndt_pose back = ndt_pose_from_rotation(R, T.t_m);
        assert_same(&back, &T, 1e-12);
    }
}

/* R = Rx(a) Ry(b) Rz(c), not ROS's Rz Ry Rx: the corner element is sin b. */
TEST(euler_is_the_published_order)
{
    const double p[6] = {1, 2, 3, 0.3, -0.5, 1.1};
    double R[9], back[6];
    const struct ndt_pose T = ndt_pose_from_euler(p);
    ndt_pose_rotation(&T, R);
    ck_assert_double_eq_tol(R[2], sin(-0.5), 1e-15);
    ck_assert_double_eq_tol(R[0], cos(-0.5) * cos(1.1), 1e-15);
    ck_assert_double_eq_tol(R[5], -sin(0.3) * cos(-0.5), 1e-15);
    ndt_pose_to_euler(&T, back);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(back[i], p[i], 1e-14);
}

TEST(euler_survives_gimbal_lock)
{
    for (int i = 0; i < 20; i++) {
        const double p[6] = {0, 0, 0, uniform(-3, 3), i % 2 ? M_PI / 2 : -M_PI / 2, uniform(-3, 3)};
        double back[6];
        const struct ndt_pose T = ndt_pose_from_euler(p);
        ndt_pose_to_euler(&T, back);
        const struct ndt_pose again = ndt_pose_from_euler(back);
        assert_same(&T, &again, 1e-7);
    }
}

TEST(log_undoes_exp)
{
    for (int i = 0; i < 200; i++) {
        const double scale = pow(10, uniform(-9, 0.4));
        const struct ndt_twist twist = {{uniform(-5, 5), uniform(-5, 5), uniform(-5, 5)},
                                        {scale * uniform(-1, 1), scale * uniform(-1, 1), scale * uniform(-1, 1)}};
        const struct ndt_pose step = ndt_pose_exp(&twist, 0.7);
        const struct ndt_twist back = ndt_pose_log(&step, 0.7);
        for (int k = 0; k < 3; k++) {
            ck_assert_double_eq_tol(back.v_mps[k], twist.v_mps[k], 1e-9);
            ck_assert_double_eq_tol(back.w_radps[k], twist.w_radps[k], 1e-10);
        }
    }
}

/* A body that keeps its twist: ten small steps are one large one. */
TEST(exp_is_a_one_parameter_group)
{
    const struct ndt_twist twist = {{10, 0.2, -0.1}, {0.05, -0.1, 0.9}};
    struct ndt_pose chain = ndt_pose_identity();
    const struct ndt_pose small = ndt_pose_exp(&twist, 0.1), large = ndt_pose_exp(&twist, 1.0);
    for (int i = 0; i < 10; i++)
        chain = ndt_pose_compose(&chain, &small);
    assert_same(&chain, &large, 1e-12);
    const struct ndt_pose start = random_pose(50), end = ndt_pose_compose(&start, &large);
    const struct ndt_pose part = ndt_pose_interpolate(&start, &end, 0.1), want = ndt_pose_compose(&start, &small);
    assert_same(&part, &want, 1e-12);
}

TEST(between_keeps_digits_at_utm)
{
    const double origin[3] = {389000.123, 4970000.456, 120};
    const struct ndt_twist twist = {{1, 0.1, 0}, {0, 0, 0.3}};
    struct ndt_pose a = random_pose(1);
    for (int i = 0; i < 3; i++)
        a.t_m[i] += origin[i];
    const struct ndt_pose step = ndt_pose_exp(&twist, 0.1), b = ndt_pose_compose(&a, &step);
    const struct ndt_pose found = ndt_pose_between(&a, &b);
    assert_same(&found, &step, 2e-9); /* the last bit of 4970000 is 1e-9 m */
}

TEST(zero_and_nan_quaternions_are_refused)
{
    struct ndt_pose pose = ndt_pose_identity();
    pose.q_xyzw[3] = 0;
    ck_assert(!ndt_pose_normalize(&pose));
    pose.q_xyzw[0] = NAN;
    ck_assert(!ndt_pose_is_finite(&pose));
    ck_assert(!ndt_pose_normalize(&pose));
    ck_assert(ndt_pose_is_finite(&pose));
}

static void random_symmetric(int n, double *upper, int positive)
{
    double A[36] = {0};
    for (int i = 0; i < n * n; i++)
        A[i] = uniform(-1, 1) * pow(10, uniform(-2, 2));
    for (int i = 0, at = 0; i < n; i++)
        for (int j = i; j < n; j++, at++) {
            upper[at] = positive && i == j ? 1e-3 : 0;
            for (int k = 0; k < n; k++)
                upper[at] += positive ? A[k * n + i] * A[k * n + j] : (A[i * n + k] + A[j * n + k]) * (k == 0);
        }
}

TEST(eigenvectors_diagonalise)
{
    for (int round = 0; round < 200; round++) {
        const int n = round % 2 ? 6 : 3;
        double upper[21], values[6], V[36], scale = 0;
        random_symmetric(n, upper, round % 3 == 0);
        ndt_eigen_symmetric(n, upper, values, V);
        for (int k = 0; k < n; k++)
            scale = fmax(scale, fabs(values[k]));
        for (int i = 0, at = 0; i < n; i++)
            for (int j = i; j < n; j++, at++) {
                double sum = 0, dot = 0;
                for (int k = 0; k < n; k++) {
                    sum += V[i * n + k] * values[k] * V[j * n + k];
                    dot += V[k * n + i] * V[k * n + j];
                }
                ck_assert_double_le(fabs(sum - upper[at]), 1e-13 * scale);
                ck_assert_double_le(fabs(dot - (i == j)), 1e-13);
            }
        for (int k = 1; k < n; k++)
            ck_assert_double_le(values[k - 1], values[k]);
    }
}

TEST(cholesky_solves_or_refuses)
{
    for (int round = 0; round < 100; round++) {
        double A[21], full[36], x[6], want[6], b[6] = {0};
        random_symmetric(6, A, 1);
        unpack_symmetric6(A, full);
        for (int i = 0; i < 6; i++)
            want[i] = uniform(-1, 1);
        for (int i = 0; i < 36; i++)
            b[i / 6] += full[i] * want[i % 6];
        ck_assert(solve_cholesky6(A, b, 0, x));
        for (int i = 0; i < 6; i++) {
            double sum = 0;
            for (int j = 0; j < 6; j++)
                sum += full[i * 6 + j] * x[j];
            ck_assert_double_le(fabs(sum - b[i]), 1e-9 * (1 + fabs(b[i])));
        }
        A[0] = -A[0];
        ck_assert(!solve_cholesky6(A, b, 0, x));
    }
}

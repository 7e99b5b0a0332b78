/* The small matrices that the Newton solver uses, against eigenvalues. */
#include "newton_hills.h"
#include "run_tests.h"

/* Parameters of different units: rows and columns by powers of ten. */
static void scale_units(struct ndt_random *random, double upper[21])
{
    double unit[6];
    for (int i = 0; i < 6; i++)
        unit[i] = pow(10, ndt_random_between(random, -2, 2));
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            upper[at++] *= unit[i] * unit[j];
}

FIXTURE(setup, NULL)

/* Three rotations at a time, against one at a time. */
TEST(eigenvalues_of_three_rotations_at_a_time)
{
    struct ndt_random random = {7};
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36], A[36];
        struct eigen6 e;
        random_spectrum(&random, round % 16, round % 3 == 0 ? 0.3 : 0, lambda);
        if (round % 5 == 0)
            lambda[2] = lambda[3] = lambda[1];
        random_matrix(&random, lambda, upper);
        if (round % 2)
            scale_units(&random, upper);
        eigen_symmetric(6, upper, values, V);
        unpack_symmetric6(upper, A);
        eigen6_load(&e, upper);
        eigen6_run_alone(&e);
        const double size = fmax(fabs(values[0]), fabs(values[5]));
        for (int k = 0; k < 6; k++) {
            ck_assert_msg(fabs(e.values[k] - values[k]) <= 1e-13 * size, "%g, not %g", e.values[k], values[k]);
            for (int i = 0; i < 6; i++) {
                double image = 0, product = 0;
                for (int j = 0; j < 6; j++) {
                    image += A[6 * i + j] * e.vectors[6 * j + k];
                    product += e.vectors[6 * j + i] * e.vectors[6 * j + k];
                }
                ck_assert(fabs(image - e.values[k] * e.vectors[6 * i + k]) <= 1e-13 * size);
                ck_assert(fabs(product - (i == k)) <= 1e-13);
            }
        }
    }
}

/* Matrices that need no rotation, and those that are not finite, give an answer all the same. */
TEST(eigenvalues_of_special_matrices)
{
    double upper[21] = {0};
    struct eigen6 e;
    eigen6_load(&e, upper);
    eigen6_run_alone(&e);
    for (int i = 0; i < 36; i++)
        ck_assert(e.vectors[i] == (i % 7 == 0) && e.values[i % 6] == 0);
    upper[0] = NAN;
    upper[20] = -2;
    eigen6_load(&e, upper);
    eigen6_run_alone(&e);
    ck_assert(isnan(e.values[0]) && e.values[5] == -2 && e.vectors[35] == 1);
}

TEST(inverse_root_against_eigenvalues)
{
    struct ndt_random random = {1};
    int refused = 0, done = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36], root[36];
        random_spectrum(&random, round % 8, round % 4 == 0 ? 0.2 : 0, lambda);
        random_matrix(&random, lambda, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double rounding = 1e-13 * fmax(fabs(values[0]), fabs(values[5]));
        if (!ndt_inverse_root6(upper, root)) {
            ck_assert(values[0] < rounding);
            refused++;
            continue;
        }
        ck_assert(values[0] > -rounding);
        done++;
        for (int i = 0; i < 36 && values[0] > 0; i++) {
            double is = 0, wanted = 0, size = 0;
            for (int k = 0; k < 6; k++) {
                const double term = V[6 * (i / 6) + k] * V[6 * (i % 6) + k] / values[k];
                is += root[6 * (i / 6) + k] * root[6 * (i % 6) + k];
                wanted += term;
                size += 1 / values[k];
            }
            ck_assert_msg(fabs(is - wanted) <= 1e-13 * size * values[5] / values[0], "%g, not %g", is, wanted);
        }
    }
    ck_assert_int_gt(refused, MATRICES / 10);
    ck_assert_int_gt(done, MATRICES / 2);
}

TEST(bound_of_the_largest_eigenvalue)
{
    struct ndt_random random = {2};
    const double most = pow(6, 0.125) * (1 + 1e-12);
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        random_spectrum(&random, round % 16, 0, lambda);
        random_matrix(&random, lambda, upper);
        if (round % 2)
            scale_units(&random, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double bound = eigenvalue_bound6(upper);
        ck_assert_msg(bound >= values[5] * (1 - 1e-12) && bound <= values[5] * most, "%g for %g", bound, values[5]);
    }
    const double none[21] = {0};
    ck_assert(eigenvalue_bound6(none) == 0);
}

/* No false positives; and a positive result in every clear case. */
TEST(eigenvalues_above_a_part_of_the_largest)
{
    struct ndt_random random = {3};
    int yes = 0, no = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        const double ratio = round % 3 == 0 ? 0.0125 : pow(10, ndt_random_between(&random, -6, -0.2));
        random_spectrum(&random, round % 4, round % 5 == 0 ? 0.1 : 0, lambda);
        lambda[0] = ratio * pow(10, ndt_random_between(&random, -0.3, 0.5)) * 1e4; /* near the border */
        random_matrix(&random, lambda, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double least = ratio * values[5], rounding = 1e-12 * fmax(fabs(values[0]), fabs(values[5]));
        if (all_eigenvalues_above(upper, ratio)) {
            ck_assert_msg(values[0] > least - rounding, "%g is not above %g", values[0], least);
            yes++;
        } else {
            ck_assert_msg(values[0] < 1.2511 * least + rounding, "%g is above %g", values[0], least);
            no++;
        }
    }
    ck_assert_int_gt(yes, MATRICES / 10);
    ck_assert_int_gt(no, MATRICES / 10);
}

/* The shortcut of find_weak agrees with the eigenvalues. */
TEST(weak_directions_against_eigenvalues)
{
    struct ndt_random random = {4};
    int found[4] = {0};
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        struct ndt_newton n;
        place(&n);
        for (int i = 0; i < 9; i++)
            n.inverse_rotation_scale[i] = i % 4 == 0;
        random_spectrum(&random, round % 6, round % 7 == 0 ? 0.3 : 0, lambda);
        random_matrix(&random, lambda, upper);
        for (int i = 0; i < 21; i++)
            n.eval.hessian[i] = -upper[i];
        ndt_eigen_symmetric(6, upper, values, V);
        int count = 0;
        while (count < 3 && values[count] < rules.weak_eigenvalue_ratio * values[5])
            count++;
        n.weak.count = 0;
        find_weak(&n, &rules);
        ck_assert_int_eq(n.weak.count, count);
        for (int k = 0; k < count; k++)
            for (int i = 0; i < 6; i++)
                ck_assert(n.weak.axes[k][i] == V[6 * i + k]);
        found[count]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_gt(found[i], 50);
}

/* V |Lambda|^-1 V^T g, implemented independently. */
static void saddle_free(const double upper[21], const double g[6], double d[6], double values[6])
{
    double V[36];
    ndt_eigen_symmetric(6, upper, values, V);
    const double largest = fmax(fabs(values[0]), fabs(values[5]));
    for (int i = 0; i < 6; i++) {
        d[i] = 0;
        for (int k = 0; k < 6; k++)
            for (int j = 0; j < 6; j++)
                d[i] +=
                    V[6 * i + k] * V[6 * j + k] * g[j] / fmax(fabs(values[k]), rules.eigenvalue_floor * largest);
    }
}

TEST(newton_step_against_eigenvalues)
{
    struct ndt_random random = {6};
    int plain = 0, other_candidate = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], wanted[6], d[6], L[36], rise = 0, size = 0, off = 0;
        struct ndt_eval eval = {0};
        random_spectrum(&random, round % 5, round % 3 == 0 ? 0.3 : 0, lambda);
        random_matrix(&random, lambda, upper);
        for (int i = 0; i < 21; i++)
            eval.hessian[i] = -upper[i];
        unit6(&random, eval.gradient);
        saddle_free(upper, eval.gradient, wanted, values);
        if (fabs(values[0]) < 2 * rules.eigenvalue_floor * values[5])
            continue;
        newton_direction(&eval, rules.eigenvalue_floor, d);
        const double condition = values[5] / values[0];
        for (int i = 0; i < 6; i++) {
            rise += d[i] * eval.gradient[i];
            size = fmax(size, fabs(wanted[i]));
            off = fmax(off, fabs(d[i] - wanted[i]));
        }
        ck_assert(rise > 0);
        const int is_plain = factor_cholesky6(upper, NDT_SAFE_PIVOT, L);
        ck_assert(!is_plain || values[0] > 0);
        plain += is_plain;
        other_candidate += !is_plain && values[0] < 0;
        ck_assert_msg(off <= size * fmax(1e-9, 1e-13 * fabs(condition)), "off by %g of %g, condition %g", off, size,
                      condition);
    }
    ck_assert_int_gt(plain, MATRICES / 5);
    ck_assert_int_gt(other_candidate, MATRICES / 10);
}

/* Units that differ by ten thousand do not spoil the plain step: pivots are compared with their own diagonal. */
TEST(plain_step_in_any_units)
{
    struct ndt_random random = {7};
    int plain = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], full[36], g[6], x[6];
        random_spectrum(&random, 1, 0, lambda);
        random_matrix(&random, lambda, upper);
        scale_units(&random, upper);
        unit6(&random, g);
        if (!solve_cholesky6(upper, g, NDT_SAFE_PIVOT, x))
            continue;
        plain++;
        unpack_symmetric6(upper, full);
        for (int i = 0; i < 6; i++) {
            double is = 0, size = fabs(g[i]);
            for (int j = 0; j < 6; j++) {
                is += full[6 * i + j] * x[j];
                size += fabs(full[6 * i + j] * x[j]);
            }
            ck_assert_double_le(fabs(is - g[i]), 1e-11 * size);
        }
    }
    ck_assert_int_gt(plain, MATRICES / 4);
    const double tied[21] = {1, 0.9999, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1}; /* pivot 2e-4 */
    const double ones[6] = {1, 1, 1, 1, 1, 1};
    double solved[6];
    ck_assert_int_eq(solve_cholesky6(tied, ones, NDT_SAFE_PIVOT, solved), 0);
    ck_assert_int_eq(solve_cholesky6(tied, ones, 1e-4, solved), 1);
    const double nan[21] = {NAN}, one[6] = {1};
    double x[6];
    ck_assert_int_eq(solve_cholesky6(nan, one, NDT_SAFE_PIVOT, x), 0);
}

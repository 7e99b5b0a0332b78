/* Dense matrices of ndt/linalg.h against long double and by their defining properties. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/random.h"
#include "run_tests.h"

enum { MAX = NDT_DENSE_MAX, SIZES = 6 };
static const int sizes[SIZES] = {1, 2, 3, 6, 16, 24};
static struct ndt_random random_state;

static void setup(void)
{
    random_state = (struct ndt_random){17};
}

static void fill(double *A, int count)
{
    for (int i = 0; i < count; i++)
        A[i] = ndt_random_between(&random_state, -1, 1);
}

/* Row i of the product of A (m x k, or k x m and transposed) and B (k x n). */
static long double product(const double *A, const double *B, int m, int k, int n, int transposed, int i, int j)
{
    long double sum = 0;
    for (int l = 0; l < k; l++)
        sum += (long double)(transposed ? A[l * m + i] : A[i * k + l]) * B[l * n + j];
    return sum;
}

/* Symmetric with eigenvalues from 1 to `condition`, in powers: H2 H1 diag H1 H2 with two reflections. */
static void make_definite(int n, double condition, double *A)
{
    double v[MAX];
    memset(A, 0, (size_t)(n * n) * sizeof(*A));
    for (int i = 0; i < n; i++)
        A[i * n + i] = n == 1 ? condition : pow(condition, (double)i / (n - 1));
    for (int k = 0; k < 2; k++) {
        double H[MAX * MAX], HA[MAX * MAX], norm2 = 0;
        fill(v, n);
        for (int i = 0; i < n; i++)
            norm2 += v[i] * v[i];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                H[i * n + j] = (i == j) - 2 * v[i] * v[j] / norm2;
        ndt_multiply(n, n, n, H, A, HA);
        ndt_multiply(n, n, n, HA, H, A);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            A[i * n + j] = A[j * n + i];
}

FIXTURE(setup, NULL)

TEST(products)
{
    double A[MAX * MAX], B[MAX * MAX], C[MAX * MAX];
    for (int a = 0; a < SIZES; a++)
        for (int b = 0; b < SIZES; b++)
            for (int c = 0; c < SIZES; c++) {
                const int m = sizes[a], k = sizes[b], n = sizes[c];
                fill(A, m * k);
                fill(B, k * n);
                A[0] = 0; /* zeros are skipped */
                for (int transposed = 0; transposed < 2; transposed++) {
                    if (transposed)
                        ndt_multiply_transposed(k, m, n, A, B, C);
                    else
                        ndt_multiply(m, k, n, A, B, C);
                    for (int i = 0; i < m; i++)
                        for (int j = 0; j < n; j++)
                            ck_assert_double_eq_tol(C[i * n + j], (double)product(A, B, m, k, n, transposed, i, j),
                                                    1e-14);
                }
            }
}

TEST(congruence_is_symmetric_to_the_last_bit)
{
    double A[MAX * MAX], S[MAX * MAX], SA[MAX * MAX], out[MAX * MAX];
    for (int a = 0; a < SIZES; a++)
        for (int b = 0; b < SIZES; b++) {
            const int k = sizes[a], m = sizes[b];
            fill(A, k * m);
            make_definite(k, 10, S);
            for (int i = 0; i < k * m; i += 3)
                A[i] = 0;
            ndt_congruence(k, m, A, S, out);
            ndt_multiply(k, k, m, S, A, SA);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < m; j++) {
                    ck_assert_double_eq(out[i * m + j], out[j * m + i]);
                    ck_assert_double_eq_tol(out[i * m + j], (double)product(A, SA, m, k, m, 1, i, j), 1e-12);
                }
        }
}

TEST(cholesky_factor_and_solution)
{
    double A[MAX * MAX], L[MAX * MAX], x[MAX], b[MAX];
    for (int a = 0; a < SIZES; a++) {
        const int n = sizes[a];
        make_definite(n, 1e6, A);
        memcpy(L, A, sizeof(A));
        ck_assert(ndt_factor_cholesky(n, L));
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                long double sum = 0;
                for (int k = 0; k < n; k++)
                    sum += (long double)L[i * n + k] * L[j * n + k];
                ck_assert_double_eq_tol(A[i * n + j], (double)sum, 1e-9);
                ck_assert(j <= i || L[i * n + j] == 0);
            }
        fill(x, n);
        ndt_multiply(n, n, 1, A, x, b);
        ndt_solve_cholesky(n, L, b);
        for (int i = 0; i < n; i++)
            ck_assert_double_eq_tol(b[i], x[i], 1e-8);
    }
}

TEST(what_is_not_positive_definite_is_refused)
{
    double A[MAX * MAX], out[MAX * MAX];
    for (int a = 0; a < SIZES; a++)
        for (int k = 0; k < sizes[a]; k++) {
            const int n = sizes[a];
            const double wrong[] = {-1e-3, 0, NAN, INFINITY, -INFINITY};
            for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++) {
                memset(A, 0, sizeof(A));
                for (int i = 0; i < n; i++)
                    A[i * n + i] = i == k ? wrong[w] : 1 + i;
                ck_assert_msg(!ndt_invert_symmetric(n, A, out), "%g at %d of %d", wrong[w], k, n);
                ck_assert(!ndt_factor_cholesky(n, A));
            }
        }
    const double indefinite[4] = {1, 2, 2, 1};
    ck_assert(!ndt_invert_symmetric(2, indefinite, out));
}

TEST(inverse_of_condition_1e8)
{
    double A[MAX * MAX], inverse[MAX * MAX], in_place[MAX * MAX];
    for (int a = 0; a < SIZES; a++) {
        const int n = sizes[a];
        make_definite(n, 1e8, A);
        ck_assert(ndt_invert_symmetric(n, A, inverse));
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                ck_assert_double_eq(inverse[i * n + j], inverse[j * n + i]);
                ck_assert_double_eq_tol((double)product(A, inverse, n, n, n, 0, i, j), i == j, 1e-7);
            }
        memcpy(in_place, A, sizeof(A));
        ck_assert(ndt_invert_symmetric(n, in_place, in_place));
        ck_assert_mem_eq(in_place, inverse, (size_t)(n * n) * sizeof(double));
    }
}

TEST(eigenvalues_of_full_matrices)
{
    double A[MAX * MAX], values[MAX], V[MAX * MAX];
    for (int a = 0; a < SIZES; a++) {
        const int n = sizes[a];
        make_definite(n, 1e4, A);
        ndt_eigen_full(n, A, values, V);
        for (int k = 0; k < n; k++) {
            const double expected = n == 1 ? 1e4 : pow(1e4, (double)k / (n - 1));
            ck_assert_double_eq_tol(values[k] / expected, 1, 1e-9); /* ascending */
            for (int j = 0; j < n; j++) {
                long double dot = 0, image = 0;
                for (int i = 0; i < n; i++) {
                    dot += (long double)V[i * n + k] * V[i * n + j];
                    image += (long double)A[j * n + i] * V[i * n + k];
                }
                ck_assert_double_eq_tol((double)dot, k == j, 1e-12);
                ck_assert_double_eq_tol((double)image, values[k] * V[j * n + k], 1e-9);
            }
        }
    }
}

TEST(eigenvalues_that_are_equal_zero_or_negative)
{
    double A[144] = {0}, values[12], V[144];
    ndt_eigen_full(12, A, values, V);
    for (int k = 0; k < 12; k++)
        ck_assert_double_eq(values[k], 0);
    for (int i = 0; i < 12; i++)
        A[13 * i] = i < 6 ? -2 : 5;
    ndt_eigen_full(12, A, values, V);
    for (int k = 0; k < 12; k++)
        ck_assert_double_eq(values[k], k < 6 ? -2 : 5);
}

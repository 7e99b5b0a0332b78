/* Dense matrices of ndt/linalg.h: plain loops in a fixed order. */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/small_matrix.h"

void ndt_multiply(int m, int k, int n, const double *A, const double *B, double *C)
{
    memset(C, 0, (size_t)(m * n) * sizeof(*C));
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++)
                C[i * n + j] += A[i * k + l] * B[l * n + j];
}

/* Transition matrices are mostly zeros: rows of zeros of A^T cost nothing. */
void ndt_multiply_transposed(int k, int m, int n, const double *A, const double *B, double *C)
{
    memset(C, 0, (size_t)(m * n) * sizeof(*C));
    for (int l = 0; l < k; l++)
        for (int i = 0; i < m; i++) {
            const double a = A[l * m + i];
            if (a == 0)
                continue;
            for (int j = 0; j < n; j++)
                C[i * n + j] += a * B[l * n + j];
        }
}

static void symmetrize(int n, double *A)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            A[i * n + j] = A[j * n + i] = 0.5 * (A[i * n + j] + A[j * n + i]);
}

/* A^T (A^T S)^T */
void ndt_congruence(int k, int m, const double *A, const double *S, double *out)
{
    double AS[NDT_DENSE_MAX * NDT_DENSE_MAX], SA[NDT_DENSE_MAX * NDT_DENSE_MAX] = {0};
    ndt_multiply_transposed(k, m, k, A, S, AS);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            SA[j * m + i] = AS[i * k + j];
    ndt_multiply_transposed(k, m, m, A, SA, out);
    symmetrize(m, out);
}

int ndt_factor_cholesky(int n, double *A)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = A[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= A[i * n + k] * A[j * n + k];
            if (i != j)
                A[i * n + j] = sum / A[j * n + j];
            else if (sum > 0 && isfinite(sum))
                A[i * n + i] = sqrt(sum);
            else
                return 0;
        }
        for (int j = i + 1; j < n; j++)
            A[i * n + j] = 0;
    }
    return 1;
}

void ndt_solve_cholesky(int n, const double *L, double *x)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= L[i * n + k] * x[k];
        x[i] /= L[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= L[k * n + i] * x[k];
        x[i] /= L[i * n + i];
    }
}

int ndt_invert_symmetric(int n, const double *A, double *out)
{
    double L[NDT_DENSE_MAX * NDT_DENSE_MAX], I[NDT_DENSE_MAX * NDT_DENSE_MAX] = {0};
    memcpy(L, A, (size_t)(n * n) * sizeof(*A));
    if (!ndt_factor_cholesky(n, L))
        return 0;
    /* Rows of I become those of L^-1. */
    for (int i = 0; i < n; i++) {
        I[i * n + i] = 1 / L[i * n + i];
        for (int j = 0; j < i; j++) {
            double sum = 0;
            for (int k = j; k < i; k++)
                sum -= L[i * n + k] * I[k * n + j];
            I[i * n + j] = sum / L[i * n + i];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            double sum = 0;
            for (int k = j; k < n; k++)
                sum += I[k * n + i] * I[k * n + j];
            out[i * n + j] = out[j * n + i] = sum;
        }
    return 1;
}

void ndt_eigen_full(int n, const double *A, double *values, double *V)
{
    double copy[NDT_DENSE_MAX * NDT_DENSE_MAX];
    memcpy(copy, A, (size_t)(n * n) * sizeof(*A));
    diagonalize(n, copy, values, V);
}

/** @file
 * @brief Private: the code behind ndt/linalg.h, shared by gcc and nvcc.
 *
 * ndt/device_code.h has the macros. Functions without a comment are described in ndt/linalg.h. */
#ifndef NDT_SMALL_MATRIX_H
#define NDT_SMALL_MATRIX_H

#include <math.h>

#include "ndt/device_code.h"
#include "ndt/eigen6.h"

/** One Jacobi rotation: makes A[p][q] zero. */
NDT_INLINED void jacobi_rotate(double *A, double *V, int n, int p, int q)
{
    const double apq = A[p * n + q];
    const double theta = (A[q * n + q] - A[p * n + p]) / (2 * apq);
    const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = NDT_INVERSE_ROOT(t * t + 1), s = t * c;
    A[p * n + p] -= t * apq;
    A[q * n + q] += t * apq;
    A[p * n + q] = A[q * n + p] = 0;
    NDT_FOR (int k = 0; k < n; k++) {
        if (k != p && k != q) {
            const double akp = A[k * n + p], akq = A[k * n + q];
            A[k * n + p] = A[p * n + k] = c * akp - s * akq;
            A[k * n + q] = A[q * n + k] = s * akp + c * akq;
        }
        const double vkp = V[k * n + p], vkq = V[k * n + q];
        V[k * n + p] = c * vkp - s * vkq;
        V[k * n + q] = s * vkp + c * vkq;
    }
}

/** One sweep over all pairs; returns the number of rotations. */
NDT_INLINED int jacobi_sweep(double *A, double *V, int n)
{
    int rotations = 0;
    NDT_FOR (int p = 0; p < n - 1; p++)
        NDT_FOR (int q = p + 1; q < n; q++) {
            const double scale = sqrt(fabs(A[p * n + p]) * fabs(A[q * n + q]));
            if (fabs(A[p * n + q]) > 1e-16 * scale && fabs(A[p * n + q]) > 1e-300) {
                jacobi_rotate(A, V, n, p, q);
                rotations++;
            }
        }
    return rotations;
}

NDT_INLINED void sort_ascending(int n, double *values, double *V)
{
    NDT_FOR (int i = 0; i < n - 1; i++) {
        int least = i;
        double value = values[i];
        NDT_FOR (int j = i + 1; j < n; j++)
            if (values[j] < value) {
                least = j;
                value = values[j];
            }
        NDT_FOR (int j = i + 1; j < n; j++) {
            if (j != least)
                continue;
            values[j] = values[i];
            values[i] = value;
            NDT_FOR (int k = 0; k < n; k++) {
                const double v = V[k * n + i];
                V[k * n + i] = V[k * n + j];
                V[k * n + j] = v;
            }
        }
    }
}

/** Eigenvalues and eigenvectors of the full matrix A, which is destroyed. */
NDT_INLINED void diagonalize(int n, double *A, double *values, double *V)
{
    NDT_FOR (int i = 0; i < n * n; i++)
        V[i] = i % (n + 1) == 0;
    for (int i = 0; i < 30 && jacobi_sweep(A, V, n) > 0; i++)
        ;
    NDT_FOR (int i = 0; i < n; i++)
        values[i] = A[i * n + i];
    sort_ascending(n, values, V);
}

NDT_INLINED void eigen_symmetric(int n, const double *upper, double *values, double *V)
{
    double A[36];
    NDT_FOR (int i = 0, at = 0; i < n; i++)
        NDT_FOR (int j = i; j < n; j++)
            A[i * n + j] = A[j * n + i] = upper[at++];
    diagonalize(n, A, values, V);
}

/** EIGEN6_PLACE: the place of a struct eigen6 NAME. A device, which has one for each block and the lanes of a warp
 * to work in it, defines this and eigen6_solve before including this file. */
#ifndef EIGEN6_PLACE
#define EIGEN6_PLACE(name) struct eigen6 name##_here, *const name = &name##_here
static inline NDT_DEVICE void eigen6_solve(struct eigen6 *e)
{
    eigen6_run_alone(e);
}
#endif

/** Upper triangle to the full row-major matrix. */
static inline NDT_DEVICE void unpack_symmetric6(const double upper[21], double full[36])
{
    NDT_FOR (int i = 0, at = 0; i < 6; i++)
        NDT_FOR (int j = i; j < 6; j++)
            full[i * 6 + j] = full[j * 6 + i] = upper[at++];
}

/** A = L L^T: writes the lower triangle of L with 1 / L_ii on the diagonal; 0 when a pivot falls below `ratio` of
 * its diagonal element. */
static inline NDT_DEVICE int factor_cholesky6(const double upper[21], double ratio, double A[36])
{
    unpack_symmetric6(upper, A);
    NDT_FOR (int i = 0; i < 6; i++) {
        NDT_FOR (int j = 0; j <= i; j++) {
            double sum = A[i * 6 + j];
            NDT_FOR (int k = 0; k < j; k++)
                sum -= A[i * 6 + k] * A[j * 6 + k];
            if (i != j)
                A[i * 6 + j] = sum * A[j * 6 + j];
            else if (sum > ratio * A[i * 6 + i] && sum > 0)
                A[i * 6 + i] = NDT_INVERSE_ROOT(sum);
            else
                return 0;
        }
    }
    return 1;
}

/** x = L^-T y; x may be y. */
static inline NDT_DEVICE void solve_transposed6(const double A[36], const double y[6], double x[6])
{
    NDT_FOR (int i = 5; i >= 0; i--) {
        x[i] = y[i];
        NDT_FOR (int k = i + 1; k < 6; k++)
            x[i] -= A[k * 6 + i] * x[k];
        x[i] *= A[i * 6 + i];
    }
}

static inline NDT_DEVICE int solve_cholesky6(const double upper[21], const double b[6], double ratio, double x[6])
{
    double A[36], y[6];
    if (!factor_cholesky6(upper, ratio, A))
        return 0;
    NDT_FOR (int i = 0; i < 6; i++) {
        y[i] = b[i];
        NDT_FOR (int k = 0; k < i; k++)
            y[i] -= A[i * 6 + k] * y[k];
        y[i] *= A[i * 6 + i];
    }
    solve_transposed6(A, y, x);
    return 1;
}

static inline NDT_DEVICE int inverse_root6(const double upper[21], double root[36])
{
    double A[36];
    if (!factor_cholesky6(upper, 0, A))
        return 0;
    NDT_FOR (int k = 0; k < 6; k++) {
        double column[6] = {0, 0, 0, 0, 0, 0};
        column[k] = 1;
        solve_transposed6(A, column, column);
        NDT_FOR (int i = 0; i < 6; i++)
            root[6 * i + k] = column[i];
    }
    return 1;
}

/** An upper bound of the largest eigenvalue of a symmetric 6x6 matrix, at most 1.26 times as large: the fourth root
 * of the Frobenius norm of its fourth power. */
static inline NDT_DEVICE double eigenvalue_bound6(const double upper[21])
{
    double A[36], B[36], sum = 0, scale = 0;
    unpack_symmetric6(upper, A);
    NDT_FOR (int i = 0; i < 6; i++)
        scale += fabs(A[7 * i]);
    if (!(scale > 0))
        return scale;
    const double per_scale = 1 / scale;
    NDT_FOR (int i = 0; i < 36; i++)
        A[i] *= per_scale;
    NDT_FOR (int round = 0; round < 2; round++) {
        NDT_FOR (int i = 0; i < 6; i++)
            NDT_FOR (int j = i; j < 6; j++) { /* powers of a symmetric matrix are symmetric, bit for bit */
                double product = 0;
                NDT_FOR (int k = 0; k < 6; k++)
                    product += A[6 * i + k] * A[6 * k + j];
                B[6 * i + j] = B[6 * j + i] = product;
            }
        NDT_FOR (int i = 0; i < 36; i++)
            A[i] = B[i];
    }
    NDT_FOR (int i = 0; i < 36; i++)
        sum += A[i] * A[i];
    return scale * sqrt(sqrt(sqrt(sum)));
}

#endif

#include "ndt/linalg.h"

#include <math.h>
#include <string.h>

static inline __attribute__((always_inline)) void rotate(double *A, double *V, int n, int p, int q)
{
    const double apq = A[p * n + q];
    const double theta = (A[q * n + q] - A[p * n + p]) / (2 * apq);
    const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    A[p * n + p] -= t * apq;
    A[q * n + q] += t * apq;
    A[p * n + q] = A[q * n + p] = 0;
    for (int k = 0; k < n; k++) {
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

/* One sweep over all pairs; returns the number of rotations that were needed. */
static inline __attribute__((always_inline)) int sweep(double *A, double *V, int n)
{
    int rotations = 0;
    for (int p = 0; p < n - 1; p++)
        for (int q = p + 1; q < n; q++) {
            const double scale = sqrt(fabs(A[p * n + p]) * fabs(A[q * n + q]));
            if (fabs(A[p * n + q]) > 1e-16 * scale && fabs(A[p * n + q]) > 1e-300) {
                rotate(A, V, n, p, q);
                rotations++;
            }
        }
    return rotations;
}

static inline __attribute__((always_inline)) void sort_ascending(int n, double *values, double *V)
{
    for (int i = 0; i < n - 1; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            if (values[j] < values[least])
                least = j;
        if (least == i)
            continue;
        const double value = values[i];
        values[i] = values[least];
        values[least] = value;
        for (int k = 0; k < n; k++) {
            const double v = V[k * n + i];
            V[k * n + i] = V[k * n + least];
            V[k * n + least] = v;
        }
    }
}

static inline __attribute__((always_inline)) void eigen_symmetric(int n, const double *upper, double *values,
                                                                  double *V)
{
    double A[36];
    for (int i = 0, at = 0; i < n; i++)
        for (int j = i; j < n; j++)
            A[i * n + j] = A[j * n + i] = upper[at++];
    for (int i = 0; i < n * n; i++)
        V[i] = i % (n + 1) == 0;
    for (int i = 0; i < 30 && sweep(A, V, n) > 0; i++)
        ;
    for (int i = 0; i < n; i++)
        values[i] = A[i * n + i];
    sort_ascending(n, values, V);
}

/* Every voxel of a map asks for n = 3: with the loops unrolled it takes half the instructions, in the same order.
 */
void ndt_eigen_symmetric(int n, const double *upper, double *values, double *V)
{
    if (n == 3)
        eigen_symmetric(3, upper, values, V);
    else
        eigen_symmetric(n, upper, values, V);
}

void ndt_unpack_symmetric6(const double upper[21], double full[36])
{
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            full[i * 6 + j] = full[j * 6 + i] = upper[at++];
}

int ndt_solve_cholesky6(const double upper[21], const double b[6], double ratio, double x[6])
{
    double A[36], y[6];
    ndt_unpack_symmetric6(upper, A);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = A[i * 6 + j];
            for (int k = 0; k < j; k++)
                sum -= A[i * 6 + k] * A[j * 6 + k];
            if (i != j)
                A[i * 6 + j] = sum / A[j * 6 + j];
            else if (sum > ratio * A[i * 6 + i] && sum > 0)
                A[i * 6 + i] = sqrt(sum);
            else
                return 0;
        }
    }
    for (int i = 0; i < 6; i++) {
        y[i] = b[i];
        for (int k = 0; k < i; k++)
            y[i] -= A[i * 6 + k] * y[k];
        y[i] /= A[i * 6 + i];
    }
    for (int i = 5; i >= 0; i--) {
        x[i] = y[i];
        for (int k = i + 1; k < 6; k++)
            x[i] -= A[k * 6 + i] * x[k];
        x[i] /= A[i * 6 + i];
    }
    return 1;
}

int ndt_invert_symmetric3(const double a[6], double inverse[6])
{
    const double c00 = a[3] * a[5] - a[4] * a[4];
    const double c01 = a[2] * a[4] - a[1] * a[5];
    const double c02 = a[1] * a[4] - a[2] * a[3];
    const double det = a[0] * c00 + a[1] * c01 + a[2] * c02;
    const double scale = 1 / det;
    inverse[0] = c00 * scale;
    inverse[1] = c01 * scale;
    inverse[2] = c02 * scale;
    inverse[3] = (a[0] * a[5] - a[2] * a[2]) * scale;
    inverse[4] = (a[1] * a[2] - a[0] * a[4]) * scale;
    inverse[5] = (a[0] * a[3] - a[1] * a[1]) * scale;
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += inverse[i] * 0;
    return sum == 0 && det > 0;
}

#include "kernel_information.h"

#include <math.h>

#include "ndt/eval.h"

enum { SWEEPS = 12 };

/* Makes one Jacobi rotation: M[p][q] becomes zero, and the columns of V turn with it. */
static void rotate(long double M[3][3], long double V[3][3], int p, int q)
{
    if (M[p][q] == 0.0L)
        return;
    const long double theta = (M[q][q] - M[p][p]) / (2.0L * M[p][q]);
    const long double t = copysignl(1.0L, theta) / (fabsl(theta) + sqrtl(theta * theta + 1.0L));
    const long double c = 1.0L / sqrtl(t * t + 1.0L), s = t * c;
    for (int k = 0; k < 3; k++) {
        const long double a = M[k][p], b = M[k][q], v = V[k][p], w = V[k][q];
        M[k][p] = c * a - s * b;
        M[k][q] = s * a + c * b;
        V[k][p] = c * v - s * w;
        V[k][q] = s * v + c * w;
    }
    for (int k = 0; k < 3; k++) {
        const long double a = M[p][k], b = M[q][k];
        M[p][k] = c * a - s * b;
        M[q][k] = s * a + c * b;
    }
    M[p][q] = M[q][p] = 0.0L;
}

void kernel_normal_of(const long double B[6], struct kernel_normal *out)
{
    const long double s2 = (long double)NDT_NORMAL_DEVIATION_RAD * NDT_NORMAL_DEVIATION_RAD;
    long double M[3][3] = {{B[0], B[1], B[2]}, {B[1], B[3], B[4]}, {B[2], B[4], B[5]}};
    long double V[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++)
                rotate(M, V, p, q);
    int most = 0;
    for (int i = 1; i < 3; i++)
        if (M[i][i] > M[most][most])
            most = i;
    const long double b3 = M[most][most], x = M[(most + 1) % 3][(most + 1) % 3],
                      y = M[(most + 2) % 3][(most + 2) % 3];
    const long double b2 = fmaxl(x, y), b1 = fminl(x, y);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const long double along = V[i][most] * V[j][most];
            out->K[3 * i + j] = (b3 - b2) * along - s2 * b3 * ((i == j ? 1.0L : 0.0L) - along);
        }
    out->trace = B[0] + B[3] + B[5];
    out->low = (b2 - b1) / out->trace;
    out->high = (b3 - b2) / out->trace;
    out->ambiguous = b3 - b2 < 1.1e-3L * b3 ? s2 * b3 : 0.0L;
    out->known = 1;
}

long double kernel_normal_condition(const struct kernel_normal *normal, long double unit)
{
    const long double least = sqrtl(unit);
    return 1.0L + 1.0L / fmaxl(normal->low, least) + 1.0L / fmaxl(normal->high, least);
}

void kernel_quarter_turns_make(const double p[6], struct kernel_quarter_turns *out)
{
    const long double quarter = acosl(-1.0L) / 2.0L;
    for (int i = 0; i < 3; i++) {
        long double turned[6] = {0.0L, 0.0L, 0.0L, p[3], p[4], p[5]};
        turned[3 + i] = p[3 + i] + quarter;
        kernel_transform_at(turned, &out->plus[i]);
        turned[3 + i] = p[3 + i] - quarter;
        kernel_transform_at(turned, &out->minus[i]);
    }
}

void kernel_jacobian(const struct kernel_quarter_turns *turns, const long double x_m[3], long double J[6][3])
{
    for (int i = 0; i < 3; i++) {
        long double plus[3], minus[3];
        kernel_transform_point(&turns->plus[i], x_m, plus);
        kernel_transform_point(&turns->minus[i], x_m, minus);
        for (int k = 0; k < 3; k++) {
            J[i][k] = i == k ? 1.0L : 0.0L;
            J[3 + i][k] = (plus[k] - minus[k]) / 2.0L;
        }
    }
}

void kernel_information_of(const long double K[9], long double J[6][3], long double value[21])
{
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++, at++) {
            value[at] = 0.0L;
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 3; l++)
                    value[at] += J[i][k] * K[3 * k + l] * J[j][l];
        }
}

#include "kernel_differences.h"

#include <math.h>

void kernel_transform_at(const long double p[6], struct kernel_transform *out)
{
    const long double sa = sinl(p[3]), ca = cosl(p[3]);
    const long double sb = sinl(p[4]), cb = cosl(p[4]);
    const long double sc = sinl(p[5]), cc = cosl(p[5]);
    const long double Ry_Rz[9] = {cb * cc, -cb * sc, sb, sc, cc, 0.0L, -sb * cc, sb * sc, cb};
    for (int j = 0; j < 3; j++) {
        out->R[j] = Ry_Rz[j];
        out->R[3 + j] = ca * Ry_Rz[3 + j] - sa * Ry_Rz[6 + j];
        out->R[6 + j] = sa * Ry_Rz[3 + j] + ca * Ry_Rz[6 + j];
        out->t[j] = p[j];
    }
}

void kernel_transform_point(const struct kernel_transform *T, const long double x[3], long double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = T->R[3 * i] * x[0] + T->R[3 * i + 1] * x[1] + T->R[3 * i + 2] * x[2] + T->t[i];
}

static void moved(const double p[6], int i, long double di, int j, long double dj, struct kernel_transform *out)
{
    long double q[6];
    for (int k = 0; k < 6; k++)
        q[k] = p[k];
    q[i] += di;
    q[j] += dj;
    kernel_transform_at(q, out);
}

static void make_scale(struct kernel_transform *at, const double p[6], const long double step[6], long double scale)
{
    for (int i = 0; i < 6; i++) {
        moved(p, i, scale * step[i], i, 0.0L, at++);
        moved(p, i, -scale * step[i], i, 0.0L, at++);
    }
    for (int i = 0; i < 6; i++) {
        for (int j = i + 1; j < 6; j++) {
            const long double di = scale * step[i], dj = scale * step[j];
            moved(p, i, di, j, dj, at++);
            moved(p, i, di, j, -dj, at++);
            moved(p, i, -di, j, dj, at++);
            moved(p, i, -di, j, -dj, at++);
        }
    }
}

void kernel_finite_difference_make(struct kernel_finite_difference *points, const double p[6], long double step_m,
                                   long double step_rad)
{
    for (int i = 0; i < 6; i++)
        points->step[i] = i < 3 ? step_m : step_rad;
    moved(p, 0, 0.0L, 0, 0.0L, &points->at[0]);
    make_scale(points->at + 1, p, points->step, 1.0L);
    make_scale(points->at + 1 + 72, p, points->step, 0.5L);
}

static void differences(const long double *value, long double centre, const long double step[6], long double scale,
                        long double gradient[6], long double hessian[21])
{
    const long double *pair = value + KERNEL_FINITE_DIFFERENCE_SINGLES;
    for (int i = 0, k = 0; i < 6; i++) {
        const long double hi = scale * step[i], plus = value[2 * i], minus = value[2 * i + 1];
        gradient[i] = (plus - minus) / (2.0L * hi);
        hessian[k++] = ((plus - centre) - (centre - minus)) / (hi * hi);
        for (int j = i + 1; j < 6; j++, pair += 4)
            hessian[k++] = ((pair[0] - pair[1]) - (pair[2] - pair[3])) / (4.0L * hi * scale * step[j]);
    }
}

void kernel_finite_difference_derive(const struct kernel_finite_difference *points,
                                     const long double value[KERNEL_FINITE_DIFFERENCE_POSES],
                                     long double gradient[6], long double hessian[21])
{
    long double coarse_gradient[6], coarse_hessian[21];
    differences(value + 1, value[0], points->step, 1.0L, coarse_gradient, coarse_hessian);
    differences(value + 1 + 72, value[0], points->step, 0.5L, gradient, hessian);
    for (int i = 0; i < 6; i++)
        gradient[i] += (gradient[i] - coarse_gradient[i]) / 3.0L;
    for (int i = 0; i < 21; i++)
        hessian[i] += (hessian[i] - coarse_hessian[i]) / 3.0L;
}

void kernel_finite_difference_curvature(const struct kernel_finite_difference *points, const long double *value,
                                        long double curvature[6])
{
    for (int i = 0; i < 6; i++)
        curvature[i] =
            (value[1 + 2 * i] - 2.0L * value[0] + value[2 + 2 * i]) / (points->step[i] * points->step[i]);
}

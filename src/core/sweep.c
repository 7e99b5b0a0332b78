#include "sweep.h"

#include <math.h>

static void set_knot(float knot[12], const struct ndt_pose *T)
{
    double R[9];
    ndt_pose_rotation(T, R);
    for (int i = 0; i < 9; i++)
        knot[i] = (float)R[i];
    for (int i = 0; i < 3; i++)
        knot[9 + i] = (float)T->t_m[i];
}

static double knot_time(struct ndt_sweep *sweep, double start_s, double end_s, int i)
{
    const double length_s = end_s - start_s > 1e-9 ? end_s - start_s : 1e-9;
    sweep->start_s = (float)start_s;
    sweep->per_s = (float)(NDT_SWEEP_KNOTS / length_s);
    return start_s + length_s * i / NDT_SWEEP_KNOTS;
}

void ndt_sweep_set(struct ndt_sweep *sweep, const struct ndt_twist *twist, double start_s, double end_s,
                   double reference_s)
{
    for (int i = 0; i < NDT_SWEEP_KNOTS + 2; i++) {
        const double t_s = knot_time(sweep, start_s, end_s, i);
        const struct ndt_pose T = ndt_pose_exp(twist, t_s - reference_s);
        set_knot(sweep->knots[i], &T);
    }
}

void ndt_sweep_set_change(struct ndt_sweep *sweep, const struct ndt_twist *from, const struct ndt_twist *to,
                          double start_s, double end_s, double reference_s)
{
    for (int i = 0; i < NDT_SWEEP_KNOTS + 2; i++) {
        const double t_s = knot_time(sweep, start_s, end_s, i);
        const struct ndt_pose before = ndt_pose_exp(from, t_s - reference_s);
        const struct ndt_pose after = ndt_pose_exp(to, t_s - reference_s);
        const struct ndt_pose undone = ndt_pose_inverse(&before);
        const struct ndt_pose T = ndt_pose_compose(&after, &undone);
        set_knot(sweep->knots[i], &T);
    }
}

void ndt_sweep_apply(const struct ndt_sweep *sweep, float time_s, float p_m[3])
{
    float at = (time_s - sweep->start_s) * sweep->per_s;
    at = fminf(fmaxf(at, 0), NDT_SWEEP_KNOTS);
    const int i = (int)at;
    const float s = at - (float)i, *a = sweep->knots[i], *b = sweep->knots[i + 1];
    const float x = p_m[0], y = p_m[1], z = p_m[2];
    for (int k = 0; k < 3; k++) {
        const float first = a[3 * k] * x + a[3 * k + 1] * y + a[3 * k + 2] * z + a[9 + k];
        const float second = b[3 * k] * x + b[3 * k + 1] * y + b[3 * k + 2] * z + b[9 + k];
        p_m[k] = first + s * (second - first);
    }
}

/* Abramowitz & Stegun 4.4.49 on [0, 1], unfolded to the full circle. */
static float arc_tangent(float y, float x)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    const float a = high > 0 ? low / high : 0, s = a * a;
    float r = (((0.0208351f * s - 0.0851330f) * s + 0.1801410f) * s - 0.3302995f) * s + 0.9998660f;
    r *= a;
    r = ay > ax ? 1.57079633f - r : r;
    r = x < 0 ? 3.14159265f - r : r;
    return y < 0 ? -r : r;
}

float ndt_sweep_azimuth_time(float x_m, float y_m, double sweep_s, int clockwise)
{
    const float turn = arc_tangent(y_m, x_m) * 0.159154943f; /* -1/2 .. 1/2 */
    return (float)sweep_s * (clockwise ? -turn : turn);
}

/** @file
 * @brief Poses around a pose, and derivatives of a function from its values at them.
 *
 * Central differences with steps h and h/2 and one Richardson extrapolation, error O(h^4). Nothing here knows what
 * the function is. */
#ifndef KERNEL_DIFFERENCES_H
#define KERNEL_DIFFERENCES_H

struct kernel_transform {
    long double R[9], t[3];
};

/* Centre; then for h and for h/2: 6 x (+, -), 15 x (++, +-, -+, --). */
enum {
    KERNEL_FINITE_DIFFERENCE_SINGLES = 12,
    KERNEL_FINITE_DIFFERENCE_PAIRS = 60,
    KERNEL_FINITE_DIFFERENCE_POSES = 1 + 2 * 72
};

struct kernel_finite_difference {
    long double step[6]; /* h of the first scale, [m] and [rad] */
    struct kernel_transform at[KERNEL_FINITE_DIFFERENCE_POSES];
};

/* x_map = R x + t with R = Rx(p[3]) Ry(p[4]) Rz(p[5]), t = p[0..2]. */
void kernel_transform_at(const long double p[6], struct kernel_transform *out);
void kernel_transform_point(const struct kernel_transform *T, const long double x[3], long double out[3]);
void kernel_finite_difference_make(struct kernel_finite_difference *points, const double p[6], long double step_m,
                                   long double step_rad);
void kernel_finite_difference_derive(const struct kernel_finite_difference *points,
                                     const long double value[KERNEL_FINITE_DIFFERENCE_POSES],
                                     long double gradient[6], long double hessian[21]);
/* Second derivatives along each parameter, by the first scale alone. */
void kernel_finite_difference_curvature(const struct kernel_finite_difference *points, const long double *value,
                                        long double curvature[6]);

#endif

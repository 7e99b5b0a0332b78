/** @file
 * @brief The information of one pair of a point and a voxel, see struct ndt_information.
 *
 * It contains no closed form and no table of derivatives: eigenvalues and normals come from Jacobi rotations in
 * long double; the Jacobian comes from differences of the transform alone. */
#ifndef KERNEL_INFORMATION_H
#define KERNEL_INFORMATION_H

#include "kernel_differences.h"

/* The matrix of a voxel, for w = 1, and how well arithmetic of a given precision can know it. */
struct kernel_normal {
    int known;
    long double K[9];
    long double trace;
    long double low, high; /* b2 - b1 and b3 - b2, relative to the trace */
    /* Nearly b2 = b3: the normal is any within a plane, and only (b3 - b2) n n^T, which is small, and
     * -s^2 b3 (I - n n^T) up to this size are known. */
    long double ambiguous;
};

void kernel_normal_of(const long double B[6], struct kernel_normal *out);
/* Error of a matrix from its characteristic polynomial in arithmetic with the rounding unit `unit`, in units and
 * relative to the trace. The square root of the unit limits what rounding does to a double root. */
long double kernel_normal_condition(const struct kernel_normal *normal, long double unit);

/* A quarter turn of every angle to either side of a pose. */
struct kernel_quarter_turns {
    struct kernel_transform plus[3], minus[3];
};

void kernel_quarter_turns_make(const double p[6], struct kernel_quarter_turns *out);
/* J[i] is the derivative of the moved point by p[i]. Each element of R is a sinusoid of each angle, so that the
 * central difference over a quarter turn is exact. */
void kernel_jacobian(const struct kernel_quarter_turns *turns, const long double x_m[3], long double J[6][3]);
/* J^T K J, upper triangle. */
void kernel_information_of(const long double K[9], long double J[6][3], long double value[21]);

#endif

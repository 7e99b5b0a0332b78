/** @file
 * @brief The truth that kernels are checked against.
 *
 * It contains no derivative.
 *
 * Only the NDT score (Magnusson 2009, eq. 6.9) is written down here, in long double, over the voxel records of
 * a map level: score = sum over pairs of -d1 exp(-d2/2 q B q), q = R x + t - mean, R = Rx(a) Ry(b) Rz(c).
 * Gradient and Hessian are central differences of that score at two step sizes with one Richardson
 * extrapolation. The step follows each voxel's smallest deviation and each point's range, so truncation
 * stays near 1e-12 of the terms; what rounding adds where a voxel is far off or very small is returned too.
 *
 * The information is written down in kernel_information.h, for every point; its gradient by the time is that of the
 * score.
 *
 * The score is differentiable only while each point keeps its voxels, so the pairs are found once, at the pose
 * in question, and held fixed while differencing. That is the meaning of the analytic derivatives too.
 *
 * Candidates come from a hash of cells of its own, one cell wider on each side than should be needed.
 * Besides each sum the reference returns what a tolerance is made of (all of them >= 0):
 *   weight  sum of |terms|: each derivative bounded by Cauchy-Schwarz from second differences of q B q, so that a
 *           term that happens to cancel still counts;
 *   inner   sum of |terms| times the size of the terms inside q B q: rounding of the pair's arithmetic;
 *   rotation_scale  sum of |terms| times what moving a point by the point's own range changes relatively: rounding
 * of R x; shift   the same for moving a point by one metre: rounding of t, when it is rounded; own     how far the
 * reference itself may be off; normal   sum of |terms| of the information times the condition of the voxel's
 * matrix; slack   contribution of the pairs that rounding may add or drop: the point is within rounding of the
 * radius or of a cell border. One value for float arithmetic, one for double. */
#ifndef KERNEL_REFERENCE_H
#define KERNEL_REFERENCE_H

#include "ndt/backend.h"
#include "ndt/map.h"

/* Order of the sums: that of struct ndt_information, which begins with struct ndt_eval. */
enum {
    KERNEL_SCORE = 0,
    KERNEL_GRADIENT = 1,
    KERNEL_HESSIAN = 7,
    KERNEL_NEAREST = 28,
    KERNEL_MATCHED = 29,
    KERNEL_PAIRS = 30,
    KERNEL_SUMS = 31,
    KERNEL_TIME_GRADIENT = 31,
    KERNEL_INFORMATION = 37,
    KERNEL_ALL = 100
};
enum kernel_rounding { KERNEL_FLOAT, KERNEL_DOUBLE, KERNEL_ROUNDINGS };

struct kernel_expected {
    long double value[KERNEL_ALL];
    long double weight[KERNEL_ALL], inner[KERNEL_ALL], rotation_scale[KERNEL_ALL], shift[KERNEL_ALL];
    long double own[KERNEL_ALL];
    long double normal[KERNEL_ROUNDINGS][KERNEL_ALL];
    long double slack[KERNEL_ROUNDINGS][KERNEL_ALL];
    int derivatives; /* 0: gradients and Hessian have weights, estimated from a part of the points, but no values */
};

struct kernel_question {
    const struct ndt_cloud *scan;
    enum ndt_neighbours neighbours;
    double p[6];
    int exact;          /* 1: the transform is exact in float (no rotation, short binary numbers): no slack */
    size_t full_points; /* scans up to this size get derivatives; of larger ones this many points give weights */
};

struct kernel_reference;
/* Borrows the level; NULL when there is no memory. */
struct kernel_reference *kernel_reference_create(const struct ndt_map_level *level);
void kernel_reference_destroy(struct kernel_reference *reference);
/* Evaluates the reference by one thread; a few ms per 100 pairs with derivatives. Returns 0 when there was no
 * memory. */
int kernel_reference_eval(struct kernel_reference *reference, const struct kernel_question *question,
                          struct kernel_expected *out);

#endif

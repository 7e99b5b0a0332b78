/** @file
 * @brief Small symmetric linear algebra in double: eigenproblems of size 3 and 6, roots of inverses.
 *
 * Eigenvalues by cyclic Jacobi rotations (Golub & Van Loan, section 8.5): accurate to the last digits for small
 * eigenvalues too, without failure cases, and deterministic. Pure functions. */
#ifndef NDT_LINALG_H
#define NDT_LINALG_H

#ifdef __cplusplus
extern "C" {
#endif

/** Eigenvalues in ascending order and unit eigenvectors in the columns of V (row-major n x n) of a symmetric n x n
 * matrix, n <= 6, given as its upper triangle by rows (00 01 .. 0n 11 ..). */
void ndt_eigen_symmetric(int n, const double *upper, double *values, double *V);

/** A^-1 = root root^T for a symmetric 6x6 matrix (upper triangle); 0 when it is not positive definite. */
int ndt_inverse_root6(const double upper[21], double root[36]);

#ifdef __cplusplus
}
#endif
#endif

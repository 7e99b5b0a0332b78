/* The little linear algebra that the matcher needs: symmetric eigenproblems of size 3 and 6 and a
 * 6x6 factorisation, in double. Cyclic Jacobi rotations (Golub & Van Loan, section 8.5): accurate to the
 * last digits also for small eigenvalues, no failure cases, and deterministic. Pure functions. */
#ifndef NDT_LINALG_H
#define NDT_LINALG_H

#ifdef __cplusplus
extern "C" {
#endif

/* Upper triangle by rows (00 01 .. 0n 11 ..) of a symmetric n x n matrix, n <= 6, to eigenvalues in
 * ascending order and unit eigenvectors in the columns of V (row-major n x n). */
void ndt_eigen_symmetric(int n, const double *upper, double *values, double *V);

/* Upper triangle of a symmetric 6x6 matrix to the full row-major matrix. */
void ndt_unpack_symmetric6(const double upper[21], double full[36]);

/* Solves A x = b by Cholesky; 0 when A (upper triangle) is not safely positive definite, that is when a pivot falls
 * below `ratio` of its diagonal element. */
int ndt_solve_cholesky6(const double upper[21], const double b[6], double ratio, double x[6]);

/* A^-1 = root root^T for a symmetric 6x6 matrix (upper triangle); 0 when it is not positive definite. */
int ndt_inverse_root6(const double upper[21], double root[36]);

/* A^-1 for a symmetric 3x3 upper triangle xx xy xz yy yz zz; 0 when singular or not finite. */
int ndt_invert_symmetric3(const double a[6], double inverse[6]);

#ifdef __cplusplus
}
#endif
#endif

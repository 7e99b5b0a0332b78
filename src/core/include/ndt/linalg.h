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

/** @name Dense matrices, row-major, up to NDT_DENSE_MAX rows and columns
 * @{ */
enum { NDT_DENSE_MAX = 24 };
/** C = A B with A m x k, B k x n. C is not A or B. */
void ndt_multiply(int m, int k, int n, const double *A, const double *B, double *C);
/** C = A^T B with A k x m, B k x n. C is not A or B. */
void ndt_multiply_transposed(int k, int m, int n, const double *A, const double *B, double *C);
/** out = A^T S A with A k x m and S k x k symmetric; symmetric to the last bit. `out` is not an input. */
void ndt_congruence(int k, int m, const double *A, const double *S, double *out);
/** Replaces the symmetric n x n matrix A by its lower Cholesky factor (the upper triangle becomes zero); 0, with A
 * destroyed, when A is not positive definite. */
int ndt_factor_cholesky(int n, double *A);
/** Solves L L^T x = b in place. */
void ndt_solve_cholesky(int n, const double *L, double *x);
/** The inverse of a symmetric positive definite matrix, symmetric to the last bit; `out` may be A. 0 when A is not
 * positive definite. */
int ndt_invert_symmetric(int n, const double *A, double *out);
/** ndt_eigen_symmetric of a full matrix, n <= NDT_DENSE_MAX. */
void ndt_eigen_full(int n, const double *A, double *values, double *V);
/** @} */

#ifdef __cplusplus
}
#endif
#endif

/* The functions of ndt/linalg.h and ndt/newton.h for the host: instances of the code that gcc and nvcc share. */
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/newton.h"
#include "ndt/newton_steps.h"
#include "ndt/small_matrix.h"

static void eigen_symmetric6(const double upper[21], double values[6], double V[36])
{
    struct eigen6 e;
    eigen6_load(&e, upper);
    eigen6_solve(&e);
    memcpy(values, e.values, sizeof(e.values));
    memcpy(V, e.vectors, sizeof(e.vectors));
}

/* Every voxel of a map needs n = 3: with the loops unrolled it takes half the instructions, in the same order. */
void ndt_eigen_symmetric(int n, const double *upper, double *values, double *V)
{
    if (n == 3)
        eigen_symmetric(3, upper, values, V);
    else if (n == 6)
        eigen_symmetric6(upper, values, V);
    else
        eigen_symmetric(n, upper, values, V);
}

int ndt_inverse_root6(const double upper[21], double root[36])
{
    return inverse_root6(upper, root);
}

void ndt_newton_set_rotation_scale(struct ndt_newton *newton, const double second_m2[6])
{
    set_rotation_scale(newton, second_m2);
}

void ndt_newton_begin(struct ndt_newton *newton, const struct ndt_newton_rules *rules)
{
    newton_begin(newton, rules);
}

void ndt_newton_step(struct ndt_newton *newton, const struct ndt_newton_rules *rules, struct ndt_newton_row *rows,
                     int32_t capacity, const struct ndt_eval *sums)
{
    newton_step(newton, rules, rows, capacity, sums);
}

void ndt_newton_give_up(struct ndt_newton *newton, struct ndt_newton_row *rows, int32_t capacity)
{
    newton_give_up(newton, rows, capacity);
}

void ndt_newton_information(const struct ndt_newton *newton, double upper[21])
{
    scale_information(newton->inverse_rotation_scale, newton->eval.hessian, upper);
}

void ndt_newton_transform_rotation(const double M[9], const double in[6], double out[6])
{
    transform_rotation(M, in, out);
}

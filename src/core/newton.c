#include "ndt/newton.h"

#include "ndt/newton_steps.h"

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

void ndt_newton_regularize(const struct ndt_newton *newton, const struct ndt_newton_rules *rules,
                           struct ndt_eval *eval)
{
    regularize(newton, rules, eval);
}

void ndt_newton_information(const struct ndt_newton *newton, double upper[21])
{
    scale_information(newton->inverse_rotation_scale, newton->eval.hessian, upper);
}

void ndt_newton_turn_rotation(const double M[9], const double in[6], double out[6])
{
    turn_rotation(M, in, out);
}

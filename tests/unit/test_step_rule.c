/* The step rule of NDT_ROBUST on scores in closed form. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "ndt/newton.h"
#include "run_tests.h"

enum { ROWS = 64 };

static struct ndt_newton newton;
static struct ndt_newton_rules rules;
static struct ndt_newton_row rows[ROWS];

static void setup(void)
{
    const double second_m2[6] = {1, 0, 0, 1, 0, 1};
    memset(&newton, 0, sizeof(newton));
    newton.R0[0] = newton.R0[4] = newton.R0[8] = 1;
    ndt_newton_set_rotation_scale(&newton, second_m2);
    rules = (struct ndt_newton_rules){.variant = NDT_ROBUST,
                                      .level_count = 1,
                                      .max_iterations = 30,
                                      .max_line_search_steps = 2,
                                      .step_limit_m = 1,
                                      .step_limit_rad = 1,
                                      .eigenvalue_floor = 1e-6,
                                      .coarse = {0.05, 0.01, 1e-4},
                                      .fine = {0.005, 0.001, 0},
                                      .weak_eigenvalue_ratio = 1e-9};
}

/* A paraboloid, highest in x at `top_m`, of curvature 100. */
static struct ndt_eval paraboloid(double top_m)
{
    static const int diagonal[6] = {0, 6, 11, 15, 18, 20};
    struct ndt_eval eval = {.score = 1000, .matched = 10, .pairs = 10};
    for (int i = 0; i < 6; i++) {
        const double off = newton.query_pose[i] - (i == 0 ? top_m : 0);
        eval.score -= 50 * off * off;
        eval.gradient[i] = -100 * off;
        eval.hessian[diagonal[i]] = -100;
    }
    return eval;
}

static void step(const struct ndt_eval *eval)
{
    ndt_newton_step(&newton, &rules, rows, ROWS, eval);
}

FIXTURE(setup, NULL)

TEST(small_last_step_is_made_without_evaluation)
{
    ndt_newton_begin(&newton, &rules);
    const struct ndt_eval eval = paraboloid(0.004);
    step(&eval);
    ck_assert(!newton.wants_eval);
    ck_assert_int_eq(newton.evaluations, 1);
    ck_assert_int_eq(newton.stop, NDT_STOP_CONVERGED);
    ck_assert_double_eq_tol(newton.p[0], 0.004, 1e-12);
    ck_assert_double_eq_tol(rows[0].step[0], 0.004, 1e-12);
}

TEST(steps_begin_short_and_grow)
{
    double longest = 0, last = 0;
    ndt_newton_begin(&newton, &rules);
    while (newton.wants_eval) {
        const struct ndt_eval eval = paraboloid(10);
        step(&eval);
        const double step = newton.wants_eval ? newton.query_pose[0] - newton.p[0] : last;
        if (newton.evaluations == 1)
            ck_assert_double_eq_tol(step, 0.25, 1e-12);
        else if (newton.evaluations < 5)
            ck_assert_double_eq_tol(step, fmin(1, 1.5 * last), 1e-12);
        longest = fmax(longest, step);
        last = step;
    }
    ck_assert_double_eq_tol(longest, 1, 1e-12);
    ck_assert_double_eq_tol(newton.p[0], 10, 1e-9);
}

/* The score along the step is 950 + 100 x - c x^3, highest at x = 0.1; the first evaluated length is 0.25. */
TEST(long_step_is_cut_to_the_maximum_of_the_cubic)
{
    const double c = 100 / (3 * 0.1 * 0.1);
    ndt_newton_begin(&newton, &rules);
    struct ndt_eval eval = paraboloid(1);
    step(&eval);
    ck_assert_double_eq_tol(newton.query_pose[0], 0.25, 1e-12);
    eval.score = 950 + 100 * 0.25 - c * pow(0.25, 3);
    eval.gradient[0] = 100 - 3 * c * 0.25 * 0.25;
    ck_assert_double_lt(eval.score, 950);
    step(&eval);
    ck_assert_double_eq_tol(newton.query_pose[0], 0.1, 1e-9);
    ck_assert_double_eq(newton.p[0], 0);
}

/* The slope always rises while the score falls with every evaluation. */
TEST(few_downhill_steps_are_made_and_the_best_pose_kept)
{
    double score = 1000;
    ndt_newton_begin(&newton, &rules);
    while (newton.wants_eval) {
        struct ndt_eval eval = paraboloid(newton.query_pose[0] + 1);
        eval.score = score;
        score -= 100;
        step(&eval);
    }
    ck_assert_int_eq(newton.row_count, 5); /* four downhill steps, and the one that was not made */
    ck_assert_int_eq(newton.evaluations, 1 + 5 * 2);
    ck_assert_double_eq(newton.p[0], 0);
    ck_assert_double_eq(newton.eval.score, 1000);
    ck_assert_double_gt(rows[3].step[0], 0);
    ck_assert_double_eq(rows[4].step[0], 0);
}

/* The prior and the first level of the Newton solver, on scores with a known maximum. */
#include "newton_hills.h"
#include "run_tests.h"

static struct trace other;

static void set_prior(double translation, double rotation)
{
    memset(prior, 0, sizeof(prior));
    prior[0] = prior[6] = prior[11] = translation;
    prior[15] = prior[18] = prior[20] = rotation;
}

/* Common maximum of a quadratic hill and the prior: (A + prior) p = A top + prior mean. */
static void common_maximum(const struct hill *hill, double p[6])
{
    double sum[21], whole[36], pull[6];
    unpack_symmetric6(prior, whole);
    for (int i = 0, at = 0; i < 6; i++) {
        pull[i] = 0;
        for (int j = 0; j < 6; j++)
            pull[i] += hill->A[6 * i + j] * hill->top[j] + whole[6 * i + j] * (GUESS[j] + prior_offset[j]);
        for (int j = i; j < 6; j++)
            sum[at++] = hill->A[6 * i + j] + whole[6 * i + j];
    }
    ck_assert_int_eq(solve_cholesky6(sum, pull, 0, p), 1);
}

/* Moves the mean of the prior away from the guess. */
static void move_prior(struct ndt_random *random)
{
    for (int i = 0; i < 6; i++)
        prior_offset[i] = (i < 3 ? 0.3 : 0.03) * ndt_random_between(random, -1, 1);
}

/* Terms that newton_step adds to sums of zero at a pose. */
static struct ndt_eval prior_at(const double p[6])
{
    struct ndt_eval eval = {0};
    struct ndt_newton n;
    place(&n);
    memcpy(n.query_pose, p, sizeof(n.query_pose));
    add_prior(&n, &eval);
    return eval;
}

FIXTURE(setup, NULL)

TEST(prior_against_differences)
{
    struct ndt_random random = {8};
    for (int round = 0; round < 100; round++) {
        const double h = 1.0 / 128; /* step in a quadratic function: exact but for rounding */
        double p[6], lambda[6], at[6];
        random_spectrum(&random, 4, 0, lambda);
        random_matrix(&random, lambda, prior);
        move_prior(&random);
        for (int i = 0; i < 6; i++)
            p[i] = GUESS[i] + ndt_random_between(&random, -0.5, 0.5);
        const struct ndt_eval here = prior_at(p);
        ck_assert_double_lt(here.score, 0);
        for (int i = 0, k = 0; i < 6; i++) {
            struct ndt_eval moved[2];
            for (int side = 0; side < 2; side++) {
                memcpy(at, p, sizeof(at));
                at[i] += side ? h : -h;
                moved[side] = prior_at(at);
            }
            ck_assert_double_eq_tol(here.gradient[i], (moved[1].score - moved[0].score) / (2 * h), 1e-7);
            for (int j = i; j < 6; j++)
                ck_assert_double_eq_tol(here.hessian[k++], (moved[1].gradient[j] - moved[0].gradient[j]) / (2 * h),
                                        1e-7);
        }
        for (int i = 0; i < 6; i++)
            p[i] = GUESS[i] + prior_offset[i];
        const struct ndt_eval mean = prior_at(p);
        ck_assert(fabs(mean.score) < 1e-20 && mean.matched == 0);
    }
}

/* Hill and prior are both quadratic: the answer is known, and eval holds their sum. */
TEST(solve_ends_at_the_maximum_with_the_prior)
{
    struct ndt_random random = {9};
    for (int round = 0; round < 50; round++) {
        double lambda[6], wanted[6];
        random_spectrum(&random, 3, 0, lambda);
        random_matrix(&random, lambda, prior);
        move_prior(&random);
        common_maximum(&ground.level[0], wanted);
        solve();
        ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
        assert_at(trace.newton.p, wanted, 1e-9);
        const struct ndt_newton_row *last = &trace.rows[trace.newton.row_count - 1];
        const struct ndt_eval hill = score_at(&ground.level[0], last->p), pull = prior_at(last->p);
        ck_assert_double_eq_tol(last->eval.score, hill.score + pull.score, 1e-9);
        for (int i = 0; i < 6; i++)
            ck_assert_double_eq_tol(last->eval.gradient[i], hill.gradient[i] + pull.gradient[i], 1e-9);
        for (int i = 0; i < 21; i++)
            ck_assert_double_eq_tol(last->eval.hessian[i], hill.hessian[i] + pull.hessian[i], 1e-9);
        ck_assert(last->eval.matched == hill.matched);
    }
}

TEST(strong_and_weak_priors)
{
    for (int gaussian = 0; gaussian < 2; gaussian++) {
        for (int i = 0; i < 3; i++)
            set_hill(&ground.level[i], gaussian, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
        rules.level_count = 3;
        set_prior(1e9, 1e9);
        solve();
        ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
        assert_at(trace.newton.p, GUESS, 1e-4);

        set_prior(0, 0);
        solve();
        set_prior(1e-9, 1e-9);
        search_for(&other, ROWS, LOG);
        ck_assert_int_eq(other.newton.evaluations, trace.newton.evaluations);
        assert_at(other.newton.p, trace.newton.p, 1e-9);
    }
}

/* A prior of zero is as none: also with negative zeros, and far from the guess. */
TEST(prior_of_zero_changes_no_bit)
{
    struct ndt_random random = {10};
    for (int i = 0; i < 21; i++)
        prior[i] = i % 2 ? -0.0 : 0.0;
    for (int round = 0; round < 100; round++) {
        struct ndt_newton n;
        struct ndt_eval eval = score_at(&ground.level[0], GUESS), copy;
        move_prior(&random);
        place(&n);
        for (int i = 0; i < 6; i++) {
            n.query_pose[i] = 1e6 * ndt_random_between(&random, -1, 1);
            eval.gradient[i] *= ndt_random_between(&random, -1, 1);
        }
        eval.gradient[round % 6] = round % 12 < 6 ? 0.0 : -0.0;
        copy = eval;
        add_prior(&n, &eval);
        ck_assert_mem_eq(&eval, &copy, sizeof(eval));
    }
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    rules.level_count = 3;
    solve();
    assert_rows_tell_the_steps(&trace); /* each eval has the bits of the sums */
    ck_assert_int_gt(trace.newton.row_count, 3);
}

/* A corridor: the scan hardly observes one direction. The prior decides there and nowhere else, and does not hide
 * that the direction is weak. */
TEST(prior_decides_where_the_scan_does_not)
{
    struct ndt_random random = {12};
    for (int round = 0; round < 50; round++) {
        double v[6], off[6], scaled[6], wanted[6], along = 0, top_along = 0, rest = 0, found = 0;
        unit6(&random, v);
        make_weak(&ground.level[0], v);
        set_prior(0, 0);
        solve();
        ck_assert_int_eq(trace.newton.weak.count, 1);
        ndt_newton_transform_rotation(trace.newton.rotation_scale_m, v, scaled);
        for (int i = 0, at = 0; i < 6; i++) /* 50 v v^T, where the hill has 0.5 v v^T; rotations in metres */
            for (int j = i; j < 6; j++)
                prior[at++] = 50 * scaled[i] * scaled[j];
        common_maximum(&ground.level[0], wanted);
        solve();
        const struct ndt_newton *n = &trace.newton;
        ck_assert_int_eq(n->stop, NDT_STOP_CONVERGED);
        ck_assert_int_eq(n->weak.count, 1);
        assert_at(n->p, wanted, 1e-9);
        for (int i = 0; i < 6; i++) {
            found += v[i] * n->weak.axes[0][i];
            off[i] = n->p[i] - GUESS[i];
        }
        ck_assert_double_eq_tol(fabs(found), 1, 1e-9);
        ndt_newton_transform_rotation(n->rotation_scale_m, off, scaled);
        for (int i = 0; i < 6; i++)
            along += v[i] * scaled[i];
        for (int i = 0; i < 6; i++)
            off[i] = ground.level[0].top[i] - GUESS[i];
        ndt_newton_transform_rotation(n->rotation_scale_m, off, scaled);
        for (int i = 0; i < 6; i++)
            top_along += v[i] * scaled[i];
        ck_assert_double_eq_tol(along, top_along * 0.5 / 50.5, 1e-9);
        for (int i = 0; i < 6; i++)
            off[i] = ground.level[0].top[i] - n->p[i];
        ndt_newton_transform_rotation(n->rotation_scale_m, off, scaled);
        for (int i = 0; i < 6; i++)
            rest += pow(scaled[i] - (top_along - along) * v[i], 2);
        ck_assert_msg(sqrt(rest) < 1e-9, "across it is %g away from the top", sqrt(rest));
    }
}

/* A strong prior makes every score negative far from the guess. A small step may lose a part of its size, whatever
 * its sign. */
TEST(negative_scores_keep_the_slack)
{
    double wanted[6];
    ground.level[0].height = 5;
    ground.level[0].top[0] = 0.9;
    set_prior(400, 40000);
    common_maximum(&ground.level[0], wanted);
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    ck_assert_double_lt(trace.newton.eval.score, 0);
    assert_at(trace.newton.p, wanted, 1e-9);
    for (int i = 0; i < trace.newton.row_count; i++)
        ck_assert_int_le(trace.rows[i].evaluations, i ? 1 : 2); /* no length is rejected */

    struct ndt_newton n;
    struct ndt_eval to = {0};
    place(&n);
    n.alpha = 1;
    memset(&n.eval, 0, sizeof(n.eval));
    for (int i = 0; i < 6; i++)
        n.d[i] = i ? 0 : 0.5 * NDT_SLACK_M;
    n.eval.gradient[0] = 1;
    for (int sign = -1; sign <= 1; sign += 2) {
        n.eval.score = 1000 * sign;
        to.score = n.eval.score - 0.9 * NDT_SLACK * 1000;
        ck_assert_int_eq(is_acceptable(&n, &to), 1);
        to.score = n.eval.score - 1.1 * NDT_SLACK * 1000;
        ck_assert_int_eq(is_acceptable(&n, &to), 0);
    }
}

/* A solve from a later level is the solve of a chain that begins there; the step rule of Autoware has one level. */
TEST(first_level_shortens_the_chain)
{
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    ground.level[0].top[0] = 0.7; /* a level that is left out has no influence */
    set_prior(3, 200);
    for (first_level = 1; first_level < 3; first_level++) {
        const struct ndt_newton_rules chain = rules;
        rules.level_count = 3;
        solve();
        ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
        for (int i = 0; i < trace.count; i++)
            ck_assert_int_ge(trace.queries[i].level, first_level);
        ck_assert_int_eq(trace.queries[0].level, first_level);
        assert_at(trace.queries[0].p, GUESS, 0);
        const int begun = first_level;
        rules = chain;
        rules.level_count = 3 - begun;
        for (int i = 0; i < rules.level_count; i++)
            rules.level[i] = i + begun, rules.neighbours[i] = chain.neighbours[i + begun];
        first_level = 0;
        search_for(&other, ROWS, LOG);
        first_level = begun;
        ck_assert_mem_eq(trace.rows, other.rows, sizeof(trace.rows));
        ck_assert_mem_eq(trace.newton.p, other.newton.p, sizeof(trace.newton.p));
        ck_assert_mem_eq(&trace.newton.eval, &other.newton.eval, sizeof(trace.newton.eval));
        rules = chain;
    }
    rules.variant = NDT_AUTOWARE;
    rules.level_count = 3;
    first_level = 0;
    solve();
    first_level = 1;
    search_for(&other, ROWS, LOG);
    ck_assert_int_eq(other.queries[0].level, 2);
    ck_assert_mem_eq(trace.rows, other.rows, sizeof(trace.rows));
}

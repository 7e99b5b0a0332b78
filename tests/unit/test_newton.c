/* The Newton solver on scores with a known maximum: final pose, trace, early stop and invalid sums. */
#include "newton_hills.h"
#include "run_tests.h"

static struct trace other;

FIXTURE(setup, NULL)

TEST(quadratic_takes_one_step)
{
    static const double near[6] = {0.12, -0.06, 0.02, 0.005, -0.004, 0.006};
    memcpy(ground.level[0].top, near, sizeof(near));
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    assert_at(trace.newton.p, near, 1e-12);
    assert_belongs_to(&trace, &trace.newton.eval, trace.newton.p, 0);
    ck_assert_int_eq(trace.newton.evaluations, 2);
    ck_assert_int_eq(trace.newton.row_count, 2);
    ck_assert_int_eq(trace.newton.weak.count, 0);
    ck_assert_int_eq(trace.newton.oscillation, 0);
    assert_at(trace.rows[0].p, GUESS, 0);
    for (int i = 0; i < 6; i++)
        ck_assert_double_le(fabs(trace.rows[1].step[i]), 1e-12);
    assert_rows_tell_the_steps(&trace);
}

/* Capping metres and radians separately could turn an ascent into a descent: then both are shortened by the same
 * factor. */
TEST(capped_steps_are_ascents)
{
    struct ndt_random random = {11};
    for (int round = 0; round < 200; round++) {
        set_hill(&ground.level[0], 1, ndt_random_between(&random, 10, 50), ndt_random_between(&random, 1000, 5000));
        for (int i = 0; i < 6; i++)
            ground.level[0].top[i] = GUESS[i] + (i < 3 ? 0.4 : 0.04) * ndt_random_between(&random, -1, 1);
        solve();
        for (int i = 0; i < trace.newton.row_count; i++) {
            const struct ndt_newton_row *row = &trace.rows[i];
            double slope = 0;
            for (int k = 0; k < 6; k++)
                slope += row->eval.gradient[k] * row->step[k];
            ck_assert_msg(slope >= 0, "round %d: step %d has slope %g", round, i, slope);
        }
        assert_at(trace.newton.p, ground.level[0].top, 2e-3);
    }
}

/* Outside of the inflection the Hessian is indefinite: a plain Newton step would diverge. */
TEST(gaussian_converges_from_outside_its_inflection)
{
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    rules.level_count = 3;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    assert_at(trace.newton.p, ground.level[2].top, 1e-3);
    ck_assert_int_eq(trace.newton.level, 2);
    assert_rows_tell_the_steps(&trace);

    rules.level_count = 1;
    diagonal(ground.level[0].A, 10, 1000);
    ground.level[0].top[0] = GUESS[0] + 0.6; /* 1.9 deviations */
    solve();
    const struct ndt_eval start = score_at(&ground.level[0], GUESS);
    ck_assert(start.hessian[0] > 0);
    assert_at(trace.newton.p, ground.level[0].top, 1e-3);
    assert_rows_tell_the_steps(&trace);
}

TEST(translation_and_rotation_are_capped_separately)
{
    const double far[6] = {7, 5, -1, 0.2, -0.1, 0.15};
    memcpy(ground.level[0].top, far, sizeof(far));
    diagonal(ground.level[0].A, 400, 40000);
    solve();
    const struct ndt_newton_row *row = trace.rows;
    double trust = NDT_TRUST_FIRST; /* trust that grows until the limits are reached */
    for (int i = 0; i < 6; i++, trust = fmin(1, NDT_TRUST_GROWTH * trust)) {
        ck_assert_double_eq_tol(norm3(row[i].step), trust * rules.step_limit_m, 1e-12);
        if (i < 3)
            ck_assert_double_eq_tol(norm3(row[i].step + 3), trust * rules.step_limit_rad, 1e-12);
    }
    for (int i = 0; i < trace.newton.row_count; i++) {
        ck_assert(norm3(row[i].step) <= rules.step_limit_m * (1 + 1e-12));
        ck_assert(norm3(row[i].step + 3) <= rules.step_limit_rad * (1 + 1e-12));
    }
    for (int i = 0; i < 3; i++) /* the direction is kept */
        ck_assert_double_eq_tol(row->step[i] / norm3(row->step), (far[i] - GUESS[i]) / distance(far, GUESS, 0),
                                1e-12);
    assert_at(trace.newton.p, far, 1e-9);
    ck_assert_int_eq(trace.newton.row_count,
                     15); /* 8.8 m: 2 m in the first 4 steps, then 0.75 m each, and the last */
    assert_rows_tell_the_steps(&trace);
}

/* Makes every pose after the first evaluation score lower than its gradient predicts. */
static void spoil_samples(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call > 0)
        eval->score = -1000;
}

/* Two iterations: the first accepts a downhill step, the second gains nothing, at the latest with its shortest
 * length. */
TEST(line_search_steps_are_cut_and_end)
{
    ground.spoil = spoil_samples;
    for (rules.max_line_search_steps = 1; rules.max_line_search_steps <= 6; rules.max_line_search_steps++) {
        solve();
        ck_assert_int_le(trace.newton.evaluations, 1 + 2 * rules.max_line_search_steps);
        ck_assert_int_ge(trace.newton.evaluations, 2 + rules.max_line_search_steps);
        ck_assert_int_eq(trace.newton.row_count, 2);
        ck_assert_int_eq(trace.rows[0].evaluations, 1 + rules.max_line_search_steps);
        for (int i = 2; i <= rules.max_line_search_steps; i++) {
            const double cut = distance(trace.queries[i].p, GUESS, 0) / distance(trace.queries[i - 1].p, GUESS, 0);
            ck_assert(cut >= NDT_CUT_LEAST - 1e-12 && cut <= NDT_CUT_MOST + 1e-12);
        }
        assert_at(trace.newton.p, GUESS, 0);
        assert_taken_at(&trace.newton.eval, GUESS, 0);
    }
}

/* The best pose evaluated on this level, which the solver must keep. */
static const struct entry *best_on_level(const struct trace *w)
{
    const struct entry *best = NULL;
    for (int i = 0; i < w->count; i++) {
        const struct entry *entry = &w->queries[i];
        if (entry->phase == NDT_PHASE_OPEN)
            best = entry;
        else if (best && entry->score > best->score)
            best = entry;
    }
    return best;
}

/* Stops after every possible number of evaluations. */
static void give_up_everywhere(int phases[2])
{
    solve();
    const int total = trace.newton.evaluations;
    ck_assert_int_gt(total, 3);
    for (int k = 0; k <= total; k++) {
        memset(&other, 0, sizeof(other));
        search_for(&other, ROWS, k);
        const struct ndt_newton *n = &other.newton;
        ck_assert_int_eq(n->evaluations, k);
        assert_rows_tell_the_steps(&other);
        if (k == total)
            continue;
        ck_assert_int_eq(n->stop, NDT_STOP_DEADLINE);
        const struct entry *next = &trace.queries[k]; /* its query before */
        phases[next->phase]++;
        for (int i = 0; i < n->row_count - 1; i++)
            ck_assert_mem_eq(&other.rows[i], &trace.rows[i], sizeof(other.rows[i]));
        if (k == 0) { /* nothing is known */
            static const struct ndt_eval none;
            assert_at(n->p, GUESS, 0);
            ck_assert_mem_eq(&n->eval, &none, sizeof(none));
        } else if (next->phase == NDT_PHASE_OPEN) { /* a finer level begins: the pose counts at once */
            ck_assert_mem_eq(n->p, next->p, sizeof(n->p));
            ck_assert(n->eval.score == best_on_level(&other)->score);
            assert_belongs_to(&other, &n->eval, n->p, trace.queries[k - 1].level);
        } else {
            ck_assert_mem_eq(n->p, best_on_level(&other)->p, sizeof(n->p));
            assert_taken_at(&n->eval, n->p, next->level);
        }
    }
}

TEST(early_stop_keeps_the_best_pose)
{
    static const double v[6] = {0, 0.8, 0, 0, 0, 0.6};
    int phases[2] = {0};
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    rules.level_count = 3;
    ground.level[0].top[0] = 0.7;
    give_up_everywhere(phases);
    for (int i = 0; i < 3; i++) {
        set_hill(&ground.level[i], 0, 400, 40000);
        make_weak(&ground.level[i], v);
        ground.level[i].top[2] = 1.0 - 0.3 * i; /* levels disagree: a step at each */
    }
    give_up_everywhere(phases);
    ck_assert_int_gt(phases[NDT_PHASE_OPEN], 2);
    ck_assert_int_gt(phases[NDT_PHASE_LINE_SEARCH], 5);
}

TEST(early_stop_autoware)
{
    rules.variant = NDT_AUTOWARE;
    rules.level_count = 2;
    ground.level[1].top[0] = 1.0;
    solve();
    const int total = trace.newton.evaluations;
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    ck_assert_int_gt(total, 5);
    for (int k = 0; k < total; k++) {
        search_for(&other, ROWS, k);
        ck_assert_int_eq(other.newton.stop, NDT_STOP_DEADLINE);
        ck_assert_mem_eq(other.newton.p, k ? trace.queries[k - 1].p : GUESS, sizeof(other.newton.p));
        if (k)
            assert_taken_at(&other.newton.eval, other.newton.p, 1);
        assert_rows_tell_the_steps(&other);
    }
}

TEST(autoware_clamps_the_mixed_norm)
{
    rules.variant = NDT_AUTOWARE;
    rules.level_count = 2; /* the finest is the one */
    ground.level[1].top[1] = -0.7;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    ck_assert_int_eq(trace.newton.level, 1);
    for (int i = 0; i < trace.newton.row_count; i++) {
        double norm = 0;
        for (int k = 0; k < 6; k++)
            norm += trace.rows[i].step[k] * trace.rows[i].step[k];
        ck_assert(sqrt(norm) <= rules.step_size * (1 + 1e-12));
        ck_assert(norm == 0 || sqrt(norm) >= rules.trans_epsilon / 2 * (1 - 1e-12));
        ck_assert_int_eq(trace.rows[i].evaluations, i ? 1 : 2);
    }
    ck_assert_double_eq_tol(distance(trace.newton.p, ground.level[1].top, 0), 0, rules.trans_epsilon);
    assert_rows_tell_the_steps(&trace);
}

/* A small step may lower the score a little; the better pose is kept. */
static void spoil_a_little(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call > 0)
        eval->score = ground.level[0].height * (1 - 2e-4);
}

TEST(tolerated_loss_keeps_the_best_pose)
{
    memcpy(ground.level[0].top, GUESS, sizeof(GUESS));
    ground.level[0].top[0] += 0.01;
    ground.spoil = spoil_a_little;
    solve();
    ck_assert(trace.rows[0].step[0] > 0.009); /* it was taken */
    assert_at(trace.newton.p, GUESS, 0);
    assert_taken_at(&trace.newton.eval, GUESS, 0);
}

static void spoil_first_sample(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call == 1)
        eval->score = -1e9;
}

TEST(cut_steps_shorten_the_next)
{
    const double cut = NDT_TRUST_FIRST * NDT_CUT_LEAST, least = NDT_TRUST_LEAST;
    const double lengths[] = {cut, least, least * NDT_TRUST_GROWTH, least * NDT_TRUST_GROWTH * NDT_TRUST_GROWTH};
    ground.level[0].top[0] = 6;
    ground.spoil = spoil_first_sample;
    solve();
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(norm3(trace.rows[i].step), lengths[i] * rules.step_limit_m, 1e-9);
    ck_assert_int_eq(trace.rows[0].evaluations, 3);
}

TEST(autoware_reverses_downhill_steps)
{
    rules.variant = NDT_AUTOWARE;
    ground.level[0].gaussian = 1;
    diagonal(ground.level[0].A, 10, 1000);
    memcpy(ground.level[0].top, GUESS, sizeof(GUESS));
    ground.level[0].top[0] += 0.6; /* 1.9 deviations: a plain Newton step diverges */
    solve();
    ck_assert(trace.rows[0].step[0] > 0);
    assert_at(trace.newton.p, ground.level[0].top, rules.trans_epsilon);
}

/* Too few rows shorten the trace and change nothing else. */
TEST(trace_of_one_row_suffices)
{
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    rules.level_count = 3;
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        rules.variant = variant;
        solve();
        search_for(&other, 1, LOG);
        ck_assert_int_gt(trace.newton.row_count, 3);
        ck_assert_mem_eq(&trace.newton, &other.newton, sizeof(trace.newton));
        ck_assert_mem_eq(&other.rows[0].step, &trace.rows[trace.newton.row_count - 1].step,
                         sizeof(other.rows[0].step));
        ck_assert_mem_eq(&other.rows[0].eval, &trace.rows[trace.newton.row_count - 1].eval,
                         sizeof(other.rows[0].eval));
        for (size_t i = 0; i < sizeof(other.rows[1]); i++)
            ck_assert_uint_eq(((const unsigned char *)&other.rows[1])[i], 0xa5);
    }
}

TEST(iterations_are_limited)
{
    for (int i = 0; i < 3; i++)
        ground.level[i].top[0] = 20;
    rules.level_count = 3;
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        rules.variant = variant;
        for (rules.max_iterations = 1; rules.max_iterations < 9; rules.max_iterations++) {
            solve();
            ck_assert_int_eq(trace.newton.stop, NDT_STOP_ITERATIONS);
            ck_assert_int_eq(trace.newton.row_count, rules.max_iterations);
            double travelled_m = variant ? rules.max_iterations * rules.step_size : 0, trust = NDT_TRUST_FIRST;
            for (int i = 0; !variant && i < rules.max_iterations; i++, trust = fmin(1, NDT_TRUST_GROWTH * trust))
                travelled_m += trust * rules.step_limit_m;
            ck_assert_double_eq_tol(distance(trace.newton.p, GUESS, 0), travelled_m, 0.05);
            assert_taken_at(&trace.newton.eval, trace.newton.p, trace.newton.level);
            ck_assert_int_eq(trace.newton.level, 2);
        }
    }
}

TEST(levels_without_matches)
{
    rules.level_count = 3;
    ground.level[0].matched = 0;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_CONVERGED);
    assert_at(trace.newton.p, ground.level[2].top, 1e-12);
    ck_assert_int_eq(trace.rows[0].level, 1);
    assert_at(trace.rows[0].p, GUESS, 0);

    ground.level[0].matched = 100;
    ground.level[2].matched = 0;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_OFF_MAP);
    assert_at(trace.newton.p, ground.level[1].top, 1e-12);
    ck_assert(trace.newton.eval.matched == 0);

    ground.level[0].matched = ground.level[1].matched = 0;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_OFF_MAP);
    ck_assert_int_eq(trace.newton.evaluations, 3);
    ck_assert_int_eq(trace.newton.row_count, 0);
    assert_at(trace.newton.p, GUESS, 0);

    rules.variant = NDT_AUTOWARE;
    solve();
    ck_assert_int_eq(trace.newton.stop, NDT_STOP_OFF_MAP);
    ck_assert_int_eq(trace.newton.evaluations, 1);
    assert_at(trace.newton.p, GUESS, 0);
}

static int nan_call;
static unsigned nan_parts; /* 1 score, 2 gradient, 4 Hessian */

static void spoil_with_nan(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call < nan_call)
        return;
    if (nan_parts & 1)
        eval->score = NAN;
    for (int i = 0; i < 6 && nan_parts & 2; i++)
        eval->gradient[i] = NAN;
    for (int i = 0; i < 21 && nan_parts & 4; i++)
        eval->hessian[i] = NAN;
}

/* The solve ends at a pose that it has queried, for any sums. */
TEST(nan_sums_end_the_solve)
{
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], 1, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    rules.level_count = 3;
    ground.spoil = spoil_with_nan;
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++)
        for (nan_call = 0; nan_call < 8; nan_call++)
            for (nan_parts = 1; nan_parts < 8; nan_parts++) {
                rules.variant = variant;
                solve();
                ck_assert_int_le(trace.newton.evaluations, rules.max_iterations * rules.max_line_search_steps + 4);
            }
}

/* Weak directions are reported, and the solve goes to the maximum along them, too. */
TEST(weak_directions_are_found)
{
    struct ndt_random random = {5};
    for (int round = 0; round < 50; round++) {
        double v[6], along = 0;
        unit6(&random, v);
        make_weak(&ground.level[0], v);
        solve();
        const struct ndt_newton *n = &trace.newton;
        ck_assert_int_eq(n->stop, NDT_STOP_CONVERGED);
        ck_assert_int_eq(n->weak.count, 1);
        for (int i = 0; i < 6; i++)
            along += v[i] * n->weak.axes[0][i];
        ck_assert_double_eq_tol(fabs(along), 1, 1e-9);
        assert_at(n->p, ground.level[0].top, 1e-9);
        assert_belongs_to(&trace, &n->eval, n->p, 0);
        assert_rows_tell_the_steps(&trace);
    }
}

/* The ascent direction is opposite to the previous step. */
static void spoil_by_turns(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    for (int i = 0; i < 6; i++)
        eval->gradient[i] = i == 0 ? (call % 2 ? -400 : 400) : 0;
}

/* The ascent direction alternates between left and straight ahead. */
static void spoil_sideways(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    for (int i = 0; i < 6; i++)
        eval->gradient[i] = i == call % 2 ? 400 : 0;
}

TEST(oscillation_is_counted)
{
    diagonal(ground.level[0].A, 400, 40000);
    ground.spoil = spoil_by_turns;
    rules.variant = NDT_AUTOWARE;
    for (rules.max_iterations = 1; rules.max_iterations < 12; rules.max_iterations++) {
        solve();
        ck_assert_int_eq(trace.newton.row_count, rules.max_iterations);
        /* The first step reverses nothing. */
        ck_assert_int_eq(trace.newton.oscillation, rules.max_iterations > 2 ? rules.max_iterations - 2 : 0);
    }
    ground.spoil = spoil_sideways;
    solve();
    ck_assert_int_gt(trace.newton.row_count, 5);
    ck_assert_int_eq(trace.newton.oscillation, 0);
}

/* Solves while solver and rows are copied to other addresses before every call. */
static void solve_while_moving(struct trace *w)
{
    static struct ndt_newton place_a, place_b;
    static struct ndt_newton_row rows_a[ROWS], rows_b[ROWS];
    static struct ndt_newton_rules rules_b;
    struct ndt_newton *now = &place_a, *next = &place_b;
    struct ndt_newton_row *rows = rows_a, *next_rows = rows_b;
    memset(w, 0, sizeof(*w));
    memset(rows_a, 0xa5, sizeof(rows_a));
    place(now);
    ndt_newton_begin(now, &rules);
    while (now->wants_eval) {
        memcpy(next, now, sizeof(*now));
        memcpy(next_rows, rows, sizeof(rows_a));
        memset(now, 0x77, sizeof(*now));
        memset(rows, 0x77, sizeof(rows_a));
        struct ndt_newton *free_place = now;
        struct ndt_newton_row *free_rows = rows;
        now = next, next = free_place;
        rows = next_rows, next_rows = free_rows;
        rules_b = rules;
        const struct ndt_eval eval = sums_for(now, w->count++);
        ndt_newton_step(now, &rules_b, rows, ROWS, &eval);
        memset(&rules_b, 0x77, sizeof(rules_b));
    }
    w->newton = *now;
    memcpy(w->rows, rows, sizeof(rows_a));
}

TEST(solver_can_be_copied_between_calls)
{
    static const double v[6] = {0, 0.8, 0, 0, 0, 0.6};
    rules.level_count = 3;
    for (int i = 0; i < 3; i++)
        set_hill(&ground.level[i], i < 2, i == 0 ? 10 : 40, i == 0 ? 1000 : 4000);
    make_weak(&ground.level[2], v);
    for (int variant = NDT_ROBUST; variant <= NDT_AUTOWARE; variant++) {
        rules.variant = variant;
        solve();
        solve_while_moving(&other);
        ck_assert_int_gt(trace.newton.evaluations, 5);
        ck_assert_mem_eq(&trace.newton, &other.newton, sizeof(trace.newton));
        ck_assert_mem_eq(trace.rows, other.rows, ROWS * sizeof(trace.rows[0]));
    }
}

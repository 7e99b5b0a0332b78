/* The Newton solver on scores with a known maximum: final pose, trace, early stop and invalid sums. And the small
 * matrices it uses, against eigenvalues. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt/newton.h"
#include "street_world.h"

#include "ndt/newton_steps.h"

enum { ROWS = 64, LOG = 1000, MATRICES = 4000 };

/* A score around one maximum: height - q A q / 2, or height exp(-q A q / 2); q = p - top. */
struct hill {
    int gaussian;
    double top[6], A[36], height, matched;
};

/* The score passed to the solver: a hill per level, and a function that modifies it. */
struct ground {
    struct hill level[NDT_MAX_LEVELS];
    void (*spoil)(int call, const struct ndt_newton *newton, struct ndt_eval *eval);
};

struct entry {
    double p[6];
    double score;
    int level, phase, holding;
};

/* One solve, and all its queries. */
struct trace {
    struct ndt_newton newton;
    struct ndt_newton_row rows[ROWS + 1];
    struct entry queries[LOG];
    int count;
};

static struct ground ground;
static struct ndt_newton_rules rules;
static struct trace trace, other;

static void quadratic_form(const double A[36], const double q[6], double Aq[6], double *qAq)
{
    *qAq = 0;
    for (int i = 0; i < 6; i++) {
        Aq[i] = 0;
        for (int j = 0; j < 6; j++)
            Aq[i] += A[6 * i + j] * q[j];
        *qAq += q[i] * Aq[i];
    }
}

static struct ndt_eval score_at(const struct hill *hill, const double p[6])
{
    struct ndt_eval eval = {.matched = hill->matched, .pairs = 2 * hill->matched, .nearest_score = 1};
    double q[6], Aq[6], qAq;
    if (hill->matched == 0)
        return (struct ndt_eval){0};
    for (int i = 0; i < 6; i++)
        q[i] = p[i] - hill->top[i];
    quadratic_form(hill->A, q, Aq, &qAq);
    const double w = hill->gaussian ? hill->height * exp(-0.5 * qAq) : 1;
    eval.score = hill->gaussian ? w : hill->height - 0.5 * qAq;
    for (int i = 0, at = 0; i < 6; i++) {
        eval.gradient[i] = -w * Aq[i];
        for (int j = i; j < 6; j++)
            eval.hessian[at++] = w * ((hill->gaussian ? Aq[i] * Aq[j] : 0) - hill->A[6 * i + j]);
    }
    return eval;
}

static void diagonal(double A[36], double translation, double rotation)
{
    memset(A, 0, 36 * sizeof(double));
    for (int i = 0; i < 6; i++)
        A[7 * i] = i < 3 ? translation : rotation;
}

static void set_hill(struct hill *hill, int gaussian, double translation, double rotation)
{
    static const double top[6] = {0.3, -0.2, 0.1, 0.02, -0.01, 0.03};
    *hill = (struct hill){.gaussian = gaussian, .height = 500, .matched = 100};
    diagonal(hill->A, translation, rotation);
    memcpy(hill->top, top, sizeof(top));
    hill->A[1] = hill->A[6] = 0.3 * translation; /* x and y belong together */
}

static void setup(void)
{
    memset(&ground, 0, sizeof(ground));
    memset(&trace, 0, sizeof(trace));
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        set_hill(&ground.level[i], 0, 400, 40000);
    rules = (struct ndt_newton_rules){
        .variant = NDT_ROBUST,
        .level_count = 1,
        .level = {0, 1, 2},
        .neighbours = {NDT_DIRECT7, NDT_RADIUS, NDT_DIRECT1},
        .max_iterations = 30,
        .max_line_search_steps = 4,
        .step_limit_m = 0.75,
        .step_limit_rad = 0.05,
        .eigenvalue_floor = 1e-6,
        .coarse = {0.02, 0.0017, 1e-4},
        .fine = {0.001, 0.00017, 1e-6},
        .trans_epsilon = 0.01,
        .step_size = 0.1,
        .weak_eigenvalue_ratio = 0.0125,
    };
}

static const double GUESS[6] = {0.05, 0.02, -0.03, 0, 0, 0};

static void place(struct ndt_newton *newton)
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const double second_m2[6] = {120, 8, -3, 70, 2, 10};
    memset(newton, 0xff, sizeof(*newton)); /* what is not set is NaN */
    memcpy(newton->guess, GUESS, sizeof(GUESS));
    memcpy(newton->R0, identity, sizeof(identity));
    ndt_newton_set_rotation_scale(newton, second_m2);
}

static struct ndt_eval sums_for(const struct ndt_newton *newton, int call)
{
    struct ndt_eval eval = score_at(&ground.level[newton->level], newton->query_pose);
    if (ground.spoil)
        ground.spoil(call, newton, &eval);
    return eval;
}

static void feed(struct trace *w, int capacity)
{
    struct ndt_newton *n = &w->newton;
    struct entry *entry = &w->queries[w->count];
    ck_assert_int_lt(w->count, LOG);
    const struct ndt_eval eval = sums_for(n, w->count);
    *entry = (struct entry){.score = eval.score, .level = n->level, .phase = n->phase, .holding = n->holding};
    memcpy(entry->p, n->query_pose, sizeof(n->query_pose));
    ck_assert_int_eq(n->neighbours, rules.neighbours[n->level]);
    w->count++;
    ndt_newton_step(n, &rules, w->rows, capacity, &eval);
    ck_assert_int_eq(n->evaluations, w->count);
}

/* Passes at most `most` evaluations and then calls ndt_newton_give_up. */
static void search_for(struct trace *w, int capacity, int most)
{
    memset(w, 0, sizeof(*w));
    memset(w->rows, 0xa5, sizeof(w->rows));
    place(&w->newton);
    ndt_newton_begin(&w->newton, &rules);
    while (w->newton.wants_eval && w->count < most)
        feed(w, capacity);
    if (w->newton.wants_eval)
        ndt_newton_give_up(&w->newton, w->rows, capacity);
    ck_assert_int_eq(w->newton.wants_eval, 0);
    ck_assert_int_eq(w->newton.rows_closed, w->newton.row_count);
    for (int i = 0; i < 6; i++)
        ck_assert(isfinite(w->newton.p[i]));
}

static void solve(void)
{
    search_for(&trace, ROWS, LOG);
}

static double distance(const double a[6], const double b[6], int from)
{
    const double d[3] = {a[from] - b[from], a[from + 1] - b[from + 1], a[from + 2] - b[from + 2]};
    return norm3(d);
}

static void assert_at(const double p[6], const double wanted[6], double limit)
{
    for (int i = 0; i < 6; i++)
        ck_assert_msg(fabs(p[i] - wanted[i]) <= limit, "p[%d] is %.12g, not %.12g", i, p[i], wanted[i]);
}

/* `eval` is bit-identical to the sums at p. */
static void assert_taken_at(const struct ndt_eval *eval, const double p[6], int level)
{
    const struct ndt_eval there = score_at(&ground.level[level], p);
    ck_assert_mem_eq(eval, &there, sizeof(there));
}

/* The same, or p follows from a last step that was not evaluated: then `eval` is that of its start. */
static void assert_belongs_to(const struct trace *w, const struct ndt_eval *eval, const double p[6], int level)
{
    for (int i = 0; i < w->newton.row_count; i++) {
        const struct ndt_newton_row *row = &w->rows[i];
        double led_to[6];
        for (int k = 0; k < 6; k++)
            led_to[k] = row->p[k] + row->step[k];
        if (row->level == level && memcmp(led_to, p, sizeof(led_to)) == 0 &&
            memcmp(&row->eval, eval, sizeof(*eval)) == 0)
            return;
    }
    assert_taken_at(eval, p, level);
}

/* The rows are contiguous: each starts where the previous one ended, unless a level or a hold begins in between. */
static void assert_rows_tell_the_steps(const struct trace *w)
{
    int evaluations = 0;
    for (int i = 0; i < w->newton.row_count; i++) {
        const struct ndt_newton_row *row = &w->rows[i];
        evaluations += row->evaluations;
        assert_taken_at(&row->eval, row->p, row->level);
        if (i + 1 < w->newton.row_count && row[1].level == row->level && row[1].evaluations > 0 &&
            row->step[0] != 0)
            for (int k = 0; k < 6; k++)
                if (!w->newton.weak.count)
                    ck_assert_double_eq_tol(row->p[k] + row->step[k], row[1].p[k], 1e-15);
    }
    ck_assert_int_eq(evaluations + w->newton.row_evaluations, w->newton.evaluations);
}

START_TEST(quadratic_takes_one_step)
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
END_TEST

/* Capping metres and radians separately could turn an ascent into a descent: then both are shortened by the same
 * factor. */
START_TEST(capped_steps_are_ascents)
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
END_TEST

/* Outside of the inflection the Hessian is indefinite: a plain Newton step would diverge. */
START_TEST(gaussian_converges_from_outside_its_inflection)
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
END_TEST

START_TEST(translation_and_rotation_are_capped_separately)
{
    const double far[6] = {7, 5, -1, 0.2, -0.1, 0.15};
    memcpy(ground.level[0].top, far, sizeof(far));
    diagonal(ground.level[0].A, 400, 40000);
    solve();
    const struct ndt_newton_row *row = trace.rows;
    double trust = NDT_TRUST_FIRST; /* it grows until the limits are reached */
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
END_TEST

/* After the first evaluation every other pose scores lower than its gradient predicts. */
static void spoil_samples(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call > 0)
        eval->score = -1000;
}

/* Two iterations: the first accepts a downhill step, the second gains nothing. */
START_TEST(line_search_steps_are_cut_and_end)
{
    ground.spoil = spoil_samples;
    for (rules.max_line_search_steps = 1; rules.max_line_search_steps <= 6; rules.max_line_search_steps++) {
        solve();
        ck_assert_int_eq(trace.newton.evaluations, 1 + 2 * rules.max_line_search_steps);
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
END_TEST

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
static void give_up_everywhere(int phases[2][2])
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
        phases[next->holding][next->phase]++;
        for (int i = 0; i < n->row_count - 1; i++)
            ck_assert_mem_eq(&other.rows[i], &trace.rows[i], sizeof(other.rows[i]));
        if (k == 0) { /* nothing is known */
            static const struct ndt_eval none;
            assert_at(n->p, GUESS, 0);
            ck_assert_mem_eq(&n->eval, &none, sizeof(none));
        } else if (next->phase == NDT_PHASE_OPEN) { /* of a finer level, or held: the pose counts at once */
            ck_assert_mem_eq(n->p, next->p, sizeof(n->p));
            ck_assert(n->eval.score == best_on_level(&other)->score);
            if (!next->holding)
                assert_belongs_to(&other, &n->eval, n->p, trace.queries[k - 1].level);
        } else {
            ck_assert_mem_eq(n->p, best_on_level(&other)->p, sizeof(n->p));
            assert_taken_at(&n->eval, n->p, next->level);
        }
    }
}

/* One direction without information, across y and yaw; v is a unit vector with rotations in metres. */
static void make_weak(struct hill *hill, const double v[6])
{
    double scaled[36], rotation_scale[36] = {0};
    struct ndt_newton n;
    place(&n);
    for (int i = 0; i < 36; i++)
        scaled[i] = 1000.0 * (i % 7 == 0) - 999.5 * v[i / 6] * v[i % 6];
    for (int i = 0; i < 3; i++)
        rotation_scale[7 * i] = 1;
    for (int i = 0; i < 9; i++)
        rotation_scale[6 * (3 + i / 3) + 3 + i % 3] = n.rotation_scale_m[i];
    memset(hill->A, 0, sizeof(hill->A));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int k = 0; k < 6; k++)
                for (int l = 0; l < 6; l++)
                    hill->A[6 * i + j] += rotation_scale[6 * i + k] * scaled[6 * k + l] * rotation_scale[6 * l + j];
}

static void unit6(struct ndt_random *random, double v[6])
{
    double norm = 0;
    for (int i = 0; i < 6; i++) {
        v[i] = world_normal(random);
        norm += v[i] * v[i];
    }
    for (int i = 0; i < 6; i++)
        v[i] /= sqrt(norm);
}

START_TEST(early_stop_keeps_the_best_pose)
{
    static const double v[6] = {0, 0.8, 0, 0, 0, 0.6};
    int phases[2][2] = {{0}};
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
    ck_assert_int_gt(phases[0][NDT_PHASE_OPEN], 2);
    ck_assert_int_gt(phases[0][NDT_PHASE_LINE_SEARCH], 5);
    ck_assert_int_gt(phases[1][NDT_PHASE_OPEN], 0);
}
END_TEST

/* While holding, the maximum is shifted, so that there are line searches to be interrupted. */
static void spoil_held(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)call;
    if (!newton->holding)
        return;
    struct hill moved = ground.level[newton->level];
    moved.top[2] += 0.4;
    *eval = score_at(&moved, newton->query_pose);
}

START_TEST(early_stop_while_holding)
{
    static const double v[6] = {0, 0.8, 0, 0, 0, 0.6};
    make_weak(&ground.level[0], v);
    ground.spoil = spoil_held;
    solve();
    int tried = 0;
    for (int k = 1; k < trace.count; k++) {
        if (trace.queries[k].phase != NDT_PHASE_LINE_SEARCH || !trace.queries[k].holding)
            continue;
        search_for(&other, ROWS, k);
        ck_assert_mem_eq(other.newton.p, best_on_level(&other)->p, sizeof(other.newton.p));
        ck_assert(other.newton.eval.score == best_on_level(&other)->score);
        ck_assert_int_eq(other.newton.weak.count, 1);
        tried++;
    }
    ck_assert_int_gt(tried, 0);
}
END_TEST

START_TEST(early_stop_autoware)
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
END_TEST

START_TEST(autoware_clamps_the_mixed_norm)
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
END_TEST

/* A small step may lower the score a little; the better pose is kept. */
static void spoil_a_little(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call > 0)
        eval->score = ground.level[0].height * (1 - 2e-4);
}

START_TEST(tolerated_loss_keeps_the_best_pose)
{
    memcpy(ground.level[0].top, GUESS, sizeof(GUESS));
    ground.level[0].top[0] += 0.01;
    ground.spoil = spoil_a_little;
    solve();
    ck_assert(trace.rows[0].step[0] > 0.009); /* it was taken */
    assert_at(trace.newton.p, GUESS, 0);
    assert_taken_at(&trace.newton.eval, GUESS, 0);
}
END_TEST

static void spoil_first_sample(int call, const struct ndt_newton *newton, struct ndt_eval *eval)
{
    (void)newton;
    if (call == 1)
        eval->score = -1e9;
}

START_TEST(cut_steps_shorten_the_next)
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
END_TEST

START_TEST(autoware_reverses_downhill_steps)
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
END_TEST

/* Too few rows shorten the trace and change nothing else. */
START_TEST(trace_of_one_row_suffices)
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
END_TEST

START_TEST(iterations_are_limited)
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
END_TEST

START_TEST(levels_without_matches)
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
END_TEST

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

/* For any sums the solve ends at a pose that it has queried. */
START_TEST(nan_sums_end_the_solve)
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
END_TEST

START_TEST(weak_directions_stay_at_the_guess)
{
    struct ndt_random random = {5};
    for (int round = 0; round < 50; round++) {
        double v[6], along = 0, to_top = 0, off[6], scaled[6], rest = 0;
        unit6(&random, v);
        make_weak(&ground.level[0], v);
        solve();
        const struct ndt_newton *n = &trace.newton;
        ck_assert_int_eq(n->stop, NDT_STOP_CONVERGED);
        ck_assert_int_eq(n->weak.count, 1);
        for (int i = 0; i < 6; i++)
            along += v[i] * n->weak.axes[0][i];
        ck_assert_double_eq_tol(fabs(along), 1, 1e-9);
        for (int i = 0; i < 6; i++)
            off[i] = n->p[i] - GUESS[i];
        ndt_newton_transform_rotation(n->rotation_scale_m, off, scaled);
        along = 0;
        for (int i = 0; i < 6; i++)
            along += v[i] * scaled[i];
        ck_assert_msg(fabs(along) < 1e-9, "it has moved %g along the weak direction", along);
        for (int i = 0; i < 6; i++)
            off[i] = ground.level[0].top[i] - n->p[i];
        ndt_newton_transform_rotation(n->rotation_scale_m, off, scaled);
        for (int i = 0; i < 6; i++)
            to_top += v[i] * scaled[i];
        for (int i = 0; i < 6; i++)
            rest += pow(scaled[i] - to_top * v[i], 2);
        ck_assert_msg(sqrt(rest) < 1e-3, "across it is %g away from the top", sqrt(rest));
        ck_assert_int_eq(n->holding, 1);
        assert_belongs_to(&trace, &n->eval, n->p, 0);
    }
}
END_TEST

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

START_TEST(oscillation_is_counted)
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
END_TEST

/* The same solve, but solver and rows are copied to other addresses before every call. */
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

START_TEST(solver_can_be_copied_between_calls)
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
END_TEST

/* ---- matrices ---- */

/* Q diag(lambda) Q^T with a random rotation, as an upper triangle. */
static void random_matrix(struct ndt_random *random, const double lambda[6], double upper[21])
{
    double full[36] = {0};
    for (int i = 0; i < 6; i++)
        full[7 * i] = lambda[i];
    for (int round = 0; round < 12; round++) { /* reflections: A - 2 v w^T - ... = (I - 2 v v^T) A (I - 2 v v^T) */
        double v[6], half[36];
        unit6(random, v);
        for (int i = 0; i < 36; i++) {
            half[i] = full[i];
            for (int k = 0; k < 6; k++)
                half[i] -= 2 * v[i / 6] * v[k] * full[6 * k + i % 6];
        }
        for (int i = 0; i < 36; i++) {
            full[i] = half[i];
            for (int k = 0; k < 6; k++)
                full[i] -= 2 * half[6 * (i / 6) + k] * v[k] * v[i % 6];
        }
    }
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            upper[at++] = full[6 * i + j];
}

/* Eigenvalues over so many decades; a part of them negative. */
static void random_spectrum(struct ndt_random *random, double decades, double negative, double lambda[6])
{
    for (int i = 0; i < 6; i++) {
        lambda[i] = pow(10, 4 + ndt_random_between(random, -decades, 0));
        if (ndt_random_between(random, 0, 1) < negative)
            lambda[i] = -lambda[i];
    }
}

/* Parameters of different units: rows and columns by powers of ten. */
static void scale_units(struct ndt_random *random, double upper[21])
{
    double unit[6];
    for (int i = 0; i < 6; i++)
        unit[i] = pow(10, ndt_random_between(random, -2, 2));
    for (int i = 0, at = 0; i < 6; i++)
        for (int j = i; j < 6; j++)
            upper[at++] *= unit[i] * unit[j];
}

START_TEST(inverse_root_against_eigenvalues)
{
    struct ndt_random random = {1};
    int refused = 0, done = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36], root[36];
        random_spectrum(&random, round % 8, round % 4 == 0 ? 0.2 : 0, lambda);
        random_matrix(&random, lambda, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double rounding = 1e-13 * fmax(fabs(values[0]), fabs(values[5]));
        if (!ndt_inverse_root6(upper, root)) {
            ck_assert(values[0] < rounding);
            refused++;
            continue;
        }
        ck_assert(values[0] > -rounding);
        done++;
        for (int i = 0; i < 36 && values[0] > 0; i++) {
            double is = 0, wanted = 0, size = 0;
            for (int k = 0; k < 6; k++) {
                const double term = V[6 * (i / 6) + k] * V[6 * (i % 6) + k] / values[k];
                is += root[6 * (i / 6) + k] * root[6 * (i % 6) + k];
                wanted += term;
                size += 1 / values[k];
            }
            ck_assert_msg(fabs(is - wanted) <= 1e-13 * size * values[5] / values[0], "%g, not %g", is, wanted);
        }
    }
    ck_assert_int_gt(refused, MATRICES / 10);
    ck_assert_int_gt(done, MATRICES / 2);
}
END_TEST

START_TEST(bound_of_the_largest_eigenvalue)
{
    struct ndt_random random = {2};
    const double most = pow(6, 0.125) * (1 + 1e-12);
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        random_spectrum(&random, round % 16, 0, lambda);
        random_matrix(&random, lambda, upper);
        if (round % 2)
            scale_units(&random, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double bound = eigenvalue_bound6(upper);
        ck_assert_msg(bound >= values[5] * (1 - 1e-12) && bound <= values[5] * most, "%g for %g", bound, values[5]);
    }
    const double none[21] = {0};
    ck_assert(eigenvalue_bound6(none) == 0);
}
END_TEST

/* No false positives; and a positive result in every clear case. */
START_TEST(eigenvalues_above_a_part_of_the_largest)
{
    struct ndt_random random = {3};
    int yes = 0, no = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        const double ratio = round % 3 == 0 ? 0.0125 : pow(10, ndt_random_between(&random, -6, -0.2));
        random_spectrum(&random, round % 4, round % 5 == 0 ? 0.1 : 0, lambda);
        lambda[0] = ratio * pow(10, ndt_random_between(&random, -0.3, 0.5)) * 1e4; /* near the border */
        random_matrix(&random, lambda, upper);
        ndt_eigen_symmetric(6, upper, values, V);
        const double least = ratio * values[5], rounding = 1e-12 * fmax(fabs(values[0]), fabs(values[5]));
        if (all_eigenvalues_above(upper, ratio)) {
            ck_assert_msg(values[0] > least - rounding, "%g is not above %g", values[0], least);
            yes++;
        } else {
            ck_assert_msg(values[0] < 1.2511 * least + rounding, "%g is above %g", values[0], least);
            no++;
        }
    }
    ck_assert_int_gt(yes, MATRICES / 10);
    ck_assert_int_gt(no, MATRICES / 10);
}
END_TEST

/* The shortcut of find_weak agrees with the eigenvalues. */
START_TEST(weak_directions_against_eigenvalues)
{
    struct ndt_random random = {4};
    int found[4] = {0};
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], V[36];
        struct ndt_newton n;
        place(&n);
        for (int i = 0; i < 9; i++)
            n.inverse_rotation_scale[i] = i % 4 == 0;
        random_spectrum(&random, round % 6, round % 7 == 0 ? 0.3 : 0, lambda);
        random_matrix(&random, lambda, upper);
        for (int i = 0; i < 21; i++)
            n.eval.hessian[i] = -upper[i];
        ndt_eigen_symmetric(6, upper, values, V);
        int count = 0;
        while (count < 3 && values[count] < rules.weak_eigenvalue_ratio * values[5])
            count++;
        n.weak.count = 0;
        find_weak(&n, &rules);
        ck_assert_int_eq(n.weak.count, count);
        for (int k = 0; k < count; k++)
            for (int i = 0; i < 6; i++)
                ck_assert(n.weak.axes[k][i] == V[6 * i + k]);
        found[count]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_gt(found[i], 50);
}
END_TEST

/* V |Lambda|^-1 V^T g, implemented independently. */
static void saddle_free(const double upper[21], const double g[6], double d[6], double values[6])
{
    double V[36];
    ndt_eigen_symmetric(6, upper, values, V);
    const double largest = fmax(fabs(values[0]), fabs(values[5]));
    for (int i = 0; i < 6; i++) {
        d[i] = 0;
        for (int k = 0; k < 6; k++)
            for (int j = 0; j < 6; j++)
                d[i] +=
                    V[6 * i + k] * V[6 * j + k] * g[j] / fmax(fabs(values[k]), rules.eigenvalue_floor * largest);
    }
}

START_TEST(newton_step_against_eigenvalues)
{
    struct ndt_random random = {6};
    int plain = 0, other_candidate = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], values[6], wanted[6], d[6], L[36], rise = 0, size = 0, off = 0;
        struct ndt_eval eval = {0};
        random_spectrum(&random, round % 5, round % 3 == 0 ? 0.3 : 0, lambda);
        random_matrix(&random, lambda, upper);
        for (int i = 0; i < 21; i++)
            eval.hessian[i] = -upper[i];
        unit6(&random, eval.gradient);
        saddle_free(upper, eval.gradient, wanted, values);
        if (fabs(values[0]) < 2 * rules.eigenvalue_floor * values[5])
            continue;
        newton_direction(&eval, rules.eigenvalue_floor, d);
        const double condition = values[5] / values[0];
        for (int i = 0; i < 6; i++) {
            rise += d[i] * eval.gradient[i];
            size = fmax(size, fabs(wanted[i]));
            off = fmax(off, fabs(d[i] - wanted[i]));
        }
        ck_assert(rise > 0);
        const int is_plain = factor_cholesky6(upper, NDT_SAFE_PIVOT, L);
        ck_assert(!is_plain || values[0] > 0);
        plain += is_plain;
        other_candidate += !is_plain && values[0] < 0;
        ck_assert_msg(off <= size * fmax(1e-9, 1e-13 * fabs(condition)), "off by %g of %g, condition %g", off, size,
                      condition);
    }
    ck_assert_int_gt(plain, MATRICES / 5);
    ck_assert_int_gt(other_candidate, MATRICES / 10);
}
END_TEST

/* Units that differ by ten thousand do not spoil the plain step: pivots are compared with their own diagonal. */
START_TEST(plain_step_in_any_units)
{
    struct ndt_random random = {7};
    int plain = 0;
    for (int round = 0; round < MATRICES; round++) {
        double lambda[6], upper[21], full[36], g[6], x[6];
        random_spectrum(&random, 1, 0, lambda);
        random_matrix(&random, lambda, upper);
        scale_units(&random, upper);
        unit6(&random, g);
        if (!solve_cholesky6(upper, g, NDT_SAFE_PIVOT, x))
            continue;
        plain++;
        unpack_symmetric6(upper, full);
        for (int i = 0; i < 6; i++) {
            double is = 0, size = fabs(g[i]);
            for (int j = 0; j < 6; j++) {
                is += full[6 * i + j] * x[j];
                size += fabs(full[6 * i + j] * x[j]);
            }
            ck_assert_double_le(fabs(is - g[i]), 1e-11 * size);
        }
    }
    ck_assert_int_gt(plain, MATRICES / 4);
    const double tied[21] = {1, 0.9999, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1}; /* pivot 2e-4 */
    const double ones[6] = {1, 1, 1, 1, 1, 1};
    double solved[6];
    ck_assert_int_eq(solve_cholesky6(tied, ones, NDT_SAFE_PIVOT, solved), 0);
    ck_assert_int_eq(solve_cholesky6(tied, ones, 1e-4, solved), 1);
    const double nan[21] = {NAN}, one[6] = {1};
    double x[6];
    ck_assert_int_eq(solve_cholesky6(nan, one, NDT_SAFE_PIVOT, x), 0);
}
END_TEST

static TCase *solves(void)
{
    TCase *all = tcase_create("solves");
    tcase_add_checked_fixture(all, setup, NULL);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, quadratic_takes_one_step);
    tcase_add_test(all, gaussian_converges_from_outside_its_inflection);
    tcase_add_test(all, translation_and_rotation_are_capped_separately);
    tcase_add_test(all, capped_steps_are_ascents);
    tcase_add_test(all, line_search_steps_are_cut_and_end);
    tcase_add_test(all, early_stop_keeps_the_best_pose);
    tcase_add_test(all, early_stop_while_holding);
    tcase_add_test(all, early_stop_autoware);
    tcase_add_test(all, autoware_clamps_the_mixed_norm);
    tcase_add_test(all, tolerated_loss_keeps_the_best_pose);
    tcase_add_test(all, cut_steps_shorten_the_next);
    tcase_add_test(all, autoware_reverses_downhill_steps);
    tcase_add_test(all, trace_of_one_row_suffices);
    tcase_add_test(all, iterations_are_limited);
    tcase_add_test(all, levels_without_matches);
    tcase_add_test(all, nan_sums_end_the_solve);
    tcase_add_test(all, weak_directions_stay_at_the_guess);
    tcase_add_test(all, oscillation_is_counted);
    tcase_add_test(all, solver_can_be_copied_between_calls);
    return all;
}

static TCase *matrices(void)
{
    TCase *all = tcase_create("matrices");
    tcase_add_checked_fixture(all, setup, NULL);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, inverse_root_against_eigenvalues);
    tcase_add_test(all, bound_of_the_largest_eigenvalue);
    tcase_add_test(all, eigenvalues_above_a_part_of_the_largest);
    tcase_add_test(all, weak_directions_against_eigenvalues);
    tcase_add_test(all, newton_step_against_eigenvalues);
    tcase_add_test(all, plain_step_in_any_units);
    return all;
}

int main(void)
{
    Suite *suite = suite_create("newton");
    suite_add_tcase(suite, solves());
    suite_add_tcase(suite, matrices());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/** @file
 * @brief Scores with a known maximum for tests of the Newton solver, and solves on them.
 *
 * One ground, one set of rules and one solver per test program; setup() resets them. */
#ifndef NDT_NEWTON_HILLS_H
#define NDT_NEWTON_HILLS_H

#include <check.h>
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
    int level, phase;
};

/* A solve, and all its queries. */
struct trace {
    struct ndt_newton newton;
    struct ndt_newton_row rows[ROWS + 1];
    struct entry queries[LOG];
    int count;
};

static struct ground ground;
static struct ndt_newton_rules rules;
static struct trace trace;
/* Prior of the next solves. */
static double prior[21], prior_offset[6];
static int first_level;

static inline void quadratic_form(const double A[36], const double q[6], double Aq[6], double *qAq)
{
    *qAq = 0;
    for (int i = 0; i < 6; i++) {
        Aq[i] = 0;
        for (int j = 0; j < 6; j++)
            Aq[i] += A[6 * i + j] * q[j];
        *qAq += q[i] * Aq[i];
    }
}

static inline struct ndt_eval score_at(const struct hill *hill, const double p[6])
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

static inline void diagonal(double A[36], double translation, double rotation)
{
    memset(A, 0, 36 * sizeof(double));
    for (int i = 0; i < 6; i++)
        A[7 * i] = i < 3 ? translation : rotation;
}

static inline void set_hill(struct hill *hill, int gaussian, double translation, double rotation)
{
    static const double top[6] = {0.3, -0.2, 0.1, 0.02, -0.01, 0.03};
    *hill = (struct hill){.gaussian = gaussian, .height = 500, .matched = 100};
    diagonal(hill->A, translation, rotation);
    memcpy(hill->top, top, sizeof(top));
    hill->A[1] = hill->A[6] = 0.3 * translation; /* x and y belong together */
}

static inline void setup(void)
{
    memset(&ground, 0, sizeof(ground));
    memset(&trace, 0, sizeof(trace));
    memset(prior, 0, sizeof(prior));
    memset(prior_offset, 0, sizeof(prior_offset));
    first_level = 0;
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

static inline void place(struct ndt_newton *newton)
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const double second_m2[6] = {120, 8, -3, 70, 2, 10};
    memset(newton, 0xff, sizeof(*newton)); /* members that are not set are NaN */
    memcpy(newton->guess, GUESS, sizeof(GUESS));
    memcpy(newton->prior, prior, sizeof(prior));
    memcpy(newton->prior_offset, prior_offset, sizeof(prior_offset));
    newton->first_level = first_level;
    memcpy(newton->R0, identity, sizeof(identity));
    ndt_newton_set_rotation_scale(newton, second_m2);
}

static inline struct ndt_eval sums_for(const struct ndt_newton *newton, int call)
{
    struct ndt_eval eval = score_at(&ground.level[newton->level], newton->query_pose);
    if (ground.spoil)
        ground.spoil(call, newton, &eval);
    return eval;
}

static inline void feed(struct trace *w, int capacity)
{
    struct ndt_newton *n = &w->newton;
    struct entry *entry = &w->queries[w->count];
    ck_assert_int_lt(w->count, LOG);
    const struct ndt_eval eval = sums_for(n, w->count);
    *entry = (struct entry){.score = eval.score, .level = n->level, .phase = n->phase};
    memcpy(entry->p, n->query_pose, sizeof(n->query_pose));
    ck_assert_int_eq(n->neighbours, rules.neighbours[n->chain]);
    w->count++;
    ndt_newton_step(n, &rules, w->rows, capacity, &eval);
    ck_assert_int_eq(n->evaluations, w->count);
}

/* Passes at most `most` evaluations and then calls ndt_newton_give_up. */
static inline void search_for(struct trace *w, int capacity, int most)
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

static inline void solve(void)
{
    search_for(&trace, ROWS, LOG);
}

static inline double distance(const double a[6], const double b[6], int from)
{
    const double d[3] = {a[from] - b[from], a[from + 1] - b[from + 1], a[from + 2] - b[from + 2]};
    return norm3(d);
}

static inline void assert_at(const double p[6], const double wanted[6], double limit)
{
    for (int i = 0; i < 6; i++)
        ck_assert_msg(fabs(p[i] - wanted[i]) <= limit, "p[%d] is %.12g, not %.12g", i, p[i], wanted[i]);
}

/* `eval` is bit-identical to the sums at p. */
static inline void assert_taken_at(const struct ndt_eval *eval, const double p[6], int level)
{
    const struct ndt_eval there = score_at(&ground.level[level], p);
    ck_assert_mem_eq(eval, &there, sizeof(there));
}

/* Asserts that sums belong to a pose, or that p follows from a last step that was not evaluated: then `eval` is
 * that of its start. */
static inline void assert_belongs_to(const struct trace *w, const struct ndt_eval *eval, const double p[6],
                                     int level)
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

/* The rows are contiguous: each starts where the previous one ended, unless a level begins in between. */
static inline void assert_rows_tell_the_steps(const struct trace *w)
{
    int evaluations = 0;
    for (int i = 0; i < w->newton.row_count; i++) {
        const struct ndt_newton_row *row = &w->rows[i];
        evaluations += row->evaluations;
        assert_taken_at(&row->eval, row->p, row->level);
        if (i + 1 < w->newton.row_count && row[1].level == row->level && row[1].evaluations > 0 &&
            row->step[0] != 0)
            for (int k = 0; k < 6; k++)
                ck_assert_double_eq_tol(row->p[k] + row->step[k], row[1].p[k], 1e-15);
    }
    ck_assert_int_eq(evaluations + w->newton.row_evaluations, w->newton.evaluations);
}

/* Makes one direction without information, across y and yaw; v is a unit vector with rotations in metres. */
static inline void make_weak(struct hill *hill, const double v[6])
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

static inline void unit6(struct ndt_random *random, double v[6])
{
    double norm = 0;
    for (int i = 0; i < 6; i++) {
        v[i] = world_normal(random);
        norm += v[i] * v[i];
    }
    for (int i = 0; i < 6; i++)
        v[i] /= sqrt(norm);
}

/* Q diag(lambda) Q^T with a random rotation, as an upper triangle. */
static inline void random_matrix(struct ndt_random *random, const double lambda[6], double upper[21])
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
static inline void random_spectrum(struct ndt_random *random, double decades, double negative, double lambda[6])
{
    for (int i = 0; i < 6; i++) {
        lambda[i] = pow(10, 4 + ndt_random_between(random, -decades, 0));
        if (ndt_random_between(random, 0, 1) < negative)
            lambda[i] = -lambda[i];
    }
}

#endif

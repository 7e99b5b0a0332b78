/** @file
 * @brief Private: the code behind ndt/newton.h, shared by gcc and nvcc.
 *
 * CUDA code defines NDT_DEVICE as __device__ before including it. No variable-length arrays, no recursion, no
 * library but math.h. The callers are the functions of ndt/newton.h and the kernels: newton_begin, newton_step,
 * newton_give_up. */
#ifndef NDT_NEWTON_STEPS_H
#define NDT_NEWTON_STEPS_H

#include <math.h>

#include "ndt/newton.h"
#include "ndt/small_matrix.h"

/** Part of the predicted gain that a step must achieve (Armijo; Nocedal & Wright, section 3.1). */
#define NDT_ARMIJO 1e-4
/** A level begins with steps up to this part of the step limits. Steps that had to be shortened lower the limits of
 * the next ones, steps taken whole raise them again. */
#define NDT_TRUST_FIRST  0.25
#define NDT_TRUST_GROWTH 1.5
#define NDT_TRUST_LEAST  0.1
/** Minimum and maximum ratio of the next step length to the previous one. */
#define NDT_CUT_LEAST 0.25
#define NDT_CUT_MOST  0.5
/** Steps per level that are made although no length was acceptable. */
#define NDT_DOWNHILL_STEPS 4
/** Where a pivot of -H is below this part of its diagonal element, the eigenvalues are computed. */
#define NDT_SAFE_PIVOT 1e-3
/** The set of voxels within the radius changes abruptly as points move: a small step may lose this part of the
 * score. */
#define NDT_SLACK     5e-4
#define NDT_SLACK_M   0.02
#define NDT_SLACK_RAD (0.2 * 0.017453292519943295)

enum { NDT_PHASE_OPEN, NDT_PHASE_LINE_SEARCH, NDT_PHASE_DONE };

static inline NDT_DEVICE double norm3(const double *v)
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static inline NDT_DEVICE void copy6(double to[6], const double from[6])
{
    for (int i = 0; i < 6; i++)
        to[i] = from[i];
}

/* ---- what the scan observes ---- */

static inline NDT_DEVICE void transform_rotation(const double M[9], const double in[6], double out[6])
{
    NDT_FOR (int i = 0; i < 3; i++) {
        out[i] = in[i];
        out[3 + i] = M[3 * i] * in[3] + M[3 * i + 1] * in[4] + M[3 * i + 2] * in[5];
    }
}

/** R A R^T, upper triangles. */
static inline NDT_DEVICE void rotate_symmetric3(const double R[9], const double A[6], double out[6])
{
    const double full[9] = {A[0], A[1], A[2], A[1], A[3], A[4], A[2], A[4], A[5]};
    double half[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            half[3 * i + j] = R[3 * i] * full[j] + R[3 * i + 1] * full[3 + j] + R[3 * i + 2] * full[6 + j];
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++)
            out[at++] = half[3 * i] * R[3 * j] + half[3 * i + 1] * R[3 * j + 1] + half[3 * i + 2] * R[3 * j + 2];
}

/* -D H D with D = diag(I, M), M symmetric, as an upper triangle. */
static inline NDT_DEVICE void scale_information(const double M[9], const double hessian[21], double upper[21])
{
    double full[36], half[36];
    unpack_symmetric6(hessian, full);
    NDT_FOR (int i = 0; i < 6; i++)
        transform_rotation(M, full + 6 * i, half + 6 * i);
    NDT_FOR (int j = 0; j < 6; j++) {
        double column[6], turned[6];
        NDT_FOR (int i = 0; i < 6; i++)
            column[i] = half[6 * i + j];
        transform_rotation(M, column, turned);
        NDT_FOR (int i = 0; i < 6; i++)
            full[6 * i + j] = turned[i];
    }
    NDT_FOR (int i = 0, at = 0; i < 6; i++)
        NDT_FOR (int j = i; j < 6; j++)
            upper[at++] = -full[6 * i + j];
}

/** Whether the smallest eigenvalue is certainly above `ratio` of the largest: A - ratio * bound * I is positive
 * definite. Most scans observe all directions, and this costs a tenth of an eigen-decomposition. */
static inline NDT_DEVICE int all_eigenvalues_above(const double upper[21], double ratio)
{
    double shifted[21], L[36];
    const double shift = ratio * eigenvalue_bound6(upper);
    NDT_FOR (int i = 0, at = 0; i < 6; i++)
        NDT_FOR (int j = i; j < 6; j++, at++)
            shifted[at] = i == j ? upper[at] - shift : upper[at];
    return factor_cholesky6(shifted, 0, L);
}

/** Finds the weak directions at n->eval, which should be a maximum, from the curvature of the score without the
 * prior. A voxel's smallest variance is limited to 1 % of its largest, so flat surfaces give every direction at
 * least about 1 % of the information of the best one: no more than that means that the direction is not observed.
 */
NDT_APART void find_weak(struct ndt_newton *n, const struct ndt_newton_rules *rules)
{
    double hessian[21], upper[21];
    int count = 0;
    for (int i = 0; i < 21; i++)
        hessian[i] = n->eval.hessian[i] + n->prior[i];
    scale_information(n->inverse_rotation_scale, hessian, upper);
    if (all_eigenvalues_above(upper, rules->weak_eigenvalue_ratio))
        return;
    EIGEN6_PLACE(e);
    eigen6_load(e, upper);
    eigen6_solve(e);
    const double *lambda = e->values, *V = e->vectors;
    while (count < 3 && lambda[count] < rules->weak_eigenvalue_ratio * lambda[5]) {
        for (int i = 0; i < 6; i++)
            n->weak.axes[count][i] = V[i * 6 + count];
        count++;
    }
    n->weak.count = count;
}

/** Symmetric square root of the inertia of the rotated points about the sensor, and its inverse; at least 0.5 m. */
static inline NDT_DEVICE void set_rotation_scale(struct ndt_newton *n, const double second_m2[6])
{
    double inertia[6], upper[6], lambda[3], V[9];
    const double trace = second_m2[0] + second_m2[3] + second_m2[5];
    for (int i = 0; i < 6; i++)
        inertia[i] = (i == 0 || i == 3 || i == 5 ? trace : 0) - second_m2[i];
    rotate_symmetric3(n->R0, inertia, upper);
    eigen_symmetric(3, upper, lambda, V);
    for (int i = 0; i < 9; i++)
        n->rotation_scale_m[i] = n->inverse_rotation_scale[i] = 0;
    for (int k = 0; k < 3; k++) {
        const double arm_m = sqrt(fmax(lambda[k], 0.25));
        for (int i = 0; i < 9; i++) {
            const double vv = V[i / 3 * 3 + k] * V[i % 3 * 3 + k];
            n->rotation_scale_m[i] += vv * arm_m;
            n->inverse_rotation_scale[i] += vv / arm_m;
        }
    }
}

/* ---- regularisation by a position ---- */

/** Unit vector of the sensor's x axis at p, seen from above; 0 (and zeros) when it points straight up or down. */
static inline NDT_DEVICE int heading(const struct ndt_newton *n, const double p[6], double out[2])
{
    const double sa = sin(p[3]), ca = cos(p[3]), sb = sin(p[4]), cb = cos(p[4]), sc = sin(p[5]), cc = cos(p[5]);
    const double *R0 = n->R0;
    const double x = cb * cc * R0[0] - cb * sc * R0[3] + sb * R0[6];
    const double y = (ca * sc + sa * sb * cc) * R0[0] + (ca * cc - sa * sb * sc) * R0[3] - sa * cb * R0[6];
    const double length = sqrt(x * x + y * y);
    out[0] = length > 0 ? x / length : 0;
    out[1] = length > 0 ? y / length : 0;
    return length > 0;
}

/** Adds -gnss_scale * pairs * e^2 with e = (g - t) . h, g the position and h the heading: a parabola in x and y
 * with its maximum at the position. The derivative of h by the angles is left out, as in Autoware. */
static inline NDT_DEVICE void regularize(const struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                         struct ndt_eval *eval)
{
    double h[2];
    if (!rules->has_gnss || !heading(n, n->query_pose, h))
        return;
    const double e_m = (rules->gnss_m[0] - n->query_pose[0]) * h[0] + (rules->gnss_m[1] - n->query_pose[1]) * h[1];
    const double weight = rules->gnss_scale * eval->pairs;
    eval->score -= weight * e_m * e_m;
    eval->gradient[0] += 2 * weight * e_m * h[0];
    eval->gradient[1] += 2 * weight * e_m * h[1];
    eval->hessian[0] -= 2 * weight * h[0] * h[0];
    eval->hessian[1] -= 2 * weight * h[0] * h[1];
    eval->hessian[6] -= 2 * weight * h[1] * h[1];
}

/** Adds -1/2 e^T prior e with e = p - guess - prior_offset: the logarithm of a Gaussian about the guess. */
static inline NDT_DEVICE void add_prior(const struct ndt_newton *n, struct ndt_eval *eval)
{
    double e[6], full[36], pull[6];
    for (int i = 0; i < 6; i++)
        e[i] = n->query_pose[i] - n->guess[i] - n->prior_offset[i];
    unpack_symmetric6(n->prior, full);
    for (int i = 0; i < 6; i++) {
        pull[i] = 0;
        for (int k = 0; k < 6; k++)
            pull[i] += full[6 * i + k] * e[k];
    }
    for (int i = 0; i < 6; i++) {
        eval->score -= 0.5 * e[i] * pull[i];
        eval->gradient[i] -= pull[i];
    }
    for (int i = 0; i < 21; i++)
        eval->hessian[i] -= n->prior[i];
}

/* ---- trace ---- */

static inline NDT_DEVICE struct ndt_newton_row *last_row(const struct ndt_newton *n, struct ndt_newton_row *rows,
                                                         int32_t capacity)
{
    return rows + (n->row_count < capacity ? n->row_count : capacity) - 1;
}

static inline NDT_DEVICE void open_row(struct ndt_newton *n, struct ndt_newton_row *rows, int32_t capacity)
{
    n->row_count++;
    struct ndt_newton_row *row = last_row(n, rows, capacity);
    row->level = n->level;
    row->neighbours = n->neighbours;
    row->eval = n->eval;
    copy6(row->p, n->p);
}

/** Counts the steps that reverse the previous one; the first step has none. */
static inline NDT_DEVICE void count_reversals(struct ndt_newton *n, const double step[6])
{
    double dot = 0, a = 0, b = 0;
    for (int k = 0; k < 3; k++) {
        const double now = n->row_count > 1 ? step[k] : 0;
        dot += now * n->last_step_m[k];
        a += now * now;
        b += n->last_step_m[k] * n->last_step_m[k];
        n->last_step_m[k] = now;
    }
    n->reversals = a > 0 && b > 0 && dot < -0.9 * sqrt(a * b) ? n->reversals + 1 : 0;
    n->oscillation = n->reversals > n->oscillation ? n->reversals : n->oscillation;
}

static inline NDT_DEVICE void close_row(struct ndt_newton *n, struct ndt_newton_row *rows, int32_t capacity,
                                        const double step[6])
{
    struct ndt_newton_row *row = last_row(n, rows, capacity);
    copy6(row->step, step);
    row->evaluations = n->row_evaluations;
    n->row_evaluations = 0;
    n->rows_closed = n->row_count;
    count_reversals(n, step);
}

/* ---- robust ---- */

/** d = V |Lambda|^-1 V^T g of -H (Dauphin et al. 2014), with |Lambda| at least floor_ratio of the largest. */
NDT_APART void saddle_free_step(const double minus_H[21], const double gradient[6], double floor_ratio, double d[6])
{
    EIGEN6_PLACE(e);
    eigen6_load(e, minus_H);
    eigen6_solve(e);
    const double *lambda = e->values, *V = e->vectors;
    const double largest = fmax(fabs(lambda[0]), fabs(lambda[5]));
    for (int i = 0; i < 6; i++)
        d[i] = 0;
    for (int k = 0; k < 6; k++) {
        const double curvature = fmax(fabs(lambda[k]), floor_ratio * largest);
        double along = 0;
        for (int i = 0; i < 6; i++)
            along += V[i * 6 + k] * gradient[i];
        for (int i = 0; curvature > 0 && i < 6; i++)
            d[i] += V[i * 6 + k] * along / curvature;
    }
}

/** Where every pivot of -H is a fair part of its diagonal element, all eigenvalues are positive and, except for
 * scans that determine almost nothing, above the floor: the plain Newton step is the same, at a tenth of the cost.
 */
static inline NDT_DEVICE void newton_direction(const struct ndt_eval *eval, double floor_ratio, double d[6])
{
    double minus_H[21];
    for (int i = 0; i < 21; i++)
        minus_H[i] = -eval->hessian[i];
    if (!solve_cholesky6(minus_H, eval->gradient, NDT_SAFE_PIVOT, d))
        saddle_free_step(minus_H, eval->gradient, floor_ratio, d);
}

static inline NDT_DEVICE double slope_along(const double gradient[6], const double d[6])
{
    double slope = 0;
    for (int i = 0; i < 6; i++)
        slope += gradient[i] * d[i];
    return slope;
}

/** Caps translation and rotation separately, each with its direction kept; if the result would point downhill, both
 * are shortened by the same factor. */
static inline NDT_DEVICE void cap_step(const struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                       double d[6])
{
    const double cap_m = n->trust * rules->step_limit_m, cap_rad = n->trust * rules->step_limit_rad;
    const double t = norm3(d), r = norm3(d + 3);
    const double scale_t = t > cap_m ? cap_m / t : 1, scale_r = r > cap_rad ? cap_rad / r : 1;
    const double gain_t = n->eval.gradient[0] * d[0] + n->eval.gradient[1] * d[1] + n->eval.gradient[2] * d[2];
    const double gain_r = n->eval.gradient[3] * d[3] + n->eval.gradient[4] * d[4] + n->eval.gradient[5] * d[5];
    const int apart = scale_t * gain_t + scale_r * gain_r > 0;
    for (int i = 0; i < 3; i++) {
        d[i] *= apart ? scale_t : fmin(scale_t, scale_r);
        d[3 + i] *= apart ? scale_r : fmin(scale_t, scale_r);
    }
}

/** The part of d to evaluate after n->alpha was too long: the maximum of the cubic through the scores and slopes at
 * both ends (Nocedal & Wright, section 3.5). */
static inline NDT_DEVICE double shorter_alpha(const struct ndt_newton *n, const struct ndt_eval *tried)
{
    const double a = n->alpha, here = slope_along(n->eval.gradient, n->d),
                 there = slope_along(tried->gradient, n->d);
    const double bend = 3 * (tried->score - n->eval.score) / a - here - there;
    const double square = bend * bend - here * there;
    double part = NDT_CUT_MOST;
    if (square >= 0) {
        const double root = sqrt(square);
        part = 1 - (root - there - bend) / (2 * root + here - there);
    }
    return a * fmax(NDT_CUT_LEAST, fmin(part, NDT_CUT_MOST)); /* NaN: NDT_CUT_MOST */
}

static inline NDT_DEVICE int is_acceptable(const struct ndt_newton *n, const struct ndt_eval *to)
{
    const double slope = slope_along(n->eval.gradient, n->d);
    if (to->score >= n->eval.score + NDT_ARMIJO * n->alpha * slope)
        return 1;
    return n->alpha * norm3(n->d) < NDT_SLACK_M && n->alpha * norm3(n->d + 3) < NDT_SLACK_RAD &&
           to->score >= n->eval.score - NDT_SLACK * fabs(n->eval.score);
}

static inline NDT_DEVICE void keep_best(struct ndt_newton *n)
{
    if (n->eval.score <= n->best.score)
        return;
    copy6(n->best_p, n->p);
    n->best = n->eval;
}

/** Enters a level of the chain; its first evaluation is at n->query_pose. */
static inline NDT_DEVICE void open_level(struct ndt_newton *n, const struct ndt_newton_rules *rules, int chain)
{
    n->chain = chain;
    n->level = rules->level[chain];
    n->neighbours = rules->neighbours[chain];
    n->phase = NDT_PHASE_OPEN;
    n->trust = NDT_TRUST_FIRST;
    n->downhill = 0;
    n->best.score = -INFINITY;
    n->wants_eval = 1;
}

static inline NDT_DEVICE void finish(struct ndt_newton *n)
{
    n->phase = NDT_PHASE_DONE;
    n->wants_eval = 0;
}

/** A coarse level that no point meets does not end the solve: a finer one has other voxels. */
NDT_APART void end_level(struct ndt_newton *n, const struct ndt_newton_rules *rules)
{
    copy6(n->p, n->best_p);
    n->eval = n->best;
    copy6(n->query_pose, n->p);
    if (n->chain + 1 < rules->level_count) {
        open_level(n, rules, n->chain + 1);
        return;
    }
    if (n->stop != NDT_STOP_OFF_MAP)
        find_weak(n, rules);
    finish(n);
}

static inline NDT_DEVICE const struct ndt_newton_limits *limits_of(const struct ndt_newton *n,
                                                                   const struct ndt_newton_rules *rules)
{
    return n->chain + 1 == rules->level_count ? &rules->fine : &rules->coarse;
}

static inline NDT_DEVICE void query_line_search(struct ndt_newton *n)
{
    for (int i = 0; i < 6; i++)
        n->query_pose[i] = n->p[i] + n->alpha * n->d[i];
    n->phase = NDT_PHASE_LINE_SEARCH;
}

/** Newton steps shrink quadratically: a small one leaves nothing to gain, so it is made without another evaluation,
 * and n->eval stays that of its start. Only from the best pose: small steps may have lost a little score, and what
 * is observed is decided where the score is highest. */
static inline NDT_DEVICE void make_last_step(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                             struct ndt_newton_row *rows, int32_t capacity)
{
    const double none[6] = {0, 0, 0, 0, 0, 0};
    const int is_best = n->eval.score >= n->best.score;
    close_row(n, rows, capacity, is_best ? n->d : none);
    if (is_best)
        copy6(n->best_p, n->query_pose);
    end_level(n, rules);
}

/** Begins an iteration at n->eval: computes the step and queries its whole length. */
NDT_APART void iterate_robust(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                              struct ndt_newton_row *rows, int32_t capacity)
{
    const struct ndt_newton_limits *limits = limits_of(n, rules);
    if (n->row_count >= rules->max_iterations) {
        n->stop = NDT_STOP_ITERATIONS;
        end_level(n, rules);
        return;
    }
    open_row(n, rows, capacity);
    newton_direction(&n->eval, rules->eigenvalue_floor, n->d);
    cap_step(n, rules, n->d);
    n->line_search_step = 0;
    n->alpha = 1;
    query_line_search(n);
    if (norm3(n->d) < limits->step_m && norm3(n->d + 3) < limits->step_rad)
        make_last_step(n, rules, rows, capacity);
}

static inline NDT_DEVICE void step_open_level(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                              struct ndt_newton_row *rows, int32_t capacity,
                                              const struct ndt_eval *eval)
{
    copy6(n->p, n->query_pose);
    n->eval = *eval;
    keep_best(n);
    n->stop = eval->matched > 0 ? NDT_STOP_CONVERGED : NDT_STOP_OFF_MAP;
    if (n->stop == NDT_STOP_CONVERGED)
        iterate_robust(n, rules, rows, capacity);
    else
        end_level(n, rules);
}

/** Moves to the pose that was evaluated. */
static inline NDT_DEVICE void accept_step(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                          struct ndt_newton_row *rows, int32_t capacity,
                                          const struct ndt_eval *eval)
{
    const double alpha = n->alpha, before = n->eval.score;
    double step[6];
    for (int i = 0; i < 6; i++)
        step[i] = alpha * n->d[i];
    copy6(n->p, n->query_pose);
    n->eval = *eval;
    n->trust =
        n->line_search_step == 0 ? fmin(1.0, NDT_TRUST_GROWTH * n->trust) : fmax(NDT_TRUST_LEAST, alpha * n->trust);
    close_row(n, rows, capacity, step);
    keep_best(n);
    if (fabs(n->eval.score - before) < limits_of(n, rules)->gain * fabs(before))
        end_level(n, rules);
    else
        iterate_robust(n, rules, rows, capacity);
}

/** Backtracking line search. Voxels that drop out of the radius can make the score fall abruptly although its slope
 * rises: where no length is acceptable the shortest is taken nevertheless, a few times per level; the best pose is
 * kept. */
static inline NDT_DEVICE void step_line_search(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                               struct ndt_newton_row *rows, int32_t capacity,
                                               const struct ndt_eval *eval)
{
    const double none[6] = {0, 0, 0, 0, 0, 0};
    if (is_acceptable(n, eval)) {
        accept_step(n, rules, rows, capacity, eval);
    } else if (++n->line_search_step < rules->max_line_search_steps) {
        n->alpha = shorter_alpha(n, eval);
        query_line_search(n);
    } else if (eval->matched > 0 && fabs(eval->score) < INFINITY && n->downhill++ < NDT_DOWNHILL_STEPS) {
        accept_step(n, rules, rows, capacity, eval);
    } else {
        close_row(n, rows, capacity, none);
        end_level(n, rules);
    }
}

/* ---- autoware ---- */

/** d = -H^+ g, the pseudo-inverse: without directions in which H is numerically zero, as a solver by SVD. */
static inline NDT_DEVICE void pseudo_newton_step(const struct ndt_eval *eval, double d[6])
{
    EIGEN6_PLACE(e);
    eigen6_load(e, eval->hessian);
    eigen6_solve(e);
    const double *lambda = e->values, *V = e->vectors;
    const double largest = fmax(fabs(lambda[0]), fabs(lambda[5]));
    for (int i = 0; i < 6; i++)
        d[i] = 0;
    for (int k = 0; k < 6; k++) {
        double along = 0;
        if (!(fabs(lambda[k]) > 1e-15 * largest))
            continue;
        for (int i = 0; i < 6; i++)
            along += V[i * 6 + k] * eval->gradient[i];
        for (int i = 0; i < 6; i++)
            d[i] -= V[i * 6 + k] * along / lambda[k];
    }
}

/** Clamps the length of d and reverses it if it points downhill; returns the length, 0 if there is no step. */
static inline NDT_DEVICE double clamp_step(const struct ndt_newton_rules *rules, const struct ndt_eval *eval,
                                           double d[6])
{
    double norm = 0, uphill = 0;
    for (int i = 0; i < 6; i++) {
        norm += d[i] * d[i];
        uphill += d[i] * eval->gradient[i];
    }
    norm = sqrt(norm);
    if (!(norm > 0) || !isfinite(norm))
        return 0;
    const double alpha = fmin(fmax(norm, rules->trans_epsilon / 2), rules->step_size);
    for (int i = 0; i < 6; i++)
        d[i] *= (uphill < 0 ? -alpha : alpha) / norm;
    return alpha;
}

/** Begins an iteration at n->eval unless the limit is reached. */
NDT_APART void iterate_autoware(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                struct ndt_newton_row *rows, int32_t capacity)
{
    if (n->stop != NDT_STOP_ITERATIONS || n->row_count >= rules->max_iterations) {
        finish(n);
        return;
    }
    open_row(n, rows, capacity);
    pseudo_newton_step(&n->eval, n->d);
    n->trust = clamp_step(rules, &n->eval, n->d);
    for (int i = 0; i < 6; i++) {
        n->d[i] = n->trust > 0 ? n->d[i] : 0;
        n->query_pose[i] = n->p[i] + n->d[i];
    }
    n->phase = NDT_PHASE_LINE_SEARCH;
}

static inline NDT_DEVICE void step_autoware(struct ndt_newton *n, const struct ndt_newton_rules *rules,
                                            struct ndt_newton_row *rows, int32_t capacity,
                                            const struct ndt_eval *eval)
{
    copy6(n->p, n->query_pose);
    n->eval = *eval;
    if (n->phase == NDT_PHASE_OPEN) {
        n->stop = eval->matched > 0 ? NDT_STOP_ITERATIONS : NDT_STOP_OFF_MAP;
    } else {
        close_row(n, rows, capacity, n->d);
        if (n->trust < rules->trans_epsilon)
            n->stop = NDT_STOP_CONVERGED;
    }
    iterate_autoware(n, rules, rows, capacity);
}

/* ---- both ---- */

static inline NDT_DEVICE void clear_eval(struct ndt_eval *eval)
{
    eval->score = eval->nearest_score = eval->matched = eval->pairs = 0;
    for (int i = 0; i < 6; i++)
        eval->gradient[i] = 0;
    for (int i = 0; i < 21; i++)
        eval->hessian[i] = 0;
}

/** Stopping before the first evaluation leaves the guess with all sums zero. */
static inline NDT_DEVICE void newton_begin(struct ndt_newton *n, const struct ndt_newton_rules *rules)
{
    clear_eval(&n->eval);
    n->stop = NDT_STOP_DEADLINE;
    n->evaluations = n->row_count = n->rows_closed = n->oscillation = 0;
    n->line_search_step = n->row_evaluations = n->reversals = 0;
    n->weak.count = 0;
    for (int i = 0; i < 3; i++)
        n->last_step_m[i] = 0;
    copy6(n->p, n->guess);
    copy6(n->query_pose, n->guess);
    open_level(n, rules, rules->variant == NDT_AUTOWARE ? rules->level_count - 1 : n->first_level);
}

NDT_APART void newton_step(struct ndt_newton *n, const struct ndt_newton_rules *rules, struct ndt_newton_row *rows,
                           int32_t capacity, const struct ndt_eval *sums)
{
    struct ndt_eval eval = *sums;
    regularize(n, rules, &eval);
    add_prior(n, &eval);
    n->evaluations++;
    n->row_evaluations++;
    if (rules->variant == NDT_AUTOWARE)
        step_autoware(n, rules, rows, capacity, &eval);
    else if (n->phase == NDT_PHASE_OPEN)
        step_open_level(n, rules, rows, capacity, &eval);
    else
        step_line_search(n, rules, rows, capacity, &eval);
}

NDT_APART void newton_give_up(struct ndt_newton *n, struct ndt_newton_row *rows, int32_t capacity)
{
    const double none[6] = {0, 0, 0, 0, 0, 0};
    const int in_line_search = n->phase == NDT_PHASE_LINE_SEARCH && n->best.score > -INFINITY;
    if (n->phase == NDT_PHASE_LINE_SEARCH)
        close_row(n, rows, capacity, none);
    if (in_line_search) {
        copy6(n->p, n->best_p);
        n->eval = n->best;
    }
    n->stop = NDT_STOP_DEADLINE;
    finish(n);
}

#endif

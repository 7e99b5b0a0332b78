/* The robust variant: saddle-free Newton with separate caps, Armijo backtracking and coarse-to-fine levels. */
#include "align_state.h"

#include <math.h>
#include <string.h>

#include "clock.h"
#include "ndt/linalg.h"

static const double ARMIJO = 1e-4;
/* Steps that had to be cut shorten the caps of the next ones, steps taken whole double them again: a fifth fewer
 * evaluations from starts 0.5 m off, the same capture range. */
static const double TRUST_GROWTH = 2, TRUST_LEAST = 0.1;
/* The set of voxels within the radius jumps as points move: a small step may lose this part of the score. */
static const double SLACK = 5e-4, SLACK_M = 0.02, SLACK_RAD = 0.2 * 0.017453292519943295;

/* When to leave a level. */
struct limits {
    double step_m, step_rad, gain;
};

static double norm3(const double *v)
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* d = V |Lambda|^-1 V^T g of -H: an ascent direction wherever the Hessian is indefinite, plain Newton where it is
 * not (Dauphin et al. 2014). */
static void newton_step(const struct ndt_eval *eval, double floor_ratio, double d[6], double *least)
{
    double minus_H[21], lambda[6], V[36];
    for (int i = 0; i < 21; i++)
        minus_H[i] = -eval->hessian[i];
    ndt_eigen_symmetric(6, minus_H, lambda, V);
    const double largest = fmax(fabs(lambda[0]), fabs(lambda[5]));
    *least = largest;
    memset(d, 0, 6 * sizeof(d[0]));
    for (int k = 0; k < 6; k++) {
        *least = fmin(*least, fabs(lambda[k]));
        const double curvature = fmax(fabs(lambda[k]), floor_ratio * largest);
        double along = 0;
        for (int i = 0; i < 6; i++)
            along += V[i * 6 + k] * eval->gradient[i];
        for (int i = 0; curvature > 0 && i < 6; i++)
            d[i] += V[i * 6 + k] * along / curvature;
    }
}

/* Metres and radians are capped on their own, the direction of each part is kept. */
static void cap_step(const struct ndt_search *search, double d[6])
{
    const double cap_m = search->trust * search->params->step_limit_m;
    const double cap_rad = search->trust * search->params->step_limit_rad;
    const double t = norm3(d), r = norm3(d + 3);
    const double scale_t = t > cap_m ? cap_m / t : 1;
    const double scale_r = r > cap_rad ? cap_rad / r : 1;
    for (int i = 0; i < 3; i++) {
        d[i] *= scale_t;
        d[3 + i] *= scale_r;
    }
}

static double slope(const struct ndt_eval *eval, const double d[6])
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += eval->gradient[i] * d[i];
    return sum;
}

static int acceptable(const struct ndt_eval *from, const struct ndt_eval *to, const double step[6],
                      const double d[6], double alpha)
{
    if (to->score >= from->score + ARMIJO * alpha * slope(from, d))
        return 1;
    return norm3(step) < SLACK_M && norm3(step + 3) < SLACK_RAD && to->score >= from->score * (1 - SLACK);
}

/* Tries alpha = 1, 1/2, 1/4 ... along d and moves the search to the first acceptable point. *moved is 0 when
 * none was; step is what was done. */
static enum ndt_status line_search(struct ndt_search *search, const double d[6], double step[6], int *moved,
                                   int *late, struct ndt_error *err)
{
    double alpha = 1;
    for (int trial = 0; trial < search->params->max_trials; trial++, alpha *= 0.5) {
        double p[6];
        struct ndt_eval eval;
        *late = ndt_search_late(search);
        if (*late)
            return NDT_OK;
        for (int i = 0; i < 6; i++) {
            step[i] = alpha * d[i];
            p[i] = search->p[i] + step[i];
        }
        enum ndt_status status = ndt_search_eval(search, p, &eval, err);
        if (status != NDT_OK)
            return status;
        if (acceptable(&search->eval, &eval, step, d, alpha)) {
            memcpy(search->p, p, sizeof(p));
            search->eval = eval;
            search->trust =
                trial == 0 ? fmin(1, TRUST_GROWTH * search->trust) : fmax(TRUST_LEAST, alpha * search->trust);
            *moved = 1;
            return NDT_OK;
        }
    }
    memset(step, 0, 6 * sizeof(step[0]));
    return NDT_OK;
}

struct best {
    double p[6];
    struct ndt_eval eval;
};

static void keep_best(struct best *best, const struct ndt_search *search)
{
    if (search->eval.score <= best->eval.score)
        return;
    memcpy(best->p, search->p, sizeof(best->p));
    best->eval = search->eval;
}

/* One Newton iteration; *done when the level has nothing more to give. */
static enum ndt_status iterate(struct ndt_search *search, const struct limits *limits, int *done, int *late,
                               struct ndt_error *err)
{
    double d[6], step[6] = {0};
    int moved = 0;
    const double before = search->eval.score, solve_us = ndt_clock_us();
    struct ndt_iteration *row = ndt_search_row(search);
    newton_step(&search->eval, search->params->eigenvalue_floor, d, &row->min_abs_eigenvalue);
    ndt_remove_weak(search, &search->weak, d);
    cap_step(search, d);
    row->solve_us = ndt_clock_us() - solve_us;
    /* A step too small to matter is not worth an evaluation: the pose stays where it was evaluated. */
    *done = norm3(d) < limits->step_m && norm3(d + 3) < limits->step_rad;
    if (*done) {
        ndt_search_close_row(search, row, step);
        return NDT_OK;
    }
    enum ndt_status status = line_search(search, d, step, &moved, late, err);
    if (status != NDT_OK)
        return status;
    ndt_search_close_row(search, row, step);
    *done = !moved || fabs(search->eval.score - before) < limits->gain * fabs(before);
    return NDT_OK;
}

static enum ndt_status run_level(struct ndt_search *search, const struct limits *limits, enum ndt_stop *stop,
                                 struct ndt_error *err)
{
    struct best best = {.eval = {.score = -INFINITY}};
    search->trust = 1;
    int done = 0, late = ndt_search_late(search);
    if (late && search->evaluations > 0) {
        *stop = NDT_STOP_DEADLINE;
        return NDT_OK;
    }
    enum ndt_status status = ndt_search_eval(search, search->p, &search->eval, err);
    if (status == NDT_OK)
        keep_best(&best, search);
    *stop = search->eval.matched > 0 ? NDT_STOP_CONVERGED : NDT_STOP_OFF_MAP;
    while (status == NDT_OK && *stop == NDT_STOP_CONVERGED && !done) {
        if ((int)search->aligner->trace_count >= search->iteration_limit) {
            *stop = NDT_STOP_ITERATIONS;
            break;
        }
        status = iterate(search, limits, &done, &late, err);
        keep_best(&best, search);
        if (late)
            *stop = NDT_STOP_DEADLINE;
    }
    memcpy(search->p, best.p, sizeof(best.p));
    search->eval = best.eval;
    return status;
}

/* A GNSS position observes the heading, whatever the scan sees: that part of a removed step is given back. */
static void keep_gnss_part(const struct ndt_search *search, const double whole[6], double step[6])
{
    double n[2];
    if (!search->params->has_gnss || !ndt_search_heading(search, search->p, n))
        return;
    const double along = (whole[0] - step[0]) * n[0] + (whole[1] - step[1]) * n[1];
    step[0] += along * n[0];
    step[1] += along * n[1];
}

/* Where the scan does not observe a direction, the search has slid along it with the noise: go back to the guess
 * along that direction and settle the others again. Only asked at the end: on the way there, and away from the
 * maximum, a direction may lack curvature though it is well observed. */
static enum ndt_status hold_weak(struct ndt_search *search, const struct limits *limits, enum ndt_stop *stop,
                                 struct ndt_error *err)
{
    double whole[6], step[6];
    ndt_find_weak(search, &search->weak);
    if (search->weak.count == 0)
        return NDT_OK;
    for (int i = 0; i < 6; i++)
        step[i] = whole[i] = search->p[i] - search->guess[i];
    ndt_remove_weak(search, &search->weak, step);
    keep_gnss_part(search, whole, step);
    for (int i = 0; i < 6; i++)
        search->p[i] = search->guess[i] + step[i];
    search->iteration_limit = (int)search->aligner->trace_count + search->params->max_iterations / 3;
    return run_level(search, limits, stop, err);
}

/* A coarse level that sees nothing does not end the search: a finer one has other voxels. */
enum ndt_status ndt_newton_robust(struct ndt_search *search, enum ndt_stop *stop, struct ndt_error *err)
{
    const struct ndt_align_params *params = search->params;
    const struct limits coarse = {params->coarse_stop_m, params->coarse_stop_rad, params->coarse_stop_gain};
    const struct limits fine = {params->fine_stop_m, params->fine_stop_rad, params->fine_stop_gain};
    for (size_t i = 0; i < params->level_count; i++) {
        const int last = i + 1 == params->level_count;
        search->request.level = search->levels[i];
        search->request.neighbours = params->levels[i].neighbours;
        enum ndt_status status = run_level(search, last ? &fine : &coarse, stop, err);
        if (status != NDT_OK || *stop == NDT_STOP_DEADLINE)
            return status;
    }
    return *stop == NDT_STOP_OFF_MAP ? NDT_OK : hold_weak(search, &fine, stop, err);
}

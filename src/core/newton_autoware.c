/* The step rule of Autoware's ndt_scan_matcher, for comparison: solve H d = -g, turn the whole step where it
 * points downhill, clamp its mixed metre-radian norm, no line search, one level. */
#include "align_state.h"

#include <math.h>

#include "clock.h"
#include "ndt/linalg.h"

/* d = -H^-1 g, leaving out directions in which H is numerically zero, as a solver by SVD does. */
static double solve(const struct ndt_eval *eval, double d[6])
{
    double lambda[6], V[36], least = INFINITY;
    ndt_eigen_symmetric(6, eval->hessian, lambda, V);
    const double largest = fmax(fabs(lambda[0]), fabs(lambda[5]));
    for (int i = 0; i < 6; i++)
        d[i] = 0;
    for (int k = 0; k < 6; k++) {
        double along = 0;
        least = fmin(least, fabs(lambda[k]));
        if (!(fabs(lambda[k]) > 1e-15 * largest))
            continue;
        for (int i = 0; i < 6; i++)
            along += V[i * 6 + k] * eval->gradient[i];
        for (int i = 0; i < 6; i++)
            d[i] -= V[i * 6 + k] * along / lambda[k];
    }
    return least;
}

/* The step with its clamped length; 0 when there is none to make. */
static double make_step(const struct ndt_align_params *params, const struct ndt_eval *eval, double d[6])
{
    double norm = 0, uphill = 0;
    for (int i = 0; i < 6; i++) {
        norm += d[i] * d[i];
        uphill += d[i] * eval->gradient[i];
    }
    norm = sqrt(norm);
    if (!(norm > 0) || !isfinite(norm))
        return 0;
    const double alpha = fmin(fmax(norm, params->trans_epsilon / 2), params->step_size);
    for (int i = 0; i < 6; i++)
        d[i] *= (uphill < 0 ? -alpha : alpha) / norm;
    return alpha;
}

enum ndt_status ndt_newton_autoware(struct ndt_search *search, enum ndt_stop *stop, struct ndt_error *err)
{
    const struct ndt_align_params *params = search->params;
    search->request.level = search->levels[params->level_count - 1];
    search->request.neighbours = params->levels[params->level_count - 1].neighbours;
    enum ndt_status status = ndt_search_eval(search, search->p, &search->eval, err);
    *stop = search->eval.matched > 0 ? NDT_STOP_ITERATIONS : NDT_STOP_OFF_MAP;
    for (int i = 0; status == NDT_OK && *stop == NDT_STOP_ITERATIONS && i < params->max_iterations; i++) {
        double d[6];
        if (ndt_search_late(search)) {
            *stop = NDT_STOP_DEADLINE;
            break;
        }
        const double solve_us = ndt_clock_us();
        struct ndt_iteration *row = ndt_search_row(search);
        row->min_abs_eigenvalue = solve(&search->eval, d);
        const double alpha = make_step(params, &search->eval, d);
        row->solve_us = ndt_clock_us() - solve_us;
        for (int k = 0; alpha > 0 && k < 6; k++)
            search->p[k] += d[k];
        status = ndt_search_eval(search, search->p, &search->eval, err);
        ndt_search_close_row(search, row, d);
        if (alpha < params->trans_epsilon)
            *stop = NDT_STOP_CONVERGED;
    }
    return status;
}

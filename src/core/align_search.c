/* Newton's method driven by the host, evaluation by evaluation, with its timings and its deadline. */
#include "align_state.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"

struct ndt_pose ndt_search_pose(const struct ndt_search *search, const double p[6])
{
    const struct ndt_pose turn = ndt_pose_from_rotation(search->newton.R0, (double[3]){0, 0, 0});
    struct ndt_pose pose = ndt_pose_from_euler(p);
    pose = ndt_pose_compose(&pose, &turn);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += search->aligner->map->origin_m[i];
    return pose;
}

void ndt_remember_cost(double *cost_us, double seen_us)
{
    *cost_us = *cost_us > 0 ? *cost_us + 0.2 * (fmin(seen_us, 3 * *cost_us) - *cost_us) : seen_us;
}

/* Turns the scan by R0 into the aligner's own cloud and hands that to the backend. */
enum ndt_status ndt_search_load(struct ndt_search *search, struct ndt_error *err)
{
    struct ndt_aligner *aligner = search->aligner;
    const struct ndt_cloud *scan = search->scan;
    struct ndt_cloud *to = &aligner->turned;
    const double *R = search->newton.R0;
    enum ndt_status status = ndt_cloud_reserve(to, scan->count, 0, err);
    if (status != NDT_OK)
        return status;
    to->count = scan->count;
    for (size_t i = 0; i < scan->count; i++) {
        const double x = scan->x_m[i], y = scan->y_m[i], z = scan->z_m[i];
        to->x_m[i] = (float)(R[0] * x + R[1] * y + R[2] * z);
        to->y_m[i] = (float)(R[3] * x + R[4] * y + R[5] * z);
        to->z_m[i] = (float)(R[6] * x + R[7] * y + R[8] * z);
    }
    return aligner->backend->ops->set_scan(aligner->backend, to, err);
}

static enum ndt_status evaluate(struct ndt_search *search, struct ndt_eval *sums, struct ndt_error *err)
{
    struct ndt_backend *backend = search->aligner->backend;
    const struct ndt_newton *newton = &search->newton;
    struct ndt_eval_request request = {.level = newton->level,
                                       .neighbours = (enum ndt_neighbours)newton->neighbours};
    memcpy(request.p, newton->ask, sizeof(request.p));
    const double start_us = ndt_clock_us();
    enum ndt_status status = backend->ops->eval(backend, &request, sums, err);
    const double eval_us = ndt_clock_us() - start_us;
    search->slowest_eval_us = fmax(search->slowest_eval_us, eval_us);
    ndt_remember_cost(&search->aligner->level_us[newton->level], eval_us);
    search->unbilled_us += eval_us;
    return status;
}

/* Would one more evaluation pass the deadline? It may be the first on its level: then what it cost for the scans
 * before counts. */
static int is_late(const struct ndt_search *search)
{
    const struct ndt_aligner *aligner = search->aligner;
    if (search->params->deadline_s <= 0 || search->newton.evaluations == 0)
        return 0;
    const double passed_us = ndt_clock_us() - search->start_us;
    const double next_us = 1.5 * fmax(search->slowest_eval_us, aligner->level_us[search->newton.level]);
    return passed_us + next_us + 1.5 * aligner->judge_us > search->params->deadline_s * 1e6;
}

static void read_counters(const struct ndt_search *search, struct ndt_backend_counters *counters)
{
    memset(counters, 0, sizeof(*counters));
    if (search->aligner->backend->ops->counters)
        search->aligner->backend->ops->counters(search->aligner->backend, counters);
}

/* Writes what rows that were closed since cost; the first of them gets it all. */
static void bill(struct ndt_search *search, size_t closed_before)
{
    const struct ndt_newton *newton = &search->newton;
    struct ndt_backend_counters now;
    size_t closed = (size_t)newton->rows_closed;
    closed = closed < NDT_MAX_ITERATIONS ? closed : NDT_MAX_ITERATIONS;
    if (closed <= closed_before)
        return;
    struct ndt_iteration *row = &search->aligner->last.trace[closed_before];
    read_counters(search, &now);
    *row = (struct ndt_iteration){
        .eval_us = search->unbilled_us,
        .solve_us = search->unbilled_solve_us,
        .kernel_us = now.kernel_us - search->billed.kernel_us,
        .h2d_bytes = now.h2d_bytes - search->billed.h2d_bytes,
        .d2h_bytes = now.d2h_bytes - search->billed.d2h_bytes,
        .launches = now.launches - search->billed.launches,
        .synchronisations = now.synchronisations - search->billed.synchronisations,
        .allocations = now.allocations - search->billed.allocations,
    };
    for (size_t i = closed_before + 1; i < closed; i++)
        search->aligner->last.trace[i] = (struct ndt_iteration){0};
    search->billed = now;
    search->unbilled_us = search->unbilled_solve_us = 0;
}

/* One evaluation and what newton makes of it. */
static enum ndt_status step(struct ndt_search *search, struct ndt_error *err)
{
    struct ndt_newton_row *rows = search->aligner->last.rows;
    struct ndt_eval sums;
    enum ndt_status status = evaluate(search, &sums, err);
    if (status != NDT_OK)
        return status;
    const double solve_us = ndt_clock_us();
    ndt_newton_take(&search->newton, search->rules, rows, NDT_MAX_ITERATIONS, &sums);
    search->unbilled_solve_us += ndt_clock_us() - solve_us;
    return NDT_OK;
}

enum ndt_status ndt_search_run(struct ndt_search *search, struct ndt_error *err)
{
    struct ndt_newton *newton = &search->newton;
    enum ndt_status status = NDT_OK;
    search->row_capacity = NDT_MAX_ITERATIONS;
    read_counters(search, &search->billed);
    ndt_newton_begin(newton, search->rules);
    while (status == NDT_OK && newton->wants_eval) {
        const size_t closed = (size_t)newton->rows_closed;
        if (is_late(search))
            ndt_newton_give_up(newton, search->aligner->last.rows, NDT_MAX_ITERATIONS);
        else
            status = step(search, err);
        bill(search, closed);
    }
    if (status == NDT_OK && newton->stop != NDT_STOP_OFF_MAP)
        search->coverage = ndt_search_coverage(search);
    return status;
}

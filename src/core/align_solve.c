/* Newton's method driven by the host, evaluation by evaluation, with its timings and its deadline. */
#include "align_state.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"

struct ndt_pose ndt_solve_pose(const struct ndt_solve *solve, const double p[6])
{
    const struct ndt_pose turn = ndt_pose_from_rotation(solve->newton.R0, (double[3]){0, 0, 0});
    struct ndt_pose pose = ndt_pose_from_euler(p);
    pose = ndt_pose_compose(&pose, &turn);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += solve->aligner->map->origin_m[i];
    return pose;
}

/* Turns the scan by R0 into the aligner's own cloud and hands that to the backend. */
enum ndt_status ndt_solve_load(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_aligner *aligner = solve->aligner;
    const struct ndt_cloud *scan = solve->scan;
    struct ndt_cloud *to = &aligner->turned;
    const double *R = solve->newton.R0;
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

static enum ndt_status evaluate(struct ndt_solve *solve, struct ndt_eval *sums, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    const struct ndt_newton *newton = &solve->newton;
    struct ndt_eval_request request = {.level = newton->level,
                                       .neighbours = (enum ndt_neighbours)newton->neighbours};
    memcpy(request.p, newton->query_pose, sizeof(request.p));
    const double start_us = ndt_clock_us();
    enum ndt_status status = backend->ops->eval(backend, &request, sums, err);
    const double eval_us = ndt_clock_us() - start_us;
    solve->slowest_eval_us = fmax(solve->slowest_eval_us, eval_us);
    ndt_remember_cost(&solve->aligner->level_us[newton->level], eval_us);
    solve->unbilled_us += eval_us;
    return status;
}

/* Would one more evaluation pass the deadline? It may be the first on its level: then what it cost for the scans
 * before counts. */
static int is_late(const struct ndt_solve *solve)
{
    const struct ndt_aligner *aligner = solve->aligner;
    if (solve->params->deadline_s <= 0 || solve->newton.evaluations == 0)
        return 0;
    const double passed_us = ndt_clock_us() - solve->start_us;
    const double next_us = 1.5 * fmax(solve->slowest_eval_us, aligner->level_us[solve->newton.level]);
    return passed_us + next_us + 1.5 * aligner->assess_us > solve->params->deadline_s * 1e6;
}

static void read_counters(const struct ndt_solve *solve, struct ndt_backend_counters *counters)
{
    memset(counters, 0, sizeof(*counters));
    if (solve->aligner->backend->ops->counters)
        solve->aligner->backend->ops->counters(solve->aligner->backend, counters);
}

/* Writes what rows that were closed since cost; the first of them gets it all. */
static void bill(struct ndt_solve *solve, size_t closed_before)
{
    const struct ndt_newton *newton = &solve->newton;
    struct ndt_backend_counters now;
    size_t closed = (size_t)newton->rows_closed;
    closed = closed < NDT_MAX_ITERATIONS ? closed : NDT_MAX_ITERATIONS;
    if (closed <= closed_before)
        return;
    struct ndt_iteration *row = &solve->aligner->last.trace[closed_before];
    read_counters(solve, &now);
    *row = (struct ndt_iteration){
        .eval_us = solve->unbilled_us,
        .solve_us = solve->unbilled_solve_us,
        .kernel_us = now.kernel_us - solve->billed.kernel_us,
        .h2d_bytes = now.h2d_bytes - solve->billed.h2d_bytes,
        .d2h_bytes = now.d2h_bytes - solve->billed.d2h_bytes,
        .launches = now.launches - solve->billed.launches,
        .synchronisations = now.synchronisations - solve->billed.synchronisations,
        .allocations = now.allocations - solve->billed.allocations,
    };
    for (size_t i = closed_before + 1; i < closed; i++)
        solve->aligner->last.trace[i] = (struct ndt_iteration){0};
    solve->billed = now;
    solve->unbilled_us = solve->unbilled_solve_us = 0;
}

/* One evaluation and what newton makes of it. */
static enum ndt_status step(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_newton_row *rows = solve->aligner->last.rows;
    struct ndt_eval sums;
    enum ndt_status status = evaluate(solve, &sums, err);
    if (status != NDT_OK)
        return status;
    const double solve_us = ndt_clock_us();
    ndt_newton_step(&solve->newton, solve->rules, rows, NDT_MAX_ITERATIONS, &sums);
    solve->unbilled_solve_us += ndt_clock_us() - solve_us;
    return NDT_OK;
}

enum ndt_status ndt_solve_run(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_newton *newton = &solve->newton;
    enum ndt_status status = NDT_OK;
    solve->row_capacity = NDT_MAX_ITERATIONS;
    read_counters(solve, &solve->billed);
    ndt_newton_begin(newton, solve->rules);
    while (status == NDT_OK && newton->wants_eval) {
        const size_t closed = (size_t)newton->rows_closed;
        if (is_late(solve))
            ndt_newton_give_up(newton, solve->aligner->last.rows, NDT_MAX_ITERATIONS);
        else
            status = step(solve, err);
        bill(solve, closed);
    }
    if (status == NDT_OK && newton->stop != NDT_STOP_OFF_MAP)
        solve->coverage = ndt_solve_coverage(solve);
    return status;
}

/* Running one solve, with its timings and its deadline: on the host evaluation by evaluation, or on the device as a
 * whole. */
#include "align_state.h"

#include <math.h>
#include <string.h>

#include "ndt/clock.h"

/* ---- expected costs, for deadlines only ---- */

void ndt_remember_cost(double *cost_us, double seen_us)
{
    *cost_us = *cost_us > 0 ? *cost_us + 0.2 * (fmin(seen_us, 3 * *cost_us) - *cost_us) : seen_us;
}

void ndt_aligner_set_costs(struct ndt_aligner *aligner, const struct ndt_align_costs *costs)
{
    aligner->costs = *costs;
    aligner->cost_points = 0;
    memset(aligner->level_us, 0, sizeof(aligner->level_us));
    aligner->assess_us = 0;
    for (size_t i = 0; i < aligner->lane_count; i++)
        aligner->lanes[i].aligner.cost_points = 0;
}

void ndt_aligner_costs(const struct ndt_aligner *aligner, struct ndt_align_costs *out)
{
    *out = (struct ndt_align_costs){.assess = {.fixed_us = aligner->assess_us}};
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->levels[i].fixed_us = aligner->level_us[i];
}

/* Costs measured with earlier scans are scaled by the ratio of the expected costs of the two sizes; without
 * measurements the expected cost is used. */
static void expect(double *seen_us, const struct ndt_cost *cost, size_t before, size_t points)
{
    const double expected_us = cost->fixed_us + cost->point_us * (double)points;
    const double expected_before_us = cost->fixed_us + cost->point_us * (double)before;
    if (!(*seen_us > 0))
        *seen_us = expected_us;
    else if (before > 0 && expected_us > 0 && expected_before_us > 0)
        *seen_us *= expected_us / expected_before_us;
}

void ndt_expect_costs(struct ndt_aligner *aligner, size_t points)
{
    const size_t before = aligner->cost_points;
    aligner->cost_points = points;
    if (before == points)
        return;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        expect(&aligner->level_us[i], &aligner->costs.levels[i], before, points);
    expect(&aligner->assess_us, &aligner->costs.assess, before, points);
}

static void read_counters(const struct ndt_backend *backend, struct ndt_backend_counters *counters)
{
    memset(counters, 0, sizeof(*counters));
    if (backend->ops->counters)
        backend->ops->counters(backend, counters);
}

/* ---- on the host ---- */

/* Rotates the scan by R0 into the aligner's own cloud and hands that to the backend. */
static enum ndt_status load_scan(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_aligner *aligner = solve->aligner;
    const struct ndt_cloud *scan = solve->scan;
    struct ndt_cloud *to = &aligner->turned;
    const double *R = solve->newton.R0;
    enum ndt_status status = ndt_cloud_reserve(to, scan->count, NDT_CLOUD_TIME, err);
    if (status != NDT_OK)
        return status;
    to->count = scan->count;
    if (scan->time_s && scan->count > 0)
        memcpy(to->time_s, scan->time_s, scan->count * sizeof(float));
    else if (scan->count > 0)
        memset(to->time_s, 0, scan->count * sizeof(float));
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
                                       .neighbours = (enum ndt_neighbours)newton->neighbours,
                                       .until_us = ndt_solve_until_us(solve, 1)};
    memcpy(request.p, newton->query_pose, sizeof(request.p));
    const double start_us = ndt_clock_us();
    enum ndt_status status = backend->ops->eval(backend, &request, sums, err);
    const double eval_us = ndt_clock_us() - start_us;
    solve->slowest_eval_us = fmax(solve->slowest_eval_us, eval_us);
    ndt_remember_cost(&solve->aligner->level_us[newton->level], eval_us);
    solve->open_eval_us += eval_us;
    return status;
}

/* Whether one more evaluation would exceed the deadline. For the first on its level, the cost for earlier scans
 * counts. */
static int is_late(const struct ndt_solve *solve)
{
    const struct ndt_aligner *aligner = solve->aligner;
    if (solve->params->deadline_s <= 0 || solve->newton.evaluations == 0)
        return 0;
    const double passed_us = ndt_clock_us() - solve->start_us;
    const double next_us = 1.5 * fmax(solve->slowest_eval_us, aligner->level_us[solve->newton.level]);
    return passed_us + next_us + 1.5 * aligner->assess_us > solve->params->deadline_s * 1e6;
}

/* Writes the cost to the rows closed since the last call: all of it to the first one. */
static void close_rows(struct ndt_solve *solve, size_t closed_before)
{
    const struct ndt_newton *newton = &solve->newton;
    struct ndt_backend_counters now;
    size_t closed = (size_t)newton->rows_closed;
    closed = closed < NDT_MAX_ITERATIONS ? closed : NDT_MAX_ITERATIONS;
    if (closed <= closed_before)
        return;
    struct ndt_iteration *row = &solve->trace->trace[closed_before];
    read_counters(solve->aligner->backend, &now);
    *row = (struct ndt_iteration){
        .eval_us = solve->open_eval_us,
        .solve_us = solve->open_solve_us,
        .kernel_us = now.kernel_us - solve->counted.kernel_us,
        .h2d_bytes = now.h2d_bytes - solve->counted.h2d_bytes,
        .d2h_bytes = now.d2h_bytes - solve->counted.d2h_bytes,
        .launches = now.launches - solve->counted.launches,
        .synchronisations = now.synchronisations - solve->counted.synchronisations,
        .allocations = now.allocations - solve->counted.allocations,
    };
    for (size_t i = closed_before + 1; i < closed; i++)
        solve->trace->trace[i] = (struct ndt_iteration){0};
    solve->counted = now;
    solve->open_eval_us = solve->open_solve_us = 0;
}

/* One evaluation and the step of the solver that follows from it. */
static enum ndt_status step(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_newton_row *rows = solve->trace->rows;
    struct ndt_eval sums;
    enum ndt_status status = evaluate(solve, &sums, err);
    if (status != NDT_OK)
        return status;
    const double solve_us = ndt_clock_us();
    ndt_newton_step(&solve->newton, solve->rules, rows, NDT_MAX_ITERATIONS, &sums);
    solve->open_solve_us += ndt_clock_us() - solve_us;
    return NDT_OK;
}

/* Runs the solve from newton->first_level on, with its trace in solve->trace. */
static enum ndt_status run_on_host(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_newton *newton = &solve->newton;
    enum ndt_status status = NDT_OK;
    read_counters(solve->aligner->backend, &solve->counted);
    ndt_newton_begin(newton, solve->rules);
    while (status == NDT_OK && newton->wants_eval) {
        const size_t closed = (size_t)newton->rows_closed;
        if (is_late(solve))
            ndt_newton_give_up(newton, solve->trace->rows, NDT_MAX_ITERATIONS);
        else
            status = step(solve, err);
        close_rows(solve, closed);
    }
    return status;
}

static void copy_trace(struct ndt_newton_rows *to, const struct ndt_newton_rows *from,
                       const struct ndt_newton *newton)
{
    const size_t rows =
        (size_t)newton->row_count < NDT_MAX_ITERATIONS ? (size_t)newton->row_count : NDT_MAX_ITERATIONS;
    memcpy(to->rows, from->rows, rows * sizeof(*to->rows));
    memcpy(to->trace, from->trace, rows * sizeof(*to->trace));
}

int ndt_solve_is_better(const struct ndt_newton *finest, const struct ndt_newton *chain)
{
    if (finest->stop != NDT_STOP_CONVERGED && finest->stop != NDT_STOP_ITERATIONS)
        return 0;
    return chain->stop == NDT_STOP_OFF_MAP || finest->eval.score > chain->eval.score;
}

/* Both solves end on the finest level, so their scores compare. */
static enum ndt_status try_finest(struct ndt_solve *solve, const struct ndt_newton *start, struct ndt_error *err)
{
    const struct ndt_newton chain = solve->newton;
    solve->newton = *start;
    solve->newton.first_level = solve->rules->level_count - 1;
    solve->trace = solve->aligner->other;
    enum ndt_status status = run_on_host(solve, err);
    solve->trace = solve->aligner->last;
    const int evaluations = chain.evaluations + solve->newton.evaluations;
    if (ndt_solve_is_better(&solve->newton, &chain))
        copy_trace(solve->aligner->last, solve->aligner->other, &solve->newton);
    else
        solve->newton = chain;
    solve->newton.evaluations = evaluations;
    return status;
}

static enum ndt_status observe(struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    const struct ndt_newton *newton = &solve->newton;
    struct ndt_eval_request request = {.level = newton->level,
                                       .neighbours = (enum ndt_neighbours)newton->neighbours,
                                       .until_us = ndt_solve_until_us(solve, 1)};
    memcpy(request.p, newton->p, sizeof(request.p));
    return backend->ops->inform(backend, &request, &solve->information, err);
}

enum ndt_status ndt_solve_on_host(struct ndt_solve *solve, double *upload_us, struct ndt_error *err)
{
    struct ndt_newton *newton = &solve->newton;
    const struct ndt_newton start = *newton;
    const double begin_us = ndt_clock_us();
    enum ndt_status status = load_scan(solve, err);
    *upload_us = ndt_clock_us() - begin_us;
    if (status != NDT_OK)
        return status;
    solve->row_capacity = NDT_MAX_ITERATIONS;
    solve->trace = solve->aligner->last;
    status = run_on_host(solve, err);
    if (status == NDT_OK && ndt_solve_tries_finest(newton, solve->params) && !is_late(solve))
        status = try_finest(solve, &start, err);
    if (status != NDT_OK || newton->stop == NDT_STOP_OFF_MAP)
        return status;
    solve->coverage = ndt_solve_coverage(solve->aligner->map, &solve->aligner->turned, newton);
    solve->is_observed = solve->rules->wants_information && solve->aligner->backend->ops->inform;
    return solve->is_observed ? observe(solve, err) : NDT_OK;
}

/* ---- on the device ---- */

size_t ndt_aligner_solve_limit(const struct ndt_aligner *aligner)
{
    const struct ndt_backend_ops *ops = aligner->backend->ops;
    return ops->solve_limit ? ops->solve_limit(aligner->backend) : 0;
}

size_t ndt_aligner_raw_limit(const struct ndt_aligner *aligner)
{
    const struct ndt_backend_ops *ops = aligner->backend->ops;
    return ops->preprocess_limit && ndt_aligner_solve_limit(aligner) > 0 ? ops->preprocess_limit(aligner->backend)
                                                                         : 0;
}

double ndt_solve_until_us(const struct ndt_solve *solve, size_t assessments)
{
    const double rest_us = 1.5 * solve->aligner->assess_us * (double)assessments;
    const double deadline_us = solve->params->deadline_s * 1e6;
    return solve->params->deadline_s > 0 ? solve->start_us + fmax(deadline_us - rest_us, 1) : 0;
}

/* The launch cost is added to the first row; the times are those of the device. */
static void set_device_costs(struct ndt_newton_rows *last, size_t count, const struct ndt_backend_counters *before,
                             const struct ndt_backend_counters *after)
{
    for (size_t i = 0; i < count; i++)
        last->trace[i] =
            (struct ndt_iteration){.eval_us = last->rows[i].took_us, .kernel_us = last->rows[i].took_us};
    if (count == 0)
        return;
    last->trace[0].h2d_bytes = after->h2d_bytes - before->h2d_bytes;
    last->trace[0].d2h_bytes = after->d2h_bytes - before->d2h_bytes;
    last->trace[0].launches = after->launches - before->launches;
    last->trace[0].synchronisations = after->synchronisations - before->synchronisations;
    last->trace[0].allocations = after->allocations - before->allocations;
}

/* Uploads the scan, or the raw points that the backend preprocesses. */
static enum ndt_status upload(const struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    if (solve->source == NDT_SCAN_PREPROCESSED)
        return backend->ops->set_scans(backend, &solve->scan, 1, err);
    const size_t count = solve->source == NDT_SCAN_RAW ? solve->raw->count : 1;
    if (ndt_aligner_raw_limit(solve->aligner) < count)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s does not preprocess such a scan", backend->ops->name);
    return solve->source == NDT_SCAN_RAW ? backend->ops->preprocess(backend, solve->plan, solve->raw, err)
                                         : backend->ops->preprocess_again(backend, solve->plan, err);
}

static enum ndt_status try_on_device(struct ndt_solve *solve, double *upload_us, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    struct ndt_newton_rows *last = solve->aligner->last, *other = solve->aligner->other;
    struct ndt_solve_item item = {.newton = solve->newton, .rows = last->rows, .row_capacity = NDT_MAX_ITERATIONS};
    struct ndt_solve_item finest = {
        .newton = solve->newton, .rows = other->rows, .row_capacity = NDT_MAX_ITERATIONS};
    struct ndt_backend_counters before, after;
    finest.newton.first_level = solve->rules->level_count - 1;
    enum ndt_status status = upload(solve, err);
    *upload_us = ndt_clock_us() - solve->start_us;
    read_counters(backend, &before);
    if (status == NDT_OK)
        status = backend->ops->solve(backend, solve->rules, &item, 1, ndt_solve_until_us(solve, 1), err);
    if (status == NDT_OK && ndt_solve_tries_finest(&item.newton, solve->params)) {
        const int evaluations = item.newton.evaluations;
        status = backend->ops->solve(backend, solve->rules, &finest, 1, ndt_solve_until_us(solve, 1), err);
        const int sum = evaluations + finest.newton.evaluations;
        if (status == NDT_OK && ndt_solve_is_better(&finest.newton, &item.newton)) {
            copy_trace(last, other, &finest.newton);
            item = finest;
        }
        item.newton.evaluations = sum;
    }
    if (status != NDT_OK)
        return status;
    read_counters(backend, &after);
    set_device_costs(last, (size_t)item.row_count, &before, &after);
    solve->newton = item.newton;
    solve->information = item.information;
    solve->is_observed = solve->rules->wants_information;
    solve->coverage = item.coverage;
    solve->row_capacity = item.row_count;
    solve->points = item.points;
    return NDT_OK;
}

enum ndt_status ndt_solve_on_device(struct ndt_solve *solve, double *upload_us, struct ndt_error *err)
{
    enum ndt_status status = NDT_ERR_UNSUPPORTED;
    for (int i = 0;
         i < NDT_DEVICE_ATTEMPTS && status == NDT_ERR_UNSUPPORTED && ndt_aligner_solve_limit(solve->aligner) > 0;
         i++)
        status = try_on_device(solve, upload_us, err);
    return status;
}

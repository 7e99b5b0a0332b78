#include "align_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "ndt/linalg.h"

static const double DEG = 0.017453292519943295;

const char *ndt_outcome_name(enum ndt_outcome outcome)
{
    static const char *const names[NDT_OUTCOME_COUNT] = {
        "converged", "iteration_limit", "deadline", "dropped",  "rejected",
        "low_score", "degenerate",      "no_map",   "no_guess", "off_map",
    };
    return (unsigned)outcome < NDT_OUTCOME_COUNT ? names[outcome] : "unknown";
}

void ndt_align_params_default(struct ndt_align_params *params)
{
    *params = (struct ndt_align_params){
        .variant = NDT_ROBUST,
        .level_count = 3,
        .levels = {{4.0, NDT_DIRECT7}, {2.0, NDT_DIRECT7}, {1.0, NDT_RADIUS}},
        .max_iterations = 30,
        .step_limit_m = 0.75,
        .step_limit_rad = 3 * DEG,
        .eigenvalue_floor = 1e-6,
        .coarse_stop_m = 0.02,
        .coarse_stop_rad = 0.1 * DEG,
        .coarse_stop_gain = 1e-4,
        .fine_stop_m = 0.001,
        .fine_stop_rad = 0.01 * DEG,
        .fine_stop_gain = 1e-6,
        .max_trials = 4,
        .trans_epsilon = 0.01,
        .step_size = 0.1,
        .score_threshold = 0.35,
        .min_match_ratio = 0.1,
        .weak_eigenvalue_ratio = 0.0125,
        .covariance_scale = 10.0,
        .gnss_scale = 0.01,
        .deadline_s = 0,
    };
}

enum ndt_status ndt_aligner_create(struct ndt_aligner **out, struct ndt_backend *backend, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for an aligner");
    (*out)->backend = backend;
    ndt_cloud_init(&(*out)->turned);
    return NDT_OK;
}

void ndt_aligner_destroy(struct ndt_aligner *aligner)
{
    if (!aligner)
        return;
    ndt_map_release(aligner->map);
    ndt_cloud_free(&aligner->turned);
    free(aligner);
}

enum ndt_status ndt_aligner_set_map(struct ndt_aligner *aligner, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = aligner->backend->ops->set_map(aligner->backend, map, err);
    if (status != NDT_OK)
        return status;
    ndt_map_retain(map);
    ndt_map_release(aligner->map);
    aligner->map = map;
    return NDT_OK;
}

const struct ndt_iteration *ndt_aligner_trace(const struct ndt_aligner *aligner, size_t *count)
{
    *count = aligner->trace_count;
    return aligner->trace;
}

enum ndt_status ndt_aligner_dump(struct ndt_aligner *aligner, size_t iteration, FILE *file, struct ndt_error *err)
{
    struct ndt_backend *backend = aligner->backend;
    if (iteration >= aligner->trace_count)
        return ndt_fail(err, NDT_ERR_LIMIT, "iteration %zu of an alignment that had %zu", iteration,
                        aligner->trace_count);
    if (!backend->ops->dump)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s keeps nothing between points and sums",
                        backend->ops->name);
    return backend->ops->dump(backend, &aligner->starts[iteration], file, err);
}

struct ndt_pose ndt_search_pose(const struct ndt_search *search, const double p[6])
{
    const struct ndt_pose turn = ndt_pose_from_rotation(search->R0, (double[3]){0, 0, 0});
    struct ndt_pose pose = ndt_pose_from_euler(p);
    pose = ndt_pose_compose(&pose, &turn);
    for (int i = 0; i < 3; i++)
        pose.t_m[i] += search->aligner->map->origin_m[i];
    return pose;
}

int ndt_search_heading(const struct ndt_search *search, const double p[6], double n[2])
{
    const struct ndt_pose T_map_sensor = ndt_search_pose(search, p);
    double R[9];
    ndt_pose_rotation(&T_map_sensor, R);
    const double length = hypot(R[0], R[3]);
    n[0] = length > 0 ? R[0] / length : 0;
    n[1] = length > 0 ? R[3] / length : 0;
    return length > 0;
}

/* e = (g - t) . n with the heading n = (cos h, sin h): a parabola in x and y, highest at the position. How n turns
 * with the angles is left out, as in Autoware. */
static void regularize(const struct ndt_search *search, const double p[6], struct ndt_eval *eval)
{
    const double *origin_m = search->aligner->map->origin_m, *position_m = search->params->gnss_position_m;
    double n[2];
    if (!ndt_search_heading(search, p, n))
        return;
    const double e_m = (position_m[0] - origin_m[0] - p[0]) * n[0] + (position_m[1] - origin_m[1] - p[1]) * n[1];
    const double weight = search->params->gnss_scale * eval->pairs;
    eval->score -= weight * e_m * e_m;
    eval->gradient[0] += 2 * weight * e_m * n[0];
    eval->gradient[1] += 2 * weight * e_m * n[1];
    eval->hessian[0] -= 2 * weight * n[0] * n[0];
    eval->hessian[1] -= 2 * weight * n[0] * n[1];
    eval->hessian[6] -= 2 * weight * n[1] * n[1];
}

/* A running mean. What stands out (the thread lost its core) counts for little: it says nothing about the next
 * time. */
static void remember(double *cost_us, double seen_us)
{
    *cost_us = *cost_us > 0 ? *cost_us + 0.2 * (fmin(seen_us, 3 * *cost_us) - *cost_us) : seen_us;
}

void ndt_aligner_set_costs(struct ndt_aligner *aligner, const struct ndt_align_costs *costs)
{
    aligner->costs = *costs;
    aligner->cost_points = 0;
    memset(aligner->level_us, 0, sizeof(aligner->level_us));
    aligner->judge_us = 0;
}

void ndt_aligner_costs(const struct ndt_aligner *aligner, struct ndt_align_costs *out)
{
    *out = (struct ndt_align_costs){.judge = {.fixed_us = aligner->judge_us}};
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->levels[i].fixed_us = aligner->level_us[i];
}

/* What was seen with the scans before holds for this one in proportion; nothing was: what is expected. */
static void expect(double *seen_us, const struct ndt_cost *cost, size_t before, size_t points)
{
    const double expected_us = cost->fixed_us + cost->point_us * (double)points;
    const double expected_before_us = cost->fixed_us + cost->point_us * (double)before;
    if (!(*seen_us > 0))
        *seen_us = expected_us;
    else if (before > 0 && expected_us > 0 && expected_before_us > 0)
        *seen_us *= expected_us / expected_before_us;
}

static void expect_costs(struct ndt_aligner *aligner, size_t points)
{
    const size_t before = aligner->cost_points;
    aligner->cost_points = points;
    if (before == points)
        return;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        expect(&aligner->level_us[i], &aligner->costs.levels[i], before, points);
    expect(&aligner->judge_us, &aligner->costs.judge, before, points);
}

enum ndt_status ndt_search_eval(struct ndt_search *search, const double p[6], struct ndt_eval *out,
                                struct ndt_error *err)
{
    struct ndt_backend *backend = search->aligner->backend;
    const double start_us = ndt_clock_us();
    memcpy(search->request.p, p, sizeof(search->request.p));
    enum ndt_status status = backend->ops->eval(backend, &search->request, out, err);
    if (status == NDT_OK && search->params->has_gnss)
        regularize(search, p, out);
    const double eval_us = ndt_clock_us() - start_us;
    search->slowest_eval_us = fmax(search->slowest_eval_us, eval_us);
    remember(&search->aligner->level_us[search->request.level], eval_us);
    search->unbilled_us += eval_us;
    search->unbilled_evaluations++;
    search->evaluations++;
    return status;
}

/* The next evaluation may be the first on its level: then what it cost for the scans before counts. */
int ndt_search_late(const struct ndt_search *search)
{
    const struct ndt_aligner *aligner = search->aligner;
    if (search->params->deadline_s <= 0)
        return 0;
    const double passed_us = ndt_clock_us() - search->start_us;
    const double next_us = fmax(1.5 * search->slowest_eval_us, 1.5 * aligner->level_us[search->request.level]);
    return passed_us + next_us + 1.5 * aligner->judge_us > search->params->deadline_s * 1e6;
}

static void read_counters(const struct ndt_search *search, struct ndt_backend_counters *counters)
{
    memset(counters, 0, sizeof(*counters));
    if (search->aligner->backend->ops->counters)
        search->aligner->backend->ops->counters(search->aligner->backend, counters);
}

struct ndt_iteration *ndt_search_row(struct ndt_search *search)
{
    struct ndt_aligner *aligner = search->aligner;
    if (aligner->trace_count < NDT_MAX_ITERATIONS)
        aligner->trace_count++;
    struct ndt_iteration *row = &aligner->trace[aligner->trace_count - 1];
    struct ndt_eval_request *start = &aligner->starts[aligner->trace_count - 1];
    *start = search->request;
    memcpy(start->p, search->p, sizeof(start->p));
    double norm = 0;
    for (int i = 0; i < 6; i++)
        norm += search->eval.gradient[i] * search->eval.gradient[i];
    *row = (struct ndt_iteration){
        .iteration = (int32_t)aligner->trace_count - 1,
        .level = search->request.level,
        .score = search->eval.score,
        .gradient_norm = sqrt(norm),
        .matched = search->eval.matched,
        .pairs = search->eval.pairs,
    };
    return row;
}

void ndt_search_close_row(struct ndt_search *search, struct ndt_iteration *row, const double step[6])
{
    struct ndt_backend_counters now;
    read_counters(search, &now);
    row->step_m = sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]);
    row->step_rad = sqrt(step[3] * step[3] + step[4] * step[4] + step[5] * step[5]);
    row->evaluations = search->unbilled_evaluations;
    row->eval_us = search->unbilled_us;
    row->kernel_us = now.kernel_us - search->billed.kernel_us;
    row->h2d_bytes = now.h2d_bytes - search->billed.h2d_bytes;
    row->d2h_bytes = now.d2h_bytes - search->billed.d2h_bytes;
    row->launches = now.launches - search->billed.launches;
    row->synchronisations = now.synchronisations - search->billed.synchronisations;
    row->allocations = now.allocations - search->billed.allocations;
    row->T_map_sensor = ndt_search_pose(search, search->p);
    search->billed = now;
    search->unbilled_evaluations = 0;
    search->unbilled_us = 0;
}

static enum ndt_status find_levels(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_align_params *params = search->params;
    if (params->level_count < 1 || params->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu levels; 1 to %d are possible", params->level_count,
                        NDT_MAX_LEVELS);
    for (size_t i = 0; i < params->level_count; i++) {
        search->levels[i] = ndt_map_find_level(search->aligner->map, params->levels[i].leaf_m);
        if (search->levels[i] < 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no level of %g m", params->levels[i].leaf_m);
    }
    return NDT_OK;
}

/* Symmetric square root of the points' inertia about the sensor and its inverse; at least half a metre. */
static void set_levers(struct ndt_aligner *aligner, const double second_m2[6])
{
    double lambda[3], V[9], inertia[6];
    const double trace = second_m2[0] + second_m2[3] + second_m2[5];
    for (int i = 0; i < 6; i++)
        inertia[i] = (i == 0 || i == 3 || i == 5 ? trace : 0) - second_m2[i];
    ndt_eigen_symmetric(3, inertia, lambda, V);
    memset(aligner->lever_m, 0, sizeof(aligner->lever_m));
    memset(aligner->per_lever, 0, sizeof(aligner->per_lever));
    for (int k = 0; k < 3; k++) {
        const double arm_m = sqrt(fmax(lambda[k], 0.25));
        for (int i = 0; i < 9; i++) {
            const double vv = V[i / 3 * 3 + k] * V[i % 3 * 3 + k];
            aligner->lever_m[i] += vv * arm_m;
            aligner->per_lever[i] += vv / arm_m;
        }
    }
}

/* Turns the scan by R0 into the aligner's own cloud and hands that to the backend. */
static enum ndt_status load_scan(struct ndt_search *search, const struct ndt_cloud *scan, struct ndt_error *err)
{
    struct ndt_aligner *aligner = search->aligner;
    struct ndt_cloud *to = &aligner->turned;
    const double *R = search->R0;
    double second_m2[6] = {0}, finite = 0;
    enum ndt_status status = ndt_cloud_reserve(to, scan->count, 0, err);
    if (status != NDT_OK)
        return status;
    to->count = scan->count;
    for (size_t i = 0; i < scan->count; i++) {
        const double x = scan->x_m[i], y = scan->y_m[i], z = scan->z_m[i];
        const double moved[3] = {R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z,
                                 R[6] * x + R[7] * y + R[8] * z};
        to->x_m[i] = (float)moved[0];
        to->y_m[i] = (float)moved[1];
        to->z_m[i] = (float)moved[2];
        if (!isfinite(x + y + z))
            continue;
        finite++;
        for (int r = 0, at = 0; r < 3; r++)
            for (int c = r; c < 3; c++)
                second_m2[at++] += moved[r] * moved[c];
    }
    for (int i = 0; finite > 0 && i < 6; i++)
        second_m2[i] /= finite;
    set_levers(aligner, second_m2);
    return aligner->backend->ops->set_scan(aligner->backend, to, err);
}

static void start_search(struct ndt_search *search, const struct ndt_pose *guess)
{
    const struct ndt_map *map = search->aligner->map;
    struct ndt_pose local = *guess;
    for (int i = 0; i < 3; i++)
        local.t_m[i] -= map->origin_m[i];
    if (search->params->variant == NDT_AUTOWARE) {
        memcpy(search->R0, (double[9]){1, 0, 0, 0, 1, 0, 0, 0, 1}, sizeof(search->R0));
        ndt_pose_to_euler(&local, search->p);
    } else {
        ndt_pose_rotation(&local, search->R0);
        memcpy(search->p, local.t_m, sizeof(local.t_m));
        memset(search->p + 3, 0, 3 * sizeof(double));
    }
}

static void refuse(struct ndt_align_result *out, enum ndt_outcome outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

enum ndt_status ndt_align(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                          const struct ndt_cloud *scan, const struct ndt_pose *T_map_guess,
                          struct ndt_align_result *out, struct ndt_error *err)
{
    struct ndt_search search = {.aligner = aligner,
                                .params = params,
                                .start_us = ndt_clock_us(),
                                .iteration_limit = params->max_iterations};
    enum ndt_stop stop;
    memset(out, 0, sizeof(*out));
    out->T_map_sensor = *T_map_guess;
    aligner->trace_count = 0;
    if (!aligner->map)
        return refuse(out, NDT_NO_MAP, "there is no map"), NDT_OK;
    if (scan->count == 0)
        return refuse(out, NDT_REJECTED, "the scan has no points"), NDT_OK;
    if (!ndt_pose_is_finite(T_map_guess))
        return refuse(out, NDT_NO_GUESS, "the guess is not finite"), NDT_OK;
    enum ndt_status status = find_levels(&search, err);
    if (status != NDT_OK)
        return status;
    expect_costs(aligner, scan->count);
    start_search(&search, T_map_guess);
    memcpy(search.guess, search.p, sizeof(search.guess));
    status = load_scan(&search, scan, err);
    out->upload_us = ndt_clock_us() - search.start_us;
    read_counters(&search, &search.billed);
    if (status == NDT_OK)
        status = params->variant == NDT_AUTOWARE ? ndt_newton_autoware(&search, &stop, err)
                                                 : ndt_newton_robust(&search, &stop, err);
    if (status != NDT_OK)
        return status;
    const double judge_start_us = ndt_clock_us();
    ndt_judge(&search, stop, out);
    const double end_us = ndt_clock_us();
    remember(&aligner->judge_us, end_us - judge_start_us);
    out->align_us = end_us - search.start_us;
    return NDT_OK;
}

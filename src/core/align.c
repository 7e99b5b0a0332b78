#include "align_state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"
#include "ndt/preprocess_math.h"
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
        .coarse_stop_m = 0.05,
        .coarse_stop_rad = 0.2 * DEG,
        .coarse_stop_gain = 1e-4,
        .fine_stop_m = 0.005,
        .fine_stop_rad = 0.05 * DEG,
        .fine_stop_gain = 1e-6,
        .max_line_search_steps = 2,
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
    ndt_batch_free(aligner->batch);
    free(aligner);
}

static void use_map(struct ndt_aligner *aligner, struct ndt_map *map)
{
    ndt_map_retain(map);
    ndt_map_release(aligner->map);
    aligner->map = map;
}

enum ndt_status ndt_aligner_set_map(struct ndt_aligner *aligner, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = aligner->backend->ops->set_map(aligner->backend, map, err);
    if (status == NDT_OK)
        use_map(aligner, map);
    return status;
}

enum ndt_status ndt_aligner_set_map_async(struct ndt_aligner *aligner, struct ndt_map *map, int *taken,
                                          struct ndt_error *err)
{
    struct ndt_backend *backend = aligner->backend;
    *taken = 0;
    const int at_once = !backend->ops->set_map_async || !aligner->map;
    enum ndt_status status =
        at_once ? backend->ops->set_map(backend, map, err) : backend->ops->set_map_async(backend, map, taken, err);
    *taken = status == NDT_OK && (at_once || *taken);
    if (*taken)
        use_map(aligner, map);
    return status;
}

const struct ndt_iteration *ndt_aligner_trace(const struct ndt_aligner *aligner, size_t *count)
{
    *count = aligner->last.count;
    return aligner->last.trace;
}

enum ndt_status ndt_aligner_dump(struct ndt_aligner *aligner, size_t iteration, FILE *file, struct ndt_error *err)
{
    struct ndt_backend *backend = aligner->backend;
    struct ndt_eval_request request;
    if (iteration >= aligner->last.count)
        return ndt_fail(err, NDT_ERR_LIMIT, "iteration %zu of an alignment that had %zu", iteration,
                        aligner->last.count);
    if (!backend->ops->dump)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s keeps nothing between points and sums",
                        backend->ops->name);
    const struct ndt_newton_row *row = &aligner->last.rows[iteration];
    request.level = row->level;
    request.neighbours = (enum ndt_neighbours)row->neighbours;
    memcpy(request.p, row->p, sizeof(request.p));
    return backend->ops->dump(backend, &request, file, err);
}

static enum ndt_status find_levels(struct ndt_newton_rules *rules, const struct ndt_align_params *params,
                                   const struct ndt_map *map, struct ndt_error *err)
{
    if (params->level_count < 1 || params->level_count > NDT_MAX_LEVELS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%zu levels; 1 to %d are possible", params->level_count,
                        NDT_MAX_LEVELS);
    rules->level_count = (int32_t)params->level_count;
    for (size_t i = 0; i < params->level_count; i++) {
        rules->level[i] = ndt_map_find_level(map, params->levels[i].leaf_m);
        rules->neighbours[i] = (int32_t)params->levels[i].neighbours;
        if (rules->level[i] < 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the map has no level of %g m", params->levels[i].leaf_m);
    }
    return NDT_OK;
}

enum ndt_status ndt_rules_from(struct ndt_newton_rules *out, const struct ndt_align_params *params,
                               const struct ndt_map *map, struct ndt_error *err)
{
    *out = (struct ndt_newton_rules){
        .variant = (int32_t)params->variant,
        .max_iterations = params->max_iterations,
        .max_line_search_steps = params->max_line_search_steps,
        .step_limit_m = params->step_limit_m,
        .step_limit_rad = params->step_limit_rad,
        .eigenvalue_floor = params->eigenvalue_floor,
        .coarse = {params->coarse_stop_m, params->coarse_stop_rad, params->coarse_stop_gain},
        .fine = {params->fine_stop_m, params->fine_stop_rad, params->fine_stop_gain},
        .trans_epsilon = params->trans_epsilon,
        .step_size = params->step_size,
        .weak_eigenvalue_ratio = params->weak_eigenvalue_ratio,
        .has_gnss = params->has_gnss,
        .gnss_m = {params->gnss_position_m[0] - map->origin_m[0], params->gnss_position_m[1] - map->origin_m[1]},
        .gnss_scale = params->gnss_scale,
    };
    return find_levels(out, params, map, err);
}

void ndt_solve_place(struct ndt_newton *newton, enum ndt_variant variant, const struct ndt_pose *T_map_guess,
                     const double origin_m[3])
{
    struct ndt_pose local = *T_map_guess;
    for (int i = 0; i < 3; i++)
        local.t_m[i] -= origin_m[i];
    if (variant == NDT_AUTOWARE) {
        memcpy(newton->R0, (double[9]){1, 0, 0, 0, 1, 0, 0, 0, 1}, sizeof(newton->R0));
        ndt_pose_to_euler(&local, newton->guess);
    } else {
        ndt_pose_rotation(&local, newton->R0);
        memcpy(newton->guess, local.t_m, sizeof(local.t_m));
        memset(newton->guess + 3, 0, 3 * sizeof(double));
    }
}

/* Points first .. first + lanes - 1, one per lane, as ndt_moments_add does it; a point that is not finite adds
 * zeros. */
static inline void add_moments(double sum[7][NDT_MOMENT_LANES], const struct ndt_cloud *scan, size_t first,
                               int lanes)
{
    for (int l = 0; l < lanes; l++) {
        const double a = scan->x_m[first + (size_t)l], b = scan->y_m[first + (size_t)l];
        const double c = scan->z_m[first + (size_t)l];
        const int finite = fabs(a + b + c) <= DBL_MAX;
        const double x = finite ? a : 0, y = finite ? b : 0, z = finite ? c : 0;
        sum[0][l] += x * x;
        sum[1][l] += x * y;
        sum[2][l] += x * z;
        sum[3][l] += y * y;
        sum[4][l] += y * z;
        sum[5][l] += z * z;
        sum[6][l] += finite ? 1 : 0;
    }
}

void ndt_second_moments(const struct ndt_cloud *scan, double out_m2[6])
{
    double sum[7][NDT_MOMENT_LANES] = {{0}}, total[7] = {0};
    const size_t whole = scan->count / NDT_MOMENT_LANES * NDT_MOMENT_LANES;
    for (size_t i = 0; i < whole; i += NDT_MOMENT_LANES)
        add_moments(sum, scan, i, NDT_MOMENT_LANES);
    add_moments(sum, scan, whole, (int)(scan->count - whole));
    for (int lane = 0; lane < NDT_MOMENT_LANES; lane++)
        for (int i = 0; i < 7; i++)
            total[i] += sum[i][lane];
    for (int i = 0; i < 6; i++)
        out_m2[i] = total[6] > 0 ? total[i] / total[6] : 0;
}

/* Rows of the last alignment as they are told: poses in the map instead of p. */
static void write_trace(const struct ndt_solve *solve)
{
    struct ndt_newton_rows *last = &solve->aligner->last;
    last->count =
        (size_t)(solve->newton.row_count < solve->row_capacity ? solve->newton.row_count : solve->row_capacity);
    for (size_t i = 0; i < last->count; i++) {
        const struct ndt_newton_row *row = &last->rows[i];
        struct ndt_iteration *out = &last->trace[i];
        double p[6], norm = 0;
        for (int k = 0; k < 6; k++) {
            p[k] = row->p[k] + row->step[k];
            norm += row->eval.gradient[k] * row->eval.gradient[k];
        }
        out->iteration = (int32_t)i;
        out->level = row->level;
        out->evaluations = row->evaluations;
        out->score = row->eval.score;
        out->gradient_norm = sqrt(norm);
        memcpy(out->hessian, row->eval.hessian, sizeof(out->hessian));
        out->step_m = sqrt(row->step[0] * row->step[0] + row->step[1] * row->step[1] + row->step[2] * row->step[2]);
        out->step_rad =
            sqrt(row->step[3] * row->step[3] + row->step[4] * row->step[4] + row->step[5] * row->step[5]);
        out->matched = row->eval.matched;
        out->pairs = row->eval.pairs;
        out->T_map_sensor = ndt_solve_pose(solve, p);
    }
}

void ndt_solve_refuse(struct ndt_align_result *out, enum ndt_outcome outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

int ndt_solve_can_begin(const struct ndt_map *map, size_t points, const struct ndt_pose *T_map_guess,
                        struct ndt_align_result *out)
{
    memset(out, 0, sizeof(*out));
    out->T_map_sensor = *T_map_guess;
    if (!map)
        ndt_solve_refuse(out, NDT_NO_MAP, "there is no map");
    else if (points == 0)
        ndt_solve_refuse(out, NDT_REJECTED, "the scan has no points");
    else if (!ndt_pose_is_finite(T_map_guess))
        ndt_solve_refuse(out, NDT_NO_GUESS, "the guess is not finite");
    return out->reason[0] == '\0';
}

static enum ndt_status solve(struct ndt_solve *solve, struct ndt_align_result *out, struct ndt_error *err)
{
    enum ndt_status status = ndt_solve_on_device(solve, &out->upload_us, err);
    if (status != NDT_ERR_UNSUPPORTED)
        return status;
    status = ndt_solve_load(solve, err);
    out->upload_us = ndt_clock_us() - solve->start_us;
    return status == NDT_OK ? ndt_solve_run(solve, err) : status;
}

/* From newton's end to the result. */
static void conclude(struct ndt_solve *one, struct ndt_align_result *out)
{
    const double assess_start_us = ndt_clock_us();
    write_trace(one);
    out->points = one->points;
    if (one->points == 0)
        ndt_solve_refuse(out, NDT_REJECTED, "the scan has no points");
    else
        ndt_assess_result(one, out);
    const double end_us = ndt_clock_us();
    ndt_remember_cost(&one->aligner->assess_us, end_us - assess_start_us);
    out->align_us = end_us - one->start_us;
}

enum ndt_status ndt_align(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                          const struct ndt_cloud *scan, const struct ndt_pose *T_map_guess,
                          struct ndt_align_result *out, struct ndt_error *err)
{
    struct ndt_newton_rules rules;
    double second_m2[6];
    struct ndt_solve one = {.aligner = aligner,
                            .params = params,
                            .rules = &rules,
                            .scan = scan,
                            .points = scan->count,
                            .start_us = ndt_clock_us()};
    aligner->last.count = 0;
    if (!ndt_solve_can_begin(aligner->map, scan->count, T_map_guess, out))
        return NDT_OK;
    enum ndt_status status = ndt_rules_from(&rules, params, aligner->map, err);
    if (status != NDT_OK)
        return status;
    ndt_expect_costs(aligner, scan->count);
    ndt_solve_place(&one.newton, params->variant, T_map_guess, aligner->map->origin_m);
    ndt_second_moments(scan, second_m2);
    ndt_newton_set_rotation_scale(&one.newton, second_m2);
    status = solve(&one, out, err);
    if (status == NDT_OK)
        conclude(&one, out);
    return status;
}

enum ndt_status ndt_align_raw(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                              const struct ndt_preprocess_plan *plan, const struct ndt_cloud *raw,
                              const struct ndt_pose *T_map_guess, struct ndt_align_result *out,
                              struct ndt_error *err)
{
    struct ndt_newton_rules rules;
    struct ndt_solve one = {.aligner = aligner,
                            .params = params,
                            .rules = &rules,
                            .preprocess = plan,
                            .raw = raw,
                            .start_us = ndt_clock_us()};
    aligner->last.count = 0;
    if (!ndt_solve_can_begin(aligner->map, raw ? raw->count : 1, T_map_guess, out))
        return NDT_OK;
    enum ndt_status status = ndt_rules_from(&rules, params, aligner->map, err);
    if (status != NDT_OK)
        return status;
    ndt_solve_place(&one.newton, params->variant, T_map_guess, aligner->map->origin_m);
    status = ndt_solve_on_device(&one, &out->upload_us, err);
    if (status == NDT_OK)
        conclude(&one, out);
    return status;
}

/* The aligner. */
#include "align_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"

enum ndt_status ndt_aligner_create(struct ndt_aligner **out, struct ndt_backend *backend, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for an aligner");
    ndt_cloud_init(&(*out)->turned);
    (*out)->of_batch = malloc(sizeof(*(*out)->of_batch));
    if (!(*out)->of_batch) {
        ndt_aligner_destroy(*out);
        *out = NULL;
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for an aligner");
    }
    (*out)->backend = backend;
    ndt_aligner_init_traces(*out);
    return NDT_OK;
}

void ndt_aligner_destroy(struct ndt_aligner *aligner)
{
    if (!aligner)
        return;
    ndt_map_release(aligner->map);
    ndt_cloud_free(&aligner->turned);
    free(aligner->batch.items);
    free(aligner->batch.numbers);
    free(aligner->batch.scans);
    free(aligner->batch.moments_m2);
    for (size_t i = 0; i < aligner->lane_count; i++)
        ndt_cloud_free(&aligner->lanes[i].aligner.turned);
    free(aligner->lanes);
    free(aligner->poses);
    free(aligner->of_batch);
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
    *count = aligner->last->count;
    return aligner->last->trace;
}

enum ndt_status ndt_aligner_dump(struct ndt_aligner *aligner, size_t iteration, FILE *file, struct ndt_error *err)
{
    struct ndt_backend *backend = aligner->backend;
    struct ndt_eval_request request = {.level = 0};
    if (iteration >= aligner->last->count)
        return ndt_fail(err, NDT_ERR_LIMIT, "iteration %zu does not exist: the alignment had %zu", iteration,
                        aligner->last->count);
    if (!backend->ops->dump)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "backend %s keeps no intermediate values; cuda does, with cuda.pipeline staged",
                        backend->ops->name);
    const struct ndt_newton_row *row = &aligner->last->rows[iteration];
    request.level = row->level;
    request.neighbours = (enum ndt_neighbours)row->neighbours;
    memcpy(request.p, row->p, sizeof(request.p));
    return backend->ops->dump(backend, &request, file, err);
}

/* The rows of the solver as rows of the trace, with poses in the map. */
static void write_trace(const struct ndt_solve *solve)
{
    struct ndt_newton_rows *last = solve->aligner->last;
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

/* Converts the end of the solve into the result. */
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

enum ndt_status ndt_align_since(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                const struct ndt_align_item *item, double start_us, struct ndt_align_result *out,
                                struct ndt_error *err)
{
    const struct ndt_cloud *scan = item->scan;
    struct ndt_newton_rules rules;
    double second_m2[6];
    struct ndt_solve one = {.aligner = aligner,
                            .params = params,
                            .rules = &rules,
                            .prior = item->prior,
                            .scan = scan,
                            .points = scan->count,
                            .start_us = start_us};
    aligner->last->count = 0;
    if (!ndt_solve_can_begin(aligner->map, scan->count, &item->T_map_guess, out))
        return NDT_OK;
    enum ndt_status status = ndt_rules_from(&rules, params, aligner->map, err);
    if (status != NDT_OK)
        return status;
    ndt_expect_costs(aligner, scan->count);
    ndt_solve_set_guess(&one.newton, params->variant, &item->T_map_guess, aligner->map->origin_m);
    status = ndt_solve_set_prior(&one.newton, params, one.prior, aligner->map->origin_m, err);
    if (status != NDT_OK)
        return status;
    ndt_second_moments(scan, second_m2);
    ndt_newton_set_rotation_scale(&one.newton, second_m2);
    status = ndt_solve_on_device(&one, &out->upload_us, err);
    if (status == NDT_ERR_UNSUPPORTED)
        status = ndt_solve_on_host(&one, &out->upload_us, err);
    if (status == NDT_OK)
        conclude(&one, out);
    return status;
}

enum ndt_status ndt_align(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                          const struct ndt_cloud *scan, const struct ndt_pose *T_map_guess,
                          struct ndt_align_result *out, struct ndt_error *err)
{
    const struct ndt_align_item item = {.scan = scan, .T_map_guess = *T_map_guess, .prior = params->prior};
    return ndt_align_since(aligner, params, &item, ndt_clock_us(), out, err);
}

/* `one` has params, source, plan and raw. */
static enum ndt_status align_on_device(struct ndt_solve *one, size_t raw_points, const struct ndt_pose *T_map_guess,
                                       struct ndt_align_result *out, struct ndt_error *err)
{
    struct ndt_aligner *aligner = one->aligner;
    struct ndt_newton_rules rules;
    one->start_us = ndt_clock_us();
    one->rules = &rules;
    one->prior = one->params->prior;
    aligner->last->count = 0;
    if (!ndt_solve_can_begin(aligner->map, raw_points, T_map_guess, out))
        return NDT_OK;
    enum ndt_status status = ndt_rules_from(&rules, one->params, aligner->map, err);
    if (status != NDT_OK)
        return status;
    ndt_solve_set_guess(&one->newton, one->params->variant, T_map_guess, aligner->map->origin_m);
    status = ndt_solve_set_prior(&one->newton, one->params, one->prior, aligner->map->origin_m, err);
    if (status == NDT_OK)
        status = ndt_solve_on_device(one, &out->upload_us, err);
    if (status == NDT_OK)
        conclude(one, out);
    return status;
}

enum ndt_status ndt_align_raw(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                              const struct ndt_preprocess_plan *plan, const struct ndt_cloud *raw,
                              const struct ndt_pose *T_map_guess, struct ndt_align_result *out,
                              struct ndt_error *err)
{
    struct ndt_solve one = {.aligner = aligner, .params = params, .source = NDT_SCAN_RAW, .plan = plan, .raw = raw};
    return align_on_device(&one, raw->count, T_map_guess, out, err);
}

enum ndt_status ndt_align_raw_again(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                    const struct ndt_preprocess_plan *plan, const struct ndt_pose *T_map_guess,
                                    struct ndt_align_result *out, struct ndt_error *err)
{
    struct ndt_solve one = {.aligner = aligner, .params = params, .source = NDT_SCAN_RAW_AGAIN, .plan = plan};
    return align_on_device(&one, 1, T_map_guess, out, err);
}

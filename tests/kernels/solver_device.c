#include "solver_device.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparison ---- */

static const double POSE_M = SOLVE_POSE_M, POSE_RAD = SOLVE_POSE_RAD, SUM_PART = 1e-5;
/* Tolerance of the terms that prior and GNSS add to a sum: some fifty operations in double, each wrong by 2^-53 of
 * its terms at most. A pair scores 6.3 at most (4 m), and prior and GNSS only lower the score: together the terms
 * are within 13 per pair and the score itself. */
static const double ADDED_PART = 1e-13;
/* Sums in float against double: most that a point, matched by the one and not by the other, changes, and rounding.
 */
static const double FLOAT_PART = 2e-3, FLOAT_POINTS = 1.0;
/* Numbers of a struct ndt_information, all double. */
enum { INFORMATION = sizeof(struct ndt_information) / sizeof(double) };

#define SAY(...) (snprintf(out->text, sizeof(out->text), __VA_ARGS__), 0)

static int same_counts(const struct ndt_newton *is, const struct ndt_newton *wanted, struct solve_difference *out)
{
    const struct {
        const char *name;
        int32_t is, wanted;
    } counts[] = {
        {"stop", is->stop, wanted->stop},
        {"evaluations", is->evaluations, wanted->evaluations},
        {"row_count", is->row_count, wanted->row_count},
        {"rows_closed", is->rows_closed, wanted->rows_closed},
        {"oscillation", is->oscillation, wanted->oscillation},
        {"weak.count", is->weak.count, wanted->weak.count},
        {"wants_eval", is->wants_eval, wanted->wants_eval},
        {"level", is->level, wanted->level},
        {"neighbours", is->neighbours, wanted->neighbours},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].is != counts[i].wanted)
            return SAY("%s is %d, expected %d", counts[i].name, counts[i].is, counts[i].wanted);
    return 1;
}

static int same_numbers(const char *name, const double *is, const double *wanted, int count,
                        struct solve_difference *out)
{
    for (int i = 0; i < count; i++)
        if (memcmp(&is[i], &wanted[i], sizeof(double)) != 0)
            return SAY("%s[%d] is %.17g, expected %.17g", name, i, is[i], wanted[i]);
    return 1;
}

static int prefix(int good, struct solve_difference *out, int row)
{
    char text[sizeof(out->text)];
    if (good)
        return 1;
    memcpy(text, out->text, sizeof(text));
    return SAY("row %d: %.200s", row, text);
}

static int kept_rows(const struct solve_result *is, int rows)
{
    return is->newton.row_count < rows ? is->newton.row_count : rows;
}

static int same_row_counts(const struct ndt_newton_row *is, const struct ndt_newton_row *wanted,
                           struct solve_difference *out)
{
    if (is->level != wanted->level || is->neighbours != wanted->neighbours)
        return SAY("level %d with neighbours %d, expected %d with %d", is->level, is->neighbours, wanted->level,
                   wanted->neighbours);
    if (is->evaluations != wanted->evaluations)
        return SAY("evaluations is %d, expected %d", is->evaluations, wanted->evaluations);
    return isfinite(is->took_us) && is->took_us >= 0 ? 1 : SAY("it took %g us", is->took_us);
}

static int same_row(const struct ndt_newton_row *is, const struct ndt_newton_row *wanted,
                    struct solve_difference *out)
{
    return same_row_counts(is, wanted, out) && same_numbers("p", is->p, wanted->p, 6, out) &&
           same_numbers("eval", &is->eval.score, &wanted->eval.score, 31, out) &&
           same_numbers("step", is->step, wanted->step, 6, out);
}

int solve_same_bits(const struct solve_result *is, const struct solve_result *wanted, int rows,
                    struct solve_difference *out)
{
    const struct ndt_newton *n = &is->newton, *w = &wanted->newton;
    out->text[0] = '\0';
    if (!same_counts(n, w, out))
        return 0;
    for (int i = 0; i < kept_rows(is, rows); i++)
        if (!prefix(same_row(&is->rows[i], &wanted->rows[i], out), out, i))
            return 0;
    return same_numbers("p", n->p, w->p, 6, out) && same_numbers("eval", &n->eval.score, &w->eval.score, 31, out) &&
           same_numbers("weak axes", n->weak.axes[0], w->weak.axes[0], 6 * w->weak.count, out) &&
           same_numbers("coverage", &is->coverage, &wanted->coverage, 1, out) &&
           same_numbers("information", &is->information.eval.score, &wanted->information.eval.score, INFORMATION,
                        out);
}

static int close6(const char *name, const double is[6], const double wanted[6], struct solve_difference *out)
{
    for (int i = 0; i < 6; i++)
        if (!(fabs(is[i] - wanted[i]) <= (i < 3 ? POSE_M : POSE_RAD)))
            return SAY("%s[%d] is %.12g, expected %.12g", name, i, is[i], wanted[i]);
    return 1;
}

static int close_one(const char *name, double is, double wanted, double limit, struct solve_difference *out)
{
    return fabs(is - wanted) <= limit || (isnan(is) && isnan(wanted))
               ? 1
               : SAY("%s is %.12g, expected %.12g, allowed %.3g", name, is, wanted, limit);
}

/* |H| times the tolerance of the pose, and a part of the score per unit of p: 30 m of rotation scale. */
static void gradient_limits(const struct ndt_eval *at, double limit[6])
{
    for (int i = 0; i < 6; i++)
        limit[i] = SUM_PART * fabs(at->score) * (i < 3 ? 1 : 30) + 1e-9;
    for (int i = 0, k = 0; i < 6; i++)
        for (int j = i; j < 6; j++, k++) {
            limit[i] += fabs(at->hessian[k]) * (j < 3 ? POSE_M : POSE_RAD);
            if (j > i)
                limit[j] += fabs(at->hessian[k]) * (i < 3 ? POSE_M : POSE_RAD);
        }
}

static int close_sums(const struct ndt_eval *is, const struct ndt_eval *wanted, struct solve_difference *out)
{
    double limit[6], shift = SUM_PART * fabs(wanted->score) + 1e-9;
    gradient_limits(wanted, limit);
    for (int i = 0; i < 6; i++)
        shift += fabs(wanted->gradient[i]) * (i < 3 ? POSE_M : POSE_RAD);
    if (!close_one("score", is->score, wanted->score, shift, out) ||
        !close_one("nearest_score", is->nearest_score, wanted->nearest_score, shift, out) ||
        !close_one("matched", is->matched, wanted->matched, 0, out) ||
        !close_one("pairs", is->pairs, wanted->pairs, 0, out))
        return 0;
    for (int i = 0; i < 6; i++)
        if (!close_one("gradient", is->gradient[i], wanted->gradient[i], limit[i], out))
            return 0;
    return 1;
}

/* Whether two scores agree: at the same pose a device evaluates with the same bits, and only the terms added to its
 * sums may be rounded otherwise. */
static int same_score(const struct ndt_eval *is, const struct ndt_eval *wanted, struct solve_difference *out)
{
    return close_one("at the same pose score", is->score, wanted->score,
                     ADDED_PART * (fabs(wanted->score) + wanted->pairs), out);
}

static int close_row(const struct ndt_newton_row *is, const struct ndt_newton_row *wanted,
                     struct solve_difference *out)
{
    if (!same_row_counts(is, wanted, out) || !close6("p", is->p, wanted->p, out) ||
        !close6("step", is->step, wanted->step, out))
        return 0;
    return (memcmp(is->p, wanted->p, sizeof(is->p)) != 0 || same_score(&is->eval, &wanted->eval, out)) &&
           close_sums(&is->eval, &wanted->eval, out);
}

static int close_axes(const struct ndt_newton_weak *is, const struct ndt_newton_weak *wanted,
                      struct solve_difference *out)
{
    for (int k = 0; k < wanted->count; k++)
        for (int i = 0; i < 6; i++)
            if (!(fabs(is->axes[k][i] - wanted->axes[k][i]) < 1e-4))
                return SAY("weak axis %d is off by %.3g", k, is->axes[k][i] - wanted->axes[k][i]);
    return 1;
}

/* The largest time that counts, with a reserve. */
static const double TIME_S = 0.1;

int solve_information_close(const struct ndt_information *is, const struct ndt_information *wanted, double part,
                            struct solve_difference *out)
{
    double size[6], power = part;
    for (int i = 0, at = 0; i < 6; at += 6 - i, i++) /* the root of what the points say about this axis, at most */
        size[i] = sqrt(fabs(wanted->eval.hessian[at]) + fabs(wanted->information[0][at]) + wanted->eval.pairs);
    for (int i = 0; i < 6; i++)
        if (!close_one("time_gradient", is->time_gradient[i], wanted->time_gradient[i],
                       10 * part * TIME_S * size[i] * sqrt(wanted->eval.pairs), out))
            return 0;
    for (int k = 0; k < 3; k++, power *= TIME_S)
        for (int i = 0, at = 0; i < 6; i++)
            for (int j = i; j < 6; j++, at++)
                if (!close_one("information", is->information[k][at], wanted->information[k][at],
                               power * size[i] * size[j] + 1e-12, out))
                    return 0;
    return close_one("pairs of the information", is->eval.pairs, wanted->eval.pairs,
                     FLOAT_PART * wanted->eval.pairs + FLOAT_POINTS, out);
}

int solve_close(const struct solve_result *is, const struct solve_result *wanted, int rows,
                struct solve_difference *out)
{
    const struct ndt_newton *n = &is->newton, *w = &wanted->newton;
    out->text[0] = '\0';
    if (!same_counts(n, w, out))
        return 0;
    for (int i = 0; i < kept_rows(is, rows); i++)
        if (!prefix(close_row(&is->rows[i], &wanted->rows[i], out), out, i))
            return 0;
    return close6("p", n->p, w->p, out) && close_sums(&n->eval, &w->eval, out) &&
           close_axes(&n->weak, &w->weak, out) && close_one("coverage", is->coverage, wanted->coverage, 0, out) &&
           solve_information_close(&is->information, &wanted->information, 1e-3, out);
}

int solve_sums_close(const struct ndt_eval *is, const struct ndt_eval *wanted, struct solve_difference *out)
{
    const double limit = FLOAT_PART * fabs(wanted->score) + FLOAT_POINTS;
    double diagonal = 0;
    out->text[0] = '\0';
    if (!close_one("score", is->score, wanted->score, limit, out) ||
        !close_one("nearest_score", is->nearest_score, wanted->nearest_score, limit, out) ||
        !close_one("matched", is->matched, wanted->matched, FLOAT_PART * wanted->matched + FLOAT_POINTS, out) ||
        !close_one("pairs", is->pairs, wanted->pairs, FLOAT_PART * wanted->pairs + FLOAT_POINTS, out))
        return 0;
    for (int i = 0, k = 0; i < 6; k += 6 - i, i++) {
        diagonal = fabs(wanted->hessian[k]);
        const double size = sqrt(diagonal * (fabs(wanted->score) + 1));
        if (!close_one("gradient", is->gradient[i], wanted->gradient[i], 0.02 * size + 0.05 * fabs(limit), out))
            return 0;
    }
    return 1;
}

static int finite6(const char *name, const double v[6], struct solve_difference *out)
{
    for (int i = 0; i < 6; i++)
        if (!isfinite(v[i]))
            return SAY("%s[%d] is %g", name, i, v[i]);
    return 1;
}

/* Whether a result is valid: finished, finite, with all rows closed. */
static int is_sound(const struct solve_result *is, const struct ndt_newton *start, int rows,
                    struct solve_difference *out)
{
    const struct ndt_newton *n = &is->newton;
    const size_t given = offsetof(struct ndt_newton, wants_eval);
    out->text[0] = '\0';
    if (memcmp(n, start, given) != 0)
        return SAY("guess, R0 or rotation scale changed");
    if (n->wants_eval != 0)
        return SAY("it is not done: wants_eval is %d", n->wants_eval);
    if (n->stop < NDT_STOP_CONVERGED || n->stop > NDT_STOP_OFF_MAP)
        return SAY("stop is %d", n->stop);
    if (n->rows_closed != n->row_count || n->row_count < 0 || n->evaluations < n->row_count)
        return SAY("%d rows, %d closed, %d evaluations", n->row_count, n->rows_closed, n->evaluations);
    if (!(is->coverage >= 0 && is->coverage <= 1))
        return SAY("coverage is %g", is->coverage);
    for (int i = 0; i < kept_rows(is, rows); i++)
        if (!prefix(finite6("p", is->rows[i].p, out), out, i))
            return 0;
    return finite6("p", n->p, out);
}

/* ---- the device ---- */

enum { GUARD = 0xa5 };

static enum ndt_status open_backend(struct ndt_backend **out, const struct ndt_backend_ops *ops,
                                    const char *pipeline, struct ndt_map *map, struct ndt_error *err)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    config.threads = 1;
    config.max_points = SOLVE_MAX_POINTS;
    enum ndt_status status = ops->open(out, &config, err);
    if (status != NDT_OK)
        *out = NULL;
    return status == NDT_OK && map ? ops->set_map(*out, map, err) : status;
}

enum ndt_status solve_plan_open(struct solve_plan *out, const struct ndt_backend_ops *ops, const char *pipeline,
                                struct ndt_map *map, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->ops = ops;
    out->pipeline = pipeline;
    snprintf(out->name, sizeof(out->name), "%s %s", ops->name, pipeline);
    enum ndt_status status = open_backend(&out->backend, ops, pipeline, map, err);
    if (status == NDT_OK && ops->solve_limit)
        out->limit = ops->solve_limit(out->backend);
    return status;
}

void solve_plan_close(struct solve_plan *plan)
{
    if (plan->backend)
        plan->ops->close(plan->backend);
    plan->backend = NULL;
}

static int has_pipeline(const struct ndt_backend_ops *ops, const char *name)
{
    for (const char *const *at = ops->pipelines; at && *at; at++)
        if (strcmp(*at, name) == 0)
            return 1;
    return 0;
}

enum ndt_status solve_host_open(struct solve_host *out, const struct ndt_backend_ops *ops, struct ndt_map *map,
                                struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    ndt_cloud_init(&out->turned);
    out->map = map;
    return open_backend(&out->backend, ops, has_pipeline(ops, "fused") ? "fused" : NULL, map, err);
}

void solve_host_close(struct solve_host *host)
{
    if (host->backend)
        host->backend->ops->close(host->backend);
    host->backend = NULL;
    solve_host_free(host);
}

enum ndt_status solve_set_scans(const struct solve_plan *plan, const struct solve_scene *scene, int only,
                                struct ndt_error *err)
{
    const struct ndt_cloud *scans[SOLVE_SCANS];
    if (only >= 0)
        return plan->ops->set_scans(plan->backend, (const struct ndt_cloud *const[]){&scene->scans[only]}, 1, err);
    for (int i = 0; i < SOLVE_SCANS; i++)
        scans[i] = &scene->scans[i];
    return plan->ops->set_scans(plan->backend, scans, SOLVE_SCANS, err);
}

/* Rows of all items one after the other, with a guard after each. */
struct room {
    struct ndt_solve_item *items;
    struct ndt_newton *starts;
    struct ndt_newton_row *rows;
};

static int room_make(struct room *room, const struct solve_call *call, int only)
{
    const size_t stride = SOLVE_ROWS + 1;
    room->items = calloc(call->count + 1, sizeof(*room->items));
    room->starts = calloc(call->count + 1, sizeof(*room->starts));
    room->rows = malloc((call->count + 1) * stride * sizeof(*room->rows));
    if (!room->items || !room->starts || !room->rows)
        return 0;
    memset(room->rows, GUARD, (call->count + 1) * stride * sizeof(*room->rows));
    memset(&room->items[call->count], GUARD, sizeof(room->items[0]));
    for (size_t i = 0; i < call->count; i++) {
        struct ndt_solve_item *item = &room->items[i];
        const struct solve_problem *problem = call->problems[i];
        item->scan = only >= 0 ? 0 : (uint32_t)problem->scan;
        item->row_capacity = call->rows ? call->rows[i] : SOLVE_ROWS;
        item->coverage = -1;
        item->row_count = -1;
        item->rows = item->row_capacity > 0 ? room->rows + i * stride : NULL;
        solve_start_problem(&item->newton, (enum ndt_variant)call->rules->variant, problem, call->scene);
        memset(&item->information, GUARD, sizeof(item->information));
        room->starts[i] = item->newton;
    }
    return 1;
}

static void room_free(struct room *room)
{
    free(room->items);
    free(room->starts);
    free(room->rows);
}

static int is_untouched(const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)from)[i] != GUARD)
            return 0;
    return 1;
}

static enum ndt_status take_results(const struct room *room, const struct solve_call *call,
                                    struct solve_result *out, struct ndt_error *err)
{
    struct solve_difference why;
    if (!is_untouched(&room->items[call->count], sizeof(room->items[0])))
        return ndt_fail(err, NDT_ERR_FORMAT, "an item beyond the last was written");
    for (size_t i = 0; i < call->count; i++) {
        const struct ndt_solve_item *item = &room->items[i];
        const struct ndt_newton_row *rows = room->rows + i * (SOLVE_ROWS + 1);
        const size_t capacity = (size_t)item->row_capacity;
        if (!is_untouched(rows + capacity, (SOLVE_ROWS + 1 - capacity) * sizeof(*rows)))
            return ndt_fail(err, NDT_ERR_FORMAT, "item %zu: rows beyond its %zu were written", i, capacity);
        if (item->row_count !=
            (item->newton.row_count < item->row_capacity ? item->newton.row_count : item->row_capacity))
            return ndt_fail(err, NDT_ERR_FORMAT, "item %zu: %d rows in %d places, of %d iterations", i,
                            item->row_count, item->row_capacity, item->newton.row_count);
        out[i].newton = item->newton;
        out[i].coverage = item->coverage;
        memset(&out[i].information, 0, sizeof(out[i].information));
        if (call->rules->wants_information)
            out[i].information = item->information;
        else if (!is_untouched(&item->information, sizeof(item->information)))
            return ndt_fail(err, NDT_ERR_FORMAT, "item %zu: information that is not wanted", i);
        memcpy(out[i].rows, rows, SOLVE_ROWS * sizeof(*rows));
        if (!is_sound(&out[i], &room->starts[i], (int)capacity, &why))
            return ndt_fail(err, NDT_ERR_FORMAT, "item %zu: %s", i, why.text);
    }
    return NDT_OK;
}

enum ndt_status solve_on_device(const struct solve_plan *plan, const struct solve_call *call, int only,
                                struct solve_result *out, struct ndt_error *err)
{
    struct room room;
    enum ndt_status status = NDT_ERR_MEMORY;
    if (room_make(&room, call, only))
        status = plan->ops->solve(plan->backend, call->rules, room.items, call->count, call->until_us, err);
    if (status == NDT_OK)
        status = take_results(&room, call, out, err);
    room_free(&room);
    return status;
}

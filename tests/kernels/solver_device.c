#include "solver_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

enum ndt_status solve_give_scans(const struct solve_plan *plan, const struct solve_scene *scene, int only,
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
        solve_start(&item->newton, (enum ndt_variant)call->rules->variant, &problem->guess, call->scene->map,
                    &call->scene->scans[problem->scan]);
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
        memcpy(out[i].rows, rows, SOLVE_ROWS * sizeof(*rows));
        if (!solve_is_sound(&out[i], &room->starts[i], (int)capacity, &why))
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

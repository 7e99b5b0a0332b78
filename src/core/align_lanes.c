/* Many alignments on a backend that evaluates: one item per lane, each on a thread of its own. A lane has an
 * aligner of its own and makes whole alignments of single items, so that a result does not depend on the lane that
 * made it. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align_state.h"
#include "ndt/clock.h"

/* A call of ndt_align_in_lanes; shared by the lanes. */
struct call {
    struct ndt_aligner *aligner;
    const struct ndt_align_params *params;
    double start_us;
    const struct ndt_align_item *items;
    size_t count; /* of the items that the lanes take */
    struct ndt_align_result *out;
    _Atomic size_t next;
};

/* Refuses an item that would exceed the deadline with its first evaluation. */
static int is_too_late(const struct call *call, struct ndt_aligner *aligner, const struct ndt_align_item *item,
                       struct ndt_align_result *out)
{
    double eval_us = 0;
    if (call->params->deadline_s <= 0 ||
        !ndt_solve_can_begin(aligner->map, item->scan->count, &item->T_map_guess, out))
        return 0;
    ndt_expect_costs(aligner, item->scan->count);
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        eval_us = fmax(eval_us, aligner->level_us[i]);
    const double passed_us = ndt_clock_us() - call->start_us;
    if (passed_us + 1.5 * (eval_us + aligner->assess_us) <= call->params->deadline_s * 1e6)
        return 0;
    ndt_solve_refuse(out, NDT_DEADLINE, "");
    snprintf(out->reason, sizeof(out->reason), "not begun, to keep %.1f ms", call->params->deadline_s * 1e3);
    return 1;
}

/* The first item is aligned in any case, as by ndt_align. */
static void align_item(const struct call *call, struct ndt_aligner *aligner, size_t i,
                       struct ndt_batch_failure *failure)
{
    const struct ndt_align_item *item = &call->items[i];
    struct ndt_align_result *out = &call->out[i];
    struct ndt_error why = {""};
    if (i > 0 && is_too_late(call, aligner, item, out))
        return;
    const enum ndt_status status = ndt_align_since(aligner, call->params, item, call->start_us, out, &why);
    if (status != NDT_OK && failure->status == NDT_OK)
        *failure = (struct ndt_batch_failure){.item = i, .status = status, .err = why};
}

static void work(void *context, size_t index, struct ndt_backend *backend)
{
    struct call *call = context;
    struct ndt_lane *lane = &call->aligner->lanes[index];
    size_t i;
    lane->aligner.backend = backend;
    while ((i = atomic_fetch_add_explicit(&call->next, 1, memory_order_relaxed)) < call->count)
        align_item(call, &lane->aligner, i, &lane->failure);
}

/* An evaluation for which nothing was measured yet is expected to take as long as on all lanes together. */
static void lend_costs(struct ndt_aligner *to, const struct ndt_aligner *from, size_t lanes)
{
    if (to->cost_points > 0)
        return;
    to->costs = from->costs;
    to->cost_points = from->cost_points;
    to->assess_us = from->assess_us;
    for (int i = 0; i < NDT_MAX_LEVELS; i++) {
        to->level_us[i] = (double)lanes * from->level_us[i];
        to->costs.levels[i].fixed_us *= (double)lanes;
        to->costs.levels[i].point_us *= (double)lanes;
    }
}

static enum ndt_status reserve(struct ndt_aligner *aligner, size_t lanes, size_t points, struct ndt_error *err)
{
    if (aligner->lane_count != lanes) { /* the first batch, or the backend has been replaced */
        for (size_t i = 0; i < aligner->lane_count; i++)
            ndt_cloud_free(&aligner->lanes[i].aligner.turned);
        free(aligner->lanes);
        aligner->lanes = calloc(lanes, sizeof(*aligner->lanes));
        aligner->lane_count = aligner->lanes ? lanes : 0;
    }
    if (!aligner->lanes)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu lanes of a batch", lanes);
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < lanes; i++) {
        struct ndt_lane *lane = &aligner->lanes[i];
        lane->failure = (struct ndt_batch_failure){0};
        lane->aligner.map = aligner->map;
        ndt_aligner_init_traces(&lane->aligner);
        lend_costs(&lane->aligner, aligner, lanes);
        status = ndt_cloud_reserve(&lane->aligner.turned, points, NDT_CLOUD_TIME, err);
    }
    return status;
}

/* Aligns call->count items on the lanes of the backend. */
static enum ndt_status run_lanes(struct call *call, size_t lanes, struct ndt_batch_failure *failure,
                                 struct ndt_error *err)
{
    struct ndt_aligner *aligner = call->aligner;
    struct ndt_backend *backend = aligner->backend;
    size_t points = 0;
    for (size_t i = 0; i < call->count; i++)
        points = call->items[i].scan->count > points ? call->items[i].scan->count : points;
    enum ndt_status status = reserve(aligner, lanes, points, err);
    if (status == NDT_OK)
        status = backend->ops->run_lanes(backend, points, work, call, err);
    for (size_t i = 0; status == NDT_OK && i < lanes; i++) {
        const struct ndt_batch_failure *one = &aligner->lanes[i].failure;
        if (one->status != NDT_OK && (failure->status == NDT_OK || one->item < failure->item))
            *failure = *one;
    }
    return status;
}

static size_t lane_count(const struct ndt_backend *backend)
{
    return backend->ops->lane_count ? backend->ops->lane_count(backend) : 0;
}

static void do_nothing(void *context, size_t index, struct ndt_backend *lane)
{
    (void)context, (void)index, (void)lane;
}

enum ndt_status ndt_lanes_reserve(struct ndt_aligner *aligner, size_t points, struct ndt_error *err)
{
    struct ndt_backend *backend = aligner->backend;
    const size_t lanes = lane_count(backend);
    if (lanes == 0)
        return NDT_OK;
    const enum ndt_status status = reserve(aligner, lanes, points, err);
    return status == NDT_OK ? backend->ops->run_lanes(backend, points, do_nothing, NULL, err) : status;
}

enum ndt_status ndt_align_in_lanes(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                   double start_us, const struct ndt_align_item *items, size_t count,
                                   struct ndt_align_result *out, struct ndt_error *err)
{
    const size_t lanes = aligner->map ? lane_count(aligner->backend) : 0;
    struct ndt_batch_failure failure = {0};
    struct call call = {.aligner = aligner, .params = params, .start_us = start_us, .items = items, .out = out};
    enum ndt_status status = NDT_OK;
    call.count = lanes > 0 && count > 1 ? count : 0; /* a single one has every thread for each evaluation */
    if (call.count > 0)
        status = run_lanes(&call, lanes, &failure, err);
    for (size_t i = call.count; status == NDT_OK && i < count; i++)
        align_item(&call, aligner, i, &failure);
    if (status == NDT_OK && failure.status != NDT_OK) {
        status = failure.status;
        if (err)
            *err = failure.err;
    }
    return status;
}

/* Many alignments in one call: together where the backend solves on the device, otherwise by align_lanes.c. */
#include "align_state.h"

#include <stdlib.h>

#include "ndt/clock.h"

static enum ndt_status reserve(struct ndt_batch *batch, size_t count, struct ndt_error *err)
{
    if (batch->capacity >= count)
        return NDT_OK;
    free(batch->items);
    free(batch->numbers);
    free(batch->scans);
    free(batch->moments_m2);
    *batch = (struct ndt_batch){.items = calloc(count, sizeof(*batch->items)),
                                .numbers = calloc(count, sizeof(*batch->numbers)),
                                .scans = calloc(count, sizeof(*batch->scans)),
                                .moments_m2 = calloc(count, sizeof(*batch->moments_m2))};
    if (!batch->items || !batch->numbers || !batch->scans || !batch->moments_m2)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu alignments at once", count);
    batch->capacity = count;
    return NDT_OK;
}

/* A call of ndt_align_batch. */
struct call {
    struct ndt_solve solve; /* common to all items */
    const struct ndt_align_item *items;
    struct ndt_align_result *out;
};

/* Index of the scan within the group; a scan met for the first time is added and its moments are computed. */
static uint32_t find_scan(struct ndt_batch *batch, size_t *scan_count, const struct ndt_cloud *scan)
{
    for (size_t i = *scan_count; i-- > 0;)
        if (batch->scans[i] == scan)
            return (uint32_t)i;
    batch->scans[*scan_count] = scan;
    ndt_second_moments(scan, batch->moments_m2[*scan_count]);
    return (uint32_t)(*scan_count)++;
}

/* The solve of one item of the call. */
static enum ndt_status set_item(const struct call *call, const struct ndt_align_item *from, size_t *scan_count,
                                struct ndt_solve_item *item, struct ndt_error *err)
{
    const struct ndt_align_params *params = call->solve.params;
    struct ndt_aligner *aligner = call->solve.aligner;
    *item = (struct ndt_solve_item){.scan = find_scan(&aligner->batch, scan_count, from->scan)};
    ndt_solve_set_guess(&item->newton, params->variant, &from->T_map_guess, aligner->map->origin_m);
    ndt_newton_set_rotation_scale(&item->newton, aligner->batch.moments_m2[item->scan]);
    return ndt_solve_set_prior(&item->newton, params, from->prior, aligner->map->origin_m, err);
}

/* Collects solves for the items that can be aligned, from item *next on, while there is room for an item, which may
 * need two solves. *next becomes the first item that was not considered. */
static enum ndt_status gather(const struct call *call, size_t *next, size_t end, size_t most, size_t *count,
                              size_t *scan_count, struct ndt_error *err)
{
    struct ndt_batch *batch = &call->solve.aligner->batch;
    const size_t room = call->solve.params->choose_levels && most > 1 ? 2 : 1;
    size_t i;
    *count = *scan_count = 0;
    for (i = *next; i < end && *count + room <= most; i++) {
        const struct ndt_align_item *from = &call->items[i];
        if (!ndt_solve_can_begin(call->solve.aligner->map, from->scan->count, &from->T_map_guess, &call->out[i]))
            continue;
        struct ndt_solve_item *item = &batch->items[*count];
        const enum ndt_status status = set_item(call, from, scan_count, item, err);
        if (status != NDT_OK)
            return status;
        batch->numbers[(*count)++] = i;
        if (room > 1 && ndt_solve_is_coarse(&item->newton, call->solve.params)) {
            item[1] = item[0];
            item[1].newton.first_level = call->solve.rules->level_count - 1;
            batch->numbers[(*count)++] = i;
        }
    }
    *next = i;
    return NDT_OK;
}

static void assess_group(const struct call *call, size_t count, double upload_us)
{
    const struct ndt_batch *batch = &call->solve.aligner->batch;
    struct ndt_solve solve = call->solve;
    for (size_t k = 0, solves; k < count; k += solves) {
        const size_t i = batch->numbers[k];
        const struct ndt_solve_item *item = &batch->items[k], *best = item;
        solves = k + 1 < count && batch->numbers[k + 1] == i ? 2 : 1;
        const int tries = solves == 2 && ndt_solve_tries_finest(&item->newton, call->solve.params);
        if (tries && ndt_solve_is_better(&item[1].newton, &item[0].newton))
            best = &item[1];
        solve.newton = best->newton;
        solve.newton.evaluations += tries ? item[best == item].newton.evaluations : 0;
        solve.information = best->information;
        solve.is_observed = call->solve.rules->wants_information;
        solve.coverage = best->coverage;
        solve.scan = call->items[i].scan;
        solve.prior = call->items[i].prior;
        solve.points = solve.scan->count;
        call->out[i].points = solve.points;
        call->out[i].upload_us = upload_us;
        ndt_assess_result(&solve, &call->out[i]);
        call->out[i].align_us = ndt_clock_us() - solve.start_us;
    }
}

/* Aligns up to `most` items from *next on. NDT_ERR_LIMIT: together they are too large for the device. */
static enum ndt_status run_group(const struct call *call, size_t *next, size_t end, size_t most,
                                 struct ndt_error *err)
{
    struct ndt_aligner *aligner = call->solve.aligner;
    struct ndt_backend *backend = aligner->backend;
    struct ndt_batch *batch = &aligner->batch;
    size_t count, scan_count;
    size_t stopped = *next;
    enum ndt_status status = gather(call, &stopped, end, most, &count, &scan_count, err);
    const double begin_us = ndt_clock_us();
    if (status == NDT_OK && count > 0)
        status = backend->ops->set_scans(backend, batch->scans, scan_count, err);
    const double upload_us = ndt_clock_us() - begin_us;
    if (status == NDT_OK && count > 0)
        status = backend->ops->solve(backend, call->solve.rules, batch->items, count,
                                     ndt_solve_until_us(&call->solve, count), err);
    if (status != NDT_OK)
        return status;
    assess_group(call, count, upload_us);
    *next = stopped;
    return NDT_OK;
}

/* Aligns in groups, halving their size whenever one does not fit. */
static enum ndt_status run_together(const struct call *call, size_t *next, size_t count, struct ndt_error *err)
{
    size_t most = ndt_aligner_solve_limit(call->solve.aligner);
    most = most < 2 * count ? most : 2 * count;
    enum ndt_status status = most > 0 ? reserve(&call->solve.aligner->batch, most, err) : NDT_ERR_UNSUPPORTED;
    while (status == NDT_OK && *next < count) {
        status = run_group(call, next, count, most, err);
        if (status == NDT_ERR_LIMIT && most > 1) {
            most /= 2;
            status = NDT_OK;
        }
    }
    return status;
}

/* The trace stays that of the last ndt_align. */
static void swap_traces(struct ndt_aligner *aligner)
{
    struct ndt_newton_rows *last = aligner->last;
    aligner->last = aligner->of_batch;
    aligner->of_batch = last;
}

enum ndt_status ndt_align_batch(struct ndt_aligner *aligner, const struct ndt_align_params *params,
                                const struct ndt_align_item *items, size_t count, struct ndt_align_result *out,
                                struct ndt_error *err)
{
    struct ndt_newton_rules rules;
    const struct call call = {
        .solve = {.aligner = aligner, .params = params, .rules = &rules, .start_us = ndt_clock_us()},
        .items = items,
        .out = out};
    enum ndt_status status = aligner->map ? ndt_rules_from(&rules, params, aligner->map, err) : NDT_ERR_UNSUPPORTED;
    size_t next = 0;
    swap_traces(aligner);
    if (status == NDT_OK) {
        status = NDT_ERR_UNSUPPORTED;
        for (int i = 0;
             i < NDT_DEVICE_ATTEMPTS && status == NDT_ERR_UNSUPPORTED && ndt_aligner_solve_limit(aligner) > 0; i++)
            status = run_together(&call, &next, count, err);
    }
    if (status == NDT_ERR_UNSUPPORTED)
        status =
            ndt_align_in_lanes(aligner, params, call.solve.start_us, &items[next], count - next, &out[next], err);
    swap_traces(aligner);
    return status;
}

enum ndt_status ndt_aligner_reserve_batch(struct ndt_aligner *aligner, size_t items, size_t points,
                                          struct ndt_error *err)
{
    const size_t most = ndt_aligner_solve_limit(aligner);
    if (most == 0)
        return ndt_lanes_reserve(aligner, points, err);
    return reserve(&aligner->batch, most < 2 * items ? most : 2 * items, err);
}

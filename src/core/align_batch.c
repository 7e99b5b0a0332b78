/* Searches that the backend runs as a whole: one, with its trace, or many at once. */
#include "align_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/clock.h"

/* How often a lost device is asked again before the host does the work. */
enum { TRIES = 3 };

struct ndt_batch {
    size_t capacity;
    struct ndt_solve_item *items;
    size_t *numbers; /* of the items in the caller's list */
    const struct ndt_cloud **scans;
    double (*moments_m2)[6]; /* of the scans */
};

void ndt_batch_free(struct ndt_batch *batch)
{
    if (!batch)
        return;
    free(batch->items);
    free(batch->numbers);
    free(batch->scans);
    free(batch->moments_m2);
    free(batch);
}

static size_t solve_limit(const struct ndt_aligner *aligner)
{
    const struct ndt_backend_ops *ops = aligner->backend->ops;
    return ops->solve_limit ? ops->solve_limit(aligner->backend) : 0;
}

size_t ndt_aligner_raw_limit(const struct ndt_aligner *aligner)
{
    const struct ndt_backend_ops *ops = aligner->backend->ops;
    return ops->preprocess_limit && solve_limit(aligner) > 0 ? ops->preprocess_limit(aligner->backend) : 0;
}

size_t ndt_aligner_batch_size(const struct ndt_aligner *aligner)
{
    const size_t limit = solve_limit(aligner);
    return limit > 0 ? limit : 1;
}

static enum ndt_status reserve(struct ndt_aligner *aligner, size_t count, struct ndt_error *err)
{
    struct ndt_batch *batch = aligner->batch;
    if (batch && batch->capacity >= count)
        return NDT_OK;
    ndt_batch_free(batch);
    aligner->batch = batch = calloc(1, sizeof(*batch));
    if (batch) {
        batch->items = calloc(count, sizeof(*batch->items));
        batch->numbers = calloc(count, sizeof(*batch->numbers));
        batch->scans = calloc(count, sizeof(*batch->scans));
        batch->moments_m2 = calloc(count, sizeof(*batch->moments_m2));
        batch->capacity = count;
    }
    if (batch && batch->items && batch->numbers && batch->scans && batch->moments_m2)
        return NDT_OK;
    ndt_batch_free(batch);
    aligner->batch = NULL;
    return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu searches at once", count);
}

/* When the device has to be done, so that the judgement still fits. */
static double until(const struct ndt_solve *solve, size_t judgements)
{
    const double rest_us = 1.5 * solve->aligner->assess_us * (double)judgements;
    const double deadline_us = solve->params->deadline_s * 1e6;
    return solve->params->deadline_s > 0 ? solve->start_us + fmax(deadline_us - rest_us, 1) : 0;
}

static void read_counters(const struct ndt_backend *backend, struct ndt_backend_counters *counters)
{
    memset(counters, 0, sizeof(*counters));
    if (backend->ops->counters)
        backend->ops->counters(backend, counters);
}

/* What the launch cost goes to the first row; times were taken by the device. */
static void bill_rows(struct ndt_newton_rows *last, size_t count, const struct ndt_backend_counters *before,
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

/* The scan, or what it is to be made from. */
static enum ndt_status hand_over(const struct ndt_solve *solve, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    if (!solve->preprocess)
        return backend->ops->set_scans(backend, &solve->scan, 1, err);
    if (ndt_aligner_raw_limit(solve->aligner) < (solve->raw ? solve->raw->count : 1))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "backend %s does not preprocess such a scan", backend->ops->name);
    return solve->raw ? backend->ops->preprocess(backend, solve->preprocess, solve->raw, err)
                      : backend->ops->preprocess_again(backend, solve->preprocess, err);
}

static enum ndt_status try_on_device(struct ndt_solve *solve, double *upload_us, struct ndt_error *err)
{
    struct ndt_backend *backend = solve->aligner->backend;
    struct ndt_solve_item item = {
        .newton = solve->newton, .rows = solve->aligner->last.rows, .row_capacity = NDT_MAX_ITERATIONS};
    struct ndt_backend_counters before, after;
    enum ndt_status status = hand_over(solve, err);
    *upload_us = ndt_clock_us() - solve->start_us;
    read_counters(backend, &before);
    if (status == NDT_OK)
        status = backend->ops->solve(backend, solve->rules, &item, 1, until(solve, 1), err);
    if (status != NDT_OK)
        return status;
    read_counters(backend, &after);
    bill_rows(&solve->aligner->last, (size_t)item.row_count, &before, &after);
    solve->newton = item.newton;
    solve->coverage = item.coverage;
    solve->row_capacity = item.row_count;
    solve->points = item.points;
    return NDT_OK;
}

enum ndt_status ndt_solve_on_device(struct ndt_solve *solve, double *upload_us, struct ndt_error *err)
{
    enum ndt_status status = NDT_ERR_UNSUPPORTED;
    for (int i = 0; i < TRIES && status == NDT_ERR_UNSUPPORTED && solve_limit(solve->aligner) > 0; i++)
        status = try_on_device(solve, upload_us, err);
    return status;
}

/* ---- many ---- */

/* A call of ndt_align_batch. */
struct call {
    struct ndt_solve solve; /* what all have in common */
    const struct ndt_align_item *items;
    struct ndt_align_result *out;
};

/* Number of the scan among those of the group; a new one is measured. */
static uint32_t find_scan(struct ndt_batch *batch, size_t *scan_count, const struct ndt_cloud *scan)
{
    for (size_t i = *scan_count; i-- > 0;)
        if (batch->scans[i] == scan)
            return (uint32_t)i;
    batch->scans[*scan_count] = scan;
    ndt_second_moments(scan, batch->moments_m2[*scan_count]);
    return (uint32_t)(*scan_count)++;
}

/* Items `first` and on that there is something to do for, `most` of them; *count: how many. Returns where it
 * stopped. */
static size_t gather(const struct call *call, size_t first, size_t end, size_t most, size_t *count,
                     size_t *scan_count)
{
    struct ndt_aligner *aligner = call->solve.aligner;
    struct ndt_batch *batch = aligner->batch;
    size_t i;
    *count = *scan_count = 0;
    for (i = first; i < end && *count < most; i++) {
        const struct ndt_align_item *from = &call->items[i];
        if (!ndt_solve_can_begin(aligner->map, from->scan->count, &from->T_map_guess, &call->out[i]))
            continue;
        struct ndt_solve_item *item = &batch->items[*count];
        *item = (struct ndt_solve_item){.scan = find_scan(batch, scan_count, from->scan)};
        ndt_solve_place(&item->newton, call->solve.params->variant, &from->T_map_guess, aligner->map->origin_m);
        ndt_newton_set_rotation_scale(&item->newton, batch->moments_m2[item->scan]);
        batch->numbers[(*count)++] = i;
    }
    return i;
}

static void assess_group(const struct call *call, size_t count, double upload_us)
{
    const struct ndt_batch *batch = call->solve.aligner->batch;
    struct ndt_solve solve = call->solve;
    for (size_t k = 0; k < count; k++) {
        const size_t i = batch->numbers[k];
        solve.newton = batch->items[k].newton;
        solve.coverage = batch->items[k].coverage;
        solve.scan = call->items[i].scan;
        solve.points = solve.scan->count;
        call->out[i].points = solve.points;
        call->out[i].upload_us = upload_us;
        ndt_assess_result(&solve, &call->out[i]);
        call->out[i].align_us = ndt_clock_us() - solve.start_us;
    }
}

/* Up to `most` items from *next on. NDT_ERR_LIMIT: they are together too large. */
static enum ndt_status run_group(const struct call *call, size_t *next, size_t end, size_t most,
                                 struct ndt_error *err)
{
    struct ndt_aligner *aligner = call->solve.aligner;
    struct ndt_backend *backend = aligner->backend;
    struct ndt_batch *batch = aligner->batch;
    size_t count, scan_count;
    const size_t stopped = gather(call, *next, end, most, &count, &scan_count);
    const double begin_us = ndt_clock_us();
    enum ndt_status status = count > 0 ? backend->ops->set_scans(backend, batch->scans, scan_count, err) : NDT_OK;
    const double upload_us = ndt_clock_us() - begin_us;
    if (status == NDT_OK && count > 0)
        status =
            backend->ops->solve(backend, call->solve.rules, batch->items, count, until(&call->solve, count), err);
    if (status != NDT_OK)
        return status;
    assess_group(call, count, upload_us);
    *next = stopped;
    return NDT_OK;
}

/* Together, in groups that fit; halved as often as they do not. */
static enum ndt_status run_together(const struct call *call, size_t *next, size_t count, struct ndt_error *err)
{
    size_t most = solve_limit(call->solve.aligner);
    most = most < count ? most : count;
    enum ndt_status status = most > 0 ? reserve(call->solve.aligner, most, err) : NDT_ERR_UNSUPPORTED;
    while (status == NDT_OK && *next < count) {
        status = run_group(call, next, count, most, err);
        if (status == NDT_ERR_LIMIT && most > 1) {
            most /= 2;
            status = NDT_OK;
        }
    }
    return status;
}

/* The host's way: each gets what is left of the time. */
static enum ndt_status run_in_turn(const struct call *call, size_t next, size_t count, struct ndt_error *err)
{
    struct ndt_align_params params = *call->solve.params;
    const double end_us = call->solve.start_us + params.deadline_s * 1e6;
    enum ndt_status status = NDT_OK;
    for (size_t i = next; status == NDT_OK && i < count; i++) {
        if (params.deadline_s > 0)
            params.deadline_s = fmax(end_us - ndt_clock_us(), 1) * 1e-6;
        status = ndt_align(call->solve.aligner, &params, call->items[i].scan, &call->items[i].T_map_guess,
                           &call->out[i], err);
    }
    call->solve.aligner->last.count = 0;
    return status;
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
    aligner->last.count = 0;
    if (status == NDT_OK) {
        status = NDT_ERR_UNSUPPORTED;
        for (int i = 0; i < TRIES && status == NDT_ERR_UNSUPPORTED && solve_limit(aligner) > 0; i++)
            status = run_together(&call, &next, count, err);
    }
    return status == NDT_ERR_UNSUPPORTED ? run_in_turn(&call, next, count, err) : status;
}

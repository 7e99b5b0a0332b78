#include "bench_batch.h"

#include <stdlib.h>
#include <string.h>

#include "bench_start.h"
#include "ndt/clock.h"

enum { MOST_ROUNDS = 1000 };

/* The batch that is measured now. */
struct batch {
    const struct bench_batch_request *request;
    enum bench_batch_kind kind;
    size_t items;
    struct ndt_align_item *list;
    const struct bench_batch_scan **from; /* scan of each item */
    struct ndt_align_result *together, *alone;
};
/* What a row is made of: one time per round. */
struct tally {
    double *together_ms, *alone_ms;
    uint64_t launches, evaluations;
    struct bench_batch_row row;
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof(double), ascending);
    return values[(size_t)(part * (double)(count - 1) + 0.5)];
}

/* Everything but the times. */
static int same_result(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    return a->outcome == b->outcome && memcmp(&a->T_map_sensor, &b->T_map_sensor, sizeof(a->T_map_sensor)) == 0 &&
           memcmp(&a->scores, &b->scores, sizeof(a->scores)) == 0 && a->has_covariance == b->has_covariance &&
           (!a->has_covariance || memcmp(a->covariance, b->covariance, sizeof(a->covariance)) == 0) &&
           a->weak_count == b->weak_count && a->iterations == b->iterations && a->evaluations == b->evaluations &&
           a->oscillation == b->oscillation && strcmp(a->reason, b->reason) == 0;
}

/* Other guesses in every round, and for several scans other scans. */
static void make_list(const struct batch *batch, size_t round)
{
    const struct bench_batch_request *request = batch->request;
    for (size_t i = 0; i < batch->items; i++) {
        const size_t number = batch->kind == BENCH_SCANS ? round + i : round;
        const struct bench_batch_scan *scan = &request->scans[number % request->scan_count];
        batch->from[i] = scan;
        batch->list[i] = (struct ndt_align_item){.scan = scan->points,
                                                 .T_map_guess = bench_start(request->seed, round * batch->items + i,
                                                                            &scan->T_map_sensor, request->shift_m,
                                                                            request->turn_rad)};
    }
}

static uint64_t launches(const struct bench_batch_candidate *candidate)
{
    struct ndt_backend_counters counters = {0};
    if (candidate->backend->ops->counters)
        candidate->backend->ops->counters(candidate->backend, &counters);
    return counters.launches;
}

static enum ndt_status run_together(const struct batch *batch, const struct bench_batch_candidate *candidate,
                                    double *took_ms, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status =
        ndt_align_batch(candidate->aligner, candidate->params, batch->list, batch->items, batch->together, err);
    *took_ms = (ndt_clock_us() - start_us) * 1e-3;
    return status;
}

static enum ndt_status run_alone(const struct batch *batch, const struct bench_batch_candidate *candidate,
                                 double *took_ms, struct ndt_error *err)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < batch->items; i++)
        status = ndt_align(candidate->aligner, candidate->params, batch->list[i].scan, &batch->list[i].T_map_guess,
                           &batch->alone[i], err);
    *took_ms = (ndt_clock_us() - start_us) * 1e-3;
    return status;
}

static void assess(const struct batch *batch, struct tally *tally)
{
    const struct bench_batch_request *request = batch->request;
    for (size_t i = 0; i < batch->items; i++) {
        const struct ndt_align_result *result = &batch->together[i];
        const struct ndt_pose *truth = &batch->from[i]->T_map_sensor;
        tally->row.is_same &= same_result(result, &batch->alone[i]);
        tally->row.recovered += ndt_pose_distance_m(&result->T_map_sensor, truth) <= request->success_m &&
                                ndt_pose_angle_rad(&result->T_map_sensor, truth) <= request->success_rad;
        tally->evaluations += (uint64_t)result->evaluations;
    }
    tally->row.tried += batch->items;
}

/* Together first in every other round: nobody always finds warm caches. */
static enum ndt_status run_candidate(const struct batch *batch, const struct bench_batch_candidate *candidate,
                                     struct tally *tally, size_t round, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    double together_ms = 0, alone_ms = 0;
    uint64_t before = 0, after = 0;
    for (size_t k = 0; status == NDT_OK && k < 2; k++) {
        if ((round + k) % 2) {
            status = run_alone(batch, candidate, &alone_ms, err);
            continue;
        }
        before = launches(candidate);
        status = run_together(batch, candidate, &together_ms, err);
        after = launches(candidate);
    }
    if (status != NDT_OK || round == 0)
        return status;
    tally->together_ms[round - 1] = together_ms;
    tally->alone_ms[round - 1] = alone_ms;
    tally->launches += after - before;
    assess(batch, tally);
    return NDT_OK;
}

static void measure(const struct batch *batch, struct tally *tallies)
{
    const struct bench_batch_request *request = batch->request;
    for (size_t round = 0; round <= (size_t)request->rounds; round++) {
        make_list(batch, round);
        for (size_t k = 0; k < request->candidate_count; k++) {
            const size_t w = (round + k) % request->candidate_count;
            struct bench_batch_row *row = &tallies[w].row;
            if (!row->is_here ||
                run_candidate(batch, &request->candidates[w], &tallies[w], round, &row->why) == NDT_OK)
                continue;
            row->is_here = 0;
            row->has_failed = 1;
        }
    }
}

static enum ndt_status add_rows(struct bench_batch *out, const struct batch *batch, struct tally *tallies,
                                struct ndt_error *err)
{
    const size_t rounds = (size_t)batch->request->rounds;
    for (size_t w = 0; w < batch->request->candidate_count; w++) {
        struct bench_batch_row *row = &tallies[w].row;
        if (out->count == BENCH_BATCH_ROWS)
            return ndt_fail(err, NDT_ERR_LIMIT, "more than %d rows", BENCH_BATCH_ROWS);
        if (row->is_here) {
            row->together_ms = quantile(tallies[w].together_ms, rounds, 0.5);
            row->p95_ms = quantile(tallies[w].together_ms, rounds, 0.95);
            row->alone_ms = quantile(tallies[w].alone_ms, rounds, 0.5);
            row->launches = (double)tallies[w].launches / (double)rounds;
            row->evaluations = (double)tallies[w].evaluations / (double)row->tried;
        }
        out->rows[out->count++] = *row;
    }
    return NDT_OK;
}

static enum ndt_status begin_tallies(const struct batch *batch, struct tally *tallies, struct ndt_error *err)
{
    const struct bench_batch_request *request = batch->request;
    for (size_t w = 0; w < request->candidate_count; w++) {
        struct tally *tally = &tallies[w];
        tally->row = (struct bench_batch_row){.kind = batch->kind,
                                              .items = batch->items,
                                              .points = request->points,
                                              .is_here = request->candidates[w].aligner != NULL,
                                              .is_same = 1,
                                              .why = request->candidates[w].why};
        memcpy(tally->row.what, request->candidates[w].name, sizeof(tally->row.what));
        tally->together_ms = calloc((size_t)request->rounds, sizeof(double));
        tally->alone_ms = calloc((size_t)request->rounds, sizeof(double));
        if (!tally->together_ms || !tally->alone_ms)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %d rounds", request->rounds);
    }
    return NDT_OK;
}

static void free_tallies(struct tally *tallies, size_t count)
{
    for (size_t w = 0; tallies && w < count; w++) {
        free(tallies[w].together_ms);
        free(tallies[w].alone_ms);
    }
    free(tallies);
}

static enum ndt_status run_kind(struct bench_batch *out, const struct batch *batch, struct ndt_error *err)
{
    struct tally *tallies = calloc(batch->request->candidate_count, sizeof(*tallies));
    if (!tallies)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu rows", batch->request->candidate_count);
    enum ndt_status status = begin_tallies(batch, tallies, err);
    if (status == NDT_OK) {
        measure(batch, tallies);
        status = add_rows(out, batch, tallies, err);
    }
    free_tallies(tallies, batch->request->candidate_count);
    return status;
}

static enum ndt_status run_size(struct bench_batch *out, const struct bench_batch_request *request, size_t items,
                                struct ndt_error *err)
{
    struct batch batch = {.request = request, .kind = BENCH_GUESSES, .items = items};
    enum ndt_status status = NDT_OK;
    batch.list = calloc(items, sizeof(*batch.list));
    batch.from = calloc(items, sizeof(*batch.from));
    batch.together = calloc(items, sizeof(*batch.together));
    batch.alone = calloc(items, sizeof(*batch.alone));
    if (!batch.list || !batch.from || !batch.together || !batch.alone)
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu items", items);
    if (status == NDT_OK)
        status = run_kind(out, &batch, err);
    batch.kind = BENCH_SCANS;
    if (status == NDT_OK && items > 1 && items <= BENCH_BATCH_SCANS && items <= request->scan_count)
        status = run_kind(out, &batch, err);
    free(batch.list);
    free(batch.from);
    free(batch.together);
    free(batch.alone);
    return status;
}

enum ndt_status bench_batch_run(struct bench_batch *out, const struct bench_batch_request *request,
                                struct ndt_error *err)
{
    if (request->rounds < 1 || request->rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%d rounds; 1 to %d are possible", request->rounds, MOST_ROUNDS);
    if (request->scan_count == 0 || request->candidate_count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "no scan or no backend to measure a batch with");
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < request->size_count; i++) {
        if (request->sizes[i] < 1 || request->sizes[i] > BENCH_BATCH_MOST)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "a batch of %zu items; 1 to %d are possible", request->sizes[i],
                            BENCH_BATCH_MOST);
        status = run_size(out, request, request->sizes[i], err);
    }
    return status;
}

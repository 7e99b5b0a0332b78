/** @file
 * @brief batch: all items in one call, compared with one call per item. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ndt/clock.h"

/* Batches of different scans occur only up to the depth of the queue. */
enum { MOST_SCANS = 3, MOST_ROUNDS = 1000 };
/* Target for so many guesses for a scan of so many points on a data-centre GPU. */
enum { WANTED_ITEMS = 200, WANTED_POINTS = 1500 };
static const double WANTED_MS = 5;

/* Measurements of one candidate. */
struct tally {
    struct bench_samples together_ms, alone_ms;
    uint64_t launches, evaluations;
    size_t recovered, tried;
    int is_different; /* a result differs from that of the single alignment */
};
/* One size of batch. */
struct batch {
    const struct bench_options *options;
    const struct bench_scans *scans;
    struct bench_candidates *candidates;
    int has_scans; /* items are scans, else guesses for one scan */
    size_t items;
    struct ndt_align_item *list;
    const struct bench_scan **from; /* scan of each item */
    struct ndt_align_result *together, *alone;
    struct tally *tallies; /* per candidate */
};

/* Compares everything except the times. */
static int is_same(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    return a->outcome == b->outcome && memcmp(&a->T_map_sensor, &b->T_map_sensor, sizeof(a->T_map_sensor)) == 0 &&
           memcmp(&a->scores, &b->scores, sizeof(a->scores)) == 0 && a->has_covariance == b->has_covariance &&
           (!a->has_covariance || memcmp(a->covariance, b->covariance, sizeof(a->covariance)) == 0) &&
           a->weak_count == b->weak_count && a->iterations == b->iterations && a->evaluations == b->evaluations &&
           a->oscillation == b->oscillation && strcmp(a->reason, b->reason) == 0;
}

/* Every round has other guesses and other scans. */
static void make_list(const struct batch *batch, size_t round)
{
    const struct bench_options *options = batch->options;
    for (size_t i = 0; i < batch->items; i++) {
        const size_t number = batch->has_scans ? round + i : round;
        const struct bench_scan *scan = &batch->scans->items[number % batch->scans->count];
        batch->from[i] = scan;
        batch->list[i] =
            (struct ndt_align_item){.scan = &scan->cloud,
                                    .T_map_guess = bench_start(options->seed, round * batch->items + i,
                                                               &scan->T_map_sensor, &options->offsets.items[0])};
    }
}

static enum ndt_status align_together(const struct batch *batch, struct bench_candidate *candidate,
                                      uint64_t *launches, double *took_ms)
{
    struct ndt_backend_counters before, after;
    bench_candidate_counters(candidate, &before);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_align_batch(candidate->aligner, &candidate->setup.align, batch->list, batch->items,
                                             batch->together, &candidate->why);
    *took_ms = (ndt_clock_us() - start_us) * 1e-3;
    bench_candidate_counters(candidate, &after);
    *launches = after.launches - before.launches;
    return status;
}

static enum ndt_status align_alone(const struct batch *batch, struct bench_candidate *candidate, double *took_ms)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < batch->items; i++)
        status = ndt_align(candidate->aligner, &candidate->setup.align, batch->list[i].scan,
                           &batch->list[i].T_map_guess, &batch->alone[i], &candidate->why);
    *took_ms = (ndt_clock_us() - start_us) * 1e-3;
    return status;
}

static void assess(const struct batch *batch, struct tally *tally)
{
    for (size_t i = 0; i < batch->items; i++) {
        const struct ndt_align_result *result = &batch->together[i];
        const struct ndt_pose *truth = &batch->from[i]->T_map_sensor;
        double off_m, off_deg;
        tally->is_different |= !is_same(result, &batch->alone[i]);
        tally->recovered += bench_is_recovered(&result->T_map_sensor, truth, &off_m, &off_deg) ? 1 : 0;
        tally->evaluations += (uint64_t)result->evaluations;
    }
    tally->tried += batch->items;
}

/* The order alternates, so that neither always finds warm caches. */
static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct batch *batch = context;
    struct bench_candidate *candidate = &batch->candidates->items[item];
    struct tally *tally = &batch->tallies[item];
    enum ndt_status status = NDT_OK;
    double together_ms = 0, alone_ms = 0;
    uint64_t launches = 0;
    (void)err;
    if (!bench_candidate_works(candidate))
        return NDT_OK;
    make_list(batch, round);
    for (size_t k = 0; status == NDT_OK && k < 2; k++)
        status = (round + k) % 2 ? align_alone(batch, candidate, &alone_ms)
                                 : align_together(batch, candidate, &launches, &together_ms);
    bench_candidate_fail(candidate, status);
    if (status != NDT_OK || !is_counted)
        return NDT_OK;
    tally->launches += launches;
    assess(batch, tally);
    bench_samples_add(&tally->together_ms, together_ms);
    bench_samples_add(&tally->alone_ms, alone_ms);
    return NDT_OK;
}

static void put_row(const struct batch *batch, const struct bench_candidate *candidate, struct tally *tally,
                    struct bench_report *report, struct bench_table *table)
{
    const double items = (double)batch->items, rounds = (double)tally->together_ms.count;
    const int works = bench_candidate_row(candidate, report, table);
    bench_number(table, "points", 0, (double)batch->scans->points);
    bench_number(table, "items", 0, items);
    bench_text(table, "of", "%s", batch->has_scans ? "scans" : "guesses");
    if (works && rounds > 0) {
        const double together_ms = bench_median(&tally->together_ms), alone_ms = bench_median(&tally->alone_ms);
        bench_number(table, "together_ms", 3, together_ms);
        bench_number(table, "p95_ms", 3, bench_quantile(&tally->together_ms, 0.95));
        bench_number(table, "best_ms", 3, bench_quantile(&tally->together_ms, 0));
        /* The emulation has another name and is left out. */
        if (!batch->has_scans && batch->items == WANTED_ITEMS && batch->scans->points == WANTED_POINTS &&
            strncmp(candidate->name, "cuda resident", 13) == 0)
            bench_text(table, "wanted", "<= %g ms: %s", WANTED_MS, together_ms <= WANTED_MS ? "met" : "missed");
        bench_number(table, "per_item_us", 1, 1e3 * together_ms / items);
        bench_number(table, "per_s", 0, 1e3 * items / together_ms);
        bench_number(table, "alone_ms", 3, alone_ms);
        bench_number(table, "ratio", 2, alone_ms / together_ms);
        bench_number(table, "launches", 1, (double)tally->launches / rounds);
        bench_number(table, "evaluations", 1, (double)tally->evaluations / (double)tally->tried);
        bench_number(table, "recovered", 0, (double)tally->recovered);
        bench_number(table, "tried", 0, (double)tally->tried);
        bench_bool(table, "same_bits", !tally->is_different);
        report->failures += tally->is_different != 0;
    }
    bench_samples_free(&tally->together_ms, 1);
    bench_samples_free(&tally->alone_ms, 1);
}

static enum ndt_status measure(struct batch *batch, struct bench_report *report, struct bench_table *table,
                               struct ndt_error *err)
{
    const size_t candidates = batch->candidates->count;
    batch->list = calloc(batch->items, sizeof(*batch->list));
    batch->from = calloc(batch->items, sizeof(*batch->from));
    batch->together = calloc(batch->items, sizeof(*batch->together));
    batch->alone = calloc(batch->items, sizeof(*batch->alone));
    batch->tallies = calloc(candidates, sizeof(*batch->tallies));
    enum ndt_status status = NDT_OK;
    if (!batch->list || !batch->from || !batch->together || !batch->alone || !batch->tallies)
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu items", batch->items);
    if (status == NDT_OK)
        status = bench_sample(candidates, 1, batch->options->rounds, sample, batch, err);
    for (size_t i = 0; batch->tallies && i < candidates; i++)
        put_row(batch, &batch->candidates->items[i], &batch->tallies[i], report, table);
    free(batch->list);
    free(batch->from);
    free(batch->together);
    free(batch->alone);
    free(batch->tallies);
    return status;
}

enum ndt_status bench_batch(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    if (options->rounds > MOST_ROUNDS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--rounds: batch takes a whole number from 1 to %d", MOST_ROUNDS);
    enum ndt_status status = bench_source_prepare(source, report, err);
    if (status != NDT_OK)
        return status;
    struct bench_table *table = bench_report_table(
        report, "batch", "Batches: all items in one call (together) and one call per item (alone); medians");
    for (size_t i = 0; i < source->scans_count; i++)
        for (size_t k = 0; k < options->sizes.count; k++)
            for (int has_scans = 0; has_scans < 2; has_scans++) {
                struct batch batch = {.options = options,
                                      .scans = &source->scans[i],
                                      .candidates = &source->candidates,
                                      .has_scans = has_scans,
                                      .items = options->sizes.values[k]};
                const int is_possible = !has_scans || (batch.items > 1 && batch.items <= MOST_SCANS &&
                                                       batch.items <= source->scans[i].count);
                if (status == NDT_OK && is_possible)
                    status = measure(&batch, report, table, err);
            }
    return status;
}

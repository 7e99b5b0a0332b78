/** @file
 * @brief overheads: one evaluation, and the parts of its time on a device. */
#include <string.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt/random.h"

enum { WARM_UP = 3, MOST_TALLIES = 64 };
static const double JITTER_M = 0.02;

/* Measurements of one candidate. */
struct tally {
    struct bench_samples eval_us, kernel_us;
    struct ndt_eval sums;
    int is_left_out; /* another resident pipeline has the same evaluation */
};
struct run {
    struct bench_candidates *candidates;
    struct tally tallies[MOST_TALLIES];
    struct ndt_pose T_map_sensor;
};

/* `count` points of `from`: evenly picked, or all of them repeatedly, the repeated ones moved by up to 2 cm along
 * each axis. */
static enum ndt_status make_scan(struct ndt_cloud *out, const struct ndt_cloud *from, size_t count, uint64_t seed,
                                 struct ndt_error *err)
{
    struct ndt_random random = {seed};
    out->count = 0;
    if (from->count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the scan has no points");
    enum ndt_status status = ndt_cloud_reserve(out, count, 0, err);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        const double reach_m = i >= from->count ? JITTER_M : 0;
        const size_t k = count <= from->count ? i * from->count / count : i % from->count;
        out->x_m[i] = from->x_m[k] + (float)ndt_random_between(&random, -reach_m, reach_m);
        out->y_m[i] = from->y_m[k] + (float)ndt_random_between(&random, -reach_m, reach_m);
        out->z_m[i] = from->z_m[k] + (float)ndt_random_between(&random, -reach_m, reach_m);
        out->count++;
    }
    return status;
}

/* The second of two evaluations; the first one warms the caches and wakes the workers. */
static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct bench_candidate *candidate = &run->candidates->items[item];
    struct tally *tally = &run->tallies[item];
    double took_us = 0, kernel_us = 0;
    (void)round, (void)err;
    for (int i = 0; i < 2 && bench_candidate_works(candidate) && !tally->is_left_out; i++) {
        const struct ndt_eval_request request = bench_candidate_request(candidate, &run->T_map_sensor);
        struct ndt_backend_counters before, after;
        bench_candidate_counters(candidate, &before);
        const double start_us = ndt_clock_us();
        bench_candidate_fail(
            candidate, candidate->backend->ops->eval(candidate->backend, &request, &tally->sums, &candidate->why));
        took_us = ndt_clock_us() - start_us;
        bench_candidate_counters(candidate, &after);
        kernel_us = bench_candidate_kernel_us(candidate, &before, &after);
    }
    if (!is_counted || !bench_candidate_works(candidate) || tally->is_left_out)
        return NDT_OK;
    bench_samples_add(&tally->eval_us, took_us);
    bench_samples_add(&tally->kernel_us, kernel_us);
    return NDT_OK;
}

static void put_row(struct bench_candidate *candidate, struct tally *tally, size_t points, size_t measured_points,
                    int rounds, struct bench_report *report, struct bench_table *table)
{
    struct ndt_overheads cost = {0};
    const struct ndt_backend_ops *ops = candidate->backend ? candidate->backend->ops : NULL;
    const int has_overheads = ops && ops->overheads && bench_candidate_works(candidate);
    if (has_overheads)
        bench_candidate_fail(candidate, ops->overheads(candidate->backend, rounds, &cost, &candidate->why));
    const int works = bench_candidate_row(candidate, report, table);
    bench_number(table, "points", 0, (double)points);
    bench_bool(table, "repeated_points", points > measured_points);
    if (works) {
        const double eval_us = bench_median(&tally->eval_us);
        bench_number(table, "evaluation_us", 2, eval_us);
        bench_number(table, "p95_us", 2, bench_quantile(&tally->eval_us, 0.95));
        bench_number(table, "ns_per_point", 2, 1e3 * eval_us / (double)points);
        bench_number(table, "ns_per_pair", 2, 1e3 * eval_us / tally->sums.pairs);
    }
    if (works && has_overheads) {
        bench_number(table, "kernel_us", 2, bench_median(&tally->kernel_us));
        bench_number(table, "copies_us", 2, cost.copies_us);
        bench_number(table, "launch_us", 2, cost.launch_us);
        bench_number(table, "synchronise_us", 2, cost.synchronise_us);
        bench_number(table, "stage_us", 2, cost.stage_us);
        bench_number(table, "upload_us", 2, cost.upload_us);
        bench_number(table, "pageable_us", 2, cost.pageable_us);
    }
}

/* All candidates on one scan. */
static enum ndt_status measure(struct run *run, const struct ndt_cloud *scan, size_t measured_points,
                               const struct bench_options *options, struct bench_report *report,
                               struct bench_table *table, struct ndt_error *err)
{
    for (size_t i = 0; i < run->candidates->count; i++) {
        struct bench_candidate *candidate = &run->candidates->items[i];
        if (bench_candidate_works(candidate) && !run->tallies[i].is_left_out)
            bench_candidate_fail(candidate,
                                 candidate->backend->ops->set_scan(candidate->backend, scan, &candidate->why));
    }
    enum ndt_status status = bench_sample(run->candidates->count, WARM_UP, options->rounds, sample, run, err);
    for (size_t i = 0; i < run->candidates->count; i++) {
        struct tally *tally = &run->tallies[i];
        if (status == NDT_OK && !tally->is_left_out)
            put_row(&run->candidates->items[i], tally, scan->count, measured_points, (int)options->rounds, report,
                    table);
        bench_samples_free(&tally->eval_us, 1);
        bench_samples_free(&tally->kernel_us, 1);
    }
    return status;
}

/* Resident pipelines have the same evaluation: only the first one is measured, per settings. */
static void leave_out(struct run *run)
{
    for (size_t i = 0; i < run->candidates->count; i++) {
        const struct bench_candidate *one = &run->candidates->items[i];
        for (size_t k = 0; k < i; k++) {
            const struct bench_candidate *other = &run->candidates->items[k];
            run->tallies[i].is_left_out |=
                one->is_resident && other->is_resident &&
                memcmp(&one->setup.align, &other->setup.align, sizeof(one->setup.align)) == 0;
        }
    }
}

/* The points are picked from one unfiltered scan. */
enum ndt_status bench_overheads(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    static struct run run;
    const struct bench_options *options = source->options;
    struct ndt_preprocess_params unfiltered = options->preprocess;
    struct ndt_cloud scan;
    size_t most = 1;
    unfiltered.voxel_m = 0;
    unfiltered.sample_count = 0;
    ndt_cloud_init(&scan);
    for (size_t i = 0; i < options->points.count; i++)
        most = most < options->points.values[i] ? options->points.values[i] : most;
    enum ndt_status status = bench_source_scans(source, &unfiltered, source->recording ? 0 : most, err);
    if (status == NDT_OK)
        status = bench_candidates_open(source, most, err);
    if (status == NDT_OK && source->candidates.count > MOST_TALLIES)
        status = ndt_fail(err, NDT_ERR_LIMIT, "more than %d combinations", MOST_TALLIES);
    if (status != NDT_OK)
        return status;
    bench_source_report(source, report);
    struct bench_table *table = bench_report_table(
        report, "overheads", "One evaluation: on the finest level, and on a device its overheads; medians");
    const struct bench_scan *first = &source->scans[0].items[0];
    run = (struct run){.candidates = &source->candidates, .T_map_sensor = first->T_map_sensor};
    leave_out(&run);
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        status = make_scan(&scan, &first->cloud, options->points.values[i], options->seed, err);
        if (status == NDT_OK)
            status = measure(&run, &scan, first->cloud.count, options, report, table, err);
    }
    if (report->device_rows == 0)
        bench_note(table, "Kernels, copies, launch and wait: no backend on a device was measured.");
    if (most > first->cloud.count)
        bench_note(table, "The scan has %zu points. Beyond them its points are repeated, each moved by up to 2 cm.",
                   first->cloud.count);
    ndt_cloud_free(&scan);
    return status;
}

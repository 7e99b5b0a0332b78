/** @file
 * @brief poses: one scan scored at many poses in one call, compared with one evaluation per pose. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ndt/clock.h"

/* Evaluations that stand for all. */
enum { EVALUATED = 8 };

/* Measurements of one candidate. */
struct tally {
    struct bench_samples scored_ms, kernel_us, evaluation_us;
    uint64_t launches, pairs;
    int is_different; /* its result differs from that of the plain C */
};
/* Results for one number of poses. */
struct run {
    const struct bench_options *options;
    const struct bench_scan *scan;
    struct bench_candidates *candidates;
    size_t count;
    struct ndt_pose *poses;
    struct ndt_pose_score *scores;
    struct tally *tallies;
};

static void make_poses(const struct run *run, size_t round)
{
    for (size_t i = 0; i < run->count; i++)
        run->poses[i] = bench_start(run->options->seed, round * run->count + i, &run->scan->T_map_sensor,
                                    &run->options->offsets.items[0]);
}

static struct ndt_score_job job_of(const struct run *run, const struct bench_candidate *candidate)
{
    const struct ndt_align_params *params = &candidate->setup.align;
    const struct ndt_align_level *level = &params->levels[params->level_count - 1];
    return (struct ndt_score_job){.leaf_m = level->leaf_m,
                                  .neighbours = level->neighbours,
                                  .scan = &run->scan->cloud,
                                  .count = run->count,
                                  .T_map_sensor = run->poses};
}

/* The plain C at the first poses: that many take long enough. */
static int has_bits_of_plain(const struct run *run, const struct bench_candidate *candidate)
{
    struct ndt_score_pose poses[EVALUATED];
    struct ndt_pose_score plain[EVALUATED];
    const struct ndt_score_job job = job_of(run, candidate);
    const struct ndt_score_request request = {.level = ndt_map_find_level(candidate->map, job.leaf_m),
                                              .neighbours = job.neighbours,
                                              .count = run->count < EVALUATED ? run->count : EVALUATED,
                                              .poses = poses};
    size_t done = 0;
    for (size_t i = 0; i < request.count; i++) {
        ndt_pose_rotation(&run->poses[i], poses[i].R);
        for (int k = 0; k < 3; k++)
            poses[i].t_m[k] = run->poses[i].t_m[k] - candidate->map->origin_m[k];
    }
    return ndt_score_poses_plain(candidate->map, job.scan, &request, plain, &done, NULL) == NDT_OK &&
           memcmp(plain, run->scores, done * sizeof(*plain)) == 0;
}

static enum ndt_status evaluate(struct run *run, struct bench_candidate *candidate, double *took_us)
{
    const double start_us = ndt_clock_us();
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < EVALUATED; i++) {
        const struct ndt_eval_request request = bench_candidate_request(candidate, &run->poses[i % run->count]);
        struct ndt_eval sums;
        status = candidate->backend->ops->eval(candidate->backend, &request, &sums, &candidate->why);
    }
    *took_us = (ndt_clock_us() - start_us) / EVALUATED;
    return status;
}

static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct bench_candidate *candidate = &run->candidates->items[item];
    struct tally *tally = &run->tallies[item];
    struct ndt_backend_counters before, after;
    double evaluation_us = 0;
    size_t done;
    (void)err;
    if (!bench_candidate_works(candidate))
        return NDT_OK;
    make_poses(run, round);
    const struct ndt_score_job job = job_of(run, candidate);
    bench_candidate_counters(candidate, &before);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_aligner_score(candidate->aligner, &job, run->scores, &done, &candidate->why);
    const double took_ms = (ndt_clock_us() - start_us) * 1e-3;
    bench_candidate_counters(candidate, &after);
    if (status == NDT_OK)
        status = evaluate(run, candidate, &evaluation_us); /* the scan is set */
    bench_candidate_fail(candidate, status);
    if (status != NDT_OK || !is_counted)
        return NDT_OK;
    tally->is_different |= !has_bits_of_plain(run, candidate);
    tally->launches += after.launches - before.launches;
    for (size_t i = 0; i < run->count; i++)
        tally->pairs += run->scores[i].pairs;
    bench_samples_add(&tally->scored_ms, took_ms);
    bench_samples_add(&tally->kernel_us, bench_candidate_kernel_us(candidate, &before, &after));
    bench_samples_add(&tally->evaluation_us, evaluation_us);
    return NDT_OK;
}

static void put_row(const struct run *run, const struct bench_candidate *candidate, struct tally *tally,
                    struct bench_report *report, struct bench_table *table)
{
    const double poses = (double)run->count, points = (double)run->scan->cloud.count;
    const double rounds = (double)tally->scored_ms.count;
    const int works = bench_candidate_row(candidate, report, table);
    bench_number(table, "points", 0, points);
    bench_number(table, "poses", 0, poses);
    if (works && rounds > 0) {
        const double scored_ms = bench_median(&tally->scored_ms);
        bench_number(table, "scored_ms", 3, scored_ms);
        bench_number(table, "p95_ms", 3, bench_quantile(&tally->scored_ms, 0.95));
        if (candidate->is_device)
            bench_number(table, "kernel_us", 1, bench_median(&tally->kernel_us));
        bench_number(table, "per_pose_us", 3, 1e3 * scored_ms / poses);
        bench_number(table, "ns_per_point", 2, 1e6 * scored_ms / (poses * points));
        bench_number(table, "evaluation_us", 2, bench_median(&tally->evaluation_us));
        bench_number(table, "pairs", 1, (double)tally->pairs / (rounds * poses * points));
        bench_number(table, "launches", 1, (double)tally->launches / rounds);
        bench_bool(table, "same_bits", !tally->is_different);
        report->failures += tally->is_different != 0;
    }
    bench_samples_free(&tally->scored_ms, 1);
    bench_samples_free(&tally->kernel_us, 1);
    bench_samples_free(&tally->evaluation_us, 1);
}

static enum ndt_status measure(struct run *run, struct bench_report *report, struct bench_table *table,
                               struct ndt_error *err)
{
    const size_t candidates = run->candidates->count;
    run->poses = calloc(run->count, sizeof(*run->poses));
    run->scores = calloc(run->count, sizeof(*run->scores));
    run->tallies = calloc(candidates, sizeof(*run->tallies));
    enum ndt_status status = NDT_OK;
    if (!run->poses || !run->scores || !run->tallies)
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu poses", run->count);
    if (status == NDT_OK)
        status = bench_sample(candidates, 1, run->options->rounds, sample, run, err);
    for (size_t i = 0; run->tallies && i < candidates; i++)
        put_row(run, &run->candidates->items[i], &run->tallies[i], report, table);
    free(run->poses);
    free(run->scores);
    free(run->tallies);
    return status;
}

enum ndt_status bench_poses(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    enum ndt_status status = NDT_OK;
    size_t most = 1;
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        status = bench_source_scans(source, &options->preprocess, options->points.values[i], err);
        most = most < options->points.values[i] ? options->points.values[i] : most;
    }
    if (status == NDT_OK)
        status = bench_candidates_open(source, most, err);
    if (status != NDT_OK)
        return status;
    bench_source_report(source, report);
    struct bench_table *table = bench_report_table(
        report, "poses", "One scan scored at many poses on the finest level, and one evaluation; medians");
    for (size_t i = 0; i < source->scans_count; i++)
        for (size_t k = 0; status == NDT_OK && k < options->sizes.count; k++) {
            struct run run = {.options = options,
                              .scan = &source->scans[i].items[0],
                              .candidates = &source->candidates,
                              .count = options->sizes.values[k]};
            status = measure(&run, report, table, err);
        }
    return status;
}

/** @file
 * @brief drive: every candidate follows the scans twice. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "ndt/hash.h"

static const double LIMIT_MM = 1, LIMIT_DEG = 0.01;

enum metric { ALIGN_US, ITERATION_US, EVALUATIONS, METRICS };
struct pass {
    struct ndt_pose *poses;
    struct bench_samples samples[METRICS];
};

/* The guess of a scan repeats the motion between the two scans before it. */
static enum ndt_status follow(struct bench_candidate *candidate, const struct bench_scans *scans, struct pass *pass,
                              struct ndt_error *err)
{
    struct ndt_pose guess = scans->items[0].T_map_sensor, step = ndt_pose_identity();
    pass->poses = calloc(scans->count, sizeof(*pass->poses));
    if (!pass->poses)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu poses", scans->count);
    for (size_t i = 0; bench_candidate_works(candidate) && i < scans->count; i++) {
        struct ndt_align_result result;
        size_t count = 0;
        bench_candidate_fail(candidate, ndt_align(candidate->aligner, &candidate->setup.align,
                                                  &scans->items[i].cloud, &guess, &result, &candidate->why));
        if (!candidate->is_broken && result.outcome != NDT_CONVERGED)
            bench_candidate_fail(candidate, ndt_fail(&candidate->why, NDT_ERR_DEVICE, "scan %zu: %s %s", i,
                                                     ndt_outcome_name(result.outcome), result.reason));
        if (candidate->is_broken)
            break;
        pass->poses[i] = result.T_map_sensor;
        if (i > 0)
            step = ndt_pose_between(&pass->poses[i - 1], &pass->poses[i]);
        guess = ndt_pose_compose(&pass->poses[i], &step);
        bench_samples_add(&pass->samples[ALIGN_US], result.align_us);
        bench_samples_add(&pass->samples[EVALUATIONS], result.evaluations);
        const struct ndt_iteration *rows = ndt_aligner_trace(candidate->aligner, &count);
        for (size_t k = 0; k < count; k++)
            bench_samples_add(&pass->samples[ITERATION_US], rows[k].eval_us + rows[k].solve_us);
    }
    return NDT_OK;
}

/* cpu: the poses of the first candidate. The times are those of the second pass, with warm caches. */
static void put_row(struct bench_candidate *candidate, const struct bench_scans *scans, struct pass passes[2],
                    const struct ndt_pose *cpu, struct bench_report *report, struct bench_table *table)
{
    const size_t bytes = scans->count * sizeof(struct ndt_pose);
    const int works = bench_candidate_row(candidate, report, table);
    bench_number(table, "points", 0, (double)scans->points);
    bench_text(table, "about", "%s", candidate->about);
    if (!works) {
        bench_text(table, "verdict", "%s", candidate->is_broken ? "FAIL" : "not here");
        return;
    }
    double off_mm = 0, off_deg = 0;
    for (size_t i = 0; i < scans->count; i++) {
        off_mm = fmax(off_mm, 1e3 * ndt_pose_distance_m(&passes[1].poses[i], &cpu[i]));
        off_deg = fmax(off_deg, ndt_pose_angle_rad(&passes[1].poses[i], &cpu[i]) / BENCH_DEG);
    }
    const uint64_t first = ndt_hash64(passes[0].poses, bytes, 0), again = ndt_hash64(passes[1].poses, bytes, 0);
    const int is_good = first == again && off_mm <= LIMIT_MM && off_deg <= LIMIT_DEG;
    report->failures += !is_good;
    bench_text(table, "verdict", "%s", is_good ? "ok" : "FAIL");
    bench_number(table, "align_us", 1, bench_median(&passes[1].samples[ALIGN_US]));
    bench_number(table, "iteration_us", 1, bench_median(&passes[1].samples[ITERATION_US]));
    bench_number(table, "evaluations", 1, bench_mean(&passes[1].samples[EVALUATIONS]));
    bench_number(table, "off_mm", 4, off_mm);
    bench_number(table, "off_deg", 5, off_deg);
    bench_text(table, "hash", "%016llx", (unsigned long long)first);
    bench_text(table, "hash_again", "%016llx", (unsigned long long)again);
}

/* All candidates on scans of one size. */
static enum ndt_status drive(struct bench_candidates *candidates, const struct bench_scans *scans,
                             struct bench_report *report, struct bench_table *table, struct ndt_error *err)
{
    struct ndt_pose *cpu = NULL;
    enum ndt_status status = NDT_OK;
    if (scans->count < 2)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "drive: 2 scans are needed at least");
    for (size_t c = 0; status == NDT_OK && c < candidates->count; c++) {
        struct bench_candidate *candidate = &candidates->items[c];
        struct pass passes[2] = {{0}, {0}};
        for (int i = 0; status == NDT_OK && i < 2; i++)
            status = follow(candidate, scans, &passes[i], err);
        if (status == NDT_OK)
            put_row(candidate, scans, passes, cpu ? cpu : passes[1].poses, report, table);
        if (!cpu) {
            cpu = passes[1].poses;
            passes[1].poses = NULL;
        }
        for (int i = 0; i < 2; i++) {
            free(passes[i].poses);
            bench_samples_free(passes[i].samples, METRICS);
        }
    }
    free(cpu);
    return status;
}

enum ndt_status bench_drive(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    enum ndt_status status = bench_source_prepare(source, report, err);
    if (status != NDT_OK)
        return status;
    struct bench_table *table = bench_report_table(
        report, "drive",
        "Drive: from pose to pose, twice; required: the same bits twice, and poses within 1 mm and "
        "0.01 deg of the first backend; medians of the second pass");
    for (size_t i = 0; status == NDT_OK && i < source->scans_count; i++)
        status = drive(&source->candidates, &source->scans[i], report, table, err);
    return status;
}

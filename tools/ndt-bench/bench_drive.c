#include <math.h>
#include <stdlib.h>

#include "bench_commands.h"
#include "ndt/clock.h"
#include "ndt/hash.h"

static const double LIMIT_MM = 1, LIMIT_DEG = 0.01;

struct pass {
    struct ndt_pose *poses;
    struct bench_samples align_us, iteration_us, evaluations;
};

static void free_pass(struct pass *pass)
{
    free(pass->poses);
    bench_samples_free(&pass->align_us);
    bench_samples_free(&pass->iteration_us);
    bench_samples_free(&pass->evaluations);
}

/* Predicts the next pose with the previous step. */
static enum ndt_status follow(struct bench_candidate *candidate, const struct bench_scans *scans, struct pass *pass,
                              struct ndt_error *err)
{
    struct ndt_pose guess = scans->items[0].T_map_sensor, step = ndt_pose_identity();
    enum ndt_status status = NDT_OK;
    pass->poses = calloc(scans->count, sizeof(*pass->poses));
    if (!pass->poses)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu poses", scans->count);
    for (size_t i = 0; status == NDT_OK && bench_candidate_works(candidate) && i < scans->count; i++) {
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
        status = bench_samples_add(&pass->align_us, result.align_us, err);
        if (status == NDT_OK)
            status = bench_samples_add(&pass->evaluations, result.evaluations, err);
        const struct ndt_iteration *rows = ndt_aligner_trace(candidate->aligner, &count);
        for (size_t k = 0; status == NDT_OK && k < count; k++)
            status = bench_samples_add(&pass->iteration_us, rows[k].eval_us + rows[k].solve_us, err);
    }
    return status;
}

/* cpu: the poses of the first candidate. The times are those of the second pass, after the warm-up. */
static void put_row(struct bench_candidate *candidate, const struct bench_scans *scans, struct pass passes[2],
                    const struct ndt_pose *cpu, struct bench_report *report, struct bench_table *table)
{
    const size_t bytes = scans->count * sizeof(struct ndt_pose);
    const int works = bench_candidate_columns(candidate, report, table);
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
    bench_number(table, "align_us", 1, bench_median(&passes[1].align_us));
    bench_number(table, "iteration_us", 1, bench_median(&passes[1].iteration_us));
    bench_number(table, "evaluations", 1, bench_mean(&passes[1].evaluations));
    bench_number(table, "off_mm", 4, off_mm);
    bench_number(table, "off_deg", 5, off_deg);
    bench_text(table, "hash", "%016llx", (unsigned long long)first);
    bench_text(table, "hash_again", "%016llx", (unsigned long long)again);
}

/* On one number of points. */
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
        free_pass(&passes[0]);
        free_pass(&passes[1]);
    }
    free(cpu);
    return status;
}

enum ndt_status bench_drive(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    const size_t sizes = options->points.count ? options->points.count : 1;
    struct bench_scans scans[BENCH_MAX_ITEMS] = {{0}};
    struct bench_candidates candidates = {0};
    enum ndt_status status = NDT_OK;
    size_t most = 0;
    for (size_t i = 0; status == NDT_OK && i < sizes; i++) {
        status = bench_source_scans(source, options->points.count ? options->points.values[i] : 0, &scans[i], err);
        most = most < scans[i].points ? scans[i].points : most;
    }
    if (status == NDT_OK)
        status = bench_candidates_open(&candidates, source, "all", most, err);
    if (status == NDT_OK) {
        bench_source_report(source, scans, sizes, report);
        struct bench_table *table = bench_report_table(
            report, "drive",
            "Drive: tracking, two passes; expected: bit-identical passes, and the first backend's "
            "poses within 1 mm and 0.01 deg; medians of the second pass");
        for (size_t i = 0; status == NDT_OK && i < sizes; i++)
            status = drive(&candidates, &scans[i], report, table, err);
    }
    bench_candidates_close(&candidates);
    for (size_t i = 0; i < sizes; i++)
        bench_scans_free(&scans[i]);
    return status;
}

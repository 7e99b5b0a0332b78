/** @file
 * @brief align, basin and evaluations: whole alignments from wrong starts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "bench_peer.h"
#include "ndt/clock.h"
#include "ndt/hash.h"

enum { WARM_UP = 3 };

enum metric {
    ALIGN_MS,
    UPLOAD_US,
    KERNEL_US,
    EVAL_US,
    PAIRS,
    EVALUATIONS,
    ITERATIONS,
    ERROR_CM,  /* error of the recovered starts */
    ERROR_DEG, /* error of the recovered starts */
    METRICS
};
/* One row of the table. */
struct row {
    struct bench_candidate *candidate; /* NULL: the peer */
    const struct bench_scans *scans;
    const struct bench_offset *offset;
    size_t reference; /* first row with the same starts and settings, with whose poses this one is compared */
    struct bench_samples samples[METRICS];
    size_t recovered, false_converged; /* the latter: converged, but not recovered */
    struct ndt_pose *poses;            /* poses of every round */
    void *peer_state;
};
struct run {
    struct bench_source *source;
    size_t row_count;
    struct row *rows;
    const struct bench_peer_ops *peer;
    double peer_leaf_m;
};

static void to_matrix(const struct ndt_pose *pose, const double origin_m[3], double T[16])
{
    double R[9];
    ndt_pose_rotation(pose, R);
    for (int i = 0; i < 3; i++) {
        memcpy(T + 4 * i, R + 3 * i, 3 * sizeof(double));
        T[4 * i + 3] = pose->t_m[i] - origin_m[i];
        T[12 + i] = 0;
    }
    T[15] = 1;
}

static struct ndt_pose from_matrix(const double T[16], const double origin_m[3])
{
    double R[9], t_m[3];
    for (int i = 0; i < 3; i++) {
        memcpy(R + 3 * i, T + 4 * i, 3 * sizeof(double));
        t_m[i] = T[4 * i + 3] + origin_m[i];
    }
    return ndt_pose_from_rotation(R, t_m);
}

static enum ndt_status align_peer(const struct run *run, const struct row *row, const struct ndt_cloud *points,
                                  const struct ndt_pose *guess, struct ndt_align_result *out, double *took_us,
                                  struct ndt_error *err)
{
    const double *origin_m = run->source->map_points.origin_m;
    const struct bench_peer_points scan = {points->x_m, points->y_m, points->z_m, points->count};
    struct bench_peer_result result;
    double T[16];
    char why[256] = "";
    to_matrix(guess, origin_m, T);
    if (!run->peer->align(row->peer_state, &scan, T, &result, why, sizeof(why)))
        return ndt_fail(err, NDT_ERR_DEVICE, "%s", why);
    out->T_map_sensor = from_matrix(result.T, origin_m);
    out->outcome = result.converged ? NDT_CONVERGED : NDT_ITERATION_LIMIT;
    out->iterations = result.iterations;
    *took_us = result.took_us;
    return NDT_OK;
}

/* The second of two evaluations; the first one warms up. */
static void evaluate(struct row *row, const struct ndt_cloud *points, const struct ndt_pose *guess)
{
    struct bench_candidate *candidate = row->candidate;
    const struct ndt_backend_ops *ops = candidate->backend->ops;
    const struct ndt_eval_request request = bench_candidate_request(candidate, guess);
    struct ndt_eval sums = {0};
    double took_us = 0;
    enum ndt_status status = ops->set_scan(candidate->backend, points, &candidate->why);
    for (int i = 0; status == NDT_OK && i < 2; i++) {
        const double start_us = ndt_clock_us();
        status = ops->eval(candidate->backend, &request, &sums, &candidate->why);
        took_us = ndt_clock_us() - start_us;
    }
    bench_candidate_fail(candidate, status);
    bench_samples_add(&row->samples[EVAL_US], took_us);
    bench_samples_add(&row->samples[PAIRS], sums.pairs);
}

static void note_result(struct row *row, const struct ndt_align_result *result, const struct ndt_pose *truth,
                        double took_us, double kernel_us)
{
    double off_m, off_deg;
    const int is_good = bench_is_recovered(&result->T_map_sensor, truth, &off_m, &off_deg);
    row->poses[row->samples[ALIGN_MS].count] = result->T_map_sensor;
    row->recovered += is_good ? 1 : 0;
    row->false_converged += !is_good && result->outcome == NDT_CONVERGED ? 1 : 0;
    bench_samples_add(&row->samples[ALIGN_MS], took_us * 1e-3);
    bench_samples_add(&row->samples[ITERATIONS], result->iterations);
    if (row->candidate) {
        bench_samples_add(&row->samples[EVALUATIONS], result->evaluations);
        bench_samples_add(&row->samples[UPLOAD_US], result->upload_us);
        bench_samples_add(&row->samples[KERNEL_US], kernel_us);
    }
    if (is_good) {
        bench_samples_add(&row->samples[ERROR_CM], 100 * off_m);
        bench_samples_add(&row->samples[ERROR_DEG], off_deg);
    }
}

/* Spinning workers of the row before may occupy a core that this row needs; a device lowers its clocks in a rest.
 */
static void rest_before(double rest_ms, double spin_us)
{
    const double pause_us = fmax(1e3 * rest_ms, spin_us + 50.0);
    const struct timespec pause = {(time_t)(pause_us * 1e-6), (long)(fmod(pause_us, 1e6) * 1e3)};
    (void)nanosleep(&pause, NULL);
}

/* Warm-up rounds use the first start. */
static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct row *row = &run->rows[item];
    const struct bench_options *options = run->source->options;
    const size_t start = is_counted ? round - WARM_UP : 0;
    const struct bench_scan *scan = &row->scans->items[start % row->scans->count];
    const struct ndt_pose guess = bench_start(options->seed, start, &scan->T_map_sensor, row->offset);
    struct ndt_align_result result = {0};
    double took_us = 0, kernel_us = 0;
    if (row->candidate && !bench_candidate_works(row->candidate))
        return NDT_OK;
    rest_before(options->rest_ms, options->setup.config.spin_us);
    if (row->candidate) {
        if (!bench_candidate_align(row->candidate, &row->candidate->setup.align, &scan->cloud, &guess, &result,
                                   &took_us, &kernel_us))
            return NDT_OK;
        if (is_counted && !options->is_basin)
            evaluate(row, &scan->cloud, &guess);
        if (!bench_candidate_works(row->candidate))
            return NDT_OK;
    } else {
        enum ndt_status status = align_peer(run, row, &scan->cloud, &guess, &result, &took_us, err);
        if (status != NDT_OK)
            return status;
    }
    if (is_counted)
        note_result(row, &result, &scan->T_map_sensor, took_us, kernel_us);
    return NDT_OK;
}

/* ---- rows ---- */

static int has_same_settings(const struct bench_candidate *a, const struct bench_candidate *b)
{
    return memcmp(&a->setup.align, &b->setup.align, sizeof(a->setup.align)) == 0 && a->map == b->map;
}

static enum ndt_status add_row(struct run *run, struct bench_candidate *candidate, size_t scans, size_t offset,
                               struct ndt_error *err)
{
    const struct bench_options *options = run->source->options;
    struct row *row = &run->rows[run->row_count];
    *row = (struct row){.candidate = candidate,
                        .scans = &run->source->scans[scans],
                        .offset = &options->offsets.items[offset],
                        .poses = calloc((size_t)options->rounds, sizeof(*row->poses))};
    for (const struct row *first = run->rows; first != row; first++, row->reference++)
        if (first->scans == row->scans && first->offset == row->offset && candidate &&
            has_same_settings(first->candidate, candidate))
            break;
    run->row_count++;
    if (!row->poses)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %llu poses", (unsigned long long)options->rounds);
    return NDT_OK;
}

/* The peer uses the finest level of the first candidate and the points from which its map is built. */
static enum ndt_status add_peers(struct run *run, struct ndt_error *err)
{
    const struct ndt_cloud *map = &run->source->map_points;
    const struct ndt_align_params *first = &run->source->candidates.items[0].setup.align;
    const struct bench_peer_points points = {map->x_m, map->y_m, map->z_m, map->count};
    enum ndt_status status = NDT_OK;
    char why[256] = "";
#ifdef NDT_HAVE_PCL
    run->peer = &bench_peer_pcl;
#endif
    if (!run->peer)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                        "--peer pcl: this build has no PCL; install libpcl-dev and a C++ compiler and configure "
                        "again");
    if (points.count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--peer pcl: the map must be a cloud file, unlike %s",
                        run->source->options->map);
    run->peer_leaf_m = first->levels[first->level_count - 1].leaf_m;
    for (size_t i = 0; status == NDT_OK && i < run->source->scans_count; i++) {
        status = add_row(run, NULL, i, 0, err);
        struct row *row = &run->rows[run->row_count - 1];
        row->peer_state = run->peer->open(&points, run->peer_leaf_m, why, sizeof(why));
        if (!row->peer_state)
            return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s", why);
    }
    return status;
}

static enum ndt_status prepare(struct run *run, struct bench_report *report, struct ndt_error *err)
{
    struct bench_source *source = run->source;
    const struct bench_options *options = source->options;
    struct bench_candidates *candidates = &source->candidates;
    enum ndt_status status = bench_source_prepare(source, report, err);
    if (status != NDT_OK)
        return status;
    run->rows = calloc((candidates->count * options->offsets.count + 1) * source->scans_count, sizeof(*run->rows));
    if (!run->rows)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the rows");
    for (size_t c = 0; c < candidates->count; c++)
        for (size_t i = 0; i < source->scans_count; i++)
            for (size_t k = 0; status == NDT_OK && k < options->offsets.count; k++)
                status = add_row(run, &candidates->items[c], i, k, err);
    return status == NDT_OK && options->has_peer ? add_peers(run, err) : status;
}

/* ---- the table ---- */

/* Targets for whole alignments of one level on a data-centre GPU; not for the emulation, which has another name. */
static double wanted_ms(const struct row *row)
{
    static const struct {
        size_t points;
        double ms;
    } wanted[] = {{756, 0.1}, {5000, 0.15}, {20000, 0.3}};
    const struct bench_candidate *candidate = row->candidate;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (wanted[i].points == row->scans->points && candidate->setup.align.level_count == 1 &&
            candidate->setup.align.levels[0].leaf_m == 2 && candidate->is_resident &&
            strncmp(candidate->name, "cuda ", 5) == 0)
            return wanted[i].ms;
    return 0;
}

/* Distance to the poses of the reference row; resident pipelines must have the bits of the first one among them. */
static void compare_poses(const struct run *run, const struct row *row, struct bench_report *report,
                          struct bench_table *table)
{
    const struct row *first = &run->rows[row->reference];
    const size_t bytes = row->samples[ALIGN_MS].count * sizeof(*row->poses);
    double off_mm = 0;
    for (size_t i = 0; i < row->samples[ALIGN_MS].count && i < first->samples[ALIGN_MS].count; i++)
        off_mm = fmax(off_mm, 1e3 * ndt_pose_distance_m(&row->poses[i], &first->poses[i]));
    bench_number(table, "off_mm", 4, off_mm);
    bench_text(table, "hash", "%016llx", (unsigned long long)ndt_hash64(row->poses, bytes, 0));
    for (size_t i = row->reference; row->candidate->is_resident && i < run->row_count; i++) {
        const struct row *other = &run->rows[i];
        if (other->reference != row->reference || !other->candidate->is_resident ||
            !bench_candidate_works(other->candidate))
            continue;
        const int is_same = memcmp(other->poses, row->poses, bytes) == 0;
        bench_bool(table, "same_bits", is_same);
        report->failures += !is_same;
        return;
    }
}

static void put_row(struct run *run, struct row *row, struct bench_report *report, struct bench_table *table)
{
    struct bench_samples *samples = row->samples;
    const double rounds = (double)samples[ALIGN_MS].count;
    int works = 1;
    if (row->candidate) {
        works = bench_candidate_row(row->candidate, report, table);
    } else {
        bench_row(report, table);
        bench_text(table, "variant", "%s", run->peer->name);
        bench_text(table, "levels", "%g", run->peer_leaf_m);
        bench_text(table, "neighbours", "radius");
        bench_text(table, "backend", "1 thread");
    }
    bench_number(table, "points", 0, (double)row->scans->points);
    if (run->source->options->is_basin)
        bench_text(table, "off_by_up_to", "%g m %g deg", row->offset->shift_m, row->offset->turn_deg);
    if (run->source->options->rest_ms > 0)
        bench_number(table, "rest_ms", 0, run->source->options->rest_ms);
    if (!works || rounds == 0)
        return;
    bench_number(table, "align_ms", 3, bench_median(&samples[ALIGN_MS]));
    bench_number(table, "p95_ms", 3, bench_quantile(&samples[ALIGN_MS], 0.95));
    if (row->candidate && wanted_ms(row) > 0)
        bench_text(table, "wanted", "<= %g ms: %s", wanted_ms(row),
                   bench_median(&samples[ALIGN_MS]) <= wanted_ms(row) ? "met" : "missed");
    bench_number(table, "success_percent", 1, 100 * (double)row->recovered / rounds);
    bench_number(table, "believed_wrong_percent", 1, 100 * (double)row->false_converged / rounds);
    bench_number(table, "error_cm", 2, bench_median(&samples[ERROR_CM]));
    bench_number(table, "error_deg", 3, bench_median(&samples[ERROR_DEG]));
    bench_number(table, "iterations", 1, bench_mean(&samples[ITERATIONS]));
    if (!row->candidate)
        return;
    bench_number(table, "evaluations", 1, bench_mean(&samples[EVALUATIONS]));
    bench_number(table, "upload_us", 1, bench_median(&samples[UPLOAD_US]));
    bench_number(table, "kernel_us", 1, bench_median(&samples[KERNEL_US]));
    if (samples[EVAL_US].count) {
        bench_number(table, "eval_us", 1, bench_median(&samples[EVAL_US]));
        bench_number(table, "ns_per_pair", 2,
                     1e3 * bench_median(&samples[EVAL_US]) / bench_median(&samples[PAIRS]));
    }
    compare_poses(run, row, report, table);
}

/* Ratios of the medians: several threads to one thread, and candidates to the peer. */
static void put_ratios(struct run *run, struct bench_table *table)
{
    for (size_t i = 0; i < run->row_count; i++)
        for (size_t k = 0; k < run->row_count; k++) {
            struct row *row = &run->rows[i], *other = &run->rows[k];
            if (!row->candidate || row->scans != other->scans || row->offset != other->offset ||
                row->samples[ALIGN_MS].count == 0 || other->samples[ALIGN_MS].count == 0)
                continue;
            const double ratio = bench_median(&other->samples[ALIGN_MS]) / bench_median(&row->samples[ALIGN_MS]);
            const struct bench_candidate *mine = row->candidate, *its = other->candidate;
            if (!its)
                bench_note(table, "%s, %zu points: %.1f times as fast as %s", mine->name, row->scans->points, ratio,
                           run->peer->name);
            else if (strcmp(its->backend->ops->name, mine->backend->ops->name) == 0 && !mine->is_device &&
                     its->setup.config.threads == 1 && mine->setup.config.threads > 1 &&
                     has_same_settings(mine, its))
                bench_note(table, "%s, %zu points: %.2f times one thread", mine->name, row->scans->points, ratio);
        }
}

static void close_run(struct run *run)
{
    for (size_t i = 0; i < run->row_count; i++) {
        bench_samples_free(run->rows[i].samples, METRICS);
        free(run->rows[i].poses);
        if (run->rows[i].peer_state)
            run->peer->close(run->rows[i].peer_state);
    }
    free(run->rows);
}

enum ndt_status bench_align(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const int is_basin = source->options->is_basin;
    struct run run = {.source = source};
    char title[300];
    enum ndt_status status = prepare(&run, report, err);
    if (status == NDT_OK)
        status = bench_sample(run.row_count, WARM_UP, source->options->rounds, sample, &run, err);
    if (status == NDT_OK) {
        snprintf(title, sizeof(title),
                 "%s: whole alignments from starts within %s of the truth; success: the result is within %g m and "
                 "%g deg; believed_wrong: converged elsewhere; errors of the successes; medians, counts are means",
                 is_basin ? "Basin of convergence" : "Alignments", is_basin ? "off_by_up_to" : "--offsets",
                 BENCH_SUCCESS_M, BENCH_SUCCESS_DEG);
        struct bench_table *table = bench_report_table(report, is_basin ? "basin" : "align", title);
        for (size_t i = 0; i < run.row_count; i++)
            put_row(&run, &run.rows[i], report, table);
        if (run.peer)
            bench_note(table, "%s: %s", run.peer->name, run.peer->about);
        put_ratios(&run, table);
    }
    close_run(&run);
    return status;
}

/* ---- cost per evaluation ---- */

enum { CUTS = 6 };

/* Fits y = once + slope * x by least squares. */
static void fit(const double x[CUTS], const double y[CUTS], double *once, double *slope)
{
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
    for (int i = 0; i < CUTS; i++) {
        mean_x += x[i] / CUTS;
        mean_y += y[i] / CUTS;
    }
    for (int i = 0; i < CUTS; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    *slope = xy / xx; /* NaN when all evaluation counts are equal */
    *once = mean_y - *slope * mean_x;
}

/* A candidate with alignments that stop after different numbers of iterations: one row. */
struct cuts {
    struct bench_candidate *candidate;
    const struct bench_options *options;
    const struct bench_scan *scan;
    struct bench_samples align_us[CUTS], kernel_us[CUTS];
    double evaluations[CUTS];
};

/* 2, 5, 8 .. iterations from one start, without early termination or line search. */
static enum ndt_status sample_cut(void *context, size_t cut, size_t round, int is_counted, struct ndt_error *err)
{
    struct cuts *cuts = context;
    const struct bench_options *options = cuts->options;
    const struct ndt_pose guess =
        bench_start(options->seed, 0, &cuts->scan->T_map_sensor, &options->offsets.items[0]);
    struct ndt_align_params params = cuts->candidate->setup.align;
    struct ndt_align_result result;
    double took_us, kernel_us;
    (void)round, (void)err;
    params.fine_stop_m = params.fine_stop_rad = params.fine_stop_gain = 0;
    params.max_line_search_steps = 1;
    params.max_iterations = 2 + 3 * (int)cut;
    if (!bench_candidate_works(cuts->candidate) ||
        !bench_candidate_align(cuts->candidate, &params, &cuts->scan->cloud, &guess, &result, &took_us,
                               &kernel_us) ||
        !is_counted)
        return NDT_OK;
    cuts->evaluations[cut] = result.evaluations;
    bench_samples_add(&cuts->align_us[cut], took_us);
    bench_samples_add(&cuts->kernel_us[cut], kernel_us);
    return NDT_OK;
}

static enum ndt_status measure_cuts(struct bench_candidate *candidate, const struct bench_scans *scans,
                                    const struct bench_options *options, struct bench_report *report,
                                    struct bench_table *table, struct ndt_error *err)
{
    struct cuts cuts = {.candidate = candidate, .options = options, .scan = &scans->items[0]};
    double align_us[CUTS], kernel_us[CUTS], once_us = 0, slope_us = 0;
    enum ndt_status status = bench_sample(CUTS, 1, options->rounds, sample_cut, &cuts, err);
    for (int i = 0; i < CUTS; i++) {
        align_us[i] = bench_median(&cuts.align_us[i]);
        kernel_us[i] = bench_median(&cuts.kernel_us[i]);
    }
    bench_samples_free(cuts.align_us, CUTS);
    bench_samples_free(cuts.kernel_us, CUTS);
    const int works = bench_candidate_row(candidate, report, table);
    bench_number(table, "points", 0, (double)scans->points);
    if (!works)
        return status;
    fit(cuts.evaluations, align_us, &once_us, &slope_us);
    bench_number(table, "per_evaluation_us", 2, slope_us);
    bench_number(table, "once_us", 1, once_us);
    fit(cuts.evaluations, kernel_us, &once_us, &slope_us);
    bench_number(table, "kernel_per_evaluation_us", 2, slope_us);
    bench_number(table, "kernel_once_us", 1, once_us);
    return status;
}

/* Needs one level: the stopping rules of coarser levels would end the alignment. */
enum ndt_status bench_evaluations(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_candidates *candidates = &source->candidates;
    enum ndt_status status = bench_source_prepare(source, report, err);
    if (status == NDT_OK && candidates->items[0].setup.align.level_count > 1)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "evaluations: give one level, such as --levels 2");
    if (status != NDT_OK)
        return status;
    struct bench_table *table =
        bench_report_table(report, "evaluations",
                           "Where the time goes: alignments that stop after 2, 5 .. 17 iterations; slope and "
                           "intercept of the line through the medians");
    for (size_t c = 0; c < candidates->count; c++)
        for (size_t i = 0; status == NDT_OK && i < source->scans_count; i++)
            status = measure_cuts(&candidates->items[c], &source->scans[i], source->options, report, table, err);
    return status;
}

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_commands.h"
#include "bench_peer.h"
#include "ndt/clock.h"
#include "ndt/hash.h"

enum { WARM_UP = 3 };

/* One row of the table. */
struct row {
    struct bench_candidate *candidate; /* NULL for the peer */
    const struct bench_scans *scans;
    const struct bench_offset *offset;
    size_t reference; /* first row with the same starts and settings; its poses are the reference for the others */
    struct bench_samples align_ms, upload_us, kernel_us, eval_us, pairs, evaluations, iterations, error_cm,
        error_deg;
    size_t recovered, believed_wrong; /* wrong: converged although not recovered */
    struct ndt_pose *poses;           /* of every round */
    void *peer_state;
};
struct run {
    struct bench_source *source;
    struct bench_candidates candidates;
    struct bench_scans scans[BENCH_MAX_ITEMS];
    size_t scans_count, row_count;
    struct row *rows;
    const struct bench_peer_ops *peer;
    double peer_leaf_m;
};

/* Result of one alignment. */
struct found {
    struct ndt_pose T_map_sensor;
    int is_converged, evaluations, iterations;
    double took_us, upload_us, kernel_us;
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
                                  const struct ndt_pose *guess, struct found *found, struct ndt_error *err)
{
    const double *origin_m = run->source->map_points.origin_m;
    const struct bench_peer_points scan = {points->x_m, points->y_m, points->z_m, points->count};
    struct bench_peer_result result;
    double T[16];
    char why[256] = "";
    to_matrix(guess, origin_m, T);
    if (!run->peer->align(row->peer_state, &scan, T, &result, why, sizeof(why)))
        return ndt_fail(err, NDT_ERR_DEVICE, "%s", why);
    *found = (struct found){.T_map_sensor = from_matrix(result.T, origin_m),
                            .is_converged = result.converged,
                            .iterations = result.iterations,
                            .took_us = result.took_us};
    return NDT_OK;
}

static enum ndt_status align(struct bench_candidate *candidate, const struct ndt_align_params *params,
                             const struct ndt_cloud *points, const struct ndt_pose *guess, struct found *found)
{
    struct ndt_align_result result;
    struct ndt_backend_counters before, after;
    bench_candidate_counters(candidate, &before);
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_align(candidate->aligner, params, points, guess, &result, &candidate->why);
    const double took_us = ndt_clock_us() - start_us;
    bench_candidate_counters(candidate, &after);
    *found = (struct found){.T_map_sensor = result.T_map_sensor,
                            .is_converged = result.outcome == NDT_CONVERGED,
                            .evaluations = result.evaluations,
                            .iterations = result.iterations,
                            .took_us = took_us,
                            .upload_us = result.upload_us,
                            .kernel_us = after.kernel_us - before.kernel_us};
    return status;
}

/* One evaluation after a warm-up. */
static enum ndt_status evaluate(struct row *row, const struct ndt_cloud *points, const struct ndt_pose *guess,
                                struct ndt_error *err)
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
    status = bench_samples_add(&row->eval_us, took_us, err);
    return status == NDT_OK ? bench_samples_add(&row->pairs, sums.pairs, err) : status;
}

static enum ndt_status tally(struct row *row, const struct found *found, const struct ndt_pose *truth,
                             struct ndt_error *err)
{
    const double off_m = ndt_pose_distance_m(truth, &found->T_map_sensor);
    const double off_deg = ndt_pose_angle_rad(truth, &found->T_map_sensor) / BENCH_DEG;
    const int is_good = off_m <= BENCH_SUCCESS_M && off_deg <= BENCH_SUCCESS_DEG;
    row->poses[row->align_ms.count] = found->T_map_sensor;
    row->recovered += is_good ? 1 : 0;
    row->believed_wrong += !is_good && found->is_converged ? 1 : 0;
    enum ndt_status status = bench_samples_add(&row->align_ms, found->took_us * 1e-3, err);
    if (status == NDT_OK)
        status = bench_samples_add(&row->iterations, found->iterations, err);
    if (status == NDT_OK && row->candidate)
        status = bench_samples_add(&row->evaluations, found->evaluations, err);
    if (status == NDT_OK && row->candidate)
        status = bench_samples_add(&row->upload_us, found->upload_us, err);
    if (status == NDT_OK && row->candidate)
        status = bench_samples_add(&row->kernel_us, found->kernel_us, err);
    if (status == NDT_OK && is_good)
        status = bench_samples_add(&row->error_cm, 100 * off_m, err);
    return status == NDT_OK && is_good ? bench_samples_add(&row->error_deg, off_deg, err) : status;
}

/* Workers of the previous row may still spin on a core that this row needs. */
static void let_workers_sleep(double spin_us)
{
    const double pause_us = spin_us + 50.0;
    const struct timespec pause = {(time_t)(pause_us * 1e-6), (long)(fmod(pause_us, 1e6) * 1e3)};
    (void)nanosleep(&pause, NULL);
}

/* Warm-ups and the first start are of the same scan. */
static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct row *row = &run->rows[item];
    const struct bench_options *options = run->source->options;
    const size_t start = is_counted ? round - WARM_UP : 0;
    const struct bench_scan *scan = &row->scans->items[start % row->scans->count];
    const struct ndt_pose guess = bench_start(options->seed, start, &scan->T_map_sensor, row->offset->shift_m,
                                              row->offset->turn_deg * BENCH_DEG);
    struct found found;
    enum ndt_status status = NDT_OK;
    if (row->candidate && !bench_candidate_works(row->candidate))
        return NDT_OK;
    let_workers_sleep(options->setup.config.spin_us);
    if (!row->candidate) {
        status = align_peer(run, row, &scan->cloud, &guess, &found, err);
    } else {
        bench_candidate_fail(row->candidate,
                             align(row->candidate, &row->candidate->setup.align, &scan->cloud, &guess, &found));
        if (bench_candidate_works(row->candidate) && is_counted && !options->is_basin)
            status = evaluate(row, &scan->cloud, &guess, err);
        if (!bench_candidate_works(row->candidate))
            return NDT_OK;
    }
    return status == NDT_OK && is_counted ? tally(row, &found, &scan->T_map_sensor, err) : status;
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
                        .scans = &run->scans[scans],
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

/* The peer gets the finest level of the first candidate, and the points of the map it was built from. */
static enum ndt_status add_peers(struct run *run, struct ndt_error *err)
{
    const struct ndt_cloud *map = &run->source->map_points;
    const struct ndt_align_params *first = &run->candidates.items[0].setup.align;
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
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--peer pcl: needs a cloud file as map, %s is none",
                        run->source->options->map);
    run->peer_leaf_m = first->levels[first->level_count - 1].leaf_m;
    for (size_t i = 0; status == NDT_OK && i < run->scans_count; i++) {
        status = add_row(run, NULL, i, 0, err);
        struct row *row = &run->rows[run->row_count - 1];
        row->peer_state = run->peer->open(&points, run->peer_leaf_m, why, sizeof(why));
        if (!row->peer_state)
            return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s", why);
    }
    return status;
}

static enum ndt_status prepare(struct run *run, struct ndt_error *err)
{
    const struct bench_options *options = run->source->options;
    const size_t sizes = options->points.count ? options->points.count : 1;
    size_t most = 0;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < sizes; i++) {
        const size_t points = options->points.count ? options->points.values[i] : 0;
        most = most < points ? points : most;
        status = bench_source_scans(run->source, points, &run->scans[run->scans_count++], err);
    }
    if (status == NDT_OK)
        status = bench_candidates_open(&run->candidates, run->source, NULL, most, err);
    if (status != NDT_OK)
        return status;
    run->rows = calloc((run->candidates.count * options->offsets.count + 1) * sizes, sizeof(*run->rows));
    if (!run->rows)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the rows");
    for (size_t c = 0; c < run->candidates.count; c++)
        for (size_t i = 0; i < sizes; i++)
            for (size_t k = 0; status == NDT_OK && k < options->offsets.count; k++)
                status = add_row(run, &run->candidates.items[c], i, k, err);
    return status == NDT_OK && options->has_peer ? add_peers(run, err) : status;
}

/* ---- the table ---- */

/* Whole alignments of one level on a data-centre GPU; not for the emulated device, which has another name. */
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

/* Poses against the reference row, and whole solves on a device against each other. */
static void compare_poses(const struct run *run, const struct row *row, struct bench_report *report,
                          struct bench_table *table)
{
    const struct row *first = &run->rows[row->reference];
    const size_t bytes = row->align_ms.count * sizeof(*row->poses);
    double off_mm = 0;
    for (size_t i = 0; i < row->align_ms.count && i < first->align_ms.count; i++)
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
    const double rounds = (double)row->align_ms.count;
    int works = 1;
    if (row->candidate) {
        works = bench_candidate_columns(row->candidate, report, table);
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
    if (!works || rounds == 0)
        return;
    bench_number(table, "align_ms", 3, bench_median(&row->align_ms));
    bench_number(table, "p95_ms", 3, bench_quantile(&row->align_ms, 0.95));
    if (row->candidate && wanted_ms(row) > 0)
        bench_text(table, "wanted", "<= %g ms: %s", wanted_ms(row),
                   bench_median(&row->align_ms) <= wanted_ms(row) ? "met" : "missed");
    bench_number(table, "success_percent", 1, 100 * (double)row->recovered / rounds);
    bench_number(table, "believed_wrong_percent", 1, 100 * (double)row->believed_wrong / rounds);
    bench_number(table, "error_cm", 2, bench_median(&row->error_cm));
    bench_number(table, "error_deg", 3, bench_median(&row->error_deg));
    bench_number(table, "iterations", 1, bench_mean(&row->iterations));
    if (!row->candidate)
        return;
    bench_number(table, "evaluations", 1, bench_mean(&row->evaluations));
    bench_number(table, "upload_us", 1, bench_median(&row->upload_us));
    bench_number(table, "kernel_us", 1, bench_median(&row->kernel_us));
    if (row->eval_us.count) {
        bench_number(table, "eval_us", 1, bench_median(&row->eval_us));
        bench_number(table, "ns_per_pair", 2, 1e3 * bench_median(&row->eval_us) / bench_median(&row->pairs));
    }
    compare_poses(run, row, report, table);
}

/* Threads against one thread, and the product against the peer, from medians of the same run. */
static void put_ratios(struct run *run, struct bench_table *table)
{
    for (size_t i = 0; i < run->row_count; i++)
        for (size_t k = 0; k < run->row_count; k++) {
            struct row *row = &run->rows[i], *other = &run->rows[k];
            if (!row->candidate || row->scans != other->scans || row->offset != other->offset ||
                row->align_ms.count == 0 || other->align_ms.count == 0)
                continue;
            const double ratio = bench_median(&other->align_ms) / bench_median(&row->align_ms);
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
        struct row *row = &run->rows[i];
        struct bench_samples *const all[] = {&row->align_ms,   &row->upload_us, &row->kernel_us,
                                             &row->eval_us,    &row->pairs,     &row->evaluations,
                                             &row->iterations, &row->error_cm,  &row->error_deg};
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            bench_samples_free(all[k]);
        free(row->poses);
        if (row->peer_state)
            run->peer->close(row->peer_state);
    }
    free(run->rows);
    bench_candidates_close(&run->candidates);
    for (size_t i = 0; i < run->scans_count; i++)
        bench_scans_free(&run->scans[i]);
}

enum ndt_status bench_align(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    const struct bench_options *options = source->options;
    const int is_basin = options->is_basin;
    struct run run = {.source = source};
    char title[300];
    enum ndt_status status = prepare(&run, err);
    if (status == NDT_OK)
        status = bench_sample(&(struct bench_sampling){.items = run.row_count,
                                                       .warm_up = WARM_UP,
                                                       .rounds = (size_t)options->rounds,
                                                       .sample = sample,
                                                       .context = &run},
                              err);
    if (status == NDT_OK) {
        bench_source_report(source, run.scans, run.scans_count, report);
        snprintf(
            title, sizeof(title),
            "%s: whole alignments from starts %s; success: within %g m and %g deg of the ground truth; "
            "believed_wrong: converged outside of that; errors of the recovered ones; medians, counts are means",
            is_basin ? "Basin of convergence" : "Alignments",
            is_basin ? "at increasing distance" : "up to --offsets off", BENCH_SUCCESS_M, BENCH_SUCCESS_DEG);
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

/* ---- time per evaluation ---- */

enum { CUTS = 6 };

/* Least squares y = once + slope * x. */
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
    *slope = xy / xx; /* NaN if all times are equal */
    *once = mean_y - *slope * mean_x;
}

struct cuts {
    struct bench_candidate *candidate;
    const struct bench_options *options;
    const struct bench_scan *scan;
    struct bench_samples align_us[CUTS], kernel_us[CUTS];
    double evaluations[CUTS];
};

/* One start, no stopping rule, one step length: 2, 5, 8 .. iterations. */
static enum ndt_status sample_cut(void *context, size_t cut, size_t round, int is_counted, struct ndt_error *err)
{
    struct cuts *cuts = context;
    const struct bench_options *options = cuts->options;
    const struct ndt_pose guess =
        bench_start(options->seed, 0, &cuts->scan->T_map_sensor, options->offsets.items[0].shift_m,
                    options->offsets.items[0].turn_deg * BENCH_DEG);
    struct ndt_align_params params = cuts->candidate->setup.align;
    struct found found;
    (void)round;
    params.fine_stop_m = params.fine_stop_rad = params.fine_stop_gain = 0;
    params.max_line_search_steps = 1;
    params.max_iterations = 2 + 3 * (int)cut;
    if (!bench_candidate_works(cuts->candidate))
        return NDT_OK;
    bench_candidate_fail(cuts->candidate, align(cuts->candidate, &params, &cuts->scan->cloud, &guess, &found));
    if (!is_counted || !bench_candidate_works(cuts->candidate))
        return NDT_OK;
    cuts->evaluations[cut] = found.evaluations;
    enum ndt_status status = bench_samples_add(&cuts->align_us[cut], found.took_us, err);
    return status == NDT_OK ? bench_samples_add(&cuts->kernel_us[cut], found.kernel_us, err) : status;
}

static enum ndt_status measure_cuts(struct bench_candidate *candidate, const struct bench_scans *scans,
                                    const struct bench_options *options, struct bench_report *report,
                                    struct bench_table *table, struct ndt_error *err)
{
    struct cuts cuts = {.candidate = candidate, .options = options, .scan = &scans->items[0]};
    double align_us[CUTS], kernel_us[CUTS], once_us = 0, slope_us = 0;
    enum ndt_status status = bench_sample(
        &(struct bench_sampling){
            .items = CUTS, .warm_up = 1, .rounds = (size_t)options->rounds, .sample = sample_cut, .context = &cuts},
        err);
    for (int i = 0; i < CUTS; i++) {
        align_us[i] = bench_median(&cuts.align_us[i]);
        kernel_us[i] = bench_median(&cuts.kernel_us[i]);
        bench_samples_free(&cuts.align_us[i]);
        bench_samples_free(&cuts.kernel_us[i]);
    }
    const int works = bench_candidate_columns(candidate, report, table);
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

/* One level: the stopping rules of coarser levels would end the solve. */
enum ndt_status bench_evaluations(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    struct run run = {.source = source};
    enum ndt_status status = prepare(&run, err);
    if (status == NDT_OK && run.candidates.items[0].setup.align.level_count > 1)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "evaluations: give one level, such as --levels 2");
    if (status == NDT_OK) {
        bench_source_report(source, run.scans, run.scans_count, report);
        struct bench_table *table = bench_report_table(
            report, "evaluations",
            "Where the time goes: alignments cut off after 2, 5 .. 17 iterations; the line through the medians");
        for (size_t i = 0; status == NDT_OK && i < run.row_count; i++)
            status = measure_cuts(run.rows[i].candidate, run.rows[i].scans, source->options, report, table, err);
    }
    close_run(&run);
    return status;
}

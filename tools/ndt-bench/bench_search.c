/** @file
 * @brief search: every scan alone against the whole map or a window of it, without a pose. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends.h"
#include "bench.h"
#include "ndt/clock.h"
#include "ndt/random.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/map_file.h"
#include "ndt_io/output_file.h"
#include "ndt_search/search.h"
#include "ndtd/map_field.h"

static const double RIGHT_M = 0.5, NEAR_M = 1.5, RIGHT_DEG = 3;
static const char *const tier_names[] = {"auto", "quick", "thorough", "region", "near"};

struct run {
    const struct bench_options *options;
    struct ndt_map *map;
    struct ndt_field *field;
    double field_ms;
    struct ndt_search *search;
    struct ndt_search_params params;
    struct ndt_preprocessor *pre;
    struct ndt_cloud scan; /* the scan that is searched for */
    struct ndt_output csv;
    size_t scans, right, near, listed, quick;
    uint64_t poses;
    struct bench_samples rank, total_ms, cpu_ms, prepare_ms, dense_ms, refine_ms, align_ms, final_ms;
};

/* One scan. */
struct attempt {
    struct ndt_pose truth;
    struct ndt_pose T_new_old;        /* motion from the sensor of the recording to the disturbed one */
    struct ndt_pose T_upright_sensor; /* upright frame of --up; otherwise the mounting of the sensor */
    struct ndt_search_region region;
    struct ndt_search_result result;
    double off_m[NDT_SEARCH_CANDIDATES], off_deg[NDT_SEARCH_CANDIDATES];
    int rank; /* rank of the first right candidate, from 1; 0: none is right */
};

/* ---- the scan ---- */

static enum ndt_status load_scan(struct run *run, const struct bench_raw_scan *raw, struct ndt_pose *truth,
                                 struct ndt_error *err)
{
    struct ndt_preprocess_params params = run->options->preprocess;
    const struct ndt_sweep_motion motion = {.twist = raw->twist};
    const struct ndt_cloud *points;
    struct ndt_sweep sweep = {0};
    params.deskew = raw->cloud.time_s ? NDT_DESKEW_TIME : NDT_DESKEW_OFF;
    params.voxel_m = 0;
    params.sample_count = 0;
    enum ndt_status status = ndt_preprocess_sweep(&params, &raw->cloud, &sweep, err);
    const struct ndt_pose step = ndt_pose_exp(&raw->twist, sweep.reference_s);
    *truth = ndt_pose_compose(&raw->T_map_sensor, &step);
    if (status != NDT_OK || !run->options->search.is_deskewed)
        return status == NDT_OK ? ndt_cloud_copy(&run->scan, &raw->cloud, err) : status;
    status = ndt_preprocess(run->pre, &params, &raw->cloud, &sweep, 0, &motion, &points, err);
    return status == NDT_OK ? ndt_cloud_copy(&run->scan, points, err) : status;
}

/* Whether the point is kept: view, range, thinning, height. */
static int is_kept(const struct bench_search_options *wish, const double p[3], double middle_rad, size_t number)
{
    const double turn = remainder(atan2(p[1], p[0]) - middle_rad, 360 * BENCH_DEG);
    return number % wish->keep == 0 && fabs(turn) <= 0.5 * wish->view_deg * BENCH_DEG && p[2] >= wish->least_m &&
           (wish->range_m == 0 || p[0] * p[0] + p[1] * p[1] + p[2] * p[2] <= wish->range_m * wish->range_m);
}

/* Drops points, then turns the sensor with what carries it: any heading, and tilted. */
static void disturb(struct run *run, size_t number, struct attempt *attempt)
{
    const struct ndt_pose *T_upright_sensor = &attempt->T_upright_sensor;
    const struct bench_search_options *wish = &run->options->search;
    struct ndt_random random = ndt_random_stream(run->options->seed, wish->is_steady ? 0 : number, 0);
    const double middle_rad = ndt_random_between(&random, -180, 180) * BENCH_DEG;
    const double yaw_rad = ndt_random_between(&random, -180, 180) * BENCH_DEG;
    const double lean_rad = ndt_random_between(&random, -180, 180) * BENCH_DEG;
    const double tilt_rad = wish->tilt_deg * BENCH_DEG;
    const struct ndt_twist lean = {.w_radps = {cos(lean_rad) * tilt_rad, sin(lean_rad) * tilt_rad, 0}};
    const struct ndt_twist yaw = {.w_radps = {0, 0, yaw_rad}};
    const struct ndt_pose turn = ndt_pose_exp(&yaw, 1), tilt = ndt_pose_exp(&lean, 1);
    const struct ndt_pose T_sensor_upright = ndt_pose_inverse(T_upright_sensor);
    const struct ndt_pose T_turned_upright = ndt_pose_compose(&tilt, &turn);
    const struct ndt_pose T_turned_sensor = ndt_pose_compose(&T_turned_upright, T_upright_sensor);
    const struct ndt_pose T_new_old = ndt_pose_compose(&T_sensor_upright, &T_turned_sensor),
                          T_old_new = ndt_pose_inverse(&T_new_old);
    size_t kept = 0;
    attempt->T_new_old = T_new_old;
    for (size_t i = 0; i < run->scan.count; i++) {
        const double p[3] = {(double)run->scan.x_m[i], (double)run->scan.y_m[i], (double)run->scan.z_m[i]};
        double upright[3], moved[3];
        ndt_pose_apply(T_upright_sensor, p, upright);
        if (!is_kept(wish, upright, middle_rad, i))
            continue;
        ndt_pose_apply(&T_new_old, p, moved);
        run->scan.x_m[kept] = (float)moved[0];
        run->scan.y_m[kept] = (float)moved[1];
        run->scan.z_m[kept] = (float)moved[2];
        if (run->scan.time_s)
            run->scan.time_s[kept] = run->scan.time_s[i];
        kept++;
    }
    run->scan.count = kept;
    attempt->truth = ndt_pose_compose(&attempt->truth, &T_old_new);
}

static void set_known(const struct run *run, size_t number, struct attempt *attempt)
{
    const struct bench_search_options *wish = &run->options->search;
    struct ndt_random random = ndt_random_stream(run->options->seed, number, 1);
    const double along_rad = ndt_random_between(&random, -180, 180) * BENCH_DEG;
    const double shift_m = wish->window_m * sqrt(ndt_random_unit(&random));
    const double turn_rad = ndt_random_between(&random, -1, 1) * wish->reach_deg * BENCH_DEG;
    double R[9];
    ndt_pose_rotation(&attempt->truth, R);
    if (wish->has_up)
        (void)ndt_search_upright(R + 6, &attempt->T_upright_sensor);
    const struct ndt_pose T_sensor_upright = ndt_pose_inverse(&attempt->T_upright_sensor);
    const struct ndt_pose T_map_upright = ndt_pose_compose(&attempt->truth, &T_sensor_upright);
    attempt->region = (struct ndt_search_region){.has_position = wish->window_m > 0,
                                                 .radius_m = wish->window_m,
                                                 .has_heading = wish->reach_deg > 0,
                                                 .heading_rad = ndt_pose_heading_rad(&T_map_upright) + turn_rad,
                                                 .heading_reach_rad = wish->reach_deg * BENCH_DEG};
    memcpy(attempt->region.position_m, attempt->truth.t_m, sizeof(attempt->region.position_m));
    attempt->region.position_m[0] += shift_m * cos(along_rad);
    attempt->region.position_m[1] += shift_m * sin(along_rad);
}

/* ---- rows of the CSV ---- */

static void number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, ",%.5g", value);
    else
        fputc(',', file);
}

static void put_heading(FILE *file)
{
    fputs("scan,tier,count,rank,right,has_ground,height_m,ground_ratio,points,above,dense_points,sectors,"
          "margin_gaussian,margin_fit,poses,total_ms,t_s,tx,ty,tz,tqx,tqy,tqz,tqw",
          file);
    for (int i = 0; i < NDT_SEARCH_CANDIDATES; i++)
        fprintf(
            file,
            ",ng%d,inliers%d,match%d,nvtl_n%d,q%d,coverage%d,bits%d,layer%d,is_final%d,best_m%d,best_deg%d,x%d,y%d,"
            "z%d,qx%d,qy%d,qz%d,qw%d,off_m%d,off_deg%d,right%d",
            i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
    fputc('\n', file);
}

static int is_right(const struct run *run, const struct attempt *attempt, uint32_t i)
{
    return !run->options->is_elsewhere && attempt->off_m[i] <= RIGHT_M && attempt->off_deg[i] <= RIGHT_DEG;
}

/* The pose of the recording's sensor, about the origin of the map. */
static void put_pose(const struct run *run, FILE *file, const struct attempt *attempt, const struct ndt_pose *pose)
{
    const struct ndt_pose T = ndt_pose_compose(pose, &attempt->T_new_old);
    for (int k = 0; k < 3; k++)
        fprintf(file, ",%.4f", T.t_m[k] - run->map->origin_m[k]);
    fprintf(file, ",%.6f,%.6f,%.6f,%.6f", T.q_xyzw[0], T.q_xyzw[1], T.q_xyzw[2], T.q_xyzw[3]);
}

static void put_line(const struct run *run, size_t scan, int64_t stamp_ns, const struct attempt *attempt)
{
    const struct ndt_search_result *result = &attempt->result;
    const struct ndt_search_view *view = &result->view;
    FILE *file = run->csv.file;
    const double values[] = {(double)result->count,
                             attempt->rank,
                             attempt->rank == 1,
                             view->has_ground,
                             view->height_m,
                             view->ground_ratio,
                             view->points,
                             view->above,
                             view->dense_points,
                             view->sectors,
                             result->margin_gaussian,
                             result->margin_fit,
                             (double)result->poses,
                             result->times_us.total_us * 1e-3};
    fprintf(file, "%zu,%s", scan, tier_names[result->tier]);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        number(file, values[i]);
    fprintf(file, ",%.6f", (double)stamp_ns * 1e-9);
    put_pose(run, file, attempt, &attempt->truth);
    for (uint32_t i = 0; i < NDT_SEARCH_CANDIDATES; i++) {
        const struct ndt_search_candidate *c = &result->candidates[i];
        const double features[] = {c->gaussian_fit,
                                   c->inliers,
                                   c->scores.match_ratio,
                                   c->scores.nvtl_normalized,
                                   c->fit,
                                   c->scores.coverage,
                                   c->bits,
                                   c->layer,
                                   c->is_final,
                                   c->best_m,
                                   c->best_deg};
        const double errors[] = {attempt->off_m[i], attempt->off_deg[i], is_right(run, attempt, i)};
        for (size_t k = 0; k < sizeof(features) / sizeof(features[0]); k++)
            number(file, i < result->count ? features[k] : NAN);
        if (i < result->count)
            put_pose(run, file, attempt, &c->T_map_sensor);
        else
            fputs(",,,,,,,", file);
        for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++)
            number(file, i < result->count ? errors[k] : NAN);
    }
    fputc('\n', file);
}

/* ---- measuring ---- */

static void count(struct run *run, struct attempt *attempt)
{
    const struct ndt_search_result *result = &attempt->result;
    const struct ndt_search_times *times = &result->times_us;
    attempt->rank = 0;
    for (uint32_t i = result->count; i-- > 0;) {
        const struct ndt_pose *found = &result->candidates[i].T_map_sensor;
        attempt->off_m[i] = ndt_pose_distance_m(&attempt->truth, found);
        attempt->off_deg[i] = ndt_pose_angle_rad(&attempt->truth, found) / BENCH_DEG;
        attempt->rank = is_right(run, attempt, i) ? (int)i + 1 : attempt->rank;
    }
    run->scans++;
    run->right += attempt->rank == 1;
    run->listed += attempt->rank > 0;
    run->near += result->count > 0 && !run->options->is_elsewhere && attempt->off_m[0] <= NEAR_M &&
                 attempt->off_deg[0] <= 2 * RIGHT_DEG;
    run->quick += result->tier == NDT_SEARCH_QUICK;
    run->poses += result->poses;
    if (attempt->rank > 0)
        bench_samples_add(&run->rank, attempt->rank);
    bench_samples_add(&run->total_ms, times->total_us * 1e-3);
    bench_samples_add(&run->prepare_ms, times->prepare_us * 1e-3);
    bench_samples_add(&run->dense_ms, times->dense_us * 1e-3);
    bench_samples_add(&run->refine_ms, times->refine_us * 1e-3);
    bench_samples_add(&run->align_ms, times->align_us * 1e-3);
    bench_samples_add(&run->final_ms, times->final_us * 1e-3);
}

/* Processor time of all threads, which a loaded machine hardly changes. */
static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static enum ndt_status search_one(struct run *run, const struct bench_raw_scan *raw, size_t scan,
                                  struct ndt_error *err)
{
    static struct attempt attempt;
    enum ndt_status status = load_scan(run, raw, &attempt.truth, err);
    if (status != NDT_OK)
        return status;
    attempt.T_upright_sensor = raw->T_base_sensor;
    memset(attempt.T_upright_sensor.t_m, 0, sizeof(attempt.T_upright_sensor.t_m));
    disturb(run, scan, &attempt);
    set_known(run, scan, &attempt);
    const double begin_ms = cpu_ms();
    status = ndt_search_run(run->search, &run->params, &run->scan, &attempt.T_upright_sensor, &attempt.region, NULL,
                            &attempt.result, err);
    if (status != NDT_OK)
        return status;
    bench_samples_add(&run->cpu_ms, cpu_ms() - begin_ms);
    count(run, &attempt);
    if (run->csv.file)
        put_line(run, scan, raw->stamp_ns, &attempt);
    return NDT_OK;
}

static void put_row(struct run *run, struct bench_report *report)
{
    struct bench_table *table = bench_report_table(
        report, "search",
        "Search: every scan alone; right: the first candidate is within 0.5 m and 3 deg of the truth; near: within "
        "1.5 m; listed: one of the candidates is right; quick: searches that ended with the quick tier");
    const double dense_s = bench_mean(&run->dense_ms) * 1e-3 * (double)run->scans;
    bench_row(report, table);
    bench_number(table, "scans", 0, (double)run->scans);
    bench_number(table, "right", 0, (double)run->right);
    bench_number(table, "near", 0, (double)run->near);
    bench_number(table, "listed", 0, (double)run->listed);
    bench_number(table, "quick", 0, (double)run->quick);
    bench_number(table, "median_ms", 1, bench_median(&run->total_ms));
    bench_number(table, "p95_ms", 1, bench_quantile(&run->total_ms, 0.95));
    bench_number(table, "cpu_ms", 1, bench_median(&run->cpu_ms));
    bench_number(table, "cpu_p95_ms", 1, bench_quantile(&run->cpu_ms, 0.95));
    bench_number(table, "prepare_ms", 2, bench_median(&run->prepare_ms));
    bench_number(table, "dense_ms", 2, bench_median(&run->dense_ms));
    bench_number(table, "refine_ms", 2, bench_median(&run->refine_ms));
    bench_number(table, "align_ms", 2, bench_median(&run->align_ms));
    bench_number(table, "final_ms", 2, bench_median(&run->final_ms));
    bench_number(table, "poses_per_us", 1, (double)run->poses / dense_s * 1e-6);
}

static void put_field(const struct run *run, struct bench_report *report)
{
    struct bench_table *table = bench_report_table(report, "field", "Field: of the map, one thread");
    const double km2 = run->field->tile_count * (double)(NDT_FIELD_TILE_M * NDT_FIELD_TILE_M) * 1e-6;
    size_t known = 0;
    for (uint32_t i = 0; i < run->field->tile_count; i++)
        for (size_t k = 0; k < sizeof(run->field->tiles[i].known); k++)
            known += (size_t)__builtin_popcount(run->field->tiles[i].known[k]);
    bench_row(report, table);
    bench_number(table, "tiles", 0, run->field->tile_count);
    bench_number(table, "layers", 0, run->field->layer_count);
    bench_number(table, "km2", 3, km2);
    bench_number(table, "known_km2", 3, (double)known * 1e-6);
    bench_number(table, "megabytes", 2, (double)ndt_field_bytes(run->field) * 1e-6);
    bench_number(table, "megabytes_per_km2", 2, (double)ndt_field_bytes(run->field) * 1e-6 / km2);
    bench_number(table, "ready_ms", 0, run->field_ms);
    const void *stored;
    bench_text(table, "origin", "%s", ndt_map_attachment(run->map, &stored) > 0 ? "stored" : "built");
}

/* The engine of --backend has to work. */
static enum ndt_status open_search(struct run *run, struct ndt_error *err)
{
    const struct bench_options *options = run->options;
    const char *backend = options->backends.count ? options->backends.items[0] : "cpu";
    const struct ndt_search_config config = {.threads =
                                                 options->threads.count ? (int)options->threads.values[0] : 1,
                                             .isa = options->setup.config.isa,
                                             .engine = ndt_backend_search_engine(backend),
                                             .device = options->setup.config.device};
    if (!config.engine && strcmp(backend, "cpu") != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--backend: '%s' has no engine for searches", backend);
    enum ndt_status status = ndt_search_create(&run->search, &config, err);
    if (status == NDT_OK)
        status = ndt_search_set_map(run->search, run->map, run->field, err);
    if (status == NDT_OK && ndt_search_engine_failure(run->search))
        status = ndt_fail(err, NDT_ERR_DEVICE, "%s", ndt_search_engine_failure(run->search));
    return status;
}

static enum ndt_status open_run(struct run *run, struct ndt_error *err)
{
    const struct bench_options *options = run->options;
    ndt_search_params_default(&run->params);
    run->params.tier = (enum ndt_search_tier)options->search.tier;
    run->params.seed = options->seed;
    for (int i = 0; i < NDT_SEARCH_TIERS; i++) {
        struct ndt_search_tier_params *tier = &run->params.tiers[i];
        tier->blocks = options->search.blocks ? (uint32_t)options->search.blocks : tier->blocks;
        tier->places = options->search.places ? (uint32_t)options->search.places : tier->places;
        tier->alignments = options->search.alignments ? (uint32_t)options->search.alignments : tier->alignments;
        if (!options->search.places && tier->places < tier->alignments)
            tier->places = tier->alignments;
        if (!options->search.alignments && tier->alignments > tier->places)
            tier->alignments = tier->places;
    }
    enum ndt_status status = ndt_map_load(&run->map, options->map, &options->setup.map, err);
    const double start_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndtd_map_field(&run->field, run->map, err);
    run->field_ms = (ndt_clock_us() - start_us) * 1e-3;
    if (status == NDT_OK)
        status = open_search(run, err);
    if (status == NDT_OK)
        status = ndt_preprocessor_create(&run->pre, err);
    if (status == NDT_OK && options->csv)
        status = ndt_output_open(&run->csv, options->csv, err);
    if (run->csv.file)
        put_heading(run->csv.file);
    return status;
}

static void close_run(struct run *run)
{
    ndt_search_destroy(run->search);
    ndt_field_release(run->field);
    ndt_map_release(run->map);
    ndt_preprocessor_destroy(run->pre);
    ndt_cloud_free(&run->scan);
    ndt_output_discard(&run->csv);
    bench_samples_free(&run->rank, 1);
    struct bench_samples *lists[] = {&run->total_ms,  &run->cpu_ms,   &run->prepare_ms, &run->dense_ms,
                                     &run->refine_ms, &run->align_ms, &run->final_ms};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        bench_samples_free(lists[i], 1);
}

enum ndt_status bench_search(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    struct run run = {.options = source->options};
    struct bench_recording *recording = NULL;
    ndt_cloud_init(&run.scan);
    enum ndt_status status = bench_recording_open(&recording, source->options, err);
    if (status == NDT_OK)
        status = open_run(&run, err);
    for (size_t i = 0; status == NDT_OK && i < recording->count; i++)
        status = search_one(&run, &recording->scans[i], i, err);
    if (status == NDT_OK) {
        put_field(&run, report);
        put_row(&run, report);
    }
    if (status == NDT_OK && run.csv.file)
        status = ndt_output_commit(&run.csv, err);
    close_run(&run);
    bench_recording_close(recording);
    return status;
}

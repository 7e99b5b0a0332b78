#include "ndtd/backend_benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt_io/map_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/autotune.h"
#include "ndtd/probe_scan.h"
#include "ndtd/realtime.h"
#include "ndtd/autotuner.h"
#include "ndtd/samples.h"
#include "ndtd/stopwatch.h"

static const size_t sizes[] = {756, 1500, 5000, 20000, 100000};
enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 20, LINE_BYTES = 2000 };
/* Per size, this many times autotune.limit_ms: somebody waits, but not for a start. */
static const double PATIENCE = 2.5;

/* Times [us]; NAN where there is no such part. */
struct parts {
    double evaluation_us, kernel_us, copies_us, launch_us, synchronise_us;
};
enum { PARTS = sizeof(struct parts) / sizeof(double) };
static const char *const part_names[PARTS] = {"evaluation", "kernel-only", "copy-only", "launch-only",
                                              "synchronise-only"};

struct size_result {
    struct ndtd_autotune_result tuned;
    struct parts parts[NDTD_AUTOTUNE_ROWS];
};

/* ---- parts ---- */

static enum ndt_status time_evaluations(struct ndt_backend *backend, const struct ndt_eval_request *where,
                                        struct parts *out, struct ndt_error *err)
{
    double evaluation_us[ROUNDS], kernel_us[ROUNDS];
    struct ndt_backend_counters before = {0}, after = {0};
    struct ndt_eval sums;
    for (int i = -3; i < ROUNDS; i++) { /* three to warm up */
        if (backend->ops->counters)
            backend->ops->counters(backend, &before);
        const double start_us = ndtd_now_us();
        enum ndt_status status = backend->ops->eval(backend, where, &sums, err);
        if (status != NDT_OK)
            return status;
        evaluation_us[i < 0 ? 0 : i] = ndtd_now_us() - start_us;
        if (backend->ops->counters)
            backend->ops->counters(backend, &after);
        kernel_us[i < 0 ? 0 : i] = after.kernel_us - before.kernel_us;
    }
    struct ndtd_samples whole = {.values = evaluation_us, .count = ROUNDS};
    struct ndtd_samples kernels = {.values = kernel_us, .count = ROUNDS};
    out->evaluation_us = ndtd_samples_quantile(&whole, 0.5);
    out->kernel_us = backend->ops->counters ? ndtd_samples_quantile(&kernels, 0.5) : NAN;
    return NDT_OK;
}

static enum ndt_status time_overheads(struct ndt_backend *backend, struct parts *out, struct ndt_error *err)
{
    struct ndt_overheads cost;
    if (!backend->ops->overheads)
        return NDT_OK;
    enum ndt_status status = backend->ops->overheads(backend, ROUNDS, &cost, err);
    if (status != NDT_OK)
        return status;
    out->copies_us = cost.copies_us;
    out->launch_us = cost.launch_us;
    out->synchronise_us = cost.synchronise_us;
    return NDT_OK;
}

/* One evaluation on the finest level, and what a device needs besides its kernels. */
static enum ndt_status time_parts(const struct ndtd_settings *settings, struct ndt_map *map,
                                  const struct ndtd_backend_candidate *candidate, const struct ndt_cloud *scan,
                                  const struct ndt_pose *T_map_sensor, struct parts *out, struct ndt_error *err)
{
    const struct ndt_align_level *level = &settings->align.levels[settings->align.level_count - 1];
    struct ndt_eval_request where = {.level = ndt_map_find_level(map, level->leaf_m),
                                     .neighbours = level->neighbours};
    struct ndt_backend_config config = settings->compute;
    struct ndt_backend *backend;
    for (int i = 0; i < 3; i++)
        where.p[i] = T_map_sensor->t_m[i] - map->origin_m[i];
    config.max_points = scan->count;
    const struct ndt_backend_ops *ops = ndtd_backend_candidate_config(candidate, &config);
    if (!ops)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "there is no such backend");
    enum ndt_status status = ops->open(&backend, &config, err);
    if (status != NDT_OK)
        return status;
    status = ops->set_map(backend, map, err);
    if (status == NDT_OK)
        status = ops->set_scan(backend, scan, err);
    if (status == NDT_OK)
        status = time_evaluations(backend, &where, out, err);
    if (status == NDT_OK)
        status = time_overheads(backend, out, err);
    ops->close(backend);
    return status;
}

static enum ndt_status measure_size(const struct ndtd_settings *settings, struct ndt_map *map, size_t points,
                                    struct size_result *out, struct ndt_error *err)
{
    struct ndt_cloud scan;
    struct ndt_pose T_map_sensor;
    ndt_cloud_init(&scan);
    enum ndt_status status = ndtd_probe_scan(
        &scan, &T_map_sensor, map, settings->has_initial_pose ? settings->initial_pose : NULL, points, err);
    const struct ndtd_autotune_request request = {.settings = settings,
                                                  .map = map,
                                                  .scan = &scan,
                                                  .T_map_sensor = T_map_sensor,
                                                  .time_us = 1e6 * PATIENCE * settings->autotune_limit_s};
    if (status == NDT_OK)
        status = ndtd_autotune(&request, &out->tuned, err);
    for (size_t i = 0; status == NDT_OK && i < out->tuned.row_count; i++) {
        struct ndtd_autotune_row *row = &out->tuned.rows[i];
        struct ndt_error why = {""};
        out->parts[i] = (struct parts){NAN, NAN, NAN, NAN, NAN};
        if (row->is_here &&
            time_parts(settings, map, &row->candidate, &scan, &T_map_sensor, &out->parts[i], &why) != NDT_OK) {
            row->is_here = 0;
            snprintf(row->why, sizeof(row->why), "%.*s", (int)sizeof(row->why) - 1, why.text);
        }
    }
    ndt_cloud_free(&scan);
    return status;
}

/* ---- told ---- */

static const double *part_at(const struct parts *parts, int i)
{
    const double *const all[PARTS] = {&parts->evaluation_us, &parts->kernel_us, &parts->copies_us,
                                      &parts->launch_us, &parts->synchronise_us};
    return all[i];
}

static void print_row(FILE *file, const struct size_result *size, size_t i)
{
    const struct ndtd_autotune_row *row = &size->tuned.rows[i];
    char name[80];
    fprintf(file, "%8zu  %-24s", size->tuned.points,
            ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)));
    if (!row->is_here) {
        fprintf(file, " not here: %s\n", row->why);
        return;
    }
    fprintf(file, " %9.3f %9.3f", row->p50_us * 1e-3, row->p95_us * 1e-3);
    for (int k = 0; k < PARTS; k++) {
        const double us = *part_at(&size->parts[i], k);
        if (isnan(us))
            fprintf(file, " %*s", (int)strlen(part_names[k]), "-");
        else
            fprintf(file, " %*.1f", (int)strlen(part_names[k]), us);
    }
    fprintf(file, "%s\n", (int)i == size->tuned.choice.row ? "  <" : "");
}

static void print_size(FILE *file, const struct size_result *size)
{
    for (size_t i = 0; i < size->tuned.row_count; i++)
        print_row(file, size, i);
    fprintf(file, "\n");
    fflush(file);
}

static void print_head(FILE *file, const struct ndt_map *map)
{
    fprintf(file, "map %016llx, %llu points; scans drawn from it, starts off by up to 0.2 m and 0.6 deg\n\n",
            (unsigned long long)map->id, (unsigned long long)map->points);
    fprintf(file, "%8s  %-24s %9s %9s", "points", "way", "align p50", "p95 [ms]");
    for (int k = 0; k < PARTS; k++)
        fprintf(file, " %s", part_names[k]);
    fprintf(file, "  [us]\n");
}

static int has_device(void)
{
    const struct ndt_backend_ops *ops;
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++)
        if (ops->pipelines)
            return 1;
    return 0;
}

static void print_foot(FILE *file)
{
    if (!has_device())
        fprintf(file, "a device: not here: this build has no backend for one\n");
    fprintf(
        file,
        "< is what auto would take. Ways that cannot win are measured less often. kernel-only is an evaluation by\n"
        "the clock of the device, or of the CPU's workers; - stands where nothing is copied or launched.\n\n");
}

static void csv_size(FILE *file, const struct size_result *size)
{
    for (size_t i = 0; i < size->tuned.row_count; i++) {
        const struct ndtd_autotune_row *row = &size->tuned.rows[i];
        fprintf(file, "%zu,%s,%s,%d,%d,%d,", size->tuned.points, row->candidate.backend, row->candidate.pipeline,
                row->candidate.threads, row->candidate.batch, (int)i == size->tuned.choice.row);
        if (row->is_here)
            fprintf(file, "%zu,%.6g,%.6g", row->samples, row->p50_us, row->p95_us);
        else
            fprintf(file, ",,");
        for (int k = 0; k < PARTS; k++)
            if (row->is_here && !isnan(*part_at(&size->parts[i], k)))
                fprintf(file, ",%.6g", *part_at(&size->parts[i], k));
            else
                fputc(',', file);
        fputs(",\"", file);
        for (const char *c = row->is_here ? "" : row->why; *c; c++)
            fputc(*c == '"' ? '\'' : *c, file);
        fputs("\"\n", file);
    }
}

static void json_number(FILE *file, const char *key, double value)
{
    if (isnan(value))
        fprintf(file, ", \"%s\": null", key);
    else
        fprintf(file, ", \"%s\": %.6g", key, value);
}

static void json_row(FILE *file, const struct size_result *size, size_t i)
{
    static const char *const keys[PARTS] = {"evaluation_us", "kernel_us", "copy_us", "launch_us", "synchronise_us"};
    const struct ndtd_autotune_row *row = &size->tuned.rows[i];
    fprintf(file,
            "{\"points\": %zu, \"backend\": \"%s\", \"pipeline\": \"%s\", \"threads\": %d, \"batch\": %d, "
            "\"chosen\": %s",
            size->tuned.points, row->candidate.backend, row->candidate.pipeline, row->candidate.threads,
            row->candidate.batch, (int)i == size->tuned.choice.row ? "true" : "false");
    if (row->is_here) {
        fprintf(file, ", \"samples\": %zu", row->samples);
        json_number(file, "align_p50_us", row->p50_us);
        json_number(file, "align_p95_us", row->p95_us);
        for (int k = 0; k < PARTS; k++)
            json_number(file, keys[k], *part_at(&size->parts[i], k));
    } else {
        fputs(", \"not_here\": \"", file);
        for (const char *c = row->why; *c; c++)
            fprintf(file, *c == '"' || *c == '\\' ? "\\%c" : "%c", (unsigned char)*c < ' ' ? ' ' : *c);
        fputc('"', file);
    }
    fputc('}', file);
}

static void write_csv(FILE *file, const struct size_result *results)
{
    fprintf(file, "points,backend,pipeline,threads,batch,chosen,samples,align_p50_us,align_p95_us,evaluation_us,"
                  "kernel_us,copy_us,launch_us,synchronise_us,not_here\n");
    for (size_t i = 0; i < SIZE_COUNT; i++)
        csv_size(file, &results[i]);
}

static void write_json(FILE *file, const struct size_result *results)
{
    const char *separator = "[";
    for (size_t i = 0; i < SIZE_COUNT; i++)
        for (size_t k = 0; k < results[i].tuned.row_count; k++) {
            fprintf(file, "%s\n  ", separator);
            json_row(file, &results[i], k);
            separator = ",";
        }
    fprintf(file, "\n]\n");
}

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static enum ndt_status write_table(const char *path, const struct size_result *results, struct ndt_error *err)
{
    struct ndt_output output;
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    if (ends_with(path, ".json"))
        write_json(output.file, results);
    else
        write_csv(output.file, results);
    return ndt_output_commit(&output, err);
}

/* ---- all ---- */

/* As the daemon would, on the number of points that it is configured for. */
static enum ndt_status tell_autotune(const struct ndtd_settings *settings, struct ndt_map *map, FILE *report,
                                     struct ndt_error *err)
{
    struct ndtd_settings anew = *settings;
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndtd_autotuner *tuner = NULL;
    struct ndtd_autotune_result *tuned = calloc(1, sizeof(*tuned));
    char line[LINE_BYTES];
    if (!tuned)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a choice");
    anew.autotune = 1;
    if (anew.autotune_cache == NDTD_CACHE_ON)
        anew.autotune_cache = NDTD_CACHE_REFRESH;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, &anew, err);
    if (status == NDT_OK)
        status = ndtd_autotuner_create(&tuner, snapshot, err);
    if (status == NDT_OK && ndtd_autotuner_find(tuner, map, tuned))
        fprintf(report, "route: %s\n", ndtd_autotune_line(tuned, line, sizeof(line)));
    ndtd_autotuner_destroy(tuner);
    ndtd_settings_snapshot_release(snapshot);
    free(tuned);
    return status;
}

static enum ndt_status measure(const struct ndtd_settings *settings, struct ndt_map *map, const char *table,
                               FILE *report, struct ndt_error *err)
{
    struct size_result *results = calloc(SIZE_COUNT, sizeof(*results));
    if (!results)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a table");
    enum ndt_status status = NDT_OK;
    print_head(report, map);
    for (size_t i = 0; status == NDT_OK && i < SIZE_COUNT; i++) {
        status = measure_size(settings, map, sizes[i], &results[i], err);
        if (status == NDT_OK)
            print_size(report, &results[i]);
    }
    print_foot(report);
    if (status == NDT_OK && table)
        status = write_table(table, results, err);
    free(results);
    return status == NDT_OK ? tell_autotune(settings, map, report, err) : status;
}

enum ndt_status ndtd_backend_benchmark(const struct ndtd_settings *settings, const char *table, FILE *report,
                                       struct ndt_error *err)
{
    struct ndt_map *map = NULL;
    if (!*settings->map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--autotune needs a map: give --map FILE|DIR");
    if (table && !ends_with(table, ".csv") && !ends_with(table, ".json"))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--table %.200s: the name has to end in .csv or .json", table);
    enum ndt_status status = ndt_map_load(&map, settings->map_path, &settings->map, err);
    if (status != NDT_OK)
        return status;
    ndtd_realtime_enter(settings);
    status = measure(settings, map, table, report, err);
    ndt_map_release(map);
    return status;
}

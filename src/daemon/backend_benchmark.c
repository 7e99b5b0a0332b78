#include "ndtd/backend_benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt_io/map_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/autotuner.h"
#include "ndtd/probe_scan.h"
#include "ndtd/realtime.h"
#include "ndtd/samples.h"
#include "ndt/clock.h"

static const size_t sizes[] = {756, 1500, 5000, 20000, 100000};
enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 20, LINE_BYTES = 2000 };
/* Time limit per size, in limits of a start. */
static const double PATIENCE = 2.5;

/* The numbers of a row [us], NAN where there is none; the first two are those of the autotuner. */
enum { P50, P95, EVALUATION, KERNEL, COPY, LAUNCH, SYNCHRONISE, TIMES };
static const char *const time_keys[TIMES] = {"align_p50_us", "align_p95_us", "evaluation_us", "kernel_us",
                                             "copy_us",      "launch_us",    "synchronise_us"};

struct size_result {
    struct ndtd_autotune_result tuned;
    double us[NDTD_AUTOTUNE_ROWS][TIMES];
};

/* ---- list ---- */

void ndtd_backends_print(FILE *file, const struct ndt_backend_config *plan_for)
{
    const struct ndt_backend_ops *ops;
    char text[2000];
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        struct ndt_error why = {""};
        const int works = ops->probe(&why) == NDT_OK;
        fprintf(file, "%-10s %s%s%s\n", ops->name, ops->about, works ? "" : "; not here: ", works ? "" : why.text);
        if (!plan_for || !ops->plan)
            continue;
        text[0] = '\0';
        ops->plan(plan_for, text, sizeof(text));
        for (const char *line = text; *line;) { /* indented under their backend */
            const size_t length = strcspn(line, "\n");
            fprintf(file, "           %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
    ndt_cpu_variants(text, sizeof(text));
    fprintf(file, "CPU instruction sets (cpu.isa) that run here: %s\n", text);
}

/* ---- measurement ---- */

static enum ndt_status time_evaluations(struct ndt_backend *backend, const struct ndt_eval_request *where,
                                        double us[TIMES], struct ndt_error *err)
{
    const struct ndt_backend_ops *ops = backend->ops;
    double evaluation_us[ROUNDS], kernel_us[ROUNDS];
    struct ndt_backend_counters before = {0}, after = {0};
    struct ndt_overheads cost;
    struct ndt_eval sums;
    for (int i = -3; i < ROUNDS; i++) { /* three to warm up */
        if (ops->counters)
            ops->counters(backend, &before);
        const double start_us = ndt_clock_us();
        enum ndt_status status = ops->eval(backend, where, &sums, err);
        if (status != NDT_OK)
            return status;
        evaluation_us[i < 0 ? 0 : i] = ndt_clock_us() - start_us;
        if (ops->counters)
            ops->counters(backend, &after);
        kernel_us[i < 0 ? 0 : i] = after.kernel_us - before.kernel_us;
    }
    struct ndtd_samples all = {.values = evaluation_us, .count = ROUNDS};
    struct ndtd_samples kernels = {.values = kernel_us, .count = ROUNDS};
    us[EVALUATION] = ndtd_samples_quantile(&all, 0.5);
    us[KERNEL] = ops->counters ? ndtd_samples_quantile(&kernels, 0.5) : NAN;
    if (!ops->overheads)
        return NDT_OK;
    enum ndt_status status = ops->overheads(backend, ROUNDS, &cost, err);
    if (status == NDT_OK) {
        us[COPY] = cost.copies_us;
        us[LAUNCH] = cost.launch_us;
        us[SYNCHRONISE] = cost.synchronise_us;
    }
    return status;
}

/* Parts of one evaluation on the finest level. */
static enum ndt_status time_parts(const struct ndtd_settings *settings, struct ndt_map *map,
                                  const struct ndtd_backend_candidate *candidate, const struct ndt_cloud *scan,
                                  const struct ndt_pose *T_map_sensor, double us[TIMES], struct ndt_error *err)
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
    enum ndt_status status = ops->open(&backend, &config, err);
    if (status != NDT_OK)
        return status;
    status = ops->set_map(backend, map, err);
    if (status == NDT_OK)
        status = ops->set_scan(backend, scan, err);
    if (status == NDT_OK)
        status = time_evaluations(backend, &where, us, err);
    ops->close(backend);
    return status;
}

static enum ndt_status measure_size(const struct ndtd_settings *settings, struct ndt_map *map, size_t points,
                                    struct size_result *out, struct ndt_error *err)
{
    struct ndt_cloud scan;
    struct ndtd_autotune_request request = {
        .settings = settings, .map = map, .scan = &scan, .time_us = 1e6 * PATIENCE * settings->autotune_limit_s};
    ndt_cloud_init(&scan);
    enum ndt_status status = ndtd_probe_scan(
        &scan, &request.T_map_sensor, map, settings->has_initial_pose ? settings->initial_pose : NULL, points, err);
    if (status == NDT_OK)
        status = ndtd_autotune_measure(&request, &out->tuned, err);
    for (size_t i = 0; status == NDT_OK && i < out->tuned.row_count; i++) {
        struct ndtd_autotune_row *row = &out->tuned.rows[i];
        struct ndt_error why = {""};
        for (int k = 0; k < TIMES; k++)
            out->us[i][k] = NAN;
        if (row->samples == 0)
            continue;
        out->us[i][P50] = row->p50_us;
        out->us[i][P95] = row->p95_us;
        if (time_parts(settings, map, &row->candidate, &scan, &request.T_map_sensor, out->us[i], &why) == NDT_OK)
            continue;
        row->samples = 0;
        snprintf(row->why, sizeof(row->why), "%.*s", (int)sizeof(row->why) - 1, why.text);
    }
    ndt_cloud_free(&scan);
    return status;
}

/* ---- tables ---- */

static void print_size(FILE *file, const struct size_result *size)
{
    static const int widths[TIMES] = {9, 9, 10, 11, 9, 11, 16};
    char name[80];
    for (size_t i = 0; i < size->tuned.row_count; i++) {
        const struct ndtd_autotune_row *row = &size->tuned.rows[i];
        fprintf(file, "%8zu  %-24s", size->tuned.points,
                ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)));
        for (int k = 0; row->samples > 0 && k < TIMES; k++)
            if (isnan(size->us[i][k]))
                fprintf(file, " %*s", widths[k], "-");
            else if (k <= P95)
                fprintf(file, " %*.3f", widths[k], size->us[i][k] * 1e-3);
            else
                fprintf(file, " %*.1f", widths[k], size->us[i][k]);
        if (row->samples == 0)
            fprintf(file, " not here: %s\n", row->why);
        else
            fputs((int)i == size->tuned.choice.row ? "  <\n" : "\n", file);
    }
    fprintf(file, "\n");
    fflush(file);
}

/* A row as a line of CSV or as an object of JSON. */
static void write_row(FILE *file, const struct size_result *size, size_t i, int is_json)
{
    const struct ndtd_autotune_row *row = &size->tuned.rows[i];
    const int is_chosen = (int)i == size->tuned.choice.row, is_measured = row->samples > 0;
    fprintf(file,
            is_json ? "{\"points\": %zu, \"backend\": \"%s\", \"pipeline\": \"%s\", \"threads\": %d, \"batch\": 1, "
                      "\"chosen\": %s"
                    : "%zu,%s,%s,%d,1,%s,",
            size->tuned.points, row->candidate.backend, row->candidate.pipeline, row->candidate.threads,
            is_json ? (is_chosen ? "true" : "false") : (is_chosen ? "1" : "0"));
    if (is_measured)
        fprintf(file, is_json ? ", \"samples\": %zu" : "%zu", row->samples);
    for (int k = 0; k < TIMES; k++) {
        const double us = size->us[i][k];
        if (!is_json)
            fputc(',', file);
        else if (is_measured)
            fprintf(file, ", \"%s\": %s", time_keys[k], isnan(us) ? "null" : "");
        if (is_measured && !isnan(us))
            fprintf(file, "%.6g", us);
    }
    if (is_json && is_measured) {
        fputc('}', file);
        return;
    }
    fputs(is_json ? ", \"not_here\": \"" : ",\"", file);
    for (const char *c = is_measured ? "" : row->why; *c; c++)
        fputc(*c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '\'' : *c, file);
    fputs(is_json ? "\"}" : "\"\n", file);
}

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static enum ndt_status write_table(const char *path, const struct size_result *results, struct ndt_error *err)
{
    const int is_json = ends_with(path, ".json");
    struct ndt_output output;
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    if (!is_json) {
        fprintf(output.file, "points,backend,pipeline,threads,batch,chosen,samples");
        for (int k = 0; k < TIMES; k++)
            fprintf(output.file, ",%s", time_keys[k]);
        fprintf(output.file, ",not_here\n");
    }
    for (size_t i = 0; i < SIZE_COUNT; i++)
        for (size_t k = 0; k < results[i].tuned.row_count; k++) {
            if (is_json)
                fputs(i + k > 0 ? ",\n  " : "[\n  ", output.file);
            write_row(output.file, &results[i], k, is_json);
        }
    if (is_json)
        fprintf(output.file, "\n]\n");
    return ndt_output_commit(&output, err);
}

/* ---- all ---- */

/* What the daemon would do, on the configured number of points. */
static enum ndt_status print_choice(const struct ndtd_settings *settings, struct ndt_map *map, FILE *report,
                                    struct ndt_error *err)
{
    struct ndtd_settings fresh = *settings;
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndtd_autotuner *tuner = NULL;
    struct ndtd_autotune_result tuned;
    char line[LINE_BYTES];
    fresh.autotune = 1;
    if (fresh.autotune_cache == NDTD_CACHE_ON)
        fresh.autotune_cache = NDTD_CACHE_REFRESH;
    enum ndt_status status = ndtd_settings_snapshot_create(&snapshot, &fresh, err);
    if (status == NDT_OK)
        status = ndtd_autotuner_create(&tuner, snapshot, err);
    if (status == NDT_OK && ndtd_autotuner_find(tuner, map, &tuned))
        fprintf(report, "autotune: %s\n", ndtd_autotune_line(&tuned, line, sizeof(line)));
    ndtd_autotuner_destroy(tuner);
    ndtd_settings_snapshot_release(snapshot);
    return status;
}

static enum ndt_status measure(const struct ndtd_settings *settings, struct ndt_map *map, const char *table,
                               FILE *report, struct ndt_error *err)
{
    struct size_result *results = calloc(SIZE_COUNT, sizeof(*results));
    int has_device = 0;
    enum ndt_status status = NDT_OK;
    if (!results)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for a table");
    fprintf(report,
            "map %016llx, %llu points; scans drawn from it, start poses off by up to 0.2 m and 0.6 deg\n\n"
            "%8s  %-24s %9s %9s evaluation kernel-only copy-only launch-only synchronise-only  [us]\n",
            (unsigned long long)map->id, (unsigned long long)map->points, "points", "candidate", "align p50",
            "p95 [ms]");
    for (size_t i = 0; status == NDT_OK && i < SIZE_COUNT; i++) {
        status = measure_size(settings, map, sizes[i], &results[i], err);
        if (status == NDT_OK)
            print_size(report, &results[i]);
    }
    for (size_t i = 0; ndt_backend_at(i); i++)
        has_device |= ndt_backend_at(i)->pipelines != NULL;
    fprintf(report,
            "%s< is what auto would take. Candidates that cannot win are measured less often. kernel-only: an "
            "evaluation by\nthe clock of the device or of the CPU's workers; - where nothing is copied or "
            "launched.\n\n",
            has_device ? "" : "This build has no backend for a device.\n");
    if (status == NDT_OK && table)
        status = write_table(table, results, err);
    free(results);
    return status == NDT_OK ? print_choice(settings, map, report, err) : status;
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

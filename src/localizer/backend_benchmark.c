/** @file
 * @brief `ndtd --list-backends`, and `ndtd --autotune`: all candidates on scans of several sizes. */
#include "ndtd/backend_benchmark.h"

#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndt_io/output_file.h"
#include "ndtd/autotune.h"
#include "ndtd/map_reading.h"
#include "ndtd/realtime.h"

static const size_t sizes[] = {756, 1500, 5000, 20000, 100000};
enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), LINE_BYTES = 2000 };
/* Time limit per size, in multiples of autotune.limit_ms. */
static const double PATIENCE = 2.5;

void ndtd_backends_print(FILE *file, const struct ndt_backend_config *config, int has_plans)
{
    const struct ndt_backend_ops *ops;
    char text[2000];
    for (size_t i = 0; (ops = ndt_backend_at(i)); i++) {
        struct ndt_error why = {""};
        const int works = ops->probe(config->device, &why) == NDT_OK;
        fprintf(file, "%-10s %s%s%s\n", ops->name, ops->about, works ? "" : "; not here: ", works ? "" : why.text);
        if (!has_plans || !ops->plan)
            continue;
        text[0] = '\0';
        ops->plan(config, text, sizeof(text));
        for (const char *line = text; *line;) { /* indented under their backend */
            const size_t length = strcspn(line, "\n");
            fprintf(file, "           %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
    ndt_cpu_variants(text, sizeof(text));
    fprintf(file, "CPU instruction sets (cpu.isa) that run here: %s\n", text);
}

/* ---- table ---- */

enum format { TEXT, CSV, JSON };
static const char *const table_begin[] = {
    [TEXT] = "  points  candidate                align p50  p95 [ms] evaluation [us]\n",
    [CSV] = ("points,backend,pipeline,threads,batch,chosen,samples,align_p50_us,align_p95_us,evaluation_us,"
             "unavailable\n"),
    [JSON] = "[\n",
};

/* Writes one candidate: a line of text or CSV, or an object of JSON. */
static void write_row(FILE *file, enum format format, const struct ndtd_autotune_result *tuned, size_t i)
{
    const struct ndtd_autotune_row *row = &tuned->rows[i];
    const struct ndtd_backend_candidate *candidate = &row->candidate;
    const int is_chosen = (int)i == tuned->choice.row, is_measured = row->samples > 0;
    char name[80], why[NDTD_AUTOTUNE_REASON], rested[40] = "";
    if (row->rested_us > 0)
        snprintf(rested, sizeof(rested), "  %.3f ms after a rest", row->rested_us * 1e-3);
    snprintf(why, sizeof(why), "%s", row->why);
    for (char *c = why; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
    switch (format) {
    case TEXT:
        ndtd_backend_candidate_name(candidate, name, sizeof(name));
        fprintf(file, "%8zu  %-24s", tuned->points, name);
        if (is_measured)
            fprintf(file, " %9.3f %9.3f %15.1f%s%s\n", row->p50_us * 1e-3, row->p95_us * 1e-3, row->evaluation_us,
                    rested, is_chosen ? "  <" : "");
        else
            fprintf(file, " not here: %s\n", row->why);
        break;
    case CSV:
        fprintf(file, "%zu,%s,%s,%d,1,%d,", tuned->points, candidate->backend, candidate->pipeline,
                candidate->threads, is_chosen);
        if (is_measured)
            fprintf(file, "%zu,%.6g,%.6g,%.6g,\n", row->samples, row->p50_us, row->p95_us, row->evaluation_us);
        else
            fprintf(file, ",,,,\"%s\"\n", why);
        break;
    case JSON:
        fprintf(file,
                "{\"points\": %zu, \"backend\": \"%s\", \"pipeline\": \"%s\", \"threads\": %d, \"batch\": 1, ",
                tuned->points, candidate->backend, candidate->pipeline, candidate->threads);
        fprintf(file, "\"chosen\": %s, ", is_chosen ? "true" : "false");
        if (is_measured)
            fprintf(file,
                    "\"samples\": %zu, \"align_p50_us\": %.6g, \"align_p95_us\": %.6g, \"evaluation_us\": %.6g}",
                    row->samples, row->p50_us, row->p95_us, row->evaluation_us);
        else
            fprintf(file, "\"unavailable\": \"%s\"}", why);
        break;
    }
}

static void write_size(FILE *file, enum format format, const struct ndtd_autotune_result *tuned, int is_first)
{
    for (size_t i = 0; i < tuned->row_count; i++) {
        if (format == JSON)
            fputs(is_first && i == 0 ? "  " : ",\n  ", file);
        write_row(file, format, tuned, i);
    }
    if (format == TEXT)
        fputc('\n', file);
    fflush(file);
}

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static enum ndt_status write_table(const char *path, const struct ndtd_autotune_result *results,
                                   struct ndt_error *err)
{
    const enum format format = ends_with(path, ".json") ? JSON : CSV;
    struct ndt_output output;
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    fputs(table_begin[format], output.file);
    for (size_t i = 0; i < SIZE_COUNT; i++)
        write_size(output.file, format, &results[i], i == 0);
    if (format == JSON)
        fputs("\n]\n", output.file);
    return ndt_output_commit(&output, err);
}

/* ---- measurement ---- */

/* Prints the choice of the daemon for the configured number of points. */
static enum ndt_status print_choice(const struct ndtd_settings *settings, struct ndt_map *map, FILE *report,
                                    struct ndt_error *err)
{
    const struct ndtd_autotune_request request = {
        .settings = settings, .map = map, .time_us = 1e6 * settings->autotune_limit_s};
    struct ndtd_autotune_result tuned;
    char line[LINE_BYTES];
    enum ndt_status status = ndtd_autotune_measure(&request, &tuned, err);
    if (status != NDT_OK)
        return status;
    fprintf(report, "autotune: %s\n", ndtd_autotune_line(&tuned, line, sizeof(line)));
    return NDT_OK;
}

static enum ndt_status measure(const struct ndtd_settings *settings, struct ndt_map *map, const char *table,
                               FILE *report, struct ndt_error *err)
{
    struct ndtd_autotune_result *results = calloc(SIZE_COUNT, sizeof(*results));
    enum ndt_status status = NDT_OK;
    if (!results)
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for a table");
    fprintf(report,
            "map %016llx, %llu points; scans drawn from it, start poses off by up to 0.2 m and 0.6 deg\n\n%s",
            (unsigned long long)map->id, (unsigned long long)map->points, table_begin[TEXT]);
    for (size_t i = 0; status == NDT_OK && i < SIZE_COUNT; i++) {
        const struct ndtd_autotune_request request = {.settings = settings,
                                                      .map = map,
                                                      .points = sizes[i],
                                                      .time_us = 1e6 * PATIENCE * settings->autotune_limit_s};
        status = ndtd_autotune_measure(&request, &results[i], err);
        if (status == NDT_OK)
            write_size(report, TEXT, &results[i], i == 0);
    }
    fputs(
        "< is the choice of auto. Candidates that cannot win are measured less often. evaluation: alignment time\n"
        "per evaluation; `ndt-bench overheads` shows kernels, copies and launches.\n\n",
        report);
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
    enum ndt_status status = ndtd_map_read(&map, settings->map_path, &settings->map, NULL, err);
    if (status != NDT_OK)
        return status;
    ndtd_realtime_enter(settings->rt_cpus, settings->rt_priority);
    status = measure(settings, map, table, report, err);
    ndt_map_release(map);
    return status;
}

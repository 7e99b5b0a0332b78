/* The same as JSON. */
#include <math.h>
#include <string.h>

#include "bench_report.h"
#include "ndt/names.h"
#include "ndt_io/output_file.h"

static void text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fprintf(file, "\\%c", *value);
        else if ((unsigned char)*value < 0x20)
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*value);
        else
            fputc(*value, file);
    }
    fputc('"', file);
}

/* JSON knows no NaN. */
static void number(FILE *file, const char *key, double value)
{
    if (isfinite(value))
        fprintf(file, "\"%s\": %.9g", key, value);
    else
        fprintf(file, "\"%s\": null", key);
}

static void spread(FILE *file, const char *key, struct ndtd_samples *samples)
{
    fprintf(file, "\"%s\": {", key);
    number(file, "median", ndtd_samples_quantile(samples, 0.5));
    fputs(", ", file);
    number(file, "p95", ndtd_samples_quantile(samples, 0.95));
    fputs(", ", file);
    number(file, "mean", ndtd_samples_mean(samples));
    fputc('}', file);
}

static void comma(FILE *file)
{
    fputs(", ", file);
}

static void tally(FILE *file, struct bench_tally *tally)
{
    fprintf(file, "\"starts\": %llu, \"recovered\": %llu, \"believed_wrong\": %llu, ",
            (unsigned long long)tally->starts, (unsigned long long)tally->recovered,
            (unsigned long long)tally->believed_wrong);
    number(file, "success", bench_tally_success(tally));
    comma(file);
    spread(file, "align_ms", &tally->align_ms);
    comma(file);
    spread(file, "evaluations", &tally->evaluations);
    comma(file);
    spread(file, "iterations", &tally->iterations);
    comma(file);
    spread(file, "error_m", &tally->error_m);
    comma(file);
    spread(file, "error_deg", &tally->error_deg);
}

static void candidate(FILE *file, const struct bench_matcher *matcher)
{
    char levels[64], neighbours[96], backend[128] = "";
    const struct ndt_align_params *params = &matcher->settings.align;
    if (matcher->backend->ops->describe)
        matcher->backend->ops->describe(matcher->backend, backend, sizeof(backend));
    text(file, "variant", ndt_variant_name(params->variant));
    comma(file);
    text(file, "levels_m", bench_levels_text(params, levels, sizeof(levels)));
    comma(file);
    text(file, "neighbours", bench_neighbours_text(params, neighbours, sizeof(neighbours)));
    comma(file);
    text(file, "backend", matcher->backend->ops->name);
    comma(file);
    text(file, "backend_description", backend);
    comma(file);
}

static void filtered(FILE *file, struct bench_filtered *item)
{
    fprintf(file, "{\"wanted\": %u, ", item->wanted);
    number(file, "voxel_m", item->voxel_m);
    comma(file);
    spread(file, "points", &item->used);
    comma(file);
    spread(file, "preprocess_us", &item->took_us);
    fputc('}', file);
}

static void maps(FILE *file, struct bench_maps *all)
{
    fputs(",\n\"maps\": [", file);
    for (size_t i = 0; i < all->count; i++) {
        struct bench_map *item = &all->items[i];
        fprintf(file, "%s\n  {\"leaves_m\": [", i ? "," : "");
        for (size_t k = 0; k < item->map->level_count; k++)
            fprintf(file, "%s%.9g", k ? ", " : "", item->map->levels[k].leaf_m);
        fprintf(file, "], \"points\": %llu, \"bytes\": %zu, ", (unsigned long long)item->map->points,
                item->map->bytes);
        text(file, "covariance", ndt_covariance_name(item->config.covariance));
        comma(file);
        spread(file, "build_ms", &item->build_ms);
        fputc('}', file);
    }
    fputs("]", file);
}

static void grid(FILE *file, struct bench_grid *all)
{
    fputs(",\n\"preprocess\": [", file);
    for (size_t i = 0; i < all->filtered_count; i++) {
        fputs(i ? ",\n  " : "\n  ", file);
        filtered(file, &all->filtered[i]);
    }
    fputs("],\n\"align\": [", file);
    for (size_t i = 0; i < all->row_count; i++) {
        struct bench_row *row = &all->rows[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        if (row->peer) {
            text(file, "peer", row->peer->name);
            comma(file);
            text(file, "about", row->peer->about);
            comma(file);
        } else {
            candidate(file, &row->matcher);
            spread(file, "eval_us", &row->eval_us);
            comma(file);
            spread(file, "pairs", &row->pairs);
            comma(file);
        }
        number(file, "points", ndtd_samples_quantile(&all->filtered[row->filtered].used, 0.5));
        comma(file);
        tally(file, &row->tally);
        fputc('}', file);
    }
    fputs("]", file);
}

static void basin(FILE *file, struct bench_basin *all, const struct bench_options *options)
{
    const char *before = "";
    fputs(",\n\"preprocess\": ", file);
    filtered(file, &all->filtered);
    fputs(",\n\"basin\": [", file);
    for (int i = 0; i < BENCH_BASIN_CANDIDATES; i++) {
        for (size_t k = 0; k < options->offset_count; k++) {
            fprintf(file, "%s\n  {", before);
            before = ",";
            candidate(file, &all->candidates[i]);
            number(file, "offset_m", options->offsets[k].shift_m);
            comma(file);
            number(file, "offset_deg", options->offsets[k].turn_deg);
            comma(file);
            tally(file, &all->tallies[i][k]);
            fputc('}', file);
        }
    }
    fputs("]", file);
}

static void machine(FILE *file, const struct bench_machine *it)
{
    fputs("{\"machine\": {", file);
    text(file, "cpu", it->cpu);
    fprintf(file, ", \"cores\": %d, ", it->cores);
    text(file, "compiler", it->compiler);
    comma(file);
    text(file, "cpu_variants", it->variants);
    fputs("}", file);
}

enum ndt_status bench_report_json(const struct bench_report *report, const char *path, struct ndt_error *err)
{
    struct ndt_output out;
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    machine(out.file, &report->machine);
    fprintf(out.file, ",\n\"scans\": %zu, \"seed\": %llu, ", report->input->count,
            (unsigned long long)report->options->seed);
    number(out.file, "success_m", BENCH_SUCCESS_M);
    comma(out.file);
    number(out.file, "success_deg", BENCH_SUCCESS_DEG);
    maps(out.file, report->maps);
    if (report->preprocess) {
        fputs(",\n\"front\": ", out.file);
        bench_preprocess_json(report->preprocess, out.file);
    }
    if (report->grid)
        grid(out.file, report->grid);
    else if (report->basin)
        basin(out.file, report->basin, report->options);
    if (report->batches) {
        fputs(",\n\"batches\": ", out.file);
        bench_batch_json(&report->batches->result, out.file);
    }
    if (report->overheads) {
        fputs(",\n\"overheads\": ", out.file);
        bench_overheads_json(report->overheads, out.file);
    }
    fputs("}\n", out.file);
    return ndt_output_commit(&out, err);
}

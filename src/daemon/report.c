#include "ndtd/report.h"

#include <inttypes.h>

static double largest(struct ndtd_samples *samples)
{
    return ndtd_samples_quantile(samples, 1);
}

static void print_outcomes(FILE *file, const struct ndtd_summary *summary)
{
    fprintf(file, "%-18s %" PRIu64 "\n", "scans", summary->scans);
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++)
        if (summary->outcomes[i])
            fprintf(file, "  %-16s %" PRIu64 "\n", ndt_outcome_name((enum ndt_outcome)i), summary->outcomes[i]);
}

static void print_errors(FILE *file, struct ndtd_errors *errors)
{
    if (!errors->compared) {
        fprintf(file, "\nno truth in the bag for these scans\n");
        return;
    }
    struct ndtd_samples *cm = &errors->translation_m, *deg = &errors->rotation_deg;
    fprintf(file, "  %-16s %zu of %zu with truth (over %g m or %g deg, or no pose)\n", "lost", errors->lost,
            errors->compared, NDTD_LOST_M, NDTD_LOST_DEG);
    fprintf(file, "\n%-18s %10s %10s %10s\n", "against truth", "median", "p95", "max");
    fprintf(file, "  %-16s %10.2f %10.2f %10.2f\n", "translation [cm]", 100 * ndtd_samples_quantile(cm, 0.5),
            100 * ndtd_samples_quantile(cm, 0.95), 100 * largest(cm));
    fprintf(file, "  %-16s %10.4f %10.4f %10.4f\n", "rotation [deg]", ndtd_samples_quantile(deg, 0.5),
            ndtd_samples_quantile(deg, 0.95), largest(deg));
}

static void print_times(FILE *file, struct ndtd_summary *summary)
{
    struct ndtd_samples *align = &summary->align_ms;
    fprintf(file, "\n%-18s %10s %10s %10s %10s\n", "per scan", "p50", "p95", "p99", "max");
    fprintf(file, "  %-16s %10.3f %10.3f %10.3f %10.3f\n", "align [ms]", ndtd_samples_quantile(align, 0.5),
            ndtd_samples_quantile(align, 0.95), ndtd_samples_quantile(align, 0.99), largest(align));
    fprintf(file, "  %-16s mean %.1f, most %.0f; evaluations mean %.1f\n", "iterations",
            ndtd_samples_mean(&summary->iterations), largest(&summary->iterations),
            ndtd_samples_mean(&summary->evaluations));
    fprintf(file, "\n%-18s %10s %10s\n", "stages [us]", "mean", "p95");
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        fprintf(file, "  %-16s %10.1f %10.1f\n", ndtd_stage_at(i)->name, ndtd_samples_mean(&summary->stage_us[i]),
                ndtd_samples_quantile(&summary->stage_us[i], 0.95));
}

void ndtd_report_table(FILE *file, struct ndtd_summary *summary)
{
    print_outcomes(file, summary);
    print_errors(file, &summary->errors);
    print_times(file, summary);
    fprintf(file, "\n%-18s %s; variant %s\n", "backend", summary->description, summary->variant);
    fprintf(file, "%-18s id %016" PRIx64 ", %" PRIu64 " points, loaded in %.1f ms\n", "map", summary->map_id,
            summary->map_points, summary->map_load_ms);
    fprintf(file, "%-18s %.1f MiB\n", "peak memory", (double)summary->peak_memory_bytes / 1048576.0);
    fprintf(file, "%-18s %.2f s, %.0f scans/s\n", "replay", summary->replay_s,
            summary->replay_s > 0 ? (double)summary->scans / summary->replay_s : 0);
    fprintf(file, "%-18s %016" PRIx64 "\n", "trajectory hash", summary->trajectory_hash);
}

/* Texts of ours and of backends; everything that JSON could trip over is escaped. */
static void json_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, "  \"%s\": \"", key);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fprintf(file, "\",\n");
}

static void json_errors(FILE *file, const char *key, int known, struct ndtd_samples *errors)
{
    if (!known || !errors->count)
        fprintf(file, "  \"%s\": null,\n", key);
    else
        fprintf(file, "  \"%s\": {\"median\": %.6g, \"p95\": %.6g, \"max\": %.6g},\n", key,
                ndtd_samples_quantile(errors, 0.5), ndtd_samples_quantile(errors, 0.95), largest(errors));
}

static void json_results(FILE *file, struct ndtd_summary *summary)
{
    struct ndtd_errors *errors = &summary->errors;
    int known = errors->compared > 0;
    fprintf(file, "  \"scans\": %" PRIu64 ",\n  \"outcomes\": {", summary->scans);
    const char *separator = "";
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++) {
        fprintf(file, "%s\"%s\": %" PRIu64, separator, ndt_outcome_name((enum ndt_outcome)i), summary->outcomes[i]);
        separator = ", ";
    }
    fprintf(file, "},\n");
    if (known)
        fprintf(file, "  \"lost\": %zu,\n", errors->lost);
    else
        fprintf(file, "  \"lost\": null,\n");
    json_errors(file, "translation_error_m", known, &errors->translation_m);
    json_errors(file, "rotation_error_deg", known, &errors->rotation_deg);
}

static void json_times(FILE *file, struct ndtd_summary *summary)
{
    struct ndtd_samples *align = &summary->align_ms;
    fprintf(file, "  \"align_ms\": {\"p50\": %.6g, \"p95\": %.6g, \"p99\": %.6g, \"max\": %.6g},\n",
            ndtd_samples_quantile(align, 0.5), ndtd_samples_quantile(align, 0.95),
            ndtd_samples_quantile(align, 0.99), largest(align));
    fprintf(file, "  \"iterations\": {\"mean\": %.6g, \"max\": %.0f},\n  \"evaluations\": {\"mean\": %.6g},\n",
            ndtd_samples_mean(&summary->iterations), largest(&summary->iterations),
            ndtd_samples_mean(&summary->evaluations));
    fprintf(file, "  \"stages_us\": {");
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        fprintf(file, "%s\"%s\": {\"mean\": %.6g, \"p95\": %.6g}", i ? ", " : "", ndtd_stage_at(i)->name,
                ndtd_samples_mean(&summary->stage_us[i]), ndtd_samples_quantile(&summary->stage_us[i], 0.95));
    fprintf(file, "},\n");
}

void ndtd_report_json(FILE *file, struct ndtd_summary *summary)
{
    fprintf(file, "{\n");
    json_results(file, summary);
    json_times(file, summary);
    json_text(file, "backend", summary->backend);
    json_text(file, "backend_description", summary->description);
    json_text(file, "variant", summary->variant);
    fprintf(file, "  \"threads\": %d,\n  \"trajectory_hash\": \"%016" PRIx64 "\",\n", summary->threads,
            summary->trajectory_hash);
    fprintf(file, "  \"map_id\": \"%016" PRIx64 "\",\n  \"map_points\": %" PRIu64 ",\n  \"map_load_ms\": %.3f,\n",
            summary->map_id, summary->map_points, summary->map_load_ms);
    fprintf(file, "  \"replay_s\": %.3f,\n  \"peak_memory_bytes\": %" PRIu64 ",\n", summary->replay_s,
            summary->peak_memory_bytes);
    fprintf(file, "  \"version\": \"" NDT_VERSION "\"\n}\n");
}

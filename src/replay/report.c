#include "ndtd/report.h"

#include <inttypes.h>
#include <string.h>

#include "ndt/version.h"
#include "ndtd/machine_name.h"

/* ---- summary ---- */

/* Stages of a scan, and the members of struct ndtd_scan_record with their times [us]. */
static const struct {
    const char *name;
    size_t offset;
} stages[NDTD_STAGE_COUNT] = {
    {"decode", offsetof(struct ndtd_scan_record, decode_us)},
    {"queue", offsetof(struct ndtd_scan_record, queue_us)},
    {"preprocess", offsetof(struct ndtd_scan_record, preprocess_us)},
    {"upload", offsetof(struct ndtd_scan_record, upload_us)},
    {"align", offsetof(struct ndtd_scan_record, align_us)},
    {"publish", offsetof(struct ndtd_scan_record, publish_us)},
};

static enum ndt_status add_matched(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                   struct ndt_error *err)
{
    enum ndt_status status = ndtd_samples_add(&summary->align_ms, record->align_us / 1000, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&summary->iterations, record->result.iterations, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&summary->evaluations, record->result.evaluations, err);
    return status;
}

static void add_state(struct ndtd_summary *summary, const struct ndtd_scan_record *record)
{
    if ((unsigned)record->state < NDT_STATE_COUNT)
        summary->states[record->state]++;
    summary->untrusted += ndtd_scan_is_untrusted(record) != 0;
    if (!ndtd_state_change_update(&summary->state_change, record))
        return;
    if (summary->state_change_count < NDTD_STATE_CHANGES_KEPT)
        summary->state_changes[summary->state_change_count] = summary->state_change;
    summary->state_change_count++;
}

enum ndt_status ndtd_summary_add(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                 struct ndt_error *err)
{
    summary->scans++;
    if ((unsigned)record->result.outcome < NDT_OUTCOME_COUNT)
        summary->outcomes[record->result.outcome]++;
    summary->doubted += record->is_doubted != 0;
    add_state(summary, record);
    enum ndt_status status = ndtd_samples_add(&summary->confidence, record->confidence, err);
    if (status == NDT_OK && record->result.evaluations > 0)
        status = add_matched(summary, record, err);
    for (size_t i = 0; i < NDTD_STAGE_COUNT && status == NDT_OK; i++) {
        double us;
        memcpy(&us, (const char *)record + stages[i].offset, sizeof(us));
        status = ndtd_samples_add(&summary->stage_us[i], us, err);
    }
    return status;
}

void ndtd_summary_free(struct ndtd_summary *summary)
{
    ndtd_samples_free(&summary->align_ms);
    ndtd_samples_free(&summary->iterations);
    ndtd_samples_free(&summary->evaluations);
    ndtd_samples_free(&summary->confidence);
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        ndtd_samples_free(&summary->stage_us[i]);
    ndtd_errors_free(&summary->errors);
}

/* ---- table and JSON ---- */

enum { OVERRIDE_BYTES = 2048 }; /* bytes of an option and its value; longer ones are cut */

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

static uint64_t kept_changes(const struct ndtd_summary *summary)
{
    return summary->state_change_count < NDTD_STATE_CHANGES_KEPT ? summary->state_change_count
                                                                 : NDTD_STATE_CHANGES_KEPT;
}

static void print_states(FILE *file, const struct ndtd_summary *summary)
{
    char line[512];
    fprintf(file, "\n%s\n", "state after a scan");
    for (int i = 0; i < NDT_STATE_COUNT; i++)
        if (summary->states[i])
            fprintf(file, "  %-16s %" PRIu64 "\n", ndt_state_name((enum ndt_state)i), summary->states[i]);
    if (summary->omitted)
        fprintf(file, "  poses that are not trusted and left out of --out: %" PRIu64 "\n", summary->omitted);
    for (uint64_t i = 0; i < kept_changes(summary); i++)
        fprintf(file, "  %s\n", ndtd_state_change_line(&summary->state_changes[i], line, sizeof(line)));
    if (kept_changes(summary) < summary->state_change_count)
        fprintf(file, "  and %" PRIu64 " more changes\n", summary->state_change_count - kept_changes(summary));
}

static void print_errors(FILE *file, struct ndtd_errors *errors)
{
    if (!errors->compared) {
        fprintf(file, "\nno ground truth in the bag for these scans: errors are not known\n");
        return;
    }
    struct ndtd_samples *cm = &errors->translation_m, *deg = &errors->rotation_deg;
    fprintf(file, "  %-16s %zu of %zu with ground truth (over %g m or %g deg, or no pose)\n", "off", errors->off,
            errors->compared, NDTD_OFF_M, NDTD_OFF_DEG);
    fprintf(file, "\n%-18s %10s %10s %10s\n", "against ground truth", "median", "p95", "max");
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
    if (summary->confidence.count)
        fprintf(file, "  %-16s mean %.4f, least %.4f; %" PRIu64 " below the minimum\n", "confidence",
                ndtd_samples_mean(&summary->confidence), ndtd_samples_quantile(&summary->confidence, 0),
                summary->doubted);
    fprintf(file, "\n%-18s %10s %10s\n", "stages [us]", "mean", "p95");
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        fprintf(file, "  %-16s %10.1f %10.1f\n", stages[i].name, ndtd_samples_mean(&summary->stage_us[i]),
                ndtd_samples_quantile(&summary->stage_us[i], 0.95));
}

static size_t kept_overrides(const struct ndtd_run_inputs *inputs)
{
    return inputs->override_count < NDTD_OVERRIDES_KEPT ? inputs->override_count : NDTD_OVERRIDES_KEPT;
}

/* Text KEY=VALUE of an override. */
static const char *override_text(const struct ndtd_override *override, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", override->key ? override->key : "", override->key ? "=" : "", override->value);
    return text;
}

/* The kinds of messages that a replay takes in besides scans. */
static const enum ndt_message_type taken_kinds[] = {NDT_MESSAGE_INITIAL_POSE, NDT_MESSAGE_ODOMETRY, NDT_MESSAGE_IMU,
                                                    NDT_MESSAGE_GNSS, NDT_MESSAGE_TRANSFORM};
enum { TAKEN_KINDS = sizeof(taken_kinds) / sizeof(taken_kinds[0]) };

/* Prints how many messages of each kind were taken: what a recording had, or an import found in it. */
static void print_messages(FILE *file, const struct ndtd_summary *summary)
{
    const char *separator = "";
    for (size_t i = 0; i < TAKEN_KINDS; i++)
        if (summary->messages[taken_kinds[i]]) {
            fprintf(file, "%s%" PRIu64 " %s", separator, summary->messages[taken_kinds[i]],
                    ndt_message_name(taken_kinds[i]));
            separator = ", ";
        }
    fputs(*separator ? "\n" : "nothing\n", file);
}

static void json_messages(FILE *file, const struct ndtd_summary *summary)
{
    fputs("  \"messages\": {", file);
    for (size_t i = 0; i < TAKEN_KINDS; i++)
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", ndt_message_name(taken_kinds[i]),
                summary->messages[taken_kinds[i]]);
    fputs("},\n", file);
}

static void print_inputs(FILE *file, const struct ndtd_summary *summary)
{
    const struct ndtd_run_inputs *inputs = summary->inputs;
    char text[OVERRIDE_BYTES];
    const char *separator = "";
    fprintf(file, "\n%-18s %s\n%-18s ", "bag", inputs->bag, "besides scans");
    print_messages(file, summary);
    fprintf(file, "%-18s %s\n%-18s ", "map file", inputs->map, "settings");
    for (size_t i = 0; i < inputs->files.count; i++, separator = ", ")
        fprintf(file, "%s%s", separator, inputs->files.paths[i]);
    for (size_t i = 0; i < kept_overrides(inputs); i++, separator = ", ")
        fprintf(file, "%s%s", separator, override_text(&inputs->overrides[i], text, sizeof(text)));
    if (kept_overrides(inputs) < inputs->override_count)
        fprintf(file, " and %zu more", inputs->override_count - kept_overrides(inputs));
    fputs(*separator ? "\n" : "defaults\n", file);
}

void ndtd_report_table(FILE *file, struct ndtd_summary *summary)
{
    print_outcomes(file, summary);
    print_errors(file, &summary->errors);
    print_states(file, summary);
    print_times(file, summary);
    if (summary->inputs)
        print_inputs(file, summary);
    fprintf(file, "\n%-18s %s; variant %s\n", "backend", summary->description, summary->variant);
    fprintf(file, "%-18s id %016" PRIx64 ", %" PRIu64 " points, loaded in %.1f ms\n", "map", summary->map_id,
            summary->map_points, summary->map_load_ms);
    if (summary->overlay_id)
        fprintf(file, "%-18s id %016" PRIx64 "\n", "overlay", summary->overlay_id);
    fprintf(file, "%-18s %.1f MiB\n", "peak memory", (double)summary->peak_memory_bytes / 1048576.0);
    fprintf(file, "%-18s %.2f s, %.0f scans/s\n", "replay", summary->replay_s,
            summary->replay_s > 0 ? (double)summary->scans / summary->replay_s : 0);
    fprintf(file, "%-18s %016" PRIx64 "\n", "trajectory hash", summary->trajectory_hash);
    for (size_t i = 0; summary->hints && i < summary->hints->count; i++)
        fprintf(file, "%shint: %s\n", i ? "" : "\n", summary->hints->text[i]);
}

/* Escapes characters that JSON does not allow in a string. */
static void json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}

static void json_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, "  \"%s\": ", key);
    json_string(file, text);
    fprintf(file, ",\n");
}

static void json_errors(FILE *file, const char *key, int known, struct ndtd_samples *errors)
{
    if (!known || !errors->count)
        fprintf(file, "  \"%s\": null,\n", key);
    else
        fprintf(file, "  \"%s\": {\"median\": %.6g, \"p95\": %.6g, \"max\": %.6g},\n", key,
                ndtd_samples_quantile(errors, 0.5), ndtd_samples_quantile(errors, 0.95), largest(errors));
}

static void json_states(FILE *file, const struct ndtd_summary *summary)
{
    fprintf(file, "  \"states\": {");
    for (int i = 0; i < NDT_STATE_COUNT; i++)
        fprintf(file, "%s\"%s\": %" PRIu64, i ? ", " : "", ndt_state_name((enum ndt_state)i), summary->states[i]);
    fprintf(file, "},\n  \"untrusted\": %" PRIu64 ",\n", summary->untrusted);
    if (summary->has_out)
        fprintf(file, "  \"out_omitted\": %" PRIu64 ",\n", summary->omitted);
    else
        fprintf(file, "  \"out_omitted\": null,\n");
    fprintf(file, "  \"state_changes\": {\"count\": %" PRIu64 ", \"first\": [", summary->state_change_count);
    for (uint64_t i = 0; i < kept_changes(summary); i++) {
        const struct ndtd_state_change *change = &summary->state_changes[i];
        fprintf(file, "%s{\"seq\": %" PRIu64 ", \"stamp_ns\": %" PRId64 ", \"from\": \"%s\", \"to\": \"%s\", ",
                i ? ", " : "", change->seq, change->stamp_ns, ndt_state_name(change->from),
                ndt_state_name(change->to));
        fprintf(file, "\"reason\": ");
        json_string(file, change->reason);
        fputc('}', file);
    }
    fprintf(file, "]},\n");
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
    json_states(file, summary);
    if (known)
        fprintf(file, "  \"off\": %zu,\n", errors->off);
    else
        fprintf(file, "  \"off\": null,\n");
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
    if (summary->confidence.count)
        fprintf(file, "  \"confidence\": {\"mean\": %.6g, \"min\": %.6g, \"low\": %" PRIu64 "},\n",
                ndtd_samples_mean(&summary->confidence), ndtd_samples_quantile(&summary->confidence, 0),
                summary->doubted);
    else
        fprintf(file, "  \"confidence\": null,\n");
    fprintf(file, "  \"stages_us\": {");
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        fprintf(file, "%s\"%s\": {\"mean\": %.6g, \"p95\": %.6g}", i ? ", " : "", stages[i].name,
                ndtd_samples_mean(&summary->stage_us[i]), ndtd_samples_quantile(&summary->stage_us[i], 0.95));
    fprintf(file, "},\n");
}

static void json_inputs(FILE *file, const struct ndtd_run_inputs *inputs)
{
    char text[OVERRIDE_BYTES];
    json_text(file, "bag", inputs->bag);
    json_text(file, "map", inputs->map);
    fputs("  \"settings\": {\"files\": [", file);
    for (size_t i = 0; i < inputs->files.count; i++) {
        fputs(i ? ", " : "", file);
        json_string(file, inputs->files.paths[i]);
    }
    fputs("], \"overrides\": [", file);
    for (size_t i = 0; i < kept_overrides(inputs); i++) {
        fputs(i ? ", " : "", file);
        json_string(file, override_text(&inputs->overrides[i], text, sizeof(text)));
    }
    fputs("]},\n", file);
}

static void json_hints(FILE *file, const struct ndtd_hints *hints)
{
    fputs("  \"hints\": [", file);
    for (size_t i = 0; i < hints->count; i++) {
        fputs(i ? ", " : "", file);
        json_string(file, hints->text[i]);
    }
    fputs("],\n", file);
}

void ndtd_report_json(FILE *file, struct ndtd_summary *summary)
{
    char machine[400];
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
    if (summary->overlay_id)
        fprintf(file, "  \"overlay_id\": \"%016" PRIx64 "\",\n", summary->overlay_id);
    fprintf(file, "  \"replay_s\": %.3f,\n  \"peak_memory_bytes\": %" PRIu64 ",\n", summary->replay_s,
            summary->peak_memory_bytes);
    if (summary->inputs) {
        json_inputs(file, summary->inputs);
        json_messages(file, summary);
    }
    if (summary->hints)
        json_hints(file, summary->hints);
    json_text(file, "machine", ndtd_machine_name(machine, sizeof(machine)));
    fprintf(file, "  \"version\": \"%s\",\n  \"commit\": \"%s\"\n}\n", ndt_version(), ndt_commit());
}

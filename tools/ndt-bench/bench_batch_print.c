#include "bench_batch.h"

#include <string.h>

static const char *kind_name(const struct bench_batch_row *row)
{
    return row->kind == BENCH_SCANS ? "scans" : row->items == 1 ? "guess" : "guesses";
}

static double per_item_us(const struct bench_batch_row *row)
{
    return 1e3 * row->together_ms / (double)row->items;
}

static double success(const struct bench_batch_row *row)
{
    return row->tried ? 100.0 * (double)row->recovered / (double)row->tried : 0;
}

/* Wanted of whole searches on a device, not of what is emulated: that has another name. */
static int has_target(const struct bench_batch_row *row)
{
    return row->kind == BENCH_GUESSES && row->items == BENCH_BATCH_TARGET_ITEMS &&
           row->points == BENCH_BATCH_TARGET_POINTS && strncmp(row->what, "cuda resident", 13) == 0;
}

static void target_text(const struct bench_batch_row *row, char *text, size_t size)
{
    if (has_target(row))
        snprintf(text, size, "<= %g: %s", BENCH_BATCH_TARGET_MS,
                 row->together_ms <= BENCH_BATCH_TARGET_MS ? "met" : "missed");
    else
        snprintf(text, size, "-");
}

void bench_batch_print(const struct bench_batch *all, FILE *file)
{
    fprintf(file,
            "\nbatches: all items in one call against one after the other; medians\n"
            "%-28s %6s %6s %-8s %12s %9s %11s %10s %7s %9s %6s %9s  %-7s %s\n",
            "backend", "points", "items", "", "together ms", "p95", "us per item", "alone ms", "ratio", "launches",
            "evals", "success", "bits", "wanted ms");
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_batch_row *row = &all->rows[i];
        char target[32];
        target_text(row, target, sizeof(target));
        fprintf(file, "%-28s %6zu %6zu %-8s ", row->what, row->points, row->items, kind_name(row));
        if (row->is_here)
            fprintf(file, "%12.3f %9.3f %11.1f %10.3f %7.2f %9.1f %6.1f %7.1f %%  %-7s %s\n", row->together_ms,
                    row->p95_ms, per_item_us(row), row->alone_ms, row->alone_ms / row->together_ms, row->launches,
                    row->evaluations, success(row), row->is_same ? "as one" : "DIFFER", target);
        else
            fprintf(file, "%s: %s\n", row->has_failed ? "FAIL" : "not here", row->why.text);
    }
}

void bench_batch_markdown(const struct bench_batch *all, FILE *file)
{
    fprintf(
        file,
        "| backend | points | items | together [ms] | p95 [ms] | per item [us] | alone [ms] | alone / together | "
        "launches | evaluations | success | bits | wanted [ms] |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
        "---|\n");
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_batch_row *row = &all->rows[i];
        char target[32];
        target_text(row, target, sizeof(target));
        fprintf(file, "| %s | %zu | %zu %s | ", row->what, row->points, row->items, kind_name(row));
        if (row->is_here)
            fprintf(file, "%.3f | %.3f | %.1f | %.3f | %.2f | %.1f | %.1f | %.1f %% | %s | %s |\n",
                    row->together_ms, row->p95_ms, per_item_us(row), row->alone_ms,
                    row->alone_ms / row->together_ms, row->launches, row->evaluations, success(row),
                    row->is_same ? "as one" : "DIFFER", target);
        else
            fprintf(file, "%s: %s |\n", row->has_failed ? "FAIL" : "not here", row->why.text);
    }
}

/* Names and reasons are our own lines: quotes and backslashes are all that can disturb. */
static void text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++)
        fprintf(file, *value == '"' || *value == '\\' ? "\\%c" : "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    fputs("\", ", file);
}

void bench_batch_json(const struct bench_batch *all, FILE *file)
{
    fputc('[', file);
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_batch_row *row = &all->rows[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        text(file, "backend", row->what);
        text(file, "of", row->kind == BENCH_SCANS ? "scans" : "guesses");
        if (!row->is_here)
            text(file, row->has_failed ? "failed" : "not_here", row->why.text);
        fprintf(file, "\"points\": %zu, \"items\": %zu", row->points, row->items);
        if (row->is_here)
            fprintf(
                file,
                ", \"together_ms\": %.6g, \"p95_ms\": %.6g, \"per_item_us\": %.6g, \"alone_ms\": %.6g, "
                "\"launches\": %.4g, \"evaluations\": %.4g, \"recovered\": %zu, \"tried\": %zu, \"same_bits\": %s",
                row->together_ms, row->p95_ms, per_item_us(row), row->alone_ms, row->launches, row->evaluations,
                row->recovered, row->tried, row->is_same ? "true" : "false");
        if (has_target(row))
            fprintf(file, ", \"wanted_ms\": %g", BENCH_BATCH_TARGET_MS);
        fputc('}', file);
    }
    fputc(']', file);
}

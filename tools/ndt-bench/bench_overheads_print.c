#include "bench_overheads.h"

static const char NO_DEVICE[] = "this build has no backend for a device";

static int has_repeats(const struct bench_overheads *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->rows[i].points > all->rows[i].measured_points)
            return 1;
    return 0;
}

static void print_notes(const struct bench_overheads *all, FILE *file)
{
    if (all->is_lacking_device)
        fprintf(file, "\nkernel-only, copy-only, launch-only, synchronise-only: not here: %s\n", NO_DEVICE);
    if (has_repeats(all))
        fprintf(
            file,
            "\nThe scan has %zu points. Beyond them its points are repeated, each moved by up to 2 cm (seeded).\n",
            all->rows[0].measured_points);
}

void bench_overheads_print(const struct bench_overheads *all, FILE *file)
{
    fprintf(file, "\none evaluation, and what a device needs besides its kernels; medians\n");
    fprintf(file, "%-24s %-18s %8s %12s\n", "backend", "row", "points", "us");
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_overhead *row = &all->rows[i];
        fprintf(file, "%-24s %-18s %8zu ", row->what, bench_overhead_kind_name(row->kind), row->points);
        if (row->is_here)
            fprintf(file, "%12.2f\n", row->median_us);
        else
            fprintf(file, "not here: %s\n", row->why.text);
    }
    print_notes(all, file);
}

void bench_overheads_markdown(const struct bench_overheads *all, FILE *file)
{
    fprintf(file, "| backend | row | points | median [us] |\n|---|---|---|---|\n");
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_overhead *row = &all->rows[i];
        fprintf(file, "| %s | %s | %zu | ", row->what, bench_overhead_kind_name(row->kind), row->points);
        if (row->is_here)
            fprintf(file, "%.2f |\n", row->median_us);
        else
            fprintf(file, "not here: %s |\n", row->why.text);
    }
    print_notes(all, file);
}

/* Reasons are our own lines: quotes and backslashes are all that can disturb. */
static void text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++)
        fprintf(file, *value == '"' || *value == '\\' ? "\\%c" : "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    fputc('"', file);
}

void bench_overheads_json(const struct bench_overheads *all, FILE *file)
{
    fputc('[', file);
    for (size_t i = 0; i < all->count; i++) {
        const struct bench_overhead *row = &all->rows[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        text(file, "backend", row->what);
        fputs(", ", file);
        text(file, "row", bench_overhead_kind_name(row->kind));
        fprintf(file, ", \"points\": %zu, \"repeated_points\": %s, ", row->points,
                row->points > row->measured_points ? "true" : "false");
        if (row->is_here)
            fprintf(file, "\"median_us\": %.6g}", row->median_us);
        else {
            fputs("\"median_us\": null, ", file);
            text(file, "not_here", row->why.text);
            fputc('}', file);
        }
    }
    if (all->is_lacking_device) {
        fputs(all->count ? ",\n  {" : "\n  {", file);
        text(file, "not_here", NO_DEVICE);
        fputc('}', file);
    }
    fputc(']', file);
}

#include "gpu_align.h"

static const char *chain_name(const struct gpu_align_row *row)
{
    return row->chain == GPU_ALIGN_ONE_LEVEL ? "2 m" : "4-2-1 m";
}

static const char *hash_name(const struct gpu_align_row *row)
{
    return row->is_other ? "NOT THOSE OF THE OTHER SHAPES" : row->is_shape ? "as all shapes" : "";
}

static void print_times(const struct gpu_aligns *all, FILE *file)
{
    fprintf(file,
            "| backend | levels | points | align [us] | p95 | wanted | upload | kernels | rest | evaluations | "
            "success | off by at most | bits |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < all->count; i++) {
        const struct gpu_align_row *row = &all->rows[i];
        char target[48] = "-";
        if (row->wanted_us > 0)
            snprintf(target, sizeof(target), "<= %g: %s", row->wanted_us,
                     row->align_us <= row->wanted_us ? "met" : "missed");
        fprintf(file, "| %s | %s | %zu | ", row->name, chain_name(row), row->points);
        if (row->is_here)
            fprintf(file,
                    "%.1f | %.1f | %s | %.1f | %.1f | %.1f | %.1f | %.1f %% | %.4f mm, %.5f deg | %016llx %s |\n",
                    row->align_us, row->p95_us, target, row->upload_us, row->kernel_us,
                    row->align_us - row->upload_us - row->kernel_us, row->evaluations,
                    100.0 * (double)row->recovered / (double)row->tried, 1e3 * row->off_m, row->off_deg,
                    (unsigned long long)row->hash, hash_name(row));
        else
            fprintf(file, "%s: %s |\n", row->is_broken ? "FAIL" : "not here", row->why.text);
    }
}

static void print_lines(const struct gpu_aligns *all, FILE *file)
{
    fprintf(file, "| backend | points | per evaluation [us] | once per align [us] | kernels per evaluation [us] | "
                  "kernels once [us] |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < all->count; i++) {
        const struct gpu_align_row *row = &all->rows[i];
        if (row->has_line)
            fprintf(file, "| %s | %zu | %.2f | %.1f | %.2f | %.1f |\n", row->name, row->points,
                    row->per_evaluation_us, row->once_us, row->kernel_per_evaluation_us, row->kernel_once_us);
    }
}

void gpu_align_markdown(const struct gpu_aligns *all, FILE *file)
{
    fprintf(file, "## A whole alignment\n\nFrom starts up to 0.5 m and 2 deg off, everything in turn; medians. "
                  "Kernels by the device's clock (of the CPU: its\nevaluations); the rest is launches, copies, "
                  "waits and what the host does before and after.\n\n");
    print_times(all, file);
    fprintf(file, "\n## Where the time goes\n\nOne level of 2 m; searches cut off after 2, 5 .. 17 iterations; the "
                  "line through the medians.\n\n");
    print_lines(all, file);
}

static void text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++)
        fprintf(file, *value == '"' || *value == '\\' ? "\\%c" : "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    fputs("\", ", file);
}

static void print_numbers(const struct gpu_align_row *row, FILE *file)
{
    fprintf(file,
            ", \"align_us\": %.6g, \"p95_us\": %.6g, \"upload_us\": %.6g, \"kernel_us\": %.6g, \"evaluations\": "
            "%.4g, \"recovered\": %zu, \"tried\": %zu, \"off_m\": %.4g, \"off_deg\": %.4g, \"hash\": \"%016llx\", "
            "\"same_bits_as_other_shapes\": %s",
            row->align_us, row->p95_us, row->upload_us, row->kernel_us, row->evaluations, row->recovered,
            row->tried, row->off_m, row->off_deg, (unsigned long long)row->hash,
            !row->is_shape  ? "null"
            : row->is_other ? "false"
                            : "true");
    if (row->wanted_us > 0)
        fprintf(file, ", \"wanted_us\": %g", row->wanted_us);
    if (row->has_line)
        fprintf(file,
                ", \"per_evaluation_us\": %.5g, \"once_us\": %.5g, \"kernel_per_evaluation_us\": %.5g, "
                "\"kernel_once_us\": %.5g",
                row->per_evaluation_us, row->once_us, row->kernel_per_evaluation_us, row->kernel_once_us);
}

void gpu_align_json(const struct gpu_aligns *all, FILE *file)
{
    fputc('[', file);
    for (size_t i = 0; i < all->count; i++) {
        const struct gpu_align_row *row = &all->rows[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        text(file, "backend", row->name);
        text(file, "levels", chain_name(row));
        if (!row->is_here)
            text(file, row->is_broken ? "failed" : "not_here", row->why.text);
        fprintf(file, "\"points\": %zu", row->points);
        if (row->is_here)
            print_numbers(row, file);
        fputc('}', file);
    }
    fputc(']', file);
}

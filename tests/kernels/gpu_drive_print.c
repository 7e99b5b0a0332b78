#include "gpu_drive.h"

static const char *verdict(const struct gpu_drive_candidate *candidate)
{
    return candidate->is_good ? "ok" : candidate->is_here ? "FAIL" : "not here";
}

void gpu_drive_markdown(const struct gpu_drive *drives, size_t count, FILE *file)
{
    fprintf(file,
            "## The synthetic drive\n\n"
            "Each pipeline drives along the street twice. Wanted: the CPU's poses within 1 mm and 0.01 deg, and "
            "the same\nhash. Times are medians of the second run.\n\n"
            "| backend | points | scans | align [us] | iteration [us] | evaluations per align | off by at most | "
            "hash | |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < drives[i].candidate_count; k++) {
            const struct gpu_drive_candidate *candidate = &drives[i].candidates[k];
            fprintf(file, "| %s | %zu | %zu | ", candidate->name, drives[i].points, drives[i].scans);
            if (candidate->is_here && !candidate->why.text[0])
                fprintf(file, "%.1f | %.1f | %.1f | %.4f mm, %.5f deg | %016llx %s | %s |\n", candidate->align_us,
                        candidate->iteration_us, candidate->evaluations, 1e3 * candidate->most_m,
                        candidate->most_deg, (unsigned long long)candidate->hash,
                        candidate->hash == candidate->hash_again ? "twice" : "and another", verdict(candidate));
            else
                fprintf(file, "- | - | - | - | - | %s: %s |\n", verdict(candidate), candidate->why.text);
        }
}

static void put_text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++)
        fprintf(file, *value == '"' || *value == '\\' ? "\\%c" : "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    fputs("\", ", file);
}

void gpu_drive_json(const struct gpu_drive *drives, size_t count, FILE *file)
{
    const char *before = "";
    fputc('[', file);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < drives[i].candidate_count; k++, before = ",") {
            const struct gpu_drive_candidate *candidate = &drives[i].candidates[k];
            fprintf(file, "%s\n  {", before);
            put_text(file, "backend", candidate->name);
            put_text(file, "about", candidate->about);
            put_text(file, "verdict", verdict(candidate));
            put_text(file, "why", candidate->why.text);
            fprintf(file, "\"points\": %zu, \"scans\": %zu", drives[i].points, drives[i].scans);
            if (candidate->is_here && !candidate->why.text[0])
                fprintf(file,
                        ", \"align_us\": %.6g, \"iteration_us\": %.6g, \"evaluations\": %.4g, \"off_m\": %.4g, "
                        "\"off_deg\": %.4g, \"hash\": \"%016llx\", \"hash_again\": \"%016llx\"",
                        candidate->align_us, candidate->iteration_us, candidate->evaluations, candidate->most_m,
                        candidate->most_deg, (unsigned long long)candidate->hash,
                        (unsigned long long)candidate->hash_again);
            fputc('}', file);
        }
    fputc(']', file);
}

size_t gpu_drive_assess(const struct gpu_drive *drives, size_t count, size_t *bad)
{
    size_t here = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < drives[i].candidate_count; k++) {
            const struct gpu_drive_candidate *candidate = &drives[i].candidates[k];
            here += k > 0 && candidate->is_here;
            *bad += candidate->is_here && !candidate->is_good;
        }
    return here;
}

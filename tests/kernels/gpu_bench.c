/* What tools/gpu-check runs on a machine with a GPU and without the libraries of the other programs: a synthetic
 * drive on every pipeline against the CPU (gpu_drive.h), and times of one evaluation with its overheads
 * (bench_overheads.h). Exit: 0 as promised, 1 not, 2 usage, 3 failure, 77 no backend on a device works here. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "bench_overheads.h"
#include "gpu_drive.h"

enum { GOOD = 0, BAD = 1, USAGE = 2, FAILED = 3, SKIPPED = 77 };

struct options {
    size_t sizes[BENCH_OVERHEAD_SIZES], size_count;
    size_t scans;
    int rounds, threads;
    const char *json, *markdown; /* NULL: none */
};

struct results {
    struct bench_overheads overheads;
    struct gpu_drive drives[BENCH_OVERHEAD_SIZES];
    size_t drive_count;
};

static int parse_sizes(struct options *options, const char *text)
{
    for (options->size_count = 0; options->size_count < BENCH_OVERHEAD_SIZES; text++) {
        char *end;
        const unsigned long size = strtoul(text, &end, 10);
        if (end == text || size == 0 || size > 1u << 20 || (*end && *end != ','))
            return 0;
        options->sizes[options->size_count++] = size;
        text = end;
        if (!*text)
            return 1;
    }
    return 0;
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"points", 1, NULL, 'p'}, {"scans", 1, NULL, 's'},    {"rounds", 1, NULL, 'r'}, {"threads", 1, NULL, 't'},
        {"json", 1, NULL, 'j'},   {"markdown", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
    *options = (struct options){{756, 1500, 5000, 20000, 100000}, 5, 20, 101, 0, NULL, NULL};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'p' && !parse_sizes(options, optarg))
            return 0;
        if (c == 's')
            options->scans = strtoul(optarg, NULL, 10);
        if (c == 'r')
            options->rounds = atoi(optarg);
        if (c == 't')
            options->threads = atoi(optarg);
        if (c == 'j')
            options->json = optarg;
        if (c == 'm')
            options->markdown = optarg;
        if (c == '?')
            return 0;
    }
    return optind == argc && options->threads >= 0;
}

static enum ndt_status run_overheads(struct results *results, const struct options *options, struct ndt_map *map,
                                     struct ndt_error *err)
{
    struct bench_overheads_request request = {
        .map = map, .size_count = options->size_count, .rounds = options->rounds, .seed = 1};
    struct ndt_cloud scan;
    struct ndt_pose pose;
    size_t most = 1;
    ndt_cloud_init(&scan);
    ndt_backend_config_default(&request.config);
    request.config.threads = options->threads;
    for (size_t i = 0; i < options->size_count; i++) {
        request.sizes[i] = options->sizes[i];
        most = most < options->sizes[i] ? options->sizes[i] : most;
    }
    enum ndt_status status = gpu_drive_scan(&scan, &pose, 10, most, err);
    request.points = &scan;
    request.where = (struct ndt_eval_request){.level = (int)map->level_count - 1, .neighbours = NDT_RADIUS};
    ndt_pose_to_euler(&pose, request.where.p);
    if (status == NDT_OK)
        status = bench_overheads_run(&results->overheads, &request, err);
    ndt_cloud_free(&scan);
    return status;
}

static enum ndt_status run(struct results *results, const struct options *options, struct ndt_error *err)
{
    struct ndt_map *map = NULL;
    enum ndt_status status = gpu_drive_map(&map, err);
    for (size_t i = 0; status == NDT_OK && i < options->size_count; i++) {
        struct gpu_drive *drive = &results->drives[results->drive_count++];
        *drive = (struct gpu_drive){
            .scans = options->scans, .points = options->sizes[i], .threads = options->threads, .map = map};
        status = gpu_drive_run(drive, err);
        gpu_drive_free(drive);
    }
    if (status == NDT_OK)
        status = run_overheads(results, options, map, err);
    ndt_map_release(map);
    return status;
}

static const char *verdict(const struct gpu_drive_way *way)
{
    return way->is_good ? "ok" : way->is_here ? "FAIL" : "not here";
}

static void print_markdown(const struct results *results, FILE *file)
{
    fprintf(file,
            "## The synthetic drive, and times of an alignment\n\n"
            "Each pipeline drives along the street twice. Wanted: the CPU's poses within 1 mm and 0.01 deg, and "
            "the same\nhash. Times are medians of the second run.\n\n"
            "| backend | points | scans | align [us] | iteration [us] | evaluations per align | off by at most | "
            "hash | |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < results->drive_count; i++) {
        const struct gpu_drive *drive = &results->drives[i];
        for (size_t k = 0; k < drive->way_count; k++) {
            const struct gpu_drive_way *way = &drive->ways[k];
            fprintf(file, "| %s | %zu | %zu | ", way->name, drive->points, drive->scans);
            if (way->is_here && !way->why.text[0])
                fprintf(file, "%.1f | %.1f | %.1f | %.4f mm, %.5f deg | %016llx %s | %s |\n", way->align_us,
                        way->iteration_us, way->evaluations, 1e3 * way->most_m, way->most_deg,
                        (unsigned long long)way->hash, way->hash == way->hash_again ? "twice" : "and another",
                        verdict(way));
            else
                fprintf(file, "- | - | - | - | - | %s: %s |\n", verdict(way), way->why.text);
        }
    }
    fprintf(file, "\n## One evaluation and its overheads\n\nFinest level, `radius`, everything in turn.\n\n");
    bench_overheads_markdown(&results->overheads, file);
}

static void put_text(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *value; value++)
        fprintf(file, *value == '"' || *value == '\\' ? "\\%c" : "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
    fputs("\", ", file);
}

static void print_json(const struct results *results, FILE *file)
{
    const char *before = "";
    fputs("{\"drive\": [", file);
    for (size_t i = 0; i < results->drive_count; i++) {
        const struct gpu_drive *drive = &results->drives[i];
        for (size_t k = 0; k < drive->way_count; k++, before = ",") {
            const struct gpu_drive_way *way = &drive->ways[k];
            fprintf(file, "%s\n  {", before);
            put_text(file, "backend", way->name);
            put_text(file, "about", way->about);
            put_text(file, "verdict", verdict(way));
            put_text(file, "why", way->why.text);
            fprintf(file, "\"points\": %zu, \"scans\": %zu", drive->points, drive->scans);
            if (way->is_here && !way->why.text[0])
                fprintf(file,
                        ", \"align_us\": %.6g, \"iteration_us\": %.6g, \"evaluations\": %.4g, \"off_m\": %.4g, "
                        "\"off_deg\": %.4g, \"hash\": \"%016llx\", \"hash_again\": \"%016llx\"",
                        way->align_us, way->iteration_us, way->evaluations, way->most_m, way->most_deg,
                        (unsigned long long)way->hash, (unsigned long long)way->hash_again);
            fputc('}', file);
        }
    }
    fputs("],\n\"overheads\": ", file);
    bench_overheads_json(&results->overheads, file);
    fputs("}\n", file);
}

static int write_file(const char *path, const struct results *results,
                      void (*print)(const struct results *results, FILE *file))
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 0;
    }
    print(results, file);
    const int failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return 1;
    perror(path);
    remove(path);
    return 0;
}

/* The drive decides; an overhead that could not be measured where the drive could counts as well. */
static int judge(const struct results *results)
{
    size_t here = 0, bad = 0;
    for (size_t i = 0; i < results->drive_count; i++)
        for (size_t k = 0; k < results->drives[i].way_count; k++) {
            const struct gpu_drive_way *way = &results->drives[i].ways[k];
            here += k > 0 && way->is_here;
            bad += way->is_here && !way->is_good;
        }
    for (size_t i = 0; here && i < results->overheads.count; i++)
        bad += !results->overheads.rows[i].is_here;
    printf("\n%zu drives on a device%s; %zu failures\n", here, here ? "" : ": none works here", bad);
    return bad ? BAD : here ? GOOD : SKIPPED;
}

int main(int argc, char **argv)
{
    static struct results results;
    struct options options;
    struct ndt_error err = {""};
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: gpu_bench [--points LIST] [--scans N] [--rounds N] [--threads N] [--json FILE] "
                        "[--markdown FILE]\n");
        return USAGE;
    }
    if (run(&results, &options, &err) != NDT_OK) {
        fprintf(stderr, "gpu_bench: %s\n", err.text);
        return FAILED;
    }
    print_markdown(&results, stdout);
    if ((options.json && !write_file(options.json, &results, print_json)) ||
        (options.markdown && !write_file(options.markdown, &results, print_markdown)))
        return FAILED;
    return judge(&results);
}

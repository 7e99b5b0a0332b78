/* What tools/gpu-check runs on a machine with a GPU and without the libraries of the other programs, part by part:
 *  - drive: a synthetic drive on every pipeline against the CPU (gpu_drive.h);
 *  - align: whole alignments and where their time goes, next to what is wanted (gpu_align.h);
 *  - batch: guesses and scans together against alone, next to what is wanted (bench_batch.h);
 *  - overheads: times of one evaluation with its overheads (bench_overheads.h).
 * A time is never a failure, a wrong result is. Exit: 0 as promised, 1 not, 2 usage, 3 failure, 77 no backend on a
 * device works here. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "bench_batch.h"
#include "bench_overheads.h"
#include "gpu_align.h"
#include "gpu_drive.h"
#include "gpu_candidates.h"

enum { GOOD = 0, BAD = 1, USAGE = 2, FAILED = 3, SKIPPED = 77 };
enum { SIZES = 8 };

enum part { DRIVE, ALIGN, BATCH, OVERHEADS, PARTS };
static const char *const part_names[PARTS] = {"drive", "align", "batch", "overheads"};

struct list {
    size_t items[SIZES], count;
};
struct options {
    struct list points, batches;
    size_t batch_points, scans;
    int rounds, threads, parts[PARTS];
    const char *pipeline;        /* NULL: all; of align and batch */
    const char *json, *markdown; /* NULL: none */
};

struct results {
    const struct options *options;
    struct bench_overheads overheads;
    struct gpu_drive drives[SIZES];
    size_t drive_count;
    struct gpu_aligns aligns;
    struct bench_batch batches;
    size_t broken; /* pipelines that should have opened for batches */
};

static int parse_list(struct list *list, const char *text, size_t most)
{
    for (list->count = 0; list->count < SIZES; text++) {
        char *end;
        const unsigned long size = strtoul(text, &end, 10);
        if (end == text || size == 0 || size > most || (*end && *end != ','))
            return 0;
        list->items[list->count++] = size;
        text = end;
        if (!*text)
            return 1;
    }
    return 0;
}

static int parse_parts(struct options *options, const char *text)
{
    memset(options->parts, 0, sizeof(options->parts));
    for (;; text++) {
        const size_t length = strcspn(text, ",");
        int is_known = 0;
        for (int part = 0; part < PARTS; part++)
            if (strlen(part_names[part]) == length && strncmp(part_names[part], text, length) == 0)
                is_known = options->parts[part] = 1;
        text += length;
        if (!is_known || !*text)
            return is_known;
    }
}

static int take(struct options *options, int c, const char *text)
{
    switch (c) {
    case 'p':
        return parse_list(&options->points, text, 1u << 20);
    case 'b':
        return parse_list(&options->batches, text, BENCH_BATCH_MOST);
    case 'n':
        options->batch_points = strtoul(text, NULL, 10);
        return options->batch_points > 0 && options->batch_points <= 1u << 20;
    case 's':
        options->scans = strtoul(text, NULL, 10);
        return 1;
    case 'r':
        options->rounds = atoi(text);
        return options->rounds >= 3;
    case 't':
        options->threads = atoi(text);
        return options->threads >= 0;
    case 'o':
        return parse_parts(options, text);
    case 'l':
        options->pipeline = text;
        return 1;
    case 'j':
        options->json = text;
        return 1;
    case 'm':
        options->markdown = text;
        return 1;
    default:
        return 0;
    }
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"points", 1, NULL, 'p'},   {"batch", 1, NULL, 'b'},    {"batch-points", 1, NULL, 'n'},
        {"scans", 1, NULL, 's'},    {"rounds", 1, NULL, 'r'},   {"threads", 1, NULL, 't'},
        {"parts", 1, NULL, 'o'},    {"pipeline", 1, NULL, 'l'}, {"json", 1, NULL, 'j'},
        {"markdown", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
    *options = (struct options){.points = {{756, 1500, 5000, 20000, 100000}, 5},
                                .batches = {{1, 2, 3, 8, 64, 200}, 6},
                                .batch_points = BENCH_BATCH_TARGET_POINTS,
                                .scans = 20,
                                .rounds = 101,
                                .parts = {1, 1, 1, 1}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!take(options, c, optarg))
            return 0;
    return optind == argc;
}

static enum ndt_status run_drives(struct results *results, struct ndt_map *map, struct ndt_error *err)
{
    const struct options *options = results->options;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        struct gpu_drive *drive = &results->drives[results->drive_count++];
        *drive = (struct gpu_drive){
            .scans = options->scans, .points = options->points.items[i], .threads = options->threads, .map = map};
        status = gpu_drive_run(drive, err);
        gpu_drive_free(drive);
    }
    return status;
}

static enum ndt_status run_aligns(struct results *results, struct ndt_map *map, struct ndt_error *err)
{
    const struct options *options = results->options;
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < options->points.count; i++) {
        const struct gpu_align_request request = {.map = map,
                                                  .points = options->points.items[i],
                                                  .threads = options->threads,
                                                  .starts = options->rounds,
                                                  .pipeline = options->pipeline};
        status = gpu_align_run(&results->aligns, &request, err);
    }
    return status;
}

/* The largest batch has to fit into one launch: each item at whole blocks of points. */
static size_t batch_points(const struct options *options)
{
    size_t most = 1;
    for (size_t i = 0; i < options->batches.count; i++)
        most = most < options->batches.items[i] ? options->batches.items[i] : most;
    return most * ((options->batch_points + 127) / 128 * 128);
}

static enum ndt_status measure_batches(struct results *results, struct ndt_map *map,
                                       const struct bench_batch_scan *scans, struct ndt_error *err)
{
    static struct bench_batch_candidate items[GPU_CANDIDATES];
    static struct gpu_candidates candidates;
    static struct ndt_align_params params;
    static const double deg = 3.14159265358979323846 / 180.0;
    const struct options *options = results->options;
    const struct gpu_candidates_request open = {map, batch_points(options), options->threads, options->pipeline};
    struct bench_batch_request request = {.candidates = items,
                                          .scans = scans,
                                          .scan_count = BENCH_BATCH_SCANS,
                                          .points = options->batch_points,
                                          .sizes = options->batches.items,
                                          .size_count = options->batches.count,
                                          .rounds = options->rounds / 5 > 0 ? options->rounds / 5 : 1,
                                          .seed = 1,
                                          .shift_m = 0.5,
                                          .turn_rad = 2 * deg,
                                          .success_m = 0.15,
                                          .success_rad = 0.6 * deg};
    ndt_align_params_default(&params);
    params.level_count = 1;
    params.levels[0] = (struct ndt_align_level){.leaf_m = 2.0, .neighbours = NDT_RADIUS};
    gpu_candidates_open(&candidates, &open);
    for (size_t i = 0; i < candidates.count; i++) {
        const struct gpu_candidate *candidate = &candidates.items[i];
        results->broken += candidate->is_broken != 0;
        items[i] = (struct bench_batch_candidate){
            .backend = candidate->backend, .aligner = candidate->aligner, .params = &params, .why = candidate->why};
        memcpy(items[i].name, candidate->name, sizeof(items[i].name));
    }
    request.candidate_count = candidates.count;
    enum ndt_status status = bench_batch_run(&results->batches, &request, err);
    gpu_candidates_close(&candidates);
    return status;
}

static enum ndt_status run_batches(struct results *results, struct ndt_map *map, struct ndt_error *err)
{
    struct ndt_cloud clouds[BENCH_BATCH_SCANS];
    struct bench_batch_scan scans[BENCH_BATCH_SCANS];
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < BENCH_BATCH_SCANS; i++)
        ndt_cloud_init(&clouds[i]);
    for (size_t i = 0; status == NDT_OK && i < BENCH_BATCH_SCANS; i++) {
        scans[i].points = &clouds[i];
        status = gpu_drive_scan(&clouds[i], &scans[i].T_map_sensor, 20 * i, results->options->batch_points, err);
    }
    if (status == NDT_OK)
        status = measure_batches(results, map, scans, err);
    for (size_t i = 0; i < BENCH_BATCH_SCANS; i++)
        ndt_cloud_free(&clouds[i]);
    return status;
}

static enum ndt_status run_overheads(struct results *results, struct ndt_map *map, struct ndt_error *err)
{
    const struct options *options = results->options;
    struct bench_overheads_request request = {
        .map = map, .size_count = options->points.count, .rounds = options->rounds, .seed = 1};
    struct ndt_cloud scan;
    struct ndt_pose pose;
    size_t most = 1;
    ndt_cloud_init(&scan);
    ndt_backend_config_default(&request.config);
    request.config.threads = options->threads;
    for (size_t i = 0; i < options->points.count; i++) {
        request.sizes[i] = options->points.items[i];
        most = most < request.sizes[i] ? request.sizes[i] : most;
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

static enum ndt_status run(struct results *results, struct ndt_error *err)
{
    static enum ndt_status (*const parts[PARTS])(struct results * results, struct ndt_map * map,
                                                 struct ndt_error * err) = {run_drives, run_aligns, run_batches,
                                                                            run_overheads};
    struct ndt_map *map = NULL;
    enum ndt_status status = gpu_drive_map(&map, err);
    for (int part = 0; status == NDT_OK && part < PARTS; part++)
        if (results->options->parts[part])
            status = parts[part](results, map, err);
    ndt_map_release(map);
    return status;
}

static void print_markdown(const struct results *results, FILE *file)
{
    const int *parts = results->options->parts;
    if (parts[DRIVE])
        gpu_drive_markdown(results->drives, results->drive_count, file);
    if (parts[ALIGN])
        gpu_align_markdown(&results->aligns, file);
    if (parts[BATCH]) {
        fprintf(file, "\n## Batches\n\nAll items in one call against one after the other, from guesses up to 0.5 m "
                      "and 2 deg off, one level of 2 m;\nmedians of batches.\n\n");
        bench_batch_markdown(&results->batches, file);
    }
    if (parts[OVERHEADS]) {
        fprintf(file, "\n## One evaluation and its overheads\n\nFinest level, `radius`, everything in turn.\n\n");
        bench_overheads_markdown(&results->overheads, file);
    }
}

static void print_json(const struct results *results, FILE *file)
{
    const char *before = "";
    fputc('{', file);
    for (int part = 0; part < PARTS; part++) {
        if (!results->options->parts[part])
            continue;
        fprintf(file, "%s\"%s\": ", before, part_names[part]);
        before = ",\n";
        if (part == DRIVE)
            gpu_drive_json(results->drives, results->drive_count, file);
        else if (part == ALIGN)
            gpu_align_json(&results->aligns, file);
        else if (part == BATCH)
            bench_batch_json(&results->batches, file);
        else
            bench_overheads_json(&results->overheads, file);
    }
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

static size_t assess_batches(const struct bench_batch *all, size_t *bad)
{
    size_t here = 0;
    for (size_t i = 0; i < all->count; i++) {
        here += all->rows[i].is_here && strncmp(all->rows[i].what, "cpu", 3) != 0;
        *bad += all->rows[i].has_failed || (all->rows[i].is_here && !all->rows[i].is_same);
    }
    return here;
}

static size_t assess_overheads(const struct bench_overheads *all, size_t *bad)
{
    size_t here = 0, missing = 0;
    for (size_t i = 0; i < all->count; i++) {
        here += all->rows[i].is_here && strcmp(all->rows[i].what, "cpu") != 0;
        missing += !all->rows[i].is_here;
    }
    *bad += here ? missing : 0;
    return here;
}

static int assess(const struct results *results)
{
    size_t bad = results->broken;
    size_t here = gpu_drive_assess(results->drives, results->drive_count, &bad);
    here += gpu_align_assess(&results->aligns, &bad);
    here += assess_batches(&results->batches, &bad);
    here += assess_overheads(&results->overheads, &bad);
    printf("\n%zu rows of a device%s; %zu failures\n", here, here ? "" : ": none works here", bad);
    return bad ? BAD : here ? GOOD : SKIPPED;
}

int main(int argc, char **argv)
{
    static struct results results;
    struct options options;
    struct ndt_error err = {""};
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: gpu_bench [--parts drive,align,batch,overheads] [--points LIST] [--batch LIST] "
                        "[--batch-points N] [--scans N] [--rounds N] [--threads N] [--pipeline NAME] [--json FILE] "
                        "[--markdown FILE]\n");
        return USAGE;
    }
    results.options = &options;
    if (run(&results, &err) != NDT_OK) {
        fprintf(stderr, "gpu_bench: %s\n", err.text);
        return FAILED;
    }
    print_markdown(&results, stdout);
    if ((options.json && !write_file(options.json, &results, print_json)) ||
        (options.markdown && !write_file(options.markdown, &results, print_markdown)))
        return FAILED;
    return assess(&results);
}

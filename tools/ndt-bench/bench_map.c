#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_commands.h"
#include "ndt/clock.h"
#include "ndt_io/compiled_map.h"

enum { PATH_SIZE = 512, MOST_ROWS = 96 };

struct row {
    const char *axis; /* what varies: "points", "voxels" */
    size_t points;    /* evenly thinned to this many */
    struct ndt_map_config config;
    int threads;
    uint64_t voxels; /* of all levels */
    size_t bytes;
    struct bench_samples sums_ms, build_ms,
        open_ms; /* points into sums, sums into a map, the compiled map opened */
};
struct run {
    const struct ndt_cloud *cloud;
    char path[PATH_SIZE]; /* of the compiled map */
    size_t count;
    struct row rows[MOST_ROWS];
};

static enum ndt_status add_row(struct run *out, const char *axis, size_t points,
                               const struct ndt_map_config *config, int threads, struct ndt_error *err)
{
    if (out->count == MOST_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "map: more than %d rows", MOST_ROWS);
    struct row *row = &out->rows[out->count++];
    *row = (struct row){.axis = axis, .points = points, .config = *config, .threads = threads};
    row->config.threads = threads;
    return NDT_OK;
}

static enum ndt_status plan_points(struct run *out, const struct bench_options *options, size_t all,
                                   struct ndt_error *err)
{
    struct bench_numbers points = {7, {all / 64, all / 32, all / 16, all / 8, all / 4, all / 2, all}};
    struct bench_numbers threads = {2, {1, 2}};
    enum ndt_status status = NDT_OK;
    if (options->points.count)
        points = options->points;
    if (options->map_threads.count)
        threads = options->map_threads;
    for (size_t i = 0; status == NDT_OK && i < points.count; i++) {
        if (points.values[i] < 1 || points.values[i] > all)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--points %zu: the map has %zu", points.values[i], all);
        for (size_t k = 0; status == NDT_OK && k < threads.count; k++)
            status = add_row(out, "points", points.values[i], &options->setup.map, (int)threads.values[k], err);
    }
    return status;
}

static enum ndt_status plan_voxels(struct run *out, const struct bench_options *options, size_t all,
                                   struct ndt_error *err)
{
    static const double leaves_m[] = {4, 2.8, 2, 1.4, 1, 0.7, 0.5, 0.35, 0.25};
    struct ndt_map_config config = options->setup.map;
    enum ndt_status status = NDT_OK;
    config.level_count = 1;
    for (size_t i = 0; status == NDT_OK && i < sizeof(leaves_m) / sizeof(leaves_m[0]); i++) {
        config.leaf_m[0] = leaves_m[i];
        status = add_row(out, "voxels", all, &config, 1, err);
    }
    return status;
}

static enum ndt_status thin(struct ndt_cloud *out, const struct ndt_cloud *cloud, size_t points,
                            struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_reserve(out, points, 0, err);
    if (status != NDT_OK)
        return status;
    memcpy(out->origin_m, cloud->origin_m, sizeof(out->origin_m));
    for (size_t i = 0; i < points; i++) {
        const size_t from = i * cloud->count / points;
        out->x_m[i] = cloud->x_m[from];
        out->y_m[i] = cloud->y_m[from];
        out->z_m[i] = cloud->z_m[from];
    }
    out->count = points;
    return NDT_OK;
}

static enum ndt_status note(struct bench_samples *samples, double *since_us, struct ndt_error *err)
{
    const double now_us = ndt_clock_us();
    enum ndt_status status = bench_samples_add(samples, (now_us - *since_us) * 1e-3, err);
    *since_us = ndt_clock_us();
    return status;
}

static enum ndt_status measure_build(struct row *row, const struct ndt_cloud *cloud, struct ndt_map **map,
                                     struct ndt_error *err)
{
    struct ndt_map_builder *builder = NULL;
    double since_us = ndt_clock_us();
    enum ndt_status status = ndt_map_builder_create(&builder, &row->config, err);
    if (status == NDT_OK)
        status = ndt_map_builder_add(builder, cloud, err);
    if (status == NDT_OK)
        status = note(&row->sums_ms, &since_us, err);
    if (status == NDT_OK)
        status = ndt_map_build(map, builder, err);
    if (status == NDT_OK)
        status = note(&row->build_ms, &since_us, err);
    ndt_map_builder_destroy(builder);
    return status;
}

static enum ndt_status measure_open(struct row *row, const struct ndt_map *map, const char *path,
                                    struct ndt_error *err)
{
    struct ndt_map *opened;
    enum ndt_status status = ndt_map_save(map, path, err);
    if (status != NDT_OK)
        return status;
    double since_us = ndt_clock_us();
    status = ndt_map_open(&opened, path, err);
    if (status != NDT_OK)
        return status;
    status = note(&row->open_ms, &since_us, err);
    ndt_map_release(opened);
    return status;
}

static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct row *row = &run->rows[item];
    struct ndt_cloud thinned;
    struct ndt_map *map = NULL;
    (void)round, (void)is_counted;
    ndt_cloud_init(&thinned);
    enum ndt_status status = thin(&thinned, run->cloud, row->points, err);
    if (status == NDT_OK)
        status = measure_build(row, &thinned, &map, err);
    if (status == NDT_OK) {
        row->bytes = map->bytes;
        row->voxels = 0;
        for (size_t i = 0; i < map->level_count; i++)
            row->voxels += map->levels[i].voxel_count - 1;
        status = measure_open(row, map, run->path, err);
    }
    ndt_map_release(map);
    ndt_cloud_free(&thinned);
    return status;
}

/* Compiled maps are stored temporarily in a folder under TMPDIR (else /tmp). */
static enum ndt_status measure_all(struct run *run, size_t rounds, struct ndt_error *err)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_SIZE - 16];
    snprintf(folder, sizeof(folder), "%.400s/ndt-bench-map-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", folder, strerror(errno));
    snprintf(run->path, sizeof(run->path), "%s/map.ndtmap", folder);
    enum ndt_status status = bench_sample(
        &(struct bench_sampling){.items = run->count, .rounds = rounds, .sample = sample, .context = run}, err);
    (void)!unlink(run->path);
    (void)!rmdir(folder);
    return status;
}

static void put_row(struct row *row, struct bench_report *report, struct bench_table *table)
{
    struct ndt_align_params levels = {.level_count = row->config.level_count};
    const double sums_ms = bench_median(&row->sums_ms), build_ms = bench_median(&row->build_ms);
    char text[64];
    for (size_t i = 0; i < levels.level_count; i++)
        levels.levels[i].leaf_m = row->config.leaf_m[i];
    bench_row(report, table);
    bench_text(table, "varies", "%s", row->axis);
    bench_number(table, "points", 0, (double)row->points);
    bench_text(table, "levels", "%s", bench_levels_text(&levels, text, sizeof(text)));
    bench_number(table, "threads", 0, row->threads);
    bench_number(table, "voxels", 0, (double)row->voxels);
    bench_number(table, "mib", 1, (double)row->bytes / 1048576.0);
    bench_number(table, "sums_ms", 2, sums_ms);
    bench_number(table, "build_ms", 2, build_ms);
    bench_number(table, "whole_ms", 2, sums_ms + build_ms);
    bench_number(table, "open_ms", 2, bench_median(&row->open_ms));
    bench_number(table, "open_max_ms", 2, bench_quantile(&row->open_ms, 1));
}

enum ndt_status bench_map(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    static struct run run;
    const struct bench_options *options = source->options;
    run = (struct run){.cloud = &source->map_points};
    if (run.cloud->count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "map: %.300s is not a cloud file, or an empty one", options->map);
    enum ndt_status status = plan_points(&run, options, run.cloud->count, err);
    if (status == NDT_OK)
        status = plan_voxels(&run, options, run.cloud->count, err);
    if (status == NDT_OK)
        status = measure_all(&run, (size_t)options->rounds, err);
    if (status == NDT_OK) {
        bench_source_report(source, NULL, 0, report);
        struct bench_table *table = bench_report_table(report, "map", "Map build and open: medians");
        for (size_t i = 0; i < run.count; i++)
            put_row(&run.rows[i], report, table);
    }
    for (size_t i = 0; i < run.count; i++) {
        bench_samples_free(&run.rows[i].sums_ms);
        bench_samples_free(&run.rows[i].build_ms);
        bench_samples_free(&run.rows[i].open_ms);
    }
    return status;
}

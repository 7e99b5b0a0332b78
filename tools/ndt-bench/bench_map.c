/** @file
 * @brief map: building and opening the map, over points, voxels and threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt_io/compiled_map.h"

enum { PATH_SIZE = 512, MOST_ROWS = 96 };
enum metric { SUMS_MS, BUILD_MS, OPEN_MS, METRICS }; /* points to sums, sums to a map, opening the compiled map */

struct row {
    const char *axis; /* what varies: "points", "voxels" */
    size_t points;    /* evenly thinned to this many */
    struct ndt_map_config config;
    int threads;
    uint64_t voxels; /* of all levels */
    size_t bytes;
    struct bench_samples samples[METRICS];
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
    struct bench_numbers points = {7, {all / 64, all / 32, all / 16, all / 8, all / 4, all / 2, all}, 0, 0};
    enum ndt_status status = NDT_OK;
    if (options->points.count)
        points = options->points;
    for (size_t i = 0; status == NDT_OK && i < points.count; i++) {
        if (points.values[i] < 1 || points.values[i] > all)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--points %zu: the map has %zu", points.values[i], all);
        for (size_t k = 0; status == NDT_OK && k < options->threads.count; k++)
            status =
                add_row(out, "points", points.values[i], &options->setup.map, (int)options->threads.values[k], err);
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

static enum ndt_status measure_build(struct row *row, const struct ndt_cloud *cloud, struct ndt_map **map,
                                     struct ndt_error *err)
{
    struct ndt_map_builder *builder = NULL;
    const double start_us = ndt_clock_us();
    enum ndt_status status = ndt_map_builder_create(&builder, &row->config, err);
    if (status == NDT_OK)
        status = ndt_map_builder_add(builder, cloud, err);
    const double sums_us = ndt_clock_us();
    if (status == NDT_OK)
        status = ndt_map_build(map, builder, err);
    bench_samples_add(&row->samples[SUMS_MS], (sums_us - start_us) * 1e-3);
    bench_samples_add(&row->samples[BUILD_MS], (ndt_clock_us() - sums_us) * 1e-3);
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
    const double start_us = ndt_clock_us();
    status = ndt_map_open(&opened, path, err);
    if (status != NDT_OK)
        return status;
    bench_samples_add(&row->samples[OPEN_MS], (ndt_clock_us() - start_us) * 1e-3);
    ndt_map_release(opened);
    return NDT_OK;
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

enum ndt_status bench_temporary_folder(char *path, size_t size, struct ndt_error *err)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, size, "%.400s/ndt-bench-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(path))
        return NDT_OK;
    (void)ndt_fail(err, NDT_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    path[0] = '\0';
    return NDT_ERR_IO;
}

static enum ndt_status measure_all(struct run *run, uint64_t rounds, struct ndt_error *err)
{
    char folder[PATH_SIZE - 16];
    enum ndt_status status = bench_temporary_folder(folder, sizeof(folder), err);
    if (status != NDT_OK)
        return status;
    snprintf(run->path, sizeof(run->path), "%s/map.ndtmap", folder);
    status = bench_sample(run->count, 0, rounds, sample, run, err);
    (void)!unlink(run->path);
    (void)!rmdir(folder);
    return status;
}

static void put_row(struct row *row, struct bench_report *report, struct bench_table *table)
{
    const double sums_ms = bench_median(&row->samples[SUMS_MS]), build_ms = bench_median(&row->samples[BUILD_MS]);
    char text[64];
    bench_row(report, table);
    bench_text(table, "varies", "%s", row->axis);
    bench_number(table, "points", 0, (double)row->points);
    bench_text(table, "levels", "%s",
               bench_levels_text(row->config.leaf_m, row->config.level_count, text, sizeof(text)));
    bench_number(table, "threads", 0, row->threads);
    bench_number(table, "voxels", 0, (double)row->voxels);
    bench_number(table, "mib", 1, (double)row->bytes / 1048576.0);
    bench_number(table, "sums_ms", 2, sums_ms);
    bench_number(table, "build_ms", 2, build_ms);
    bench_number(table, "whole_ms", 2, sums_ms + build_ms);
    bench_number(table, "open_ms", 2, bench_median(&row->samples[OPEN_MS]));
    bench_number(table, "open_max_ms", 2, bench_quantile(&row->samples[OPEN_MS], 1));
}

enum ndt_status bench_map_cost(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    static struct run run;
    const struct bench_options *options = source->options;
    run = (struct run){.cloud = &source->map_points};
    if (run.cloud->count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "map: %.300s is no cloud file or is empty", options->map);
    enum ndt_status status = plan_points(&run, options, run.cloud->count, err);
    if (status == NDT_OK)
        status = plan_voxels(&run, options, run.cloud->count, err);
    if (status == NDT_OK)
        status = measure_all(&run, options->rounds, err);
    if (status == NDT_OK) {
        bench_source_report(source, report);
        struct bench_table *table = bench_report_table(report, "map", "Map build and open: medians");
        for (size_t i = 0; i < run.count; i++)
            put_row(&run.rows[i], report, table);
    }
    for (size_t i = 0; i < run.count; i++)
        bench_samples_free(run.rows[i].samples, METRICS);
    return status;
}

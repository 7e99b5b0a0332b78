#include "bench_map_cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/compiled_map.h"
#include "ndt_io/output_file.h"
#include "ndtd/options.h"
#include "ndt/clock.h"

enum { ROUNDS = 7, PATH_SIZE = 512 };

/* ---- what is measured ---- */

static enum ndt_status add_row(struct bench_map_cost *out, const char *axis, size_t points,
                               const struct ndt_map_config *config, int threads, struct ndt_error *err)
{
    if (out->count == BENCH_COST_ROWS)
        return ndt_fail(err, NDT_ERR_LIMIT, "--map-cost: more than %d rows", BENCH_COST_ROWS);
    struct bench_cost_row *row = &out->rows[out->count++];
    *row = (struct bench_cost_row){.axis = axis, .points = points, .config = *config, .threads = threads};
    row->config.threads = threads;
    return NDT_OK;
}

/* The numbers of a list, or `usual` where it is empty; an option of the table says what is allowed. */
static enum ndt_status list_numbers(const struct bench_list *list, const char *option, size_t *numbers,
                                    size_t *count, struct ndt_error *err)
{
    struct ndtd_settings settings;
    ndtd_settings_default(&settings);
    if (list->count == 0)
        return NDT_OK;
    *count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        enum ndt_status status = ndtd_option_set_text(&settings, option, list->items[i], err);
        if (status != NDT_OK)
            return status;
        numbers[i] =
            strcmp(option, "map.threads") == 0 ? (size_t)settings.map.threads : settings.preprocess.sample_count;
    }
    return NDT_OK;
}

static enum ndt_status plan_points(struct bench_map_cost *out, const struct bench_options *options, size_t all,
                                   struct ndt_error *err)
{
    size_t points[BENCH_MAX_ITEMS] = {all / 64, all / 32, all / 16, all / 8, all / 4, all / 2, all};
    size_t threads[BENCH_MAX_ITEMS] = {1, 2}, point_count = 7, thread_count = 2;
    enum ndt_status status = list_numbers(&options->points, "preprocess.sample_count", points, &point_count, err);
    if (status == NDT_OK)
        status = list_numbers(&options->threads, "map.threads", threads, &thread_count, err);
    for (size_t i = 0; status == NDT_OK && i < point_count; i++) {
        if (points[i] < 1 || points[i] > all)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--points %zu: the map has %zu", points[i], all);
        for (size_t k = 0; status == NDT_OK && k < thread_count; k++)
            status = add_row(out, "points", points[i], &options->settings.map, (int)threads[k], err);
    }
    return status;
}

static enum ndt_status plan_voxels(struct bench_map_cost *out, const struct bench_options *options, size_t all,
                                   struct ndt_error *err)
{
    static const double leaves_m[] = {4, 2.8, 2, 1.4, 1, 0.7, 0.5, 0.35, 0.25};
    struct ndt_map_config config = options->settings.map;
    enum ndt_status status = NDT_OK;
    config.level_count = 1;
    for (size_t i = 0; status == NDT_OK && i < sizeof(leaves_m) / sizeof(leaves_m[0]); i++) {
        config.leaf_m[0] = leaves_m[i];
        status = add_row(out, "voxels", all, &config, 1, err);
    }
    return status;
}

/* ---- measuring ---- */

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

static enum ndt_status note(struct ndtd_samples *samples, double *since_us, struct ndt_error *err)
{
    const double now_us = ndt_clock_us();
    enum ndt_status status = ndtd_samples_add(samples, (now_us - *since_us) * 1e-3, err);
    *since_us = ndt_clock_us();
    return status;
}

static enum ndt_status measure_build(struct bench_cost_row *row, const struct ndt_cloud *cloud,
                                     struct ndt_map **map, struct ndt_error *err)
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

static enum ndt_status measure_open(struct bench_cost_row *row, const struct ndt_map *map, const char *path,
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

static enum ndt_status measure(struct bench_cost_row *row, const struct ndt_cloud *cloud, const char *path,
                               struct ndt_error *err)
{
    struct ndt_cloud thinned;
    struct ndt_map *map = NULL;
    ndt_cloud_init(&thinned);
    enum ndt_status status = thin(&thinned, cloud, row->points, err);
    if (status == NDT_OK)
        status = measure_build(row, &thinned, &map, err);
    if (status == NDT_OK) {
        row->bytes = map->bytes;
        row->voxels = 0;
        for (size_t i = 0; i < map->level_count; i++)
            row->voxels += map->levels[i].voxel_count - 1;
        status = measure_open(row, map, path, err);
    }
    ndt_map_release(map);
    ndt_cloud_free(&thinned);
    return status;
}

static enum ndt_status measure_all(struct bench_map_cost *out, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_SIZE], path[PATH_SIZE + 16];
    snprintf(folder, sizeof(folder), "%.400s/ndt-bench-map-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof(path), "%s/map.ndtmap", folder);
    enum ndt_status status = NDT_OK;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; status == NDT_OK && i < out->count; i++)
            status = measure(&out->rows[i], cloud, path, err);
    (void)!unlink(path);
    (void)!rmdir(folder);
    return status;
}

enum ndt_status bench_map_cost_run(struct bench_map_cost *out, const struct bench_options *options,
                                   const struct ndt_cloud *cloud, struct ndt_error *err)
{
    out->count = 0;
    if (cloud->count == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--map-cost: %.300s is no cloud file, or an empty one",
                        options->settings.map_path);
    enum ndt_status status = plan_points(out, options, cloud->count, err);
    if (status == NDT_OK)
        status = plan_voxels(out, options, cloud->count, err);
    return status == NDT_OK ? measure_all(out, cloud, err) : status;
}

void bench_map_cost_free(struct bench_map_cost *cost)
{
    for (size_t i = 0; i < cost->count; i++) {
        ndtd_samples_free(&cost->rows[i].sums_ms);
        ndtd_samples_free(&cost->rows[i].build_ms);
        ndtd_samples_free(&cost->rows[i].open_ms);
    }
}

/* ---- telling ---- */

void bench_map_cost_print(struct bench_map_cost *cost, FILE *file)
{
    fprintf(file, "map build and open; medians of %d in ms\n%-7s %9s %7s %8s %9s %8s %8s %8s %8s %8s\n", ROUNDS,
            "varies", "points", "leaf m", "threads", "voxels", "MiB", "sums", "build", "whole", "open");
    for (size_t i = 0; i < cost->count; i++) {
        struct bench_cost_row *row = &cost->rows[i];
        const double sums_ms = ndtd_samples_quantile(&row->sums_ms, 0.5);
        const double build_ms = ndtd_samples_quantile(&row->build_ms, 0.5);
        fprintf(file, "%-7s %9zu %7g %8d %9llu %8.1f %8.2f %8.2f %8.2f %8.2f\n", row->axis, row->points,
                row->config.leaf_m[row->config.level_count - 1], row->threads, (unsigned long long)row->voxels,
                (double)row->bytes / 1048576.0, sums_ms, build_ms, sums_ms + build_ms,
                ndtd_samples_quantile(&row->open_ms, 0.5));
    }
}

static void write_samples(FILE *file, const char *key, struct ndtd_samples *samples)
{
    fprintf(file, ", \"%s\": {\"min\": %.9g, \"median\": %.9g, \"max\": %.9g}", key,
            ndtd_samples_quantile(samples, 0), ndtd_samples_quantile(samples, 0.5),
            ndtd_samples_quantile(samples, 1));
}

enum ndt_status bench_map_cost_json(struct bench_map_cost *cost, const char *path, struct ndt_error *err)
{
    struct ndt_output out;
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    fputs("{\"map_cost\": [", out.file);
    for (size_t i = 0; i < cost->count; i++) {
        struct bench_cost_row *row = &cost->rows[i];
        fprintf(out.file, "%s\n  {\"axis\": \"%s\", \"points\": %zu, \"leaves_m\": [", i ? "," : "", row->axis,
                row->points);
        for (size_t k = 0; k < row->config.level_count; k++)
            fprintf(out.file, "%s%.9g", k ? ", " : "", row->config.leaf_m[k]);
        fprintf(out.file, "], \"threads\": %d, \"voxels\": %llu, \"bytes\": %zu", row->threads,
                (unsigned long long)row->voxels, row->bytes);
        write_samples(out.file, "sums_ms", &row->sums_ms);
        write_samples(out.file, "build_ms", &row->build_ms);
        write_samples(out.file, "open_ms", &row->open_ms);
        fputc('}', out.file);
    }
    fputs("]}\n", out.file);
    return ndt_output_commit(&out, err);
}

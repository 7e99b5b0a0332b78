#define _GNU_SOURCE /* CPU sets */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ndt/clock.h"
#include "ndt/names.h"
#include "ndtd/machine_name.h"
#ifndef NDT_BENCH_CORE
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"
#endif

enum { BUILDS = 5, STREET_MAP_POINTS = 60000 };

#ifndef NDT_BENCH_CORE
static int is_cloud_file(const char *path)
{
    static const char *const ends[] = {".pcd", ".ply", ".bin"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < 3; i++)
        if (length > 4 && strcmp(path + length - 4, ends[i]) == 0)
            return 1;
    return 0;
}
#endif

enum ndt_status bench_source_open(struct bench_source *source, const struct bench_options *options,
                                  struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    source->options = options;
    ndt_cloud_init(&source->map_points);
    if (!options->map && !options->bag && !options->scan)
        return bench_street_map(&source->map_points, STREET_MAP_POINTS, err);
#ifndef NDT_BENCH_CORE
    const double start_us = ndt_clock_us();
    if (options->map && is_cloud_file(options->map))
        status = ndt_cloud_read(&source->map_points, options->map, err);
    source->read_ms = (ndt_clock_us() - start_us) * 1e-3;
    if (status == NDT_OK && (options->bag || options->scan))
        status = bench_recording_open(&source->recording, options, err);
#endif
    return status;
}

void bench_source_close(struct bench_source *source)
{
    for (size_t i = 0; i < source->scans_count; i++) {
        struct bench_scans *scans = &source->scans[i];
        for (size_t k = 0; k < scans->count; k++)
            ndt_cloud_free(&scans->items[k].cloud);
        free(scans->items);
        bench_samples_free(&scans->used, 1);
        bench_samples_free(&scans->took_us, 1);
    }
    for (size_t i = 0; i < source->map_count; i++) {
        ndt_map_release(source->maps[i].map);
        bench_samples_free(&source->maps[i].build_ms, 1);
    }
    ndt_cloud_free(&source->map_points);
#ifndef NDT_BENCH_CORE
    bench_recording_close(source->recording);
#endif
}

static int is_same(const struct ndt_map_config *a, const struct ndt_map_config *b)
{
    return a->level_count == b->level_count && a->min_points == b->min_points && a->covariance == b->covariance &&
           a->min_eigenvalue_ratio == b->min_eigenvalue_ratio && a->outlier_ratio == b->outlier_ratio &&
           memcmp(a->leaf_m, b->leaf_m, a->level_count * sizeof(double)) == 0;
}

static enum ndt_status build(struct bench_map *item, const struct ndt_cloud *points, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (int i = 0; status == NDT_OK && i < BUILDS; i++) {
        ndt_map_release(item->map);
        item->map = NULL;
        const double start_us = ndt_clock_us();
        status = ndt_map_from_cloud(&item->map, &item->config, points, err);
        bench_samples_add(&item->build_ms, (ndt_clock_us() - start_us) * 1e-3);
    }
    return status;
}

enum ndt_status bench_source_map(struct bench_source *source, const struct ndt_map_config *config,
                                 struct ndt_map **out, struct ndt_error *err)
{
    for (size_t i = 0; i < source->map_count; i++)
        if (is_same(&source->maps[i].config, config)) {
            *out = source->maps[i].map;
            return NDT_OK;
        }
    if (source->map_count == BENCH_MAX_MAPS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d different maps", BENCH_MAX_MAPS);
    struct bench_map *item = &source->maps[source->map_count++];
    *item = (struct bench_map){.config = *config};
    enum ndt_status status = NDT_OK;
    if (source->map_points.count)
        status = build(item, &source->map_points, err);
#ifndef NDT_BENCH_CORE
    else
        status = ndt_map_load(&item->map, source->options->map, config, err);
#endif
    *out = item->map;
    return status;
}

enum { STREET_SCANS = 30 }; /* where all scans of a bag are wanted, and there is none */

enum ndt_status bench_source_scans(struct bench_source *source, const struct ndt_preprocess_params *params,
                                   size_t points, struct ndt_error *err)
{
    const size_t count = source->options->scan_limit ? (size_t)source->options->scan_limit : STREET_SCANS;
    struct bench_scans *out = &source->scans[source->scans_count++];
    *out = (struct bench_scans){.wanted = points ? points : params->sample_count};
#ifndef NDT_BENCH_CORE
    if (source->recording)
        return bench_recording_scans(source->recording, params, out, err);
#endif
    out->items = calloc(count, sizeof(*out->items));
    if (!out->items)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", count);
    enum ndt_status status = NDT_OK;
    out->points = out->wanted ? out->wanted : 1500;
    while (status == NDT_OK && out->count < count) {
        struct bench_scan *scan = &out->items[out->count];
        ndt_cloud_init(&scan->cloud);
        status = bench_street_scan(&scan->cloud, &scan->T_map_sensor, out->count++, out->points, err);
    }
    return status;
}

static const char *levels_text(const double *leaf_m, size_t count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%g", i ? "-" : "", leaf_m[i]);
    return text;
}

const char *bench_align_levels_text(const struct ndt_align_params *params, char *text, size_t size)
{
    double leaf_m[NDT_MAX_LEVELS];
    for (size_t i = 0; i < params->level_count; i++)
        leaf_m[i] = params->levels[i].leaf_m;
    return levels_text(leaf_m, params->level_count, text, size);
}

/* ---- the tables ---- */

static void put_machine(const struct bench_source *source, struct bench_report *report)
{
    const struct bench_options *options = source->options;
    cpu_set_t cores;
    char cpu[128], variants[128];
    struct bench_table *table = bench_report_table(report, "machine", "Machine and input");
    ndt_cpu_variants(variants, sizeof(variants));
    bench_row(report, table);
    bench_text(table, "cpu", "%s", ndtd_cpu_name(cpu, sizeof(cpu)));
    bench_number(table, "cores", 0, sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1);
#ifdef __clang__
    bench_text(table, "compiler", "%s", __VERSION__);
#else
    bench_text(table, "compiler", "gcc %s", __VERSION__);
#endif
    bench_text(table, "cpu_variants", "%s", variants);
    if (source->scans_count == 0)
        return;
    bench_text(table, "map", "%s", options->map ? options->map : "synthetic street");
    bench_number(table, "map_points", 0, (double)source->map_points.count);
    if (options->map && source->map_points.count)
        bench_number(table, "read_ms", 1, source->read_ms);
    bench_number(table, "scans", 0, (double)source->scans[0].count);
    bench_number(table, "rounds", 0, (double)options->rounds);
    bench_number(table, "seed", 0, (double)options->seed);
}

static void put_maps(struct bench_source *source, struct bench_report *report)
{
    struct bench_table *table = bench_report_table(report, "maps", "Maps: medians of builds from the cloud");
    for (size_t i = 0; i < source->map_count; i++) {
        struct bench_map *item = &source->maps[i];
        double leaf_m[NDT_MAX_LEVELS], voxels = 0;
        char text[64];
        for (size_t k = 0; k < item->map->level_count; k++) {
            voxels += (double)(item->map->levels[k].voxel_count - 1);
            leaf_m[k] = item->map->levels[k].leaf_m;
        }
        bench_row(report, table);
        bench_text(table, "levels", "%s", levels_text(leaf_m, item->map->level_count, text, sizeof(text)));
        bench_text(table, "covariance", "%s", ndt_covariance_name(item->config.covariance));
        bench_number(table, "build_ms", 2, bench_median(&item->build_ms));
        bench_number(table, "p95_ms", 2, bench_quantile(&item->build_ms, 0.95));
        bench_number(table, "voxels", 0, voxels);
        bench_number(table, "bytes_per_voxel", 0, voxels > 0 ? (double)item->map->bytes / voxels : 0);
    }
}

void bench_source_report(struct bench_source *source, struct bench_report *report)
{
    put_machine(source, report);
    if (source->map_count)
        put_maps(source, report);
    if (!source->recording || source->scans_count == 0)
        return;
    struct bench_table *table =
        bench_report_table(report, "preprocess", "Preprocessing of the scans: one thread, medians");
    for (size_t i = 0; i < source->scans_count; i++) {
        struct bench_scans *scans = &source->scans[i];
        bench_row(report, table);
        bench_number(table, "wanted", 0, (double)scans->wanted);
        bench_number(table, "points", 0, bench_median(&scans->used));
        bench_number(table, "voxel_m", 3, scans->voxel_m);
        bench_number(table, "preprocess_us", 0, bench_median(&scans->took_us));
        bench_number(table, "p95_us", 0, bench_quantile(&scans->took_us, 0.95));
        if (bench_median(&scans->used) < (double)scans->wanted)
            bench_note(table, "The scans hold no more than %.0f points.", bench_median(&scans->used));
    }
}

#include "map_points.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ndt_io/cloud_file.h"
#include "ndtd/progress_line.h"
#include "tool_options.h"

static const double REPORT_S = 0.1;

struct reading {
    struct ndtd_progress_line line;
    struct ndt_progress progress;
    uint64_t before, all; /* bytes of the files before the current one, and of all */
};

static enum ndt_status list_one(struct map_points *points, const char *path, struct ndt_error *err)
{
    points->set.tiles = calloc(1, sizeof(*points->set.tiles));
    char *copy = strdup(path);
    if (!points->set.tiles || !copy) {
        free(copy);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    }
    points->set.tiles[0].path = copy;
    points->set.count = 1;
    return NDT_OK;
}

enum ndt_status map_points_open(struct map_points *points, const char *path, struct ndt_error *err)
{
    struct stat info;
    *points = (struct map_points){.path = path};
    ndt_cloud_init(&points->cloud);
    enum ndt_status status = ndt_map_path_check(path, err);
    if (status == NDT_OK && ndt_map_is_compiled(path))
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: a compiled map has no points; give those it was made from",
                          path);
    if (status != NDT_OK)
        return status;
    points->is_tiles = ndt_map_is_tile_set(path);
    status = points->is_tiles ? ndt_tile_set_open(&points->set, path, err) : list_one(points, path, err);
    for (size_t i = 0; status == NDT_OK && i < points->set.count; i++)
        points->bytes += stat(points->set.tiles[i].path, &info) == 0 ? (uint64_t)info.st_size : 0;
    if (status != NDT_OK)
        map_points_close(points);
    return status;
}

void map_points_close(struct map_points *points)
{
    ndt_tile_set_close(&points->set);
    ndt_cloud_free(&points->cloud);
    points->in_cloud = 0;
}

static void report(void *context, const struct ndt_progress *progress)
{
    struct reading *reading = context;
    ndtd_progress_line_show(&reading->line, reading->before + ndt_progress_get(progress, NDT_PROGRESS_BYTES),
                            reading->all);
    if (tool_interrupted())
        ndt_progress_cancel(&reading->progress);
}

static enum ndt_status read_file(struct map_points *points, size_t i, struct reading *reading,
                                 struct ndt_error *err)
{
    if (points->in_cloud == i + 1)
        return NDT_OK;
    points->in_cloud = 0;
    ndt_progress_begin(&reading->progress);
    const struct ndt_tile *tile = &points->set.tiles[i];
    const enum ndt_status status = ndt_tile_read(&points->cloud, tile->path, tile->change, &reading->progress, err);
    if (status == NDT_OK)
        points->in_cloud = i + 1;
    return status;
}

enum ndt_status map_points_each(struct map_points *points, const char *what, map_points_visit *visit, void *context,
                                struct ndt_error *err)
{
    struct reading reading = {.all = points->bytes};
    enum ndt_status status = NDT_OK;
    ndtd_progress_line_begin(&reading.line, what, NULL);
    ndt_progress_init(&reading.progress, report, &reading, REPORT_S);
    for (size_t i = 0; status == NDT_OK && i < points->set.count; i++) {
        struct stat info;
        if (tool_interrupted())
            status = ndt_fail(err, NDT_ERR_CANCELLED, "%s: interrupted", points->path);
        if (status == NDT_OK)
            status = read_file(points, i, &reading, err);
        if (status == NDT_OK)
            status = visit(context, &points->cloud, err);
        reading.before += stat(points->set.tiles[i].path, &info) == 0 ? (uint64_t)info.st_size : 0;
        ndtd_progress_line_show(&reading.line, reading.before, reading.all);
    }
    ndtd_progress_line_end(&reading.line);
    return status;
}

static enum ndt_status add_to_builder(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    return ndt_map_builder_add(context, cloud, err);
}

enum ndt_status map_load(struct ndt_map **out, const char *path, struct ndt_error *err)
{
    struct map_points points;
    struct ndt_map_config config;
    struct ndt_map_builder *builder = NULL;
    *out = NULL;
    if (ndt_map_is_compiled(path))
        return ndt_map_open(out, path, err);
    ndt_map_config_default(&config);
    enum ndt_status status = map_points_open(&points, path, err);
    if (status != NDT_OK)
        return status;
    status = ndt_map_builder_create(&builder, &config, err);
    if (status == NDT_OK)
        status = map_points_each(&points, "reading", add_to_builder, builder, err);
    if (status == NDT_OK && ndt_map_builder_points(builder) == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", path);
    if (status == NDT_OK)
        status = ndt_map_build(out, builder, err);
    ndt_map_builder_destroy(builder);
    map_points_close(&points);
    return status;
}

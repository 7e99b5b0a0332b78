#include "ndtd/map_compile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "ndtd/map_field.h"
#include "ndtd/map_reading.h"
#include "ndt/clock.h"

static const char EXTENSION[] = ".ndtmap";

static enum ndt_status check_names(const struct ndtd_settings *settings, const char *path, struct ndt_error *err)
{
    size_t length = strlen(path), tail = strlen(EXTENSION);
    if (length <= tail || strcmp(path + length - tail, EXTENSION) != 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--compile-map %s: the name has to end in %s", path, EXTENSION);
    if (!*settings->map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--compile-map %s needs a map: give --map FILE|DIR", path);
    return NDT_OK;
}

static void report_map(FILE *report, const struct ndt_map *map)
{
    fprintf(report, "%-10s %" PRIu64 ", id %016" PRIx64 "\n", "points", map->points, map->id);
    for (size_t i = 0; i < map->level_count; i++)
        fprintf(report, "%-10s %g m: %u voxels\n", i ? "" : "levels", map->levels[i].leaf_m,
                map->levels[i].voxel_count - 1);
}

/* Loads the written file as the next run does. */
static enum ndt_status reopen(const struct ndt_map *map, const char *path, FILE *report, struct ndt_error *err)
{
    struct ndt_map *again = NULL;
    struct stat info;
    double start_us = ndt_clock_us();
    enum ndt_status status = ndtd_map_read(&again, path, &map->config, NULL, err);
    double open_ms = (ndt_clock_us() - start_us) / 1000;
    if (status != NDT_OK)
        return status;
    if (again->id != map->id)
        status = ndt_fail(err, NDT_ERR_IO, "%s: reads back with id %016" PRIx64 " instead of %016" PRIx64, path,
                          again->id, map->id);
    else if (stat(path, &info) != 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    else
        fprintf(report, "%-10s %.1f MiB\n%-10s %.2f ms\n", "file", (double)info.st_size / 1048576.0, "reopened",
                open_ms);
    ndt_map_release(again);
    return status;
}

static void warn_coarse(const struct ndtd_settings *settings, const struct ndt_map *map)
{
    char text[NDTD_PATH_MAX + 256];
    if (ndtd_map_coarse_text(text, sizeof(text), settings->map_path, map->spacing_m))
        fprintf(stderr, "ndtd: warning: %s\n", text);
}

enum ndt_status ndtd_map_compile(const struct ndtd_settings *settings, const char *path, FILE *report,
                                 struct ndt_error *err)
{
    struct ndt_map *map = NULL;
    enum ndt_status status = check_names(settings, path, err);
    if (status != NDT_OK)
        return status;
    double start_us = ndt_clock_us();
    status = ndtd_map_read(&map, settings->map_path, &settings->map, NULL, err);
    if (status != NDT_OK)
        return status;
    double built_us = ndt_clock_us();
    warn_coarse(settings, map);
    status = ndtd_map_save(map, path, err);
    if (status == NDT_OK) {
        report_map(report, map);
        fprintf(report, "%-10s %.1f ms, read and built\n%-10s %.1f ms\n", "loaded", (built_us - start_us) / 1000,
                "saved", (ndt_clock_us() - built_us) / 1000);
        status = reopen(map, path, report, err);
    }
    ndt_map_release(map);
    return status;
}

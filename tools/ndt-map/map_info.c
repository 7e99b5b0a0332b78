/** @file
 * @brief ndt-map info: what is in a map. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map_commands.h"
#include "map_measure.h"
#include "map_points.h"
#include "map_projector.h"
#include "ndtd/map_reading.h"
#include "result_print.h"

static struct {
    struct tool_operands maps;
    int json;
    struct tool_reals levels;
} args;

struct info {
    struct map_points points;
    struct ndt_map_overlay overlay; /* id 0: the map is none */
    struct map_measure measure;
    struct ndt_map_builder *builder;
    struct ndt_map *map;
    char projector_path[PATH_MAX], projector[512];
    int has_projector;
};

static enum ndt_status add(void *context, const struct ndt_cloud *cloud, struct ndt_error *err)
{
    struct info *info = context;
    const enum ndt_status status = map_measure_add(&info->measure, cloud, err);
    return status == NDT_OK ? ndt_map_builder_add(info->builder, cloud, err) : status;
}

static void set_levels(struct ndt_map_config *config)
{
    ndt_map_config_default(config);
    if (args.levels.count == 0)
        return;
    config->level_count = args.levels.count < NDT_MAX_LEVELS ? args.levels.count : NDT_MAX_LEVELS;
    memcpy(config->leaf_m, args.levels.values, config->level_count * sizeof(*config->leaf_m));
}

static enum ndt_status read_points(struct info *info, const char *path, struct ndt_error *err)
{
    struct ndt_map_config config;
    set_levels(&config);
    enum ndt_status status = map_points_open(&info->points, path, err);
    if (status == NDT_OK)
        status = ndt_map_builder_create(&info->builder, &config, err);
    if (status == NDT_OK)
        status = map_points_each(&info->points, "reading", add, info, err);
    if (status == NDT_OK && info->measure.points == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", path);
    return status == NDT_OK ? ndt_map_build(&info->map, info->builder, err) : status;
}

/* Bounds of the cells that are occupied on the finest level. */
static void measure_cells(struct info *info)
{
    const struct ndt_map_level *level = &info->map->levels[info->map->level_count - 1];
    info->measure.points = info->map->points;
    for (uint32_t i = 1; i < level->voxel_count; i++)
        for (int k = 0; k < 3; k++) {
            const double low_m = info->map->origin_m[k] + level->leaf_m * level->voxels[i].cell[k];
            if (i == 1 || low_m < info->measure.min_m[k])
                info->measure.min_m[k] = low_m;
            if (i == 1 || low_m + level->leaf_m > info->measure.max_m[k])
                info->measure.max_m[k] = low_m + level->leaf_m;
        }
}

static enum ndt_status read_all(struct info *info, const char *path, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    map_measure_init(&info->measure);
    if (ndt_map_is_overlay(path))
        status = ndt_map_overlay_open(&info->overlay, path, err);
    if (status != NDT_OK)
        return status;
    info->has_projector =
        map_projector_read(info->overlay.id ? info->overlay.map : path, info->projector_path,
                           sizeof(info->projector_path), info->projector, sizeof(info->projector));
    if (!ndt_map_is_compiled(path))
        return read_points(info, path, err);
    status = ndt_map_open(&info->map, path, err);
    if (status == NDT_OK)
        measure_cells(info);
    return status;
}

static void close_all(struct info *info)
{
    map_points_close(&info->points);
    map_measure_free(&info->measure);
    ndt_map_builder_destroy(info->builder);
    ndt_map_release(info->map);
}

/* ---- text ---- */

static void print_tiles(const struct ndt_tile_set *set)
{
    if (set->count > 0 && set->tiles[0].size_m[0] > 0)
        printf("%-13s%zu of %g x %g m\n", "tiles", set->count, set->tiles[0].size_m[0], set->tiles[0].size_m[1]);
    else
        printf("%-13s%zu, without metadata: all are loaded\n", "tiles", set->count);
}

static size_t changed_files(const struct ndt_tile_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += set->tiles[i].change != NULL;
    return count;
}

static void print_points(const struct info *info)
{
    const struct map_measure *measure = &info->measure;
    static const char axes[] = "xyz";
    printf("%-13s%" PRIu64, "points", measure->points);
    if (measure->not_finite)
        printf(", and %" PRIu64 " that are not finite", measure->not_finite);
    printf("\n%-13s", "bounds");
    for (int k = 0; k < 3; k++)
        printf("%s%c %.3f to %.3f", k ? ", " : "", axes[k], measure->min_m[k], measure->max_m[k]);
    printf(" m\n%-13s%.1f x %.1f x %.1f m\n", "extent", measure->max_m[0] - measure->min_m[0],
           measure->max_m[1] - measure->min_m[1], measure->max_m[2] - measure->min_m[2]);
    if (measure->area_m2 == 0)
        return;
    printf("%-13s%" PRIu64 " m2 with points, %.1f points per m2\n", "area", measure->area_m2,
           (double)measure->points / (double)measure->area_m2);
    printf("%-13s%.2g mm between neighbouring coordinates%s\n", "resolution", info->map->spacing_m * 1e3,
           measure->fields & NDT_CLOUD_INTENSITY ? "; with intensity" : "");
}

static void print_levels(const struct ndt_map *map)
{
    const size_t filled = ndt_map_filled_levels(map);
    for (size_t i = 0; i < map->level_count; i++)
        printf("%-13s%g m: %u voxels%s\n", i ? "" : "levels", map->levels[i].leaf_m, map->levels[i].voxel_count - 1,
               i < filled ? "" : ", too sparse: ndtd does without them");
    printf("%-13s%.1f MB, origin %.0f %.0f %.0f m, id %016" PRIx64 "\n", "in memory", (double)map->bytes * 1e-6,
           map->origin_m[0], map->origin_m[1], map->origin_m[2], map->id);
}

static void print_text(const struct info *info, const char *path)
{
    printf("%-13s%s\n", "map", path);
    if (info->points.set.count > 0)
        printf("%-13s%.1f MB in %zu %s\n", "files", (double)info->points.bytes * 1e-6, info->points.set.count,
               info->points.set.count > 1 ? "files" : "file");
    if (info->overlay.id)
        printf("%-13s%016" PRIx64 ": changes %zu of the files of %s\n", "overlay", info->overlay.id,
               changed_files(&info->points.set), info->overlay.map);
    if (info->points.is_tiles)
        print_tiles(&info->points.set);
    print_points(info);
    if (info->has_projector > 0)
        printf("%-13s%s (%s)\n", "projection", info->projector, info->projector_path);
    print_levels(info->map);
}

/* ---- JSON ---- */

static void text_member(const char *key, const char *text)
{
    char clean[PATH_MAX];
    size_t i = 0;
    for (; text[i] && i + 1 < sizeof(clean); i++)
        clean[i] = (char)(text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i]);
    clean[i] = '\0';
    json_text(stdout, key, clean);
}

static void print_json(const struct info *info, const char *path)
{
    const struct map_measure *measure = &info->measure;
    const struct ndt_tile_set *set = &info->points.set;
    printf("{\"points\":%" PRIu64 ",\"not_finite\":%" PRIu64, measure->points, measure->not_finite);
    text_member("map", path);
    json_reals(stdout, "min_m", measure->min_m, 3);
    json_reals(stdout, "max_m", measure->max_m, 3);
    printf(",\"area_m2\":%" PRIu64 ",\"files\":%zu,\"bytes\":%" PRIu64, measure->area_m2, set->count,
           info->points.bytes);
    json_real(stdout, "spacing_m", info->map->spacing_m);
    if (info->points.is_tiles && set->tiles[0].size_m[0] > 0)
        json_reals(stdout, "tile_m", set->tiles[0].size_m, 2);
    if (info->overlay.id) {
        printf(",\"overlay_id\":\"%016" PRIx64 "\",\"changed_files\":%zu", info->overlay.id, changed_files(set));
        text_member("overlay_of", info->overlay.map);
    }
    if (info->has_projector > 0)
        text_member("projection", info->projector);
    printf(",\"map_bytes\":%zu,\"map_id\":%" PRIu64, info->map->bytes, info->map->id);
    json_reals(stdout, "origin_m", info->map->origin_m, 3);
    fputs(",\"levels\":[", stdout);
    for (size_t i = 0; i < info->map->level_count; i++)
        printf("%s{\"leaf_m\":%g,\"voxels\":%u}", i ? "," : "", info->map->levels[i].leaf_m,
               info->map->levels[i].voxel_count - 1);
    puts("]}");
}

static void warn(const struct info *info, const char *path)
{
    char text[PATH_MAX + 256];
    if (info->has_projector < 0)
        fprintf(stderr, "ndt-map: warning: %s\n", info->projector);
    if (ndtd_map_coarse_text(text, sizeof(text), path, info->map->spacing_m))
        fprintf(stderr, "ndt-map: warning: %s\n", text);
}

static enum ndt_status run(struct ndt_error *err)
{
    struct info *info = calloc(1, sizeof(*info));
    const char *path = args.maps.words[0];
    if (!info)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    const enum ndt_status status = read_all(info, path, err);
    if (status == NDT_OK && args.json)
        print_json(info, path);
    else if (status == NDT_OK)
        print_text(info, path);
    if (status == NDT_OK)
        warn(info, path);
    close_all(info);
    free(info);
    return status;
}

static const struct tool_option options[] = {
    {"levels", "LIST", TOOL_REALS, &args.levels, 0.1, 100,
     .help = "leaf sizes of the voxels [m] (default: 4,2,1); a compiled map has its own"},
    {"json", NULL, TOOL_FLAG, &args.json, .help = "print one JSON object"},
};

const struct tool_command map_info_command = {
    .name = "info",
    .summary = "prints bounds, density, resolution, tiles, projection, voxels and memory",
    .details = "Warns where coordinates are stored too coarsely.",
    TOOL_OPERANDS("MAP", 1, 1, &args.maps),
    TOOL_OPTIONS(options),
    .run = run};

#include "map_source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ndt/hash.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/map_file.h"

struct tile {
    char *path, *change;        /* see struct ndt_tile */
    double min_m[2], size_m[2]; /* size 0: unknown, or added by a client */
    int listed;                 /* found in the directory, not added by a client */
    int pinned, barred;         /* set by a client: always in, never in */
    int selected, in, was;      /* was: state to restore after a failure */
    /* Hash of the points that were added to the sums. */
    uint64_t content;
    int has_points;
    double origin_m[3]; /* origin of a map whose first tile is this one */
};

struct ndtd_map_source {
    struct ndtd_map_loader_config config;
    struct ndt_progress *progress;
    char *compiled; /* path of a compiled map, which has no tiles; NULL: none */
    int follows, keep_sums;
    struct tile *tiles; /* sorted by path */
    size_t count;
    struct ndt_map_builder *sums; /* sums of the tiles in the map; NULL if not kept */
    double origin_m[3];           /* origin of the sums, if they contain points */
    uint64_t reads;               /* files read since the source was opened */
    int stale;                    /* the selected tiles differ from those of the last map */
    struct ndt_cloud cloud;       /* points of one tile; the memory is reused */
};

/* ---- tiles and their files ---- */

static int same_file(const char *a, const char *b)
{
    struct stat info_a, info_b;
    if (strcmp(a, b) == 0)
        return 1;
    return stat(a, &info_a) == 0 && stat(b, &info_b) == 0 && info_a.st_dev == info_b.st_dev &&
           info_a.st_ino == info_b.st_ino;
}

static struct tile *find_tile(const struct ndtd_map_source *source, const char *path)
{
    for (size_t i = 0; i < source->count; i++)
        if (same_file(source->tiles[i].path, path))
            return &source->tiles[i];
    return NULL;
}

static enum ndt_status insert_tile(struct ndtd_map_source *source, const char *path, struct tile **out,
                                   struct ndt_error *err)
{
    struct tile *tiles = realloc(source->tiles, (source->count + 1) * sizeof(*tiles));
    char *copy = tiles ? strdup(path) : NULL;
    if (tiles)
        source->tiles = tiles;
    if (!copy)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for one more tile", path);
    size_t at = source->count++;
    for (; at > 0 && strcmp(tiles[at - 1].path, path) > 0; at--)
        tiles[at] = tiles[at - 1];
    tiles[at] = (struct tile){.path = copy};
    *out = &tiles[at];
    return NDT_OK;
}

static void free_tile(struct tile *tile)
{
    free(tile->path);
    free(tile->change);
}

/* Removes client tiles that are not in the map from the list. */
static void drop_unused_client_tiles(struct ndtd_map_source *source)
{
    size_t kept = 0;
    for (size_t i = 0; i < source->count; i++) {
        if (source->tiles[i].listed || source->tiles[i].in)
            source->tiles[kept++] = source->tiles[i];
        else
            free_tile(&source->tiles[i]);
    }
    source->count = kept;
}

static enum ndt_status list_folder(struct ndtd_map_source *source, const char *path, struct ndt_error *err)
{
    struct ndt_tile_set set;
    enum ndt_status status = ndt_tile_set_open(&set, path, err);
    if (status != NDT_OK)
        return status;
    source->tiles = calloc(set.count, sizeof(*source->tiles));
    if (!source->tiles) {
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for %zu tiles", path, set.count);
        ndt_tile_set_close(&set);
        return status;
    }
    source->follows = source->config.dynamic;
    for (size_t i = 0; i < set.count; i++) {
        struct tile *tile = &source->tiles[source->count++];
        *tile = (struct tile){.path = set.tiles[i].path, .change = set.tiles[i].change, .listed = 1};
        memcpy(tile->min_m, set.tiles[i].min_m, sizeof(tile->min_m));
        memcpy(tile->size_m, set.tiles[i].size_m, sizeof(tile->size_m));
        set.tiles[i].path = set.tiles[i].change = NULL; /* ownership moved */
        if (!(tile->size_m[0] > 0 && tile->size_m[1] > 0))
            source->follows = 0;
    }
    ndt_tile_set_close(&set);
    return NDT_OK;
}

static enum ndt_status list_path(struct ndtd_map_source *source, const char *path, struct ndt_error *err)
{
    struct stat info;
    struct tile *tile;
    if (!path)
        return NDT_OK;
    if (stat(path, &info) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    if (ndt_map_is_tile_set(path))
        return list_folder(source, path, err);
    if (ndt_map_is_compiled(path)) {
        source->compiled = strdup(path);
        return source->compiled ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    }
    enum ndt_status status = insert_tile(source, path, &tile, err);
    if (status == NDT_OK)
        tile->listed = 1;
    return status;
}

enum ndt_status ndtd_map_source_open(struct ndtd_map_source **out, const char *path,
                                     const struct ndtd_map_loader_config *config, struct ndt_progress *progress,
                                     struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_map_source *source = calloc(1, sizeof(*source));
    if (!source)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a map");
    source->config = *config;
    source->progress = progress;
    ndt_cloud_init(&source->cloud);
    enum ndt_status status = list_path(source, path, err);
    source->keep_sums = source->follows;
    if (status == NDT_OK)
        *out = source;
    else
        ndtd_map_source_close(source);
    return status;
}

static void drop_sums(struct ndtd_map_source *source)
{
    ndt_map_builder_destroy(source->sums);
    source->sums = NULL;
}

void ndtd_map_source_close(struct ndtd_map_source *source)
{
    if (!source)
        return;
    drop_sums(source);
    for (size_t i = 0; i < source->count; i++)
        free_tile(&source->tiles[i]);
    free(source->tiles);
    free(source->compiled);
    ndt_cloud_free(&source->cloud);
    free(source);
}

uint64_t ndtd_map_source_bytes(const struct ndtd_map_source *source)
{
    uint64_t bytes = 0;
    struct stat info;
    for (size_t i = 0; i < source->count; i++)
        if (stat(source->tiles[i].path, &info) == 0 && info.st_size > 0)
            bytes += (uint64_t)info.st_size;
    return bytes;
}

int ndtd_map_source_follows(const struct ndtd_map_source *source)
{
    return source->follows;
}

struct ndtd_map_source_counts ndtd_map_source_count(const struct ndtd_map_source *source)
{
    struct ndtd_map_source_counts counts = {.known = source->count, .reads = source->reads};
    for (size_t i = 0; i < source->count; i++)
        counts.loaded += (uint64_t)source->tiles[i].in;
    if (source->sums)
        counts.sums_bytes = ndt_map_builder_bytes(source->sums);
    return counts;
}

/* ---- adding and removing points ---- */

static uint64_t hash_points(const struct ndt_cloud *cloud)
{
    const size_t size = cloud->count * sizeof(float);
    uint64_t h = ndt_hash64(cloud->origin_m, sizeof(cloud->origin_m), cloud->count);
    if (size == 0)
        return h;
    h = ndt_hash64(cloud->x_m, size, h);
    h = ndt_hash64(cloud->y_m, size, h);
    return ndt_hash64(cloud->z_m, size, h);
}

static enum ndt_status read_tile(struct ndtd_map_source *source, const struct tile *tile, struct ndt_error *err)
{
    source->reads++;
    return ndt_tile_read(&source->cloud, tile->path, tile->change, source->progress, err);
}

/* The builder derives the origin of a map from its first finite point: build a map of that point to get it. */
static enum ndt_status find_origin(const struct ndtd_map_source *source, struct tile *tile, struct ndt_error *err)
{
    struct ndt_cloud head = source->cloud;
    struct ndt_map *map;
    size_t i = 0;
    while (i < head.count && !(isfinite(head.x_m[i]) && isfinite(head.y_m[i]) && isfinite(head.z_m[i])))
        i++;
    tile->has_points = i < head.count;
    if (!tile->has_points)
        return NDT_OK;
    head.count = i + 1;
    enum ndt_status status = ndt_map_from_cloud(&map, &source->config.map, &head, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", tile->path);
    memcpy(tile->origin_m, map->origin_m, sizeof(tile->origin_m));
    ndt_map_release(map);
    return NDT_OK;
}

static enum ndt_status new_sums(struct ndtd_map_source *source, struct ndt_error *err)
{
    drop_sums(source);
    enum ndt_status status = ndt_map_builder_create(&source->sums, &source->config.map, err);
    if (status == NDT_OK)
        ndt_map_builder_watch(source->sums, source->progress);
    return status;
}

/* A builder keeps the origin of its first points even when adding them failed. */
static enum ndt_status put_points(struct ndtd_map_source *source, const struct tile *tile, struct ndt_error *err)
{
    const int first = ndt_map_builder_points(source->sums) == 0;
    enum ndt_status status = NDT_OK;
    if (first)
        status = new_sums(source, err);
    if (status == NDT_OK)
        status = ndt_map_builder_add(source->sums, &source->cloud, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", tile->path);
    if (first && tile->has_points)
        memcpy(source->origin_m, tile->origin_m, sizeof(source->origin_m));
    return NDT_OK;
}

static enum ndt_status include_tile(struct ndtd_map_source *source, struct tile *tile, struct ndt_error *err)
{
    enum ndt_status status = read_tile(source, tile, err);
    if (status == NDT_OK)
        status = find_origin(source, tile, err);
    if (status == NDT_OK)
        status = put_points(source, tile, err);
    if (status != NDT_OK)
        return status;
    tile->content = hash_points(&source->cloud);
    tile->in = 1;
    source->stale = 1;
    return NDT_OK;
}

/* Returns 0 when the tile cannot be removed exactly. */
static int exclude_tile(struct ndtd_map_source *source, struct tile *tile)
{
    if (read_tile(source, tile, NULL) != NDT_OK || hash_points(&source->cloud) != tile->content ||
        ndt_map_builder_remove(source->sums, &source->cloud, NULL) != NDT_OK)
        return 0;
    tile->in = 0;
    source->stale = 1;
    return 1;
}

/* Adds all selected tiles that are not in the map. If not strict, continues after a failure and reports the first
 * one. */
static enum ndt_status include_selected(struct ndtd_map_source *source, int strict, struct ndt_error *err)
{
    enum ndt_status first = NDT_OK;
    for (size_t i = 0; i < source->count && (first == NDT_OK || !strict); i++) {
        struct tile *tile = &source->tiles[i];
        if (!tile->selected || tile->in)
            continue;
        enum ndt_status status = include_tile(source, tile, first == NDT_OK ? err : NULL);
        if (status == NDT_ERR_CANCELLED)
            return status;
        if (first == NDT_OK)
            first = status;
        if (!source->sums)
            return first;
    }
    return first;
}

static enum ndt_status make_sums(struct ndtd_map_source *source, int strict, struct ndt_error *err)
{
    enum ndt_status status = new_sums(source, err);
    for (size_t i = 0; i < source->count; i++)
        source->tiles[i].in = 0;
    source->stale = 1;
    return status == NDT_OK ? include_selected(source, strict, err) : status;
}

static int same_origin(const double a_m[3], const double b_m[3])
{
    return a_m[0] == b_m[0] && a_m[1] == b_m[1] && a_m[2] == b_m[2];
}

/* The first tile in the map with a point, which determines the origin; NULL if there is none. */
static const struct tile *first_tile(const struct ndtd_map_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->tiles[i].in && source->tiles[i].has_points)
            return &source->tiles[i];
    return NULL;
}

/* Moves the sums to the origin of a new builder over the same tiles; returns 0 if that requires their points. */
static int correct_origin(struct ndtd_map_source *source)
{
    const struct tile *first = first_tile(source);
    if (!first || same_origin(source->origin_m, first->origin_m))
        return 1;
    if (!ndt_map_builder_move_origin(source->sums, first->origin_m))
        return 0;
    memcpy(source->origin_m, first->origin_m, sizeof(source->origin_m));
    return 1;
}

/* Whether new sums are cheaper than a change. Removing a tile reads it again, which is slow where most of a large
 * map leaves, as after a search in all of it. */
static int begins_anew(const struct ndtd_map_source *source)
{
    size_t leaving = 0, staying = 0;
    for (size_t i = 0; i < source->count; i++) {
        leaving += source->tiles[i].in && !source->tiles[i].selected;
        staying += source->tiles[i].in && source->tiles[i].selected;
    }
    return !source->sums || (leaving > 8 && leaving > 2 * staying);
}

/* Counts the files that will be read, at least, for the progress. */
static void count_changes(const struct ndtd_map_source *source)
{
    uint64_t changes = 0;
    const int all = begins_anew(source);
    for (size_t i = 0; i < source->count; i++)
        changes += all ? source->tiles[i].selected != 0 : source->tiles[i].selected != source->tiles[i].in;
    ndt_progress_set(source->progress, NDT_PROGRESS_ALL_TILES, changes);
}

/* Adds and removes tiles until the selected ones are in the map. */
static enum ndt_status change_tiles(struct ndtd_map_source *source, int strict, struct ndt_error *err)
{
    count_changes(source);
    if (begins_anew(source))
        return make_sums(source, strict, err);
    for (size_t i = 0; i < source->count; i++)
        if (source->tiles[i].in && !source->tiles[i].selected && !exclude_tile(source, &source->tiles[i]))
            return make_sums(source, strict, err);
    enum ndt_status status = include_selected(source, strict, err);
    if ((status != NDT_OK && strict) || !source->sums || correct_origin(source))
        return status;
    enum ndt_status again = make_sums(source, strict, status == NDT_OK ? err : NULL);
    return status == NDT_OK ? again : status;
}

/* ---- maps ---- */

static int any_in(const struct ndtd_map_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->tiles[i].in)
            return 1;
    return 0;
}

static int any_selected(const struct ndtd_map_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->tiles[i].selected)
            return 1;
    return 0;
}

static enum ndt_status build(struct ndtd_map_source *source, struct ndtd_map_change *out, struct ndt_error *err)
{
    if (!any_in(source)) {
        out->changed = 1;
        source->stale = 0;
        return NDT_OK;
    }
    if (ndt_map_builder_points(source->sums) == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point", source->tiles[0].path);
    enum ndt_status status = ndt_map_build(&out->map, source->sums, err);
    if (status != NDT_OK)
        return status;
    out->changed = 1;
    source->stale = 0;
    return NDT_OK;
}

/* Restores the previous selection of tiles. Sums that no longer match it are freed; the next change rebuilds them.
 */
static void restore_selection(struct ndtd_map_source *source)
{
    int touched = 0;
    for (size_t i = 0; i < source->count; i++) {
        touched |= source->tiles[i].in != source->tiles[i].was;
        source->tiles[i].in = source->tiles[i].was;
    }
    if (touched || source->stale)
        drop_sums(source);
    source->stale = 0;
}

/* Builds the map of the selected tiles; a failure changes nothing. */
static enum ndt_status update_strictly(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                       struct ndt_error *err)
{
    for (size_t i = 0; i < source->count; i++)
        source->tiles[i].was = source->tiles[i].in;
    enum ndt_status status = change_tiles(source, 1, err);
    ndt_cloud_free(&source->cloud);
    if (status == NDT_OK)
        status = build(source, out, err);
    if (status != NDT_OK)
        restore_selection(source);
    if (!source->keep_sums)
        drop_sums(source);
    return status;
}

/* Builds the map of the selected tiles that can be read: an unreadable tile must not prevent loading the others. */
static enum ndt_status update_leniently(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                        struct ndt_error *err)
{
    enum ndt_status status = change_tiles(source, 0, err);
    ndt_cloud_free(&source->cloud);
    if (!source->sums || !source->stale || !any_in(source) || status == NDT_ERR_CANCELLED)
        return status;
    enum ndt_status built = build(source, out, status == NDT_OK ? err : NULL);
    return status == NDT_OK ? built : status;
}

static enum ndt_status open_compiled(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                     struct ndt_error *err)
{
    enum ndt_status status =
        ndt_map_load_with(&out->map, source->compiled, &source->config.map, source->progress, err);
    out->changed = status == NDT_OK;
    return status;
}

enum ndt_status ndtd_map_source_all(struct ndtd_map_source *source, struct ndtd_map_change *out,
                                    struct ndt_error *err)
{
    *out = (struct ndtd_map_change){0};
    if (source->compiled)
        return open_compiled(source, out, err);
    for (size_t i = 0; i < source->count; i++)
        source->tiles[i].selected = !source->tiles[i].barred;
    return update_strictly(source, out, err);
}

/* Whether the square of the tile touches the circle. */
static int in_reach(const struct ndtd_map_source *source, const struct tile *tile, const double position_m[2])
{
    const double reach_m = source->config.map_radius_m + source->config.lidar_radius_m;
    double away_m[2];
    for (int k = 0; k < 2; k++) {
        const double low_m = tile->min_m[k] - position_m[k];
        const double high_m = position_m[k] - (tile->min_m[k] + tile->size_m[k]);
        away_m[k] = fmax(0, fmax(low_m, high_m));
    }
    return tile->listed && hypot(away_m[0], away_m[1]) <= reach_m;
}

enum ndt_status ndtd_map_source_near(struct ndtd_map_source *source, const double position_m[2], int strict,
                                     struct ndtd_map_change *out, struct ndt_error *err)
{
    *out = (struct ndtd_map_change){0};
    for (size_t i = 0; i < source->count; i++) {
        struct tile *tile = &source->tiles[i];
        tile->selected = tile->pinned || (!tile->barred && in_reach(source, tile, position_m));
    }
    if (any_selected(source))
        return strict ? update_strictly(source, out, err) : update_leniently(source, out, err);
    return !strict ? NDT_OK
                   : ndt_fail(err, NDT_ERR_ARGUMENT, "no tile of the map is within %g m of (%.1f, %.1f) m",
                              source->config.map_radius_m + source->config.lidar_radius_m, position_m[0],
                              position_m[1]);
}

static void select_included(struct ndtd_map_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        source->tiles[i].selected = source->tiles[i].in;
}

static enum ndt_status refuse_compiled(const struct ndtd_map_source *source, const char *path,
                                       struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the map is compiled (%s): tiles cannot be added or removed", path,
                    source->compiled);
}

enum ndt_status ndtd_map_source_add(struct ndtd_map_source *source, const char *path, struct ndtd_map_change *out,
                                    struct ndt_error *err)
{
    *out = (struct ndtd_map_change){0};
    if (source->compiled)
        return refuse_compiled(source, path, err);
    struct tile *tile = find_tile(source, path);
    if (tile && tile->in && (tile->pinned || !source->follows))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: is already in the map", path);
    enum ndt_status status = tile ? NDT_OK : insert_tile(source, path, &tile, err);
    if (!tile)
        return status;
    select_included(source);
    tile->selected = 1;
    source->keep_sums = 1;
    if (!tile->in)
        status = update_strictly(source, out, err);
    if (status == NDT_OK) {
        tile->pinned = 1;
        tile->barred = 0;
    }
    drop_unused_client_tiles(source);
    return status;
}

enum ndt_status ndtd_map_source_remove(struct ndtd_map_source *source, const char *path,
                                       struct ndtd_map_change *out, struct ndt_error *err)
{
    *out = (struct ndtd_map_change){0};
    if (source->compiled)
        return refuse_compiled(source, path, err);
    struct tile *tile = find_tile(source, path);
    if (!tile || (!tile->in && tile->barred))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: is not in the map", path);
    select_included(source);
    tile->selected = 0;
    source->keep_sums = 1;
    enum ndt_status status = tile->in ? update_strictly(source, out, err) : NDT_OK;
    if (status == NDT_OK) {
        tile->pinned = 0;
        tile->barred = 1;
    }
    drop_unused_client_tiles(source);
    return status;
}

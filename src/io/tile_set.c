/* The tiles of a map folder, with or without Autoware's metadata. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cloud_reader.h"
#include "map_overlay.h"
#include "ndt_io/map_file.h"
#include "tile_metadata.h"

/* ---- the directory ---- */

static int is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static int is_yaml(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0);
}

/* Joins "folder/name"; for "" as folder, "name". 0: too long. */
static int join(char out[PATH_MAX], const char *folder, const char *name)
{
    const int used = snprintf(out, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", name);
    return used >= 0 && used < PATH_MAX;
}

/* What `ndt-map build --clean` has left out of the map beside it. */
static int is_left_out(const char *directory, const char *name)
{
    char about[PATH_MAX];
    return strcmp(name, "moved.pcd") == 0 && join(about, directory, "map.json") && is_file(about);
}

static enum ndt_status add_entries(struct ndt_tile_set *set, DIR *folder, const char *directory,
                                   struct ndt_error *err)
{
    static const double unknown_m[2] = {0.0, 0.0};
    int is_recording = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        is_recording |= ndt_is_recording_name(entry->d_name);
        if (entry->d_name[0] == '.' || !ndt_cloud_format_find(entry->d_name) ||
            is_left_out(directory, entry->d_name))
            continue;
        enum ndt_status status = ndt_tile_set_add(set, directory, entry->d_name, unknown_m, err);
        if (status != NDT_OK)
            return status;
        if (!is_file(set->tiles[set->count - 1].path))
            free(set->tiles[--set->count].path);
    }
    char list[64];
    if (set->count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: the directory contains no cloud file of the formats%s%s",
                        directory, ndt_cloud_format_list(list, sizeof(list)),
                        is_recording ? ": it holds a recording, not a map" : "");
    return NDT_OK;
}

static enum ndt_status list_directory(struct ndt_tile_set *set, const char *directory, struct ndt_error *err)
{
    DIR *folder = opendir(directory);
    if (!folder)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", directory, strerror(errno));
    enum ndt_status status = add_entries(set, folder, directory, err);
    closedir(folder);
    return status;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct ndt_tile *)a)->path, ((const struct ndt_tile *)b)->path);
}

/* Checks that every tile of the metadata exists and is named once. The set is sorted. */
static enum ndt_status check_tiles(const struct ndt_tile_set *set, const char *metadata, struct ndt_error *err)
{
    if (set->count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: no tile is named", metadata);
    for (size_t i = 0; i < set->count; i++) {
        const char *path = set->tiles[i].path;
        if (i > 0 && strcmp(set->tiles[i - 1].path, path) == 0)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: names the tile %s twice", metadata, path);
        if (!is_file(path))
            return ndt_fail(err, NDT_ERR_IO, "%s: names the tile %s, which is not a file", metadata, path);
    }
    return NDT_OK;
}

/* ---- where the metadata is: in the folder of the tiles, or above it ---- */

static int exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* Reads the metadata for tiles in `folder` and replaces the contents of the set. *fits: whether the first tile is
 * there. */
static enum ndt_status try_folder(struct ndt_tile_set *set, const char *folder, const char *metadata, int *fits,
                                  struct ndt_error *err)
{
    ndt_tile_set_close(set);
    const enum ndt_status status = ndt_tile_metadata_read(set, folder, metadata, err);
    *fits = status == NDT_OK && set->count > 0 && is_file(set->tiles[0].path);
    return status;
}

/* Finds the first sub-folder, by name, that has a file `name`. 0: none. */
static int find_below(char out[PATH_MAX], const char *folder, const char *name)
{
    char below[PATH_MAX], path[PATH_MAX];
    DIR *entries = opendir(folder);
    int found = 0;
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry; entry = readdir(entries)) {
        if (entry->d_name[0] == '.' || !join(below, folder, entry->d_name) || !join(path, below, name) ||
            !is_file(path) || (found && strcmp(below, out) > 0))
            continue;
        memcpy(out, below, strlen(below) + 1);
        found = 1;
    }
    if (entries)
        closedir(entries);
    return found;
}

/* Reads the metadata in `folder`; the tiles are there, too, or in a folder below: Autoware's pointcloud_map.pcd. */
static enum ndt_status read_beside(struct ndt_tile_set *set, const char *folder, const char *metadata,
                                   struct ndt_error *err)
{
    char below[PATH_MAX];
    int fits;
    enum ndt_status status = try_folder(set, folder, metadata, &fits, err);
    if (status == NDT_OK && !fits && set->count > 0 &&
        find_below(below, folder, set->tiles[0].path + strlen(folder) + 1))
        status = try_folder(set, below, metadata, &fits, err);
    return status;
}

static enum ndt_status check_and_sort(struct ndt_tile_set *set, const char *metadata, struct ndt_error *err)
{
    if (set->count > 1)
        qsort(set->tiles, set->count, sizeof(*set->tiles), compare_paths);
    return metadata ? check_tiles(set, metadata, err) : NDT_OK;
}

/* Lists a folder without metadata: every cloud in it, or in Autoware's sub-folder. */
static enum ndt_status list_clouds(struct ndt_tile_set *set, const char *folder, struct ndt_error *err)
{
    char below[PATH_MAX];
    enum ndt_status status = list_directory(set, folder, err);
    if (status == NDT_ERR_FORMAT && join(below, folder, "pointcloud_map.pcd") && exists(below))
        status = list_directory(set, below, err);
    return status == NDT_OK ? check_and_sort(set, NULL, err) : status;
}

/* Lists a folder without metadata of its own; metadata above it counts if it names tiles in this folder. */
static enum ndt_status list_with_above(struct ndt_tile_set *set, const char *folder, struct ndt_error *err)
{
    char copy[PATH_MAX], metadata[PATH_MAX];
    int fits = 0;
    const size_t length = strlen(folder);
    const int is_relative = length == 0 || folder[length - 1] == '.'; /* ".", "a/.." */
    if (!join(copy, folder, is_relative ? ".." : "") ||
        !join(metadata, is_relative ? copy : dirname(copy), NDT_TILE_METADATA) || !exists(metadata))
        return list_clouds(set, folder, err);
    enum ndt_status status = try_folder(set, folder, metadata, &fits, err);
    if (status != NDT_OK || fits)
        return status == NDT_OK ? check_and_sort(set, metadata, err) : status;
    ndt_tile_set_close(set);
    return list_clouds(set, folder, err);
}

static enum ndt_status open_tiles(struct ndt_tile_set *set, const char *path, struct ndt_error *err)
{
    char folder[PATH_MAX], metadata[PATH_MAX];
    const int is_metadata = is_yaml(path) && is_file(path);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    const int used = snprintf(folder, sizeof(folder), "%.*s", (int)(length < PATH_MAX ? length : PATH_MAX), path);
    if (used >= PATH_MAX || !join(metadata, folder, is_metadata ? "" : NDT_TILE_METADATA))
        return ndt_fail(err, NDT_ERR_LIMIT, "%.100s...: the path is too long", path);
    if (is_metadata)
        snprintf(metadata, sizeof(metadata), "%s", folder);
    if (!is_metadata && !exists(metadata))
        return list_with_above(set, folder, err);
    const char *in = is_metadata ? dirname(folder) : folder;
    const enum ndt_status status = read_beside(set, in, metadata, err);
    return status == NDT_OK ? check_and_sort(set, metadata, err) : status;
}

/* ---- an overlay: the tiles of another map, with their changes ---- */

static enum ndt_status open_one_cloud(struct ndt_tile_set *set, const char *path, struct ndt_error *err)
{
    static const double unknown_m[2] = {0.0, 0.0};
    char folder[PATH_MAX], name[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    snprintf(name, sizeof(name), "%s", path);
    if (!is_file(path))
        return ndt_fail(err, NDT_ERR_IO, "%s: is not there, or no file", path);
    if (!ndt_cloud_format_find(path))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: neither a cloud file nor a folder of tiles: no overlay fits",
                        path);
    return ndt_tile_set_add(set, dirname(folder), basename(name), unknown_m, err);
}

/* Attaches the change of a tile, if the folder of the overlay has one. */
static enum ndt_status attach_change(struct ndt_tile *tile, const char *folder, uint64_t id, struct ndt_error *err)
{
    char path[PATH_MAX];
    const char *slash = strrchr(tile->path, '/');
    const int used =
        snprintf(path, sizeof(path), "%s/%s" NDT_CHANGE_EXTENSION, folder, slash ? slash + 1 : tile->path);
    if (used >= PATH_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%.100s...: the path is too long", folder);
    if (!exists(path))
        return NDT_OK;
    enum ndt_status status = ndt_change_check(path, id, err);
    if (status == NDT_OK && !(tile->change = strdup(path)))
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", path);
    return status;
}

static int is_change(const char *name)
{
    const size_t length = strlen(name), tail = strlen(NDT_CHANGE_EXTENSION);
    return length > tail && strcmp(name + length - tail, NDT_CHANGE_EXTENSION) == 0;
}

/* Checks that every change has found one tile; two tiles of one name in different folders cannot be told apart. */
static enum ndt_status check_changes(const struct ndt_tile_set *set, const char *folder, const char *map,
                                     struct ndt_error *err)
{
    size_t attached = 0, files = 0;
    for (size_t i = 0; i < set->count; i++)
        attached += set->tiles[i].change != NULL;
    DIR *entries = opendir(folder);
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry; entry = readdir(entries))
        files += (size_t)is_change(entry->d_name);
    if (entries)
        closedir(entries);
    if (attached == files)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: %zu files of changes for %zu files of the map %s", folder, files,
                    attached, map);
}

static enum ndt_status open_overlay(struct ndt_tile_set *set, const char *folder, struct ndt_error *err)
{
    struct ndt_map_overlay overlay;
    enum ndt_status status = ndt_map_overlay_open(&overlay, folder, err);
    if (status != NDT_OK)
        return status;
    status = ndt_map_is_tile_set(overlay.map) ? open_tiles(set, overlay.map, err)
                                              : open_one_cloud(set, overlay.map, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", folder);
    for (size_t i = 0; status == NDT_OK && i < set->count; i++)
        status = attach_change(&set->tiles[i], folder, overlay.id, err);
    return status == NDT_OK ? check_changes(set, folder, overlay.map, err) : status;
}

enum ndt_status ndt_tile_set_open(struct ndt_tile_set *out, const char *path, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    const enum ndt_status status =
        ndt_map_is_overlay(path) ? open_overlay(out, path, err) : open_tiles(out, path, err);
    if (status != NDT_OK)
        ndt_tile_set_close(out);
    return status;
}

int ndt_map_is_tile_set(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && (S_ISDIR(info.st_mode) || (S_ISREG(info.st_mode) && is_yaml(path)));
}

void ndt_tile_set_close(struct ndt_tile_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->tiles[i].path);
        free(set->tiles[i].change);
    }
    free(set->tiles);
    memset(set, 0, sizeof(*set));
}

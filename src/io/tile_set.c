#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cloud_format.h"
#include "tile_metadata.h"

/* The array doubles whenever the count is a power of two. */
static enum ndt_status grow(struct ndt_tile_set *set, struct ndt_error *err)
{
    if (set->count & (set->count - 1))
        return NDT_OK;
    const size_t capacity = set->count ? 2 * set->count : 1;
    struct ndt_tile *tiles = realloc(set->tiles, capacity * sizeof(*tiles));
    if (!tiles)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu tiles", capacity);
    set->tiles = tiles;
    return NDT_OK;
}

enum ndt_status ndt_tile_add(struct ndt_tile_set *set, const char *directory, const char *name, size_t length,
                             const double min_m[2], struct ndt_error *err)
{
    enum ndt_status status = grow(set, err);
    if (status != NDT_OK)
        return status;
    const size_t size = strlen(directory) + 1 + length + 1;
    char *path = malloc(size);
    if (!path)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the name of a tile");
    snprintf(path, size, "%s/%.*s", directory, (int)length, name);
    set->tiles[set->count++] = (struct ndt_tile){.path = path, .min_m = {min_m[0], min_m[1]}};
    return NDT_OK;
}

static int is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static enum ndt_status add_entries(struct ndt_tile_set *set, DIR *folder, const char *directory,
                                   struct ndt_error *err)
{
    static const double unknown_m[2] = {0.0, 0.0};
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] == '.' || !ndt_cloud_format_find(entry->d_name))
            continue;
        enum ndt_status status = ndt_tile_add(set, directory, entry->d_name, strlen(entry->d_name), unknown_m, err);
        if (status != NDT_OK)
            return status;
        if (!is_file(set->tiles[set->count - 1].path))
            free(set->tiles[--set->count].path);
    }
    char list[64];
    if (set->count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: the directory holds no cloud file (%s )", directory,
                        ndt_cloud_format_list(list, sizeof(list)));
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

/* Every tile of the metadata must be there, and be there once. The set is sorted. */
static enum ndt_status check_tiles(const struct ndt_tile_set *set, const char *metadata, struct ndt_error *err)
{
    if (set->count == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: names no tile", metadata);
    for (size_t i = 0; i < set->count; i++) {
        const char *path = set->tiles[i].path;
        if (i > 0 && strcmp(set->tiles[i - 1].path, path) == 0)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: names the tile %s twice", metadata, path);
        if (!is_file(path))
            return ndt_fail(err, NDT_ERR_IO, "%s: names the tile %s, which is no file", metadata, path);
    }
    return NDT_OK;
}

static enum ndt_status list_tiles(struct ndt_tile_set *set, const char *directory, const char *metadata,
                                  struct ndt_error *err)
{
    struct stat info;
    const int has_metadata = stat(metadata, &info) == 0;
    enum ndt_status status =
        has_metadata ? ndt_tile_metadata_read(set, directory, metadata, err) : list_directory(set, directory, err);
    if (set->count > 1)
        qsort(set->tiles, set->count, sizeof(*set->tiles), compare_paths);
    return status == NDT_OK && has_metadata ? check_tiles(set, metadata, err) : status;
}

enum ndt_status ndt_tile_set_open(struct ndt_tile_set *out, const char *directory, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    const size_t size = strlen(directory) + sizeof("/" NDT_TILE_METADATA_NAME);
    char *metadata = malloc(size);
    if (!metadata)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", directory);
    snprintf(metadata, size, "%s/%s", directory, NDT_TILE_METADATA_NAME);
    enum ndt_status status = list_tiles(out, directory, metadata, err);
    free(metadata);
    if (status != NDT_OK)
        ndt_tile_set_close(out);
    return status;
}

void ndt_tile_set_close(struct ndt_tile_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->tiles[i].path);
    free(set->tiles);
    memset(set, 0, sizeof(*set));
}

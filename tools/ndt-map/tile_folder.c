#include "tile_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/map_file.h"

static const char SPILL[] = ".spill";

static int ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), size = strlen(ending);
    return length >= size && strcmp(name + length - size, ending) == 0;
}

static int is_of_a_map(const char *name)
{
    return ends_in(name, ".pcd") || ends_in(name, SPILL) || ends_in(name, ".tmp") ||
           strcmp(name, NDT_TILE_METADATA) == 0;
}

static int is_folder(int parent, const char *name)
{
    struct stat info;
    return fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

/* Checks that every file belongs to a map, or removes them. */
static enum ndt_status for_files(const char *path, DIR *entries, int removes, struct ndt_error *err)
{
    char file[PATH_MAX];
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (!is_of_a_map(name) || is_folder(dirfd(entries), name))
            return ndt_fail(err, NDT_ERR_IO, "%s: holds '%.100s', which is no part of a tiled map: not replaced",
                            path, name);
        if (removes && snprintf(file, sizeof(file), "%s/%s", path, name) < (int)sizeof(file) && unlink(file) != 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot remove: %s", file, strerror(errno));
    }
    return NDT_OK;
}

/* A folder that holds anything but a map stays as it is. */
static enum ndt_status check_folder(const char *path, int removes, struct ndt_error *err)
{
    DIR *entries = opendir(path);
    if (!entries)
        return errno == ENOENT ? NDT_OK : ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    enum ndt_status status = for_files(path, entries, 0, err);
    rewinddir(entries);
    if (status == NDT_OK && removes)
        status = for_files(path, entries, 1, err);
    closedir(entries);
    if (status == NDT_OK && removes && rmdir(path) != 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: cannot remove: %s", path, strerror(errno));
    return status;
}

static enum ndt_status remove_folder(const char *path, struct ndt_error *err)
{
    return check_folder(path, 1, err);
}

/* Sets the path, without slashes behind it; of a symbolic link that of its target, which is replaced. 0: too long.
 */
static int set_path(struct tile_folder *folder, const char *path)
{
    char target[PATH_MAX];
    const char *used = *path && realpath(path, target) ? target : path;
    size_t length = strlen(used);
    while (length > 1 && used[length - 1] == '/')
        length--;
    if (length == 0 || length + sizeof(".part") > sizeof(folder->path))
        return 0;
    memcpy(folder->path, used, length);
    folder->path[length] = '\0';
    return 1;
}

enum ndt_status tile_folder_open(struct tile_folder *folder, const char *path, struct ndt_error *err)
{
    char partial[sizeof(folder->partial)];
    *folder = (struct tile_folder){.path = ""};
    if (!set_path(folder, path))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--out: the path is empty or too long");
    snprintf(partial, sizeof(partial), "%.*s.part", (int)(sizeof(partial) - sizeof(".part")), folder->path);
    enum ndt_status status = check_folder(folder->path, 0, err);
    if (status == NDT_OK)
        status = remove_folder(partial, err);
    if (status != NDT_OK)
        return status;
    if (mkdir(partial, 0777) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot be made: %s", partial, strerror(errno));
    memcpy(folder->partial, partial, sizeof(partial));
    return NDT_OK;
}

enum ndt_status tile_folder_close(struct tile_folder *folder, enum ndt_status status, struct ndt_error *err)
{
    if (!*folder->partial)
        return status;
    if (status == NDT_OK)
        status = remove_folder(folder->path, err);
    if (status == NDT_OK && rename(folder->partial, folder->path) != 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: cannot be renamed to %s: %s", folder->partial, folder->path,
                          strerror(errno));
    if (status != NDT_OK)
        (void)!remove_folder(folder->partial, NULL);
    *folder->partial = '\0';
    return status;
}

void tile_folder_spill(const struct tile_folder *folder, int32_t x, int32_t y, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%d_%d%s", folder->partial, x, y, SPILL);
}

void tile_folder_tile(const struct tile_folder *folder, double x_m, double y_m, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%.9g_%.9g.pcd", folder->partial, x_m, y_m);
}

void tile_folder_metadata(const struct tile_folder *folder, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" NDT_TILE_METADATA, folder->partial);
}

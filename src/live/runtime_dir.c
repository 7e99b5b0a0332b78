#include "ndtd/runtime_dir.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndtd/log.h"

enum { CANDIDATES = 3, PATH_BYTES = 200 };

/* The list of the header without its first entry, in order of preference; returns its length. */
static int candidates(char paths[CANDIDATES][PATH_BYTES])
{
    const char *user = getenv("XDG_RUNTIME_DIR");
    int count = 0;
    snprintf(paths[count++], PATH_BYTES, "/run/ndtd");
    if (user && *user)
        snprintf(paths[count++], PATH_BYTES, "%s/ndtd", user);
    snprintf(paths[count++], PATH_BYTES, "/tmp/ndtd-%lu", (unsigned long)getuid());
    return count;
}

/* Whether this user's daemon can make the directory. */
static int can_be_made(const char *path)
{
    char parent[PATH_BYTES];
    snprintf(parent, sizeof(parent), "%.*s", PATH_BYTES - 1, path);
    return access(path, F_OK) != 0 && errno == ENOENT && access(dirname(parent), W_OK | X_OK) == 0;
}

/* Tries a directory; create: creates the last component only. Returns 0, or an errno. */
static int try_directory(const char *path, int create)
{
    struct stat info;
    const int failure = create && mkdir(path, 0700) != 0 ? errno : 0;
    if (stat(path, &info) != 0)
        return failure ? failure : errno;
    if (!S_ISDIR(info.st_mode))
        return ENOTDIR;
    return access(path, create ? W_OK | X_OK : X_OK) == 0 ? 0 : errno;
}

/* Creates a private directory in /tmp, where another user may have created it first. */
static enum ndt_status create_private(const char *path, struct ndt_error *err)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    if (lstat(path, &info) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode) || info.st_uid != getuid() || (info.st_mode & 022) != 0)
        return ndt_fail(err, NDT_ERR_IO,
                        "%s: owner %lu, mode %04o: is not a directory that only this user may write to", path,
                        (unsigned long)info.st_uid, (unsigned)(info.st_mode & 07777));
    return NDT_OK;
}

/* Takes a given directory, or refuses it: never another one. */
static enum ndt_status given_directory(char *path, size_t size, const char *list, int create, struct ndt_error *err)
{
    const size_t length = strcspn(list, ":");
    if (length >= size)
        return ndt_fail(err, NDT_ERR_LIMIT, "$RUNTIME_DIRECTORY: %.100s...: the path is too long", list);
    snprintf(path, size, "%.*s", (int)length, list);
    const int failure = create ? try_directory(path, 1) : 0;
    return failure
               ? ndt_fail(err, NDT_ERR_IO, "$RUNTIME_DIRECTORY: %s: cannot be used: %s", path, strerror(failure))
               : NDT_OK;
}

enum ndt_status ndtd_runtime_dir(char *path, size_t size, int create, struct ndt_error *err)
{
    char paths[CANDIDATES][PATH_BYTES];
    const char *systemd = getenv("RUNTIME_DIRECTORY"); /* may be a list separated by ':' */
    if (systemd && *systemd)
        return given_directory(path, size, systemd, create, err);
    const int last = candidates(paths) - 1;
    int chosen = 0, failure = 0;
    while (chosen < last && (failure = try_directory(paths[chosen], create)) != 0)
        chosen++;
    if (!create && chosen == last && access(paths[last], F_OK) != 0) /* no daemon yet: where it is going to be */
        for (chosen = 0; chosen < last && !can_be_made(paths[chosen]);)
            chosen++;
    if (create && chosen == last && last > 1)
        ndtd_log(NDTD_LOG_WARNING, "$XDG_RUNTIME_DIR: %s: cannot be used: %s; the sockets are in %s",
                 paths[last - 1], strerror(failure), paths[last]);
    if (strlen(paths[chosen]) >= size)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: the path is too long", paths[chosen]);
    strcpy(path, paths[chosen]);
    return chosen == last ? create_private(path, err) : NDT_OK;
}

enum ndt_status ndtd_default_address(char *out, size_t size, const char *address, const char *name, int create,
                                     struct ndt_error *err)
{
    char directory[PATH_BYTES];
    if (*address) {
        snprintf(out, size, "%s", address);
        return NDT_OK;
    }
    enum ndt_status status = ndtd_runtime_dir(directory, sizeof(directory), create, err);
    if (status == NDT_OK)
        snprintf(out, size, "ipc://%s/%s.ipc", directory, name);
    return status;
}

#include "ndtd/runtime_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANDIDATES = 4, PATH_BYTES = 200 };

/* The list of the header, in order of preference; returns its length. */
static int candidates(char paths[CANDIDATES][PATH_BYTES])
{
    const char *systemd = getenv("RUNTIME_DIRECTORY"), *user = getenv("XDG_RUNTIME_DIR");
    int count = 0;
    if (systemd && *systemd) /* may be a list separated by ':' */
        snprintf(paths[count++], PATH_BYTES, "%.*s", (int)strcspn(systemd, ":"), systemd);
    snprintf(paths[count++], PATH_BYTES, "/run/ndtd");
    if (user && *user)
        snprintf(paths[count++], PATH_BYTES, "%s/ndtd", user);
    snprintf(paths[count++], PATH_BYTES, "/tmp/ndtd-%lu", (unsigned long)getuid());
    return count;
}

static int is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* In /tmp another user may have created the directory first. */
static enum ndt_status create_private(const char *path, struct ndt_error *err)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    if (lstat(path, &info) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode) || info.st_uid != getuid() || (info.st_mode & 022) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: is not a directory that only this user may write to", path);
    return NDT_OK;
}

enum ndt_status ndtd_runtime_dir(char *path, size_t size, int create, struct ndt_error *err)
{
    char paths[CANDIDATES][PATH_BYTES];
    const int count = candidates(paths);
    int chosen = count - 1;
    for (int i = 0; i < chosen; i++) {
        if (create) /* creates the last component only */
            (void)mkdir(paths[i], 0700);
        if (is_directory(paths[i]) && (!create || access(paths[i], W_OK) == 0))
            chosen = i;
    }
    if (strlen(paths[chosen]) >= size)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: the path is too long", paths[chosen]);
    strcpy(path, paths[chosen]);
    return create && chosen == count - 1 ? create_private(path, err) : NDT_OK;
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

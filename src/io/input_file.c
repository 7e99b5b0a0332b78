#include "ndt_io/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Whether a file may be read: a regular one, or /dev/null, which stands for an empty configuration and never
 * blocks. */
static int is_file(const struct stat *info)
{
    return S_ISREG(info->st_mode) || (S_ISCHR(info->st_mode) && info->st_rdev == makedev(1, 3));
}

/* Fails for a file that cannot be opened. Of a socket, which never can, the kind says more than the number of the
 * error. */
static enum ndt_status fail_open(const char *path, int failure, struct ndt_error *err)
{
    struct stat info;
    if (failure == ENXIO && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%s: is %s, not a file", path, kind_of(info.st_mode));
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(failure));
}

enum ndt_status ndt_input_file_open(int *fd, uint64_t *size, const char *path, struct ndt_error *err)
{
    struct stat info;
    /* O_NONBLOCK: a pipe without a writer must be refused, not waited for. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return fail_open(path, errno, err);
    const int failure = fstat(*fd, &info) == 0 ? 0 : errno;
    if (failure == 0 && is_file(&info)) {
        if (size)
            *size = (uint64_t)info.st_size;
        return NDT_OK;
    }
    close(*fd);
    *fd = -1;
    return failure ? ndt_fail(err, NDT_ERR_IO, "%s: cannot read: %s", path, strerror(failure))
                   : ndt_fail(err, NDT_ERR_IO, "%s: is %s, not a file", path, kind_of(info.st_mode));
}

enum ndt_status ndt_input_file_check(const char *path, int is_folder, struct ndt_error *err)
{
    struct stat info;
    int fd;
    if (is_folder && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return access(path, R_OK | X_OK) == 0
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    enum ndt_status status = ndt_input_file_open(&fd, NULL, path, err);
    if (status == NDT_OK)
        close(fd);
    return status;
}

#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    WAIT_MS = 100,       /* time after which the caller is asked whether it still waits */
    PIPE_BYTES = 1 << 20 /* room for one side to work on while the other writes or reads a scan */
};

int ndt_stream_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

int ndt_stream_is_stream(const char *path)
{
    struct stat info;
    if (ndt_stream_is_standard(path))
        return 1;
    return stat(path, &info) == 0 &&
           (S_ISFIFO(info.st_mode) || (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3)));
}

static enum ndt_status open_stream(int *fd, const char *path, int flags, int standard_fd, struct ndt_error *err)
{
    if (ndt_stream_is_standard(path))
        *fd = fcntl(standard_fd, F_DUPFD_CLOEXEC, 3);
    else
        *fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
    if (*fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    if (isatty(*fd)) {
        close(*fd);
        *fd = -1;
        return ndt_fail(err, NDT_ERR_IO, "%s: is a terminal; a bag goes through a pipe or a file", path);
    }
    /* May fail: the limit of the user is reached, or this is no pipe. */
    (void)fcntl(*fd, F_SETPIPE_SZ, (int)PIPE_BYTES);
    return NDT_OK;
}

enum ndt_status ndt_stream_open_input(int *fd, const char *path, struct ndt_error *err)
{
    /* O_NONBLOCK: the first read waits for the writer, which can be cancelled; open cannot. */
    return open_stream(fd, path, O_RDONLY | O_NONBLOCK, STDIN_FILENO, err);
}

enum ndt_status ndt_stream_open_output(int *fd, const char *path, struct ndt_error *err)
{
    return open_stream(fd, path, O_WRONLY, STDOUT_FILENO, err);
}

/* Sleeps until there are bytes or the end. A FIFO without a writer is at its end only after a writer has closed it.
 */
static enum ndt_status wait_for_bytes(int fd, const char *path, struct ndt_progress *progress,
                                      struct ndt_error *err)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    for (;;) {
        const int ready = poll(&wanted, 1, progress ? WAIT_MS : -1);
        if (ready > 0)
            return NDT_OK;
        if (ready < 0 && errno != EINTR)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot wait for bytes: %s", path, strerror(errno));
        const enum ndt_status status = ndt_progress_check(progress, err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", path);
    }
}

enum ndt_status ndt_stream_read(int fd, const char *path, void *buffer, size_t size, size_t *got,
                                struct ndt_progress *progress, struct ndt_error *err)
{
    for (*got = 0; *got < size;) {
        const enum ndt_status status = wait_for_bytes(fd, path, progress, err);
        if (status != NDT_OK)
            return status;
        const ssize_t part = read(fd, (char *)buffer + *got, size - *got);
        if (part == 0)
            return NDT_OK;
        if (part < 0 && errno != EINTR && errno != EAGAIN)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
        *got += part > 0 ? (size_t)part : 0;
    }
    return NDT_OK;
}

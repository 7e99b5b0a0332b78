#define _GNU_SOURCE /* struct ucred */

#include "ipc_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 100, LOCK_PAUSE_NS = 10000000, BACKLOG = 100 };

static struct sockaddr_un socket_name(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    return name;
}

static int open_folder(const char *path)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The locked folder; closing it unlocks. */
static enum ndt_status lock_folder(const char *path, int *fd, struct ndt_error *err)
{
    *fd = open_folder(path);
    if (*fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot open its folder: %s", path, strerror(errno));
    for (int i = 0; i < LOCK_TRIES; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
            return NDT_OK;
        nanosleep(&pause, NULL);
    }
    close(*fd);
    return ndt_fail(err, NDT_ERR_IO, "ipc://%s: another process keeps its folder locked", path);
}

/* Connects, as a client would: 0, or what the system said. */
static int try_connect(const char *path, pid_t *listener)
{
    const struct sockaddr_un name = socket_name(path);
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    const int failure = connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : errno;
    if (failure == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        *listener = peer.pid;
    close(fd);
    return failure;
}

/* Makes room at the path: nothing there, or the socket of somebody who is gone. */
static enum ndt_status clear_path(const char *path, struct ndt_error *err)
{
    struct stat info;
    pid_t listener = 0;
    if (lstat(path, &info) != 0)
        return errno == ENOENT
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot look at it: %s", path, strerror(errno));
    if (!S_ISSOCK(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: is there already and is no socket; it is left alone", path);
    const int failure = try_connect(path, &listener);
    if (failure == 0 || failure == EAGAIN || failure == EPROTOTYPE)
        return listener > 0 ? ndt_fail(err, NDT_ERR_IO, "ipc://%s: is in use by process %ld", path, (long)listener)
                            : ndt_fail(err, NDT_ERR_IO, "ipc://%s: is in use by another process", path);
    if (failure != ECONNREFUSED && failure != ENOENT)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot tell whether it is in use: %s", path, strerror(failure));
    if (unlink(path) != 0 && errno != ENOENT)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot remove what a dead process left: %s", path,
                        strerror(errno));
    return NDT_OK;
}

/* The mode of the descriptor is that of the file, less the umask; chmod gives back what the umask took. Neither
 * touches the umask, which belongs to all threads, and before listen every client is refused. */
static enum ndt_status listen_at(const char *path, unsigned mode, int *out, struct ndt_error *err)
{
    const struct sockaddr_un name = socket_name(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot make a socket: %s", path, strerror(errno));
    int bound = 0;
    if (fchmod(fd, mode) == 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0) {
        bound = 1;
        if (chmod(path, mode) == 0 && listen(fd, BACKLOG) == 0) {
            *out = fd;
            return NDT_OK;
        }
    }
    const int failure = errno;
    if (bound)
        unlink(path);
    close(fd);
    return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot bind it: %s", path, strerror(failure));
}

enum ndt_status ndtd_ipc_listen(const char *path, unsigned mode, int *fd, struct ndt_error *err)
{
    int folder;
    enum ndt_status status = lock_folder(path, &folder, err);
    if (status != NDT_OK)
        return status;
    status = clear_path(path, err);
    if (status == NDT_OK)
        status = listen_at(path, mode, fd, err);
    close(folder);
    return status;
}

void ndtd_ipc_release(const char *path)
{
    int folder;
    pid_t listener = 0;
    if (lock_folder(path, &folder, NULL) != NDT_OK)
        return;
    const int failure = try_connect(path, &listener);
    if (failure == ECONNREFUSED || listener == getpid())
        unlink(path);
    close(folder);
}

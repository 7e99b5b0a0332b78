#define _GNU_SOURCE /* struct ucred */
#include "socket_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 100, LOCK_PAUSE_NS = 10000000, BACKLOG = 100 };

/* ---- parse ---- */

static enum ndt_status parse_ipc(struct ndtd_socket_address *out, const char *path, struct ndt_error *err)
{
    const size_t length = strlen(path);
    out->transport = path[0] == '@' ? NDTD_IPC_ABSTRACT : NDTD_IPC;
    out->is_loopback = 1;
    if (length == 0 || strcmp(path, "@") == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a path is missing, such as ipc:///run/ndtd/scans", out->text);
    if (path[0] == '*')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a path chosen by libzmq cannot be found by clients; name one",
                        out->text);
    if (length > NDTD_IPC_PATH_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the path has %zu bytes, the system takes at most %d", out->text,
                        length, NDTD_IPC_PATH_MAX);
    if (path[length - 1] == '/')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: is a directory, not the path of a socket", out->text);
    memcpy(out->path, path, length + 1);
    return NDT_OK;
}

static int is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && text[digits] == '\0' && atoi(text) >= 1 && atoi(text) <= 65535;
}

/* Whether an address is the loopback, also as ::ffff:127.0.0.1, the IPv4 loopback as an IPv6 address. */
static int is_loopback_ipv6(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

static enum ndt_status parse_host(struct ndtd_socket_address *out, const char *host, const char *port,
                                  struct ndt_error *err)
{
    struct in_addr ipv4;
    struct in6_addr ipv6;
    char number[NDTD_ENDPOINT_MAX];
    const size_t length = strlen(host);
    if (strcmp(host, "localhost") == 0) {
        /* libzmq does not resolve names for bind. */
        out->is_loopback = 1;
        snprintf(out->text, sizeof(out->text), "tcp://127.0.0.1:%s", port);
        return NDT_OK;
    }
    if (inet_pton(AF_INET, host, &ipv4) == 1) {
        out->is_loopback = (ntohl(ipv4.s_addr) >> 24) == 127;
        return NDT_OK;
    }
    if (host[0] != '[' && !strchr(host, ':'))
        return NDT_OK; /* "*" or the name of an interface: resolved by libzmq, not treated as loopback */
    if (length < 3 || host[0] != '[' || host[length - 1] != ']')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: an IPv6 address needs brackets: tcp://[::1]:PORT", out->text);
    snprintf(number, sizeof(number), "%.*s", (int)(length - 2), host + 1);
    number[strcspn(number, "%")] = '\0'; /* a zone */
    if (inet_pton(AF_INET6, number, &ipv6) != 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%s' is not an IPv6 address", out->text, number);
    out->is_ipv6 = 1;
    out->is_loopback = is_loopback_ipv6(&ipv6);
    return NDT_OK;
}

static enum ndt_status parse_tcp(struct ndtd_socket_address *out, const char *rest, struct ndt_error *err)
{
    char host[NDTD_ENDPOINT_MAX];
    const char *colon = strrchr(rest, ':');
    out->transport = NDTD_TCP;
    if (!colon || colon == rest)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: is not tcp://HOST:PORT", out->text);
    if (!is_port(colon + 1))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%s' is not a port from 1 to 65535", out->text, colon + 1);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - rest), rest);
    return parse_host(out, host, colon + 1, err);
}

/* The text after a prefix; NULL: another prefix. */
static const char *after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

enum ndt_status ndtd_socket_address_parse(struct ndtd_socket_address *out, const char *text, struct ndt_error *err)
{
    const char *rest;
    memset(out, 0, sizeof(*out));
    if (strlen(text) >= NDTD_ENDPOINT_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%.60s...: the address has more than %d bytes", text,
                        NDTD_ENDPOINT_MAX - 1);
    for (const char *at = text; *at; at++)
        if (!isgraph((unsigned char)*at) && *at != ' ')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the address of a socket contains a non-printable byte");
    snprintf(out->text, sizeof(out->text), "%s", text);
    if ((rest = after(text, "ipc://")) != NULL)
        return parse_ipc(out, rest, err);
    if ((rest = after(text, "tcp://")) != NULL)
        return parse_tcp(out, rest, err);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is not the address of a socket: ipc://PATH or tcp://HOST:PORT",
                    text);
}

/* ---- paths of ipc sockets ---- */

static struct sockaddr_un socket_name(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    return name;
}

static int open_directory(const char *path)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens and locks the directory of `path`; closing *fd unlocks it. */
static enum ndt_status lock_directory(const char *path, int *fd, struct ndt_error *err)
{
    *fd = open_directory(path);
    if (*fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot open its directory: %s", path, strerror(errno));
    for (int i = 0; i < LOCK_TRIES; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
            return NDT_OK;
        nanosleep(&pause, NULL);
    }
    close(*fd);
    return ndt_fail(err, NDT_ERR_IO, "ipc://%s: another process holds the lock of its directory", path);
}

/* Connects as a client; returns 0 or errno. */
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

static const char another[] = "an ndtd beside another one needs RUNTIME_DIRECTORY=DIR, or sockets.* of its own";

/* Removes the socket of a dead process; anything else at the path is an error. */
static enum ndt_status clear_path(const char *path, struct ndt_error *err)
{
    struct stat info;
    pid_t listener = 0;
    if (lstat(path, &info) != 0)
        return errno == ENOENT
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot be examined: %s", path, strerror(errno));
    if (!S_ISSOCK(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: exists and is not a socket; it is not replaced", path);
    const int failure = try_connect(path, &listener);
    if (failure == 0 || failure == EAGAIN || failure == EPROTOTYPE)
        return listener > 0
                   ? ndt_fail(err, NDT_ERR_IO, "ipc://%s: is in use by process %ld; %s", path, (long)listener,
                              another)
                   : ndt_fail(err, NDT_ERR_IO, "ipc://%s: is in use by another process; %s", path, another);
    if (failure != ECONNREFUSED && failure != ENOENT)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot determine whether it is in use: %s", path,
                        strerror(failure));
    if (unlink(path) != 0 && errno != ENOENT)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot remove the socket of a dead process: %s", path,
                        strerror(errno));
    return NDT_OK;
}

/* Binds and listens. fchmod sets the mode of the file less the umask, and chmod restores the bits that the umask
 * removed. The umask of the process, which all threads share, stays unchanged, and clients are refused before
 * listen. */
static enum ndt_status listen_at(const char *path, unsigned mode, int *out, struct ndt_error *err)
{
    const struct sockaddr_un name = socket_name(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot create a socket: %s", path, strerror(errno));
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
    return ndt_fail(err, NDT_ERR_IO, "ipc://%s: cannot bind: %s", path, strerror(failure));
}

enum ndt_status ndtd_ipc_listen(const char *path, unsigned mode, int *fd, struct ndt_error *err)
{
    int directory;
    enum ndt_status status = lock_directory(path, &directory, err);
    if (status != NDT_OK)
        return status;
    status = clear_path(path, err);
    if (status == NDT_OK)
        status = listen_at(path, mode, fd, err);
    close(directory);
    return status;
}

void ndtd_ipc_release(const char *path)
{
    int directory;
    pid_t listener = 0;
    if (lock_directory(path, &directory, NULL) != NDT_OK)
        return;
    const int failure = try_connect(path, &listener);
    if (failure == ECONNREFUSED || listener == getpid())
        unlink(path);
    close(directory);
}

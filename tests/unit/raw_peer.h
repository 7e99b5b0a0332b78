/* A peer that speaks ZMTP 3.1 by itself over an ipc path: it can send what a client of libzmq never sends, and
 * leave at any byte. */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RAW_GREETING = 64, RAW_WAIT_MS = 5000 };

/* Connects to a path; -1: refused. */
static int raw_connect(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%.107s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Waits until bytes can be read, or the peer has closed; 0: neither in time. */
static int raw_wait(int fd, int wait_ms)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    return poll(&item, 1, wait_ms) == 1;
}

static int raw_read(int fd, uint8_t *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = raw_wait(fd, RAW_WAIT_MS) ? recv(fd, data + done, size - done, 0) : -1;
        if (got <= 0)
            return 0;
        done += (size_t)got;
    }
    return 1;
}

static int raw_write(int fd, const uint8_t *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(fd, data + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        done += (size_t)sent;
    }
    return 1;
}

/* Appends a frame of at most 255 bytes; flags: 0 message, 4 command. Returns the new size of `out`. */
static size_t raw_frame(uint8_t *out, size_t at, uint8_t flags, const void *data, size_t size)
{
    out[at++] = flags;
    out[at++] = (uint8_t)size;
    memcpy(out + at, data, size);
    return at + size;
}

/* The handshake as a socket of a type such as "PUSH"; 0: the peer has closed. */
static int raw_handshake(int fd, const char *type)
{
    uint8_t out[RAW_GREETING] = {0xff, [9] = 0x7f, 3, 1, 'N', 'U', 'L', 'L'}, in[256], ready[64];
    const size_t length = strlen(type);
    size_t size = 0;
    memcpy(ready, "\5READY\13Socket-Type\0\0\0", size = 21);
    ready[size++] = (uint8_t)length;
    memcpy(ready + size, type, length);
    if (!raw_write(fd, out, sizeof(out)) || !raw_read(fd, in, RAW_GREETING))
        return 0;
    size = raw_frame(out, 0, 4, ready, size + length);
    return raw_write(fd, out, size) && raw_read(fd, in, 2) && raw_read(fd, in + 2, in[1]);
}

/* Connects and shakes hands; -1: refused. */
__attribute__((unused)) static int raw_open(const char *path, const char *type)
{
    const int fd = raw_connect(path);
    if (fd < 0 || raw_handshake(fd, type))
        return fd;
    close(fd);
    return -1;
}

/* Whether the peer has closed the connection within a time. Reads what it sends. */
__attribute__((unused)) static int raw_is_closed(int fd, int wait_ms)
{
    uint8_t in[4096];
    while (raw_wait(fd, wait_ms)) {
        const ssize_t got = recv(fd, in, sizeof(in), 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return 1;
    }
    return 0;
}

#endif

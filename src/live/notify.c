/* Implements the protocol of sd_notify without libsystemd, which is not available on all systems. */
#include "ndtd/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Address of the manager; 0: there is none, or its address is not a unix socket. */
static socklen_t manager_address(struct sockaddr_un *address)
{
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof(address->sun_path) || (path[0] != '/' && path[0] != '@'))
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, length);
    if (path[0] == '@') /* abstract: the name starts with a zero byte and has no final zero */
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '/'));
}

static int send_text(const char *text, int flags)
{
    struct sockaddr_un address;
    const socklen_t size = manager_address(&address);
    if (size == 0)
        return 0;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    const size_t length = strlen(text);
    ssize_t sent;
    do
        sent = sendto(fd, text, length, flags | MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    while (sent < 0 && errno == EINTR);
    close(fd);
    return sent == (ssize_t)length;
}

int ndtd_notify_ready(void)
{
    return send_text("READY=1", 0);
}

int ndtd_notify_status(const char *text)
{
    char line[512];
    snprintf(line, sizeof(line), "STATUS=%.400s", text);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ') /* a line break would start another message */
            *at = ' ';
    return send_text(line, MSG_DONTWAIT);
}

int ndtd_notify_watchdog(void)
{
    return send_text("WATCHDOG=1", MSG_DONTWAIT);
}

int ndtd_notify_stopping(void)
{
    return send_text("STOPPING=1", 0);
}

/* Reads a whole number; 0 for anything else. */
static unsigned long long number(const char *text)
{
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return 0;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    return *end || errno ? 0 : value;
}

double ndtd_notify_watchdog_interval_s(void)
{
    const char *pid = getenv("WATCHDOG_PID"); /* the inherited variables may be for another process */
    if (pid && number(pid) != (unsigned long long)getpid())
        return 0;
    return (double)number(getenv("WATCHDOG_USEC")) * 1e-6;
}

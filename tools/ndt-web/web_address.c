#include "web_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BACKLOG = 128 };

/* ---- listening ---- */

/* 0 to 65535, digits only; -1: not a port. */
static int read_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits])
        return -1;
    const long port = strtol(text, NULL, 10);
    return port <= 65535 ? (int)port : -1;
}

static void set_text(struct web_address *address)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->socket.ss_family == AF_INET6) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->socket;
        six->sin6_port = htons((uint16_t)address->port);
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
        snprintf(address->text, sizeof(address->text), "[%s]:%d", host, address->port);
        return;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)&address->socket;
    four->sin_port = htons((uint16_t)address->port);
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
    snprintf(address->text, sizeof(address->text), "%s:%d", host, address->port);
}

/* host: without brackets, empty for the loopback. */
static int set_host(struct web_address *address, const char *host, int is_bracketed)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&address->socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->socket;
    address->socket.ss_family = (sa_family_t)(is_bracketed ? AF_INET6 : AF_INET);
    address->size = is_bracketed ? sizeof(*six) : sizeof(*four);
    if (is_bracketed)
        return inet_pton(AF_INET6, host, &six->sin6_addr) == 1;
    if (!*host || strcasecmp(host, "localhost") == 0)
        host = "127.0.0.1";
    return inet_pton(AF_INET, host, &four->sin_addr) == 1;
}

enum ndt_status web_address_parse(const char *text, struct web_address *out, struct ndt_error *err)
{
    char host[64] = "";
    struct web_address address = {.port = -1};
    const int is_bracketed = text[0] == '[';
    const char *end = is_bracketed ? strchr(text, ']') : strchr(text, ':');
    const char *begin = text + is_bracketed;
    const char *port = text; /* a port alone */
    if (end && (size_t)(end - begin) < sizeof(host)) {
        memcpy(host, begin, (size_t)(end - begin));
        port = !is_bracketed ? end + 1 : end[1] == ':' ? end + 2 : "";
    }
    address.port = read_port(port);
    if (address.port < 0 || !set_host(&address, host, is_bracketed))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "'%.100s' is not an address to listen on; expected ADDRESS:PORT, such as 127.0.0.1:8080, "
                        "[::1]:8080 or 0.0.0.0:8080",
                        text);
    set_text(&address);
    *out = address;
    return NDT_OK;
}

static int is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

int web_address_is_loopback(const struct web_address *address)
{
    return is_loopback((const struct sockaddr *)&address->socket);
}

enum ndt_status web_address_listen(struct web_address *address, int *fd, struct ndt_error *err)
{
    const int on = 1, off = 0;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof(bound);
    *fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "--listen %s: %s", address->text, strerror(errno));
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->socket.ss_family == AF_INET6)
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(*fd, (const struct sockaddr *)&address->socket, address->size) != 0 || listen(*fd, BACKLOG) != 0 ||
        getsockname(*fd, (struct sockaddr *)&bound, &size) != 0) {
        const int why = errno;
        close(*fd);
        *fd = -1;
        return ndt_fail(err, NDT_ERR_IO, "--listen %s: %s", address->text,
                        why == EADDRINUSE ? "another program listens there" : strerror(why));
    }
    address->port = ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                                      : ((const struct sockaddr_in *)&bound)->sin_port);
    set_text(address);
    return NDT_OK;
}

/* ---- names ---- */

int web_host_parse(const char *text, char name[WEB_HOST_MAX])
{
    const int is_bracketed = text[0] == '[';
    const char *begin = text + is_bracketed;
    const size_t length = is_bracketed ? strcspn(begin, "]") : strcspn(begin, ":");
    const char *rest = begin + length;
    struct in6_addr six;
    if (length == 0 || length >= WEB_HOST_MAX || (is_bracketed && *rest++ != ']'))
        return 0;
    if (*rest && (*rest != ':' || read_port(rest + 1) < 0))
        return 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)begin[i];
        if (!isalnum(c) && c != '-' && c != '.' && c != '_' && !(is_bracketed && c == ':'))
            return 0;
        name[i] = (char)tolower(c);
    }
    name[length] = '\0';
    return !is_bracketed || inet_pton(AF_INET6, name, &six) == 1;
}

static int is_address_of(const char *name, const struct sockaddr *local)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, name, &four) == 1) {
        if (ntohl(four.s_addr) >> 24 == 127)
            return 1;
        if (local && local->sa_family == AF_INET)
            return four.s_addr == ((const struct sockaddr_in *)local)->sin_addr.s_addr;
        if (!local || local->sa_family != AF_INET6)
            return 0;
        const struct in6_addr *mapped = &((const struct sockaddr_in6 *)local)->sin6_addr;
        return IN6_IS_ADDR_V4MAPPED(mapped) && memcmp(mapped->s6_addr + 12, &four, sizeof(four)) == 0;
    }
    if (inet_pton(AF_INET6, name, &six) != 1)
        return 0;
    return IN6_IS_ADDR_LOOPBACK(&six) ||
           (local && local->sa_family == AF_INET6 &&
            memcmp(&six, &((const struct sockaddr_in6 *)local)->sin6_addr, sizeof(six)) == 0);
}

int web_host_is_allowed(const char *text, const struct sockaddr *local, const char *const *names, size_t count)
{
    char name[WEB_HOST_MAX];
    if (!web_host_parse(text, name))
        return 0;
    if (strcmp(name, "localhost") == 0 || is_address_of(name, local))
        return 1;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, names[i]) == 0)
            return 1;
    return 0;
}

int web_origin_is_same(const char *origin, const char *host)
{
    const char *rest = strncasecmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncasecmp(origin, "https://", 8) == 0 ? origin + 8
                                                                 : NULL;
    return rest && strcasecmp(rest, host) == 0;
}

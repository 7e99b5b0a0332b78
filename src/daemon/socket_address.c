#include "socket_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ndt_status parse_ipc(struct ndtd_socket_address *out, const char *path, struct ndt_error *err)
{
    const size_t length = strlen(path);
    out->transport = path[0] == '@' ? NDTD_IPC_ABSTRACT : NDTD_IPC;
    out->is_loopback = 1;
    if (length == 0 || strcmp(path, "@") == 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a path is missing, such as ipc:///run/ndtd/scans", out->text);
    if (path[0] == '*')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a path of libzmq's choice is found by nobody; name one",
                        out->text);
    if (length > NDTD_IPC_PATH_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the path has %zu bytes, the system takes at most %d", out->text,
                        length, NDTD_IPC_PATH_MAX);
    if (path[length - 1] == '/')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: this is a folder, not the path of a socket", out->text);
    memcpy(out->path, path, length + 1);
    return NDT_OK;
}

static int is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && text[digits] == '\0' && atoi(text) >= 1 && atoi(text) <= 65535;
}

/* Also ::ffff:127.0.0.1, the loopback of IPv4 in the words of IPv6. */
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
        /* libzmq resolves no names where it binds. */
        out->is_loopback = 1;
        snprintf(out->text, sizeof(out->text), "tcp://127.0.0.1:%s", port);
        return NDT_OK;
    }
    if (inet_pton(AF_INET, host, &ipv4) == 1) {
        out->is_loopback = (ntohl(ipv4.s_addr) >> 24) == 127;
        return NDT_OK;
    }
    if (host[0] != '[' && !strchr(host, ':'))
        return NDT_OK; /* "*" or the name of an interface: libzmq knows, and it is not taken for a loopback */
    if (length < 3 || host[0] != '[' || host[length - 1] != ']')
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: an IPv6 address stands in brackets: tcp://[::1]:PORT",
                        out->text);
    snprintf(number, sizeof(number), "%.*s", (int)(length - 2), host + 1);
    number[strcspn(number, "%")] = '\0'; /* a zone */
    if (inet_pton(AF_INET6, number, &ipv6) != 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%s' is no IPv6 address", out->text, number);
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
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%s' is no port from 1 to 65535", out->text, colon + 1);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - rest), rest);
    return parse_host(out, host, colon + 1, err);
}

/* What follows a prefix, or NULL. */
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
            return ndt_fail(err, NDT_ERR_ARGUMENT, "an address of a socket has a byte that cannot be printed");
    snprintf(out->text, sizeof(out->text), "%s", text);
    if ((rest = after(text, "ipc://")) != NULL)
        return parse_ipc(out, rest, err);
    if ((rest = after(text, "tcp://")) != NULL)
        return parse_tcp(out, rest, err);
    if ((rest = after(text, "inproc://")) == NULL || !*rest)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is no address of a socket: ipc://PATH or tcp://HOST:PORT",
                        text);
    out->transport = NDTD_INPROC;
    out->is_loopback = 1;
    return NDT_OK;
}

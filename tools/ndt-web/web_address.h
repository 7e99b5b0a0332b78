/** @file
 * @brief The address that ndt-web listens on, and the names by which a browser may call it. Pure, apart from
 * web_address_listen. */
#ifndef WEB_ADDRESS_H
#define WEB_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

#include "ndt/status.h"

enum { WEB_HOST_MAX = 256 };

/** An address to listen on. */
struct web_address {
    struct sockaddr_storage socket;
    socklen_t size;
    int port;
    char text[80]; /**< address as in a URL: 127.0.0.1:8080, [::1]:8080 */
};

/** Reads "127.0.0.1:8080", "[::1]:8080", "localhost:8080" (the IPv4 loopback), ":8080" or "8080" (as before). Port
 * 0: any that is free. NDT_ERR_ARGUMENT with one line for anything else: other names are not resolved. */
NDT_MUST_CHECK enum ndt_status web_address_parse(const char *text, struct web_address *out, struct ndt_error *err);
/** Whether only this machine can reach it. */
int web_address_is_loopback(const struct web_address *address);
/** Binds and listens; `fd` is non-blocking and belongs to the caller. Writes the port into an address that had 0.
 * [::] takes IPv4 as well. NDT_ERR_IO with one line, such as a port in use. */
NDT_MUST_CHECK enum ndt_status web_address_listen(struct web_address *address, int *fd, struct ndt_error *err);

/** Reads a Host header: a name or an address with or without port, such as "localhost:8080", "[::1]". Writes the
 * name in lower case, an address without brackets. Returns whether it is one. */
int web_host_parse(const char *text, char name[WEB_HOST_MAX]);
/** Whether a Host header names this server: a page of another site that lets its own name point here (DNS
 * rebinding) sends its own name. Accepted are localhost, the addresses of the loopback, the address that the
 * connection came to, and the given names; with any port, since ssh -L and proxies have their own. `local` may be
 * NULL. */
int web_host_is_allowed(const char *text, const struct sockaddr *local, const char *const *names, size_t count);
/** Whether an Origin header is that of a page that this server sent: http or https and the text of the Host header.
 * "null" and everything else is not. */
int web_origin_is_same(const char *origin, const char *host);

#endif

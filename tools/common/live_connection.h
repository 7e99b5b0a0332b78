/** @file
 * @brief A connection from a tool to a socket of the daemon. One thread. */
#ifndef LIVE_CONNECTION_H
#define LIVE_CONNECTION_H

#include "ndt/status.h"

struct live_connection {
    void *context, *socket;
};

/** Files with the server's public key and the tool's secret key; both NULL without CURVE. */
struct live_keys {
    const char *server_file, *secret_file;
};

/** Connects a socket of libzmq's `type`; a SUB socket subscribes to everything. Send and receive wait up to
 * wait_ms, -1 without limit. The daemon need not run yet. SIGPIPE is ignored from then on. NDT_ERR_ARGUMENT for an
 * address that libzmq refuses. */
NDT_MUST_CHECK enum ndt_status live_open(struct live_connection *out, int type, const char *address,
                                         const struct live_keys *keys, int wait_ms, struct ndt_error *err);
/** Waits up to linger_ms for frames that are still to be sent. Allowed on a zeroed or closed connection. */
void live_close(struct live_connection *connection, int linger_ms);

/* clang-format off */
/** The option row of the address of the control socket. */
#define LIVE_CONTROL_OPTION(address)                                                                               \
    {"control", "ADDRESS", TOOL_TEXT, &(address),                                                                  \
     .help = "the control socket (default: control.ipc in the runtime directory)"}
/** The option rows of `struct live_keys keys`, for the table of a tool. */
#define LIVE_KEY_OPTIONS(keys)                                                                                     \
    {"curve-server-key", "FILE", TOOL_TEXT, &(keys).server_file,                                                   \
     .help = "public key of the daemon, for tcp with CURVE"},                                                      \
    {"curve-keys", "FILE", TOOL_TEXT, &(keys).secret_file,                                                         \
     .help = "secret key of this tool; the daemon's list of clients must have the public one"}
/* clang-format on */

#endif

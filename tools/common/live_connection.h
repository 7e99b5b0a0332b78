/* A connection from a tool to a socket of the daemon. One thread. */
#ifndef LIVE_CONNECTION_H
#define LIVE_CONNECTION_H

#include <stddef.h>

#include "ndt/status.h"

struct live_connection {
    void *context, *socket;
};

/* Files with the server's public key and our secret key; both NULL: no CURVE. */
struct live_keys {
    const char *server_file, *secret_file;
};

/* type: of libzmq, SUB subscribes to everything. wait_ms: how long send and receive wait, -1 forever. The daemon
 * need not run yet. NDT_ERR_ARGUMENT for an address that is none. */
NDT_MUST_CHECK enum ndt_status live_open(struct live_connection *out, int type, const char *address,
                                         const struct live_keys *keys, int wait_ms, struct ndt_error *err);
/* Gives what was sent up to linger_ms to get out. Harmless on a zeroed or closed one. */
void live_close(struct live_connection *connection, int linger_ms);

/* Options that every tool has, for its table. */
#define LIVE_SERVER_KEY_OPTION                                                                                     \
    {                                                                                                              \
        "curve-server-key", "FILE", "public key of the daemon, for tcp with CURVE", 0                              \
    }
#define LIVE_KEYS_OPTION                                                                                           \
    {                                                                                                              \
        "curve-keys", "FILE", "our secret key; the daemon's list must have its public half", 0                     \
    }

#endif

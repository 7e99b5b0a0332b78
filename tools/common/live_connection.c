#include "live_connection.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <zmq.h>

#include "ndtd/curve_keys.h"

enum { SEND_FRAMES = 4, MAX_RECEIVED_BYTES = 16777216, RECONNECT_MS = 100, RECONNECT_MAX_MS = 1000 };

static enum ndt_status set_keys(void *socket, const struct live_keys *keys, struct ndt_error *err)
{
    char server[NDTD_KEY_TEXT + 1], secret[NDTD_KEY_TEXT + 1], public[NDTD_KEY_TEXT + 1];
    if (!keys->server_file != !keys->secret_file)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--curve-server-key and --curve-keys belong together");
    if (!keys->server_file)
        return NDT_OK;
    enum ndt_status status = ndtd_key_read(keys->server_file, 0, server, err);
    if (status == NDT_OK)
        status = ndtd_key_read(keys->secret_file, 1, secret, err);
    if (status != NDT_OK)
        return status;
    if (zmq_curve_public(public, secret) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, sizeof(server)) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, sizeof(public)) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)) != 0)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "CURVE keys: %s", zmq_strerror(errno));
    return NDT_OK;
}

static enum ndt_status set_options(void *socket, int type, const char *address, int wait_ms, struct ndt_error *err)
{
    const int64_t max_bytes = MAX_RECEIVED_BYTES;
    const struct {
        int option, value;
    } values[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_SNDHWM, SEND_FRAMES},
        {ZMQ_SNDTIMEO, wait_ms},
        {ZMQ_RCVTIMEO, wait_ms},
        {ZMQ_RECONNECT_IVL, RECONNECT_MS},
        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
        {ZMQ_IPV6, strchr(address, '[') != NULL},
        {ZMQ_IMMEDIATE, type == ZMQ_PUSH}, /* nothing is queued for a daemon that is not connected */
    };
    int failed = zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof(max_bytes)) != 0;
    for (size_t i = 0; !failed && i < sizeof(values) / sizeof(values[0]); i++)
        failed = zmq_setsockopt(socket, values[i].option, &values[i].value, sizeof(values[i].value)) != 0;
    if (!failed && type == ZMQ_SUB)
        failed = zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) != 0;
    return failed ? ndt_fail(err, NDT_ERR_UNSUPPORTED, "options of the socket: %s", zmq_strerror(errno)) : NDT_OK;
}

enum ndt_status live_open(struct live_connection *out, int type, const char *address, const struct live_keys *keys,
                          int wait_ms, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* a connection that ends; for stdout see tool_main */
    out->context = zmq_ctx_new();
    out->socket = out->context ? zmq_socket(out->context, type) : NULL;
    if (!out->socket)
        status = ndt_fail(err, NDT_ERR_MEMORY, "cannot create a socket: %s", zmq_strerror(errno));
    if (status == NDT_OK)
        status = set_options(out->socket, type, address, wait_ms, err);
    if (status == NDT_OK)
        status = set_keys(out->socket, keys, err);
    if (status == NDT_OK && zmq_connect(out->socket, address) != 0)
        status =
            ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is not an endpoint (%s); expected ipc://PATH or tcp://HOST:PORT",
                     address, zmq_strerror(errno));
    if (status != NDT_OK)
        live_close(out, 0);
    return status;
}

void live_close(struct live_connection *connection, int linger_ms)
{
    if (connection->socket) {
        zmq_setsockopt(connection->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
        zmq_close(connection->socket);
    }
    if (connection->context)
        while (zmq_ctx_term(connection->context) != 0 && errno == EINTR) {
        }
    *connection = (struct live_connection){NULL, NULL};
}

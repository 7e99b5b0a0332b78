#include "ndtd/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

#include "ndtd/curve_keys.h"
#include "ndtd/log.h"
#include "libzmq_guard.h"
#include "socket_address.h"

enum { PLENTY_OF_FILES = 65536 };
/* Time after which a peer is disconnected that has not proved to speak ZMTP and to have a key. */
enum { HANDSHAKE_MS = 2000 };
/* A tcp peer that does not answer is disconnected after 4 + 4 * 1 s, also while messages are under way. ZeroMQ's
 * heartbeats are not used: libzmq 4.3 aborts when one is due on a connection that has just ended. */
enum { KEEPALIVE_IDLE_S = 4, KEEPALIVE_INTERVAL_S = 1, KEEPALIVE_PROBES = 4, UNANSWERED_MS = 8000 };

/* zmq.h defines it for draft builds only; every libzmq 4.3 accepts it. */
#ifndef ZMQ_ZAP_ENFORCE_DOMAIN
#define ZMQ_ZAP_ENFORCE_DOMAIN 93
#endif

struct ndtd_sockets {
    void *context;
    int has_curve;
    int has_warned; /* warned about tcp without keys */
    char secret_key[NDTD_KEY_TEXT + 1];
    struct ndtd_zap_handler *zap;
};

static enum ndt_status check_security(const struct ndtd_security *security, struct ndt_error *err)
{
    const int has_key = security->server_secret_key_file[0] != '\0';
    if (has_key == (security->allowed_clients_file[0] != '\0'))
        return NDT_OK;
    return ndt_fail(
        err, NDT_ERR_ARGUMENT,
        "CURVE needs sockets.server_secret_key_file and sockets.allowed_clients_file; the %s is missing",
        has_key ? "list of clients" : "key");
}

static enum ndt_status open_curve(struct ndtd_sockets *sockets, const struct ndtd_security *security,
                                  struct ndt_error *err)
{
    struct ndtd_client_list clients;
    if (check_security(security, err) != NDT_OK)
        return NDT_ERR_ARGUMENT;
    if (!security->server_secret_key_file[0])
        return NDT_OK;
    if (!zmq_has("curve"))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "this libzmq was built without CURVE");
    enum ndt_status status = ndtd_key_read(security->server_secret_key_file, 1, sockets->secret_key, err);
    if (status == NDT_OK)
        status = ndtd_client_list_read(&clients, security->allowed_clients_file, err);
    if (status != NDT_OK)
        return status;
    status = ndtd_zap_start(&sockets->zap, sockets->context, &clients, err);
    ndtd_client_list_free(&clients);
    sockets->has_curve = status == NDT_OK;
    return status;
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= PLENTY_OF_FILES)
        return;
    limit.rlim_cur = limit.rlim_max < PLENTY_OF_FILES ? limit.rlim_max : PLENTY_OF_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

enum ndt_status ndtd_sockets_open(struct ndtd_sockets **out, const struct ndtd_security *security,
                                  struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    struct ndtd_sockets *sockets = calloc(1, sizeof(*sockets));
    if (!sockets)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the sockets");
    raise_file_limit();
    sockets->context = zmq_ctx_new();
    if (!sockets->context)
        status = ndt_fail(err, NDT_ERR_MEMORY, "libzmq: %s", zmq_strerror(errno));
    /* LINGER 0 for every socket by default. */
    if (status == NDT_OK && zmq_ctx_set(sockets->context, ZMQ_BLOCKY, 0) != 0)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "libzmq is too old: %s", zmq_strerror(errno));
    if (status == NDT_OK && security)
        status = open_curve(sockets, security, err);
    if (status != NDT_OK) {
        ndtd_sockets_close(sockets);
        return status;
    }
    *out = sockets;
    return NDT_OK;
}

void ndtd_sockets_close(struct ndtd_sockets *sockets)
{
    if (!sockets)
        return;
    ndtd_zap_stop(sockets->zap);
    if (sockets->context)
        while (zmq_ctx_term(sockets->context) != 0 && errno == EINTR) {
        }
    explicit_bzero(sockets->secret_key, sizeof(sockets->secret_key));
    free(sockets);
}

void *ndtd_sockets_context(struct ndtd_sockets *sockets)
{
    return sockets->context;
}

static enum ndt_status check_limits(const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    const int mark = endpoint->send_high_water_mark < endpoint->receive_high_water_mark
                         ? endpoint->send_high_water_mark
                         : endpoint->receive_high_water_mark;
    if (mark <= 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a high-water mark of %d messages is not positive",
                        endpoint->address, mark);
    if (endpoint->max_connections <= 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a limit of %d connections is not positive", endpoint->address,
                        endpoint->max_connections);
    if (endpoint->max_message_bytes <= 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a message limit of %lld bytes is not positive",
                        endpoint->address, endpoint->max_message_bytes);
    if (endpoint->ipc_mode & ~0666u)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: mode %04o is not allowed for a socket; use 0600 or 0660",
                        endpoint->address, endpoint->ipc_mode);
    return NDT_OK;
}

static enum ndt_status check_reach(const struct ndtd_socket_address *address, int has_curve, struct ndt_error *err)
{
    if (address->is_loopback || has_curve)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_ARGUMENT,
                    "%s: other machines can reach it, and without keys any of them could send and read; set "
                    "sockets.server_secret_key_file and sockets.allowed_clients_file (CURVE; ndtd --make-keys "
                    "creates keys), or "
                    "bind to 127.0.0.1 or ipc://",
                    address->text);
}

enum ndt_status ndtd_endpoint_check(const struct ndtd_endpoint *endpoint, const struct ndtd_security *security,
                                    struct ndt_error *err)
{
    struct ndtd_socket_address address;
    const int has_curve = security && security->server_secret_key_file[0] && security->allowed_clients_file[0];
    enum ndt_status status = security ? check_security(security, err) : NDT_OK;
    if (status == NDT_OK)
        status = ndtd_socket_address_parse(&address, endpoint->address, err);
    if (status == NDT_OK)
        status = check_limits(endpoint, err);
    return status == NDT_OK ? check_reach(&address, has_curve, err) : status;
}

/* Sets options of the type, so that nothing is lost silently: a ROUTER reports a peer that does not read its
 * replies. */
static int set_type(void *socket, int type)
{
    const int yes = 1;
    if (type == ZMQ_SUB)
        return zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0;
    return type != ZMQ_ROUTER || zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &yes, sizeof(yes)) == 0;
}

static enum ndt_status set_options(void *socket, int type, const struct ndtd_socket_address *address,
                                   const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    const int64_t max_bytes = endpoint->max_message_bytes;
    const struct {
        int option, value;
    } values[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_SNDHWM, endpoint->send_high_water_mark},
        {ZMQ_RCVHWM, endpoint->receive_high_water_mark},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S},
        {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S},
        {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES},
        {ZMQ_TCP_MAXRT, UNANSWERED_MS},
        {ZMQ_IPV6, address->is_ipv6},
    };
    int failed = zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof(max_bytes)) != 0;
    for (size_t i = 0; !failed && i < sizeof(values) / sizeof(values[0]); i++)
        failed = zmq_setsockopt(socket, values[i].option, &values[i].value, sizeof(values[i].value)) != 0;
    failed = failed || !set_type(socket, type);
    return failed
               ? ndt_fail(err, NDT_ERR_IO, "%s: cannot set socket options: %s", address->text, zmq_strerror(errno))
               : NDT_OK;
}

/* Sets CURVE: with keys, all tcp sockets use them, also on the loopback. ZAP is consulted for CURVE only, and
 * without its reply no client is admitted. */
static enum ndt_status set_curve(void *socket, const struct ndtd_sockets *sockets,
                                 const struct ndtd_socket_address *address, struct ndt_error *err)
{
    const int yes = 1;
    if (address->transport != NDTD_TCP || !sockets->has_curve)
        return NDT_OK;
    /* This option is missing in some versions of libzmq; the handler outlives every socket, which is sufficient. */
    (void)zmq_setsockopt(socket, ZMQ_ZAP_ENFORCE_DOMAIN, &yes, sizeof(yes));
    if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof(yes)) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, sockets->secret_key, NDTD_KEY_TEXT + 1) == 0 &&
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "ndtd", 4) == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_IO, "%s: cannot set its keys: %s", address->text, zmq_strerror(errno));
}

/* Sets the filter of an abstract socket, which has no mode: libzmq compares user and group of a client with those
 * of this process. */
static enum ndt_status set_filter(void *socket, const struct ndtd_socket_address *address, unsigned mode,
                                  struct ndt_error *err)
{
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (address->transport != NDTD_IPC_ABSTRACT || (mode & 0006))
        return NDT_OK;
    if (zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &user, sizeof(user)) == 0 &&
        (!(mode & 0060) || zmq_setsockopt(socket, ZMQ_IPC_FILTER_GID, &group, sizeof(group)) == 0))
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: this libzmq cannot refuse other users; use a path",
                    address->text);
}

static enum ndt_status bind_address(void *socket, const struct ndtd_socket_address *address, struct ndt_error *err)
{
    if (zmq_bind(socket, address->text) == 0)
        return NDT_OK;
    switch (errno) {
    case EADDRINUSE:
        return ndt_fail(err, NDT_ERR_IO, "%s: is in use by another program", address->text);
    case EADDRNOTAVAIL:
    case ENODEV:
        return ndt_fail(err, NDT_ERR_IO, "%s: this machine does not have that address", address->text);
    case EACCES:
        return ndt_fail(err, NDT_ERR_IO, "%s: not permitted; ports below 1024 need privileges", address->text);
    default:
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot bind: %s", address->text, zmq_strerror(errno));
    }
}

/* Binds to the descriptor of a path, which libzmq owns after ZMQ_USE_FD and closes with the socket. */
static enum ndt_status bind_path(void *socket, const struct ndtd_socket_address *address, unsigned mode,
                                 struct ndt_error *err)
{
    int fd = -1;
    enum ndt_status status = ndtd_ipc_listen(address->path, mode, &fd, err);
    if (status != NDT_OK)
        return status;
    if (zmq_setsockopt(socket, ZMQ_USE_FD, &fd, sizeof(fd)) != 0)
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: libzmq does not accept a descriptor: %s", address->text,
                          zmq_strerror(errno));
    if (status == NDT_OK)
        status = bind_address(socket, address, err);
    if (status != NDT_OK) {
        ndtd_ipc_release(address->path);
        close(fd);
    }
    return status;
}

enum ndt_status ndtd_socket_bind(void **out, struct ndtd_sockets *sockets, int type,
                                 const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    struct ndtd_socket_address address;
    enum ndt_status status = ndtd_socket_address_parse(&address, endpoint->address, err);
    if (status == NDT_OK)
        status = check_limits(endpoint, err);
    if (status == NDT_OK)
        status = check_reach(&address, sockets->has_curve, err);
    if (status != NDT_OK)
        return status;
    void *socket = zmq_socket(sockets->context, type);
    if (!socket)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot create a socket: %s", address.text, zmq_strerror(errno));
    status = set_options(socket, type, &address, endpoint, err);
    if (status == NDT_OK)
        status = set_curve(socket, sockets, &address, err);
    if (status == NDT_OK)
        status = set_filter(socket, &address, endpoint->ipc_mode, err);
    if (status == NDT_OK)
        status = address.transport == NDTD_IPC ? bind_path(socket, &address, endpoint->ipc_mode, err)
                                               : bind_address(socket, &address, err);
    if (status != NDT_OK) {
        zmq_close(socket);
        return status;
    }
    if (address.transport == NDTD_TCP && !sockets->has_curve && !sockets->has_warned++)
        ndtd_log_always(
            NDTD_LOG_WARNING,
            "%s: every user of this machine can send and read: tcp without keys (sockets.server_secret_key_file); "
            "ipc:// has a mode",
            address.text);
    ndtd_guard_listeners(address.text, endpoint->max_connections);
    *out = socket;
    return NDT_OK;
}

void ndtd_socket_close(void *socket, const struct ndtd_endpoint *endpoint)
{
    struct ndtd_socket_address address;
    if (!socket)
        return;
    if (ndtd_socket_address_parse(&address, endpoint->address, NULL) == NDT_OK && address.transport == NDTD_IPC)
        ndtd_ipc_release(address.path);
    zmq_close(socket);
}

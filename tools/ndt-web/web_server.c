#include "web_server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "web_address.h"
#include "web_post.h"
#include "web_get.h"

enum { HEADER_BYTES = 16384, BODY_READ_MAX = 65536, BEAT_TICKS = 15 };

/* ---- where a request ends ---- */

struct framing {
    int length_count, coding_count, is_chunked, has_wrong_name;
};

static enum MHD_Result note_framing(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    struct framing *framing = self;
    (void)kind;
    framing->has_wrong_name |= !*name || name[strspn(name, token)];
    framing->length_count += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->coding_count++;
        framing->is_chunked = value && strcasecmp(value, "chunked") == 0;
    }
    return MHD_YES;
}

/* A proxy that reads another end of the request takes the rest for the next one, perhaps of another user: whatever
 * follows is not answered. Returns why; NULL: the end is certain. */
static const char *find_framing_fault(const struct web_request *request, const char *version)
{
    struct framing framing = {0};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, note_framing, &framing);
    if (framing.has_wrong_name)
        return "the name of a header has a character that is not allowed: a proxy may see another request";
    if (framing.length_count > 1)
        return "more than one Content-Length: a proxy may see another request";
    if (framing.length_count && framing.coding_count)
        return "both Content-Length and Transfer-Encoding: a proxy may see another request";
    if (framing.coding_count > 1 || (framing.coding_count && !framing.is_chunked))
        return "the Transfer-Encoding is not chunked alone: a proxy may see another request";
    if (framing.coding_count && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        return "Transfer-Encoding before HTTP/1.1: a proxy may see another request";
    return NULL;
}

/* ---- who may ask ---- */

static enum MHD_Result count_host(void *count, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    (void)value;
    *(int *)count += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
    return MHD_YES;
}

static int is_host_right(const struct web_server *server, const struct web_request *request)
{
    int count = 0;
    struct sockaddr_storage local = {0};
    socklen_t size = sizeof(local);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const char *host = web_header(request, MHD_HTTP_HEADER_HOST);
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_host, &count);
    if (!host || count != 1 || !info || getsockname(info->connect_fd, (struct sockaddr *)&local, &size) != 0)
        return 0;
    return web_host_is_allowed(host, (const struct sockaddr *)&local, server->site.names, server->site.name_count);
}

/* ---- a request ---- */

static struct web_request *begin_request(struct MHD_Connection *connection)
{
    struct web_request *request = calloc(1, sizeof(*request));
    if (!request)
        return NULL;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->connection = connection;
    request->peer = info ? info->socket_context : NULL;
    return request;
}

static unsigned check_request(struct web_server *server, const struct web_request *request, const char **why)
{
    *why = "the Host header does not name this server; see --allow-host";
    if (!is_host_right(server, request))
        return MHD_HTTP_FORBIDDEN;
    if (request->is_control && request->is_post)
        return web_post_check(server, request, why);
    *why = request->is_control ? "only POST is possible here" : "only GET and HEAD are possible here";
    return request->is_control || !request->is_get ? MHD_HTTP_METHOD_NOT_ALLOWED : 0;
}

static enum MHD_Result answer(struct web_server *server, struct web_request *request, const char *path)
{
    if (request->is_waiting)
        return request->has_answer ? web_post_answer(server, request) : MHD_YES;
    if (!request->refusal && request->is_post)
        return web_post_ask(server, request);
    web_peer_enter(server->peers, request->peer, WEB_ANSWERING);
    return request->refusal ? web_reply_error(request, request->refusal, "%s", request->refusal_why)
                            : web_get_path(server, request, path);
}

/* A refusal waits for the end of a body that is certain and not too far: a connection that is closed while the
 * other side still sends may lose the answer. */
static enum MHD_Result take_header(struct web_server *server, struct web_request *request, const char *path,
                                   const char *method, const char *version)
{
    const char *length = web_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    request->is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    request->is_get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    request->is_control = strcmp(path, "/api/request") == 0;
    request->refusal_why = find_framing_fault(request, version);
    request->ends_connection = request->refusal_why != NULL;
    if (request->ends_connection) {
        request->refusal = MHD_HTTP_BAD_REQUEST;
        return answer(server, request, path);
    }
    request->refusal = check_request(server, request, &request->refusal_why);
    if (!length || strtoull(length, NULL, 10) <= BODY_READ_MAX)
        return MHD_YES;
    if (!request->refusal) {
        request->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        request->refusal_why = "the request is longer than 4096 bytes";
    }
    return answer(server, request, path);
}

/* A request that is too long is read and forgotten, up to a limit. */
static enum MHD_Result take_body(struct web_request *request, const char *data, size_t *size)
{
    const size_t kept = request->size < WEB_BODY_MAX ? request->size : WEB_BODY_MAX;
    const size_t left = WEB_BODY_MAX - kept;
    memcpy(request->body + kept, data, *size < left ? *size : left);
    request->size += *size;
    *size = 0;
    return request->size <= BODY_READ_MAX ? MHD_YES : MHD_NO;
}

/* Called with the header, with each part of the body, at its end, and when a suspended request continues. */
static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **context)
{
    struct web_server *server = self;
    struct web_request *request = *context;
    if (!request) {
        request = *context = begin_request(connection);
        return request ? take_header(server, request, path, method, version) : MHD_NO;
    }
    if (*size > 0)
        return take_body(request, data, size);
    return answer(server, request, path);
}

static void on_completed(void *self, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct web_server *server = self;
    struct web_request *request = *context;
    (void)connection;
    (void)code;
    if (!request)
        return;
    web_peer_enter(server->peers, request->peer, WEB_IDLE);
    if (request->status)
        web_metrics_count_response(server->site.metrics, request->status, request->bytes);
    web_blob_drop(request->answer);
    free(request);
    *context = NULL;
}

/* ---- a connection ---- */

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct web_server *server = self;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && info)
        *context = web_peer_join(server->peers, info->connect_fd);
    else if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        web_peer_leave(server->peers, *context);
}

/* The first line of a request has arrived: from now on its time counts. */
static void *on_first_line(void *self, const char *uri, struct MHD_Connection *connection)
{
    struct web_server *server = self;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    (void)uri;
    if (info)
        web_peer_enter(server->peers, info->socket_context, WEB_ASKING);
    return NULL;
}

enum ndt_status web_server_open(struct web_server **out, int fd, const struct web_site *site, struct ndt_error *err)
{
    struct web_server *server = calloc(1, sizeof(*server));
    *out = NULL;
    if (server)
        server->peers = web_peers_open();
    if (!server || !server->peers) {
        free(server);
        close(fd);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    }
    server->site = *site;
    /* poll, not epoll: with epoll libmicrohttpd does not see a connection end whose last bytes came with its end.
     */
    server->daemon =
        MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL,
                         on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)WEB_PEERS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
                         MHD_OPTION_CONNECTION_TIMEOUT, 45u, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                         MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
                         on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_first_line, server, MHD_OPTION_END);
    if (!server->daemon) {
        web_peers_close(server->peers);
        free(server);
        close(fd);
        return ndt_fail(err, NDT_ERR_IO, "libmicrohttpd does not start");
    }
    *out = server;
    return NDT_OK;
}

void web_server_tick(struct web_server *server)
{
    web_peers_expire(server->peers);
    if (++server->ticks % BEAT_TICKS == 0)
        web_hub_beat(server->site.hub);
}

void web_server_close(struct web_server *server)
{
    if (!server)
        return;
    web_hub_stop(server->site.hub);
    MHD_stop_daemon(server->daemon);
    web_peers_close(server->peers);
    free(server);
}

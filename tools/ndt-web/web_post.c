#include "web_post.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "web_address.h"
#include "web_json.h"

static const char *asker(const struct web_request *request, char out[64])
{
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr && info->client_addr->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)info->client_addr;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
        port = ntohs(four->sin_port);
    } else if (info && info->client_addr && info->client_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)info->client_addr;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
        port = ntohs(six->sin6_port);
    }
    snprintf(out, 64, "%s port %u", host, port);
    return out;
}

static void log_refusal(struct web_server *server, const struct web_request *request, const char *why)
{
    char who[64];
    server->control_refused++;
    web_hub_log(server->site.hub, WEB_LOG_REFUSAL, WEB_WARNING, "request from %s refused: %s", asker(request, who),
                why);
}

static enum MHD_Result refuse(struct web_server *server, struct web_request *request, unsigned status,
                              const char *why)
{
    log_refusal(server, request, why);
    return web_reply_error(request, status, "%s", why);
}

static int is_json(const char *type)
{
    static const char name[] = "application/json";
    const size_t length = sizeof(name) - 1;
    return type && strncasecmp(type, name, length) == 0 && (!type[length] || strchr("; \t", type[length]));
}

/* A page of another site can send a form or a text, but neither this type nor the token; and a browser says where
 * it comes from. */
static unsigned check_header(const struct web_server *server, const struct web_request *request, const char **why)
{
    const char *origin = web_header(request, MHD_HTTP_HEADER_ORIGIN);
    const char *site = web_header(request, "Sec-Fetch-Site");
    *why = "ndt-web runs without --allow-control";
    if (!server->site.allows_control || !server->site.source.ask)
        return MHD_HTTP_FORBIDDEN;
    *why = "the request comes from the page of another site";
    if ((origin && !web_origin_is_same(origin, web_header(request, MHD_HTTP_HEADER_HOST))) ||
        (site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0))
        return MHD_HTTP_FORBIDDEN;
    *why = "the token is missing or wrong";
    if (!web_token_is_right(web_header(request, MHD_HTTP_HEADER_AUTHORIZATION), server->site.token))
        return MHD_HTTP_UNAUTHORIZED;
    *why = "the type is not application/json";
    return is_json(web_header(request, MHD_HTTP_HEADER_CONTENT_TYPE)) ? 0 : MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
}

unsigned web_post_check(struct web_server *server, const struct web_request *request, const char **why)
{
    const unsigned status = check_header(server, request, why);
    if (status)
        log_refusal(server, request, *why);
    return status;
}

/* Written when the daemon answers, not when its answer is sent: the client may have left. */
static void log_answer(const struct web_request *request)
{
    char who[64], error[256];
    const struct web_blob *answer = request->answer;
    asker(request, who);
    if (!answer) /* the daemon may have carried it out all the same */
        web_hub_log(request->hub, WEB_LOG_CHANGE, WEB_ERROR, "%s from %s: %s", request->what, who, request->why);
    else if (web_json_text((const char *)answer->data, answer->size, "error", error, sizeof(error)))
        web_hub_log(request->hub, WEB_LOG_REFUSAL, WEB_WARNING, "%s from %s: %s", request->what, who, error);
    else if (request->op != NDT_OP_SEARCH) /* the page asks for the progress again and again */
        web_hub_log(request->hub, WEB_LOG_CHANGE, WEB_INFO, "%s from %s: done", request->what, who);
}

/* Takes an answer; any thread. */
static void take_answer(void *user, struct web_blob *reply, const char *why)
{
    struct web_request *request = user;
    request->answer = reply;
    snprintf(request->why, sizeof(request->why), "%s", why ? why : "");
    log_answer(request);
    request->has_answer = 1;
    MHD_resume_connection(request->connection);
}

enum MHD_Result web_post_ask(struct web_server *server, struct web_request *request)
{
    struct ndt_request_message message;
    struct ndt_error err = {""};
    const struct web_source *source = &server->site.source;
    if (request->size > WEB_BODY_MAX)
        return refuse(server, request, MHD_HTTP_CONTENT_TOO_LARGE, "the request is longer than 4096 bytes");
    if (web_json_request(request->body, request->size, &message, &err) != NDT_OK)
        return refuse(server, request, MHD_HTTP_BAD_REQUEST, err.text);
    if (!web_control_is_allowed(message.op))
        return refuse(server, request, MHD_HTTP_FORBIDDEN, "the page may not ask for this operation");
    request->op = message.op;
    request->hub = server->site.hub;
    ndt_request_describe(&message, request->what, sizeof(request->what));
    request->is_waiting = 1;
    web_peer_enter(server->peers, request->peer, WEB_WAITING);
    /* Suspended first: the answer may come at once. */
    MHD_suspend_connection(request->connection);
    const struct web_asker who = {take_answer, request};
    const enum ndt_status status = source->ask(source->self, &message, &who, &err);
    if (status == NDT_OK) {
        server->control_sent++;
        return MHD_YES;
    }
    MHD_resume_connection(request->connection);
    request->is_waiting = 0;
    return refuse(server, request,
                  status == NDT_ERR_IO || status == NDT_ERR_LIMIT ? MHD_HTTP_SERVICE_UNAVAILABLE
                                                                  : MHD_HTTP_BAD_REQUEST,
                  err.text);
}

enum MHD_Result web_post_answer(struct web_server *server, struct web_request *request)
{
    struct web_blob *answer = request->answer;
    request->answer = NULL;
    request->is_waiting = 0;
    web_peer_enter(server->peers, request->peer, WEB_ANSWERING);
    return answer ? web_reply_blob(request, MHD_HTTP_OK, "application/json", answer)
                  : web_reply_error(request, MHD_HTTP_GATEWAY_TIMEOUT, "%s", request->why);
}

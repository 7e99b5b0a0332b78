#include "web_get.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tool_options.h"
#include "web_page.h"
#include "web_stream.h"

enum { HISTORY_MAX = 2000 };
static const char JSON[] = "application/json", BYTES[] = "application/octet-stream", LINE[] = "text/plain";

/* ---- page ---- */

static enum MHD_Result send_file(struct web_request *request, const struct web_page_file *file)
{
    char tag[32];
    const char *known = web_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    snprintf(tag, sizeof(tag), "\"%s\"", file->hash);
    const int is_known = known && strcmp(known, tag) == 0;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(is_known ? 0 : file->size, (void *)file->data, MHD_RESPMEM_PERSISTENT);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
    request->bytes = is_known ? 0 : file->size;
    return web_reply(request, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, file->type, "no-cache", response);
}

static enum MHD_Result get_page(struct web_request *request, const char *path)
{
    const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
    for (size_t i = 0; i < web_page_file_count; i++)
        if (strcmp(web_page_files[i].name, name) == 0)
            return send_file(request, &web_page_files[i]);
    return web_reply_error(request, MHD_HTTP_NOT_FOUND, "there is no such page");
}

/* ---- data ---- */

/* Reads a parameter; absent: `*out` stays. 0: it is not a number, and an error has been sent. */
static int read_number(struct web_request *request, const char *name, uint64_t *out, enum MHD_Result *sent)
{
    struct ndt_error err = {""};
    const char *text = web_parameter(request, name);
    if (!text || tool_parse_count(text, 0, INFINITY, out, &err) == NDT_OK)
        return 1;
    *sent = web_reply_error(request, MHD_HTTP_BAD_REQUEST, "%s: expected a whole number", name);
    return 0;
}

static enum MHD_Result get_events(struct web_server *server, struct web_request *request)
{
    return web_stream_events(server, request);
}

static enum MHD_Result get_history(struct web_server *server, struct web_request *request)
{
    uint64_t from = 0, count = HISTORY_MAX;
    enum MHD_Result sent;
    if (!read_number(request, "from", &from, &sent) || !read_number(request, "count", &count, &sent))
        return sent;
    return web_stream_history(server, request, from, count < HISTORY_MAX ? count : HISTORY_MAX);
}

/* Sends what a function of the source gives for ?seq=. */
static enum MHD_Result get_by_seq(struct web_server *server, struct web_request *request,
                                  struct web_blob *(*get)(void *, uint64_t), const char *type)
{
    uint64_t seq = 0;
    enum MHD_Result sent;
    if (!web_parameter(request, "seq"))
        return web_reply_error(request, MHD_HTTP_BAD_REQUEST, "the parameter seq is missing");
    if (!read_number(request, "seq", &seq, &sent))
        return sent;
    struct web_blob *blob = get ? get(server->site.source.self, seq) : NULL;
    if (!blob)
        return web_reply_error(request, MHD_HTTP_NOT_FOUND, "nothing is kept of scan %" PRIu64, seq);
    return web_reply_blob(request, MHD_HTTP_OK, type, blob);
}

static enum MHD_Result get_scan(struct web_server *server, struct web_request *request)
{
    return get_by_seq(server, request, server->site.source.scan, BYTES);
}

static enum MHD_Result get_timing(struct web_server *server, struct web_request *request)
{
    return get_by_seq(server, request, server->site.source.timing, JSON);
}

static enum MHD_Result get_status(struct web_server *server, struct web_request *request)
{
    struct web_blob *status = web_hub_latest(server->site.hub, WEB_STATUS);
    if (!status)
        return web_reply_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "no daemon has answered yet");
    return web_reply_blob(request, MHD_HTTP_OK, JSON, status);
}

static enum MHD_Result get_replay(struct web_server *server, struct web_request *request)
{
    const struct web_source *source = &server->site.source;
    if (!source->replay)
        return web_reply_error(request, MHD_HTTP_NOT_FOUND, "this is no replay: ndt-web has no --replay-dir");
    return web_reply_blob(request, MHD_HTTP_OK, JSON, source->replay(source->self));
}

/* ---- map ---- */

static enum MHD_Result get_map(struct web_server *server, struct web_request *request)
{
    struct web_writer writer;
    web_writer_open(&writer);
    if (writer.file)
        web_map_describe(server->site.map, writer.file);
    return web_reply_blob(request, MHD_HTTP_OK, JSON, web_writer_finish(&writer));
}

/* A node under ?v=ID never changes; that of another map is not sent under this one's name. */
static enum MHD_Result get_node(struct web_server *server, struct web_request *request, const char *name)
{
    char id[64] = "", tag[192];
    const char *version = web_parameter(request, "v");
    const char *known = web_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    struct web_blob *blob = strlen(name) <= 64 ? web_map_node(server->site.map, name, id) : NULL;
    if (!blob || (version && strcmp(version, id) != 0)) {
        web_blob_drop(blob);
        return web_reply_error(request, MHD_HTTP_NOT_FOUND, "the map has no such node");
    }
    snprintf(tag, sizeof(tag), "\"%s-%s\"", id, name);
    const int is_known = known && strcmp(known, tag) == 0;
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        is_known ? 0 : blob->size, blob->data, web_blob_drop, blob);
    request->bytes = is_known ? 0 : blob->size;
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
    else
        web_blob_drop(blob);
    return web_reply(request, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, BYTES,
                     version ? "private, max-age=31536000, immutable" : "no-cache", response);
}

/* ---- supervisors ---- */

static enum MHD_Result send_line(struct web_request *request, unsigned status, const char *text)
{
    char line[256];
    snprintf(line, sizeof(line), "%s\n", text);
    request->bytes = strlen(line);
    return web_reply(request, status, LINE, NULL,
                     MHD_create_response_from_buffer(strlen(line), line, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result get_health(struct web_server *server, struct web_request *request)
{
    (void)server;
    return send_line(request, MHD_HTTP_OK, "ok");
}

static enum MHD_Result get_ready(struct web_server *server, struct web_request *request)
{
    char why[160];
    if (server->site.source.is_ready(server->site.source.self, why))
        return send_line(request, MHD_HTTP_OK, "ok");
    return send_line(request, MHD_HTTP_SERVICE_UNAVAILABLE, why);
}

/* Whether the map is in a state, by its last event. */
static uint64_t is_map(struct web_server *server, const char *state)
{
    struct web_blob *map = web_hub_latest(server->site.hub, WEB_MAP);
    const uint64_t is = map && strstr((const char *)map->data, state) != NULL;
    web_blob_drop(map);
    return is;
}

static void count_all(struct web_server *server, struct web_metrics_server *out)
{
    struct web_hub_counters hub;
    struct web_peers_counters peers;
    struct web_map_counters map;
    web_hub_counters(server->site.hub, &hub);
    web_peers_counters(server->peers, &peers);
    web_map_counters(server->site.map, &map);
    *out = (struct web_metrics_server){.connections = peers.open,
                                       .streams = hub.clients,
                                       .evicted = peers.evicted,
                                       .events = hub.sent,
                                       .events_lost = hub.lost,
                                       .results_kept = hub.results,
                                       .control_sent = server->control_sent,
                                       .control_refused = server->control_refused,
                                       .map_points = map.points,
                                       .map_nodes = map.nodes,
                                       .map_bytes = map.bytes,
                                       .map_nodes_served = map.nodes_served,
                                       .map_loading = is_map(server, "\"state\":\"loading\""),
                                       .map_failed = is_map(server, "\"state\":\"failed\"")};
    server->site.count(server->site.user, out);
}

static enum MHD_Result get_metrics(struct web_server *server, struct web_request *request)
{
    const enum web_metrics_format format = web_metrics_negotiate(web_header(request, MHD_HTTP_HEADER_ACCEPT));
    struct web_metrics_server own;
    struct web_writer writer;
    count_all(server, &own);
    web_writer_open(&writer);
    if (writer.file)
        web_metrics_write(server->site.metrics, &own, format, writer.file);
    return web_reply_blob(request, MHD_HTTP_OK, web_metrics_content_type(format), web_writer_finish(&writer));
}

/* ---- paths ---- */

static const struct {
    const char *path;
    enum MHD_Result (*get)(struct web_server *, struct web_request *);
} paths[] = {
    {"/api/events", get_events}, {"/api/history", get_history}, {"/api/scan", get_scan},
    {"/api/timing", get_timing}, {"/api/status", get_status},   {"/api/replay", get_replay},
    {"/api/map", get_map},       {"/healthz", get_health},      {"/readyz", get_ready},
    {"/metrics", get_metrics},
};

enum MHD_Result web_get_path(struct web_server *server, struct web_request *request, const char *path)
{
    static const char nodes[] = "/api/map/";
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (strcmp(paths[i].path, path) == 0)
            return paths[i].get(server, request);
    if (strncmp(path, nodes, sizeof(nodes) - 1) == 0)
        return get_node(server, request, path + sizeof(nodes) - 1);
    if (strncmp(path, "/api/", 5) == 0)
        return web_reply_error(request, MHD_HTTP_NOT_FOUND, "there is no such path");
    return get_page(request, path);
}

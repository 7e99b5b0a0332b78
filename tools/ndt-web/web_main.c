/** @file
 * @brief ndt-web: shows a running daemon, or a finished replay, in a browser. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

#include "ndtd/notify.h"
#include "tool_options.h"
#include "web_address.h"
#include "web_feed.h"
#include "web_replay.h"
#include "web_server.h"

static struct {
    const char *listen, *poses, *points, *control, *map, *replay_dir, *token_file;
    struct live_keys keys;
    int allows_control, lists_metrics;
    uint64_t scan_points, history;
    const char *names[WEB_NAMES_MAX];
    size_t name_count;
} args = {.listen = "127.0.0.1:8080",
          .poses = "",
          .points = "",
          .control = "",
          .map = "",
          .replay_dir = "",
          .token_file = "",
          .scan_points = 20000,
          .history = 6000};

struct web {
    struct web_address address;
    char token[WEB_TOKEN_MAX + 1];
    struct web_hub *hub;
    struct web_scans *scans;
    struct web_metrics *metrics;
    struct web_map *map;
    char map_error[512];       /* error of the thread that loads the map */
    struct web_feed *feed;     /* source of live data, or NULL */
    struct web_replay *replay; /* source of a replay, or NULL */
    struct web_server *server;
};

static enum ndt_status add_name(void *value, const char *text, struct ndt_error *err)
{
    char name[WEB_HOST_MAX];
    (void)value;
    if (!web_host_parse(text, name) || strchr(text, ':'))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.80s' is not the name of a host", text);
    if (args.name_count == WEB_NAMES_MAX)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "at most %d names", WEB_NAMES_MAX);
    args.names[args.name_count++] = text;
    return NDT_OK;
}

/* ---- begin ---- */

/* Other machines may read everything: with a token for those that ask for something, and only if it is meant. */
static enum ndt_status read_token(struct web *web, struct ndt_error *err)
{
    if (*args.token_file)
        return web_token_read(args.token_file, web->token, err);
    if (!web_address_is_loopback(&web->address))
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "--listen %s: other machines can reach this address; give --token-file FILE, or listen on the "
            "loopback and come by ssh -L",
            web->address.text);
    return args.allows_control ? web_token_make(web->token, err) : NDT_OK;
}

static void on_map_changed(void *self)
{
    struct web *web = self;
    struct web_writer writer;
    char why[sizeof(web->map_error)];
    web_map_why(web->map, why, sizeof(why));
    if (*why && strcmp(why, web->map_error) != 0)
        web_hub_log(web->hub, WEB_LOG_EVENT, WEB_ERROR, "the map cannot be shown: %s", why);
    memcpy(web->map_error, why, sizeof(why));
    web_writer_open(&writer);
    if (writer.file)
        web_map_describe(web->map, writer.file);
    web_hub_publish(web->hub, WEB_MAP, web_writer_finish(&writer));
}

static enum ndt_status open_replay(struct web *web, struct web_hello *hello, struct ndt_error *err)
{
    struct web_source source;
    uint64_t first;
    if (args.allows_control)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--allow-control is for a daemon, --replay-dir for a replay");
    const enum ndt_status status = web_replay_open(&web->replay, args.replay_dir, args.scan_points, err);
    if (status != NDT_OK)
        return status;
    web_replay_source(web->replay, &source);
    hello->mode = "replay";
    hello->replay_results = source.results(source.self, &first);
    return NDT_OK;
}

static enum ndt_status open_parts(struct web *web, struct ndt_error *err)
{
    struct web_hello hello = {.mode = "live", .allow_control = args.allows_control};
    enum ndt_status status = NDT_OK;
    if (*args.replay_dir) {
        status = open_replay(web, &hello, err);
        if (status != NDT_OK)
            return status;
    }
    status = web_hub_open(&web->hub, &hello, args.history, err);
    if (status == NDT_OK)
        status = web_metrics_open(&web->metrics, err);
    if (status == NDT_OK)
        status = web_map_open(&web->map, on_map_changed, web, err);
    web->scans = web_scans_open();
    if (status == NDT_OK && !web->scans)
        status = ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    return status;
}

static enum ndt_status open_source(struct web *web, struct web_source *source, struct ndt_error *err)
{
    const struct web_feed_config config = {.poses = args.poses,
                                           .points = args.points,
                                           .control = args.control,
                                           .keys = args.keys,
                                           .scan_points = args.scan_points,
                                           .loads_map = !*args.map};
    const struct web_sinks sinks = {web->hub, web->scans, web->metrics, web->map};
    if (web->replay) {
        web_replay_source(web->replay, source);
        return NDT_OK;
    }
    const enum ndt_status status = web_feed_open(&web->feed, &config, &sinks, err);
    if (status == NDT_OK)
        web_feed_source(web->feed, source);
    return status;
}

static void count_feed(void *self, struct web_metrics_server *out)
{
    const struct web *web = self;
    struct web_feed_counters feed = {0};
    if (web->feed)
        web_feed_counters(web->feed, &feed);
    out->frames_bad = feed.bad;
    out->scans = feed.scans;
    out->scans_kept = web_scans_count(web->scans);
}

static enum ndt_status open_server(struct web *web, const struct web_source *source, struct ndt_error *err)
{
    int fd = -1;
    struct web_site site = {.source = *source,
                            .hub = web->hub,
                            .map = web->map,
                            .metrics = web->metrics,
                            .count = count_feed,
                            .user = web,
                            .allows_control = args.allows_control,
                            .name_count = args.name_count};
    memcpy(site.token, web->token, sizeof(site.token));
    memcpy(site.names, args.names, sizeof(site.names));
    const enum ndt_status status = web_address_listen(&web->address, &fd, err);
    return status == NDT_OK ? web_server_open(&web->server, fd, &site, err) : status;
}

/* ---- run ---- */

/* Serves until SIGINT or SIGTERM. The signals are blocked except while it waits here, so that none is missed and
 * the other threads never see one. */
static void serve(struct web *web, const sigset_t *waiting)
{
    const struct timespec second = {.tv_sec = 1};
    while (!tool_interrupted()) {
        pselect(0, NULL, NULL, NULL, &second, waiting);
        web_server_tick(web->server);
    }
}

/* A token from a file stays there; one that was made is nowhere else. */
static void print_address(const struct web *web)
{
    const int has_secret = args.allows_control && !*args.token_file;
    printf("ndt-web: http://%s/%s%s\n", web->address.text, has_secret ? "#token=" : "",
           has_secret ? web->token : "");
    if (args.allows_control && *args.token_file)
        printf("ndt-web: to control the daemon, add #token= and the text of %s\n", args.token_file);
    fflush(stdout);
}

static enum ndt_status run_parts(struct web *web, struct ndt_error *err)
{
    struct web_source source = {0};
    sigset_t ending, waiting;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, &waiting);
    sigdelset(&waiting, SIGINT);
    sigdelset(&waiting, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    enum ndt_status status = open_parts(web, err);
    if (status == NDT_OK)
        status = open_source(web, &source, err);
    if (status == NDT_OK)
        status = open_server(web, &source, err);
    if (status != NDT_OK)
        return status;
    const char *map = *args.map ? args.map : web->replay ? web_replay_map(web->replay) : "";
    if (*map)
        web_map_load(web->map, map);
    print_address(web);
    (void)ndtd_notify_ready();
    serve(web, &waiting);
    (void)ndtd_notify_stopping();
    return NDT_OK;
}

static enum ndt_status run(struct ndt_error *err)
{
    struct web web = {0};
    if (args.lists_metrics) {
        web_metrics_list(stdout);
        return NDT_OK;
    }
    enum ndt_status status = web_address_parse(args.listen, &web.address, err);
    if (status == NDT_OK)
        status = read_token(&web, err);
    if (status == NDT_OK)
        status = run_parts(&web, err);
    /* The feed ends first: it answers what the server waits for. */
    web_feed_stop(web.feed);
    web_server_close(web.server);
    web_feed_close(web.feed);
    web_replay_close(web.replay);
    web_map_close(web.map);
    web_metrics_close(web.metrics);
    web_scans_close(web.scans);
    web_hub_close(web.hub);
    return status;
}

static const struct tool_option options[] = {
    {"listen", "ADDRESS:PORT", TOOL_TEXT, &args.listen,
     .help = "where browsers connect; an address that other machines can reach needs --token-file"},
    {"poses", "ADDRESS", TOOL_TEXT, &args.poses,
     .help = "the poses socket (default: poses.ipc in the runtime directory)"},
    {"points", "ADDRESS", TOOL_TEXT, &args.points,
     .help = "the points socket (default: beside --poses, as the daemon has it)"},
    LIVE_CONTROL_OPTION(args.control),
    {"map", "PATH", TOOL_TEXT, &args.map, .help = "the map to show (default: the one that the daemon tells)"},
    {"replay-dir", "DIR", TOOL_TEXT, &args.replay_dir,
     .help = "show the finished replay that ndtd --replay ... --output DIR wrote, instead of a daemon"},
    {"allow-control", NULL, TOOL_FLAG, &args.allows_control,
     .help =
         "let the page set poses and send requests, for those who have the token; without it the page only shows"},
    {"token-file", "FILE", TOOL_TEXT, &args.token_file,
     .help = "file with the token, readable by its owner only (default: a new token, printed at start)"},
    {"scan-points", "N", TOOL_COUNT, &args.scan_points, 100, 200000,
     .help = "points of a scan that the page gets at most"},
    {"history", "N", TOOL_COUNT, &args.history, 10, 200000,
     .help = "results that are kept for pages that open later"},
    {"allow-host", "NAME", TOOL_CUSTOM, NULL, .parse = add_name,
     .help = "a further name of this server in the Host header, as behind a proxy; may be repeated"},
    LIVE_KEY_OPTIONS(args.keys),
    {"list-metrics", NULL, TOOL_FLAG, &args.lists_metrics,
     .help = "print what /metrics has, a line each, and exit"},
};

static const struct tool_command command = {
    .name = "ndt-web",
    .summary = "shows a running ndtd, or a finished replay, in a browser",
    .details =
        "Prints the address to open. The page shows map, scan, trajectory, state, timings and the log; with "
        "--allow-control it sets poses and sends requests. Waits for the daemon when it does not run, and survives "
        "its "
        "restarts. /metrics is for Prometheus, /healthz and /readyz are for supervisors; docs/web.md describes all "
        "paths. Everything is served from this program: the page needs no other network.",
    TOOL_OPTIONS(options),
    .run = run,
};

int main(int argc, char **argv)
{
    return tool_main(&command, argc, argv);
}

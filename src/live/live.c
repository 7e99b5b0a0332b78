#include "ndtd/live.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "ndtd/control.h"
#include "ndtd/curve_keys.h"
#include "ndtd/log.h"
#include "ndtd/notify.h"
#include "ndtd/realtime.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/settings_snapshot.h"
#include "backends.h"
#include "ndt/clock.h"
#include "live_state.h"

/* Longest wait of the main thread; requests and signals wake it at once. */
enum { ROUND_MS = 200, LOADING_MS = 20 };
/* "ipc://" and the longest path of a socket, with the final zero. */
enum { IPC_ADDRESS_BYTES = 6 + 108 };
/* Limits of messages that wait per connection, see docs/operations.md: the receiver takes scans at once; a reply
 * has up to 0.5 MB. */
enum { SCANS_WAITING = 2, REQUESTS_WAITING = 8, REPLIES_WAITING = 8, REQUEST_BYTES = 65536 };
/* Limits of reloads: a storm of requests or signals must not keep the daemon busy. */
static const double RELOADS_AT_ONCE = 5, RELOADS_HZ = 1;

static enum ndt_status open_result_sender(void *context, struct ndt_error *err)
{
    struct ndtd_live *live = context;
    return ndtd_result_sender_open(&live->sender, live->publisher, err);
}

static enum ndt_status send_result(void *context, const struct ndt_result_message *result, struct ndt_error *err)
{
    struct ndtd_live *live = context;
    return ndtd_result_send(live->sender, result, err);
}

static void close_result_sender(void *context)
{
    struct ndtd_live *live = context;
    ndtd_result_sender_close(live->sender);
}

static enum ndt_status set_endpoint(struct ndtd_endpoint *endpoint, const struct ndtd_settings *settings,
                                    const char *address, const char *name, int create, struct ndt_error *err)
{
    *endpoint = (struct ndtd_endpoint){.send_high_water_mark = settings->high_water_mark,
                                       .receive_high_water_mark = SCANS_WAITING,
                                       .max_connections = settings->max_connections,
                                       .max_message_bytes = (long long)settings->max_message_bytes,
                                       .ipc_mode = settings->ipc_mode == NDTD_MODE_0660 ? 0660 : 0600};
    return ndtd_default_address(endpoint->address, sizeof(endpoint->address), address, name, create, err);
}

/* Sets the address of `name`: beside sockets.poses where only that is given, so that two daemons do not share an
 * address; over tcp a port has to be given. */
static enum ndt_status set_endpoint_beside(struct ndtd_endpoint *out, const struct ndtd_settings *settings,
                                           const char *given, const char *name, int create, struct ndt_error *err)
{
    static const char ipc[] = "ipc://", off[] = "off";
    const char *poses = settings->poses_address;
    char beside[NDTD_ENDPOINT_MAX] = "";
    if (!*given && strncmp(poses, ipc, strlen(ipc)) == 0 && strlen(poses) + strlen(name) + 2 <= IPC_ADDRESS_BYTES) {
        strcpy(beside, poses);
        strcat(beside, ".");
        given = strcat(beside, name);
    } else if (!*given && *poses) {
        given = off;
    }
    const enum ndt_status status = set_endpoint(out, settings, given, name, create, err);
    if (status == NDT_OK && strcmp(given, off) == 0)
        out->address[0] = '\0';
    return status;
}

/* Sets all addresses. create: makes the runtime directory where a default address needs it. */
static enum ndt_status set_endpoints(struct ndtd_endpoints *out, const struct ndtd_settings *settings, int create,
                                     struct ndt_error *err)
{
    enum ndt_status status = set_endpoint(&out->scans, settings, settings->scans_address, "scans", create, err);
    if (status == NDT_OK)
        status = set_endpoint(&out->poses, settings, settings->poses_address, "poses", create, err);
    if (status == NDT_OK)
        status = set_endpoint(&out->control, settings, settings->control_address, "control", create, err);
    if (status == NDT_OK)
        status = set_endpoint_beside(&out->points, settings, settings->points_address, "points", create, err);
    if (status == NDT_OK) /* without a rate there is nothing to publish */
        status = set_endpoint_beside(&out->motion, settings,
                                     settings->output_rate_hz > 0 ? settings->motion_address : "off", "motion",
                                     create, err);
    out->scans.max_connections = settings->max_senders;
    out->control.receive_high_water_mark = REQUESTS_WAITING;
    out->control.send_high_water_mark = REPLIES_WAITING;
    out->control.max_message_bytes = REQUEST_BYTES;
    return status;
}

static struct ndtd_security security_of(const struct ndtd_settings *settings)
{
    struct ndtd_security security;
    strcpy(security.server_secret_key_file, settings->server_secret_key_file);
    strcpy(security.allowed_clients_file, settings->allowed_clients_file);
    return security;
}

static enum ndt_status check_distinct(const struct ndtd_endpoints *endpoints, struct ndt_error *err)
{
    const char *const addresses[] = {endpoints->scans.address, endpoints->poses.address, endpoints->control.address,
                                     endpoints->points.address, endpoints->motion.address};
    for (int i = 0; i < 5; i++)
        for (int k = i + 1; k < 5; k++)
            if (*addresses[i] && strcmp(addresses[i], addresses[k]) == 0)
                return ndt_fail(err, NDT_ERR_ARGUMENT, "%.200s: one address for two sockets", addresses[i]);
    return NDT_OK;
}

static enum ndt_status check_keys(const struct ndtd_security *security, struct ndt_error *err)
{
    char key[NDTD_KEY_TEXT + 1];
    struct ndtd_client_list clients = {0};
    if (!*security->server_secret_key_file)
        return NDT_OK;
    enum ndt_status status = ndtd_key_read(security->server_secret_key_file, 1, key, err);
    explicit_bzero(key, sizeof(key));
    if (status == NDT_OK)
        status = ndtd_client_list_read(&clients, security->allowed_clients_file, err);
    ndtd_client_list_free(&clients);
    return status;
}

enum ndt_status ndtd_live_check(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndtd_security security = security_of(settings);
    struct ndtd_endpoints endpoints;
    enum ndt_status status = set_endpoints(&endpoints, settings, 0, err);
    if (status == NDT_OK)
        status = ndtd_endpoint_check(&endpoints.scans, &security, err);
    if (status == NDT_OK)
        status = ndtd_endpoint_check(&endpoints.poses, &security, err);
    if (status == NDT_OK)
        status = ndtd_endpoint_check(&endpoints.control, &security, err);
    if (status == NDT_OK && *endpoints.points.address)
        status = ndtd_endpoint_check(&endpoints.points, &security, err);
    if (status == NDT_OK && *endpoints.motion.address)
        status = ndtd_endpoint_check(&endpoints.motion, &security, err);
    if (status == NDT_OK)
        status = check_distinct(&endpoints, err);
    if (status == NDT_OK)
        status = ndtd_isolation_check(settings, err);
    return status == NDT_OK ? check_keys(&security, err) : status;
}

static enum ndt_status open_sockets(struct ndtd_live *live, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &live->settings->settings;
    const struct ndtd_security security = security_of(settings);
    enum ndt_status status = ndtd_sockets_open(&live->sockets, &security, err);
    if (status == NDT_OK && *live->endpoints.points.address)
        status = ndtd_points_publisher_open(&live->points, live->sockets, &live->endpoints.points, err);
    if (status == NDT_OK)
        status = ndtd_publisher_open(&live->publisher, live->sockets, &live->endpoints.poses, live->points, err);
    if (status == NDT_OK)
        status = ndtd_pose_stream_open(&live->stream, live->sockets, &live->endpoints.motion, settings, err);
    if (status == NDT_OK)
        status = ndtd_control_open(&live->control, live->sockets, &live->endpoints.control, err);
    return status;
}

/* Sets the name of a file in the recording directory, which has to exist before files are restricted. */
static enum ndt_status prepare_recordings(const struct ndtd_settings *settings, char *file, size_t size,
                                          struct ndt_error *err)
{
    static const char name[] = "/new.bag";
    enum ndt_status status =
        ndtd_recording_directory(file, size - sizeof(name), settings->recording.directory, err);
    if (status != NDT_OK)
        return status;
    (void)mkdir(file, 0750); /* the start of a recording reports a failure */
    strcat(file, name);
    return NDT_OK;
}

/* Restricts files, as the first step of every start: later steps start threads. */
static enum ndt_status restrict_files(struct ndtd_live *live, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &live->settings->settings;
    char recording[NDTD_PATH_MAX + 16] = "";
    enum ndt_status status = set_endpoints(&live->endpoints, settings, 1, err);
    if (status != NDT_OK)
        return status;
    if (settings->isolation == NDTD_ISOLATION_GPU)
        ndt_backends_load(); /* loaded now, so that the rules need not allow their folder */
    if (settings->isolation != NDTD_ISOLATION_OFF)
        status = prepare_recordings(settings, recording, sizeof(recording), err);
    if (status != NDT_OK)
        return status;
    const struct ndtd_isolation_paths paths = {
        .configs = live->options.configs,
        .written = {live->options.record, recording},
        .sockets = {live->endpoints.scans.address, live->endpoints.poses.address, live->endpoints.control.address,
                    live->endpoints.points.address, live->endpoints.motion.address}};
    return ndtd_isolation_restrict_files(&live->isolation, settings, &paths, err);
}

static void refresh_identity(struct ndtd_live *live)
{
    struct ndtd_worker_status worker;
    ndtd_worker_status(live->worker, &worker);
    ndtd_receiver_set_identity(live->receiver, worker.map_id, live->settings->hash);
}

static int may_reload(struct ndtd_live *live)
{
    return ndtd_throttle_take(&live->reloads, RELOADS_AT_ONCE, RELOADS_HZ, ndt_clock_us());
}

static enum ndt_status reload(struct ndtd_live *live, struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *next = NULL;
    struct ndtd_settings wanted, merged = live->settings->settings;
    if (!live->options.reread)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "there is no configuration to reload");
    enum ndt_status status = live->options.reread(live->options.context, &wanted, err);
    if (status == NDT_OK) {
        ndtd_settings_merge(&merged, &wanted, live->needs_restart, sizeof(live->needs_restart));
        status = ndtd_settings_snapshot_create(&next, &merged, err);
    }
    if (status != NDT_OK) {
        ndtd_log_always(NDTD_LOG_ERROR, "the configuration is unchanged: %s", err ? err->text : "bad file");
        return status;
    }
    ndtd_settings_snapshot_replace(&live->settings, next);
    ndtd_settings_snapshot_release(next);
    ndtd_log_set_level((enum ndtd_log_level)merged.log_level);
    ndtd_worker_apply_settings(live->worker, live->settings);
    refresh_identity(live);
    ndtd_log_always(NDTD_LOG_INFO, "configuration reloaded%s%s",
                    *live->needs_restart ? "; these need a restart: " : "", live->needs_restart);
    return NDT_OK;
}

static enum ndt_status reload_on_request(struct ndtd_live *live, struct ndt_error *err)
{
    return may_reload(live) ? reload(live, err)
                            : ndt_fail(err, NDT_ERR_LIMIT,
                                       "the configuration was read %.0f times within %.0f s: try again in a second",
                                       RELOADS_AT_ONCE, RELOADS_AT_ONCE / RELOADS_HZ);
}

/* Reloads after a signal. Signals that came too fast, or while the map was loading, are one reload. */
static void reload_on_signal(struct ndtd_live *live)
{
    struct ndt_error err = {""};
    if (!live->reload_requested || !may_reload(live))
        return;
    live->reload_requested = 0;
    if (reload(live, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_DEBUG, "SIGHUP changed nothing"); /* reload has logged why */
}

/* Handles one pending signal; returns 0 if none is pending. */
static int handle_signal(struct ndtd_live *live, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    if (info.ssi_signo == SIGHUP)
        live->reload_requested = 1;
    else
        live->stop_requested = 1;
    return 1;
}

/* Waits at most wait_ms for requests, signals or the recorder, and handles them. Returns 0 if that is impossible.
 */
static int serve(struct ndtd_live *live, int signals, long wait_ms)
{
    zmq_pollitem_t items[] = {{.socket = ndtd_control_socket(live->control), .events = ZMQ_POLLIN},
                              {.fd = signals, .events = ZMQ_POLLIN},
                              {.fd = ndtd_recorder_fd(live->recorder), .events = ZMQ_POLLIN}};
    if (zmq_poll(items, 3, wait_ms) < 0 && errno != EINTR) {
        ndtd_log(NDTD_LOG_ERROR, "poll failed: %s; shutting down", zmq_strerror(errno));
        return 0;
    }
    while (handle_signal(live, signals))
        ;
    ndtd_control_serve(live->control, live);
    return 1;
}

/* Limit for loading tiles without a position, which only searches need. */
static uint64_t search_limit_bytes(const struct ndtd_settings *settings)
{
    const int is_searched = settings->recovery.enable && settings->initial_pose_mode != NDTD_POSE_GIVEN;
    return is_searched ? (uint64_t)settings->search_limit_mb * 1000000 : 0;
}

/* Waits for the first map, and answers requests meanwhile; a signal ends the wait. */
static enum ndt_status load_map(struct ndtd_live *live, int signals, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &live->settings->settings;
    const struct ndtd_map_loader_config config = {.map = settings->map,
                                                  .dynamic = settings->dynamic_map,
                                                  .update_distance_m = settings->update_distance_m,
                                                  .map_radius_m = settings->map_radius_m,
                                                  .lidar_radius_m = settings->lidar_radius_m,
                                                  .search_limit_bytes = search_limit_bytes(settings)};
    struct ndtd_map_loader_status loaded;
    enum ndt_status status = ndtd_map_loader_create(&live->loader, &config, err);
    if (status != NDT_OK || !*settings->map_path || ndtd_settings_has_no_map(settings))
        return status;
    ndtd_notify_status("loading the map");
    ndtd_map_loader_load(live->loader, settings->map_path,
                         ndtd_settings_starts_at_pose(settings) ? settings->initial_pose : NULL);
    while (!live->stop_requested && !ndtd_map_loader_wait(live->loader, 0))
        if (!serve(live, signals, LOADING_MS))
            return NDT_ERR_IO;
    if (live->stop_requested) {
        ndtd_log_always(NDTD_LOG_INFO, "map %s: stopped while it was loading", settings->map_path);
        return NDT_OK;
    }
    ndtd_map_loader_status(live->loader, &loaded);
    if (loaded.failed) /* the loader has logged why */
        return NDT_ERR_IO;
    ndtd_log_always(NDTD_LOG_INFO, "map %s: %llu points, %.0f ms", settings->map_path,
                    (unsigned long long)loaded.points, loaded.last_load_ms);
    return NDT_OK;
}

static enum ndt_status start_threads(struct ndtd_live *live, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &live->settings->settings;
    const struct ndtd_worker_parts parts = {.settings = live->settings,
                                            .queue = live->queue,
                                            .loader = live->loader,
                                            .localizer = live->localizer,
                                            .sink = {live, open_result_sender, send_result, close_result_sender},
                                            .points = live->points,
                                            .stream = live->stream};
    const enum ndtd_receiver_kind kind =
        settings->scans_kind == NDTD_SCANS_PULL ? NDTD_RECEIVE_PULL : NDTD_RECEIVE_SUB;
    enum ndt_status status = ndtd_worker_start(&live->worker, &parts, err);
    if (status == NDT_OK)
        status = ndtd_receiver_open(&live->receiver, live->sockets, &live->endpoints.scans, kind, live->queue,
                                    live->publisher, live->recorder, live->stream, err);
    return status;
}

static enum ndt_status open_recorder(struct ndtd_live *live, struct ndt_error *err)
{
    const struct ndtd_settings *settings = &live->settings->settings;
    struct ndtd_recorder_config config = {.queue_bytes = settings->recording.queue_mb * (uint64_t)1000000,
                                          .max_file_bytes = settings->recording.max_file_mb * (uint64_t)1000000,
                                          .min_free_bytes = settings->recording.min_free_mb * (uint64_t)1000000};
    enum ndt_status status =
        ndtd_recording_directory(config.directory, sizeof(config.directory), settings->recording.directory, err);
    return status == NDT_OK ? ndtd_recorder_create(&live->recorder, &config, err) : status;
}

/* Starts the recording of --record before the first frame is received. */
static enum ndt_status record_from_start(struct ndtd_live *live, struct ndt_error *err)
{
    if (!live->options.record)
        return NDT_OK;
    const enum ndt_status status = ndtd_recorder_start_at(live->recorder, live->options.record, err);
    return status == NDT_OK ? ndtd_recorder_wait(live->recorder, err) : status;
}

static enum ndt_status open_all(struct ndtd_live *live, int signals, struct ndt_error *err)
{
    enum ndt_status status = restrict_files(live, err);
    ndtd_log_start();
    if (live->settings->settings.rt_lock_memory)
        ndtd_realtime_lock_memory();
    if (status == NDT_OK)
        status = ndtd_queue_create(&live->queue, (unsigned)live->settings->settings.queue_depth, err);
    if (status == NDT_OK)
        status = open_sockets(live, err);
    if (status == NDT_OK)
        status = ndtd_localizer_create(&live->localizer, err);
    if (status == NDT_OK)
        status = open_recorder(live, err);
    if (status == NDT_OK)
        status = load_map(live, signals, err);
    if (status == NDT_OK && !live->stop_requested)
        status = record_from_start(live, err);
    if (status == NDT_OK && !live->stop_requested)
        status = start_threads(live, err);
    return status;
}

/* Stops in the order of the data flow, so that every received frame is answered and published; last come the writes
 * for which the disk is too slow. */
static void close_all(struct ndtd_live *live)
{
    ndtd_notify_stopping();
    if (live->receiver)
        ndtd_receiver_close(live->receiver);
    ndtd_worker_stop(live->worker);
    ndtd_pose_stream_close(live->stream);
    if (live->publisher)
        ndtd_publisher_close(live->publisher);
    ndtd_points_publisher_close(live->points);
    ndtd_recorder_finish(live->recorder);
    if (live->control && live->recorder)
        ndtd_control_answer_later(live->control, live);
    ndtd_control_close(live->control);
    ndtd_recorder_destroy(live->recorder);
    if (live->loader)
        ndtd_map_loader_destroy(live->loader);
    ndtd_localizer_destroy(live->localizer);
    ndtd_queue_destroy(live->queue);
    if (live->sockets)
        ndtd_sockets_close(live->sockets);
}

static void watch(struct ndtd_live *live)
{
    const struct ndtd_beats beats[] = {{"ndt-receive", ndtd_receiver_beats(live->receiver)},
                                       {"ndt-match", ndtd_worker_beats(live->worker)}};
    ndtd_watchdog_turn(&live->watchdog, beats, sizeof(beats) / sizeof(beats[0]));
}

static void run(struct ndtd_live *live, int signals)
{
    const long round_ms = ndtd_watchdog_round_ms(&live->watchdog, ROUND_MS);
    do {
        refresh_identity(live);
        reload_on_signal(live);
        watch(live);
    } while (!live->stop_requested && serve(live, signals, round_ms) && !live->stop_requested);
}

static void report_ready(struct ndtd_live *live)
{
    struct ndtd_worker_status worker;
    ndtd_worker_status(live->worker, &worker);
    ndtd_log_always(NDTD_LOG_INFO, "ready (%s): scans %s, poses %s, control %s, points %s, motion %s%s",
                    worker.backend, live->endpoints.scans.address, live->endpoints.poses.address,
                    live->endpoints.control.address, live->points ? live->endpoints.points.address : "off",
                    *live->endpoints.motion.address ? live->endpoints.motion.address : "off",
                    ndtd_settings_has_no_map(&live->settings->settings) ? "; odometry without a map"
                    : *live->settings->settings.map_path                ? ""
                                                                        : "; no map");
    ndtd_notify_status("localising");
    ndtd_notify_ready();
}

static enum ndt_status live_with_signals(struct ndtd_live *live, int signals, struct ndt_error *err)
{
    enum ndt_status status = open_all(live, signals, err);
    if (status == NDT_OK && !live->stop_requested) {
        ndtd_isolation_restrict_calls(&live->isolation);
        report_ready(live);
        run(live, signals);
        ndtd_log_always(NDTD_LOG_INFO, "shutting down; %u scans are waiting",
                        ndtd_queue_counters(live->queue).scans_waiting);
    }
    close_all(live);
    return status;
}

/* Ignores write signals: a write to a pipe without a reader, or beyond the limit of a file, fails and does not end
 * the process. */
static void ignore_write_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Ignores signals during the shutdown, such as one more SIGHUP, so that they do not change the exit status. */
static void ignore_late_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

enum ndt_status ndtd_live(const struct ndtd_settings *settings, const struct ndtd_live_options *options,
                          struct ndt_error *err)
{
    struct ndtd_live live = {.options = *options, .start_us = ndt_clock_us(), .reload = reload_on_request};
    sigset_t wanted, before;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &wanted, &before); /* before any thread starts: all inherit it */
    const int signals = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0)
        return ndt_fail(err, NDT_ERR_IO, "signalfd: %s", strerror(errno));
    ignore_write_signals();
    ndtd_watchdog_init(&live.watchdog);
    ndtd_log_set_level((enum ndtd_log_level)settings->log_level);
    enum ndt_status status = ndtd_live_check(settings, err); /* before a map is read, which may take minutes */
    if (status == NDT_OK)
        status = ndtd_settings_snapshot_create(&live.settings, settings, err);
    if (status == NDT_OK)
        status = live_with_signals(&live, signals, err);
    ndtd_settings_snapshot_release(live.settings);
    close(signals);
    ndtd_log_stop();
    ignore_late_signals();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

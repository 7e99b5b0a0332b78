#include "web_feed.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndtd/runtime_dir.h"
#include "ndtd/socket.h"
#include "result_print.h"
#include "web_control.h"
#include "web_json.h"
#include "web_points.h"
#include "web_watch.h"

enum { BATCH = 64 }; /* frames of a socket before the others have their turn */
/* A result has about 1 kB, a status 2 kB. What says far more would fill the ring and the queues of readers. */
enum { RESULT_MAX_BYTES = 16384, STATUS_MAX_BYTES = 65536 };
static const double STATUS_US = 1e6, AWAY_US = 3e6;

struct web_feed {
    struct web_feed_config config;
    struct web_sinks sinks;
    struct live_connection poses, points, control;
    char poses_address[NDTD_ENDPOINT_MAX], points_address[NDTD_ENDPOINT_MAX], control_address[NDTD_ENDPOINT_MAX];
    struct web_control *requests;
    struct web_watch watch;
    int wake_fd;
    pthread_t thread;
    int is_started;
    atomic_int stops;
    atomic_ullong bad, scan_count;
    /* Members of the thread. */
    struct ndt_buffer frame;
    uint64_t status_id, answered_id; /* last question and last answer */
    double asked_us, answered_us;
    atomic_int is_connected;
    int is_watching; /* points are received */
    struct web_points scan;
    double map_id; /* map that was loaded last; 0: none */
    int has_result;
    uint64_t last_seq; /* number and stamp of the last result */
    int64_t last_stamp_ns;
};

/* ---- daemon there or not ---- */

static void tell_daemon(struct web_feed *feed)
{
    struct web_writer writer;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    web_writer_open(&writer);
    if (writer.file) {
        fprintf(writer.file, "{\"connected\":%s,\"since_s\":%.3f", feed->is_connected ? "true" : "false",
                (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
        json_text(writer.file, "poses", feed->poses_address);
        json_text(writer.file, "control", feed->control_address);
        fputc('}', writer.file);
    }
    web_hub_publish(feed->sinks.hub, WEB_DAEMON, web_writer_finish(&writer));
}

static enum ndt_status open_control(struct web_feed *feed, struct ndt_error *err)
{
    live_close(&feed->control, 0);
    return live_open(&feed->control, ZMQ_DEALER, feed->control_address, &feed->config.keys, 0, err);
}

static void set_connected(struct web_feed *feed, int is_connected)
{
    if (feed->is_connected == is_connected)
        return;
    feed->is_connected = is_connected;
    tell_daemon(feed);
    if (is_connected)
        web_hub_log(feed->sinks.hub, WEB_LOG_CHANGE, WEB_INFO, "connected to the daemon at %s",
                    feed->control_address);
    else {
        web_hub_log(feed->sinks.hub, WEB_LOG_CHANGE, WEB_WARNING, "the daemon at %s does not answer",
                    feed->control_address);
        web_metrics_set_status(feed->sinks.metrics, NULL);
        web_watch_status(&feed->watch, NULL);
        web_control_fail(feed->requests, "the daemon does not answer");
    }
}

/* ---- receiving ---- */

static void take_result(struct web_feed *feed, const uint8_t *data, size_t size)
{
    struct ndt_result_message message;
    struct web_blob *json = NULL;
    if (size <= RESULT_MAX_BYTES && ndt_result_decode(data, size, &message, NULL) == NDT_OK)
        json = web_json_message(data, size, NULL);
    if (!json) {
        feed->bad++;
        return;
    }
    web_metrics_add(feed->sinks.metrics, &message);
    /* The last result is sent again where the connection was interrupted. */
    if (feed->has_result && feed->last_seq == message.seq && feed->last_stamp_ns == message.stamp_ns) {
        web_blob_drop(json);
        return;
    }
    feed->has_result = 1;
    feed->last_seq = message.seq;
    feed->last_stamp_ns = message.stamp_ns;
    web_hub_publish(feed->sinks.hub, WEB_RESULT, json);
    web_watch_result(&feed->watch, &message);
}

static void take_points(struct web_feed *feed, const uint8_t *data, size_t size)
{
    struct web_blob *packed, *event;
    if (web_points_read(&feed->scan, data, size, feed->config.scan_points, &packed, &event, NULL) != NDT_OK) {
        feed->bad++;
        return;
    }
    feed->scan_count++;
    web_scans_put(feed->sinks.scans, feed->scan.message.seq, packed);
    web_hub_publish(feed->sinks.hub, WEB_SCAN, event);
}

/* The map is loaded again when the daemon has another one. */
static void follow_map(struct web_feed *feed, const struct reply_view *status)
{
    char path[1024];
    const double map_id = reply_view_number(status, "map.map_id"); /* rounded, but another map has another one */
    reply_view_text(status, "map.path", path, sizeof(path));
    if (!feed->config.loads_map || !*path || map_id == 0 || feed->map_id == map_id)
        return;
    feed->map_id = map_id;
    web_map_load(feed->sinks.map, path);
}

static void take_status(struct web_feed *feed, const uint8_t *data, size_t size)
{
    struct reply_view *view = NULL;
    struct web_blob *json = size <= STATUS_MAX_BYTES ? web_json_message(data, size, NULL) : NULL;
    if (!json || reply_view_read(&view, data, size, NULL) != NDT_OK) {
        web_blob_drop(json);
        feed->bad++;
        return;
    }
    feed->answered_us = ndt_clock_us();
    set_connected(feed, 1);
    web_metrics_set_status(feed->sinks.metrics, view);
    web_watch_status(&feed->watch, view);
    follow_map(feed, view);
    web_hub_publish(feed->sinks.hub, WEB_STATUS, json);
    reply_view_free(view);
}

static void take_reply(struct web_feed *feed, const uint8_t *data, size_t size)
{
    struct ndt_reply_message reply;
    if (ndt_reply_decode(data, size, &reply, NULL) != NDT_OK) {
        feed->bad++;
    } else if (reply.id >= WEB_CONTROL_FIRST_ID) {
        (void)web_control_answer(feed->requests, reply.id, data, size); /* else its asker has gone */
    } else if (reply.id > feed->answered_id && reply.id <= feed->status_id) {
        feed->answered_id = reply.id;
        take_status(feed, data, size);
    } else {
        feed->bad++; /* nothing asked for it */
    }
}

static void receive(struct web_feed *feed, void *socket, void (*take)(struct web_feed *, const uint8_t *, size_t))
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    for (int i = 0; i < BATCH && zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) >= 0; i++)
        take(feed, zmq_msg_data(&frame), zmq_msg_size(&frame));
    zmq_msg_close(&frame);
}

/* ---- sending ---- */

static void ask_status(struct web_feed *feed)
{
    const struct ndt_request_message request = {.id = feed->status_id + 1, .op = NDT_OP_STATUS};
    feed->asked_us = ndt_clock_us();
    if (ndt_request_encode(&feed->frame, &request, NULL) != NDT_OK ||
        zmq_send(feed->control.socket, feed->frame.data, feed->frame.size, ZMQ_DONTWAIT) < 0)
        return; /* the last one still waits for a daemon */
    feed->status_id++;
}

static void send_requests(struct web_feed *feed)
{
    while (web_control_take(feed->requests, &feed->frame))
        (void)zmq_send(feed->control.socket, feed->frame.data, feed->frame.size, ZMQ_DONTWAIT); /* else expires */
}

/* The daemon encodes points for every connection, whatever it has subscribed to: there is one while somebody reads.
 */
static void watch_points(struct web_feed *feed, int is_watched)
{
    if (feed->is_watching == is_watched)
        return;
    feed->is_watching = is_watched;
    if ((is_watched ? zmq_connect : zmq_disconnect)(feed->points.socket, feed->points_address) != 0)
        web_hub_log(feed->sinks.hub, WEB_LOG_EVENT, WEB_ERROR, "%s: %s", feed->points_address, zmq_strerror(errno));
}

/* Asks for the status once per second. Without an answer the socket is replaced, and requests that wait in it are
 * not sent to a later daemon. */
static void tick(struct web_feed *feed)
{
    struct ndt_error err = {""};
    struct web_hub_counters readers;
    const double now_us = ndt_clock_us();
    if (feed->is_connected && now_us - feed->answered_us > AWAY_US) {
        set_connected(feed, 0);
        if (open_control(feed, &err) != NDT_OK)
            web_hub_log(feed->sinks.hub, WEB_LOG_EVENT, WEB_ERROR, "%s", err.text);
    }
    if (feed->control.socket)
        ask_status(feed);
    (void)web_control_expire(feed->requests);
    web_hub_counters(feed->sinks.hub, &readers);
    if (feed->points.socket)
        watch_points(feed, readers.clients > 0);
}

/* Waits for frames, requests of the page, or the next tick. */
static void wait_for_work(struct web_feed *feed)
{
    zmq_pollitem_t items[4] = {{.socket = feed->poses.socket, .events = ZMQ_POLLIN},
                               {.fd = feed->wake_fd, .events = ZMQ_POLLIN}};
    int count = 2;
    uint64_t wakes;
    if (feed->points.socket)
        items[count++] = (zmq_pollitem_t){.socket = feed->points.socket, .events = ZMQ_POLLIN};
    if (feed->control.socket)
        items[count++] = (zmq_pollitem_t){.socket = feed->control.socket, .events = ZMQ_POLLIN};
    const double left_us = feed->asked_us + STATUS_US - ndt_clock_us();
    zmq_poll(items, count, left_us > 0 ? (long)(left_us * 1e-3) + 1 : 0);
    if (items[1].revents)
        (void)!read(feed->wake_fd, &wakes, sizeof(wakes));
}

static void *run(void *self)
{
    struct web_feed *feed = self;
    while (!feed->stops) {
        wait_for_work(feed);
        receive(feed, feed->poses.socket, take_result);
        if (feed->points.socket)
            receive(feed, feed->points.socket, take_points);
        if (feed->control.socket) {
            send_requests(feed);
            receive(feed, feed->control.socket, take_reply);
        }
        if (ndt_clock_us() - feed->asked_us >= STATUS_US)
            tick(feed);
    }
    return NULL;
}

/* ---- begin and end ---- */

/* The daemon's own rule (SCHEMA.md): where only the address of the poses is given, the points are beside it; over
 * tcp there are none unless their address is given. Returns whether there are. */
static int set_points_address(struct web_feed *feed)
{
    const char *poses = feed->config.poses;
    if (*feed->config.points || !*poses)
        return 1;
    if (strncmp(poses, "ipc://", 6) != 0 || strlen(poses) + sizeof(".points") > sizeof(feed->points_address))
        return 0;
    snprintf(feed->points_address, sizeof(feed->points_address), "%s.points", poses);
    return 1;
}

static enum ndt_status set_address(char address[NDTD_ENDPOINT_MAX], const char *given, const char *name,
                                   struct ndt_error *err)
{
    return *address ? NDT_OK : ndtd_default_address(address, NDTD_ENDPOINT_MAX, given, name, 0, err);
}

/* Few scans wait, so that a feed that falls behind costs no memory: the limit counts for the next connection. */
static enum ndt_status open_points(struct web_feed *feed, struct ndt_error *err)
{
    const int waiting = 4;
    const enum ndt_status status =
        live_open(&feed->points, ZMQ_SUB, feed->points_address, &feed->config.keys, 0, err);
    if (status != NDT_OK)
        return status;
    if (zmq_setsockopt(feed->points.socket, ZMQ_RCVHWM, &waiting, sizeof(waiting)) != 0 ||
        zmq_disconnect(feed->points.socket, feed->points_address) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", feed->points_address, zmq_strerror(errno));
    return NDT_OK;
}

static enum ndt_status connect_all(struct web_feed *feed, struct ndt_error *err)
{
    const struct live_keys *keys = &feed->config.keys;
    const int has_points = set_points_address(feed);
    enum ndt_status status = set_address(feed->poses_address, feed->config.poses, "poses", err);
    if (status == NDT_OK)
        status = set_address(feed->control_address, feed->config.control, "control", err);
    if (status == NDT_OK && has_points)
        status = set_address(feed->points_address, feed->config.points, "points", err);
    if (status == NDT_OK)
        status = live_open(&feed->poses, ZMQ_SUB, feed->poses_address, keys, 0, err);
    if (status == NDT_OK && has_points)
        status = open_points(feed, err);
    if (status == NDT_OK && !has_points)
        web_hub_log(feed->sinks.hub, WEB_LOG_EVENT, WEB_WARNING,
                    "scans are not shown: --points is not given, and --poses is not ipc");
    return status == NDT_OK ? open_control(feed, err) : status;
}

enum ndt_status web_feed_open(struct web_feed **out, const struct web_feed_config *config,
                              const struct web_sinks *sinks, struct ndt_error *err)
{
    struct web_feed *feed = calloc(1, sizeof(*feed));
    *out = NULL;
    if (!feed)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    feed->config = *config;
    feed->sinks = *sinks;
    ndt_buffer_init(&feed->frame);
    web_watch_open(&feed->watch, sinks->hub);
    web_points_open(&feed->scan);
    feed->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    feed->requests = web_control_open();
    enum ndt_status status = feed->requests && feed->wake_fd >= 0
                                 ? connect_all(feed, err)
                                 : ndt_fail(err, NDT_ERR_MEMORY, "no memory or no file descriptors");
    if (status == NDT_OK) {
        tell_daemon(feed);
        web_metrics_set_status(sinks->metrics, NULL);
        feed->asked_us = ndt_clock_us() - STATUS_US;
        feed->is_started = pthread_create(&feed->thread, NULL, run, feed) == 0;
        if (!feed->is_started)
            status = ndt_fail(err, NDT_ERR_MEMORY, "cannot start a thread");
    }
    if (status == NDT_OK)
        *out = feed;
    else
        web_feed_close(feed);
    return status;
}

static void wake_up(struct web_feed *feed)
{
    const uint64_t one = 1;
    (void)!write(feed->wake_fd, &one, sizeof(one));
}

void web_feed_stop(struct web_feed *feed)
{
    if (!feed)
        return;
    feed->stops = 1;
    if (feed->is_started) {
        wake_up(feed);
        pthread_join(feed->thread, NULL);
    }
    feed->is_started = 0;
    feed->is_connected = 0;
    if (feed->requests)
        web_control_fail(feed->requests, "ndt-web ends");
}

void web_feed_close(struct web_feed *feed)
{
    if (!feed)
        return;
    web_feed_stop(feed);
    live_close(&feed->poses, 0);
    live_close(&feed->points, 0);
    live_close(&feed->control, 0);
    web_control_close(feed->requests);
    web_watch_close(&feed->watch);
    web_points_close(&feed->scan);
    ndt_buffer_free(&feed->frame);
    if (feed->wake_fd >= 0)
        close(feed->wake_fd);
    free(feed);
}

/* ---- for the server ---- */

static uint64_t feed_results(void *self, uint64_t *first)
{
    return web_hub_results(((struct web_feed *)self)->sinks.hub, first);
}

static struct web_blob *feed_result(void *self, uint64_t number)
{
    return web_hub_result(((struct web_feed *)self)->sinks.hub, number);
}

static struct web_blob *feed_scan(void *self, uint64_t seq)
{
    return web_scans_get(((struct web_feed *)self)->sinks.scans, seq);
}

static int feed_is_ready(void *self, char why[160])
{
    return web_watch_is_ready(&((struct web_feed *)self)->watch, why);
}

static enum ndt_status feed_ask(void *self, const struct ndt_request_message *request,
                                const struct web_asker *asker, struct ndt_error *err)
{
    struct web_feed *feed = self;
    if (!feed->is_connected)
        return ndt_fail(err, NDT_ERR_IO, "no daemon answers");
    const enum ndt_status status = web_control_add(feed->requests, request, asker, err);
    if (status == NDT_OK)
        wake_up(feed);
    return status;
}

void web_feed_source(struct web_feed *feed, struct web_source *out)
{
    *out = (struct web_source){.self = feed,
                               .results = feed_results,
                               .result = feed_result,
                               .scan = feed_scan,
                               .is_ready = feed_is_ready,
                               .ask = feed_ask};
}

void web_feed_counters(struct web_feed *feed, struct web_feed_counters *out)
{
    *out = (struct web_feed_counters){feed->bad, feed->scan_count};
}

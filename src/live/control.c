#include "ndtd/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "ndt_io/map_file.h"
#include "ndt_proto/control_message.h"
#include "ndtd/timing_schema.h"
#include "ndtd/log.h"
#include "ndt/clock.h"
#include "ndt/version.h"
#include "live_state.h"
#include "live_status.h"
#include "zmq_calls.h"

enum { REQUESTS_AT_ONCE = 64, PARTS = 4, REPLY_BYTES = 16384, WHO_BYTES = 160, WHAT_BYTES = 512 };

/* Address of a reply. */
struct address {
    zmq_msg_t identity;
    int delimiter;
    uint64_t id;
};

struct ndtd_control {
    void *socket;
    struct ndtd_endpoint endpoint;
    struct ndt_buffer reply;
    struct ndtd_worker_timing *timings; /* NDTD_TIMINGS_KEPT */
    struct address address;             /* address of the request in work */
    struct address later;               /* address of the client that waits for the recorder */
    int has_later;
};

/* An operation: `act`, which may fail, and then the writer of the reply's content. Either may be NULL. */
struct operation {
    int changes; /* changes the state of the daemon: the log names the client and the request */
    int early;   /* possible while the first map loads */
    int later;   /* the reply follows when the recorder is done; other requests are answered before */
    enum ndt_status (*act)(struct ndtd_live *live, const struct ndt_request_message *request,
                           struct ndt_error *err);
    void (*write)(struct ndtd_control *control, struct ndtd_live *live, const struct ndt_request_message *request,
                  struct ndt_reply_writer *writer);
};

static void write_hello(struct ndtd_control *control, struct ndtd_live *live,
                        const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    (void)control, (void)request;
    ndt_reply_text(writer, "name", "ndtd");
    ndt_reply_text(writer, "version", ndt_version());
    ndt_reply_uint(writer, "protocol", NDT_PROTO_VERSION);
    ndt_reply_open_array(writer, "operations");
    for (int op = 0; op < NDT_OP_COUNT; op++)
        ndt_reply_text(writer, NULL, ndt_operation_name((enum ndt_operation)op));
    ndt_reply_close(writer);
    ndt_reply_text(writer, "scans", live->endpoints.scans.address);
    ndt_reply_text(writer, "poses", live->endpoints.poses.address);
    ndt_reply_text(writer, "points", live->points ? live->endpoints.points.address : "");
    ndt_reply_text(writer, "motion", live->endpoints.motion.address);
}

static void write_status(struct ndtd_control *control, struct ndtd_live *live,
                         const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    (void)request;
    ndtd_live_write_status(live, control->timings, writer);
}

static enum ndt_status set_pose(struct ndtd_live *live, const struct ndt_request_message *request,
                                struct ndt_error *err)
{
    (void)err;
    ndtd_worker_set_initial_pose(live->worker, &request->pose);
    return NDT_OK;
}

static enum ndt_status localize(struct ndtd_live *live, const struct ndt_request_message *request,
                                struct ndt_error *err)
{
    return ndtd_localizer_begin(live->localizer, request, err);
}

static enum ndt_status cancel_search(struct ndtd_live *live, const struct ndt_request_message *request,
                                     struct ndt_error *err)
{
    (void)request, (void)err;
    ndtd_localizer_cancel(live->localizer);
    return NDT_OK;
}

static void write_search(struct ndtd_control *control, struct ndtd_live *live,
                         const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    struct ndt_localize_report report = {0};
    (void)control, (void)request;
    ndtd_localizer_report(live->localizer, &report);
    ndt_reply_search(writer, &report);
}

static enum ndt_status start(struct ndtd_live *live, const struct ndt_request_message *request,
                             struct ndt_error *err)
{
    (void)request, (void)err;
    ndtd_worker_set_active(live->worker, 1);
    return NDT_OK;
}

static enum ndt_status stop(struct ndtd_live *live, const struct ndt_request_message *request,
                            struct ndt_error *err)
{
    (void)request, (void)err;
    ndtd_worker_set_active(live->worker, 0);
    return NDT_OK;
}

/* Requests a map. The map loader's thread loads it, and `status` reports progress and result. A path that cannot be
 * a map is refused at once. */
static enum ndt_status load_map(struct ndtd_live *live, const struct ndt_request_message *request,
                                struct ndt_error *err)
{
    struct ndtd_worker_status worker;
    enum ndt_status status = ndtd_isolation_check_map(&live->isolation, request->path, err);
    if (status == NDT_OK)
        status = ndt_map_path_check(request->path, err);
    if (status != NDT_OK)
        return status;
    ndtd_worker_status(live->worker, &worker);
    ndtd_map_loader_load(live->loader, request->path, worker.has_pose ? worker.T_map_sensor.t_m : NULL);
    return NDT_OK;
}

static enum ndt_status unload_map(struct ndtd_live *live, const struct ndt_request_message *request,
                                  struct ndt_error *err)
{
    (void)request, (void)err;
    ndtd_map_loader_load(live->loader, NULL, NULL);
    return NDT_OK;
}

static enum ndt_status load_tile(struct ndtd_live *live, const struct ndt_request_message *request,
                                 struct ndt_error *err)
{
    enum ndt_status status = ndtd_isolation_check_map(&live->isolation, request->path, err);
    if (status == NDT_OK)
        status = ndt_map_path_check(request->path, err);
    if (status == NDT_OK)
        ndtd_map_loader_add_tile(live->loader, request->path);
    return status;
}

static enum ndt_status unload_tile(struct ndtd_live *live, const struct ndt_request_message *request,
                                   struct ndt_error *err)
{
    (void)err;
    ndtd_map_loader_remove_tile(live->loader, request->path);
    return NDT_OK;
}

static enum ndt_status reload(struct ndtd_live *live, const struct ndt_request_message *request,
                              struct ndt_error *err)
{
    (void)request;
    return live->reload(live, err);
}

static void write_reload(struct ndtd_control *control, struct ndtd_live *live,
                         const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    (void)control, (void)request;
    ndt_reply_uint(writer, "config_hash", live->settings->hash);
    ndt_reply_text(writer, "needs_restart", live->needs_restart);
}

static enum ndt_status start_recording(struct ndtd_live *live, const struct ndt_request_message *request,
                                       struct ndt_error *err)
{
    return ndtd_recorder_start(live->recorder, request->path, err);
}

static enum ndt_status stop_recording(struct ndtd_live *live, const struct ndt_request_message *request,
                                      struct ndt_error *err)
{
    (void)request;
    return ndtd_recorder_stop(live->recorder, err);
}

/* Writes one cell of a row, by the type of its column. */
static void write_cell(const struct ndtd_timing_column *column, const struct ndtd_scan_record *record,
                       struct ndt_reply_writer *writer)
{
    const char *at = (const char *)record + column->in_scan.offset;
    int32_t narrow;
    int64_t wide;
    uint64_t large;
    double real;
    switch (column->type) {
    case NDTD_CELL_I32:
        memcpy(&narrow, at, sizeof(narrow));
        ndt_reply_int(writer, column->name, narrow);
        return;
    case NDTD_CELL_I64:
        memcpy(&wide, at, sizeof(wide));
        ndt_reply_int(writer, column->name, wide);
        return;
    case NDTD_CELL_U64:
        memcpy(&large, at, sizeof(large));
        ndt_reply_uint(writer, column->name, large);
        return;
    case NDTD_CELL_OUTCOME:
        ndt_reply_text(writer, column->name, ndt_outcome_name(record->result.outcome));
        return;
    case NDTD_CELL_STATE:
        ndt_reply_text(writer, column->name, ndt_state_name(record->state));
        return;
    default:
        memcpy(&real, at, sizeof(real));
        ndt_reply_real(writer, column->name, real);
    }
}

/* Writes rows with the columns of --timing, and two columns of the live daemon. */
static void write_timings(struct ndtd_control *control, struct ndtd_live *live,
                          const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    const size_t wanted = request->count < NDTD_TIMINGS_KEPT ? request->count : NDTD_TIMINGS_KEPT;
    const size_t count = ndtd_worker_timings(live->worker, control->timings, wanted);
    ndt_reply_open_array(writer, "timings");
    for (size_t i = 0; i < count; i++) {
        ndt_reply_open_map(writer, NULL);
        for (size_t k = 0; k < ndtd_timing_column_count(); k++)
            if (ndtd_timing_column_at(k)->in_scan.source != NDTD_CELL_NONE)
                write_cell(ndtd_timing_column_at(k), &control->timings[i].record, writer);
        ndt_reply_real(writer, "latency_us", control->timings[i].latency_us);
        ndt_reply_uint(writer, "queue_depth", control->timings[i].queue_depth);
        ndt_reply_close(writer);
    }
    ndt_reply_close(writer);
}

static enum ndt_status find_pose(struct ndtd_live *live, const struct ndt_request_message *request,
                                 struct ndt_error *err)
{
    return ndtd_pose_stream_at(live->stream, request->pose.stamp_ns, &live->moment, err);
}

static void write_pose(struct ndtd_control *control, struct ndtd_live *live,
                       const struct ndt_request_message *request, struct ndt_reply_writer *writer)
{
    (void)control, (void)request;
    ndt_reply_moment(writer, &live->moment);
}

static enum ndt_status shut_down(struct ndtd_live *live, const struct ndt_request_message *request,
                                 struct ndt_error *err)
{
    (void)request, (void)err;
    live->stop_requested = 1;
    return NDT_OK;
}

static const struct operation operations[NDT_OP_COUNT] = {
    [NDT_OP_HELLO] = {.early = 1, .write = write_hello},
    [NDT_OP_STATUS] = {.early = 1, .write = write_status},
    [NDT_OP_INITIAL_POSE] = {.changes = 1, .act = set_pose},
    [NDT_OP_START] = {.changes = 1, .act = start},
    [NDT_OP_STOP] = {.changes = 1, .act = stop},
    [NDT_OP_LOAD_MAP] = {.changes = 1, .act = load_map},
    [NDT_OP_UNLOAD_MAP] = {.changes = 1, .act = unload_map},
    [NDT_OP_LOAD_TILE] = {.changes = 1, .act = load_tile},
    [NDT_OP_UNLOAD_TILE] = {.changes = 1, .act = unload_tile},
    [NDT_OP_RELOAD] = {.changes = 1, .act = reload, .write = write_reload},
    [NDT_OP_START_RECORDING] = {.changes = 1, .later = 1, .act = start_recording},
    [NDT_OP_STOP_RECORDING] = {.changes = 1, .later = 1, .act = stop_recording},
    [NDT_OP_TIMINGS] = {.write = write_timings},
    [NDT_OP_LOCALIZE] = {.changes = 1, .act = localize, .write = write_search},
    [NDT_OP_SEARCH] = {.write = write_search},
    [NDT_OP_CANCEL_SEARCH] = {.changes = 1, .act = cancel_search, .write = write_search},
    [NDT_OP_POSE_AT] = {.act = find_pose, .write = write_pose},
    [NDT_OP_SHUTDOWN] = {.changes = 1, .early = 1, .act = shut_down},
};

/* Sends the part of a reply that names its client. libzmq notes at most once per millisecond which messages clients
 * have read, so it is made to look when the queue of one seems full. */
static int send_identity(struct ndtd_control *control, struct address *to)
{
    int events;
    size_t size = sizeof(events);
    const int result = ndtd_send_message(&to->identity, control->socket, ZMQ_SNDMORE);
    if (result >= 0 || errno != EAGAIN)
        return result;
    (void)zmq_getsockopt(control->socket, ZMQ_EVENTS, &events, &size);
    return ndtd_send_message(&to->identity, control->socket, ZMQ_SNDMORE);
}

static void send_reply(struct ndtd_control *control, struct address *to)
{
    if (send_identity(control, to) < 0) {
        if (errno == EAGAIN) /* otherwise the client has disconnected */
            ndtd_log(NDTD_LOG_WARNING, "%s: a reply is lost: its client does not read", control->endpoint.address);
        return;
    }
    if (to->delimiter && ndtd_send(control->socket, "", 0, ZMQ_SNDMORE) < 0)
        return;
    (void)ndtd_send(control->socket, control->reply.data, control->reply.size, 0);
}

static enum ndt_status act(struct ndtd_live *live, const struct operation *operation,
                           const struct ndt_request_message *request, struct ndt_error *err)
{
    if (!operation->early && !live->receiver)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "%s: the map is loading; hello, status and shutdown are possible now",
                        ndt_operation_name(request->op));
    return operation->act ? operation->act(live, request, err) : NDT_OK;
}

/* Describes a client: its key with CURVE, the user and process at the other end of an ipc socket, else the address.
 */
static void describe_peer(zmq_msg_t *message, char *who, size_t size)
{
    unsigned uid, gid, pid;
    const char *key = zmq_msg_gets(message, "User-Id"), *address = zmq_msg_gets(message, "Peer-Address");
    const char *credentials = address ? strchr(address, ':') : NULL;
    if (key && key[0])
        snprintf(who, size, "%s, key %s", address ? address : "?", key);
    else if (credentials && sscanf(credentials, ":%u:%u:%u", &uid, &gid, &pid) == 3)
        snprintf(who, size, "user %u, process %u", uid, pid);
    else
        snprintf(who, size, "%s", address && address[0] ? address : "an unknown peer");
}

/* Logs a request. One that was carried out is never left out, however many others were refused. */
static void log_request(const struct ndt_request_message *request, zmq_msg_t *message, const char *refusal)
{
    char who[WHO_BYTES], what[WHAT_BYTES];
    describe_peer(message, who, sizeof(who));
    ndt_request_describe(request, what, sizeof(what));
    if (refusal)
        ndtd_log(NDTD_LOG_WARNING, "control: %s from %s is refused: %s", what, who, refusal);
    else
        ndtd_log_always(NDTD_LOG_INFO, "control: %s from %s", what, who);
}

/* Postpones the reply, which follows from answer_later. */
static void postpone(struct ndtd_control *control, uint64_t id)
{
    control->later.id = id;
    control->later.delimiter = control->address.delimiter;
    zmq_msg_move(&control->later.identity, &control->address.identity);
    control->has_later = 1;
}

/* Finishes a reply. If that fails, the client gets the reason, for which there is memory. */
static void finish_reply(struct ndtd_control *control, struct ndt_reply_writer *writer, uint64_t id)
{
    struct ndt_error err = {""};
    if (ndt_reply_finish(writer, &err) == NDT_OK)
        return;
    ndtd_log(NDTD_LOG_ERROR, "a request could not be answered: %s", err.text);
    ndt_reply_begin(writer, &control->reply, id, err.text);
    (void)!ndt_reply_finish(writer, &err);
}

static void answer(struct ndtd_control *control, struct ndtd_live *live, zmq_msg_t *message, size_t size)
{
    struct ndt_request_message request = {0};
    struct ndt_reply_writer writer = {0};
    struct ndt_error err = {""};
    uint64_t id = 0;
    enum ndt_status status = ndt_request_decode(zmq_msg_data(message), size, &request, &id, &err);
    const struct operation *operation = status == NDT_OK ? &operations[request.op] : NULL;
    if (operation)
        status = act(live, operation, &request, &err);
    if (operation && operation->changes)
        log_request(&request, message, status == NDT_OK ? NULL : err.text);
    if (status == NDT_OK && operation && operation->later) {
        postpone(control, id);
        return;
    }
    ndt_reply_begin(&writer, &control->reply, id, status == NDT_OK ? NULL : err.text);
    if (status == NDT_OK && operation && operation->write)
        operation->write(control, live, &request, &writer);
    finish_reply(control, &writer, id);
    send_reply(control, &control->address);
}

void ndtd_control_answer_later(struct ndtd_control *control, struct ndtd_live *live)
{
    struct ndt_reply_writer writer = {0};
    struct ndt_error err = {""};
    enum ndt_status status;
    if (!ndtd_recorder_done(live->recorder, &status, &err) || !control->has_later)
        return;
    control->has_later = 0;
    ndt_reply_begin(&writer, &control->reply, control->later.id, status == NDT_OK ? NULL : err.text);
    finish_reply(control, &writer, control->later.id);
    send_reply(control, &control->later);
}

/* Receives all parts of one message and keeps the first PARTS. Returns their number; 0: no message. */
static int receive(void *socket, zmq_msg_t parts[PARTS])
{
    int count = 0, more = 1;
    while (more) {
        zmq_msg_t extra, *part = count < PARTS ? &parts[count] : &extra;
        zmq_msg_init(part);
        if (ndtd_recv(part, socket) < 0) {
            zmq_msg_close(part);
            return count;
        }
        more = zmq_msg_more(part);
        if (part == &extra)
            zmq_msg_close(part);
        count++;
    }
    return count;
}

/* Serves one request; returns 0 when none is waiting. */
static int serve_one(struct ndtd_control *control, struct ndtd_live *live)
{
    zmq_msg_t parts[PARTS];
    const int count = receive(control->socket, parts);
    if (count == 0)
        return 0;
    const int delimiter = count > 2 && zmq_msg_size(&parts[1]) == 0;
    zmq_msg_t *body = &parts[delimiter ? 2 : 1];
    zmq_msg_move(&control->address.identity, &parts[0]);
    control->address.delimiter = delimiter;
    const int is_whole = count == (delimiter ? 3 : 2);
    answer(control, live, is_whole ? body : &parts[0],
           is_whole ? zmq_msg_size(body) : 0); /* else an empty request */
    for (int i = 0; i < count && i < PARTS; i++)
        zmq_msg_close(&parts[i]);
    return 1;
}

void ndtd_control_serve(struct ndtd_control *control, struct ndtd_live *live)
{
    for (int i = 0; i < REQUESTS_AT_ONCE && serve_one(control, live); i++)
        ;
    ndtd_control_answer_later(control, live);
}

enum ndt_status ndtd_control_open(struct ndtd_control **out, struct ndtd_sockets *sockets,
                                  const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_control *control = calloc(1, sizeof(*control));
    struct ndtd_worker_timing *timings = calloc(NDTD_TIMINGS_KEPT, sizeof(*timings));
    enum ndt_status status = control && timings ? ndt_buffer_reserve(&control->reply, REPLY_BYTES, err)
                                                : ndt_fail(err, NDT_ERR_MEMORY, "no memory for the control socket");
    if (status == NDT_OK)
        status = ndtd_socket_bind(&control->socket, sockets, ZMQ_ROUTER, endpoint, err);
    if (status != NDT_OK || !control) {
        if (control)
            ndt_buffer_free(&control->reply);
        free(control);
        free(timings);
        return status;
    }
    control->endpoint = *endpoint;
    control->timings = timings;
    zmq_msg_init(&control->address.identity);
    zmq_msg_init(&control->later.identity);
    *out = control;
    return NDT_OK;
}

void ndtd_control_close(struct ndtd_control *control)
{
    if (!control)
        return;
    ndtd_socket_close(control->socket, &control->endpoint);
    zmq_msg_close(&control->address.identity);
    zmq_msg_close(&control->later.identity);
    ndt_buffer_free(&control->reply);
    free(control->timings);
    free(control);
}

void *ndtd_control_socket(struct ndtd_control *control)
{
    return control->socket;
}

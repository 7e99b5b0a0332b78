/** @file
 * @brief The receiver's thread: take_waiting takes frames from the socket; decode_header, record and enqueue put
 * each into the queue. */
#include "ndtd/receiver.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "ndtd/log.h"
#include "ndt/clock.h"
#include "socket_thread.h"
#include "zmq_calls.h"

/* Limits of the frames that are taken at once, before the first of them is processed. */
enum { FRAMES_PER_WAKE = 64, BYTES_PER_WAKE = 8 << 20 };
/* Longest sleep of the thread; each wake-up is a sign of life. */
enum { IDLE_MS = 250 };

/* Frames that were waiting in the socket. */
struct batch {
    zmq_msg_t messages[FRAMES_PER_WAKE];
    double arrival_us; /* arrival of all of them */
    int count;
};

struct ndtd_receiver {
    void *socket;
    struct ndtd_endpoint endpoint;
    struct ndtd_queue *queue;
    struct ndtd_publisher *publisher;
    struct ndtd_result_sender *sender; /* owned by the thread */
    struct ndtd_socket_thread thread;
    struct ndtd_recorder *recorder;  /* borrowed; may be NULL */
    struct ndtd_pose_stream *stream; /* may be NULL */
    struct batch batch;              /* used by the thread only */
    double looked_us;                /* time when the thread last looked for frames */
    atomic_uint_fast64_t beats;
    atomic_uint_fast64_t frames, scans, bytes, bad;
    atomic_uint_fast64_t map_id, config_hash;
};

/* ---- answers ---- */

static void answer(struct ndtd_receiver *receiver, const struct ndtd_message *scan, enum ndt_outcome outcome,
                   const char *reason)
{
    const struct ndtd_queue_counters queue = ndtd_queue_counters(receiver->queue);
    struct ndt_error err = {""};
    struct ndt_result_message message = {.seq = scan->scan.seq,
                                         .stamp_ns = scan->scan.stamp_ns,
                                         .frame_id = "map",
                                         .map_id = atomic_load(&receiver->map_id),
                                         .config_hash = atomic_load(&receiver->config_hash),
                                         .queue_depth = queue.scans_waiting,
                                         .drop_counter = queue.dropped,
                                         .queue_us = ndt_clock_us() - scan->arrival_us};
    message.result.outcome = outcome;
    message.result.scores.coverage = -1; /* unknown */
    snprintf(message.result.reason, sizeof(message.result.reason), "%.*s", (int)sizeof(message.result.reason) - 1,
             reason);
    if (ndtd_result_send(receiver->sender, &message, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_ERROR, "scan %llu could not be answered: %s", (unsigned long long)message.seq, err.text);
}

/* ---- frames ---- */

/* Decodes the header of a scan. A scan that cannot be decoded must not push good ones out of the queue: it is
 * refused here, and answered if at least its seq and stamp can be read. */
static int decode_scan_header(struct ndtd_receiver *receiver, struct ndtd_message *frame)
{
    struct ndt_error err = {""}, why = {""};
    struct ndt_scan_message message;
    if (ndt_scan_header_decode(frame->data, frame->size, &frame->scan, &why) == NDT_OK)
        return 1;
    if (ndt_scan_identify(frame->data, frame->size, &message, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_WARNING, "%s: a scan cannot be answered: %s", receiver->endpoint.address, err.text);
        return 0;
    }
    frame->scan.seq = message.seq;
    frame->scan.stamp_ns = message.stamp_ns;
    ndtd_log(NDTD_LOG_WARNING, "%s: scan %llu is refused: %s", receiver->endpoint.address,
             (unsigned long long)message.seq, why.text);
    answer(receiver, frame, NDT_REJECTED, why.text);
    return 0;
}

/* Returns whether the frame is valid and for the matching thread. One log line per kind of error, because the log
 * throttles by format. */
static int decode_header(struct ndtd_receiver *receiver, struct ndtd_message *frame)
{
    struct ndt_error err = {""};
    if (ndt_message_peek(frame->data, frame->size, &frame->type, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_WARNING, "%s: a frame of %zu bytes cannot be decoded: %s", receiver->endpoint.address,
                 frame->size, err.text);
        return 0;
    }
    switch (frame->type) {
    case NDT_MESSAGE_SCAN:
        return decode_scan_header(receiver, frame);
    case NDT_MESSAGE_INITIAL_POSE:
    case NDT_MESSAGE_ODOMETRY:
    case NDT_MESSAGE_GNSS:
    case NDT_MESSAGE_IMU:
    case NDT_MESSAGE_TRANSFORM:
        return 1;
    default:
        ndtd_log(NDTD_LOG_WARNING, "%s: messages of type %s are not for this socket", receiver->endpoint.address,
                 ndt_message_name(frame->type));
        return 0;
    }
}

static void enqueue(struct ndtd_receiver *receiver, const struct ndtd_message *frame, zmq_msg_t *message)
{
    int dropped = 0;
    struct ndt_error err = {""};
    struct ndtd_message oldest = {0};
    const int is_scan = frame->type == NDT_MESSAGE_SCAN;
    if (is_scan)
        atomic_fetch_add(&receiver->scans, 1);
    if (ndtd_queue_push(receiver->queue, frame, message, &dropped, &oldest, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_ERROR, "a frame could not be queued: %s", err.text);
        if (is_scan)
            answer(receiver, frame, NDT_REJECTED, err.text);
    }
    if (dropped)
        answer(receiver, &oldest, NDT_DROPPED, "the queue was full: newer scans arrived");
}

static void process_frame(struct ndtd_receiver *receiver, zmq_msg_t *message)
{
    struct ndtd_message frame = {
        .data = zmq_msg_data(message), .size = zmq_msg_size(message), .arrival_us = receiver->batch.arrival_us};
    atomic_fetch_add(&receiver->frames, 1);
    atomic_fetch_add(&receiver->bytes, frame.size);
    if (!decode_header(receiver, &frame)) {
        atomic_fetch_add(&receiver->bad, 1);
        return;
    }
    if (receiver->recorder)
        ndtd_recorder_push(receiver->recorder, (uint32_t)frame.type, message);
    if (receiver->stream)
        ndtd_pose_stream_take(receiver->stream, &frame);
    enqueue(receiver, &frame, message);
}

/* A message of several parts counts as one malformed frame. */
static void refuse_parts(struct ndtd_receiver *receiver, zmq_msg_t *message)
{
    atomic_fetch_add(&receiver->frames, 1);
    atomic_fetch_add(&receiver->bad, 1);
    ndtd_log(NDTD_LOG_WARNING, "%s: a message of several parts; one part is one message",
             receiver->endpoint.address);
    do
        atomic_fetch_add(&receiver->bytes, zmq_msg_size(message));
    while (zmq_msg_more(message) && ndtd_recv(message, receiver->socket) >= 0);
}

/* Takes all waiting frames, so that all those held up by a delay of this thread, and not only the first, get the
 * moment since which they waited. */
static void take_waiting(struct ndtd_receiver *receiver, double arrival_us)
{
    struct batch *batch = &receiver->batch;
    size_t bytes = 0;
    batch->count = 0;
    batch->arrival_us = arrival_us;
    for (int i = 0; i < FRAMES_PER_WAKE && bytes < BYTES_PER_WAKE; i++) {
        zmq_msg_t *message = &batch->messages[batch->count];
        if (ndtd_recv(message, receiver->socket) < 0) {
            receiver->looked_us = ndt_clock_us();
            return;
        }
        if (zmq_msg_more(message)) {
            refuse_parts(receiver, message);
            continue;
        }
        bytes += zmq_msg_size(message);
        batch->count++;
    }
}

/* Waits for frames; 0: the end. A frame that is there already has arrived since the last look. */
static int wait_for_frames(struct ndtd_receiver *receiver, double *arrival_us)
{
    int events = 0;
    size_t size = sizeof(events);
    const double looked_us = receiver->looked_us;
    const int is_ready = zmq_getsockopt(receiver->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
    if (!ndtd_socket_thread_wait_for(&receiver->thread, receiver->socket, IDLE_MS))
        return 0;
    receiver->looked_us = ndt_clock_us();
    *arrival_us = is_ready ? looked_us : receiver->looked_us;
    atomic_fetch_add(&receiver->beats, 1);
    return 1;
}

static void *run(void *argument)
{
    struct ndtd_receiver *receiver = argument;
    double arrival_us;
    for (int i = 0; i < FRAMES_PER_WAKE; i++)
        zmq_msg_init(&receiver->batch.messages[i]);
    receiver->looked_us = ndt_clock_us();
    while (wait_for_frames(receiver, &arrival_us)) {
        take_waiting(receiver, arrival_us);
        for (int i = 0; i < receiver->batch.count; i++)
            process_frame(receiver, &receiver->batch.messages[i]);
    }
    for (int i = 0; i < FRAMES_PER_WAKE; i++)
        zmq_msg_close(&receiver->batch.messages[i]);
    return NULL;
}

/* ---- functions of other threads ---- */

enum ndt_status ndtd_receiver_open(struct ndtd_receiver **out, struct ndtd_sockets *sockets,
                                   const struct ndtd_endpoint *endpoint, enum ndtd_receiver_kind kind,
                                   struct ndtd_queue *queue, struct ndtd_publisher *publisher,
                                   struct ndtd_recorder *recorder, struct ndtd_pose_stream *stream,
                                   struct ndt_error *err)
{
    struct ndtd_receiver *receiver = calloc(1, sizeof(*receiver));
    if (!receiver)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the receiver");
    receiver->endpoint = *endpoint;
    receiver->queue = queue;
    receiver->publisher = publisher;
    receiver->recorder = recorder;
    receiver->stream = stream;
    enum ndt_status status =
        ndtd_socket_bind(&receiver->socket, sockets, kind == NDTD_RECEIVE_PULL ? ZMQ_PULL : ZMQ_SUB, endpoint, err);
    if (status == NDT_OK)
        status = ndtd_result_sender_open(&receiver->sender, publisher, err);
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&receiver->thread, "ndt-receive", run, receiver, err);
    if (status != NDT_OK) {
        ndtd_result_sender_close(receiver->sender);
        ndtd_socket_close(receiver->socket, endpoint);
        free(receiver);
        return status;
    }
    *out = receiver;
    return NDT_OK;
}

void ndtd_receiver_close(struct ndtd_receiver *receiver)
{
    if (!receiver)
        return;
    ndtd_socket_thread_stop(&receiver->thread);
    ndtd_result_sender_close(receiver->sender);
    ndtd_socket_close(receiver->socket, &receiver->endpoint);
    free(receiver);
}

void ndtd_receiver_set_identity(struct ndtd_receiver *receiver, uint64_t map_id, uint64_t config_hash)
{
    atomic_store(&receiver->map_id, map_id);
    atomic_store(&receiver->config_hash, config_hash);
}

struct ndtd_receiver_counters ndtd_receiver_counters(const struct ndtd_receiver *receiver)
{
    return (struct ndtd_receiver_counters){.frames = atomic_load(&receiver->frames),
                                           .scans = atomic_load(&receiver->scans),
                                           .bytes = atomic_load(&receiver->bytes),
                                           .bad = atomic_load(&receiver->bad)};
}

uint64_t ndtd_receiver_beats(const struct ndtd_receiver *receiver)
{
    return atomic_load(&receiver->beats);
}

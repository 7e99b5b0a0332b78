/** @file
 * @brief The receiver's thread: one frame from the socket to the queue is receive, decode_header, record, enqueue.
 */
#include "ndtd/receiver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "ndt_io/bag.h"
#include "ndtd/log.h"
#include "ndt/clock.h"
#include "socket_thread.h"

enum { FRAMES_PER_WAKE = 64 };

struct ndtd_receiver {
    void *socket;
    struct ndtd_endpoint endpoint;
    struct ndtd_queue *queue;
    struct ndtd_publisher *publisher;
    struct ndtd_result_sender *sender; /* owned by the thread */
    struct ndtd_socket_thread thread;
    /* The recording. The lock is held for pointer moves only: the thread sets bag_writing and releases the lock
     * while it writes; detach_bag waits for the end of that write. */
    pthread_mutex_t bag_lock;
    pthread_cond_t bag_idle;
    struct ndt_bag_writer *bag; /* NULL while nothing is recorded */
    int bag_writing;
    atomic_uint_fast64_t frames, scans, bytes, bad, recorded, record_failures;
    atomic_uint_fast64_t map_id, config_hash;
};

/* ---- answers ---- */

static void answer(struct ndtd_receiver *receiver, const struct ndtd_frame *scan, enum ndt_outcome outcome,
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

/* ---- recording ---- */

/* The receive time in bags is informative only. */
static int64_t wall_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct ndt_bag_writer *borrow_bag(struct ndtd_receiver *receiver)
{
    pthread_mutex_lock(&receiver->bag_lock);
    struct ndt_bag_writer *bag = receiver->bag;
    receiver->bag_writing = bag != NULL;
    pthread_mutex_unlock(&receiver->bag_lock);
    return bag;
}

static void return_bag(struct ndtd_receiver *receiver, int is_broken)
{
    pthread_mutex_lock(&receiver->bag_lock);
    receiver->bag_writing = 0;
    if (is_broken)
        receiver->bag = NULL;
    pthread_cond_broadcast(&receiver->bag_idle);
    pthread_mutex_unlock(&receiver->bag_lock);
}

static struct ndt_bag_writer *detach_bag(struct ndtd_receiver *receiver)
{
    pthread_mutex_lock(&receiver->bag_lock);
    while (receiver->bag_writing)
        pthread_cond_wait(&receiver->bag_idle, &receiver->bag_lock);
    struct ndt_bag_writer *bag = receiver->bag;
    receiver->bag = NULL;
    pthread_mutex_unlock(&receiver->bag_lock);
    return bag;
}

static void end_recording(struct ndtd_receiver *receiver, struct ndt_bag_writer *bag, const char *reason)
{
    struct ndt_error err = {""};
    atomic_fetch_add(&receiver->record_failures, 1);
    ndtd_log(NDTD_LOG_ERROR, "the recording is stopped: %s", reason);
    if (ndt_bag_finish(bag, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_DEBUG, "the recording was closed with: %s", err.text);
}

static void record(struct ndtd_receiver *receiver, const struct ndtd_frame *frame)
{
    struct ndt_error err = {""};
    struct ndt_bag_writer *bag = borrow_bag(receiver);
    const struct ndt_bag_record line = {.type = (uint32_t)frame->type,
                                        .length = (uint32_t)frame->size,
                                        .receive_time_ns = wall_clock_ns(),
                                        .payload = frame->data};
    if (!bag)
        return;
    const int good = ndt_bag_write(bag, &line, &err) == NDT_OK;
    return_bag(receiver, !good);
    if (good)
        atomic_fetch_add(&receiver->recorded, 1);
    else
        end_recording(receiver, bag, err.text);
}

/* ---- frames ---- */

/* Decodes the header of a scan. A scan that cannot be decoded must not push good ones out of the queue: it is
 * refused here, and answered if at least its seq and stamp can be read. */
static int decode_scan_header(struct ndtd_receiver *receiver, struct ndtd_frame *frame)
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
static int decode_header(struct ndtd_receiver *receiver, struct ndtd_frame *frame)
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
        return 1;
    default:
        ndtd_log(NDTD_LOG_WARNING, "%s: messages of type %s are not for this socket", receiver->endpoint.address,
                 ndt_message_name(frame->type));
        return 0;
    }
}

static void enqueue(struct ndtd_receiver *receiver, const struct ndtd_frame *frame, zmq_msg_t *message)
{
    int dropped = 0;
    struct ndt_error err = {""};
    struct ndtd_frame oldest = {0};
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
    struct ndtd_frame frame = {
        .data = zmq_msg_data(message), .size = zmq_msg_size(message), .arrival_us = ndt_clock_us()};
    atomic_fetch_add(&receiver->frames, 1);
    atomic_fetch_add(&receiver->bytes, frame.size);
    if (!decode_header(receiver, &frame)) {
        atomic_fetch_add(&receiver->bad, 1);
        return;
    }
    record(receiver, &frame);
    enqueue(receiver, &frame, message);
}

/* Returns 0 when no message waits. A message of several parts counts as one malformed frame. */
static int receive(struct ndtd_receiver *receiver, zmq_msg_t *message)
{
    if (zmq_msg_recv(message, receiver->socket, ZMQ_DONTWAIT) < 0)
        return 0;
    if (!zmq_msg_more(message)) {
        process_frame(receiver, message);
        return 1;
    }
    atomic_fetch_add(&receiver->frames, 1);
    atomic_fetch_add(&receiver->bad, 1);
    ndtd_log(NDTD_LOG_WARNING, "%s: a message of several parts; one part is one message",
             receiver->endpoint.address);
    do
        atomic_fetch_add(&receiver->bytes, zmq_msg_size(message));
    while (zmq_msg_more(message) && zmq_msg_recv(message, receiver->socket, ZMQ_DONTWAIT) >= 0);
    return 1;
}

static void *run(void *argument)
{
    struct ndtd_receiver *receiver = argument;
    struct ndt_error err = {""};
    zmq_msg_t message;
    if (ndtd_result_sender_open(&receiver->sender, receiver->publisher, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_ERROR, "the receiver stops: %s", err.text);
        return NULL;
    }
    zmq_msg_init(&message);
    while (ndtd_socket_thread_wait(&receiver->thread, receiver->socket))
        for (int i = 0; i < FRAMES_PER_WAKE && receive(receiver, &message); i++) {
        }
    zmq_msg_close(&message);
    ndtd_result_sender_close(receiver->sender);
    return NULL;
}

/* ---- functions of other threads ---- */

enum ndt_status ndtd_receiver_open(struct ndtd_receiver **out, struct ndtd_sockets *sockets,
                                   const struct ndtd_endpoint *endpoint, enum ndtd_receiver_kind kind,
                                   struct ndtd_queue *queue, struct ndtd_publisher *publisher,
                                   struct ndt_error *err)
{
    struct ndtd_receiver *receiver = calloc(1, sizeof(*receiver));
    if (!receiver)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the receiver");
    receiver->endpoint = *endpoint;
    receiver->queue = queue;
    receiver->publisher = publisher;
    pthread_mutex_init(&receiver->bag_lock, NULL);
    pthread_cond_init(&receiver->bag_idle, NULL);
    enum ndt_status status =
        ndtd_socket_bind(&receiver->socket, sockets, kind == NDTD_RECEIVE_PULL ? ZMQ_PULL : ZMQ_SUB, endpoint, err);
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&receiver->thread, "ndt-receive", run, receiver, err);
    if (status != NDT_OK) {
        ndtd_socket_close(receiver->socket, endpoint);
        pthread_cond_destroy(&receiver->bag_idle);
        pthread_mutex_destroy(&receiver->bag_lock);
        free(receiver);
        return status;
    }
    *out = receiver;
    return NDT_OK;
}

void ndtd_receiver_close(struct ndtd_receiver *receiver)
{
    struct ndt_error err = {""};
    if (!receiver)
        return;
    ndtd_socket_thread_stop(&receiver->thread);
    ndtd_socket_close(receiver->socket, &receiver->endpoint);
    if (receiver->bag && ndt_bag_finish(receiver->bag, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_ERROR, "the recording could not be finished: %s", err.text);
    pthread_cond_destroy(&receiver->bag_idle);
    pthread_mutex_destroy(&receiver->bag_lock);
    free(receiver);
}

enum ndt_status ndtd_receiver_record(struct ndtd_receiver *receiver, const char *path, struct ndt_error *err)
{
    struct ndt_bag_writer *bag;
    enum ndt_status status = ndt_bag_create(&bag, path, 0, err);
    if (status != NDT_OK)
        return status;
    pthread_mutex_lock(&receiver->bag_lock);
    const int busy = receiver->bag != NULL;
    if (!busy)
        receiver->bag = bag;
    pthread_mutex_unlock(&receiver->bag_lock);
    if (!busy)
        return NDT_OK;
    ndt_bag_discard(bag);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: a recording is running; stop it first", path);
}

enum ndt_status ndtd_receiver_stop_recording(struct ndtd_receiver *receiver, struct ndt_error *err)
{
    struct ndt_bag_writer *bag = detach_bag(receiver);
    return bag ? ndt_bag_finish(bag, err) : ndt_fail(err, NDT_ERR_ARGUMENT, "nothing is being recorded");
}

void ndtd_receiver_set_identity(struct ndtd_receiver *receiver, uint64_t map_id, uint64_t config_hash)
{
    atomic_store(&receiver->map_id, map_id);
    atomic_store(&receiver->config_hash, config_hash);
}

struct ndtd_receiver_counters ndtd_receiver_counters(struct ndtd_receiver *receiver)
{
    pthread_mutex_lock(&receiver->bag_lock);
    const int is_recording = receiver->bag != NULL;
    pthread_mutex_unlock(&receiver->bag_lock);
    return (struct ndtd_receiver_counters){.frames = atomic_load(&receiver->frames),
                                           .scans = atomic_load(&receiver->scans),
                                           .bytes = atomic_load(&receiver->bytes),
                                           .bad = atomic_load(&receiver->bad),
                                           .recorded = atomic_load(&receiver->recorded),
                                           .record_failures = atomic_load(&receiver->record_failures),
                                           .is_recording = is_recording};
}

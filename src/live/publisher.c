/** @file
 * @brief The publisher's thread and the result senders. */
#include "ndtd/publisher.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "ndtd/log.h"
#include "socket_thread.h"
#include "subscribers.h"
#include "zmq_calls.h"

enum { INBOX_FRAMES = 1000, CLOSE_LINGER_MS = 1000, RESULT_BYTES = 4096 };
/* Limits per turn: results go first, with so many subscriptions at most in between. */
enum { RESULTS_PER_TURN = 64, SUBSCRIPTIONS_PER_TURN = 16 };
/* libzmq sends the last result to a connection first (ZMQ_XPUB_WELCOME_MSG). */
struct ndtd_publisher {
    void *context;
    char inbox_address[64];
    void *inbox; /* PULL, in-process */
    struct ndtd_subscribers *clients;
    void *socket;                         /* XPUB socket of `clients` */
    struct ndtd_points_publisher *points; /* NULL: none */
    struct ndtd_socket_thread thread;
    atomic_uint_fast64_t published, lost;
    atomic_uint subscribers;
};

struct ndtd_result_sender {
    struct ndtd_publisher *publisher;
    void *socket; /* PUSH, in-process */
    struct ndt_buffer frame;
};

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static void handle_subscriptions(struct ndtd_publisher *publisher)
{
    if (ndtd_subscribers_serve(publisher->clients, SUBSCRIPTIONS_PER_TURN) > 0)
        atomic_store(&publisher->subscribers, ndtd_subscribers_count(publisher->clients));
}

/* XPUB never blocks: a subscriber that is behind loses the message. */
static void publish(struct ndtd_publisher *publisher, zmq_msg_t *frame)
{
    (void)zmq_setsockopt(publisher->socket, ZMQ_XPUB_WELCOME_MSG, zmq_msg_data(frame), zmq_msg_size(frame));
    if (ndtd_send_message(frame, publisher->socket, 0) >= 0)
        atomic_fetch_add(&publisher->published, 1);
}

/* Publishes at most `limit` frames of the inbox. */
static void forward(struct ndtd_publisher *publisher, int limit)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    for (int i = 0; i < limit && ndtd_recv(&frame, publisher->inbox) >= 0; i++)
        publish(publisher, &frame);
    zmq_msg_close(&frame);
}

/* Runs the thread; results go before points. */
static void *run(void *argument)
{
    struct ndtd_publisher *publisher = argument;
    struct ndtd_points_publisher *points = publisher->points;
    zmq_pollitem_t items[] = {
        {.fd = publisher->thread.wake_fd, .events = ZMQ_POLLIN},
        {.socket = publisher->inbox, .events = ZMQ_POLLIN},
        {.socket = publisher->socket, .events = ZMQ_POLLIN},
        {.fd = points ? ndtd_points_publisher_fd(points) : -1, .events = ZMQ_POLLIN},
        {.socket = points ? ndtd_points_publisher_socket(points) : NULL, .events = ZMQ_POLLIN}};
    while (!(items[0].revents & ZMQ_POLLIN)) {
        if (zmq_poll(items, points ? 5 : 3, -1) < 0 && errno != EINTR)
            break;
        forward(publisher, RESULTS_PER_TURN);
        handle_subscriptions(publisher);
        if (points && ((items[3].revents | items[4].revents) & ZMQ_POLLIN))
            ndtd_points_publisher_serve(points);
    }
    forward(publisher, 2 * INBOX_FRAMES);
    return NULL;
}

static enum ndt_status open_inbox(struct ndtd_publisher *publisher, struct ndt_error *err)
{
    snprintf(publisher->inbox_address, sizeof(publisher->inbox_address), "inproc://ndtd.results.%p",
             (void *)publisher);
    publisher->inbox = zmq_socket(publisher->context, ZMQ_PULL);
    if (publisher->inbox && set_int(publisher->inbox, ZMQ_LINGER, 0) &&
        set_int(publisher->inbox, ZMQ_RCVHWM, INBOX_FRAMES) &&
        zmq_bind(publisher->inbox, publisher->inbox_address) == 0)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_IO, "the publisher's inbox: %s", zmq_strerror(errno));
}

static void destroy(struct ndtd_publisher *publisher)
{
    ndtd_subscribers_close(publisher->clients);
    if (publisher->inbox) {
        /* zmq_close releases the address later, and the next publisher may use it. */
        zmq_unbind(publisher->inbox, publisher->inbox_address);
        zmq_close(publisher->inbox);
    }
    free(publisher);
}

enum ndt_status ndtd_publisher_open(struct ndtd_publisher **out, struct ndtd_sockets *sockets,
                                    const struct ndtd_endpoint *endpoint, struct ndtd_points_publisher *points,
                                    struct ndt_error *err)
{
    struct ndtd_publisher *publisher = calloc(1, sizeof(*publisher));
    if (!publisher)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the publisher");
    publisher->context = ndtd_sockets_context(sockets);
    publisher->points = points;
    enum ndt_status status = open_inbox(publisher, err);
    if (status == NDT_OK) /* close waits for the last results */
        status = ndtd_subscribers_open(&publisher->clients, sockets, endpoint, CLOSE_LINGER_MS, err);
    if (status == NDT_OK) {
        publisher->socket = ndtd_subscribers_socket(publisher->clients);
        status = ndtd_socket_thread_start(&publisher->thread, "ndt-publish", run, publisher, err);
    }
    if (status != NDT_OK) {
        destroy(publisher);
        return status;
    }
    *out = publisher;
    return NDT_OK;
}

void ndtd_publisher_close(struct ndtd_publisher *publisher)
{
    if (!publisher)
        return;
    ndtd_socket_thread_stop(&publisher->thread);
    destroy(publisher);
}

struct ndtd_publisher_counters ndtd_publisher_counters(const struct ndtd_publisher *publisher)
{
    return (struct ndtd_publisher_counters){.published = atomic_load(&publisher->published),
                                            .lost = atomic_load(&publisher->lost),
                                            .subscribers = atomic_load(&publisher->subscribers)};
}

enum ndt_status ndtd_result_sender_open(struct ndtd_result_sender **out, struct ndtd_publisher *publisher,
                                        struct ndt_error *err)
{
    struct ndtd_result_sender *sender = calloc(1, sizeof(*sender));
    if (!sender)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a result sender");
    sender->publisher = publisher;
    ndt_buffer_init(&sender->frame);
    if (ndt_buffer_reserve(&sender->frame, RESULT_BYTES, err) != NDT_OK) { /* answering needs no memory later */
        ndtd_result_sender_close(sender);
        return NDT_ERR_MEMORY;
    }
    sender->socket = zmq_socket(publisher->context, ZMQ_PUSH);
    /* An in-process queue holds the sum of both marks, and a mark of 0 would mean unbounded. */
    if (sender->socket && set_int(sender->socket, ZMQ_SNDHWM, 1) && set_int(sender->socket, ZMQ_LINGER, 0) &&
        zmq_connect(sender->socket, publisher->inbox_address) == 0) {
        *out = sender;
        return NDT_OK;
    }
    const int failure = errno;
    ndtd_result_sender_close(sender);
    return ndt_fail(err, NDT_ERR_IO, "the result sender: %s", zmq_strerror(failure));
}

enum ndt_status ndtd_result_send(struct ndtd_result_sender *sender, const struct ndt_result_message *message,
                                 struct ndt_error *err)
{
    enum ndt_status status = ndt_result_encode(&sender->frame, message, err);
    if (status != NDT_OK)
        return status;
    if (ndtd_send(sender->socket, sender->frame.data, sender->frame.size, 0) >= 0)
        return NDT_OK;
    if (errno != EAGAIN)
        return ndt_fail(err, NDT_ERR_IO, "a result cannot be handed to the publisher: %s", zmq_strerror(errno));
    atomic_fetch_add(&sender->publisher->lost, 1);
    ndtd_log(NDTD_LOG_WARNING, "a result is lost: %d wait for the publisher already", INBOX_FRAMES);
    return NDT_OK;
}

void ndtd_result_sender_close(struct ndtd_result_sender *sender)
{
    if (!sender)
        return;
    if (sender->socket)
        zmq_close(sender->socket);
    ndt_buffer_free(&sender->frame);
    free(sender);
}

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

/* zmq.h defines it for draft builds only; libzmq 4.3 implements it in all builds. */
#ifndef ZMQ_XPUB_MANUAL_LAST_VALUE
#define ZMQ_XPUB_MANUAL_LAST_VALUE 98
#endif

enum { INBOX_FRAMES = 1000, CLOSE_LINGER_MS = 1000 };

/* Manual subscriptions: the publisher is notified of every subscriber, even when its topic is known already, and
 * can send to the newest alone. */
struct ndtd_publisher {
    void *context;
    struct ndtd_endpoint endpoint;
    char inbox_address[64];
    void *inbox;  /* PULL, in-process */
    void *socket; /* XPUB */
    struct ndtd_socket_thread thread;
    zmq_msg_t last; /* the frame for late subscribers; owned by the thread */
    int has_last;
    int can_send_to_newest; /* whether this libzmq has ZMQ_XPUB_MANUAL_LAST_VALUE */
    atomic_uint_fast64_t published, lost;
    atomic_uint subscribers;
};

struct ndtd_result_sender {
    struct ndtd_publisher *publisher;
    void *socket; /* PUSH, in-process */
    struct ndt_frame frame;
};

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

/* Without the option every subscriber gets the last frame again and recognises it by its seq. */
static void send_last(struct ndtd_publisher *publisher)
{
    zmq_msg_t copy;
    const int newest_only = publisher->can_send_to_newest;
    if (newest_only)
        set_int(publisher->socket, ZMQ_XPUB_MANUAL_LAST_VALUE, 1);
    zmq_msg_init(&copy);
    if (zmq_msg_copy(&copy, &publisher->last) != 0 || zmq_msg_send(&copy, publisher->socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&copy);
    if (newest_only) { /* switching it off also ends the manual mode */
        set_int(publisher->socket, ZMQ_XPUB_MANUAL_LAST_VALUE, 0);
        set_int(publisher->socket, ZMQ_XPUB_MANUAL, 1);
    }
}

/* A message of 1 and a topic is a subscription, of 0 and a topic the end of one; others are ignored. A connection
 * that has subscribed stays subscribed to everything until it ends; it filters on the client side. */
static void handle_subscription(struct ndtd_publisher *publisher, const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] > 1)
        return;
    if (data[0] == 0) {
        if (atomic_load(&publisher->subscribers) > 0)
            atomic_fetch_sub(&publisher->subscribers, 1);
        return;
    }
    atomic_fetch_add(&publisher->subscribers, 1);
    if (zmq_setsockopt(publisher->socket, ZMQ_SUBSCRIBE, "", 0) == 0 && publisher->has_last)
        send_last(publisher);
}

static int handle_subscriptions(struct ndtd_publisher *publisher)
{
    int count = 0;
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (zmq_msg_recv(&message, publisher->socket, ZMQ_DONTWAIT) >= 0) {
        handle_subscription(publisher, zmq_msg_data(&message), zmq_msg_size(&message));
        count++;
    }
    zmq_msg_close(&message);
    return count;
}

/* XPUB never blocks: a subscriber that is behind loses the message. */
static void publish(struct ndtd_publisher *publisher, zmq_msg_t *frame)
{
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    if (zmq_msg_copy(&copy, frame) != 0 || zmq_msg_send(&copy, publisher->socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&copy);
    else
        atomic_fetch_add(&publisher->published, 1);
    zmq_msg_move(&publisher->last, frame);
    publisher->has_last = 1;
}

/* Publishes at most `limit` frames of the inbox and returns their number. */
static int forward(struct ndtd_publisher *publisher, int limit)
{
    int count = 0;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (count < limit && zmq_msg_recv(&frame, publisher->inbox, ZMQ_DONTWAIT) >= 0) {
        publish(publisher, &frame);
        count++;
    }
    zmq_msg_close(&frame);
    return count;
}

static void *run(void *argument)
{
    struct ndtd_publisher *publisher = argument;
    zmq_pollitem_t items[] = {{.fd = publisher->thread.wake_fd, .events = ZMQ_POLLIN},
                              {.socket = publisher->inbox, .events = ZMQ_POLLIN},
                              {.socket = publisher->socket, .events = ZMQ_POLLIN}};
    while (!(items[0].revents & ZMQ_POLLIN)) {
        if (zmq_poll(items, 3, -1) < 0 && errno != EINTR)
            break;
        handle_subscriptions(publisher);
        forward(publisher, INBOX_FRAMES);
    }
    handle_subscriptions(publisher);
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

static enum ndt_status open_socket(struct ndtd_publisher *publisher, struct ndtd_sockets *sockets,
                                   struct ndt_error *err)
{
    enum ndt_status status = ndtd_socket_bind(&publisher->socket, sockets, ZMQ_XPUB, &publisher->endpoint, err);
    if (status != NDT_OK)
        return status;
    publisher->can_send_to_newest = set_int(publisher->socket, ZMQ_XPUB_MANUAL_LAST_VALUE, 1) &&
                                    set_int(publisher->socket, ZMQ_XPUB_MANUAL_LAST_VALUE, 0);
    if (!set_int(publisher->socket, ZMQ_XPUB_MANUAL, 1) ||
        !set_int(publisher->socket, ZMQ_LINGER, CLOSE_LINGER_MS)) /* close waits for the last results */
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: libzmq is too old: %s", publisher->endpoint.address,
                        zmq_strerror(errno));
    return NDT_OK;
}

static void destroy(struct ndtd_publisher *publisher)
{
    ndtd_socket_close(publisher->socket, &publisher->endpoint);
    if (publisher->inbox) {
        /* zmq_close releases the address later, and the next publisher may use it. */
        zmq_unbind(publisher->inbox, publisher->inbox_address);
        zmq_close(publisher->inbox);
    }
    zmq_msg_close(&publisher->last);
    free(publisher);
}

enum ndt_status ndtd_publisher_open(struct ndtd_publisher **out, struct ndtd_sockets *sockets,
                                    const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    struct ndtd_publisher *publisher = calloc(1, sizeof(*publisher));
    if (!publisher)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the publisher");
    publisher->context = ndtd_sockets_context(sockets);
    publisher->endpoint = *endpoint;
    zmq_msg_init(&publisher->last);
    enum ndt_status status = open_inbox(publisher, err);
    if (status == NDT_OK)
        status = open_socket(publisher, sockets, err);
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&publisher->thread, "ndt-publish", run, publisher, err);
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
    ndt_frame_init(&sender->frame);
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
    if (zmq_send(sender->socket, sender->frame.data, sender->frame.size, ZMQ_DONTWAIT) >= 0)
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
    ndt_frame_free(&sender->frame);
    free(sender);
}

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
#include "libzmq_guard.h"
#include "socket_thread.h"
#include "zmq_calls.h"

enum { INBOX_FRAMES = 1000, CLOSE_LINGER_MS = 1000, RESULT_BYTES = 4096 };
/* Results go first; between two looks at them come so many subscriptions at most. */
enum { RESULTS_PER_TURN = 64, SUBSCRIPTIONS_PER_TURN = 16 };
/* libzmq keeps every topic until its connection ends. A subscriber that is disconnected for too many connects again
 * and repeats those that it has. */
enum { MOST_SUBSCRIPTIONS = 64 };
/* libzmq takes in what waits in one go. A subscription is short; CURVE's handshake has up to 600 bytes. */
enum { SUBSCRIPTIONS_WAITING = 8, SUBSCRIPTION_BYTES = 1024 };

/* A connection that has sent something. */
struct subscriber {
    int fd;
    unsigned long number; /* ndtd_guard_socket_number(); 0: unused */
    unsigned messages;
};

/* libzmq keeps the topics of subscribers apart from those that choose the receivers (ZMQ_XPUB_MANUAL), of which
 * there are none, and sends to those that no topic chooses (ZMQ_INVERT_MATCHING): to all, from the end of the
 * handshake on. It sends the last result to a connection first (ZMQ_XPUB_WELCOME_MSG). */
struct ndtd_publisher {
    void *context;
    struct ndtd_endpoint endpoint;
    char inbox_address[64];
    void *inbox;  /* PULL, in-process */
    void *socket; /* XPUB */
    struct ndtd_socket_thread thread;
    struct subscriber *seen; /* endpoint.max_connections; owned by the thread */
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

static int is_open(const struct subscriber *subscriber)
{
    return subscriber->number && ndtd_guard_socket_number(subscriber->fd) == subscriber->number;
}

/* The entry of a connection. A new one takes that of a connection that has ended, or has sent the least. */
static struct subscriber *find_subscriber(struct ndtd_publisher *publisher, int fd, unsigned long number)
{
    struct subscriber *seen = publisher->seen, *replaced = seen;
    for (int i = 0; i < publisher->endpoint.max_connections; i++)
        if (seen[i].fd == fd && seen[i].number == number)
            return &seen[i];
    for (int i = 0; i < publisher->endpoint.max_connections && is_open(replaced); i++)
        if (!is_open(&seen[i]) || seen[i].messages < replaced->messages)
            replaced = &seen[i];
    *replaced = (struct subscriber){.fd = fd, .number = number};
    return replaced;
}

/* A message of 1 and a topic is a subscription, of 0 and a topic the end of one; a connection gets everything until
 * it ends, and filters on the client side. The messages are counted only. */
static void count_message(struct ndtd_publisher *publisher, zmq_msg_t *message)
{
    const int fd = zmq_msg_get(message, ZMQ_SRCFD); /* -1: libzmq's own, about topics of a connection that ended */
    const unsigned long number = ndtd_guard_socket_number(fd);
    if (!number || ++find_subscriber(publisher, fd, number)->messages <= MOST_SUBSCRIPTIONS)
        return;
    ndtd_guard_end_connection(fd);
    ndtd_log(NDTD_LOG_WARNING, "%s: a subscriber is disconnected: more than %d subscriptions",
             publisher->endpoint.address, MOST_SUBSCRIPTIONS);
}

static void handle_subscriptions(struct ndtd_publisher *publisher, int limit)
{
    unsigned open = 0;
    int count = 0;
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (; count < limit && ndtd_recv(&message, publisher->socket) >= 0; count++)
        count_message(publisher, &message);
    zmq_msg_close(&message);
    for (int i = 0; count > 0 && i < publisher->endpoint.max_connections; i++)
        open += is_open(&publisher->seen[i]) != 0;
    if (count > 0)
        atomic_store(&publisher->subscribers, open);
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

static void *run(void *argument)
{
    struct ndtd_publisher *publisher = argument;
    zmq_pollitem_t items[] = {{.fd = publisher->thread.wake_fd, .events = ZMQ_POLLIN},
                              {.socket = publisher->inbox, .events = ZMQ_POLLIN},
                              {.socket = publisher->socket, .events = ZMQ_POLLIN}};
    while (!(items[0].revents & ZMQ_POLLIN)) {
        if (zmq_poll(items, 3, -1) < 0 && errno != EINTR)
            break;
        forward(publisher, RESULTS_PER_TURN);
        handle_subscriptions(publisher, SUBSCRIPTIONS_PER_TURN);
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

static enum ndt_status open_socket(struct ndtd_publisher *publisher, struct ndtd_sockets *sockets,
                                   struct ndt_error *err)
{
    enum ndt_status status = ndtd_socket_bind(&publisher->socket, sockets, ZMQ_XPUB, &publisher->endpoint, err);
    if (status != NDT_OK)
        return status;
    if (!set_int(publisher->socket, ZMQ_XPUB_MANUAL, 1) || !set_int(publisher->socket, ZMQ_INVERT_MATCHING, 1) ||
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
    free(publisher->seen);
    free(publisher);
}

enum ndt_status ndtd_publisher_open(struct ndtd_publisher **out, struct ndtd_sockets *sockets,
                                    const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    const size_t connections = endpoint->max_connections > 0 ? (size_t)endpoint->max_connections : 1;
    struct ndtd_publisher *publisher = calloc(1, sizeof(*publisher));
    if (publisher)
        publisher->seen = calloc(connections, sizeof(*publisher->seen));
    if (!publisher || !publisher->seen) {
        free(publisher);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the publisher");
    }
    publisher->context = ndtd_sockets_context(sockets);
    publisher->endpoint = *endpoint;
    publisher->endpoint.receive_high_water_mark = SUBSCRIPTIONS_WAITING;
    publisher->endpoint.max_message_bytes = SUBSCRIPTION_BYTES;
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
    if (ndt_frame_reserve(&sender->frame, RESULT_BYTES, err) != NDT_OK) { /* answering needs no memory later */
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
    ndt_frame_free(&sender->frame);
    free(sender);
}

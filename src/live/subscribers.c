#include "subscribers.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

#include "ndtd/log.h"
#include "libzmq_guard.h"
#include "zmq_calls.h"

/* Limit of subscriptions per connection, since libzmq keeps every topic until the connection ends. A subscriber
 * that is disconnected for too many connects again and repeats its topics. */
enum { MOST_SUBSCRIPTIONS = 64 };
/* Limits of waiting subscriptions, which libzmq takes in at once. A subscription is short; CURVE's handshake has up
 * to 600 bytes. */
enum { SUBSCRIPTIONS_WAITING = 8, SUBSCRIPTION_BYTES = 1024 };

/* A connection that has sent something. */
struct subscriber {
    int fd;
    unsigned long number; /* ndtd_guard_socket_number(); 0: unused */
    unsigned messages;
};

struct ndtd_subscribers {
    struct ndtd_endpoint endpoint;
    void *socket;
    struct subscriber *seen; /* room for endpoint.max_connections */
};

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static enum ndt_status open_socket(struct ndtd_subscribers *subscribers, struct ndtd_sockets *sockets,
                                   int linger_ms, struct ndt_error *err)
{
    void **socket = &subscribers->socket;
    enum ndt_status status = ndtd_socket_bind(socket, sockets, ZMQ_XPUB, &subscribers->endpoint, err);
    if (status != NDT_OK)
        return status;
    if (!set_int(*socket, ZMQ_XPUB_MANUAL, 1) || !set_int(*socket, ZMQ_INVERT_MATCHING, 1) ||
        !set_int(*socket, ZMQ_LINGER, linger_ms))
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: libzmq is too old: %s", subscribers->endpoint.address,
                        zmq_strerror(errno));
    return NDT_OK;
}

enum ndt_status ndtd_subscribers_open(struct ndtd_subscribers **out, struct ndtd_sockets *sockets,
                                      const struct ndtd_endpoint *endpoint, int linger_ms, struct ndt_error *err)
{
    const size_t connections = endpoint->max_connections > 0 ? (size_t)endpoint->max_connections : 1;
    struct ndtd_subscribers *subscribers = calloc(1, sizeof(*subscribers));
    *out = NULL;
    if (subscribers)
        subscribers->seen = calloc(connections, sizeof(*subscribers->seen));
    if (!subscribers || !subscribers->seen) {
        free(subscribers);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the subscribers of %s", endpoint->address);
    }
    subscribers->endpoint = *endpoint;
    subscribers->endpoint.receive_high_water_mark = SUBSCRIPTIONS_WAITING;
    subscribers->endpoint.max_message_bytes = SUBSCRIPTION_BYTES;
    const enum ndt_status status = open_socket(subscribers, sockets, linger_ms, err);
    if (status == NDT_OK)
        *out = subscribers;
    else
        ndtd_subscribers_close(subscribers);
    return status;
}

void ndtd_subscribers_close(struct ndtd_subscribers *subscribers)
{
    if (!subscribers)
        return;
    ndtd_socket_close(subscribers->socket, &subscribers->endpoint);
    free(subscribers->seen);
    free(subscribers);
}

void *ndtd_subscribers_socket(const struct ndtd_subscribers *subscribers)
{
    return subscribers->socket;
}

static int is_open(const struct subscriber *subscriber)
{
    return subscriber->number && ndtd_guard_socket_number(subscriber->fd) == subscriber->number;
}

/* The entry of a connection. A new connection takes that of an ended one, or of the one that has sent the least. */
static struct subscriber *find_subscriber(struct ndtd_subscribers *subscribers, int fd, unsigned long number)
{
    struct subscriber *seen = subscribers->seen, *replaced = seen;
    for (int i = 0; i < subscribers->endpoint.max_connections; i++)
        if (seen[i].fd == fd && seen[i].number == number)
            return &seen[i];
    for (int i = 0; i < subscribers->endpoint.max_connections && is_open(replaced); i++)
        if (!is_open(&seen[i]) || seen[i].messages < replaced->messages)
            replaced = &seen[i];
    *replaced = (struct subscriber){.fd = fd, .number = number};
    return replaced;
}

/* Counts the messages of a connection. 1 and a topic is a subscription, 0 and a topic the end of one; a connection
 * gets everything until it ends, and filters on the client side. */
static void count_message(struct ndtd_subscribers *subscribers, zmq_msg_t *message)
{
    const int fd = zmq_msg_get(message, ZMQ_SRCFD); /* -1: libzmq's own, about an ended connection */
    const unsigned long number = ndtd_guard_socket_number(fd);
    if (!number || ++find_subscriber(subscribers, fd, number)->messages <= MOST_SUBSCRIPTIONS)
        return;
    ndtd_guard_end_connection(fd);
    ndtd_log(NDTD_LOG_WARNING, "%s: a subscriber is disconnected: more than %d subscriptions",
             subscribers->endpoint.address, MOST_SUBSCRIPTIONS);
}

int ndtd_subscribers_serve(struct ndtd_subscribers *subscribers, int limit)
{
    int count = 0;
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (; count < limit && ndtd_recv(&message, subscribers->socket) >= 0; count++)
        count_message(subscribers, &message);
    zmq_msg_close(&message);
    return count;
}

unsigned ndtd_subscribers_count(const struct ndtd_subscribers *subscribers)
{
    unsigned open = 0;
    for (int i = 0; i < subscribers->endpoint.max_connections; i++)
        open += is_open(&subscribers->seen[i]) != 0;
    return open;
}

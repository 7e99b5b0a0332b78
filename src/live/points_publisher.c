/** @file
 * @brief The socket `points`: two slots between the matching thread and the publisher's. */
#include "ndtd/points_publisher.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ndtd/log.h"
#include "subscribers.h"
#include "zmq_calls.h"

enum { SLOTS = 2, MESSAGES_WAITING = 2, SUBSCRIPTIONS_PER_TURN = 16 };

/* `filled` and `sent` count slots since the start: slot i is that of i % SLOTS. The matching thread owns the slots
 * from `sent` + SLOTS on, the publisher's those before `filled`. */
struct ndtd_points_publisher {
    struct ndtd_subscribers *subscribers;
    struct ndtd_points_slot slots[SLOTS];
    atomic_uint_fast64_t filled, sent;
    struct ndt_buffer frame; /* the publisher's thread */
    int fd;
    atomic_uint subscriber_count;
    atomic_uint_fast64_t published, lost;
};

enum ndt_status ndtd_points_publisher_open(struct ndtd_points_publisher **out, struct ndtd_sockets *sockets,
                                           const struct ndtd_endpoint *endpoint, struct ndt_error *err)
{
    struct ndtd_endpoint limited = *endpoint;
    struct ndtd_points_publisher *publisher = calloc(1, sizeof(*publisher));
    *out = NULL;
    if (!publisher)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the socket of points");
    for (int i = 0; i < SLOTS; i++)
        ndt_cloud_init(&publisher->slots[i].points);
    ndt_buffer_init(&publisher->frame);
    limited.send_high_water_mark = MESSAGES_WAITING;
    enum ndt_status status = NDT_OK;
    publisher->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (publisher->fd < 0)
        status = ndt_fail(err, NDT_ERR_IO, "the socket of points: eventfd: %s", strerror(errno));
    if (status == NDT_OK)
        status = ndtd_subscribers_open(&publisher->subscribers, sockets, &limited, 0, err);
    if (status == NDT_OK)
        *out = publisher;
    else
        ndtd_points_publisher_close(publisher);
    return status;
}

void ndtd_points_publisher_close(struct ndtd_points_publisher *publisher)
{
    if (!publisher)
        return;
    ndtd_subscribers_close(publisher->subscribers);
    if (publisher->fd >= 0)
        close(publisher->fd);
    for (int i = 0; i < SLOTS; i++)
        ndt_cloud_free(&publisher->slots[i].points);
    ndt_buffer_free(&publisher->frame);
    free(publisher);
}

/* ---- the matching thread ---- */

int ndtd_points_publisher_is_wanted(const struct ndtd_points_publisher *publisher)
{
    return atomic_load_explicit(&publisher->subscriber_count, memory_order_relaxed) > 0;
}

struct ndtd_points_slot *ndtd_points_publisher_take(struct ndtd_points_publisher *publisher)
{
    const uint64_t filled = atomic_load_explicit(&publisher->filled, memory_order_relaxed);
    if (filled - atomic_load_explicit(&publisher->sent, memory_order_acquire) < SLOTS)
        return &publisher->slots[filled % SLOTS];
    atomic_fetch_add(&publisher->lost, 1);
    return NULL;
}

void ndtd_points_publisher_give(struct ndtd_points_publisher *publisher)
{
    const uint64_t one = 1;
    atomic_fetch_add_explicit(&publisher->filled, 1, memory_order_release);
    (void)!write(publisher->fd, &one, sizeof(one)); /* the count is small: it cannot be full */
}

/* ---- the publisher's thread ---- */

int ndtd_points_publisher_fd(const struct ndtd_points_publisher *publisher)
{
    return publisher->fd;
}

void *ndtd_points_publisher_socket(const struct ndtd_points_publisher *publisher)
{
    return ndtd_subscribers_socket(publisher->subscribers);
}

static void send_slot(struct ndtd_points_publisher *publisher, const struct ndtd_points_slot *slot)
{
    struct ndt_error err = {""};
    void *socket = ndtd_subscribers_socket(publisher->subscribers);
    if (ndt_points_encode(&publisher->frame, &slot->message, &slot->points, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_WARNING, "the points of scan %llu are not published: %s",
                 (unsigned long long)slot->message.seq, err.text);
        atomic_fetch_add(&publisher->lost, 1);
    } else if (ndtd_send(socket, publisher->frame.data, publisher->frame.size, 0) >= 0) {
        atomic_fetch_add(&publisher->published, 1); /* XPUB never blocks: a slow subscriber loses the message */
    }
}

/* Sends the oldest slot. The descriptor is emptied first, so that a slot that is filled later makes it readable
 * again. */
static void send_oldest(struct ndtd_points_publisher *publisher)
{
    uint64_t count = 1;
    const uint64_t sent = atomic_load_explicit(&publisher->sent, memory_order_relaxed);
    (void)!read(publisher->fd, &count, sizeof(count));
    if (sent == atomic_load_explicit(&publisher->filled, memory_order_acquire))
        return;
    send_slot(publisher, &publisher->slots[sent % SLOTS]);
    atomic_store_explicit(&publisher->sent, sent + 1, memory_order_release);
    if (sent + 1 != atomic_load_explicit(&publisher->filled, memory_order_acquire))
        (void)!write(publisher->fd, &(uint64_t){1}, sizeof(uint64_t));
}

void ndtd_points_publisher_serve(struct ndtd_points_publisher *publisher)
{
    const int changes = ndtd_subscribers_serve(publisher->subscribers, SUBSCRIPTIONS_PER_TURN);
    const int is_wanted = ndtd_points_publisher_is_wanted(publisher);
    if (changes > 0 || is_wanted) /* also after a connection has ended silently */
        atomic_store_explicit(&publisher->subscriber_count, ndtd_subscribers_count(publisher->subscribers),
                              memory_order_relaxed);
    send_oldest(publisher);
}

/* ---- any thread ---- */

struct ndtd_points_counters ndtd_points_publisher_counters(const struct ndtd_points_publisher *publisher)
{
    return (struct ndtd_points_counters){.published = atomic_load(&publisher->published),
                                         .lost = atomic_load(&publisher->lost),
                                         .subscribers = atomic_load(&publisher->subscriber_count)};
}

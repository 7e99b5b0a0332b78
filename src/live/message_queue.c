/** @file
 * @brief The queue: two rings of slots, one for scans and one for small messages, merged by arrival order. */
#include "ndtd/message_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Slots for waiting scans, for those that the consumer holds, and for the one being filled. */
enum { SCAN_SLOTS = 2 * NDTD_QUEUE_MAX_DEPTH + 1, SMALL_SLOTS = 2 * NDTD_QUEUE_SMALL + 1 };

struct slot {
    struct ndtd_message frame; /* first: ndtd_queue_release converts the pointer back to its slot */
    zmq_msg_t message;         /* bytes of the frame; initialised as long as the queue exists */
    uint64_t order;
    int is_scan;
};

struct ring {
    struct slot **slots;
    size_t head, count, capacity;
};

struct store {
    struct ring waiting;
    struct slot **free; /* stack: the slot used last is used next */
    size_t free_count;
};

struct ndtd_queue {
    pthread_mutex_t lock;
    pthread_cond_t pushed;
    unsigned depth;
    struct slot *slots;
    struct slot **places; /* memory of all rings and stacks */
    struct store scans, small;
    uint64_t order, given, dropped, messages_lost;
    int closed, woken;
};

static void append(struct ring *ring, struct slot *slot)
{
    ring->slots[(ring->head + ring->count++) % ring->capacity] = slot;
}

static struct slot *pop(struct ring *ring)
{
    struct slot *slot = ring->slots[ring->head];
    ring->head = (ring->head + 1) % ring->capacity;
    ring->count--;
    return slot;
}

static struct store *store_of(struct ndtd_queue *queue, int is_scan)
{
    return is_scan ? &queue->scans : &queue->small;
}

static void release(struct ndtd_queue *queue, struct slot *slot)
{
    struct store *store = store_of(queue, slot->is_scan);
    store->free[store->free_count++] = slot;
}

static void lay_out(struct ndtd_queue *queue)
{
    struct slot **place = queue->places, *slot = queue->slots;
    struct store *stores[] = {&queue->scans, &queue->small};
    const size_t sizes[] = {SCAN_SLOTS, SMALL_SLOTS};
    for (int i = 0; i < 2; i++) {
        stores[i]->waiting = (struct ring){.slots = place, .capacity = sizes[i]};
        stores[i]->free = place + sizes[i];
        place += 2 * sizes[i];
        for (size_t k = 0; k < sizes[i]; k++, slot++) {
            slot->is_scan = i == 0;
            zmq_msg_init(&slot->message);
            release(queue, slot);
        }
    }
}

static void init_locks(struct ndtd_queue *queue)
{
    pthread_condattr_t clock;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT); /* the consumer may have a higher priority */
    pthread_mutex_init(&queue->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->pushed, &clock);
    pthread_condattr_destroy(&clock);
}

enum ndt_status ndtd_queue_create(struct ndtd_queue **out, unsigned depth, struct ndt_error *err)
{
    *out = NULL;
    if (depth < 1 || depth > NDTD_QUEUE_MAX_DEPTH)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a queue of %u scans; 1 to %d are possible", depth,
                        NDTD_QUEUE_MAX_DEPTH);
    struct ndtd_queue *queue = calloc(1, sizeof(*queue));
    struct slot *slots = calloc(SCAN_SLOTS + SMALL_SLOTS, sizeof(*slots));
    struct slot **places = calloc(2 * (SCAN_SLOTS + SMALL_SLOTS), sizeof(struct slot *));
    if (!queue || !slots || !places) {
        free(queue);
        free(slots);
        free(places);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the queue");
    }
    queue->depth = depth;
    queue->slots = slots;
    queue->places = places;
    lay_out(queue);
    init_locks(queue);
    *out = queue;
    return NDT_OK;
}

void ndtd_queue_destroy(struct ndtd_queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < SCAN_SLOTS + SMALL_SLOTS; i++)
        zmq_msg_close(&queue->slots[i].message);
    pthread_cond_destroy(&queue->pushed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->slots);
    free(queue->places);
    free(queue);
}

/* Drops the oldest frame. */
static struct slot *drop_oldest(struct ndtd_queue *queue, struct store *store)
{
    struct slot *oldest = pop(&store->waiting);
    queue->dropped += oldest->is_scan ? 1 : 0;
    queue->messages_lost += oldest->is_scan ? 0 : 1;
    return oldest;
}

/* Returns a slot to fill, or NULL if the queue is closed. If the consumer holds all free slots, the oldest waiting
 * frame is dropped; this happens to small messages only. */
static struct slot *get_slot(struct ndtd_queue *queue, int is_scan)
{
    struct store *store = store_of(queue, is_scan);
    struct slot *slot = NULL;
    pthread_mutex_lock(&queue->lock);
    if (!queue->closed && store->free_count > 0)
        slot = store->free[--store->free_count];
    else if (!queue->closed && store->waiting.count > 0)
        slot = drop_oldest(queue, store);
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

enum ndt_status ndtd_queue_push(struct ndtd_queue *queue, const struct ndtd_message *frame, zmq_msg_t *message,
                                int *dropped, struct ndtd_message *pushed_out, struct ndt_error *err)
{
    const int is_scan = frame->type == NDT_MESSAGE_SCAN;
    struct store *store = store_of(queue, is_scan);
    struct slot *slot = get_slot(queue, is_scan);
    *dropped = 0;
    if (!slot)
        return ndt_fail(err, NDT_END, "the queue is closed");
    zmq_msg_move(&slot->message, message); /* frees the previous message of the slot, outside the lock */
    slot->frame = *frame;
    slot->frame.data = zmq_msg_data(&slot->message);
    slot->frame.size = zmq_msg_size(&slot->message);
    pthread_mutex_lock(&queue->lock);
    if (queue->closed) {
        release(queue, slot);
        pthread_mutex_unlock(&queue->lock);
        return ndt_fail(err, NDT_END, "the queue is closed");
    }
    if (store->waiting.count == (is_scan ? queue->depth : NDTD_QUEUE_SMALL)) {
        struct slot *oldest = drop_oldest(queue, store);
        *dropped = is_scan;
        if (is_scan) {
            *pushed_out = oldest->frame;
            pushed_out->data = NULL;
            pushed_out->size = 0;
        }
        release(queue, oldest);
    }
    slot->order = queue->order++;
    append(&store->waiting, slot);
    queue->given++;
    pthread_cond_signal(&queue->pushed);
    pthread_mutex_unlock(&queue->lock);
    return NDT_OK;
}

static int is_empty(const struct ndtd_queue *queue)
{
    return queue->scans.waiting.count == 0 && queue->small.waiting.count == 0;
}

static struct timespec moment_in(double timeout_us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const long long whole = (long long)(timeout_us * 1e3) + t.tv_nsec;
    t.tv_sec += (time_t)(whole / 1000000000);
    t.tv_nsec = (long)(whole % 1000000000);
    return t;
}

static struct slot *pop_oldest(struct ndtd_queue *queue)
{
    struct ring *scans = &queue->scans.waiting, *small = &queue->small.waiting;
    if (scans->count == 0)
        return pop(small);
    if (small->count == 0)
        return pop(scans);
    return pop(scans->slots[scans->head]->order < small->slots[small->head]->order ? scans : small);
}

size_t ndtd_queue_pop(struct ndtd_queue *queue, double timeout_us, unsigned max_scans, struct ndtd_message **frames,
                      size_t max_frames)
{
    const struct timespec until = moment_in(timeout_us);
    size_t count = 0;
    unsigned scans = 0;
    int waited = 0;
    if (max_scans > NDTD_QUEUE_MAX_DEPTH) /* SCAN_SLOTS is computed for this many */
        max_scans = NDTD_QUEUE_MAX_DEPTH;
    pthread_mutex_lock(&queue->lock);
    while (is_empty(queue) && !queue->closed && !queue->woken && waited == 0)
        waited = pthread_cond_timedwait(&queue->pushed, &queue->lock, &until);
    queue->woken = 0;
    while (!is_empty(queue) && count < max_frames && scans < max_scans) {
        struct slot *slot = pop_oldest(queue);
        scans += (unsigned)slot->is_scan;
        frames[count++] = &slot->frame;
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

void ndtd_queue_release(struct ndtd_queue *queue, struct ndtd_message **frames, size_t count)
{
    pthread_mutex_lock(&queue->lock);
    for (size_t i = 0; i < count; i++)
        release(queue, (struct slot *)frames[i]);
    pthread_mutex_unlock(&queue->lock);
}

void ndtd_queue_close(struct ndtd_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->pushed);
    pthread_mutex_unlock(&queue->lock);
}

int ndtd_queue_closed(const struct ndtd_queue *queue)
{
    struct ndtd_queue *self = (struct ndtd_queue *)queue; /* only the lock changes */
    pthread_mutex_lock(&self->lock);
    const int closed = self->closed;
    pthread_mutex_unlock(&self->lock);
    return closed;
}

void ndtd_queue_wake(struct ndtd_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->woken = 1;
    pthread_cond_broadcast(&queue->pushed);
    pthread_mutex_unlock(&queue->lock);
}

struct ndtd_queue_counters ndtd_queue_counters(struct ndtd_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const struct ndtd_queue_counters counters = {.given = queue->given,
                                                 .dropped = queue->dropped,
                                                 .messages_lost = queue->messages_lost,
                                                 .depth = queue->depth,
                                                 .scans_waiting = (unsigned)queue->scans.waiting.count};
    pthread_mutex_unlock(&queue->lock);
    return counters;
}

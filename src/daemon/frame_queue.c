#include "ndtd/frame_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Slots that the taker may hold come on top of those that wait, and one that is being filled. */
enum { SCAN_SLOTS = 2 * NDTD_QUEUE_MAX_DEPTH + 1, SMALL_SLOTS = 2 * NDTD_QUEUE_SMALL + 1, LEAST_BYTES = 256 };

struct slot {
    struct ndtd_waiting_frame frame; /* first: a frame that was handed out is turned back into its slot */
    uint64_t order;
    int is_scan;
};

/* First in, first out, in a ring. */
struct line {
    struct slot **slots;
    size_t head, count, capacity;
};

struct store {
    struct line waiting;
    struct slot **free; /* a stack, so that few buffers grow */
    size_t free_count;
};

struct ndtd_queue {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned depth;
    struct slot *slots;
    struct slot **places; /* behind all lines and stacks */
    struct store scans, small;
    uint64_t order, given, dropped, small_lost;
    int closed, woken;
};

static void push(struct line *line, struct slot *slot)
{
    line->slots[(line->head + line->count++) % line->capacity] = slot;
}

static struct slot *pop(struct line *line)
{
    struct slot *slot = line->slots[line->head];
    line->head = (line->head + 1) % line->capacity;
    line->count--;
    return slot;
}

static struct store *store_of(struct ndtd_queue *queue, int is_scan)
{
    return is_scan ? &queue->scans : &queue->small;
}

static void give_back(struct ndtd_queue *queue, struct slot *slot)
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
        stores[i]->waiting = (struct line){.slots = place, .capacity = sizes[i]};
        stores[i]->free = place + sizes[i];
        place += 2 * sizes[i];
        for (size_t k = 0; k < sizes[i]; k++, slot++) {
            slot->is_scan = i == 0;
            give_back(queue, slot);
        }
    }
}

static void init_locks(struct ndtd_queue *queue)
{
    pthread_condattr_t clock;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT); /* the taker may be of a higher priority */
    pthread_mutex_init(&queue->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->came, &clock);
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
        free(queue->slots[i].frame.data);
    pthread_cond_destroy(&queue->came);
    pthread_mutex_destroy(&queue->lock);
    free(queue->slots);
    free(queue->places);
    free(queue);
}

/* A slot to fill; when every small one is in use the oldest that waits is lost for it. */
static struct slot *get_slot(struct ndtd_queue *queue, int is_scan)
{
    struct store *store = store_of(queue, is_scan);
    struct slot *slot = NULL;
    pthread_mutex_lock(&queue->lock);
    if (!queue->closed && store->free_count > 0) {
        slot = store->free[--store->free_count];
    } else if (!queue->closed && store->waiting.count > 0) {
        slot = pop(&store->waiting);
        queue->small_lost += is_scan ? 0 : 1;
        queue->dropped += is_scan ? 1 : 0;
    }
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

static enum ndt_status fill(struct slot *slot, const struct ndtd_waiting_frame *frame, struct ndt_error *err)
{
    struct ndtd_waiting_frame *to = &slot->frame;
    uint8_t *data = to->data;
    size_t capacity = to->capacity;
    if (frame->size > capacity) {
        capacity = frame->size < LEAST_BYTES ? LEAST_BYTES : frame->size + frame->size / 8;
        free(data);
        to->data = NULL;
        to->capacity = 0;
        data = malloc(capacity);
        if (!data)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a frame of %zu bytes in the queue", frame->size);
    }
    *to = *frame;
    to->data = data;
    to->capacity = capacity;
    if (frame->size)
        memcpy(data, frame->data, frame->size);
    return NDT_OK;
}

/* Puts a filled slot at the end; what has to leave for it is described in `out`. */
static int append(struct ndtd_queue *queue, struct slot *slot, struct ndtd_waiting_frame *out)
{
    struct store *store = store_of(queue, slot->is_scan);
    const size_t room = slot->is_scan ? queue->depth : NDTD_QUEUE_SMALL;
    int dropped = 0;
    if (store->waiting.count == room) {
        struct slot *oldest = pop(&store->waiting);
        dropped = slot->is_scan;
        queue->dropped += slot->is_scan ? 1 : 0;
        queue->small_lost += slot->is_scan ? 0 : 1;
        if (dropped) {
            *out = oldest->frame;
            out->data = NULL;
            out->size = out->capacity = 0;
        }
        give_back(queue, oldest);
    }
    slot->order = queue->order++;
    slot->frame.dropped_before = queue->dropped;
    push(&store->waiting, slot);
    queue->given++;
    pthread_cond_signal(&queue->came);
    return dropped;
}

enum ndt_status ndtd_queue_give(struct ndtd_queue *queue, const struct ndtd_waiting_frame *frame, int *dropped,
                                struct ndtd_waiting_frame *out, struct ndt_error *err)
{
    struct slot *slot = get_slot(queue, frame->type == NDT_MESSAGE_SCAN);
    *dropped = 0;
    if (!slot)
        return ndt_fail(err, NDT_END, "the queue is closed");
    enum ndt_status status = fill(slot, frame, err);
    pthread_mutex_lock(&queue->lock);
    if (status == NDT_OK && queue->closed)
        status = ndt_fail(err, NDT_END, "the queue is closed");
    if (status == NDT_OK)
        *dropped = append(queue, slot, out);
    else
        give_back(queue, slot);
    pthread_mutex_unlock(&queue->lock);
    return status;
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
    struct line *scans = &queue->scans.waiting, *small = &queue->small.waiting;
    if (scans->count == 0)
        return pop(small);
    if (small->count == 0)
        return pop(scans);
    return pop(scans->slots[scans->head]->order < small->slots[small->head]->order ? scans : small);
}

size_t ndtd_queue_take(struct ndtd_queue *queue, double timeout_us, unsigned max_scans,
                       struct ndtd_waiting_frame **frames, size_t max_frames)
{
    const struct timespec until = moment_in(timeout_us);
    size_t count = 0;
    unsigned scans = 0;
    int waited = 0;
    if (max_scans > NDTD_QUEUE_MAX_DEPTH) /* the slots are counted for that many */
        max_scans = NDTD_QUEUE_MAX_DEPTH;
    pthread_mutex_lock(&queue->lock);
    while (is_empty(queue) && !queue->closed && !queue->woken && waited == 0)
        waited = pthread_cond_timedwait(&queue->came, &queue->lock, &until);
    queue->woken = 0;
    while (!is_empty(queue) && count < max_frames && scans < max_scans) {
        struct slot *slot = pop_oldest(queue);
        scans += (unsigned)slot->is_scan;
        frames[count++] = &slot->frame;
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

void ndtd_queue_put_back(struct ndtd_queue *queue, struct ndtd_waiting_frame **frames, size_t count)
{
    pthread_mutex_lock(&queue->lock);
    for (size_t i = 0; i < count; i++)
        give_back(queue, (struct slot *)frames[i]);
    pthread_mutex_unlock(&queue->lock);
}

void ndtd_queue_close(struct ndtd_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->came);
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
    pthread_cond_broadcast(&queue->came);
    pthread_mutex_unlock(&queue->lock);
}

struct ndtd_queue_counters ndtd_queue_counters(struct ndtd_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const struct ndtd_queue_counters counters = {.given = queue->given,
                                                 .dropped = queue->dropped,
                                                 .small_lost = queue->small_lost,
                                                 .depth = queue->depth,
                                                 .scans_waiting = (unsigned)queue->scans.waiting.count};
    pthread_mutex_unlock(&queue->lock);
    return counters;
}

/** @file
 * @brief The thread that publishes poses between scans: rings from the receiver and the matching thread, and the
 * socket. */
#include "ndtd/pose_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "ndt/clock.h"
#include "ndtd/log.h"
#include "ndtd/motion_sample.h"
#include "ndtd/scan_state.h"
#include "socket_thread.h"
#include "subscribers.h"
#include "zmq_calls.h"

enum { SAMPLES = 1024, SCANS = 8, STAMPS = 64, SUBSCRIPTIONS_PER_TURN = 16, POSE_BYTES = 1024 };
/* Time without a sample after which poses are published by the clock. */
static const double SILENCE_US = 200e3;
/* Age of a stamp, relative to the last one, that means a restart of time. */
static const int64_t RESTART_NS = 2000000000;

struct sample {
    int is_odometry;
    struct ndt_track_odometry_sample odometry;
    struct ndt_track_imu_sample imu;
};

/* The members of struct ndtd_pose_stream_scan that the thread needs. */
struct scan {
    struct ndt_track_params params;
    struct ndt_track_state of_track;
    int has_step;
    struct ndt_track_step step;
    int ignores[NDT_TRACK_INPUT_COUNT];
    uint32_t starts;
    enum ndt_state state;
    double max_ahead_s, arrival_us;
};

/* Counters of entries since the start: entry i is in slot i modulo the size. One producer; consumers hold the lock.
 */
struct ring {
    atomic_uint_fast64_t filled, taken;
};

struct ndtd_pose_stream {
    struct ndtd_socket_thread thread;
    struct ndtd_subscribers *subscribers; /* NULL: nothing is published */
    int fd;                               /* wakes the thread */
    atomic_uint subscriber_count;
    atomic_uint_fast64_t published, lost;

    struct ring sample_ring, scan_ring;
    struct sample samples[SAMPLES]; /* filled by the receiver */
    struct scan scans[SCANS];       /* filled by the matching thread */

    /* Members of the receiver. */
    struct ndtd_extrinsics frames;
    struct ndtd_transforms transforms;

    pthread_mutex_t lock; /* guards the members up to due_count; never held across I/O */
    struct ndt_track track;
    struct ndt_track_window window;
    enum ndt_state state;
    double max_ahead_s;
    double arrival_us, sample_us; /* arrival of the newest scan; time when samples were taken last */
    int64_t next_ns, last_ns;     /* earliest next stamp to publish, and the last one */
    int64_t due_ns[STAMPS];       /* stamps to publish */
    size_t due_count;

    /* Members of the thread. */
    int64_t period_ns;
    double tick_us; /* time of the next publication by the clock */
    struct ndt_buffer frame;
};

/* ---- rings ---- */

/* The slot to fill; SIZE_MAX: all slots are full. */
static size_t begin_fill(struct ndtd_pose_stream *stream, struct ring *ring, size_t size)
{
    const uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);
    if (filled - atomic_load_explicit(&ring->taken, memory_order_acquire) < size)
        return (size_t)(filled % size);
    atomic_fetch_add(&stream->lost, 1);
    return SIZE_MAX;
}

/* Ends the filling of a slot; returns the number of waiting entries. */
static uint64_t end_fill(struct ring *ring)
{
    const uint64_t filled = atomic_fetch_add_explicit(&ring->filled, 1, memory_order_release) + 1;
    return filled - atomic_load_explicit(&ring->taken, memory_order_relaxed);
}

/* The oldest entry; SIZE_MAX: there is none. end_take has to follow. */
static size_t begin_take(struct ring *ring, size_t size)
{
    const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    return taken == atomic_load_explicit(&ring->filled, memory_order_acquire) ? SIZE_MAX : (size_t)(taken % size);
}

static void end_take(struct ring *ring)
{
    atomic_fetch_add_explicit(&ring->taken, 1, memory_order_release);
}

static void wake(struct ndtd_pose_stream *stream)
{
    const uint64_t one = 1;
    (void)!write(stream->fd, &one, sizeof(one)); /* full: the thread is awake anyway */
}

static int is_wanted(const struct ndtd_pose_stream *stream)
{
    return atomic_load_explicit(&stream->subscriber_count, memory_order_relaxed) > 0;
}

/* ---- the receiver ---- */

static enum ndt_status fill_sample(struct ndtd_pose_stream *stream, const struct ndtd_message *frame,
                                   struct sample *sample)
{
    struct ndt_pose_message pose;
    struct ndt_imu_message imu;
    struct ndt_error ignored;
    enum ndt_status status;
    sample->is_odometry = frame->type == NDT_MESSAGE_ODOMETRY;
    if (sample->is_odometry) {
        status = ndt_pose_message_decode(frame->data, frame->size, frame->type, &pose, &ignored);
        if (status == NDT_OK)
            sample->odometry = ndtd_odometry_sample(&pose);
    } else {
        status = ndt_imu_decode(frame->data, frame->size, &imu, &ignored);
        if (status == NDT_OK)
            sample->imu = ndtd_imu_sample(&imu, &stream->transforms, &stream->frames);
    }
    return status;
}

static void put_transform(struct ndtd_pose_stream *stream, const struct ndtd_message *frame)
{
    struct ndt_pose_message message;
    struct ndt_error ignored;
    if (ndt_pose_message_decode(frame->data, frame->size, frame->type, &message, &ignored) == NDT_OK)
        (void)!ndtd_transforms_put(&stream->transforms, &message, &ignored);
}

/* Wakes the thread for each sample while it publishes, otherwise before the ring is full. */
void ndtd_pose_stream_take(struct ndtd_pose_stream *stream, const struct ndtd_message *frame)
{
    if (frame->type == NDT_MESSAGE_TRANSFORM)
        put_transform(stream, frame);
    if (frame->type != NDT_MESSAGE_ODOMETRY && frame->type != NDT_MESSAGE_IMU)
        return;
    const size_t slot = begin_fill(stream, &stream->sample_ring, SAMPLES);
    if (slot == SIZE_MAX || fill_sample(stream, frame, &stream->samples[slot]) != NDT_OK)
        return;
    if (end_fill(&stream->sample_ring) >= SAMPLES / 2 || is_wanted(stream))
        wake(stream);
}

/* ---- the matching thread ---- */

void ndtd_pose_stream_follow(struct ndtd_pose_stream *stream, const struct ndtd_pose_stream_scan *scan)
{
    const struct ndt_track *track = scan->track;
    if (!track->has_pose)
        return;
    const size_t slot = begin_fill(stream, &stream->scan_ring, SCANS);
    if (slot == SIZE_MAX)
        return;
    struct scan *kept = &stream->scans[slot];
    kept->params = track->params;
    kept->of_track = track->state;
    kept->has_step = scan->step != NULL;
    if (scan->step)
        kept->step = *scan->step;
    memcpy(kept->ignores, track->ignores, sizeof(kept->ignores));
    kept->starts = track->starts;
    kept->state = scan->state;
    kept->max_ahead_s = scan->max_ahead_s;
    kept->arrival_us = scan->arrival_us;
    (void)end_fill(&stream->scan_ring);
    wake(stream);
}

/* ---- with the lock held ---- */

static void put_due(struct ndtd_pose_stream *stream, int64_t stamp_ns)
{
    if (stamp_ns < stream->last_ns - RESTART_NS)
        stream->next_ns = stream->last_ns = stamp_ns - 1;
    if (stamp_ns < stream->next_ns || stamp_ns <= stream->last_ns)
        return;
    /* A rate other than that of the samples is kept on average; half a period allows for their jitter. */
    const int64_t period_ns = stream->period_ns;
    stream->next_ns =
        stamp_ns - stream->next_ns < period_ns ? stream->next_ns + period_ns : stamp_ns + period_ns / 2;
    stream->last_ns = stamp_ns;
    if (stream->due_count == STAMPS) /* the oldest one is useless by now */
        memmove(stream->due_ns, stream->due_ns + 1, --stream->due_count * sizeof(*stream->due_ns));
    stream->due_ns[stream->due_count++] = stamp_ns;
}

static void use_scan(struct ndtd_pose_stream *stream, const struct scan *scan)
{
    struct ndt_track *track = &stream->track;
    track->params = scan->params;
    track->state = scan->of_track;
    memcpy(track->ignores, scan->ignores, sizeof(track->ignores));
    track->starts = scan->starts;
    track->has_pose = 1;
    ndt_track_window_add(&stream->window, track, scan->has_step ? &scan->step : NULL,
                         ndtd_state_is_trusted(scan->state));
    stream->state = scan->state;
    stream->max_ahead_s = scan->max_ahead_s;
    stream->arrival_us = scan->arrival_us;
}

static void use_sample(struct ndtd_pose_stream *stream, const struct sample *sample, int is_published)
{
    if (sample->is_odometry)
        ndt_track_odometry(&stream->track, &sample->odometry);
    else
        ndt_track_imu(&stream->track, &sample->imu);
    if (is_published)
        put_due(stream, sample->is_odometry ? sample->odometry.stamp_ns : sample->imu.stamp_ns);
}

static void take_all(struct ndtd_pose_stream *stream)
{
    const int is_published = is_wanted(stream);
    size_t slot;
    while ((slot = begin_take(&stream->scan_ring, SCANS)) != SIZE_MAX) {
        use_scan(stream, &stream->scans[slot]);
        end_take(&stream->scan_ring);
    }
    while ((slot = begin_take(&stream->sample_ring, SAMPLES)) != SIZE_MAX) {
        use_sample(stream, &stream->samples[slot], is_published);
        end_take(&stream->sample_ring);
        stream->sample_us = ndt_clock_us();
    }
}

static enum ndt_status pose_at(const struct ndtd_pose_stream *stream, int64_t stamp_ns,
                               struct ndt_moment_message *out, struct ndt_error *err)
{
    const struct ndtd_moments moments = {&stream->window, &stream->track, stream->state, stream->max_ahead_s};
    return ndtd_moment_at(&moments, stamp_ns, out, err);
}

/* ---- the thread ---- */

/* Finds the next due pose. Returns 0 when none is due; NDT_END in *status: there is no pose to publish. */
static int next_pose(struct ndtd_pose_stream *stream, struct ndt_moment_message *out, enum ndt_status *status)
{
    struct ndt_error ignored;
    pthread_mutex_lock(&stream->lock);
    take_all(stream);
    const int is_due = stream->due_count > 0;
    if (is_due) {
        *status = pose_at(stream, stream->due_ns[0], out, &ignored);
        memmove(stream->due_ns, stream->due_ns + 1, --stream->due_count * sizeof(*stream->due_ns));
    }
    pthread_mutex_unlock(&stream->lock);
    return is_due;
}

static void publish(struct ndtd_pose_stream *stream, const struct ndt_moment_message *pose)
{
    struct ndt_error err = {""};
    if (ndt_moment_encode(&stream->frame, pose, &err) != NDT_OK)
        ndtd_log(NDTD_LOG_WARNING, "a pose is not published: %s", err.text);
    else if (ndtd_send(ndtd_subscribers_socket(stream->subscribers), stream->frame.data, stream->frame.size, 0) >=
             0)
        atomic_fetch_add(&stream->published, 1); /* XPUB never blocks: a slow subscriber loses the message */
}

/* Publishes by the clock while no samples come. Returns the time to wait [ms]. */
static long tick(struct ndtd_pose_stream *stream)
{
    const double now_us = ndt_clock_us(), period_us = (double)stream->period_ns * 1e-3;
    if (!is_wanted(stream))
        return -1;
    pthread_mutex_lock(&stream->lock);
    const double silent_us = now_us - stream->sample_us;
    if (silent_us >= SILENCE_US && now_us >= stream->tick_us) {
        const int64_t scan_ns = stream->track.state.stamp_ns;
        if (stream->window.count > 0)
            put_due(stream, scan_ns + (int64_t)((now_us - stream->arrival_us) * 1e3));
        stream->tick_us = now_us - stream->tick_us < period_us ? stream->tick_us + period_us : now_us + period_us;
    }
    pthread_mutex_unlock(&stream->lock);
    const double wait_us = silent_us < SILENCE_US ? SILENCE_US - silent_us : stream->tick_us - now_us;
    return wait_us <= 0 ? 0 : 1 + (long)(wait_us * 1e-3);
}

static void serve_subscribers(struct ndtd_pose_stream *stream)
{
    if (!stream->subscribers)
        return;
    (void)ndtd_subscribers_serve(stream->subscribers, SUBSCRIPTIONS_PER_TURN);
    atomic_store_explicit(&stream->subscriber_count, ndtd_subscribers_count(stream->subscribers),
                          memory_order_relaxed);
}

static void *run(void *argument)
{
    struct ndtd_pose_stream *stream = argument;
    struct ndt_moment_message pose;
    enum ndt_status status = NDT_OK;
    zmq_pollitem_t items[] = {{.fd = stream->thread.wake_fd, .events = ZMQ_POLLIN},
                              {.fd = stream->fd, .events = ZMQ_POLLIN},
                              {.socket = stream->subscribers ? ndtd_subscribers_socket(stream->subscribers) : NULL,
                               .events = ZMQ_POLLIN}};
    long wait_ms = -1;
    while (!(items[0].revents & ZMQ_POLLIN)) {
        uint64_t count;
        if (zmq_poll(items, stream->subscribers ? 3 : 2, wait_ms) < 0 && errno != EINTR)
            break;
        serve_subscribers(stream);
        (void)!read(stream->fd, &count, sizeof(count));
        wait_ms = tick(stream);
        while (next_pose(stream, &pose, &status))
            if (status == NDT_OK)
                publish(stream, &pose);
    }
    return NULL;
}

/* ---- open and close ---- */

static void destroy(struct ndtd_pose_stream *stream)
{
    ndtd_subscribers_close(stream->subscribers);
    if (stream->fd >= 0)
        close(stream->fd);
    ndt_buffer_free(&stream->frame);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Initialises the lock with priority inheritance, so that a request does not delay the thread. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

enum ndt_status ndtd_pose_stream_open(struct ndtd_pose_stream **out, struct ndtd_sockets *sockets,
                                      const struct ndtd_endpoint *endpoint, const struct ndtd_settings *settings,
                                      struct ndt_error *err)
{
    struct ndtd_pose_stream *stream = calloc(1, sizeof(*stream));
    *out = NULL;
    if (!stream)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the poses between scans");
    init_lock(&stream->lock);
    ndt_buffer_init(&stream->frame);
    ndt_track_init(&stream->track, &settings->track);
    stream->frames = settings->frames;
    stream->max_ahead_s = settings->max_ahead_s;
    stream->next_ns = stream->last_ns = INT64_MIN / 2;
    stream->period_ns = settings->output_rate_hz > 0 ? (int64_t)(1e9 / settings->output_rate_hz) : 0;
    stream->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum ndt_status status = ndt_buffer_reserve(&stream->frame, POSE_BYTES, err);
    if (status == NDT_OK && stream->fd < 0)
        status = ndt_fail(err, NDT_ERR_IO, "the poses between scans: eventfd: %s", strerror(errno));
    if (status == NDT_OK && *endpoint->address)
        status = ndtd_subscribers_open(&stream->subscribers, sockets, endpoint, 0, err);
    if (status == NDT_OK)
        status = ndtd_socket_thread_start(&stream->thread, "ndt-pose", run, stream, err);
    if (status == NDT_OK)
        *out = stream;
    else
        destroy(stream);
    return status;
}

void ndtd_pose_stream_close(struct ndtd_pose_stream *stream)
{
    if (!stream)
        return;
    ndtd_socket_thread_stop(&stream->thread);
    destroy(stream);
}

/* ---- any thread ---- */

enum ndt_status ndtd_pose_stream_at(struct ndtd_pose_stream *stream, int64_t stamp_ns,
                                    struct ndt_moment_message *out, struct ndt_error *err)
{
    pthread_mutex_lock(&stream->lock);
    take_all(stream);
    const int has_due = stream->due_count > 0;
    const enum ndt_status status = pose_at(stream, stamp_ns, out, err);
    pthread_mutex_unlock(&stream->lock);
    if (has_due)
        wake(stream);
    return status;
}

struct ndtd_pose_stream_counters ndtd_pose_stream_counters(const struct ndtd_pose_stream *stream)
{
    return (struct ndtd_pose_stream_counters){.published = atomic_load(&stream->published),
                                              .lost = atomic_load(&stream->lost),
                                              .subscribers = atomic_load(&stream->subscriber_count)};
}

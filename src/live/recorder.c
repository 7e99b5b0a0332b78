/** @file
 * @brief The recorder's thread: a request opens or finishes a file, frames of the queue go into it. */
#include "ndtd/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ndt/clock.h"
#include "ndtd/log.h"
#include "ndtd/realtime.h"
#include "ndtd/transforms.h"
#include "recording_file.h"

enum { BAG_HEAD_BYTES = 16, RECORD_BYTES = 20 }; /* bytes around the frames, see bag.h */
/* Number of bytes after which the free space is checked. */
static const uint64_t SPACE_CHECK_BYTES = 16000000;
/* Longest time that the end of the process waits for unwritten frames. */
static const double DRAIN_US = 5e6;

/* A waiting frame; `message` shares the bytes with the receiver. */
struct entry {
    zmq_msg_t message;
    uint32_t type;
    int64_t receive_time_ns;
};

struct ndtd_recorder {
    struct ndtd_recorder_config config;
    pthread_t thread;
    int done_fd;          /* eventfd */
    pthread_mutex_t lock; /* guards the members up to `path` */
    pthread_cond_t changed;
    struct entry *ring; /* NDTD_RECORDER_FRAMES */
    size_t head;
    struct ndtd_recorder_status status;
    struct ndtd_transforms known; /* transforms received so far */
    struct ndtd_transforms first; /* transforms at the begin of the file */
    int makes_directory, closing;
    int is_pending, is_done; /* a request, and its result */
    enum ndt_status result;
    struct ndt_error why;
    double drain_until_us;
    char path[sizeof(((struct ndtd_recorder_status *)0)->file)];

    /* Members of the thread. */
    struct ndtd_recording_file file;
    uint64_t unchecked_bytes; /* bytes since the last check of the free space */
};

const char *ndtd_recorder_state_name(enum ndtd_recorder_state state)
{
    static const char *const names[] = {"idle", "starting", "recording", "finishing"};
    return names[state];
}

/* The receive time in bags is informative only. */
static int64_t wall_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t cost_of(size_t size)
{
    return size > NDTD_RECORDER_SMALL ? size : NDTD_RECORDER_SMALL;
}

/* ---- the queue: called with the lock held ---- */

static int has_room(const struct ndtd_recorder *recorder, size_t size)
{
    return recorder->status.waiting == 0 ||
           (recorder->status.waiting < NDTD_RECORDER_FRAMES &&
            recorder->status.waiting_bytes + cost_of(size) <= recorder->config.queue_bytes);
}

static void append(struct ndtd_recorder *recorder, uint32_t type, zmq_msg_t *message)
{
    struct entry *entry = &recorder->ring[(recorder->head + recorder->status.waiting) % NDTD_RECORDER_FRAMES];
    zmq_msg_copy(&entry->message, message); /* shares the bytes of all but tiny messages */
    entry->type = type;
    entry->receive_time_ns = wall_clock_ns();
    recorder->status.waiting++;
    recorder->status.waiting_bytes += cost_of(zmq_msg_size(message));
}

static void pop(struct ndtd_recorder *recorder, struct entry *out)
{
    struct entry *entry = &recorder->ring[recorder->head];
    zmq_msg_move(&out->message, &entry->message);
    out->type = entry->type;
    out->receive_time_ns = entry->receive_time_ns;
    recorder->head = (recorder->head + 1) % NDTD_RECORDER_FRAMES;
    recorder->status.waiting--;
    recorder->status.waiting_bytes -= cost_of(zmq_msg_size(&out->message));
}

/* Discards the waiting frames. */
static void discard(struct ndtd_recorder *recorder)
{
    struct entry entry;
    zmq_msg_init(&entry.message);
    recorder->status.missing += recorder->status.waiting;
    recorder->status.dropped += recorder->status.waiting;
    while (recorder->status.waiting > 0)
        pop(recorder, &entry);
    zmq_msg_close(&entry.message);
}

static void clear_done(struct ndtd_recorder *recorder)
{
    uint64_t count;
    recorder->is_done = 0;
    while (read(recorder->done_fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

/* Begins a request; a result that was not taken is forgotten. */
static void begin_request(struct ndtd_recorder *recorder, enum ndtd_recorder_state state)
{
    recorder->status.state = state;
    recorder->is_pending = 1;
    clear_done(recorder);
    pthread_cond_signal(&recorder->changed);
}

static void report_done(struct ndtd_recorder *recorder, enum ndt_status result, const struct ndt_error *why)
{
    const uint64_t one = 1;
    if (!recorder->is_pending)
        return;
    recorder->is_pending = 0;
    recorder->is_done = 1;
    recorder->result = result;
    recorder->why = *why;
    while (write(recorder->done_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* ---- the thread ---- */

/* Finishes the file. `why`: the reason of an end that was not requested, or NULL. */
static void finish_file(struct ndtd_recorder *recorder, const struct ndt_error *why)
{
    struct ndt_error err = {""};
    pthread_mutex_lock(&recorder->lock);
    recorder->status.state = NDTD_RECORDER_FINISHING; /* no frame is pushed any more */
    if (why)
        discard(recorder);
    pthread_mutex_unlock(&recorder->lock);
    enum ndt_status status = ndtd_recording_finish(&recorder->file, &err);
    if (why) {
        err = *why;
        status = NDT_ERR_IO;
    }
    pthread_mutex_lock(&recorder->lock);
    recorder->status.state = NDTD_RECORDER_IDLE;
    recorder->status.failures += status != NDT_OK;
    snprintf(recorder->status.error, sizeof(recorder->status.error), "%.511s", err.text);
    const struct ndtd_recorder_status end = recorder->status;
    report_done(recorder, status, &err);
    pthread_mutex_unlock(&recorder->lock);
    if (status != NDT_OK) /* recordings begin on request: each end is logged */
        ndtd_log_always(NDTD_LOG_ERROR, "the recording is stopped: %s", err.text);
    ndtd_log_always(end.missing ? NDTD_LOG_WARNING : NDTD_LOG_INFO,
                    "recorded %s: %llu frames (%llu bytes), %llu missing", end.file, (unsigned long long)end.frames,
                    (unsigned long long)end.bytes, (unsigned long long)end.missing);
}

static enum ndt_status check_limits(struct ndtd_recorder *recorder, uint64_t bytes, struct ndt_error *err)
{
    const struct ndtd_recorder_config *config = &recorder->config;
    if (config->max_file_bytes > 0 && recorder->status.bytes + bytes > config->max_file_bytes)
        return ndt_fail(err, NDT_ERR_LIMIT, "%s: recording.max_file_mb = %.0f is reached", recorder->path,
                        (double)config->max_file_bytes * 1e-6);
    recorder->unchecked_bytes += bytes;
    if (recorder->unchecked_bytes < SPACE_CHECK_BYTES)
        return NDT_OK;
    recorder->unchecked_bytes = 0;
    return ndtd_recording_check_space(&recorder->file, recorder->path, config->min_free_bytes, err);
}

/* Writes a record; returns whether the recording goes on. */
static int write_record(struct ndtd_recorder *recorder, const struct ndt_bag_record *line)
{
    struct ndt_error err = {""};
    const uint64_t bytes = line->length + (uint64_t)RECORD_BYTES;
    enum ndt_status status = check_limits(recorder, bytes, &err);
    if (status == NDT_OK)
        status = ndt_bag_write(recorder->file.bag, line, &err);
    pthread_mutex_lock(&recorder->lock);
    if (status == NDT_OK) {
        recorder->status.frames++;
        recorder->status.recorded++;
        recorder->status.bytes += bytes;
    } else {
        recorder->status.missing++;
        recorder->status.dropped++;
    }
    pthread_mutex_unlock(&recorder->lock);
    if (status != NDT_OK)
        finish_file(recorder, &err);
    return status == NDT_OK;
}

static void write_frame(struct ndtd_recorder *recorder, struct entry *entry)
{
    const struct ndt_bag_record line = {.type = entry->type,
                                        .length = (uint32_t)zmq_msg_size(&entry->message),
                                        .receive_time_ns = entry->receive_time_ns,
                                        .payload = zmq_msg_data(&entry->message)};
    (void)write_record(recorder, &line);
}

/* Writes the transforms from before the recording, which hold in it. */
static void write_transforms(struct ndtd_recorder *recorder)
{
    struct ndt_buffer frame;
    int goes_on = 1;
    ndt_buffer_init(&frame);
    for (size_t i = 0; goes_on && i < recorder->first.count; i++) {
        const struct ndtd_sensor_frame *sensor = &recorder->first.frames[i];
        struct ndt_pose_message message = {
            .stamp_ns = recorder->first.stamp_ns[i], .has_pose = 1, .pose = sensor->T_base_sensor};
        strcpy(message.frame_id, sensor->frame_id);
        if (ndt_pose_message_encode(&frame, NDT_MESSAGE_TRANSFORM, &message, NULL) != NDT_OK)
            continue;
        const struct ndt_bag_record line = {.type = NDT_MESSAGE_TRANSFORM,
                                            .length = (uint32_t)frame.size,
                                            .receive_time_ns = wall_clock_ns(),
                                            .payload = frame.data};
        goes_on = write_record(recorder, &line);
    }
    ndt_buffer_free(&frame);
}

static void open_file(struct ndtd_recorder *recorder)
{
    struct ndt_error err = {""};
    const enum ndt_status status = ndtd_recording_open(&recorder->file, recorder->path, recorder->makes_directory,
                                                       recorder->config.min_free_bytes, &err);
    recorder->unchecked_bytes = 0;
    pthread_mutex_lock(&recorder->lock);
    recorder->status.state = status == NDT_OK ? NDTD_RECORDER_RUNNING : NDTD_RECORDER_IDLE;
    if (status == NDT_OK) {
        strcpy(recorder->status.file, recorder->path);
        recorder->status.error[0] = '\0';
        recorder->status.frames = recorder->status.missing = 0;
        recorder->status.bytes = BAG_HEAD_BYTES;
        recorder->first = recorder->known; /* later ones are pushed */
    }
    report_done(recorder, status, &err);
    pthread_mutex_unlock(&recorder->lock);
    if (status != NDT_OK)
        return;
    ndtd_log_always(NDTD_LOG_INFO, "recording %s", recorder->path);
    write_transforms(recorder);
}

/* The next step of the thread. */
enum step { STEP_OPEN, STEP_WRITE, STEP_FINISH, STEP_END };

static enum step next_step(struct ndtd_recorder *recorder, struct entry *entry)
{
    enum step step = STEP_WRITE;
    pthread_mutex_lock(&recorder->lock);
    for (;;) {
        const enum ndtd_recorder_state state = recorder->status.state;
        if (recorder->closing && ndt_clock_us() > recorder->drain_until_us)
            discard(recorder);
        if (recorder->status.waiting > 0) {
            pop(recorder, entry);
            break;
        }
        if (state == NDTD_RECORDER_STARTING || state == NDTD_RECORDER_FINISHING) {
            step = state == NDTD_RECORDER_STARTING ? STEP_OPEN : STEP_FINISH;
            break;
        }
        if (recorder->closing) {
            step = state == NDTD_RECORDER_RUNNING ? STEP_FINISH : STEP_END;
            break;
        }
        pthread_cond_wait(&recorder->changed, &recorder->lock);
    }
    pthread_mutex_unlock(&recorder->lock);
    return step;
}

static void *run(void *argument)
{
    struct ndtd_recorder *recorder = argument;
    struct entry entry;
    enum step step;
    ndtd_thread_name("ndt-record");
    zmq_msg_init(&entry.message);
    while ((step = next_step(recorder, &entry)) != STEP_END) {
        if (step == STEP_OPEN)
            open_file(recorder);
        else if (step == STEP_FINISH)
            finish_file(recorder, NULL);
        else
            write_frame(recorder, &entry);
        zmq_msg_close(&entry.message); /* often the last reference to the bytes */
        zmq_msg_init(&entry.message);
    }
    zmq_msg_close(&entry.message);
    return NULL;
}

/* ---- functions of other threads ---- */

enum ndt_status ndtd_recorder_create(struct ndtd_recorder **out, const struct ndtd_recorder_config *config,
                                     struct ndt_error *err)
{
    *out = NULL;
    struct ndtd_recorder *recorder = calloc(1, sizeof(*recorder));
    struct entry *ring = calloc(NDTD_RECORDER_FRAMES, sizeof(*ring));
    const int done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!recorder || !ring || done_fd < 0)
        goto failed;
    recorder->config = *config;
    recorder->ring = ring;
    recorder->done_fd = done_fd;
    for (size_t i = 0; i < NDTD_RECORDER_FRAMES; i++)
        zmq_msg_init(&ring[i].message);
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_cond_init(&recorder->changed, NULL);
    if (pthread_create(&recorder->thread, NULL, run, recorder) == 0) {
        *out = recorder;
        return NDT_OK;
    }
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->lock);
failed:
    free(recorder);
    free(ring);
    if (done_fd >= 0)
        close(done_fd);
    return ndt_fail(err, NDT_ERR_MEMORY, "no memory, descriptor or thread for the recorder");
}

void ndtd_recorder_finish(struct ndtd_recorder *recorder)
{
    if (!recorder)
        return;
    pthread_mutex_lock(&recorder->lock);
    const int was_closing = recorder->closing;
    recorder->closing = 1;
    recorder->drain_until_us = ndt_clock_us() + DRAIN_US;
    pthread_cond_signal(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
    if (!was_closing)
        pthread_join(recorder->thread, NULL);
}

void ndtd_recorder_destroy(struct ndtd_recorder *recorder)
{
    if (!recorder)
        return;
    ndtd_recorder_finish(recorder);
    for (size_t i = 0; i < NDTD_RECORDER_FRAMES; i++)
        zmq_msg_close(&recorder->ring[i].message);
    close(recorder->done_fd);
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder->ring);
    free(recorder);
}

static enum ndt_status begin(struct ndtd_recorder *recorder, int makes_directory, const char *directory,
                             const char *name, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    pthread_mutex_lock(&recorder->lock);
    const enum ndtd_recorder_state state = recorder->status.state;
    if (state != NDTD_RECORDER_IDLE)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "%.200s: a recording is %s; stop it first", name,
                          state == NDTD_RECORDER_RUNNING ? "running" : ndtd_recorder_state_name(state));
    else if ((size_t)snprintf(recorder->path, sizeof(recorder->path), "%s%s%s", directory, *directory ? "/" : "",
                              name) >= sizeof(recorder->path))
        status = ndt_fail(err, NDT_ERR_LIMIT, "%.200s: the path is too long", name);
    if (status == NDT_OK) {
        recorder->makes_directory = makes_directory;
        begin_request(recorder, NDTD_RECORDER_STARTING);
    }
    pthread_mutex_unlock(&recorder->lock);
    return status;
}

enum ndt_status ndtd_recorder_start(struct ndtd_recorder *recorder, const char *name, struct ndt_error *err)
{
    const char *directory = recorder->config.directory;
    const enum ndt_status status = ndtd_recording_name_check(name, directory, err);
    return status == NDT_OK ? begin(recorder, 1, directory, name, err) : status;
}

enum ndt_status ndtd_recorder_start_at(struct ndtd_recorder *recorder, const char *path, struct ndt_error *err)
{
    return begin(recorder, 0, "", path, err);
}

enum ndt_status ndtd_recorder_stop(struct ndtd_recorder *recorder, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    pthread_mutex_lock(&recorder->lock);
    const char *error = recorder->status.error;
    if (recorder->status.state == NDTD_RECORDER_FINISHING || recorder->is_pending)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "the recording is %s already",
                          ndtd_recorder_state_name(recorder->status.state));
    else if (recorder->status.state == NDTD_RECORDER_IDLE)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "nothing is being recorded%s%s",
                          *error ? "; the last recording ended: " : "", error);
    if (status == NDT_OK)
        begin_request(recorder, NDTD_RECORDER_FINISHING);
    pthread_mutex_unlock(&recorder->lock);
    return status;
}

int ndtd_recorder_done(struct ndtd_recorder *recorder, enum ndt_status *result, struct ndt_error *err)
{
    pthread_mutex_lock(&recorder->lock);
    const int is_done = recorder->is_done;
    if (is_done) {
        *result = recorder->result;
        *err = recorder->why;
        clear_done(recorder);
    }
    pthread_mutex_unlock(&recorder->lock);
    return is_done;
}

int ndtd_recorder_fd(const struct ndtd_recorder *recorder)
{
    return recorder->done_fd;
}

enum ndt_status ndtd_recorder_wait(struct ndtd_recorder *recorder, struct ndt_error *err)
{
    enum ndt_status result = NDT_OK;
    struct ndt_error why = {""};
    zmq_pollitem_t item = {.fd = recorder->done_fd, .events = ZMQ_POLLIN};
    while (!ndtd_recorder_done(recorder, &result, &why))
        (void)zmq_poll(&item, 1, -1);
    return result == NDT_OK ? NDT_OK : ndt_fail(err, result, "%s", why.text);
}

/* Keeps a transform, also while nothing is recorded. The pipeline refuses an invalid one. */
static void keep_transform(struct ndtd_recorder *recorder, zmq_msg_t *message)
{
    struct ndt_pose_message transform;
    if (ndt_pose_message_decode(zmq_msg_data(message), zmq_msg_size(message), NDT_MESSAGE_TRANSFORM, &transform,
                                NULL) != NDT_OK)
        return;
    pthread_mutex_lock(&recorder->lock);
    (void)!ndtd_transforms_put(&recorder->known, &transform, NULL);
    pthread_mutex_unlock(&recorder->lock);
}

void ndtd_recorder_push(struct ndtd_recorder *recorder, uint32_t type, zmq_msg_t *message)
{
    const size_t size = zmq_msg_size(message);
    if (type == NDT_MESSAGE_TRANSFORM)
        keep_transform(recorder, message);
    pthread_mutex_lock(&recorder->lock);
    const int runs = recorder->status.state == NDTD_RECORDER_RUNNING;
    const int fits = runs && has_room(recorder, size);
    if (fits) {
        append(recorder, type, message);
        pthread_cond_signal(&recorder->changed);
    } else if (runs) {
        recorder->status.missing++;
        recorder->status.dropped++;
    }
    const uint64_t waiting = recorder->status.waiting, waiting_bytes = recorder->status.waiting_bytes;
    pthread_mutex_unlock(&recorder->lock);
    if (runs && !fits)
        ndtd_log(NDTD_LOG_WARNING,
                 "the recording lacks a frame of %zu bytes: the disk is too slow, %llu frames of %.1f MB wait "
                 "(recording.queue_mb)",
                 size, (unsigned long long)waiting, (double)waiting_bytes * 1e-6);
}

void ndtd_recorder_status(struct ndtd_recorder *recorder, struct ndtd_recorder_status *out)
{
    pthread_mutex_lock(&recorder->lock);
    *out = recorder->status;
    pthread_mutex_unlock(&recorder->lock);
}

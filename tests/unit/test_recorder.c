/* The recorder with a disk that stands still: no thread waits for it, what does not fit is counted, files are
 * whole.
 */
#define _GNU_SOURCE /* syscall */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "live_peer.h"
#include "ndt_io/bag.h"
#include "ndt_proto/message.h"
#include "ndtd/recorder.h"
#include "run_tests.h"
#include "temp_dir.h"

enum { FRAME_BYTES = 100000, QUEUE_BYTES = 1000000 };

static struct ndtd_recorder *recorder;
static struct ndt_error err;

/* The disk stands still while `halt` is 1: a write or fsync waits, and `halted` becomes 1. It fails while `fault`
 * is 1. */
static atomic_int halt, halted, fault, slow_ms;

static void use_disk(void)
{
    live_pause(atomic_load(&slow_ms));
    while (atomic_load(&halt)) {
        atomic_store(&halted, 1);
        live_pause(1);
    }
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    use_disk();
    if (atomic_load(&fault)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd)
{
    use_disk();
    return (int)syscall(SYS_fsync, fd);
}

static void open_recorder(uint64_t max_file_bytes, uint64_t min_free_bytes)
{
    struct ndtd_recorder_config config = {
        .queue_bytes = QUEUE_BYTES, .max_file_bytes = max_file_bytes, .min_free_bytes = min_free_bytes};
    snprintf(config.directory, sizeof(config.directory), "%s/recordings", temp_dir);
    ck_assert_int_eq(ndtd_recorder_create(&recorder, &config, &err), NDT_OK);
}

static void set_up(void)
{
    temp_dir_make();
    open_recorder(0, 0);
}

static void tear_down(void)
{
    ndtd_recorder_destroy(recorder);
    temp_dir_remove();
}

static struct ndtd_recorder_status status(void)
{
    struct ndtd_recorder_status now;
    ndtd_recorder_status(recorder, &now);
    return now;
}

static enum ndt_status start(const char *name)
{
    const enum ndt_status result = ndtd_recorder_start(recorder, name, &err);
    return result == NDT_OK ? ndtd_recorder_wait(recorder, &err) : result;
}

static enum ndt_status stop(void)
{
    const enum ndt_status result = ndtd_recorder_stop(recorder, &err);
    return result == NDT_OK ? ndtd_recorder_wait(recorder, &err) : result;
}

/* A frame whose bytes all are `number`. */
static void push(unsigned number, size_t size)
{
    zmq_msg_t message;
    ck_assert_int_eq(zmq_msg_init_size(&message, size), 0);
    memset(zmq_msg_data(&message), (int)number, size);
    ndtd_recorder_push(recorder, 1, &message);
    zmq_msg_close(&message);
}

static const char *in_directory(const char *name)
{
    char path[100];
    snprintf(path, sizeof(path), "recordings/%.60s", name);
    return temp_path(path);
}

/* The frames of a bag are 1, 2 ... without a gap up to `whole`, and `count` altogether. */
static void check_bag(const char *name, unsigned whole, unsigned count)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    unsigned at = 0;
    enum ndt_status end;
    must(ndt_bag_open(&reader, in_directory(name), &err));
    while ((end = ndt_bag_next(reader, &record, &err)) == NDT_OK) {
        at++;
        ck_assert_uint_eq(record.type, 1);
        ck_assert(at > whole || record.payload[0] == (uint8_t)at);
        ck_assert_uint_eq(record.payload[0], record.payload[record.length - 1]);
    }
    ck_assert_int_eq(end, NDT_END);
    ck_assert_uint_eq(at, count);
    ndt_bag_close(reader);
}

static void push_transform(const char *frame_id, double x_m)
{
    struct ndt_pose_message message = {.stamp_ns = 7, .has_pose = 1, .pose = {{x_m, 0, 0}, {0, 0, 0, 1}}};
    struct ndt_buffer frame;
    zmq_msg_t copy;
    ndt_buffer_init(&frame);
    strcpy(message.frame_id, frame_id);
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRANSFORM, &message, &err), NDT_OK);
    ck_assert_int_eq(zmq_msg_init_size(&copy, frame.size), 0);
    memcpy(zmq_msg_data(&copy), frame.data, frame.size);
    ndtd_recorder_push(recorder, NDT_MESSAGE_TRANSFORM, &copy);
    zmq_msg_close(&copy);
    ndt_buffer_free(&frame);
}

FIXTURE(set_up, tear_down)

/* A late recording tells what was told before, and what changes then, in order. */
TEST(a_recording_begins_with_the_transforms)
{
    static const struct {
        const char *frame_id;
        double x_m;
    } expected[] = {{"left", 3}, {"right", 2}, {"left", 4}};
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    push_transform("left", 1);
    push_transform("right", 2);
    push_transform("left", 3);
    ck_assert_int_eq(start("a.bag"), NDT_OK);
    push_transform("left", 4);
    ck_assert_int_eq(stop(), NDT_OK);
    ck_assert_uint_eq(status().frames, 3);
    ck_assert_int_eq(ndt_bag_open(&reader, in_directory("a.bag"), &err), NDT_OK);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct ndt_pose_message message;
        ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
        ck_assert_int_eq(
            ndt_pose_message_decode(record.payload, record.length, NDT_MESSAGE_TRANSFORM, &message, &err), NDT_OK);
        ck_assert_str_eq(message.frame_id, expected[i].frame_id);
        ck_assert(message.pose.t_m[0] == expected[i].x_m && message.stamp_ns == 7);
    }
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_END);
    ck_assert_uint_eq(ndt_bag_size(reader), status().bytes);
    ndt_bag_close(reader);
}

/* 1 frame is with the disk, 10 wait, 89 are missing; stop returns at once and is done when the disk has all. */
TEST(no_thread_waits_for_the_disk)
{
    enum ndt_status result;
    ck_assert_int_eq(start("a.bag"), NDT_OK);
    atomic_store(&halt, 1);
    push(1, FRAME_BYTES);
    live_until(atomic_load(&halted));
    for (unsigned i = 2; i <= 100; i++)
        push(i, FRAME_BYTES);
    ck_assert_uint_eq(status().waiting, QUEUE_BYTES / FRAME_BYTES);
    ck_assert_uint_eq(status().waiting_bytes, QUEUE_BYTES);
    ck_assert_uint_eq(status().missing, 100 - 1 - QUEUE_BYTES / FRAME_BYTES);
    ck_assert_uint_eq(status().dropped, status().missing);
    ck_assert_int_eq(status().state, NDTD_RECORDER_RUNNING);
    ck_assert_int_eq(ndtd_recorder_stop(recorder, &err), NDT_OK);
    ck_assert_int_eq(status().state, NDTD_RECORDER_FINISHING);
    ck_assert_int_eq(ndtd_recorder_stop(recorder, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_recorder_start(recorder, "b.bag", &err), NDT_ERR_ARGUMENT);
    ck_assert(!ndtd_recorder_done(recorder, &result, &err));
    push(101, FRAME_BYTES); /* after the stop: neither recorded nor missing */
    atomic_store(&halt, 0);
    ck_assert_int_eq(ndtd_recorder_wait(recorder, &err), NDT_OK);
    ck_assert_int_eq(status().state, NDTD_RECORDER_IDLE);
    ck_assert_uint_eq(status().frames, 11);
    ck_assert_uint_eq(status().missing, 89);
    check_bag("a.bag", 11, 11);
}

/* Small frames count with the memory that they keep, and their number is bounded. */
TEST(small_frames_are_bounded)
{
    ck_assert_int_eq(start("a.bag"), NDT_OK);
    atomic_store(&halt, 1);
    push(1, 10);
    live_until(atomic_load(&halted));
    for (unsigned i = 0; i < 2 * NDTD_RECORDER_FRAMES; i++)
        push(i, 10);
    ck_assert_uint_eq(status().waiting, QUEUE_BYTES / NDTD_RECORDER_SMALL);
    atomic_store(&halt, 0);
    push(1, QUEUE_BYTES + 1); /* fits when nothing waits */
    ck_assert_int_eq(stop(), NDT_OK);
    ck_assert_int_eq(start("b.bag"), NDT_OK);
    push(1, QUEUE_BYTES + 1);
    ck_assert_int_eq(stop(), NDT_OK);
    check_bag("b.bag", 1, 1);
}

static void log_to_file(void)
{
    const int file = open(temp_path("stderr"), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ck_assert_int_ge(dup2(file, STDERR_FILENO), 0);
    close(file);
}

static int lines_of_log(const char *text)
{
    size_t size;
    int count = 0;
    char *log = (char *)temp_read(temp_path("stderr"), &size);
    for (const char *at = log; at && (at = strstr(at, text)); at++)
        count++;
    free(log);
    return count;
}

/* The second recording fails like the first: each says why, and none seems to run. */
TEST(a_full_disk_ends_a_recording)
{
    log_to_file();
    for (unsigned i = 1; i <= 2; i++) {
        const char *name = i == 1 ? "a.bag" : "b.bag";
        atomic_store(&fault, 0);
        ck_assert_int_eq(start(name), NDT_OK);
        ck_assert_str_eq(status().error, "");
        push(1, 1000);
        live_until(status().frames == 1);
        atomic_store(&fault, 1);
        push(2, 1000);
        live_until(status().failures == i);
        ck_assert_int_eq(status().state, NDTD_RECORDER_IDLE);
        ck_assert_ptr_nonnull(strstr(status().error, "No space left"));
        ck_assert_int_eq(stop(), NDT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(err.text, "No space left"));
        check_bag(name, 1, 1);
    }
    ck_assert_int_eq(start("c.bag"), NDT_ERR_IO); /* its header does not fit */
    ck_assert(!temp_exists(in_directory("c.bag")));
    live_until(lines_of_log("the recording is stopped") == 2);
    live_until(lines_of_log(", 1 missing") == 2);
}

TEST(names_stay_in_the_directory)
{
    struct stat info;
    static const char *const bad[] = {"", ".", "..", "../x.bag", "/tmp/x.bag", "a/b.bag", ".hidden", "a\nb", "x/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(start(bad[i]) == NDT_ERR_ARGUMENT, "'%s'", bad[i]);
        ck_assert_ptr_nonnull(strstr(err.text, "recording.directory"));
    }
    ck_assert_int_eq(start("good one-1.bag"), NDT_OK);
    ck_assert_int_eq(stop(), NDT_OK);
    ck_assert_int_eq(stat(in_directory("good one-1.bag"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777 & ~0640u, 0);
    (void)temp_text("victim", "precious");
    ck_assert_int_eq(symlink(temp_path("victim"), in_directory("link.bag")), 0);
    ck_assert_int_eq(symlink(temp_path("absent"), in_directory("dangling.bag")), 0);
    ck_assert_int_eq(start("link.bag"), NDT_ERR_IO);
    ck_assert_int_eq(start("dangling.bag"), NDT_ERR_IO);
    ck_assert(!temp_exists(temp_path("absent")));
    ck_assert_int_eq(start("good one-1.bag"), NDT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "exists already"));
}

TEST(limits_end_a_recording)
{
    ndtd_recorder_destroy(recorder);
    open_recorder(3000, 0);
    ck_assert_int_eq(start("a.bag"), NDT_OK);
    for (unsigned i = 1; i <= 5; i++)
        push(i, 1000);
    live_until(status().failures == 1);
    ck_assert_ptr_nonnull(strstr(status().error, "max_file_mb"));
    check_bag("a.bag", 2, 2);
    ndtd_recorder_destroy(recorder);
    open_recorder(0, UINT64_MAX);
    ck_assert_int_eq(start("b.bag"), NDT_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "min_free_mb"));
    ck_assert(!temp_exists(in_directory("b.bag")));
}

/* A request whose result is not taken, and a recorder that is destroyed while it records. */
TEST(the_end_finishes_the_file)
{
    ck_assert_int_eq(ndtd_recorder_start(recorder, "a.bag", &err), NDT_OK);
    live_until(status().state == NDTD_RECORDER_RUNNING);
    for (unsigned i = 1; i <= 5; i++)
        push(i, 1000);
    ndtd_recorder_finish(recorder);
    check_bag("a.bag", 5, 5);
    ck_assert_int_eq(status().state, NDTD_RECORDER_IDLE);
}

/* Frames that a slow disk cannot take within five seconds are left out: 40 frames would take 12 s. */
TEST(the_end_is_bounded)
{
    ck_assert_int_eq(start("a.bag"), NDT_OK);
    atomic_store(&slow_ms, 300);
    for (unsigned i = 1; i <= 40; i++)
        push(i, 1000);
    ndtd_recorder_finish(recorder);
    ck_assert_uint_ge(status().missing, 1);
    ck_assert_uint_eq(status().missing + status().frames, 40);
    check_bag("a.bag", 40, (unsigned)status().frames);
}

TEST(default_directory)
{
    char path[100];
    setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two", 1);
    ck_assert_int_eq(ndtd_recording_directory(path, sizeof(path), "", &err), NDT_OK);
    ck_assert_str_eq(path, "/var/lib/one/recordings");
    ck_assert_int_eq(ndtd_recording_directory(path, sizeof(path), "/data", &err), NDT_OK);
    ck_assert_str_eq(path, "/data");
    unsetenv("STATE_DIRECTORY");
    ck_assert_int_eq(ndtd_recording_directory(path, sizeof(path), "", &err), NDT_OK);
    ck_assert_str_eq(path, "recordings");
    ck_assert_int_eq(ndtd_recording_directory(path, 5, "", &err), NDT_ERR_LIMIT);
}

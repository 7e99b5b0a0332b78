/* The scans socket: frames into the queue, answers to scans that are refused or dropped, recordings. */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_getname_np */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "live_peer.h"
#include "ndt_io/bag.h"
#include "ndtd/receiver.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndtd_sockets *sockets;
static struct ndtd_publisher *publisher;
static struct ndtd_queue *queue;
static struct ndtd_recorder *recorder;
static struct ndtd_receiver *receiver;
static struct ndtd_endpoint scans, poses;
static void *context, *sender, *subscriber; /* the clients */
static struct ndt_buffer frame;
static struct ndt_error err;

/* The receiver's thread stands still after a frame while `hold` is 1. */
static atomic_int hold, held;

int held_recv(zmq_msg_t *message, void *socket, int flags) __asm__("zmq_msg_recv");

int held_recv(zmq_msg_t *message, void *socket, int flags)
{
    int (*library)(zmq_msg_t *, void *, int);
    char name[16] = "";
    *(void **)&library = dlsym(RTLD_NEXT, "zmq_msg_recv");
    const int size = library(message, socket, flags);
    (void)pthread_getname_np(pthread_self(), name, sizeof(name));
    while (size >= 0 && strcmp(name, "ndt-receive") == 0 && atomic_load(&hold)) {
        atomic_store(&held, 1);
        live_pause(1);
    }
    return size;
}

static void set_up_as(enum ndtd_receiver_kind kind, int sender_type)
{
    uint8_t subscription;
    temp_dir_make();
    scans = live_endpoint("ipc://%s", temp_path("scans"));
    poses = live_endpoint("ipc://%s", temp_path("poses"));
    ck_assert_int_eq(ndtd_sockets_open(&sockets, NULL, &err), NDT_OK);
    ck_assert_int_eq(ndtd_publisher_open(&publisher, sockets, &poses, NULL, &err), NDT_OK);
    ck_assert_int_eq(ndtd_queue_create(&queue, 3, &err), NDT_OK);
    const struct ndtd_recorder_config config = {.queue_bytes = 64000000};
    ck_assert_int_eq(ndtd_recorder_create(&recorder, &config, &err), NDT_OK);
    ck_assert_int_eq(ndtd_receiver_open(&receiver, sockets, &scans, kind, queue, publisher, recorder, NULL, &err),
                     NDT_OK);
    ndtd_receiver_set_identity(receiver, 77, 99);
    context = zmq_ctx_new();
    subscriber = live_connect(context, ZMQ_SUB, poses.address);
    live_until(ndtd_publisher_counters(publisher).subscribers == 1);
    sender = live_connect(context, sender_type, scans.address);
    if (sender_type == ZMQ_XPUB) /* the receiver's subscription has arrived */
        ck_assert_int_eq(zmq_recv(sender, &subscription, 1, 0), 1);
    ndt_buffer_init(&frame);
}

static void set_up(void)
{
    set_up_as(NDTD_RECEIVE_SUB, ZMQ_XPUB);
}

static void tear_down(void)
{
    ndt_buffer_free(&frame);
    zmq_close(sender);
    zmq_close(subscriber);
    zmq_ctx_term(context);
    ndtd_receiver_close(receiver);
    ndtd_recorder_destroy(recorder);
    ndtd_publisher_close(publisher);
    ndtd_sockets_close(sockets);
    ndtd_queue_destroy(queue);
    ck_assert(!temp_exists(temp_path("scans")));
    temp_dir_remove();
}

static void send_bytes(const void *data, size_t size, int flags)
{
    ck_assert_int_eq(zmq_send(sender, data, size, flags), (int)size);
}

static void encode_scan(uint64_t seq)
{
    struct ndt_cloud cloud;
    struct ndt_scan_message message = {.seq = seq, .stamp_ns = (int64_t)seq * 1000, .frame_id = "lidar"};
    ndt_cloud_init(&cloud);
    must(ndt_scan_encode(&frame, &message, &cloud, &err));
    ndt_cloud_free(&cloud);
}

static void send_scan(uint64_t seq)
{
    encode_scan(seq);
    send_bytes(frame.data, frame.size, 0);
}

static void send_odometry(int64_t stamp_ns)
{
    const struct ndt_pose_message message = {
        .stamp_ns = stamp_ns, .frame_id = "odom", .has_pose = 1, .pose = ndt_pose_identity()};
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_ODOMETRY, &message, &err), NDT_OK);
    send_bytes(frame.data, frame.size, 0);
}

static void send_imu(int64_t stamp_ns)
{
    const struct ndt_imu_message message = {.stamp_ns = stamp_ns, .frame_id = "imu"};
    ck_assert_int_eq(ndt_imu_encode(&frame, &message, &err), NDT_OK);
    send_bytes(frame.data, frame.size, 0);
}

static struct ndt_result_message next_answer(void)
{
    static uint8_t data[65536];
    struct ndt_result_message message;
    const int size = zmq_recv(subscriber, data, sizeof(data), 0);
    ck_assert_int_gt(size, 0);
    must(ndt_result_decode(data, (size_t)size, &message, &err));
    return message;
}

static void wait_for_frames(uint64_t count)
{
    live_until(ndtd_receiver_counters(receiver).frames == count);
}

static struct ndtd_recorder_status recorder_status(void)
{
    struct ndtd_recorder_status status;
    ndtd_recorder_status(recorder, &status);
    return status;
}

static enum ndt_status start_recording(const char *path)
{
    const enum ndt_status status = ndtd_recorder_start_at(recorder, path, &err);
    return status == NDT_OK ? ndtd_recorder_wait(recorder, &err) : status;
}

static enum ndt_status stop_recording(void)
{
    const enum ndt_status status = ndtd_recorder_stop(recorder, &err);
    return status == NDT_OK ? ndtd_recorder_wait(recorder, &err) : status;
}

/* Pops everything, one scan per call; returns the number of frames. The bytes of the copies are invalid. */
static size_t drain(struct ndtd_message *copies, size_t max)
{
    size_t count = 0, taken;
    struct ndtd_message *frames[16];
    while ((taken = ndtd_queue_pop(queue, 0, 1, frames, 16)) > 0) {
        for (size_t i = 0; i < taken && count < max; i++)
            copies[count++] = *frames[i];
        ndtd_queue_release(queue, frames, taken);
    }
    return count;
}

FIXTURE(set_up, tear_down)

TEST(test_frames_arrive)
{
    struct ndtd_message got[8];
    send_odometry(5);
    send_scan(1);
    send_imu(6);
    send_scan(2);
    wait_for_frames(4);
    live_until(ndtd_queue_counters(queue).scans_waiting == 2);
    ck_assert_uint_eq(drain(got, 8), 4);
    ck_assert_int_eq(got[0].type, NDT_MESSAGE_ODOMETRY);
    ck_assert_int_eq(got[1].type, NDT_MESSAGE_SCAN);
    ck_assert_uint_eq(got[1].scan.seq, 1);
    ck_assert_int_eq(got[1].scan.stamp_ns, 1000);
    ck_assert_uint_eq(got[1].scan.points.count, 0);
    ck_assert_uint_gt(got[1].scan.points.data_at, 0);
    ck_assert_int_eq(got[2].type, NDT_MESSAGE_IMU);
    ck_assert_uint_eq(got[3].scan.seq, 2);
    for (int i = 0; i < 4; i++)
        ck_assert(got[i].arrival_us >= (i ? got[i - 1].arrival_us : 0) && got[i].arrival_us <= ndt_clock_us());
    const struct ndtd_receiver_counters counters = ndtd_receiver_counters(receiver);
    ck_assert_uint_eq(counters.scans, 2);
    ck_assert_uint_eq(counters.bad, 0);
    ck_assert_uint_gt(counters.bytes, 100);
    ck_assert_uint_eq(recorder_status().recorded, 0);
}

/* The oldest scans are pushed out and answered without a consumer, in order, with map id and configuration hash. */
TEST(test_full_queue)
{
    struct ndtd_message got[8];
    for (uint64_t seq = 1; seq <= 10; seq++)
        send_scan(seq);
    for (uint64_t seq = 1; seq <= 7; seq++) {
        const struct ndt_result_message message = next_answer();
        ck_assert_uint_eq(message.seq, seq);
        ck_assert_int_eq(message.stamp_ns, (int64_t)seq * 1000);
        ck_assert_int_eq(message.result.outcome, NDT_DROPPED);
        ck_assert_ptr_nonnull(strstr(message.result.reason, "queue was full"));
        ck_assert_str_eq(message.frame_id, "map");
        ck_assert_uint_eq(message.map_id, 77);
        ck_assert_uint_eq(message.config_hash, 99);
        ck_assert_uint_eq(message.drop_counter, seq);
        ck_assert_uint_le(message.queue_depth, 3);
        ck_assert(message.queue_us >= 0 && message.queue_us < 10e6);
    }
    wait_for_frames(10);
    ck_assert_uint_eq(drain(got, 8), 3);
    ck_assert_uint_eq(got[0].scan.seq, 8);
}

/* A scan that a closed queue refuses is answered. */
TEST(test_closed_queue)
{
    ndtd_queue_close(queue);
    send_scan(4);
    const struct ndt_result_message message = next_answer();
    ck_assert_uint_eq(message.seq, 4);
    ck_assert_int_eq(message.result.outcome, NDT_REJECTED);
    ck_assert_str_ne(message.result.reason, "");
}

/* Malformed frames of every kind between valid ones are counted; the valid ones are queued. */
TEST(test_bad_frames)
{
    static const uint8_t garbage[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    struct ndtd_message got[8];
    struct ndt_pose_message truth = {.frame_id = "map", .has_pose = 1, .pose = ndt_pose_identity()};
    send_scan(1);
    send_bytes("", 0, 0);                               /* empty */
    send_bytes(garbage, sizeof(garbage), 0);            /* not a msgpack map */
    send_bytes("\x82\xa1v\x01\xa4type\xa4scan", 15, 0); /* a scan without header */
    ck_assert_int_eq(ndt_pose_message_encode(&frame, NDT_MESSAGE_TRUTH, &truth, &err), NDT_OK);
    send_bytes(frame.data, frame.size, 0); /* not for this socket */
    encode_scan(2);
    send_bytes(frame.data, frame.size, ZMQ_SNDMORE);
    send_bytes(frame.data, frame.size, ZMQ_SNDMORE);
    send_bytes(frame.data, frame.size, 0); /* one message of three parts */
    send_scan(3);
    wait_for_frames(7);
    live_until(ndtd_queue_counters(queue).scans_waiting == 2);
    ck_assert_uint_eq(ndtd_receiver_counters(receiver).bad, 5);
    ck_assert_uint_eq(ndtd_receiver_counters(receiver).scans, 2);
    ck_assert_uint_eq(drain(got, 8), 2);
    ck_assert_uint_eq(got[0].scan.seq, 1);
    ck_assert_uint_eq(got[1].scan.seq, 3);
}

/* A scan with damaged points is answered and never queued. */
TEST(test_damaged_points)
{
    struct ndtd_message got[8];
    encode_scan(9);
    send_bytes(frame.data, frame.size - 1, 0);
    send_scan(10);
    wait_for_frames(2);
    live_until(ndtd_queue_counters(queue).scans_waiting == 1);
    ck_assert_uint_eq(ndtd_receiver_counters(receiver).bad, 1);
    const struct ndt_result_message message = next_answer();
    ck_assert_uint_eq(message.seq, 9);
    ck_assert_int_eq(message.stamp_ns, 9000);
    ck_assert_int_eq(message.result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(message.result.reason, "scan message"));
    ck_assert_uint_eq(drain(got, 8), 1);
    ck_assert_uint_eq(got[0].scan.seq, 10);
}

/* The bag holds the queued frames, byte for byte. A second recording is refused while one runs. */
TEST(test_recording)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    send_scan(1); /* before */
    wait_for_frames(1);
    ck_assert_int_eq(start_recording(temp_path("a.bag")), NDT_OK);
    ck_assert_int_eq(start_recording(temp_path("b.bag")), NDT_ERR_ARGUMENT);
    ck_assert(!temp_exists(temp_path("b.bag")));
    ck_assert((recorder_status().state == NDTD_RECORDER_RUNNING));
    send_odometry(5);
    send_bytes("x", 1, 0);
    send_scan(2);
    wait_for_frames(4);
    live_until(recorder_status().recorded == 2);
    ck_assert_int_eq(stop_recording(), NDT_OK);
    ck_assert_int_eq(stop_recording(), NDT_ERR_ARGUMENT);
    ck_assert(!(recorder_status().state == NDTD_RECORDER_RUNNING));
    send_scan(3); /* after */
    wait_for_frames(5);
    ck_assert_int_eq(start_recording(temp_path("a.bag")), NDT_ERR_IO);
    ck_assert_int_eq(ndt_bag_open(&reader, temp_path("a.bag"), &err), NDT_OK);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
    ck_assert_uint_eq(record.type, NDT_MESSAGE_ODOMETRY);
    ck_assert_int_gt(record.receive_time_ns, 0);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
    encode_scan(2);
    ck_assert_uint_eq(record.type, NDT_MESSAGE_SCAN);
    ck_assert_uint_eq(record.length, frame.size);
    ck_assert_int_eq(memcmp(record.payload, frame.data, frame.size), 0);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_END);
    ndt_bag_close(reader);
}

/* A write error ends the recording; receiving goes on, and another recording can be started. */
TEST(test_recording_fails)
{
    const struct rlimit tiny = {.rlim_cur = 256, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN); /* write returns EFBIG instead */
    ck_assert_int_eq(start_recording(temp_path("a.bag")), NDT_OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    for (uint64_t seq = 1; seq <= 8; seq++)
        send_scan(seq);
    wait_for_frames(8);
    live_until(recorder_status().failures == 1);
    live_until(!(recorder_status().state == NDTD_RECORDER_RUNNING));
    ck_assert_int_eq(stop_recording(), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(start_recording(temp_path("b.bag")), NDT_OK);
    ck_assert((recorder_status().state == NDTD_RECORDER_RUNNING));
}

/* Finishing the recorder finishes the bag, with what waits. */
TEST(test_close_while_recording)
{
    struct ndt_bag_reader *reader;
    struct ndt_bag_record record;
    ck_assert_int_eq(start_recording(temp_path("a.bag")), NDT_OK);
    send_scan(1);
    wait_for_frames(1);
    ndtd_receiver_close(receiver);
    receiver = NULL;
    ndtd_recorder_finish(recorder);
    ck_assert_int_eq(ndt_bag_open(&reader, temp_path("a.bag"), &err), NDT_OK);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_OK);
    ck_assert_int_eq(ndt_bag_next(reader, &record, &err), NDT_END);
    ndt_bag_close(reader);
}

/* A restarted sender reaches the receiver, and a sender reaches a restarted receiver. */
TEST(test_restarts)
{
    uint8_t subscription;
    zmq_close(sender);
    sender = live_connect(context, ZMQ_XPUB, scans.address);
    ck_assert_int_eq(zmq_recv(sender, &subscription, 1, 0), 1);
    send_scan(1);
    wait_for_frames(1);
    ndtd_receiver_close(receiver);
    ck_assert_int_eq(zmq_recv(sender, &subscription, 1, 0), 1); /* unsubscribed */
    ck_assert_int_eq(subscription, 0);
    ck_assert_int_eq(
        ndtd_receiver_open(&receiver, sockets, &scans, NDTD_RECEIVE_SUB, queue, publisher, recorder, NULL, &err),
        NDT_OK);
    ck_assert_int_eq(zmq_recv(sender, &subscription, 1, 0), 1);
    ck_assert_int_eq(subscription, 1);
    send_scan(2);
    wait_for_frames(1);
}

/* The thread is held up after the first scan; those that come meanwhile have waited since then. */
TEST(test_delay_of_the_thread)
{
    struct ndtd_message got[8];
    atomic_store(&hold, 1);
    send_scan(1);
    live_until(atomic_load(&held));
    const double sent_us = ndt_clock_us();
    send_scan(2);
    send_scan(3);
    live_pause(100);
    const double released_us = ndt_clock_us();
    atomic_store(&hold, 0);
    wait_for_frames(3);
    live_until(ndtd_queue_counters(queue).scans_waiting == 3);
    ck_assert_uint_eq(drain(got, 8), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(got[i].arrival_us <= (i ? sent_us : released_us), "scan %d: %.1f ms of its wait are missing",
                      i + 1, (got[i].arrival_us - sent_us) * 1e-3);
}

static void set_up_pull(void)
{
    set_up_as(NDTD_RECEIVE_PULL, ZMQ_PUSH);
}

FIXTURE(set_up_pull, tear_down)

TEST(test_pull)
{
    for (uint64_t seq = 1; seq <= 5; seq++)
        send_scan(seq);
    wait_for_frames(5);
    ck_assert_uint_eq(next_answer().seq, 1);
    ck_assert_uint_eq(next_answer().seq, 2);
    live_until(ndtd_queue_counters(queue).scans_waiting == 3);
}

/* The queue between receiver and worker: order, drops, several frames at once, closing, ownership of the messages,
 * and two threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/message_queue.h"
#include "ndt/clock.h"
#include "run_tests.h"

static struct ndt_error err;
static struct ndtd_queue *queue;

static void setup(void)
{
    ck_assert_int_eq(ndtd_queue_create(&queue, 3, &err), NDT_OK);
}

static void teardown(void)
{
    ndtd_queue_destroy(queue);
}

/* Messages below and above the 33 bytes that libzmq stores inside a zmq_msg_t. */
enum { MAX_BYTES = 60 };

/* Returns whether a scan was pushed out; its seq is in *out. */
static int push(enum ndt_message_type type, uint64_t seq, uint64_t *out)
{
    zmq_msg_t message;
    struct ndtd_message pushed_out = {0};
    int dropped = 0;
    ck_assert_int_eq(zmq_msg_init_size(&message, 1 + seq % MAX_BYTES), 0);
    memset(zmq_msg_data(&message), (int)(seq & 0xff), zmq_msg_size(&message));
    const struct ndtd_message frame = {.type = type, .scan = {.seq = seq, .stamp_ns = -(int64_t)seq}};
    ck_assert_int_eq(ndtd_queue_push(queue, &frame, &message, &dropped, &pushed_out, &err), NDT_OK);
    ck_assert_uint_eq(zmq_msg_size(&message), 0); /* it was moved */
    zmq_msg_close(&message);
    ck_assert_ptr_null(pushed_out.data);
    if (dropped && out)
        *out = pushed_out.scan.seq;
    return dropped;
}

static void push_scan(uint64_t seq)
{
    ck_assert_int_eq(push(NDT_MESSAGE_SCAN, seq, NULL), 0);
}

static void check_frame(const struct ndtd_message *frame, enum ndt_message_type type, uint64_t seq)
{
    ck_assert_int_eq(frame->type, type);
    ck_assert_uint_eq(frame->scan.seq, seq);
    ck_assert_int_eq(frame->scan.stamp_ns, -(int64_t)seq);
    ck_assert_uint_eq(frame->size, 1 + seq % MAX_BYTES);
    for (size_t i = 0; i < frame->size; i++)
        ck_assert_uint_eq(frame->data[i], seq & 0xff);
}

FIXTURE(setup, teardown)

TEST(frames_come_out_in_order)
{
    struct ndtd_message *frames[8];
    push_scan(1);
    ck_assert_int_eq(push(NDT_MESSAGE_ODOMETRY, 2, NULL), 0);
    push_scan(3);
    ck_assert_int_eq(push(NDT_MESSAGE_GNSS, 4, NULL), 0);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 8, frames, 8), 4);
    check_frame(frames[0], NDT_MESSAGE_SCAN, 1);
    check_frame(frames[1], NDT_MESSAGE_ODOMETRY, 2);
    check_frame(frames[2], NDT_MESSAGE_SCAN, 3);
    check_frame(frames[3], NDT_MESSAGE_GNSS, 4);
    ndtd_queue_release(queue, frames, 4);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 8, frames, 8), 0);
}

TEST(a_batch_ends_with_its_last_scan)
{
    struct ndtd_message *frames[8];
    push_scan(1);
    push_scan(2);
    ck_assert_int_eq(push(NDT_MESSAGE_ODOMETRY, 3, NULL), 0);
    push_scan(4);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 2, frames, 8), 2);
    ndtd_queue_release(queue, frames, 2);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 2, frames, 1), 1);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 3);
    ndtd_queue_release(queue, frames, 1);
    ck_assert_uint_eq(ndtd_queue_counters(queue).scans_waiting, 1);
}

TEST(a_full_queue_pushes_out_the_oldest_scan)
{
    struct ndtd_message *frames[8];
    uint64_t out = 99;
    ck_assert_int_eq(push(NDT_MESSAGE_ODOMETRY, 0, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++)
        push_scan(i);
    ck_assert_int_eq(push(NDT_MESSAGE_SCAN, 4, &out), 1);
    ck_assert_uint_eq(out, 1);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 8, frames, 8), 4);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 0);
    check_frame(frames[1], NDT_MESSAGE_SCAN, 2);
    check_frame(frames[3], NDT_MESSAGE_SCAN, 4);
    ndtd_queue_release(queue, frames, 4);
    const struct ndtd_queue_counters counters = ndtd_queue_counters(queue);
    ck_assert_uint_eq(counters.given, 5);
    ck_assert_uint_eq(counters.dropped, 1);
    ck_assert_uint_eq(counters.scans_waiting, 0);
}

/* Frames that the consumer holds do not count as waiting. */
TEST(frames_held_by_the_consumer_do_not_count)
{
    struct ndtd_message *held[8];
    for (uint64_t i = 0; i < 3; i++)
        push_scan(i);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 8, held, 8), 3);
    for (uint64_t i = 3; i < 6; i++)
        push_scan(i);
    for (uint64_t i = 0; i < 3; i++)
        check_frame(held[i], NDT_MESSAGE_SCAN, i);
    ndtd_queue_release(queue, held, 3);
}

TEST(small_messages_are_bounded)
{
    static struct ndtd_message *frames[NDTD_QUEUE_SMALL + 8];
    for (uint64_t i = 0; i < NDTD_QUEUE_SMALL + 5; i++)
        ck_assert_int_eq(push(NDT_MESSAGE_ODOMETRY, i, NULL), 0);
    ck_assert_uint_eq(ndtd_queue_counters(queue).messages_lost, 5);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 1, frames, NDTD_QUEUE_SMALL + 8), NDTD_QUEUE_SMALL);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 5);
    ndtd_queue_release(queue, frames, NDTD_QUEUE_SMALL);
}

static int freed;

static void count_free(void *data, void *hint)
{
    (void)data, (void)hint;
    freed++;
}

/* A released message is freed when its slot is reused, by the producer, and never by the consumer. */
TEST(the_producer_frees_the_messages)
{
    static uint8_t bytes[100];
    struct ndtd_message *frames[8], frame = {.type = NDT_MESSAGE_SCAN}, out;
    zmq_msg_t message;
    int dropped;
    freed = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(zmq_msg_init_data(&message, bytes, sizeof(bytes), count_free, NULL), 0);
        ck_assert_int_eq(ndtd_queue_push(queue, &frame, &message, &dropped, &out, &err), NDT_OK);
        ck_assert_int_eq(freed, i);
        ck_assert_uint_eq(ndtd_queue_pop(queue, 0, 8, frames, 8), 1);
        ck_assert_ptr_eq(frames[0]->data, bytes);
        ndtd_queue_release(queue, frames, 1);
        ck_assert_int_eq(freed, i);
    }
}

TEST(a_closed_queue_is_drained)
{
    struct ndtd_message *frames[8], frame = {.type = NDT_MESSAGE_SCAN}, out;
    zmq_msg_t message;
    int dropped;
    push_scan(1);
    ck_assert_int_eq(ndtd_queue_closed(queue), 0);
    ndtd_queue_close(queue);
    ck_assert_int_eq(ndtd_queue_closed(queue), 1);
    zmq_msg_init_size(&message, 50);
    ck_assert_int_eq(ndtd_queue_push(queue, &frame, &message, &dropped, &out, &err), NDT_END);
    zmq_msg_close(&message);
    ck_assert_uint_eq(ndtd_queue_pop(queue, 1e6, 8, frames, 8), 1);
    ndtd_queue_release(queue, frames, 1);
    const double start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_pop(queue, 10e6, 8, frames, 8), 0);
    ck_assert_double_lt(ndt_clock_us() - start_us, 5e6);
}

TEST(pop_ends_by_timeout_or_wake)
{
    struct ndtd_message *frames[8];
    double start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_pop(queue, 20e3, 8, frames, 8), 0);
    ck_assert_double_ge(ndt_clock_us() - start_us, 19e3);
    ndtd_queue_wake(queue);
    start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_pop(queue, 10e6, 8, frames, 8), 0);
    ck_assert_double_lt(ndt_clock_us() - start_us, 5e6);
}

TEST(depth_is_checked)
{
    struct ndtd_queue *other;
    ck_assert_int_eq(ndtd_queue_create(&other, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_queue_create(&other, NDTD_QUEUE_MAX_DEPTH + 1, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "9 scans"));
}

/* ---- two threads ---- */

enum { STRESS = 20000 };
static uint64_t stress_dropped;

static void *push_all(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < STRESS; i++) {
        uint64_t out;
        stress_dropped += (uint64_t)push(i % 4 ? NDT_MESSAGE_SCAN : NDT_MESSAGE_ODOMETRY, i, &out);
    }
    ndtd_queue_close(queue);
    return NULL;
}

TEST(producer_and_consumer_at_once)
{
    pthread_t producer;
    struct ndtd_message *frames[16];
    uint64_t scans = 0, small = 0, next = 0;
    ck_assert_int_eq(pthread_create(&producer, NULL, push_all, NULL), 0);
    for (int closed = 0; !closed;) {
        closed = ndtd_queue_closed(queue);
        size_t count;
        while ((count = ndtd_queue_pop(queue, 1e3, 3, frames, 16)) > 0) {
            for (size_t i = 0; i < count; i++) {
                ck_assert_uint_ge(frames[i]->scan.seq, next);
                next = frames[i]->scan.seq + 1;
                check_frame(frames[i], frames[i]->scan.seq % 4 ? NDT_MESSAGE_SCAN : NDT_MESSAGE_ODOMETRY,
                            frames[i]->scan.seq);
                scans += frames[i]->type == NDT_MESSAGE_SCAN;
                small += frames[i]->type == NDT_MESSAGE_ODOMETRY;
            }
            ndtd_queue_release(queue, frames, count);
        }
    }
    pthread_join(producer, NULL);
    const struct ndtd_queue_counters counters = ndtd_queue_counters(queue);
    ck_assert_uint_eq(counters.dropped, stress_dropped);
    ck_assert_uint_eq(scans + counters.dropped, STRESS / 4 * 3);
    ck_assert_uint_eq(small + counters.messages_lost, STRESS / 4);
}

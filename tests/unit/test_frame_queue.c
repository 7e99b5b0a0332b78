/* The queue between receiver and matcher: order, what a full one pushes out, batches, the end, and two threads at
 * it. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/frame_queue.h"
#include "ndt/clock.h"

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

/* Returns whether a scan was pushed out; its seq is in *out. */
static int give(enum ndt_message_type type, uint64_t seq, uint64_t *out)
{
    uint8_t bytes[40];
    struct ndtd_waiting_frame pushed = {0};
    int dropped = 0;
    memset(bytes, (int)(seq & 0xff), sizeof(bytes));
    const struct ndtd_waiting_frame frame = {
        .type = type, .data = bytes, .size = 1 + seq % sizeof(bytes), .seq = seq, .stamp_ns = -(int64_t)seq};
    ck_assert_int_eq(ndtd_queue_give(queue, &frame, &dropped, &pushed, &err), NDT_OK);
    if (dropped && out)
        *out = pushed.seq;
    return dropped;
}

static void give_scan(uint64_t seq)
{
    ck_assert_int_eq(give(NDT_MESSAGE_SCAN, seq, NULL), 0);
}

static void check_frame(const struct ndtd_waiting_frame *frame, enum ndt_message_type type, uint64_t seq)
{
    ck_assert_int_eq(frame->type, type);
    ck_assert_uint_eq(frame->seq, seq);
    ck_assert_int_eq(frame->stamp_ns, -(int64_t)seq);
    ck_assert_uint_eq(frame->size, 1 + seq % 40);
    for (size_t i = 0; i < frame->size; i++)
        ck_assert_uint_eq(frame->data[i], seq & 0xff);
}

START_TEST(frames_come_out_in_order)
{
    struct ndtd_waiting_frame *frames[8];
    give_scan(1);
    ck_assert_int_eq(give(NDT_MESSAGE_ODOMETRY, 2, NULL), 0);
    give_scan(3);
    ck_assert_int_eq(give(NDT_MESSAGE_GNSS, 4, NULL), 0);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 8, frames, 8), 4);
    check_frame(frames[0], NDT_MESSAGE_SCAN, 1);
    check_frame(frames[1], NDT_MESSAGE_ODOMETRY, 2);
    check_frame(frames[2], NDT_MESSAGE_SCAN, 3);
    check_frame(frames[3], NDT_MESSAGE_GNSS, 4);
    ndtd_queue_put_back(queue, frames, 4);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 8, frames, 8), 0);
}
END_TEST

START_TEST(a_batch_ends_with_its_last_scan)
{
    struct ndtd_waiting_frame *frames[8];
    give_scan(1);
    give_scan(2);
    ck_assert_int_eq(give(NDT_MESSAGE_ODOMETRY, 3, NULL), 0);
    give_scan(4);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 2, frames, 8), 2);
    ndtd_queue_put_back(queue, frames, 2);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 2, frames, 1), 1);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 3);
    ndtd_queue_put_back(queue, frames, 1);
    ck_assert_uint_eq(ndtd_queue_counters(queue).scans_waiting, 1);
}
END_TEST

START_TEST(a_full_queue_pushes_out_the_oldest_scan)
{
    struct ndtd_waiting_frame *frames[8];
    uint64_t out = 99;
    ck_assert_int_eq(give(NDT_MESSAGE_ODOMETRY, 0, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++)
        give_scan(i);
    ck_assert_int_eq(give(NDT_MESSAGE_SCAN, 4, &out), 1);
    ck_assert_uint_eq(out, 1);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 8, frames, 8), 4);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 0);
    check_frame(frames[1], NDT_MESSAGE_SCAN, 2);
    check_frame(frames[3], NDT_MESSAGE_SCAN, 4);
    ck_assert_uint_eq(frames[1]->dropped_before, 0);
    ck_assert_uint_eq(frames[3]->dropped_before, 1);
    ndtd_queue_put_back(queue, frames, 4);
    const struct ndtd_queue_counters counters = ndtd_queue_counters(queue);
    ck_assert_uint_eq(counters.given, 5);
    ck_assert_uint_eq(counters.dropped, 1);
    ck_assert_uint_eq(counters.scans_waiting, 0);
}
END_TEST

/* What the taker holds does not count as waiting. */
START_TEST(there_is_room_while_the_taker_works)
{
    struct ndtd_waiting_frame *held[8];
    for (uint64_t i = 0; i < 3; i++)
        give_scan(i);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 8, held, 8), 3);
    for (uint64_t i = 3; i < 6; i++)
        give_scan(i);
    for (uint64_t i = 0; i < 3; i++)
        check_frame(held[i], NDT_MESSAGE_SCAN, i);
    ndtd_queue_put_back(queue, held, 3);
}
END_TEST

START_TEST(small_messages_are_bounded)
{
    static struct ndtd_waiting_frame *frames[NDTD_QUEUE_SMALL + 8];
    for (uint64_t i = 0; i < NDTD_QUEUE_SMALL + 5; i++)
        ck_assert_int_eq(give(NDT_MESSAGE_ODOMETRY, i, NULL), 0);
    ck_assert_uint_eq(ndtd_queue_counters(queue).small_lost, 5);
    ck_assert_uint_eq(ndtd_queue_take(queue, 0, 1, frames, NDTD_QUEUE_SMALL + 8), NDTD_QUEUE_SMALL);
    check_frame(frames[0], NDT_MESSAGE_ODOMETRY, 5);
    ndtd_queue_put_back(queue, frames, NDTD_QUEUE_SMALL);
}
END_TEST

START_TEST(a_closed_queue_is_drained)
{
    struct ndtd_waiting_frame *frames[8], frame = {.type = NDT_MESSAGE_SCAN}, out;
    int dropped;
    give_scan(1);
    ck_assert_int_eq(ndtd_queue_closed(queue), 0);
    ndtd_queue_close(queue);
    ck_assert_int_eq(ndtd_queue_closed(queue), 1);
    ck_assert_int_ne(ndtd_queue_give(queue, &frame, &dropped, &out, &err), NDT_OK);
    ck_assert_uint_eq(ndtd_queue_take(queue, 1e6, 8, frames, 8), 1);
    ndtd_queue_put_back(queue, frames, 1);
    const double start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_take(queue, 10e6, 8, frames, 8), 0);
    ck_assert_double_lt(ndt_clock_us() - start_us, 5e6);
}
END_TEST

START_TEST(waiting_ends_with_time_or_a_wake)
{
    struct ndtd_waiting_frame *frames[8];
    double start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_take(queue, 20e3, 8, frames, 8), 0);
    ck_assert_double_ge(ndt_clock_us() - start_us, 19e3);
    ndtd_queue_wake(queue);
    start_us = ndt_clock_us();
    ck_assert_uint_eq(ndtd_queue_take(queue, 10e6, 8, frames, 8), 0);
    ck_assert_double_lt(ndt_clock_us() - start_us, 5e6);
}
END_TEST

START_TEST(depth_is_checked)
{
    struct ndtd_queue *other;
    ck_assert_int_eq(ndtd_queue_create(&other, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndtd_queue_create(&other, NDTD_QUEUE_MAX_DEPTH + 1, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "9 scans"));
}
END_TEST

/* ---- two threads ---- */

enum { STRESS = 20000 };
static uint64_t stress_dropped;

static void *give_all(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < STRESS; i++) {
        uint64_t out;
        stress_dropped += (uint64_t)give(i % 4 ? NDT_MESSAGE_SCAN : NDT_MESSAGE_ODOMETRY, i, &out);
    }
    ndtd_queue_close(queue);
    return NULL;
}

START_TEST(giver_and_taker_at_once)
{
    pthread_t giver;
    struct ndtd_waiting_frame *frames[16];
    uint64_t scans = 0, small = 0, next = 0;
    ck_assert_int_eq(pthread_create(&giver, NULL, give_all, NULL), 0);
    for (int closed = 0; !closed;) {
        closed = ndtd_queue_closed(queue);
        size_t count;
        while ((count = ndtd_queue_take(queue, 1e3, 3, frames, 16)) > 0) {
            for (size_t i = 0; i < count; i++) {
                ck_assert_uint_ge(frames[i]->seq, next);
                next = frames[i]->seq + 1;
                check_frame(frames[i], frames[i]->seq % 4 ? NDT_MESSAGE_SCAN : NDT_MESSAGE_ODOMETRY,
                            frames[i]->seq);
                scans += frames[i]->type == NDT_MESSAGE_SCAN;
                small += frames[i]->type == NDT_MESSAGE_ODOMETRY;
            }
            ndtd_queue_put_back(queue, frames, count);
        }
    }
    pthread_join(giver, NULL);
    const struct ndtd_queue_counters counters = ndtd_queue_counters(queue);
    ck_assert_uint_eq(counters.dropped, stress_dropped);
    ck_assert_uint_eq(scans + counters.dropped, STRESS / 4 * 3);
    ck_assert_uint_eq(small + counters.small_lost, STRESS / 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frame_queue");
    TCase *all = tcase_create("frame_queue");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, frames_come_out_in_order);
    tcase_add_test(all, a_batch_ends_with_its_last_scan);
    tcase_add_test(all, a_full_queue_pushes_out_the_oldest_scan);
    tcase_add_test(all, there_is_room_while_the_taker_works);
    tcase_add_test(all, small_messages_are_bounded);
    tcase_add_test(all, a_closed_queue_is_drained);
    tcase_add_test(all, waiting_ends_with_time_or_a_wake);
    tcase_add_test(all, depth_is_checked);
    tcase_add_test(all, giver_and_taker_at_once);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* The matching thread: every scan is answered once, with the results of the pipeline; deadlines, updates, malformed
 * frames, timings, allocations. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocation_counter.h"
#include "ndt/clock.h"
#include "ndtd/worker.h"
#include "run_tests.h"
#include "street_drive.h"

enum { ANSWERS = 64 };

static struct ndtd_queue *queue;
static struct ndtd_worker *worker;
static struct ndt_result_message answers[ANSWERS];
static unsigned long allocations_at[ANSWERS];
static size_t answer_count;
static sem_t answered;

static enum ndt_status keep(void *context, const struct ndt_result_message *result, struct ndt_error *ignored)
{
    (void)context, (void)ignored;
    allocations_at[answer_count] = allocations;
    answers[answer_count++] = *result;
    sem_post(&answered);
    return NDT_OK;
}

static void setup(void)
{
    street_drive_make();
    street_drive_set("live.budget_ms", "60000");
    street_drive_set("autotune.limit_ms", "60000"); /* a busy machine measures slowly */
    answer_count = 0;
    sem_init(&answered, 0, 0);
    must(ndtd_queue_create(&queue, 8, &err));
    worker = NULL;
}

static void teardown(void)
{
    ndtd_worker_stop(worker);
    ndtd_queue_destroy(queue);
    sem_destroy(&answered);
    street_drive_free();
}

static void start(struct ndt_map *map)
{
    const struct ndtd_worker_parts parts = {
        .settings = street_drive_snapshot(), .queue = queue, .map = map, .sink = {.send = keep}};
    must(ndtd_worker_start(&worker, &parts, &err));
}

static struct ndtd_message frame_of(enum ndt_message_type type, const struct ndt_buffer *encoded)
{
    struct ndtd_message frame = {
        .type = type, .data = encoded->data, .size = encoded->size, .arrival_us = ndt_clock_us()};
    if (type == NDT_MESSAGE_SCAN && ndt_scan_header_decode(frame.data, frame.size, &frame.scan, &err) != NDT_OK)
        abort(); /* no macro of Check: they allocate */
    return frame;
}

/* Queues the bytes that the frame points to; nothing is copied. */
static enum ndt_status push(const struct ndtd_message *frame)
{
    struct ndtd_message pushed_out;
    int dropped;
    zmq_msg_t message;
    zmq_msg_init_data(&message, (void *)frame->data, frame->size, NULL, NULL);
    return ndtd_queue_push(queue, frame, &message, &dropped, &pushed_out, &err);
}

static void push_scan(size_t i)
{
    const struct ndtd_message frame = frame_of(NDT_MESSAGE_SCAN, &drive.scans[i]);
    must(push(&frame));
}

static void push_start(void)
{
    const struct ndtd_message frame = frame_of(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    must(push(&frame));
}

static const struct ndt_result_message *send_request(size_t i)
{
    push_scan(i);
    sem_wait(&answered);
    ck_assert_uint_eq(answers[answer_count - 1].seq, i);
    return &answers[answer_count - 1];
}

FIXTURE(setup, teardown)

TEST(results_equal_those_of_the_pipeline)
{
    struct ndtd_pipeline *pipeline;
    struct ndtd_scan_record record;
    const struct ndtd_message first = frame_of(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    /* A thread builds the field of searches: whether they are possible at the second scan is a matter of time. */
    street_drive_set("recovery.enable", "false");
    start(drive.map);
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    must(ndtd_pipeline_process(pipeline, &first, &record, &err));
    push_start();
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        const struct ndt_result_message *got = send_request(i);
        const struct ndtd_message frame = frame_of(NDT_MESSAGE_SCAN, &drive.scans[i]);
        must(ndtd_pipeline_process(pipeline, &frame, &record, &err));
        ck_assert_int_eq(got->result.outcome, NDT_CONVERGED);
        ck_assert_mem_eq(&got->result.T_map_sensor, &record.result.T_map_sensor, sizeof(struct ndt_pose));
        ck_assert_mem_eq(got->result.covariance, record.result.covariance, sizeof(record.result.covariance));
        ck_assert_int_eq(got->stamp_ns, record.stamp_ns);
        ck_assert_uint_eq(got->map_id, drive.map->id);
        ck_assert_uint_ne(got->config_hash, 0);
    }
    ck_assert_uint_eq(answer_count, DRIVE_SCANS);
    ndtd_pipeline_destroy(pipeline);
}

/* One after the other, and together. */
TEST_EACH(waiting_scans_are_answered_at_stop, 0, 2)
{
    street_drive_set("cpu.threads", _i ? "2" : "1");
    street_drive_set("batch.together", _i ? "true" : "false");
    push_start();
    for (size_t i = 0; i < 8; i++)
        push_scan(i);
    start(drive.map);
    ndtd_worker_stop(worker);
    worker = NULL;
    ck_assert_uint_eq(answer_count, 8);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(answers[i].seq, i);
        ck_assert_int_eq(answers[i].result.outcome, NDT_CONVERGED);
    }
    ck_assert_uint_eq(answers[0].queue_depth, 8); /* three taken, five left */
    ck_assert_uint_eq(answers[1].queue_depth, 7);
}

TEST(late_scan_is_answered_with_the_prediction)
{
    start(drive.map);
    push_start();
    (void)send_request(0);
    struct ndtd_message late = frame_of(NDT_MESSAGE_SCAN, &drive.scans[1]);
    late.arrival_us -= 61e6;
    must(push(&late));
    sem_wait(&answered);
    const struct ndt_result_message *got = &answers[1];
    ck_assert_int_eq(got->result.outcome, NDT_DEADLINE);
    ck_assert_int_eq(got->result.iterations, 0);
    ck_assert_double_ge(got->queue_us, 61e6);
    ck_assert_double_lt(ndt_pose_distance_m(&got->result.T_map_sensor, &drive.truth[1]), 0.3);
    ck_assert_int_eq(send_request(2)->result.outcome, NDT_CONVERGED);
}

/* The time that the last of scans that came every gap_s seconds was given. The clock only decides the outcomes. */
static double budget_of_last_s(double gap_s)
{
    const double last_us = ndt_clock_us();
    struct ndtd_worker_status status = {0};
    answer_count = 0;
    start(drive.map);
    push_start();
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        struct ndtd_message frame = frame_of(NDT_MESSAGE_SCAN, &drive.scans[i]);
        frame.arrival_us = last_us - 1e6 * gap_s * (double)(DRIVE_SCANS - 1 - i);
        must(push(&frame));
        sem_wait(&answered);
    }
    while (status.scans < DRIVE_SCANS) /* counted after the answer */
        ndtd_worker_status(worker, &status);
    ndtd_worker_stop(worker); /* closes the queue */
    worker = NULL;
    ndtd_queue_destroy(queue);
    must(ndtd_queue_create(&queue, 8, &err));
    return status.budget_us * 1e-6;
}

/* Scans that come ten times a second have 0.1 s each; where none follows for 1.2 s, one has most of a second. */
TEST(scans_that_come_seldom_have_more_time)
{
    street_drive_set("live.budget_ms", "auto");
    ck_assert_double_eq_tol(budget_of_last_s(0.1), 0.1, 1e-6);
    ck_assert_double_eq_tol(budget_of_last_s(1.2), 0.8, 1e-6);
    street_drive_set("live.budget_ms", "100"); /* what is set stays */
    ck_assert_double_eq_tol(budget_of_last_s(1.2), 0.1, 1e-6);
}

/* The autotuner measures with the first map. */
TEST(the_first_map_is_measured_with)
{
    static struct ndtd_autotune_result tuned;
    start(drive.map);
    ndtd_worker_autotune_result(worker, &tuned);
    ck_assert_int_ge(tuned.choice.row, 0);
    ck_assert_uint_eq(tuned.map_id, drive.map->id);
    ck_assert_str_eq(tuned.rows[tuned.choice.row].candidate.backend, "cpu");
    ck_assert_double_eq(tuned.budget_us, 60e6);
}

/* A slow alignment is stopped: the scan is answered after about 30 ms, not after a minute. */
TEST(a_budget_is_kept)
{
    street_drive_set("live.budget_ms", "30");
    street_drive_set("debug.align_delay_ms", "60000");
    start(drive.map);
    push_start();
    const double start_us = ndt_clock_us();
    ck_assert_int_eq(send_request(0)->result.outcome, NDT_DEADLINE);
    ck_assert_double_gt(ndt_clock_us() - start_us, 15e3);
    ck_assert_double_lt(ndt_clock_us() - start_us, 30e6);
}

/* A slow backend, a wrong guess and no convergence: the pose is no worse than the guess. */
TEST(interrupted_pose_is_no_worse_than_the_guess)
{
    struct ndt_pose_message pose = {.stamp_ns = DRIVE_START_NS, .has_pose = 1, .pose = drive.truth[0]};
    street_drive_set("backend.name", "reference");
    street_drive_set("autotune.limit_ms", "100");
    street_drive_set("preprocess.sample_count", "0");
    street_drive_set("preprocess.voxel_m", "0.0");
    street_drive_set("live.budget_ms", "10");
    street_drive_set("ndt.max_iterations", "512");
    const char *const stops[] = {"ndt.coarse_stop_m", "ndt.coarse_stop_deg", "ndt.fine_stop_m",
                                 "ndt.fine_stop_deg", "ndt.fine_stop_gain",  "ndt.coarse_stop_gain"};
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        street_drive_set(stops[i], "0");
    pose.pose.t_m[0] -= 0.4;
    pose.pose.t_m[1] += 0.3;
    start(drive.map);
    ndtd_worker_set_initial_pose(worker, &pose);
    const struct ndt_result_message *got = send_request(0);
    ck_assert_int_eq(got->result.outcome, NDT_DEADLINE);
    ck_assert_double_le(ndt_pose_distance_m(&got->result.T_map_sensor, &drive.truth[0]), 0.501);
}

TEST(inactive_worker_rejects_scans)
{
    start(drive.map);
    push_start();
    ndtd_worker_set_active(worker, 0);
    ck_assert_int_eq(send_request(0)->result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(answers[0].result.reason, "stopped"));
    ndtd_worker_set_active(worker, 1);
    ck_assert_int_eq(send_request(1)->result.outcome, NDT_CONVERGED);
}

TEST(damaged_scan_is_rejected_and_changes_nothing)
{
    start(drive.map);
    push_start();
    struct ndtd_message cut = frame_of(NDT_MESSAGE_SCAN, &drive.scans[3]); /* points beyond the end of the bytes */
    cut.size -= 7;
    must(push(&cut));
    sem_wait(&answered);
    ck_assert_int_eq(answers[0].result.outcome, NDT_REJECTED);
    ck_assert_uint_eq(answers[0].seq, 3);
    ck_assert_uint_gt(strlen(answers[0].result.reason), 10);
    cut.type = NDT_MESSAGE_ODOMETRY;
    must(push(&cut));
    ck_assert_int_eq(send_request(0)->result.outcome, NDT_CONVERGED);
    struct ndtd_worker_status status;
    ndtd_worker_status(worker, &status);
    ck_assert_uint_eq(status.frames_refused, 2);
    ck_assert_uint_eq(answer_count, 2);
}

/* Keeps a result as the publisher does: one that cannot be encoded is not sent. */
static enum ndt_status keep_encoded(void *context, const struct ndt_result_message *result, struct ndt_error *why)
{
    struct ndt_buffer encoded;
    ndt_buffer_init(&encoded);
    const enum ndt_status status = ndt_result_encode(&encoded, result, why);
    ndt_buffer_free(&encoded);
    return status == NDT_OK ? keep(context, result, why) : status;
}

/* The first result is spoilt on its way to the encoder. */
static enum ndt_status spoil_first(void *context, const struct ndt_result_message *result, struct ndt_error *why)
{
    static int calls;
    struct ndt_result_message spoilt = *result;
    if (calls++ == 0)
        spoilt.result.T_map_sensor.t_m[1] = NAN;
    return keep_encoded(context, &spoilt, why);
}

static void start_with(enum ndt_status (*send)(void *, const struct ndt_result_message *, struct ndt_error *))
{
    const struct ndtd_worker_parts parts = {
        .settings = street_drive_snapshot(), .queue = queue, .map = drive.map, .sink = {.send = send}};
    must(ndtd_worker_start(&worker, &parts, &err));
}

static const struct ndt_result_message *must_answer(size_t i, const char *after)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    push_scan(i);
    while (sem_timedwait(&answered, &until) != 0)
        ck_assert_msg(errno == EINTR, "scan %zu is not answered after %s", i, after);
    ck_assert_uint_eq(answers[answer_count - 1].seq, i);
    return &answers[answer_count - 1];
}

/* An initial pose or odometry with numbers of 1e300: an encoder refuses them, bytes do not. */
static void make_absurd(struct ndt_buffer *frame, enum ndt_message_type type, size_t i)
{
    static const uint8_t absurd[9] = {0xcb, 0x7e, 0x37, 0xe4, 0x3c, 0x88, 0x00, 0x75, 0x9c};
    static const uint8_t plain[9] = {0xcb, 0x40, 0x1d}; /* 7.25 */
    const struct ndt_pose_message message = {.stamp_ns = DRIVE_START_NS + DRIVE_STEP_NS * (int64_t)i,
                                             .frame_id = "map",
                                             .has_pose = 1,
                                             .pose = {.t_m = {7.25, 0, 0}, .q_xyzw = {0, 0, 0, 1}},
                                             .has_twist = 1,
                                             .twist = {{7.25, 0, 0}, {0, 0, 0}}};
    ndt_buffer_init(frame);
    must(ndt_pose_message_encode(frame, type, &message, &err));
    for (size_t at = 0; at + sizeof(plain) <= frame->size; at++)
        if (memcmp(frame->data + at, plain, sizeof(plain)) == 0)
            memcpy(frame->data + at, absurd, sizeof(absurd));
}

TEST(no_message_silences_the_daemon)
{
    static const enum ndt_message_type types[] = {NDT_MESSAGE_INITIAL_POSE, NDT_MESSAGE_ODOMETRY};
    start_with(keep_encoded);
    push_start();
    must_answer(0, "the initial pose");
    for (size_t k = 0; k < 2; k++) {
        struct ndt_buffer absurd;
        make_absurd(&absurd, types[k], 2 * k + 1);
        const struct ndtd_message frame = frame_of(types[k], &absurd);
        must(push(&frame));
        for (size_t i = 2 * k + 1; i < 2 * k + 3; i++) {
            const struct ndt_result_message *got = must_answer(i, ndt_message_name(types[k]));
            ck_assert_int_eq(got->result.outcome, NDT_CONVERGED);
            ck_assert_double_lt(ndt_pose_distance_m(&got->result.T_map_sensor, &drive.truth[i]), 0.1);
        }
        ndt_buffer_free(&absurd);
    }
}

TEST(a_result_that_cannot_be_encoded_is_rejected)
{
    start_with(spoil_first);
    push_start();
    const struct ndt_result_message *got = must_answer(0, "a result that is not finite");
    ck_assert_int_eq(got->result.outcome, NDT_REJECTED);
    ck_assert_ptr_nonnull(strstr(got->result.reason, "not finite"));
    ck_assert_int_eq(must_answer(1, "that")->result.outcome, NDT_CONVERGED);
}

TEST(no_map_and_no_guess_are_reported)
{
    start(NULL);
    ck_assert_int_eq(send_request(0)->result.outcome, NDT_NO_GUESS);
    ck_assert_double_eq(answers[0].result.T_map_sensor.q_xyzw[3], 0); /* an unknown pose is not sent */
    push_start();
    ck_assert_int_eq(send_request(1)->result.outcome, NDT_NO_MAP);
    ck_assert_uint_eq(answers[1].map_id, 0);
}

TEST(initial_pose_without_stamp_applies_to_the_next_scan)
{
    const struct ndt_pose_message pose = {
        .has_pose = 1, .pose = drive.truth[5], .has_twist = 1, .twist = {{8, 0, 0}, {0, 0, 0.05}}};
    start(drive.map);
    ndtd_worker_set_initial_pose(worker, &pose);
    ck_assert_int_eq(send_request(5)->result.outcome, NDT_CONVERGED);
    ck_assert_int_eq(send_request(6)->result.outcome, NDT_CONVERGED);
    ck_assert_double_lt(ndt_pose_distance_m(&answers[1].result.T_map_sensor, &drive.truth[6]), 0.05);
}

TEST(settings_change_between_scans)
{
    start(drive.map);
    push_start();
    const uint64_t before = send_request(0)->config_hash;
    street_drive_set("score_estimation.score_threshold", "1.0");
    ndtd_worker_apply_settings(worker, street_drive_snapshot());
    ck_assert_int_eq(send_request(1)->result.outcome, NDT_LOW_SCORE);
    ck_assert_uint_ne(answers[1].config_hash, before);
}

TEST(timings_are_kept)
{
    static struct ndtd_worker_timing rows[8];
    struct ndtd_worker_status status;
    start(drive.map);
    push_start();
    for (size_t i = 0; i < 7; i++) /* the row of the last one may come after its answer */
        (void)send_request(i);
    const size_t count = ndtd_worker_timings(worker, rows, 3);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(rows[1].record.seq, rows[0].record.seq + 1);
    ck_assert_double_gt(rows[0].latency_us, rows[0].record.align_us);
    ck_assert_ptr_null(rows[0].record.trace);
    ndtd_worker_status(worker, &status);
    ck_assert_uint_ge(status.scans, 6);
    ck_assert_uint_ge(status.outcomes[NDT_CONVERGED], 6);
    ck_assert(status.has_pose);
    ck_assert_uint_gt(strlen(status.backend), 3);
}

TEST(backend_open_failure_ends_the_start)
{
    strcpy(drive.settings.backend, "abacus");
    const struct ndtd_worker_parts parts = {
        .settings = street_drive_snapshot(), .queue = queue, .sink = {.send = keep}};
    ck_assert_int_eq(ndtd_worker_start(&worker, &parts, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "abacus"));
    ck_assert_ptr_null(worker);
}

TEST(nothing_is_allocated_after_warm_up)
{
    if (!COUNTS_ALLOCATIONS)
        return;
    street_drive_set("recovery.check_s", "0"); /* the thread that checks against the whole map allocates */
    push_start();
    for (size_t i = 0; i < 5; i++) /* before the worker starts, so that every slot is used, however slow this is */
        push_scan(i);
    start(drive.map);
    for (size_t i = 0; i < 5; i++)
        sem_wait(&answered);
    for (size_t i = 5; i < DRIVE_SCANS; i++) { /* Check's macros allocate: none of them in between */
        const struct ndtd_message frame = frame_of(NDT_MESSAGE_SCAN, &drive.scans[i]);
        if (push(&frame) != NDT_OK)
            abort();
        sem_wait(&answered);
    }
    ck_assert_uint_gt(allocations_at[0], 0);
    for (size_t i = 6; i < DRIVE_SCANS; i++)
        ck_assert_uint_eq(allocations_at[i], allocations_at[5]);
}

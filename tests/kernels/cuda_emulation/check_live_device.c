/** @file
 * @brief The matching thread and its searches on the emulated device: a kernel that hangs, a device that fails, and
 * backend.name auto. Every scan is answered, before its deadline, with the pose where it was taken. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backends.h"
#include "cuda_runtime_api.h"
#include "ndt/clock.h"
#include "ndtd/worker.h"
#include "street_drive.h"

enum { POLLS = 60000, FAILS_AT = 4 };
static const double NEAR_M = 0.3;

static struct ndtd_queue *queue;
static struct ndtd_map_loader *loader;
static struct ndtd_worker *worker;
static struct ndt_result_message answers[DRIVE_SCANS];
static size_t answer_count;
static sem_t answered;
static FILE *log_file; /* stderr meanwhile */

static enum ndt_status keep(void *context, const struct ndt_result_message *result, struct ndt_error *ignored)
{
    (void)context, (void)ignored;
    answers[answer_count++] = *result;
    sem_post(&answered);
    return NDT_OK;
}

static void set(const char *name, const char *text)
{
    must(ndtd_option_set_text(&drive.settings, name, text, &err));
    must(ndtd_settings_finish(&drive.settings, &err));
}

static void setup(void)
{
    log_file = tmpfile();
    ck_assert_int_ge(dup2(fileno(log_file), STDERR_FILENO), 0);
    ndt_backends_own_process();
    street_drive_make();
    set("backend.name", "cuda-emulated");
    set("live.budget_ms", "10000");
    set("preprocess.sample_count", "128"); /* a launch of the emulation may take no large part of the budget */
    answer_count = 0;
    sem_init(&answered, 0, 0);
    must(ndtd_queue_create(&queue, 8, &err));
}

static void start(void)
{
    const struct ndtd_map_loader_config config = {.map = drive.settings.map};
    must(ndtd_map_loader_create(&loader, &config, &err));
    const struct ndtd_worker_parts parts = {.settings = street_drive_snapshot(),
                                            .queue = queue,
                                            .loader = loader,
                                            .map = drive.map,
                                            .sink = {.send = keep}};
    must(ndtd_worker_start(&worker, &parts, &err));
}

static void teardown(void)
{
    ndtd_worker_stop(worker);
    ndtd_map_loader_destroy(loader);
    ndtd_queue_destroy(queue);
    sem_destroy(&answered);
    street_drive_free();
    fclose(log_file);
}

static void give(enum ndt_message_type type, const struct ndt_buffer *frame)
{
    struct ndtd_message pushed_out, waiting = {.type = type, .arrival_us = ndt_clock_us()};
    int dropped;
    zmq_msg_t message;
    if (type == NDT_MESSAGE_SCAN)
        must(ndt_scan_header_decode(frame->data, frame->size, &waiting.scan, &err));
    zmq_msg_init_data(&message, frame->data, frame->size, NULL, NULL);
    must(ndtd_queue_push(queue, &waiting, &message, &dropped, &pushed_out, &err));
}

static int has_said(const char *text)
{
    static char said[1 << 16];
    const ssize_t length = pread(fileno(log_file), said, sizeof(said) - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    return strstr(said, text) != NULL;
}

static void expect_said(const char *text)
{
    for (int polls = 0; !has_said(text) && polls < POLLS; polls++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_msg(has_said(text), "the log does not say '%s'", text);
}

/* One scan after the other; `plant` happens before number FAILS_AT, which a machine that is slow enough may answer
 * with its prediction at the deadline. */
static void drive_along(void (*plant)(int after, int count))
{
    give(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < DRIVE_SCANS; i++) {
        if (plant && i == FAILS_AT)
            plant(0, 1);
        give(NDT_MESSAGE_SCAN, &drive.scans[i]);
        sem_wait(&answered);
        ck_assert_uint_eq(answer_count, i + 1);
        const enum ndt_outcome outcome = answers[i].result.outcome;
        ck_assert_msg(outcome == NDT_CONVERGED || (plant && i == FAILS_AT && outcome == NDT_DEADLINE),
                      "scan %zu: outcome %d after %d evaluations", i, (int)outcome,
                      (int)answers[i].result.evaluations);
        const double *t_m = answers[i].result.T_map_sensor.t_m;
        for (int axis = 0; axis < 3; axis++)
            ck_assert_double_le(fabs(t_m[axis] - drive.truth[i].t_m[axis]), NEAR_M);
    }
}

static const char *const pipelines[] = {"fused", "resident"};

static void use_pipeline(const char *name)
{
    must(ndtd_option_set_text(&drive.settings, "cuda.pipeline", name, &err));
    set("cuda.shape", strcmp(name, "resident") == 0 ? "block" : "auto");
}

START_TEST(a_kernel_that_hangs_is_left_to_the_cpu)
{
    use_pipeline(pipelines[_i]);
    start();
    drive_along(emulated_hang_launches);
    emulated_end_hang();
    ck_assert(has_said("warning: backend cuda-emulated: "));
}
END_TEST

START_TEST(a_device_that_fails_is_opened_again)
{
    use_pipeline(pipelines[_i]);
    start();
    drive_along(emulated_fail_launches);
    ck_assert(has_said("warning: backend cuda-emulated: "));
}
END_TEST

/* Either choice is right: the times decide. The scans are matched meanwhile. */
START_TEST(with_auto_searches_are_chosen_beside_the_matching)
{
    set("backend.name", "auto");
    set("recovery.enable", "true");
    start();
    drive_along(NULL);
    expect_said("autotune: searches are scored by ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live_device");
    TCase *all = tcase_create("live_device");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, a_kernel_that_hangs_is_left_to_the_cpu, 0, 2);
    tcase_add_loop_test(all, a_device_that_fails_is_opened_again, 0, 2);
    tcase_add_test(all, with_auto_searches_are_chosen_beside_the_matching);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

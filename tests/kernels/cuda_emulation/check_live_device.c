/** @file
 * @brief The matching thread and its searches on the emulated device: a kernel that hangs, a device that fails, and
 * backend.name auto. Every scan is answered, before its deadline, with the pose where it was taken. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backends.h"
#include "cuda_runtime_api.h"
#include "worker_drive.h"

enum { POLLS = 600000, FAILS_AT = 4 }; /* ten minutes or more: what is waited for comes late on a busy machine */
static const double NEAR_M = 0.3;

static FILE *log_file; /* stderr meanwhile */

static void setup(void)
{
    log_file = tmpfile();
    ck_assert_int_ge(dup2(fileno(log_file), STDERR_FILENO), 0);
    ndt_backends_own_process();
    street_drive_make();
    street_drive_set("backend.name", "cuda-emulated");
    street_drive_set("live.budget_ms", "10000");
    street_drive_set("preprocess.sample_count",
                     "128"); /* a launch of the emulation may take no large part of the budget */
    worker_drive_open();
}

static void teardown(void)
{
    worker_drive_close();
    street_drive_free();
    fclose(log_file);
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

/* Sends one scan after the other; `plant` happens before number FAILS_AT. That one, and on a busy machine those
 * after it as long as the device is being left, may be answered with the prediction at the deadline; the last one
 * converges. */
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
        ck_assert_msg(
            outcome == NDT_CONVERGED || (plant && i >= FAILS_AT && i + 1 < DRIVE_SCANS && outcome == NDT_DEADLINE),
            "scan %zu: outcome %d after %d evaluations", i, (int)outcome, (int)answers[i].result.evaluations);
        const double *t_m = answers[i].result.T_map_sensor.t_m;
        for (int axis = 0; axis < 3; axis++)
            ck_assert_double_le(fabs(t_m[axis] - drive.truth[i].t_m[axis]), NEAR_M);
    }
}

static const char *const pipelines[] = {"fused", "resident"};

/* Without the thread of the searches: its launches on the same device would take what is planted, and its
 * allocations wait for a kernel that hangs, as cudaMalloc does; check_search_loss has the failures of searches. */
static void use_pipeline(const char *name)
{
    street_drive_set("recovery.enable", "false");
    street_drive_set("cuda.pipeline", name);
    street_drive_set("cuda.shape", strcmp(name, "resident") == 0 ? "block" : "auto");
}

FIXTURE(setup, teardown)

TEST_EACH(a_kernel_that_hangs_is_left_to_the_cpu, 0, 2)
{
    use_pipeline(pipelines[_i]);
    worker_drive_start();
    drive_along(emulated_hang_launches);
    emulated_end_hang();
    ck_assert(has_said("warning: backend cuda-emulated: "));
}

TEST_EACH(a_device_that_fails_is_opened_again, 0, 2)
{
    use_pipeline(pipelines[_i]);
    worker_drive_start();
    drive_along(emulated_fail_launches);
    ck_assert(has_said("warning: backend cuda-emulated: "));
}

/* Either choice is right: the times decide. The scans are matched meanwhile, the second one beside a search, if
 * that is ready by then: 128 points are too few to find a place with. */
TEST(with_auto_searches_are_chosen_beside_the_matching)
{
    street_drive_set("preprocess.sample_count", "512");
    street_drive_set("backend.name", "auto");
    street_drive_set("recovery.enable", "true");
    worker_drive_start();
    drive_along(NULL);
    expect_said("autotune: searches are scored by ");
}

/** @file
 * @brief Searches beside the matching with backend.name auto: device or threads by measured times, which are
 * planted here, and a device that fails or hangs in a search. The answers are those of the CPU in each case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_runtime_api.h"
#include "emulated_errors.h"
#include "ndt/backend.h"
#include "ndtd/searcher.h"
#include "search_cases.h"

enum { POLLS = 600000 }; /* ten minutes or more: answers are waited for, not timed */

/* In place of the C library's: the thread of the searches, which other programs on a busy machine would keep from
 * running at all, has the priority of the others. */
int setpriority(__priority_which_t which, id_t who, int value)
{
    (void)which, (void)who, (void)value;
    return 0;
}

static struct search_case in;
static struct ndt_search_result expected;
static char said[1 << 16]; /* on stderr, which is a file meanwhile */
static FILE *log_file;

/* ---- a clock with planted times ---- */

static double engine_us, threads_us, now_us;
static unsigned long calls_at_start;
static int is_running;
static double aligner_us, align_threads_us;
static int turn;

/* The third search of a round borrows the aligner. */
static double planted_align_us(const struct ndt_search_result *result)
{
    (void)result;
    return turn++ % 3 == 2 ? aligner_us : align_threads_us;
}

/* Calls stand in pairs around a search. The engine's searches are known by their calls of the runtime, not by
 * their turn: a measurement that a search has interrupted begins with the engine again. */
static double planted_clock(void)
{
    if (is_running)
        now_us += emulated_calls() > calls_at_start ? engine_us : threads_us;
    calls_at_start = emulated_calls();
    is_running = !is_running;
    return now_us;
}

/* ---- the searcher ---- */

static struct ndtd_searcher *open_searcher(double of_engine_us, double of_threads_us, double of_aligner_us)
{
    struct ndt_backend_config compute;
    struct ndtd_searcher *searcher = NULL;
    struct ndt_error err = {""};
    ndt_backend_config_default(&compute);
    compute.threads = 1;
    engine_us = of_engine_us;
    threads_us = of_threads_us;
    is_running = turn = 0;
    aligner_us = of_aligner_us;
    align_threads_us = 1000;
    const struct ndtd_searcher_config config = {.is_background = 1,
                                                .is_eager = 1,
                                                .compute = &compute,
                                                .backend = "cuda-emulated",
                                                .choice_limit_us = 1e9,
                                                .now_us = planted_clock,
                                                .align_us = planted_align_us};
    check_expect(ndtd_searcher_create(&searcher, &config, &err) == NDT_OK, "the searcher", err.text);
    if (searcher)
        ndtd_searcher_set_map(searcher, in.map);
    return searcher;
}

static const char *log_text(void)
{
    fflush(stderr);
    const ssize_t length = pread(fileno(log_file), said, sizeof(said) - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    return said;
}

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void expect_said(const char *text)
{
    int polls = 0;
    while (!strstr(log_text(), text) && polls++ < POLLS)
        wait_a_little();
    check_expect(strstr(said, text) != NULL, text, "");
}

static void expect_answer_as(struct ndtd_searcher *searcher, int is_near, const char *what)
{
    const struct ndtd_search_request request = {.owner = NDTD_SEARCH_LOCALIZE,
                                                .scan = &in.scan,
                                                .T_base_sensor = ndt_pose_identity(),
                                                .T_upright_sensor = ndt_pose_identity()};
    const struct ndtd_search_answer *answer = NULL;
    struct ndt_error err = {""};
    char text[300] = "";
    check_expect(ndtd_searcher_start(searcher, &request, &err) == NDT_OK, "a search starts", err.text);
    for (int polls = 0; !answer && polls < POLLS; polls++) {
        answer = ndtd_searcher_take(searcher, NDTD_SEARCH_LOCALIZE);
        wait_a_little();
    }
    const int good =
        answer && answer->status == NDT_OK &&
        (is_near ? search_case_near : search_case_same)(&expected, &answer->result, text, sizeof(text));
    check_expect(good, what, answer ? text : "no answer");
}

static void expect_answer(struct ndtd_searcher *searcher, const char *what)
{
    expect_answer_as(searcher, 0, what);
}

static void begin(void)
{
    if (log_file)
        fclose(log_file);
    log_file = tmpfile();
    dup2(fileno(log_file), STDERR_FILENO);
}

/* ---- cases ---- */

static void takes_the_device(void)
{
    begin();
    struct ndtd_searcher *searcher = open_searcher(1000, 5000, 3000);
    expect_said("autotune: searches are scored by cuda-emulated on emulation on the CPU: 1 ms, 5 ms by cpu");
    expect_said("autotune: searches are aligned by cpu");
    expect_answer(searcher, "the device scores a search");
    emulated_fail_launches(0, 1);
    expect_answer(searcher, "the device fails in a search: the threads answer");
    expect_said("searches are scored on the CPU: ");
    expect_said("launch failure");
    emulated_fail_launches(0, 0);
    ndtd_searcher_destroy(searcher);
}

static void leaves_what_hangs(void)
{
    begin();
    struct ndtd_searcher *searcher = open_searcher(1000, 5000, 3000);
    expect_said("autotune: searches are scored by cuda-emulated");
    emulated_hang_launches(0, 1);
    expect_answer(searcher, "the kernel of a search does not end: the threads answer");
    ndtd_searcher_destroy(searcher);
    emulated_end_hang();
}

static void takes_the_threads(void)
{
    begin();
    struct ndtd_searcher *searcher = open_searcher(5000, 1000, 3000);
    expect_said("autotune: searches are scored by cpu");
    emulated_fail_launches(0, 1);
    expect_answer(searcher, "the threads score a search");
    emulated_fail_launches(0, 0);
    check_expect(!strstr(log_text(), "scored on the CPU: "), "the device is left alone", said);
    ndtd_searcher_destroy(searcher);
}

static void takes_the_aligner(void)
{
    begin();
    struct ndtd_searcher *searcher = open_searcher(5000, 1000, 200);
    expect_said("autotune: searches are aligned by cuda-emulated");
    expect_said(": 0.2 ms, 1 ms by cpu");
    expect_answer_as(searcher, 1, "the device aligns the places of a search");
    emulated_fail_launches(0, 1);
    expect_answer(searcher, "the device fails in a search: the threads align its places");
    expect_said("searches are aligned on the CPU: ");
    expect_said("launch failure");
    emulated_fail_launches(0, 0);
    ndtd_searcher_destroy(searcher);
}

static void fails_while_measured(void)
{
    begin();
    emulated_fail_launches(0, 1);
    struct ndtd_searcher *searcher = open_searcher(1000, 5000, 3000);
    expect_answer(searcher, "the device fails while it is measured: the threads score a search");
    check_expect(!strstr(log_text(), "autotune: "), "nothing is chosen", said);
    emulated_fail_launches(0, 0);
    ndtd_searcher_destroy(searcher);
}

static void a_search_comes_first(void)
{
    begin();
    struct ndtd_searcher *searcher = open_searcher(1000, 5000, 3000);
    expect_answer(searcher, "a search that is wanted while the device is measured");
    expect_said("autotune: searches are scored by cuda-emulated");
    ndtd_searcher_destroy(searcher);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {{.name = "device", .run = takes_the_device},
                                              {.name = "threads", .run = takes_the_threads},
                                              {.name = "aligner", .run = takes_the_aligner},
                                              {.name = "failure", .run = fails_while_measured},
                                              {.name = "first", .run = a_search_comes_first},
                                              {.name = "hung", .run = leaves_what_hangs},
                                              {.name = NULL}};
    ndt_backends_own_process();
    check_start(argc, argv, NULL);
    if (!check.is_list) {
        struct ndt_search *search = search_case_make(&in, 90, 1) ? search_case_open(&in, NULL, NULL) : NULL;
        if (!search || !search_case_run(&in, search, NDT_SEARCH_AUTO, 0, &expected))
            return CHECK_FAILED;
        ndt_search_destroy(search);
    }
    const int code = check_run(cases);
    search_case_free(&in);
    return code;
}

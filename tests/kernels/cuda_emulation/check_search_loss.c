/** @file
 * @brief A search whose device fails, has too little memory or does not exist, beside a backend on the same device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_runtime_api.h"
#include "search_cases.h"

static const char *const NAME = "cuda-emulated";
static struct search_case in;
static struct ndt_search_result expected;

static struct ndt_search *open_search(void)
{
    return search_case_open(&in, ndt_backend_search_engine(NAME), NULL);
}

/* The result is that of the CPU; `reason`: part of the reported failure, NULL: there is none. */
static void expect_result(struct ndt_search *search, const char *what, const char *reason)
{
    static struct ndt_search_result result;
    char text[300] = "";
    if (!search || !search_case_run(&in, search, NDT_SEARCH_QUICK, 0, &result))
        return;
    const char *failure = ndt_search_engine_failure(search);
    const int same = search_case_same(&expected, &result, text, sizeof(text));
    check_expect(same, what, same ? "" : text);
    check_expect(reason ? failure && strstr(failure, reason) : !failure, "what it reports", failure ? failure : "");
    ndt_search_describe(search, text, sizeof(text));
    check_expect(strncmp(text, reason ? "cpu " : NAME, 4) == 0, "what scores", text);
}

static void is_lost(void)
{
    struct ndt_search *search = open_search();
    expect_result(search, "a good search", NULL);
    emulated_fail_launches(0, 1);
    expect_result(search, "the device fails: the threads take over", "launch failure");
    expect_result(search, "and the next search", "launch failure");
    ndt_search_destroy(search);
    emulated_fail_launches(0, 0);
}

static void has_no_memory(void)
{
    setenv("NDT_EMULATION_MEMORY", "5000000", 1);
    struct ndt_search *search = open_search();
    expect_result(search, "no memory for a search", "no ");
    ndt_search_destroy(search);
    setenv("NDT_EMULATION_MEMORY", "7376000", 1);
    search = open_search();
    expect_result(search, "no memory for the field", "the field of a map");
    unsetenv("NDT_EMULATION_MEMORY");
    struct ndt_error err = {""};
    check_expect(ndt_search_set_map(search, in.map, in.field, &err) == NDT_OK, "the map again", err.text);
    expect_result(search, "and now there is memory", NULL);
    ndt_search_destroy(search);
}

/* ---- alignments on a backend ---- */

static struct ndt_backend *lent_backend;

/* A search without an engine that borrows an aligner, whose backend has no failover. */
static struct ndt_search *open_lent(struct ndt_aligner **aligner, double until_us)
{
    struct ndt_search *search = search_case_open(&in, NULL, NULL);
    struct ndt_backend_config config;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    config.pipeline = "resident-block";
    config.max_points = 1 << 13;
    enum ndt_status status = ndt_backend_open(&lent_backend, NAME, &config, &err);
    if (status == NDT_OK)
        status = ndt_aligner_create(aligner, lent_backend, &err);
    if (status == NDT_OK)
        status = ndt_aligner_set_map(*aligner, in.map, &err);
    check_expect(status == NDT_OK, "an aligner on the device", err.text);
    if (search && status == NDT_OK)
        ndt_search_lend_aligner(search, *aligner, until_us);
    return search;
}

static void close_lent(struct ndt_search *search, struct ndt_aligner *aligner)
{
    ndt_search_destroy(search);
    ndt_aligner_destroy(aligner);
    if (lent_backend)
        lent_backend->ops->close(lent_backend);
}

/* Runs a search; near: every candidate of the device is one of the CPU. reason: part of the failure, NULL: none. */
static void expect_lent(struct ndt_search *search, const char *what, int is_near, const char *reason)
{
    static struct ndt_search_result result;
    char text[300] = "";
    if (!search || !search_case_run(&in, search, NDT_SEARCH_QUICK, 0, &result))
        return;
    const char *failure = ndt_search_lent_failure(search);
    const int good = is_near ? search_case_near(&expected, &result, text, sizeof(text))
                             : search_case_same(&expected, &result, text, sizeof(text));
    check_expect(good, what, text);
    check_expect(reason ? failure && strstr(failure, reason) : !failure, "what it reports", failure ? failure : "");
}

static void aligns_in_one_launch(void)
{
    struct ndt_aligner *aligner = NULL;
    struct ndt_backend_counters before, after;
    struct ndt_search *search = open_lent(&aligner, 0);
    lent_backend->ops->counters(lent_backend, &before);
    expect_lent(search, "places are aligned on the device", 1, NULL);
    lent_backend->ops->counters(lent_backend, &after);
    check_expect(after.launches - before.launches == 2, "a launch for all places, and one for the best again", "");
    check_expect(expected.count > 1, "there are several", "");
    emulated_fail_launches(1, 1);
    expect_lent(search, "the device fails in the second launch: the threads align these places", 1,
                "launch failure");
    expect_lent(search, "and all of the next search", 0, "launch failure");
    close_lent(search, aligner);
    emulated_fail_launches(0, 0);
}

static void aligns_without_the_device(void)
{
    struct ndt_aligner *aligner = NULL;
    struct ndt_search *search = open_lent(&aligner, 0);
    emulated_fail_launches(0, 1);
    expect_lent(search, "the device fails: the threads align the same places", 0, "launch failure");
    emulated_fail_launches(0, 0);
    close_lent(search, aligner);
    search = open_lent(&aligner, 1);
    expect_lent(search, "no time is left for the device: likewise", 0, "took too long");
    close_lent(search, aligner);
    search = open_lent(&aligner, 0);
    emulated_hang_launches(0, 1);
    expect_lent(search, "a launch that does not end: likewise", 0, "");
    close_lent(search, aligner);
    emulated_end_hang();
}

/* The emulation ends the program when pinned memory is written that a queued copy reads. */
static void keeps_fields(void)
{
    static uint8_t bits[NDT_DENSE_EDGE_1M * NDT_DENSE_EDGE_1M];
    const struct ndt_dense_tile tiles[] = {{0, 1, 2, {bits, bits}}, {0, 3, 4, {bits, bits}}};
    const struct ndt_dense_ops *ops = ndt_backend_search_engine(NAME);
    struct ndt_dense_engine *engine = NULL;
    struct ndt_error err = {""};
    check_expect(ops->open(&engine, 0, &err) == NDT_OK, "an engine", err.text);
    emulated_fail_calls("cudaMemcpyAsync", 1, 1, cudaErrorMemoryAllocation);
    check_expect(ops->set_field(engine, &tiles[0], 1, &err) == NDT_ERR_MEMORY, "a field without memory for a copy",
                 err.text);
    check_expect(ops->set_field(engine, &tiles[1], 1, &err) == NDT_OK, "the next one is staged later", err.text);
    ops->close(engine);
}

static void has_no_device(void)
{
    setenv("NDT_EMULATION_NO_DEVICE", "1", 1);
    struct ndt_search *search = open_search();
    expect_result(search, "no device", "no CUDA device");
    ndt_search_destroy(search);
    unsetenv("NDT_EMULATION_NO_DEVICE");
}

/* ---- beside a backend ---- */

static struct ndt_backend *open_backend(void)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    enum ndt_status status = ndt_backend_open_failover(&backend, NAME, &config, &err);
    if (status == NDT_OK)
        status = backend->ops->set_map(backend, in.map, &err);
    if (status == NDT_OK)
        status = backend->ops->set_scan(backend, &in.scan, &err);
    check_expect(status == NDT_OK, "the backend opens", err.text);
    return backend;
}

static void expect_evaluation(struct ndt_backend *backend, const char *what)
{
    const struct ndt_eval_request request = {.level = 0, .neighbours = NDT_DIRECT7};
    struct ndt_eval sums;
    struct ndt_error err = {""};
    check_expect(backend->ops->eval(backend, &request, &sums, &err) == NDT_OK &&
                     strcmp(backend->ops->name, NAME) == 0,
                 what, err.text);
}

/* The reset takes what the search had on the device. */
static void backend_is_lost(void)
{
    struct ndt_search *search = open_search();
    struct ndt_backend *backend = open_backend();
    if (search && backend) {
        expect_evaluation(backend, "an evaluation");
        expect_result(search, "a search beside a backend", NULL);
        emulated_fail_launches(0, 1);
        expect_evaluation(backend, "the device fails the backend, which opens it again");
        expect_result(search, "the threads take over", "was reset");
        expect_evaluation(backend, "the backend goes on");
        ndt_search_destroy(search);
        search = open_search();
        expect_result(search, "a new search has the device again", NULL);
    }
    ndt_search_destroy(search);
    if (backend)
        backend->ops->close(backend);
}

/* A failure of the search loses the device for the backend as well. */
static void search_is_lost(void)
{
    struct ndt_search *search = open_search();
    struct ndt_backend *backend = open_backend();
    if (search && backend) {
        emulated_fail_launches(0, 1);
        expect_result(search, "the device fails the search", "launch failure");
        expect_evaluation(backend, "the backend opens the device again");
    }
    ndt_search_destroy(search);
    if (backend)
        expect_evaluation(backend, "and keeps it when the search ends");
    if (backend)
        backend->ops->close(backend);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {{.name = "lost", .run = is_lost},
                                              {.name = "memory", .run = has_no_memory},
                                              {.name = "device", .run = has_no_device},
                                              {.name = "reset", .run = backend_is_lost},
                                              {.name = "search", .run = search_is_lost},
                                              {.name = "pinned", .run = keeps_fields},
                                              {.name = "aligner", .run = aligns_in_one_launch},
                                              {.name = "threads", .run = aligns_without_the_device},
                                              {.name = NULL}};
    ndt_backends_own_process();
    check_start(argc, argv, NULL);
    if (!check.is_list) {
        struct ndt_search *search = search_case_make(&in, 90, 1) ? search_case_open(&in, NULL, NULL) : NULL;
        if (!search || !search_case_run(&in, search, NDT_SEARCH_QUICK, 0, &expected))
            return CHECK_FAILED;
        ndt_search_destroy(search);
    }
    const int code = check_run(cases);
    search_case_free(&in);
    return code;
}

/** @file
 * @brief A device that fails, has too little memory or does not exist, on the emulated device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "cuda_runtime_api.h"
#include "ndt/align.h"
#include "ndt/clock.h"
#include "street_world.h"

static const char *const NAME = "cuda-emulated";
static struct {
    struct ndt_map *map;
    struct ndt_cloud scan;
    struct ndt_eval_request request;
} in;

static int make_inputs(void)
{
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    const struct ndt_pose pose = world_pose(&world, 0.5, 0.0);
    const int good = world_build_map(&in.map, &world, 20000, NULL) == NDT_OK &&
                     world_scan(&in.scan, &world, 1, 300, &pose, 20.0, NULL) == NDT_OK;
    in.request = (struct ndt_eval_request){.level = 1, .neighbours = NDT_DIRECT7, .p = {20, 0.4, 2.1, 0, 0, 0}};
    return good;
}

static struct ndt_backend *open_failover(void)
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

static const struct ndt_backend_ops *device_ops(void)
{
    const struct ndt_backend_ops *ops = NULL;
    for (size_t i = 0; ndt_backend_at(i); i++)
        ops = strcmp(ndt_backend_at(i)->name, NAME) == 0 ? ndt_backend_at(i) : ops;
    return ops;
}

static void plain_backend_is_lost(void)
{
    const struct ndt_backend_ops *ops = device_ops();
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    struct ndt_eval sums;
    ndt_backend_config_default(&config);
    if (!ops || ops->open(&backend, &config, &err) != NDT_OK || ops->set_map(backend, in.map, &err) != NDT_OK ||
        ops->set_scan(backend, &in.scan, &err) != NDT_OK) {
        check_expect(0, "the plain backend opens", err.text);
        return;
    }
    emulated_fail_launches(0, 1);
    check_expect(ops->eval(backend, &in.request, &sums, &err) == NDT_ERR_DEVICE, "a failed launch is a lost device",
                 err.text);
    check_expect(ops->eval(backend, &in.request, &sums, &err) == NDT_ERR_DEVICE, "and it stays lost", err.text);
    ops->close(backend);
    check_expect(ops->open(&backend, &config, &err) == NDT_OK, "it can be opened again", "");
    ops->close(backend);
}

/* `lost` failures after the second evaluation; the sums must stay right, and the description must report it. */
static void survives(const char *name_after, int lost)
{
    struct ndt_backend *backend = open_failover();
    struct ndt_error err = {""};
    struct ndt_eval first, again;
    struct ndt_information information;
    char text[1200], what[100];
    if (!backend)
        return;
    check_expect(backend->ops->eval(backend, &in.request, &first, &err) == NDT_OK, "a good evaluation", err.text);
    emulated_fail_launches(0, lost);
    check_expect(backend->ops->eval(backend, &in.request, &again, &err) == NDT_OK, "one after a failure", err.text);
    backend->ops->describe(backend, text, sizeof(text));
    snprintf(what, sizeof(what), "after %d failure%s it is %s", lost, lost == 1 ? "" : "s", name_after);
    check_expect(strcmp(backend->ops->name, name_after) == 0 && strstr(text, "launch failure"), what, text);
    if (strcmp(name_after, NAME) == 0)
        check_expect(memcmp(&first, &again, sizeof(first)) == 0, "bit-equal to before", "");
    check_expect(first.pairs > 0 && first.pairs == again.pairs, "the same pairs", "");
    check_expect(backend->ops->inform(backend, &in.request, &information, &err) == NDT_OK &&
                     information.eval.pairs == first.pairs && information.information[0][0] != 0,
                 "the information too", err.text);
    struct ndt_backend_counters counters;
    backend->ops->counters(backend, &counters);
    check_expect(counters.evaluations >= 2, "counters go on", "");
    backend->ops->close(backend);
    emulated_fail_launches(0, 0);
}

/* A failure, so many good scans, and another failure: then the backend is `name`. */
static void forgets(const char *name, int scans)
{
    struct ndt_backend *backend = open_failover();
    struct ndt_error err = {""};
    struct ndt_eval first, again;
    char text[1200];
    int good = backend != NULL;
    if (!backend)
        return;
    const struct ndt_backend_ops *ops = backend->ops;
    emulated_fail_launches(0, 1);
    good &= ops->eval(backend, &in.request, &first, &err) == NDT_OK && strcmp(ops->name, NAME) == 0;
    for (int i = 0; good && i < scans; i++)
        good = ops->set_scan(backend, &in.scan, &err) == NDT_OK;
    emulated_fail_launches(0, 1);
    good = good && ops->eval(backend, &in.request, &again, &err) == NDT_OK && first.pairs == again.pairs;
    check_expect(good && strcmp(ops->name, name) == 0, "two failures with scans between them", ops->name);
    ops->describe(backend, text, sizeof(text));
    check_expect(strstr(text, "launch failure") != NULL, "the description remembers them all the same", text);
    backend->ops->close(backend);
}

/* A kernel that does not end, in an alignment with a deadline: the CPU answers before it, with its own pose. */
static void answers_in_time(const char *pipeline, int unused)
{
    (void)unused;
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    struct ndt_pose guess = world_pose(&world, 0.5, 0.0);
    struct ndt_backend_config config;
    struct ndt_backend *backends[2] = {NULL, NULL};
    struct ndt_align_params params;
    struct ndt_align_result results[2];
    struct ndt_error err = {""};
    double took_s = 0;
    int good = 1;
    guess.t_m[0] += 0.3;
    ndt_backend_config_default(&config);
    ndt_align_params_default(&params);
    config.pipeline = pipeline;
    for (int i = 0; i < 2; i++) { /* on the CPU, and on the device */
        struct ndt_aligner *aligner = NULL;
        params.deadline_s = i == 0 ? 0 : 1;
        good = good && ndt_backend_open_failover(&backends[i], i == 0 ? "cpu" : NAME, &config, &err) == NDT_OK &&
               ndt_aligner_create(&aligner, backends[i], &err) == NDT_OK &&
               ndt_aligner_set_map(aligner, in.map, &err) == NDT_OK;
        emulated_hang_launches(0, i);
        const double begin_us = ndt_clock_us();
        good = good && ndt_align(aligner, &params, &in.scan, &guess, &results[i], &err) == NDT_OK;
        took_s = (ndt_clock_us() - begin_us) * 1e-6;
        good = good && results[i].outcome == NDT_CONVERGED;
        ndt_aligner_destroy(aligner);
    }
    check_expect(good, "a kernel that hangs does not keep an alignment from its end", err.text);
    printf("     answered after %.3f s of %.3f s\n", took_s, params.deadline_s);
    check_expect(good && took_s < params.deadline_s, "before its deadline", "");
    check_expect(good && memcmp(&results[0].T_map_sensor, &results[1].T_map_sensor, sizeof(guess)) == 0 &&
                     strcmp(backends[1]->ops->name, "cpu") == 0,
                 "by the CPU, with its bits", "");
    emulated_end_hang();
    for (int i = 0; i < 2; i++)
        if (backends[i])
            backends[i]->ops->close(backends[i]);
    for (int i = 0; i < 100 && device_ops()->open(&backends[0], &config, NULL) != NDT_OK; i++)
        backends[0] = NULL;
    check_expect(backends[0] != NULL, "the device can be opened again when the kernel has ended", "");
    device_ops()->close(backends[0]);
}

/* Operations of a lost device must go through the failover backend: an operation that only the device's backend
 * has, or that is inherited although it takes a backend, would be called on the wrong struct. */
static void forgets_no_operation(void)
{
    typedef void (*slot)(void);
    enum { SLOTS = sizeof(struct ndt_backend_ops) / sizeof(slot) };
    const struct ndt_backend_ops *device = device_ops();
    struct ndt_backend_ops inherited;
    slot own[SLOTS], inner[SLOTS], same[SLOTS];
    struct ndt_backend *backend = open_failover();
    int good = 0, bad = 0;
    if (!backend)
        return;
    memset(&inherited, 0, sizeof(inherited));
    inherited.name = device->name;
    inherited.about = device->about;
    inherited.probe = device->probe;
    inherited.open = device->open;
    inherited.pipelines = device->pipelines;
    inherited.plan = device->plan;
    inherited.overheads = device->overheads; /* not offered */
    memcpy(own, backend->ops, sizeof(own));
    memcpy(inner, device, sizeof(inner));
    memcpy(same, &inherited, sizeof(same));
    for (size_t i = 0; i < SLOTS; i++) {
        const int is_wrapped = own[i] && inner[i] && own[i] != inner[i];
        good += is_wrapped;
        bad += inner[i] && !same[i] && !is_wrapped;
    }
    check_expect(bad == 0 && good >= 15, "every operation of the device is wrapped", "");
    check_expect(!backend->ops->overheads && backend->ops->plan == device->plan, "or inherited, or left out", "");
    backend->ops->close(backend);
}

/* The number in the refusal is the largest that works. */
static void fits(struct ndt_backend_config *config, const char *refusal)
{
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    const char *number = strstr(refusal, "enough for ");
    config->max_points = number ? strtoull(number + strlen("enough for "), NULL, 10) : 0;
    check_expect(config->max_points > 0 && ndt_backend_open(&backend, NAME, config, &err) == NDT_OK,
                 "as many points as said do fit", err.text);
    if (backend)
        backend->ops->close(backend);
    config->max_points++;
    check_expect(ndt_backend_open(&backend, NAME, config, &err) == NDT_ERR_MEMORY, "one more does not", err.text);
}

static void refuses(void)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    setenv("NDT_EMULATION_NO_DEVICE", "1", 1);
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_UNSUPPORTED, "no device", err.text);
    unsetenv("NDT_EMULATION_NO_DEVICE");
    config.device = 3;
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_UNSUPPORTED &&
                     strstr(err.text, "cannot be used here") && strstr(err.text, "no CUDA device 3"),
                 "no such device, found before anything is opened", err.text);
    config.device = 0;
    config.pipeline = "nonsense";
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_ARGUMENT, "no such pipeline", err.text);
    config.pipeline = "staged";
    setenv("NDT_EMULATION_MEMORY", "1000000", 1);
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_MEMORY &&
                     strstr(err.text, "enough for"),
                 "too little memory for the scans", err.text);
    fits(&config, err.text);
    config.pipeline = "fused";
    config.max_points = 2000;
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_OK &&
                     backend->ops->set_map(backend, in.map, &err) == NDT_ERR_LIMIT && strstr(err.text, "would fit"),
                 "too little memory for the map", err.text);
    if (backend)
        backend->ops->close(backend);
    unsetenv("NDT_EMULATION_MEMORY");
}

/* ---- failures that are no loss, and other backends on the device ---- */

static struct ndt_backend *open_plain(const char *pipeline, int preprocess)
{
    const struct ndt_backend_ops *ops = device_ops();
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    config.preprocess = preprocess;
    config.max_points = 4000;
    enum ndt_status status = ops->open(&backend, &config, &err);
    if (status == NDT_OK)
        status = ops->set_map(backend, in.map, &err);
    if (status == NDT_OK)
        status = ops->set_scan(backend, &in.scan, &err);
    check_expect(status == NDT_OK, "the plain backend opens", err.text);
    return backend;
}

static enum ndt_status evaluate(struct ndt_backend *backend, struct ndt_eval *sums, struct ndt_error *err)
{
    return backend->ops->eval(backend, &in.request, sums, err);
}

static int evaluates(struct ndt_backend *backend, const struct ndt_eval *wanted)
{
    struct ndt_eval sums;
    return evaluate(backend, &sums, NULL) == NDT_OK && memcmp(&sums, wanted, sizeof(sums)) == 0;
}

/* No memory for a launch: the plain backend goes on, the failover backend opens it again. */
static void has_no_memory(void)
{
    struct ndt_eval wanted, sums;
    struct ndt_error err = {""};
    char text[1200];
    struct ndt_backend *backend = open_plain("fused", 0);
    check_expect(evaluate(backend, &wanted, &err) == NDT_OK, "an evaluation", err.text);
    emulated_fail_launches_with(0, 1, cudaErrorMemoryAllocation);
    check_expect(evaluate(backend, &sums, &err) == NDT_ERR_MEMORY, "no memory for a launch", err.text);
    check_expect(evaluates(backend, &wanted), "is no loss", "");
    backend->ops->close(backend);
    backend = open_failover();
    emulated_fail_launches_with(0, 1, cudaErrorMemoryAllocation);
    check_expect(evaluates(backend, &wanted), "but a reason to open the device again", "");
    backend->ops->describe(backend, text, sizeof(text));
    check_expect(strcmp(backend->ops->name, NAME) == 0 && strstr(text, "no memory for launch"), "as it says", text);
    emulated_fail_launches_with(0, 1, cudaErrorMemoryAllocation);
    check_expect(evaluate(backend, &sums, &err) == NDT_OK && sums.pairs == wanted.pairs &&
                     strcmp(backend->ops->name, "cpu") == 0,
                 "and then to use the CPU", err.text);
    backend->ops->close(backend);
}

/* A candidate that the device refuses, or that has no memory, is closed beside the backend in use. */
static void others_live_on(const char *unused, int code)
{
    (void)unused;
    struct ndt_eval wanted, sums;
    struct ndt_backend *in_use = open_plain("fused", 0), *candidate = open_plain("staged", 0);
    check_expect(evaluate(in_use, &wanted, NULL) == NDT_OK && evaluate(candidate, &sums, NULL) == NDT_OK,
                 "two backends on a device", "");
    emulated_fail_launches_with(0, 1, (cudaError_t)code);
    check_expect(evaluate(candidate, &sums, NULL) != NDT_OK, "one of them fails", "");
    candidate->ops->close(candidate);
    check_expect(evaluates(in_use, &wanted), "the other one does not notice", "");
    in_use->ops->close(in_use);
}

static void *try_candidates(void *good)
{
    for (int i = 0; i < 12; i++) {
        struct ndt_backend_config config;
        struct ndt_backend *backend = NULL;
        struct ndt_eval sums;
        ndt_backend_config_default(&config);
        config.pipeline = i % 2 ? "staged" : "resident-block";
        config.max_points = 2000;
        if (device_ops()->open(&backend, &config, NULL) != NDT_OK ||
            backend->ops->set_map(backend, in.map, NULL) != NDT_OK ||
            backend->ops->set_scan(backend, &in.scan, NULL) != NDT_OK)
            *(int *)good = 0;
        emulated_fail_calls("cudaMemsetAsync", 0, 1, cudaErrorInvalidConfiguration); /* the next open */
        if (backend && evaluate(backend, &sums, NULL) != NDT_OK)
            *(int *)good = 0;
        struct ndt_backend *refused = NULL;
        *(int *)good &= device_ops()->open(&refused, &config, NULL) == NDT_ERR_DEVICE;
        if (backend)
            backend->ops->close(backend);
    }
    return NULL;
}

static void two_at_once(void)
{
    struct ndt_eval wanted;
    struct ndt_backend *in_use = open_plain("fused", 0);
    pthread_t thread;
    int good = 1, same = evaluate(in_use, &wanted, NULL) == NDT_OK;
    const int started = pthread_create(&thread, NULL, try_candidates, &good) == 0;
    for (int i = 0; i < 60; i++)
        same &= in_use->ops->set_scan(in_use, &in.scan, NULL) == NDT_OK && evaluates(in_use, &wanted);
    if (started)
        pthread_join(thread, NULL);
    check_expect(started && good, "candidates are opened and refused in another thread", "");
    check_expect(same && evaluates(in_use, &wanted), "beside a backend in use, with the same bits", "");
    in_use->ops->close(in_use);
}

/* ---- pinned memory ---- */

static void refuse_a_solve(struct ndt_backend *backend)
{
    const struct ndt_newton_rules rules = {.level_count = 0};
    struct ndt_solve_item item = {.scan = 0};
    check_expect(backend->ops->solve(backend, &rules, &item, 1, 0, NULL) == NDT_ERR_ARGUMENT &&
                     backend->ops->solve(backend, &rules, NULL, 0, 0, NULL) == NDT_ERR_ARGUMENT,
                 "a solve that is refused waits for nothing", "");
}

/* The emulation ends the program when memory is written that a queued copy reads. */
static void keeps_scans(int can_map)
{
    setenv("NDT_EMULATION_MAPPED", can_map ? "1" : "0", 1);
    struct ndt_backend *backend = open_plain("resident-block", 0);
    struct ndt_cloud half = in.scan;
    struct ndt_eval wanted;
    check_expect(evaluate(backend, &wanted, NULL) == NDT_OK, "an evaluation", "");
    half.count /= 2;
    const int queued = backend->ops->set_scan(backend, &in.scan, NULL) == NDT_OK &&
                       backend->ops->set_scan(backend, &half, NULL) == NDT_OK;
    refuse_a_solve(backend);
    check_expect(queued && backend->ops->set_scan(backend, &half, NULL) == NDT_OK &&
                     backend->ops->set_scan(backend, &in.scan, NULL) == NDT_OK && evaluates(backend, &wanted),
                 "scans that are queued arrive as they were", "");
    emulated_fail_calls(can_map ? "cudaLaunchKernelExC" : "cudaMemcpyAsync", 0, 1, cudaErrorMemoryAllocation);
    check_expect(evaluate(backend, &wanted, NULL) == NDT_ERR_MEMORY &&
                     backend->ops->set_scan(backend, &half, NULL) == NDT_OK &&
                     backend->ops->set_scan(backend, &half, NULL) == NDT_OK &&
                     backend->ops->set_scan(backend, &in.scan, NULL) == NDT_OK &&
                     evaluate(backend, &wanted, NULL) == NDT_OK,
                 "also after an evaluation that had no memory for its last call", "");
    backend->ops->close(backend);
    unsetenv("NDT_EMULATION_MAPPED");
}

static void keeps_scans_mapped(void)
{
    keeps_scans(1);
}

static void keeps_scans_unmapped(void)
{
    keeps_scans(0);
}

static void keeps_raw_scans(void)
{
    const struct ndt_preprocess_plan plan = {.deskew = NDT_DESKEW_OFF};
    struct ndt_backend *backend = open_plain("resident-block", 1);
    struct ndt_cloud half = in.scan;
    half.count /= 2;
    const int queued = backend->ops->preprocess(backend, &plan, &in.scan, NULL) == NDT_OK;
    refuse_a_solve(backend);
    check_expect(queued && backend->ops->preprocess(backend, &plan, &half, NULL) == NDT_OK,
                 "raw scans, too, arrive as they were", "");
    backend->ops->close(backend);
}

/* Two alignments: a single one is an argument of its launch, and nothing is copied. */
static enum ndt_status solve(struct ndt_backend *backend, double x_m, struct ndt_solve_item items[2])
{
    const struct ndt_newton_rules rules = {.level_count = 1, .level = {1}, .max_iterations = 5};
    for (int i = 0; i < 2; i++) {
        items[i] = (struct ndt_solve_item){.scan = 0};
        items[i].newton = (struct ndt_newton){.guess = {x_m + 0.1 * i, 0.4, 2.1},
                                              .R0 = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                              .rotation_scale_m = {10, 0, 0, 0, 10, 0, 0, 0, 10},
                                              .inverse_rotation_scale = {0.1, 0, 0, 0, 0.1, 0, 0, 0, 0.1}};
    }
    return backend->ops->solve(backend, &rules, items, 2, 0, NULL);
}

/* Checks batches on a device that copies results down. */
static void keeps_batches(void)
{
    setenv("NDT_EMULATION_MAPPED", "0", 1);
    struct ndt_backend *backend = open_plain("resident-block", 0);
    struct ndt_solve_item wanted[2], items[2];
    check_expect(solve(backend, 20, wanted) == NDT_OK, "two alignments", "");
    emulated_fail_calls("cudaMemcpyAsync", 1, 1, cudaErrorMemoryAllocation);
    check_expect(solve(backend, 21, items) == NDT_ERR_MEMORY, "two without memory for their last copy", "");
    check_expect(solve(backend, 20, items) == NDT_OK &&
                     memcmp(&items[0].newton, &wanted[0].newton, sizeof(items[0].newton)) == 0 &&
                     memcmp(&items[1].newton, &wanted[1].newton, sizeof(items[1].newton)) == 0,
                 "and the next ones, from their own guesses", "");
    backend->ops->close(backend);
    unsetenv("NDT_EMULATION_MAPPED");
}

static enum ndt_status score(struct ndt_backend *backend, double x_m, struct ndt_pose_score *out)
{
    const struct ndt_score_pose pose = {.R = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .t_m = {x_m, 0.4, 2.1}};
    const struct ndt_score_request request = {.level = 1, .neighbours = NDT_DIRECT7, .count = 1, .poses = &pose};
    size_t done;
    return backend->ops->score_poses(backend, &request, out, &done, NULL);
}

static void keeps_poses(void)
{
    struct ndt_backend *backend = open_plain("fused", 0);
    struct ndt_pose_score wanted, again;
    check_expect(score(backend, 20, &wanted) == NDT_OK, "the score of a pose", "");
    emulated_fail_calls("cudaMemcpyAsync", 1, 1, cudaErrorMemoryAllocation);
    check_expect(score(backend, 21, &again) == NDT_ERR_MEMORY, "one without memory for its last copy", "");
    check_expect(score(backend, 20, &again) == NDT_OK && memcmp(&again, &wanted, sizeof(again)) == 0,
                 "and the next one, of its own pose", "");
    backend->ops->close(backend);
}

/* ---- memory ---- */

/* Every kernel has a stack: 100 bytes for each of 16384 threads. */
static void counts_stacks(void)
{
    struct ndt_backend_config config;
    struct ndt_backend *backend = NULL;
    struct ndt_error err = {""};
    char text[2000];
    ndt_backend_config_default(&config);
    config.max_points = 1000000;
    config.pipeline = "staged";
    setenv("NDT_EMULATION_MEMORY", "4000000", 1);
    setenv("NDT_EMULATION_STACK", "100", 1);
    device_ops()->plan(&config, text, sizeof(text));
    check_expect(strstr(text, "1.6 MiB staged") != NULL, "the plan tells what stacks need", text);
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_MEMORY &&
                     strstr(err.text, "1638400 for the stacks"),
                 "so does a refusal", err.text);
    fits(&config, err.text);
    setenv("NDT_EMULATION_STACK", "1000", 1);
    config.max_points = 100;
    check_expect(ndt_backend_open(&backend, NAME, &config, &err) == NDT_ERR_MEMORY &&
                     strstr(err.text, "enough for 0 points"),
                 "stacks alone can be too much", err.text);
    unsetenv("NDT_EMULATION_STACK");
    unsetenv("NDT_EMULATION_MEMORY");
}

/* A device that shares the memory of the host, and counts too little of it as free. */
static void tries_before_it_refuses(void)
{
    struct ndt_eval sums;
    setenv("NDT_EMULATION_UNCOUNTED", "1073741824", 1);
    struct ndt_backend *backend = open_plain("fused", 0);
    check_expect(backend && evaluate(backend, &sums, NULL) == NDT_OK, "memory that is there, but not counted", "");
    if (backend)
        backend->ops->close(backend);
    unsetenv("NDT_EMULATION_UNCOUNTED");
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {.name = "refuses", .run = refuses},
        {.name = "plain_backend_is_lost", .run = plain_backend_is_lost},
        {.name = "survives/once", .run_with = survives, .text = "cuda-emulated", .value = 1},
        {.name = "survives/twice", .run_with = survives, .text = "cpu", .value = 2},
        {.name = "forgets/not_yet", .run_with = forgets, .text = "cpu", .value = 999},
        {.name = "forgets/failure", .run_with = forgets, .text = "cuda-emulated", .value = 1000},
        {.name = "hang/fused", .run_with = answers_in_time, .text = "fused"},
        {.name = "hang/resident", .run_with = answers_in_time, .text = "resident"},
        {.name = "hang/resident-graph", .run_with = answers_in_time, .text = "resident-graph"},
        {.name = "forgets_no_operation", .run = forgets_no_operation},
        {.name = "memory", .run = has_no_memory},
        {.name = "others/refused", .run_with = others_live_on, .value = cudaErrorInvalidConfiguration},
        {.name = "others/no_memory", .run_with = others_live_on, .value = cudaErrorMemoryAllocation},
        {.name = "others/threads", .run = two_at_once},
        {.name = "pinned/scans", .run = keeps_scans_mapped},
        {.name = "pinned/unmapped", .run = keeps_scans_unmapped},
        {.name = "pinned/raw_scans", .run = keeps_raw_scans},
        {.name = "pinned/batches", .run = keeps_batches},
        {.name = "pinned/poses", .run = keeps_poses},
        {.name = "stacks", .run = counts_stacks},
        {.name = "uncounted", .run = tries_before_it_refuses},
        {.name = NULL},
    };
    ndt_backends_own_process();
    ndt_backends_load();
    ndt_cloud_init(&in.scan);
    const int code = make_inputs() ? check_main(argc, argv, cases) : 1;
    ndt_map_release(in.map);
    ndt_cloud_free(&in.scan);
    return code;
}

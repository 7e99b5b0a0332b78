/** @file
 * @brief Instances that share a device: what a failure of one of them does to the others, in one thread and in
 * several. The emulation ends the program when a handle or memory from before a reset is used, and when the device
 * is reset while a thread is inside a call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_harness.h"
#include "cuda_context.h"
#include "cuda_device.h"
#include "cuda_runtime_api.h"
#include "device_kernels.h"
#include "emulated_device.h"
#include "ndt/clock.h"
#include "ndt_cuda/cuda_backend.h"

enum { NUMBERS = 64, ROUNDS = 150, THREADS = 3 };

static void expect(int good, const char *what, const struct ndt_error *err)
{
    check_expect(good, what, good || !err ? "" : err->text);
}

/* An instance with memory, and what it computes: NUMBERS numbers up, through a kernel, and down. */
struct user {
    struct ndt_cuda_device device;
    struct ndt_cuda_graph graph;
    void *memory, *pinned;
    struct ndt_gpu_job job;
    float *numbers;  /* pinned */
    double *results; /* pinned */
    struct ndt_error err;
};

static enum ndt_status open_user(struct user *user)
{
    enum { SUMS = NUMBERS * sizeof(double), BYTES = SUMS + NUMBERS * sizeof(float) };
    memset(user, 0, sizeof(*user));
    enum ndt_status status = ndt_cuda_device_open(&user->device, 0, &user->err);
    if (status == NDT_OK)
        status = ndt_cuda_allocate(&user->device, &user->memory, BYTES, "numbers", &user->err);
    if (status == NDT_OK)
        status = ndt_cuda_allocate_pinned(&user->device, &user->pinned, BYTES, "numbers", &user->err);
    if (status != NDT_OK)
        return status;
    user->job.sums = user->memory;
    user->job.x_m = (const float *)(const void *)(user->job.sums + NUMBERS);
    user->job.count = NUMBERS;
    user->results = user->pinned;
    user->numbers = (float *)(void *)(user->results + NUMBERS);
    return ndt_cuda_graph_make(&user->device, &user->graph, kernel_take(), 1, NUMBERS, 2, &user->job, &user->err);
}

static void close_user(struct user *user)
{
    ndt_cuda_graph_free(&user->device, &user->graph);
    ndt_cuda_release(&user->device, user->memory);
    ndt_cuda_release_pinned(&user->device, user->pinned);
    ndt_cuda_device_close(&user->device);
}

static enum ndt_status launch(struct user *user)
{
    return ndt_cuda_launch_team(&user->device, kernel_take(), 1, NUMBERS, 1, &user->job, &user->err);
}

static enum ndt_status reach_mark(struct user *user)
{
    int reached = 0;
    enum ndt_status status = NDT_OK;
    while (status == NDT_OK && !reached)
        status = ndt_cuda_mark_reached(&user->device, 0, &reached, &user->err);
    return status;
}

/* Every kind of call, and the right numbers at the end. */
static enum ndt_status use(struct user *user, float value)
{
    struct ndt_cuda_device *device = &user->device;
    struct ndt_error *err = &user->err;
    for (int i = 0; i < NUMBERS; i++)
        user->numbers[i] = value;
    enum ndt_status status = ndt_cuda_upload_on(device, NDT_CUDA_MAP, (void *)user->job.x_m, user->numbers,
                                                NUMBERS * sizeof(float), err);
    if (status == NDT_OK)
        status = ndt_cuda_set_mark(device, 0, NDT_CUDA_MAP, err);
    if (status == NDT_OK)
        status = reach_mark(user);
    if (status == NDT_OK)
        status = ndt_cuda_clear(device, user->job.sums, NUMBERS * sizeof(double), err);
    if (status == NDT_OK)
        status = launch(user);
    if (status == NDT_OK)
        status = ndt_cuda_graph_launch(device, &user->graph, err);
    if (status == NDT_OK)
        status = ndt_cuda_download(device, user->results, user->job.sums, NUMBERS * sizeof(double), err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(device, err);
    if (status == NDT_OK && user->results[NUMBERS - 1] != (double)value)
        status = ndt_fail(err, NDT_ERR_DEVICE, "%g where %g is right", user->results[NUMBERS - 1], (double)value);
    return status;
}

static int works(struct user *user)
{
    static float value;
    value += 1;
    return use(user, value) == NDT_OK;
}

/* Two instances that work. */
static void open_two(struct user *a, struct user *b)
{
    emulated_set_seed(1);
    expect(open_user(a) == NDT_OK && works(a), "one instance", &a->err);
    expect(open_user(b) == NDT_OK && works(b) && works(a), "another one beside it", &b->err);
}

/* ---- no memory ---- */

static enum ndt_status make_graph(struct user *user)
{
    struct ndt_cuda_graph graph;
    const enum ndt_status status =
        ndt_cuda_graph_make(&user->device, &graph, kernel_take(), 1, NUMBERS, 1, &user->job, &user->err);
    ndt_cuda_graph_free(&user->device, &graph);
    return status;
}

static enum ndt_status take_time(struct user *user)
{
    user->device.has_clock = 1;
    enum ndt_status status = ndt_cuda_clock_start(&user->device, &user->err);
    if (status == NDT_OK)
        status = ndt_cuda_clock_stop(&user->device, &user->err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(&user->device, &user->err);
    return status == NDT_OK ? ndt_cuda_add_kernel_time(&user->device, &user->err) : status;
}

static enum ndt_status ask_memory(struct user *user)
{
    size_t bytes;
    const enum ndt_status status = ndt_cuda_free_bytes(&user->device, &bytes, &user->err);
    return status == NDT_OK ? ndt_cuda_stack_bytes(&user->device, kernel_take(), &bytes, &user->err) : status;
}

static enum ndt_status allocate(struct user *user)
{
    void *memory = NULL, *pinned = NULL;
    enum ndt_status status = ndt_cuda_allocate(&user->device, &memory, 100, "a test", &user->err);
    if (status == NDT_OK)
        status = ndt_cuda_allocate_pinned(&user->device, &pinned, 100, "a test", &user->err);
    ndt_cuda_release(&user->device, memory);
    ndt_cuda_release_pinned(&user->device, pinned);
    return status;
}

static enum ndt_status use_once(struct user *user)
{
    return use(user, -1);
}

static void check_memory(void)
{
    static const struct {
        enum ndt_status (*act)(struct user *user);
        const char *call;
    } calls[] = {{use_once, "cudaSetDevice"},           {use_once, "cudaMemcpyAsync"},
                 {use_once, "cudaMemsetAsync"},         {use_once, "cudaLaunchKernelExC"},
                 {use_once, "cudaEventRecord"},         {use_once, "cudaGraphLaunch"},
                 {use_once, "cudaEventQuery"},          {make_graph, "cudaGraphCreate"},
                 {make_graph, "cudaGraphAddNode"},      {make_graph, "cudaGraphInstantiate"},
                 {make_graph, "cudaGraphUpload"},       {take_time, "cudaEventElapsedTime"},
                 {reach_mark, "cudaEventQuery"},        {ask_memory, "cudaMemGetInfo"},
                 {ask_memory, "cudaFuncGetAttributes"}, {allocate, "cudaMalloc"},
                 {allocate, "cudaHostRegister"}};
    struct user user;
    expect(open_user(&user) == NDT_OK && works(&user), "an instance", &user.err);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        emulated_fail_calls(calls[i].call, 0, 1, cudaErrorMemoryAllocation);
        enum ndt_status status = calls[i].act(&user);
        check_expect(status == NDT_ERR_MEMORY && strstr(user.err.text, "no "), "no memory in a call, which is said",
                     calls[i].call);
        status = ndt_cuda_settle(&user.device, NDT_CUDA_MAP, status);
        status = ndt_cuda_settle(&user.device, NDT_CUDA_MAIN, status);
        check_expect(status == NDT_ERR_MEMORY && calls[i].act(&user) == NDT_OK && works(&user),
                     "and the next one works", user.err.text);
    }
    emulated_fail_launches_with(0, 1, cudaErrorMemoryAllocation);
    expect(launch(&user) == NDT_ERR_MEMORY && works(&user), "a launch", &user.err);
    emulated_fail_launches_with(0, 1, cudaErrorMemoryAllocation);
    expect(ndt_cuda_graph_launch(&user.device, &user.graph, &user.err) == NDT_ERR_MEMORY && works(&user),
           "a launch of a graph", &user.err);
    close_user(&user);
}

/* ---- one fails ---- */

static void check_not_sticky(void)
{
    struct user a, b;
    open_two(&a, &b);
    emulated_fail_launches_with(0, 1, cudaErrorInvalidConfiguration);
    expect(use(&b, 5) == NDT_ERR_DEVICE && use(&b, 6) == NDT_ERR_DEVICE, "a launch that is refused: lost", NULL);
    expect(works(&a), "for that instance only", &a.err);
    close_user(&b);
    expect(works(&a), "also when it is closed", &a.err);
    expect(open_user(&b) == NDT_OK && works(&b) && works(&a), "and opened again", &b.err);
    close_user(&a);
    close_user(&b);
}

/* order: who is closed first; the last one is opened again only when all are closed. */
static void check_sticky(const char *unused, int order)
{
    (void)unused;
    struct user a, b;
    open_two(&a, &b);
    emulated_fail_launches(0, 1);
    expect(use(&b, 5) == NDT_ERR_DEVICE && strstr(b.err.text, "unspecified launch failure"), "a fault in a kernel",
           &b.err);
    expect(use(&a, 5) == NDT_ERR_DEVICE && strstr(a.err.text, "was reset"), "loses all instances", &a.err);
    a.numbers[0] = b.numbers[0] = 1; /* pinned memory is the process's */
    if (order == 0) {
        close_user(&b);
        expect(open_user(&b) == NDT_OK && works(&b), "the device works again, beside the lost one", &b.err);
        a.numbers[0] = 2;
        expect(use(&a, 6) == NDT_ERR_DEVICE, "which stays lost", NULL);
        close_user(&a);
        expect(works(&b), "and takes nothing along", &b.err);
        close_user(&b);
    } else if (order == 1) {
        close_user(&a);
        expect(open_user(&a) == NDT_OK && works(&a), "also by a lost one that is closed", &a.err);
        close_user(&b);
        expect(works(&a), "a late close changes nothing", &a.err);
        close_user(&a);
    } else {
        struct user c;
        expect(open_user(&c) == NDT_OK && works(&c), "a new instance beside two lost ones", &c.err);
        close_user(&a);
        close_user(&b);
        expect(works(&c), "outlives them", &c.err);
        close_user(&c);
    }
    expect(open_user(&a) == NDT_OK && works(&a), "at the end the device works", &a.err);
    close_user(&a);
}

/* A fault whose end no call waited for, found by the close: the next one gets a device that works. */
static void check_late(void)
{
    struct user a, b;
    struct ndt_cuda_facts facts;
    open_two(&a, &b);
    emulated_fail_launches(0, 1);
    expect(launch(&a) == NDT_OK, "a fault that is only queued", &a.err);
    close_user(&a);
    expect(ndt_cuda_facts(&facts, 0, &a.err) == NDT_OK, "the device has properties", &a.err);
    expect(use(&b, 5) == NDT_ERR_DEVICE, "others are lost", NULL);
    close_user(&b);
    expect(open_user(&a) == NDT_OK && works(&a), "and it works again", &a.err);
    close_user(&a);
}

/* A call of another thread that does not come back: no reset beside it, and the device is refused until it does. */
static void check_stuck(void)
{
    struct user a, b;
    unsigned epoch;
    open_two(&a, &b);
    close_user(&b);
    expect(ndt_cuda_context_join(0, &epoch), "a thread inside a call", NULL);
    emulated_fail_launches(0, 1);
    expect(use(&a, 5) == NDT_ERR_DEVICE, "a fault", NULL);
    expect(open_user(&b) == NDT_ERR_DEVICE && strstr(b.err.text, "does not end"), "the device is refused", &b.err);
    ndt_cuda_context_leave(0);
    close_user(&a);
    expect(open_user(&b) == NDT_OK && works(&b), "until the call has ended", &b.err);
    close_user(&b);
}

/* Duration of the call [s]. */
static double timed(enum ndt_status (*act)(struct user *user), struct user *user, enum ndt_status *status)
{
    const double begin_us = ndt_clock_us();
    *status = act(user);
    return (ndt_clock_us() - begin_us) * 1e-6;
}

/* Opens when the device is done with what is before the hang and after it, which takes it some questions. */
static int opens_in_the_end(struct user *user)
{
    emulated_end_hang();
    for (int i = 0; i < 100; i++)
        if (open_user(user) == NDT_OK)
            return works(user);
    return 0;
}

/* A kernel that does not end: no call waits for it, and what it may write to is kept. The emulation ends the
 * program at a wait without limit, and at a reset. */
static void check_hang(const char *unused, int with_deadline)
{
    (void)unused;
    struct user a, b, c;
    enum ndt_status status;
    open_two(&a, &b);
    void *const kept = a.pinned;
    emulated_hang_launches(0, 1);
    a.device.until_us = with_deadline ? ndt_clock_us() + 20e3 : 0;
    const double took_s = timed(use_once, &a, &status);
    printf("     gave up after %.3f s\n", took_s);
    expect(status == NDT_ERR_DEVICE && strstr(a.err.text, "has not ended in time"), "a kernel that hangs", &a.err);
    expect(with_deadline ? took_s < 0.5 : took_s < 3, "is not waited for any longer than was said", NULL);
    b.numbers[0] = 1;
    expect(use(&b, 5) == NDT_ERR_DEVICE, "others are lost at once", NULL);
    close_user(&a);
    expect(timed(open_user, &c, &status) < 0.5 && status == NDT_ERR_DEVICE && strstr(c.err.text, "does not end"),
           "the device is refused at once", &c.err);
    expect(opens_in_the_end(&c), "until the kernel has ended", &c.err);
    close_user(&b);
    expect(works(&c), "what was lost takes nothing along", &c.err);
    close_user(&c);
    free(kept); /* b was closed after the reset, which frees its memory */
}

/* An instance that is closed while its kernel hangs. */
static void check_hang_close(void)
{
    struct user a, b, c;
    open_two(&a, &b);
    void *const kept = a.pinned;
    emulated_hang_launches(0, 1);
    expect(launch(&a) == NDT_OK, "a kernel that hangs is queued", &a.err);
    close_user(&a);
    expect(use(&b, 5) == NDT_ERR_DEVICE, "its instance can be closed, and others are lost", NULL);
    expect(opens_in_the_end(&c), "until it has ended", &c.err);
    close_user(&b);
    close_user(&c);
    free(kept);
}

/* A reset that fails has freed nothing: the device stays lost and is refused, until one succeeds. */
static void check_reset_fails(void)
{
    struct user a, b, c;
    open_two(&a, &b);
    void *const kept = a.pinned;
    emulated_fail_calls("cudaDeviceReset", 0, 1 << 20, cudaErrorInvalidDevice);
    emulated_fail_launches(0, 1);
    expect(use(&a, 5) == NDT_ERR_DEVICE, "a fault", NULL);
    close_user(&a);
    expect(open_user(&c) == NDT_ERR_DEVICE && strstr(c.err.text, "its reset fails"), "a reset that fails: refused",
           &c.err);
    b.numbers[0] = 1; /* is still registered, and not freed */
    expect(use(&b, 5) == NDT_ERR_DEVICE && open_user(&c) == NDT_ERR_DEVICE, "again and again", &c.err);
    emulated_fail_calls("cudaDeviceReset", 0, 1, cudaErrorLaunchFailure);
    expect(open_user(&c) == NDT_OK && works(&c), "a reset that reports the fault once more is one", &c.err);
    close_user(&b);
    expect(works(&c), "what was lost before takes nothing along", &c.err);
    close_user(&c);
    free(kept); /* the close could not know that the device does not write to it */
}

/* Inside another program: its context must not end, so the device stays lost. */
static void check_embedded(void)
{
    struct user a, b;
    void *of_the_program = NULL;
    open_two(&a, &b);
    void *const kept[] = {a.pinned, b.pinned};
    ndt_cuda_allow_reset(0);
    expect(cudaMalloc(&of_the_program, 100) == cudaSuccess, "memory of the program around it", NULL);
    emulated_fail_launches(0, 1);
    expect(use(&a, 5) == NDT_ERR_DEVICE, "a fault", NULL);
    close_user(&a);
    expect(open_user(&a) == NDT_ERR_DEVICE && strstr(a.err.text, "other contexts of this process"),
           "without leave to reset the device is refused", &a.err);
    expect(use(&b, 5) == NDT_ERR_DEVICE, "and stays lost", NULL);
    close_user(&b);
    ndt_cuda_allow_reset(1);
    expect(open_user(&a) == NDT_OK && works(&a), "until the reset is allowed", &a.err);
    close_user(&a);
    free(kept[0]);
    free(kept[1]);
}

/* ---- threads ---- */

static atomic_int wrong, finished;

/* Uses the device, fails now and then, and opens it again, as a backend with failover does. */
static void *work(void *context)
{
    const int number = *(const int *)context;
    struct user user;
    struct ndt_cuda_facts facts;
    enum ndt_status status = NDT_ERR_DEVICE;
    memset(&user, 0, sizeof(user));
    for (int round = 0; round < ROUNDS; round++) {
        if (status == NDT_ERR_DEVICE) {
            close_user(&user);
            status = ndt_cuda_facts(&facts, 0, &user.err);
            wrong += status == NDT_ERR_UNSUPPORTED;
            status = open_user(&user);
        }
        if (status == NDT_OK && number == 0 && round % 10 == 5)
            emulated_fail_launches(0, 1); /* it, or another one */
        if (status == NDT_OK)
            status = use(&user, (float)(1000 * number + round));
        finished += status == NDT_OK;
        wrong += status != NDT_OK && (status != NDT_ERR_DEVICE || strstr(user.err.text, "is right"));
    }
    close_user(&user);
    return NULL;
}

static void check_threads(void)
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];
    int started = 0;
    wrong = finished = 0;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        started += pthread_create(&threads[i], NULL, work, &numbers[i]) == 0;
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    emulated_fail_launches(0, 0);
    printf("     %d of %d rounds succeeded\n", finished, started * ROUNDS);
    expect(started == THREADS && wrong == 0 && finished > THREADS * ROUNDS / 2,
           "threads lose the device together, and get it back", NULL);
    struct user user;
    expect(open_user(&user) == NDT_OK && works(&user), "at the end the device works", &user.err);
    close_user(&user);
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {.name = "embedded", .run = check_embedded},
        {.name = "memory", .run = check_memory},
        {.name = "not_sticky", .run = check_not_sticky},
        {.name = "sticky/first", .run_with = check_sticky, .value = 0},
        {.name = "sticky/second", .run_with = check_sticky, .value = 1},
        {.name = "sticky/third", .run_with = check_sticky, .value = 2},
        {.name = "late", .run = check_late},
        {.name = "stuck", .run = check_stuck},
        {.name = "hang/deadline", .run_with = check_hang, .value = 1},
        {.name = "hang/patience", .run_with = check_hang, .value = 0},
        {.name = "hang/close", .run = check_hang_close},
        {.name = "reset_fails", .run = check_reset_fails},
        {.name = "threads", .run = check_threads},
        {.name = NULL},
    };
    ndt_cuda_allow_reset(1);
    return check_main(argc, argv, cases);
}

/** @file
 * @brief cuda_device.h on the emulated device, and the properties of the emulation: graphs, clusters, late and
 * interleaved streams, marks, counters, and devices with fewer abilities. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_harness.h"
#include "check_stops.h"
#include "cuda_device.h"
#include "cuda_runtime_api.h"
#include "device_kernels.h"
#include "emulated_device.h"
#include "ndt_cuda/cuda_backend.h"

enum { NUMBERS = 16 * 1024, COPIED = 64, SEEDS = 40 };

static void expect(int good, const char *what)
{
    check_expect(good, what, "");
}

/* A device with some memory on it. Every call of `device` has to succeed unless a test says otherwise. */
struct bench {
    struct ndt_cuda_device device;
    struct ndt_gpu_job job;
    void *memory, *pinned;
    double *results; /* pinned */
    float *numbers;  /* pinned */
    struct ndt_error err;
    enum ndt_status first_status; /* first status other than NDT_OK */
};

/* Keeps the first failure. */
static void call(struct bench *b, enum ndt_status status)
{
    if (b->first_status == NDT_OK)
        b->first_status = status;
}

static void open_bench(struct bench *b, unsigned seed)
{
    const size_t sums = NUMBERS * sizeof(double), floats = COPIED * sizeof(float);
    memset(b, 0, sizeof(*b));
    emulated_set_seed(seed);
    call(b, ndt_cuda_device_open(&b->device, 0, &b->err));
    call(b, ndt_cuda_allocate(&b->device, &b->memory, 2 * sums + 256 + floats, "numbers", &b->err));
    call(b, ndt_cuda_allocate_pinned(&b->device, &b->pinned, sums + floats, "numbers", &b->err));
    if (b->first_status != NDT_OK)
        return;
    b->job.sums = b->memory;
    b->job.block_sums = b->job.sums + NUMBERS;
    b->job.ticket = (uint32_t *)(void *)(b->job.block_sums + NUMBERS);
    b->job.x_m = (const float *)(const void *)(b->job.ticket + 64);
    b->results = b->pinned;
    b->numbers = (float *)(void *)(b->results + NUMBERS);
    call(b, ndt_cuda_clear(&b->device, b->job.sums, sums, &b->err));
    call(b, ndt_cuda_clear(&b->device, b->job.ticket, 256 + floats, &b->err));
    call(b, ndt_cuda_wait(&b->device, &b->err));
}

static void close_bench(struct bench *b, const char *what)
{
    ndt_cuda_release(&b->device, b->memory);
    ndt_cuda_release_pinned(&b->device, b->pinned);
    ndt_cuda_device_close(&b->device);
    if (b->first_status != NDT_OK)
        check_expect(0, what, b->err.text);
}

static void download(struct bench *b, size_t count)
{
    call(b, ndt_cuda_download(&b->device, b->results, b->job.sums, count * sizeof(double), &b->err));
}

static void get_results(struct bench *b, size_t count)
{
    download(b, count);
    call(b, ndt_cuda_wait(&b->device, &b->err));
}

static void fill(struct bench *b, float value)
{
    for (int i = 0; i < COPIED; i++)
        b->numbers[i] = value;
}

static void upload_numbers(struct bench *b, enum ndt_cuda_stream stream)
{
    call(b,
         ndt_cuda_upload_on(&b->device, stream, (void *)b->job.x_m, b->numbers, COPIED * sizeof(float), &b->err));
}

static void take_numbers(struct bench *b)
{
    b->job.count = COPIED;
    call(b, ndt_cuda_launch_team(&b->device, kernel_take(), 1, COPIED, 1, &b->job, &b->err));
}

static void check_chain(void)
{
    struct bench b;
    struct ndt_cuda_graph graph;
    open_bench(&b, 1);
    const struct ndt_backend_counters before = b.device.counters;
    call(&b, ndt_cuda_graph_make(&b.device, &graph, kernel_count_up(), 5, 64, 7, &b.job, &b.err));
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    get_results(&b, 7);
    const struct ndt_backend_counters *after = &b.device.counters;
    expect(b.results[0] == 2 * 7 * 5 && b.results[1] == 2 * 7 && b.results[6] == 1, "a chain of seven, twice");
    expect(after->launches - before.launches == 2, "two launches, however long the chain");
    expect(after->allocations - before.allocations == 1, "one allocation, when it is made");
    expect(after->synchronisations - before.synchronisations == 1, "one synchronisation");
    expect(after->d2h_bytes - before.d2h_bytes == 7 * sizeof(double) && after->h2d_bytes == before.h2d_bytes,
           "bytes down, none up");
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    ndt_cuda_graph_free(&b.device, &graph); /* freed while it is queued */
    get_results(&b, 1);
    expect(b.results[0] == 3 * 7 * 5 && graph.exec == NULL, "freed, it ends what it began");
    close_bench(&b, "a chain");
}

static void check_loop(void)
{
    struct bench b;
    struct ndt_cuda_graph graph;
    open_bench(&b, 2);
    b.job.count = 11;
    call(&b, ndt_cuda_graph_make(&b.device, &graph, kernel_count_up(), 3, 128, 0, &b.job, &b.err));
    const struct ndt_backend_counters before = b.device.counters;
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    get_results(&b, 2);
    expect(b.results[0] == 11 * 3 && b.results[1] == 0, "a loop ends when its condition is 0");
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    get_results(&b, 2);
    expect(b.results[0] == 2 * 11 * 3, "and begins again at the next launch");
    expect(b.device.counters.launches - before.launches == 2, "two launches, however many rounds");
    expect(b.device.counters.allocations == before.allocations, "and no allocation");
    ndt_cuda_graph_free(&b.device, &graph);
    close_bench(&b, "a loop");
}

/* Whether each block got what the next one of its cluster left. */
static int pass_on(struct bench *b, unsigned blocks, unsigned threads, unsigned cluster, unsigned with_barrier)
{
    int good = 1;
    b->job.count = with_barrier;
    call(b, ndt_cuda_launch_team(&b->device, kernel_pass_on(), blocks, threads, cluster, &b->job, &b->err));
    get_results(b, (size_t)blocks * threads);
    for (unsigned i = 0; i < blocks * threads; i++) {
        const unsigned block = i / threads, first = block / cluster * cluster;
        const unsigned next = first + (block - first + 1) % cluster;
        good &= b->results[i] == 1000.0 * next + i % threads;
    }
    return good;
}

static void check_clusters(void)
{
    struct bench b;
    int right = 1, wrong = 0;
    open_bench(&b, 3);
    expect(pass_on(&b, 8, 1024, 8, 1), "a cluster of eight blocks of 1024");
    expect(pass_on(&b, 48, 256, 2, 1), "24 clusters of two");
    expect(pass_on(&b, 16, 1024, 1, 1), "a block without a cluster is one of its own");
    close_bench(&b, "clusters");
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        open_bench(&b, seed);
        right += pass_on(&b, 8, 64, 4, 1);
        close_bench(&b, "clusters in many orders");
        open_bench(&b, seed); /* memory that was not written yet */
        wrong += !pass_on(&b, 8, 64, 4, 0);
        close_bench(&b, "clusters without a barrier");
    }
    expect(right == SEEDS + 1, "clusters in any order");
    expect(wrong == SEEDS, "a missing barrier of the cluster is noticed in any order");
}

static void check_together(void)
{
    struct bench b;
    open_bench(&b, 4);
    call(&b, ndt_cuda_launch_team(&b.device, kernel_work_together(), 1, 1024, 1, &b.job, &b.err));
    get_results(&b, 4);
    expect(b.results[0] == 1, "votes of a block");
    expect(b.results[1] == 1, "shuffles of a warp");
    expect(b.results[2] == 1, "atomics");
    expect(b.results[3] == 1, "rounded operations and loads");
    close_bench(&b, "a block together");
}

static int is_reached(struct bench *b, int mark)
{
    int reached = -1;
    call(b, ndt_cuda_mark_reached(&b->device, mark, &reached, &b->err));
    return reached;
}

static void reach(struct bench *b, int mark)
{
    while (b->first_status == NDT_OK && !is_reached(b, mark))
        continue;
}

/* Value that a kernel on the main stream sees of an upload on another stream. */
static double seen(unsigned seed, int with_mark)
{
    struct bench b;
    open_bench(&b, seed);
    fill(&b, 5);
    upload_numbers(&b, NDT_CUDA_MAP);
    call(&b, ndt_cuda_set_mark(&b.device, 2, NDT_CUDA_MAP, &b.err));
    if (with_mark)
        reach(&b, 2);
    take_numbers(&b);
    get_results(&b, COPIED);
    const double result = b.results[COPIED - 1];
    close_bench(&b, "two streams");
    return result;
}

static void check_order(void)
{
    int old = 0, new = 0, reached = 0, repeated = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        const double result = seen(seed, 0);
        old += result == 0;
        new += result == 5;
        repeated += seen(seed, 0) == result;
        reached += seen(seed, 1) == 5;
    }
    expect(old > 0 && new > 0 && old + new == SEEDS, "streams run in either order, and overlap");
    expect(repeated == SEEDS, "the same order for the same seed");
    expect(reached == SEEDS, "a mark that is reached orders them");
}

/* The first number that reaches the device when the host writes 5 and, a moment later, 6. */
static double arrives(int wait_before, const float *from, float *buffer)
{
    struct bench b;
    open_bench(&b, 5);
    float *numbers = buffer ? buffer : b.numbers;
    for (int i = 0; i < COPIED; i++)
        numbers[i] = 5;
    call(&b, ndt_cuda_upload_on(&b.device, NDT_CUDA_MAP, (void *)b.job.x_m, from ? from : numbers,
                                COPIED * sizeof(float), &b.err));
    call(&b, ndt_cuda_set_mark(&b.device, 0, NDT_CUDA_MAP, &b.err));
    if (wait_before)
        reach(&b, 0);
    emulated_allows_overwriting = 1;
    numbers[0] = 6;
    reach(&b, 0);
    take_numbers(&b);
    get_results(&b, COPIED);
    const double result = b.results[0];
    close_bench(&b, "reuse of a buffer");
    emulated_allows_overwriting = 0;
    return result;
}

static void check_reuse(void)
{
    float pageable[COPIED];
    expect(arrives(1, NULL, NULL) == 5, "a pinned buffer used again after its mark");
    expect(arrives(0, NULL, NULL) == 6, "used again too early, the wrong content arrives");
    expect(arrives(0, pageable, pageable) == 5, "pageable memory is read at once");
}

static void check_late(void)
{
    struct bench b;
    open_bench(&b, 6);
    fill(&b, 7);
    upload_numbers(&b, NDT_CUDA_MAIN);
    take_numbers(&b);
    b.results[0] = 7;
    download(&b, COPIED);
    expect(isnan(b.results[0]), "a result that was not waited for is not there, and neither is an older one");
    call(&b, ndt_cuda_wait(&b.device, &b.err));
    expect(b.results[0] == 7, "after waiting it is");
    close_bench(&b, "late work");
}

static void check_marks(void)
{
    int early = 0, polls = 0;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct bench b;
        open_bench(&b, seed);
        if (seed == 1)
            expect(is_reached(&b, 3) == 1, "a mark that was never set is reached");
        upload_numbers(&b, NDT_CUDA_MAP);
        call(&b, ndt_cuda_set_mark(&b.device, 3, NDT_CUDA_MAP, &b.err));
        early += is_reached(&b, 3);
        while (b.first_status == NDT_OK && !is_reached(&b, 3))
            polls++;
        close_bench(&b, "marks");
    }
    expect(early == 0, "asking does not wait");
    expect(polls > 0, "but who asks long enough gets there");
}

static void check_mark_again(void)
{
    struct bench b;
    open_bench(&b, 7);
    fill(&b, 1);
    upload_numbers(&b, NDT_CUDA_MAP);
    call(&b, ndt_cuda_set_mark(&b.device, 1, NDT_CUDA_MAP, &b.err));
    take_numbers(&b);
    download(&b, 1);
    call(&b, ndt_cuda_set_mark(&b.device, 1, NDT_CUDA_MAIN, &b.err)); /* the last one counts */
    reach(&b, 1);
    expect(!isnan(b.results[0]), "a mark set again is where it was set last");
    close_bench(&b, "a mark set again");
}

static void check_clock(void)
{
    struct bench b;
    open_bench(&b, 8);
    for (int i = 0; i < 2; i++) {
        b.device.has_clock = i;
        call(&b, ndt_cuda_clock_start(&b.device, &b.err));
        take_numbers(&b);
        call(&b, ndt_cuda_clock_stop(&b.device, &b.err));
        call(&b, ndt_cuda_wait(&b.device, &b.err));
        call(&b, ndt_cuda_add_kernel_time(&b.device, &b.err));
        expect((b.device.counters.kernel_us > 0) == i, i ? "the kernel took time" : "no clock, no time");
    }
    close_bench(&b, "the clock");
}

static void check_facts(void)
{
    struct ndt_cuda_facts facts;
    struct ndt_cuda_graph graph;
    struct bench b;
    expect(ndt_cuda_facts(&facts, 0, NULL) == NDT_OK && facts.largest_cluster == 8 && facts.has_loops,
           "a device with clusters and loops");
    setenv("NDT_EMULATION_CLUSTERS", "0", 1);
    setenv("NDT_EMULATION_LOOPS", "0", 1);
    expect(ndt_cuda_facts(&facts, 0, NULL) == NDT_OK && facts.largest_cluster == 1 && !facts.has_loops,
           "one without either");
    open_bench(&b, 9);
    expect(pass_on(&b, 8, 64, 1, 1) && b.first_status == NDT_OK, "blocks without clusters run there");
    call(&b, ndt_cuda_graph_make(&b.device, &graph, kernel_count_up(), 1, 32, 2, &b.job, &b.err));
    ndt_cuda_graph_free(&b.device, &graph);
    expect(ndt_cuda_launch_team(&b.device, kernel_pass_on(), 8, 64, 4, &b.job, NULL) == NDT_ERR_DEVICE,
           "a cluster does not");
    close_bench(&b, "no clusters");
    open_bench(&b, 9);
    expect(ndt_cuda_graph_make(&b.device, &graph, kernel_count_up(), 1, 32, 0, &b.job, NULL) == NDT_ERR_DEVICE &&
               graph.exec == NULL,
           "and neither does a loop");
    close_bench(&b, "no loops");
    unsetenv("NDT_EMULATION_CLUSTERS");
    unsetenv("NDT_EMULATION_LOOPS");
}

static void check_shapes(void)
{
    const unsigned shapes[][3] = {{8, 64, 3}, {1, 2048, 1}, {16, 64, 16}, {0, 64, 1}};
    int refused = 0;
    struct bench b;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        open_bench(&b, 10);
        refused += ndt_cuda_launch_team(&b.device, kernel_pass_on(), shapes[i][0], shapes[i][1], shapes[i][2],
                                        &b.job, NULL) == NDT_ERR_DEVICE;
        close_bench(&b, "an impossible shape");
    }
    expect(refused == 4, "impossible shapes are refused");
    open_bench(&b, 10);
    expect(ndt_cuda_download(&b.device, b.results, b.job.sums, 1 << 20, NULL) == NDT_ERR_DEVICE,
           "so is a copy beyond the end");
    close_bench(&b, "a copy beyond the end");
}

/* A graph that fails: a wait reports it, and everything can be freed and opened again. */
static void check_failure(void)
{
    struct bench b;
    struct ndt_cuda_graph graph;
    open_bench(&b, 11);
    b.job.count = 3;
    call(&b, ndt_cuda_graph_make(&b.device, &graph, kernel_count_up(), 1, 32, 0, &b.job, &b.err));
    emulated_fail_launches(0, 1);
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    upload_numbers(&b, NDT_CUDA_MAP);
    download(&b, 1);
    expect(ndt_cuda_wait(&b.device, NULL) == NDT_ERR_DEVICE && isnan(b.results[0]), "a failed graph");
    expect(ndt_cuda_set_mark(&b.device, 0, NDT_CUDA_MAP, NULL) == NDT_ERR_DEVICE, "loses all streams");
    ndt_cuda_graph_free(&b.device, &graph);
    close_bench(&b, "a failed graph");
    emulated_fail_launches(0, 0);
    check_chain();
}

static void run_loop(const void *kernel, unsigned threads)
{
    struct bench b;
    struct ndt_cuda_graph graph;
    open_bench(&b, 12);
    call(&b, ndt_cuda_graph_make(&b.device, &graph, kernel, 1, threads, 0, &b.job, &b.err));
    call(&b, ndt_cuda_graph_launch(&b.device, &graph, &b.err));
    call(&b, ndt_cuda_wait(&b.device, &b.err));
}

static void parts_candidates(void)
{
    struct bench b;
    open_bench(&b, 12);
    call(&b, ndt_cuda_launch_team(&b.device, kernel_part_candidates(), 2, 64, 2, &b.job, &b.err));
    call(&b, ndt_cuda_wait(&b.device, &b.err));
}

static void steers_twice(void)
{
    run_loop(kernel_steer_twice(), 64);
}

static void goes_on(void)
{
    run_loop(kernel_go_on(), 32);
}

static void check_parts_candidates(void)
{
    check_stops(parts_candidates, "some threads wait for the block, others for the cluster");
}

static void check_steers_twice(void)
{
    check_stops(steers_twice, "two threads set the condition of a loop in one round");
}

static void check_goes_on(void)
{
    check_stops(goes_on, "a loop in a graph that never ends");
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {
        {.name = "chain", .run = check_chain},
        {.name = "loop", .run = check_loop},
        {.name = "clusters", .run = check_clusters},
        {.name = "together", .run = check_together},
        {.name = "order", .run = check_order},
        {.name = "reuse", .run = check_reuse},
        {.name = "late", .run = check_late},
        {.name = "marks", .run = check_marks},
        {.name = "mark_again", .run = check_mark_again},
        {.name = "clock", .run = check_clock},
        {.name = "facts", .run = check_facts},
        {.name = "shapes", .run = check_shapes},
        {.name = "failure", .run = check_failure},
        {.name = "parts_candidates", .run = check_parts_candidates},
        {.name = "steers_twice", .run = check_steers_twice},
        {.name = "goes_on", .run = check_goes_on},
        {.name = NULL},
    };
    ndt_cuda_allow_reset(1);
    return check_main(argc, argv, cases);
}

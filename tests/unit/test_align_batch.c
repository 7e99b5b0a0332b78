/* Batches on the CPU: each item has the bits that it has alone, whatever the number of threads and of items. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_counter.h"
#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/map.h"
#include "run_tests.h"
#include "street_world.h"

enum { MOST = 200, SCANS = 6, PRIORS = 3, THREADS = 4 };
#if defined(__SANITIZE_THREAD__) /* forty times as slow */
enum { FEWEST_THREADS = THREADS, LARGEST = 64 };
#else
enum { FEWEST_THREADS = 1, LARGEST = MOST };
#endif

static const double DEG = 0.017453292519943295;
static const double ZERO_M[3] = {0, 0, 0};
static const struct world STREET = {WORLD_STREET, 3, 80.0, 0.02};
static const struct world CORRIDOR = {WORLD_CORRIDOR, 4, 80.0, 0.02};
static const size_t POINTS[SCANS] = {1500, 700, 1, 0, 129, 2600};

/* Made once, before Check forks; backends have threads, which do not survive the fork. */
static struct ndt_map *street_map, *corridor_map;
static struct ndt_cloud scans[SCANS];
static struct ndt_align_item items[MOST];
static struct ndt_prior priors[MOST];

static struct ndt_backend *backend;
static struct ndt_aligner *aligner;
static struct ndt_align_params params;
static struct ndt_align_result alone[MOST], together[MOST];
static struct ndt_error err;

static struct ndt_map *make_map(const struct world *world)
{
    struct ndt_cloud points;
    struct ndt_map_config config;
    struct ndt_map *map = NULL;
    ndt_cloud_init(&points);
    ndt_map_config_default(&config);
    ck_assert_int_eq(world_map(&points, world, 40000, ZERO_M, &err), NDT_OK);
    ck_assert_int_eq(ndt_map_from_cloud(&map, &config, &points, &err), NDT_OK);
    ndt_cloud_free(&points);
    return map;
}

/* Every second scan has times; the last one has points that are not finite. */
static void make_scan(int k, const struct ndt_pose *truth)
{
    ndt_cloud_init(&scans[k]);
    ck_assert_int_eq(world_scan(&scans[k], &STREET, (uint64_t)k, POINTS[k], truth, 30.0, &err), NDT_OK);
    if (k % 2 == 0)
        ck_assert_int_eq(ndt_cloud_reserve(&scans[k], POINTS[k], NDT_CLOUD_TIME, &err), NDT_OK);
    for (size_t i = 0; i < POINTS[k]; i++) {
        if (scans[k].time_s)
            scans[k].time_s[i] = (float)(0.1 * (double)i / (double)POINTS[k]);
        if (k == SCANS - 1 && i % 100 == 0)
            scans[k].x_m[i] = i % 200 ? NAN : INFINITY;
    }
}

/* Deviations of 5 cm to 2 m, so that the solves begin on every level. */
static struct ndt_prior make_prior(const struct ndt_pose *mean, size_t i)
{
    struct ndt_prior prior = {.T_map_sensor = *mean};
    const double deviation_m = i % 4 == 0 ? 2.0 : i % 4 == 1 ? 0.3 : 0.05;
    for (int k = 0; k < 6; k++)
        prior.covariance[7 * k] = (k < 3 ? 1 : 1e-3) * deviation_m * deviation_m;
    return prior;
}

static void make_items(void)
{
    struct ndt_random random = {21};
    struct ndt_pose truth[SCANS];
    street_map = make_map(&STREET);
    corridor_map = make_map(&CORRIDOR);
    for (int k = 0; k < SCANS; k++) {
        truth[k] = world_pose(&STREET, 0.3 + 0.07 * k, 0.7 * k);
        make_scan(k, &truth[k]);
    }
    for (size_t i = 0; i < MOST; i++) {
        const size_t k = i % 8 < SCANS ? i % 8 : 0;
        const struct ndt_pose guess = world_perturb(&random, &truth[k], 2.5, 8 * DEG);
        priors[i] = make_prior(&guess, i);
        items[i] = (struct ndt_align_item){
            .scan = &scans[k], .T_map_guess = guess, .prior = i % PRIORS ? &priors[i] : NULL};
        if (i % 16 == 7)
            items[i].T_map_guess.q_xyzw[1] = NAN;
        if (i % 16 == 14)
            items[i].T_map_guess.t_m[0] += 5000;
    }
}

static void free_items(void)
{
    for (int k = 0; k < SCANS; k++)
        ndt_cloud_free(&scans[k]);
    ndt_map_release(street_map);
    ndt_map_release(corridor_map);
}

static void open_aligner(int threads)
{
    struct ndt_backend_config config;
    ndt_backend_config_default(&config);
    config.threads = threads;
    must(ndt_cpu_backend.open(&backend, &config, &err));
    must(ndt_aligner_create(&aligner, backend, &err));
    must(ndt_aligner_set_map(aligner, street_map, &err));
}

static void close_aligner(void)
{
    ndt_aligner_destroy(aligner);
    backend->ops->close(backend);
}

static void align_alone(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ndt_align_params one = params;
        one.prior = items[i].prior;
        ck_assert_int_eq(ndt_align(aligner, &one, items[i].scan, &items[i].T_map_guess, &alone[i], &err), NDT_OK);
    }
}

/* Every byte but those of the times. */
static int same_result(const struct ndt_align_result *a, const struct ndt_align_result *b)
{
    struct ndt_align_result x = *a, y = *b;
    x.align_us = y.align_us = x.upload_us = y.upload_us = 0;
    return memcmp(&x, &y, sizeof(x)) == 0;
}

static void check_batch(size_t count)
{
    memset(together, 0x5a, sizeof(together));
    must(ndt_align_batch(aligner, &params, items, count, together, &err));
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(same_result(&together[i], &alone[i]), "item %zu of %zu: %s %s, alone %s %s", i, count,
                      ndt_outcome_name(together[i].outcome), together[i].reason, ndt_outcome_name(alone[i].outcome),
                      alone[i].reason);
    if (count < MOST)
        ck_assert_int_eq(((unsigned char *)&together[count])[0], 0x5a);
}

/* `count` items in batches of several sizes, on 1 to 4 threads; the thread sanitizer sees the most threads only. */
static void check_all(size_t count)
{
    static const size_t sizes[] = {0, 1, 2, 3, 8, 64, 200, 5};
    open_aligner(1);
    align_alone(count);
    close_aligner();
    for (int threads = FEWEST_THREADS; threads <= THREADS; threads++) {
        open_aligner(threads);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
            if (sizes[k] <= count && sizes[k] <= LARGEST)
                check_batch(sizes[k]);
        close_aligner();
    }
}

static size_t count_outcome(enum ndt_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < MOST; i++)
        count += alone[i].outcome == outcome;
    return count;
}

static void setup(void)
{
    ndt_align_params_default(&params);
}

FIXTURE_ONCE(make_items, free_items)
FIXTURE(setup, NULL)

TEST_OF_THREADS(items_have_the_bits_that_they_have_alone)
{
    size_t coarse = 0;
    check_all(MOST);
    for (size_t i = 0; i < MOST; i++)
        coarse += alone[i].outcome == NDT_CONVERGED && alone[i].has_covariance && items[i].prior;
    ck_assert_uint_gt(coarse, 20);
    ck_assert_uint_gt(count_outcome(NDT_CONVERGED), MOST / 2);
    ck_assert_uint_gt(count_outcome(NDT_OFF_MAP), 4);
    ck_assert_uint_gt(count_outcome(NDT_REJECTED), 4);
    ck_assert_uint_gt(count_outcome(NDT_NO_GUESS), 4);
}

TEST(with_observations_and_a_position)
{
    params.wants_observation = 1;
    check_all(64);
    params.has_gnss = 1;
    params.gnss_position_m[0] = 30;
    check_all(64);
}

TEST(with_the_step_rule_of_autoware)
{
    params.variant = NDT_AUTOWARE;
    check_all(64);
}

/* Lanes that have worked with one map work with the next one. */
TEST_OF_THREADS(after_a_change_of_the_map)
{
    open_aligner(3);
    align_alone(8);
    check_batch(8);
    ck_assert_int_eq(ndt_aligner_set_map(aligner, corridor_map, &err), NDT_OK);
    align_alone(8);
    check_batch(8);
    ck_assert_int_eq(ndt_aligner_set_map(aligner, street_map, &err), NDT_OK);
    align_alone(64);
    check_batch(64);
    close_aligner();
}

/* A batch keeps the trace, even a batch of one, which is aligned as if alone. */
TEST_OF_THREADS(the_trace_stays_that_of_the_last_alignment)
{
    static struct ndt_iteration before[NDT_MAX_ITERATIONS];
    size_t count, later;
    open_aligner(2);
    align_alone(8);
    align_alone(1);
    const struct ndt_iteration *trace = ndt_aligner_trace(aligner, &count);
    ck_assert_uint_gt(count, 0);
    memcpy(before, trace, count * sizeof(*trace));
    for (size_t of = 1; of <= 8; of += 7) {
        check_batch(of);
        trace = ndt_aligner_trace(aligner, &later);
        ck_assert_uint_eq(later, count);
        ck_assert_mem_eq(trace, before, count * sizeof(*trace));
    }
    close_aligner();
}

TEST(without_a_map)
{
    for (int threads = 1; threads <= 2; threads++) {
        open_aligner(threads);
        ndt_aligner_destroy(aligner);
        ck_assert_int_eq(ndt_aligner_create(&aligner, backend, &err), NDT_OK);
        ck_assert_int_eq(ndt_align_batch(aligner, &params, items, 3, together, &err), NDT_OK);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(together[i].outcome, NDT_NO_MAP);
        close_aligner();
    }
}

TEST_OF_THREADS(an_item_that_fails_does_not_stop_the_others)
{
    struct ndt_align_item saved[2] = {items[4], items[9]};
    struct ndt_prior bad = priors[4];
    for (int threads = 1; threads <= THREADS; threads++) {
        open_aligner(threads);
        align_alone(16);
        bad.covariance[0] = -1;
        items[4].prior = items[9].prior = &bad;
        ck_assert_int_eq(ndt_align_batch(aligner, &params, items, 16, together, &err), NDT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(err.text, "prior"));
        items[4] = saved[0];
        items[9] = saved[1];
        for (int i = 0; i < 16; i++)
            ck_assert(i == 4 || i == 9 || same_result(&together[i], &alone[i]));
        for (int i = 4; i <= 9; i += 5)
            ck_assert_int_eq(memcmp(&together[i].T_map_sensor, &items[i].T_map_guess, sizeof(items[i].T_map_guess)),
                             0);
        params.levels[0].leaf_m = 3.5;
        ck_assert_int_eq(ndt_align_batch(aligner, &params, items, 16, together, &err), NDT_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(err.text, "3.5"));
        ndt_align_params_default(&params);
        close_aligner();
    }
}

/* Checks a deadline: only the first item begins in any case. `deadline_s` is over at once, or evaluations are
 * expected to take longer. */
static void check_deadline(int threads, double deadline_s, const struct ndt_align_costs *costs)
{
    open_aligner(threads);
    params.deadline_s = deadline_s;
    ndt_aligner_set_costs(aligner, costs);
    ck_assert_int_eq(ndt_align_batch(aligner, &params, items, 64, together, &err), NDT_OK);
    ck_assert_int_eq(together[0].outcome, NDT_DEADLINE);
    ck_assert_int_eq(together[0].evaluations, 1);
    for (size_t i = 1; i < 64; i++) {
        const int is_usable = items[i].scan->count > 0 && ndt_pose_is_finite(&items[i].T_map_guess);
        ck_assert_int_eq(together[i].outcome == NDT_DEADLINE, is_usable);
        ck_assert_int_eq(together[i].evaluations, 0);
        ck_assert_str_ne(together[i].reason, "");
        ck_assert_int_eq(memcmp(&together[i].T_map_sensor, &items[i].T_map_guess, sizeof(items[i].T_map_guess)), 0);
    }
    close_aligner();
}

TEST_OF_THREADS(items_that_cannot_begin_in_time_keep_their_guess)
{
    struct ndt_align_costs costs = {.assess = {.fixed_us = 1}}, none = {.assess = {.fixed_us = 0}};
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        costs.levels[i] = (struct ndt_cost){.fixed_us = 1e12};
    for (int threads = 1; threads <= THREADS; threads++) {
        check_deadline(threads, 1e-9, &none);
        check_deadline(threads, 600, &costs);
    }
    params.deadline_s = 600; /* which no item reaches */
    check_all(64);
}

TEST_OF_THREADS(nothing_is_allocated_once_the_buffers_have_grown)
{
    for (int threads = 1; threads <= 3; threads++) {
        open_aligner(threads);
        align_alone(16);
        enum ndt_status status = ndt_aligner_reserve_batch(aligner, 16, POINTS[SCANS - 1], &err);
        unsigned long before = allocations; /* not across an assertion: Check allocates */
        for (int round = 0; round < (COUNTS_ALLOCATIONS ? 20 : 1); round++)
            status |= ndt_align_batch(aligner, &params, items + round, 16, together, &err);
        before = allocations - before;
        ck_assert_uint_eq(before, 0);
        ck_assert_int_eq(status, NDT_OK);
        close_aligner();
    }
}

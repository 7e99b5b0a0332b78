/* The thread pool: every item is processed once, with workers that sleep, spin or join late. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ndt/pool.h"

enum { ITEMS = 1000 };

static _Atomic int done[ITEMS];

static void mark(void *context, size_t item)
{
    (void)context;
    atomic_fetch_add(&done[item], 1);
}

static void nap(long us)
{
    const struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

static void run_jobs(int threads, double spin_us, int pin, int jobs, long pause_us)
{
    struct ndt_pool *pool;
    struct ndt_error err;
    ck_assert_msg(ndt_pool_create(&pool, threads, spin_us, pin, &err) == NDT_OK, "%s", err.text);
    ck_assert_int_eq(ndt_pool_threads(pool), threads);
    for (int job = 0; job < jobs; job++) {
        const size_t items = (size_t)(job * 37 % ITEMS);
        memset((void *)done, 0, sizeof(done));
        ndt_pool_run(pool, mark, NULL, items);
        for (size_t i = 0; i < ITEMS; i++)
            ck_assert_int_eq(done[i], i < items);
        if (pause_us)
            nap(pause_us);
    }
    ndt_pool_destroy(pool);
}

START_TEST(every_item_is_processed_once)
{
    for (int threads = 1; threads <= 5; threads++)
        run_jobs(threads, 100, 0, 300, 0);
}
END_TEST

START_TEST(workers_wake_from_sleep)
{
    run_jobs(3, 0, 0, 60, 300); /* they never spin: each job finds them asleep */
    run_jobs(3, 50, 1, 60, 70); /* some asleep, some not */
}
END_TEST

START_TEST(nonsense_is_refused)
{
    struct ndt_pool *pool;
    struct ndt_error err;
    ck_assert_int_eq(ndt_pool_create(&pool, 0, 1, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndt_pool_create(&pool, 257, 1, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "257"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *all = tcase_create("pool");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, every_item_is_processed_once);
    tcase_add_test(all, workers_wake_from_sleep);
    tcase_add_test(all, nonsense_is_refused);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

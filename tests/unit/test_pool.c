/* The thread pool: every item is processed once, with workers that sleep, spin or join late. */
#include <check.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ndt/pool.h"
#include "run_tests.h"

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

TEST(every_item_is_processed_once)
{
    for (int threads = 1; threads <= 5; threads++)
        run_jobs(threads, 100, 0, 300, 0);
}

TEST(workers_wake_from_sleep)
{
    run_jobs(3, 0, 0, 60, 300); /* they never spin: each job finds them asleep */
    run_jobs(3, 50, 1, 60, 70); /* some asleep, some not */
}

/* Items of the pool run jobs of their own; an item that is done helps with those of the others. */
enum { OWNERS = 3, ROUNDS = 200 };
static struct ndt_pool_job jobs[OWNERS];
static _Atomic int owners_left, help;

static void count_up(void *context, size_t item)
{
    (void)item;
    atomic_fetch_add((_Atomic int *)context, 1);
}

static void own_a_job(void *context, size_t owner)
{
    (void)context;
    for (size_t round = 0; owner > 0 && round < ROUNDS; round++) { /* the first has nothing to do itself */
        _Atomic int counted = 0;
        ndt_pool_run_alone(&jobs[owner], count_up, &counted, 5 * owner);
        ck_assert_int_eq(counted, 5 * (int)owner);
    }
    atomic_fetch_sub(&owners_left, 1);
    for (int spins = 0; owner == 0 && atomic_load(&owners_left) > 0 && spins < 100000; spins++)
        for (size_t i = 1; i < OWNERS; i++)
            atomic_fetch_add(&help, ndt_pool_help(&jobs[i]));
}

TEST(items_help_each_other)
{
    for (int threads = 1; threads <= 4; threads++)
        for (int repeat = 0; repeat < 20; repeat++) {
            struct ndt_pool *pool;
            struct ndt_error err;
            atomic_store(&owners_left, OWNERS);
            ck_assert_int_eq(ndt_pool_create(&pool, threads, 100, 0, &err), NDT_OK);
            ndt_pool_run(pool, own_a_job, NULL, OWNERS);
            ck_assert_int_eq(owners_left, 0);
            ck_assert_int_eq(ndt_pool_help(&jobs[1]), 0); /* it is over */
            ndt_pool_destroy(pool);
        }
}

/* Every item waits until all threads have one: a pool whose threads do not take part waits in vain. */
static _Atomic int arrived, met;

static void meet(void *context, size_t item)
{
    (void)context, (void)item;
    atomic_fetch_add(&arrived, 1);
    for (int i = 0; i < 20000 && atomic_load(&arrived) < 3; i++)
        nap(1000);
    atomic_fetch_add(&met, atomic_load(&arrived) == 3);
}

TEST(all_threads_take_part)
{
    struct ndt_pool *pool;
    struct ndt_error err;
    ck_assert_int_eq(ndt_pool_create(&pool, 3, 10, 0, &err), NDT_OK);
    ndt_pool_run(pool, meet, NULL, 3);
    ck_assert_int_eq(met, 3);
    ndt_pool_destroy(pool);
}

/* Threads of this process that are not asleep, the calling one apart. */
static int count_awake(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int awake = -1;
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        char path[300], line[512] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%.200s/stat", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file)
            continue;
        const char *name_end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
        awake += !name_end || name_end[2] != 'S';
        fclose(file);
    }
    closedir(tasks);
    return awake;
}

/* Without a job the threads sleep. */
TEST(idle_threads_sleep)
{
    struct ndt_pool *pool;
    struct ndt_error err;
    ck_assert_int_eq(ndt_pool_create(&pool, 4, 100, 0, &err), NDT_OK);
    ndt_pool_run(pool, mark, NULL, 10);
    for (int i = 0; i < 1000 && count_awake() > 0; i++)
        nap(10000);
    ck_assert_int_eq(count_awake(), 0);
    ndt_pool_destroy(pool);
}

TEST(nonsense_is_refused)
{
    struct ndt_pool *pool;
    struct ndt_error err;
    ck_assert_int_eq(ndt_pool_create(&pool, 0, 1, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_int_eq(ndt_pool_create(&pool, 257, 1, 0, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "257"));
}

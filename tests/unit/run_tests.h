/* Macros of all programs of this folder: for writing tests, and for calls that have to succeed.
 *
 *     FIXTURE(setup, teardown)     // around each test below, up to the next fixture; either may be NULL
 *
 *     TEST(poses_invert)
 *     {
 *         ...
 *     }
 *
 * A test needs no entry in any list: run_tests.c has `main` and runs those of the file from top to bottom.
 *
 * Under the thread sanitizer, which is 20 to 100 times as slow, a file that has a TEST_OF_THREADS runs only those.
 */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

#include <check.h>

enum fixture_kind { FIXTURE_NONE, FIXTURE_EACH, FIXTURE_ONCE_FOR_ALL };

/* A test, or a fixture for those below it. */
struct test_row {
    TTest test; /* its line orders the rows */
    int from, to;
    int is_of_threads;
    enum fixture_kind fixture;
    SFun setup, teardown;
    struct test_row *next;
};

/* Called before `main`, in any order. The row must outlive the program. */
void add_test_row(struct test_row *row);

#define TEST(name)            TEST_EACH(name, 0, 1)
#define TEST_OF_THREADS(name) TEST_OF_THREADS_EACH(name, 0, 1)

/* Runs once for each _i from `first` to `last` - 1. */
#define TEST_EACH(name, first, last)            TEST_ROW(name, first, last, 0)
#define TEST_OF_THREADS_EACH(name, first, last) TEST_ROW(name, first, last, 1)
#define TEST_ROW(name, first, last, of_threads)                                                                    \
    static void name(int _i);                                                                                      \
    __attribute__((constructor)) static void add_##name(void)                                                      \
    {                                                                                                              \
        static struct test_row row = {.test = {#name, name, __FILE__, __LINE__}};                                  \
        row.from = (int)(first);                                                                                   \
        row.to = (int)(last);                                                                                      \
        row.is_of_threads = (of_threads);                                                                          \
        add_test_row(&row);                                                                                        \
    }                                                                                                              \
    static void name(int _i CK_ATTRIBUTE_UNUSED)

#define FIXTURE(make, end) FIXTURE_ROW(FIXTURE_EACH, make, end, __LINE__)
/* Called once, before the first and behind the last of the tests; may stand beside a FIXTURE. */
#define FIXTURE_ONCE(make, end)            FIXTURE_ROW(FIXTURE_ONCE_FOR_ALL, make, end, __LINE__)
#define FIXTURE_ROW(kind, make, end, line) FIXTURE_AT(kind, make, end, line)
#define FIXTURE_AT(kind, make, end, at)                                                                            \
    __attribute__((constructor)) static void add_fixture_##at(void)                                                \
    {                                                                                                              \
        static struct test_row row = {                                                                             \
            .test = {.line = at}, .fixture = (kind), .setup = (make), .teardown = (end)};                          \
        add_test_row(&row);                                                                                        \
    }

/* The call has to succeed; else `err` has the reason. */
#define must(call)                                                                                                 \
    do {                                                                                                           \
        const enum ndt_status must_status = (call);                                                                \
        ck_assert_msg(must_status == NDT_OK, "%s", err.text);                                                      \
    } while (0)

#endif

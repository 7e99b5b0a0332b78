/* For all programs of this folder: calls that have to succeed, and the run of the tests. */
#ifndef RUN_TESTS_H
#define RUN_TESTS_H

#include <check.h>

/* The call has to succeed; else `err` has the reason. */
#define must(call)                                                                                                 \
    do {                                                                                                           \
        const enum ndt_status must_status = (call);                                                                \
        ck_assert_msg(must_status == NDT_OK, "%s", err.text);                                                      \
    } while (0)

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

static inline int run_case(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

#endif

#include "run_tests.h"

/* Seconds of one test, which end only one that hangs. CTest ends the program without naming the test, later. */
static const double LIMIT_S = 1200;

static struct test_row *rows; /* rows in the order of their lines */

void add_test_row(struct test_row *row)
{
    struct test_row **at = &rows;
    while (*at && (*at)->test.line < row->test.line)
        at = &(*at)->next;
    row->next = *at;
    *at = row;
}

/* Says whether the thread sanitizer leaves a test out: it stands in a file with tests of threads and is none of
 * them. */
static int is_left_out(const struct test_row *test)
{
#if defined(__SANITIZE_THREAD__)
    for (const struct test_row *row = rows; row; row = row->next)
        if (row->is_of_threads)
            return !test->is_of_threads;
#endif
    (void)test;
    return 0;
}

int main(int argc, char **argv)
{
    Suite *suite = suite_create(argc > 0 ? argv[0] : "tests");
    TCase *tests = NULL;
    int has_tests = 0; /* fixtures that follow one another belong to the same tests */
    for (const struct test_row *row = rows; row; row = row->next) {
        if (!tests || (row->fixture && has_tests)) {
            tests = tcase_create("tests");
            tcase_set_timeout(tests, LIMIT_S);
            suite_add_tcase(suite, tests);
        }
        has_tests = !row->fixture;
        if (row->fixture == FIXTURE_EACH)
            tcase_add_checked_fixture(tests, row->setup, row->teardown);
        else if (row->fixture == FIXTURE_ONCE_FOR_ALL)
            tcase_add_unchecked_fixture(tests, row->setup, row->teardown);
        else if (!is_left_out(row))
            tcase_add_loop_test(tests, &row->test, row->from, row->to);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

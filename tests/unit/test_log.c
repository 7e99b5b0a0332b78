/** @file
 * @brief Tests of the log: levels, journal prefixes, one line per message, throttling. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndtd/log.h"
#include "temp_dir.h"

static int saved = -1;

/* Standard error goes to a file while a test runs. */
static void setup(void)
{
    temp_dir_make();
    unsetenv("JOURNAL_STREAM");
    saved = dup(STDERR_FILENO);
    const int file = open(temp_path("stderr"), O_CREAT | O_RDWR | O_APPEND, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(dup2(file, STDERR_FILENO), 0);
    close(file);
    ndtd_log_set_level(NDTD_LOG_INFO);
    ndtd_log_set_interval(60);
}

static void teardown(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    temp_dir_remove();
}

static char *written(void)
{
    size_t size;
    char *text = (char *)temp_read(temp_path("stderr"), &size);
    ck_assert_ptr_nonnull(text);
    return text;
}

static size_t lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

START_TEST(levels_are_kept)
{
    ndtd_log(NDTD_LOG_DEBUG, "too much %d", 1);
    ndtd_log(NDTD_LOG_INFO, "good to know %d", 2);
    ndtd_log(NDTD_LOG_WARNING, "odd %d", 3);
    ndtd_log_set_level(NDTD_LOG_ERROR);
    ndtd_log(NDTD_LOG_WARNING, "odd as well");
    ndtd_log(NDTD_LOG_ERROR, "bad %d", 4);
    char *text = written();
    ck_assert_uint_eq(lines(text), 3);
    ck_assert_ptr_nonnull(strstr(text, "Z ndtd: good to know 2\n"));
    ck_assert_ptr_nonnull(strstr(text, "Z ndtd: warning: odd 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "Z ndtd: error: bad 4\n"));
    free(text);
}
END_TEST

START_TEST(journal_lines_have_priority_prefixes)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    ndtd_log(NDTD_LOG_INFO, "a");
    ndtd_log(NDTD_LOG_ERROR, "b");
    char *text = written();
    ck_assert_str_eq(text, "<6>a\n<3>b\n");
    free(text);
}
END_TEST

static void tell(int number)
{
    ndtd_log(NDTD_LOG_WARNING, "number %d", number);
}

START_TEST(repeated_lines_are_throttled)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    for (int i = 0; i < 5; i++)
        tell(i);
    ndtd_log(NDTD_LOG_WARNING, "another kind");
    char *text = written();
    ck_assert_str_eq(text, "<4>number 0\n<4>another kind\n");
    free(text);
}
END_TEST

START_TEST(next_line_has_the_repeat_count)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    for (int i = 0; i < 4; i++)
        tell(i);
    ndtd_log_set_interval(0);
    tell(4);
    tell(5);
    char *text = written();
    ck_assert_str_eq(text, "<4>number 0\n<4>number 4 (repeated 3 more times)\n<4>number 5\n");
    free(text);
}
END_TEST

START_TEST(replies_to_requests_are_not_throttled)
{
    for (int i = 0; i < 3; i++)
        ndtd_log_always(NDTD_LOG_INFO, "read again");
    char *text = written();
    ck_assert_uint_eq(lines(text), 3);
    free(text);
}
END_TEST

START_TEST(line_breaks_are_removed)
{
    char long_text[3000];
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    ndtd_log(NDTD_LOG_INFO, "two\nlines\x1b[2J");
    ndtd_log(NDTD_LOG_INFO, "long %s", long_text);
    char *text = written();
    ck_assert_uint_eq(lines(text), 2);
    ck_assert_ptr_nonnull(strstr(text, "two lines [2J"));
    ck_assert_uint_lt(strlen(text), 1200);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *all = tcase_create("log");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, levels_are_kept);
    tcase_add_test(all, journal_lines_have_priority_prefixes);
    tcase_add_test(all, repeated_lines_are_throttled);
    tcase_add_test(all, next_line_has_the_repeat_count);
    tcase_add_test(all, replies_to_requests_are_not_throttled);
    tcase_add_test(all, line_breaks_are_removed);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* The line of progress: its text, when it is shown, and that it goes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/progress_line.h"

static const char *text_of(const char *unit, uint64_t done, uint64_t all, double elapsed_s)
{
    static char text[128];
    ndtd_progress_line_text(text, sizeof(text), "map.pcd", unit, done, all, elapsed_s);
    return text;
}

START_TEST(text_says_amount_part_and_rest)
{
    ck_assert_str_eq(text_of(NULL, 1200000000, 4000000000, 3), "map.pcd: 1.2 of 4.0 GB, 30 %, 7 s left");
    ck_assert_str_eq(text_of(NULL, 500, 4000, 1), "map.pcd: 0.5 of 4.0 kB, 12 %, 7 s left");
    ck_assert_str_eq(text_of(NULL, 1500000, 0, 1), "map.pcd: 1.5 MB");
    ck_assert_str_eq(text_of("files", 3, 12, 1), "map.pcd: 3 of 12 files, 25 %, 3 s left");
    ck_assert_str_eq(text_of("files", 0, 12, 1), "map.pcd: 0 of 12 files");
    ck_assert_str_eq(text_of("places", 7, 0, 1), "map.pcd: 7 places");
    ck_assert_str_eq(text_of(NULL, 5000, 4000, 1),
                     "map.pcd: 5.0 of 4.0 kB, 100 %, 0 s left"); /* a file that grew */
    char small[8];
    ndtd_progress_line_text(small, sizeof(small), "map.pcd", NULL, 1, 2, 1);
    ck_assert_str_eq(small, "map.pcd");
}
END_TEST

/* Standard error as a file. */
static const char *shown(struct ndtd_progress_line *line)
{
    static char text[512];
    char path[] = "/tmp/ndt_progress_XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    ndtd_progress_line_show(line, 1, 4);
    ndtd_progress_line_show(line, 2, 4); /* too soon */
    ndtd_progress_line_end(line);
    ndtd_progress_line_end(line);
    fflush(stderr);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    remove(path);
    return text;
}

START_TEST(is_shown_after_a_second_and_goes)
{
    struct ndtd_progress_line line;
    ndtd_progress_line_begin(&line, "work", "files");
    ck_assert_int_eq(line.is_terminal, 0); /* it is not asked for */
    line.is_terminal = 1;
    ck_assert_str_eq(shown(&line), ""); /* the first second */
    ndtd_progress_line_begin(&line, "work", "files");
    line.is_terminal = 1;
    line.start_us -= 1e6;
    line.next_us -= 1e6;
    const char *text = shown(&line);
    ck_assert_msg(strncmp(text, "work: 1 of 4 files, 25 %, ", 26) == 0, "%s", text);
    ck_assert_ptr_null(strstr(text, "2 of 4"));
    const size_t length = strlen(text);
    ck_assert_msg(length > 4 && strcmp(text + length - 4, "\r\033[K") == 0, "%s", text);
}
END_TEST

START_TEST(is_silent_where_it_is_not_asked_for)
{
    struct ndtd_progress_line line;
    ndtd_progress_line_begin(&line, "work", NULL);
    line.next_us = 0;
    ck_assert_str_eq(shown(&line), "");
    ndtd_progress_line_end(&(struct ndtd_progress_line){.what = NULL});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("progress line");
    TCase *all = tcase_create("all");
    tcase_add_test(all, text_says_amount_part_and_rest);
    tcase_add_test(all, is_shown_after_a_second_and_goes);
    tcase_add_test(all, is_silent_where_it_is_not_asked_for);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* The line of progress: its text, when it is shown, and that it goes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/progress_line.h"
#include "run_tests.h"

static const char *text_of(const char *what, double part, double elapsed_s)
{
    static char text[128];
    ndtd_progress_line_text(text, sizeof(text), what, part, "3 of 12 files", elapsed_s);
    return text;
}

TEST(text_says_amount_part_and_rest)
{
    ck_assert_str_eq(text_of("map", 0.25, 1),
                     "[#######.......................]  25 %  map: 3 of 12 files  3 s left");
    ck_assert_str_eq(text_of("", 1, 7), "[##############################] 100 %  3 of 12 files  0 s left");
    ck_assert_str_eq(text_of("map", 0, 7), "[..............................]   0 %  map: 3 of 12 files");
    ck_assert_str_eq(text_of("map", -1, 7), "map: 3 of 12 files");
    char small[8];
    ndtd_progress_line_text(small, sizeof(small), "map.pcd", 0.5, "x", 1);
    ck_assert_str_eq(small, "[######");
}

/* Standard error as a file. */
static const char *shown(struct ndtd_progress_line *line, uint64_t done, uint64_t all)
{
    static char text[512];
    char path[] = "/tmp/ndt_progress_XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    ndtd_progress_line_show(line, done, all);
    ndtd_progress_line_show(line, 77, all); /* too soon */
    ndtd_progress_line_end(line);
    ndtd_progress_line_end(line);
    fflush(stderr);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    remove(path);
    return text;
}

/* A line whose first second is over. */
static struct ndtd_progress_line due(const char *unit)
{
    struct ndtd_progress_line line;
    ndtd_progress_line_begin(&line, "work", unit);
    ck_assert_int_eq(line.is_terminal, 0); /* it is not asked for */
    line.is_terminal = 1;
    line.start_us -= 1e6;
    line.next_us -= 1e6;
    return line;
}

TEST(is_shown_after_a_second_and_goes)
{
    struct ndtd_progress_line line = due("files");
    line.next_us += 1e6;
    ck_assert_str_eq(shown(&line, 1, 4), ""); /* the first second */
    line = due("files");
    const char *text = shown(&line, 1, 4);
    ck_assert_ptr_nonnull(strstr(text, "  25 %  work: 1 of 4 files  "));
    ck_assert_ptr_null(strstr(text, "77 of 4"));
    const size_t length = strlen(text);
    ck_assert_msg(length > 4 && strcmp(text + length - 4, "\r\033[K") == 0, "%s", text);
}

TEST(amounts_have_the_unit_of_the_total)
{
    static const struct {
        const char *unit;
        uint64_t done, all;
        const char *text;
    } cases[] = {{NULL, 1200000000, 4000000000, "work: 1.2 of 4.0 GB  "},
                 {NULL, 500, 4000, "work: 0.5 of 4.0 kB  "},
                 {NULL, 5000, 4000, " 100 %  work: 5.0 of 4.0 kB  0 s left"}, /* a file that grew */
                 {NULL, 1500000, 0, "work: 1.5 MB\033"},
                 {"places", 7, 0, "work: 7 places\033"},
                 {"files", 0, 12, "   0 %  work: 0 of 12 files\033"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ndtd_progress_line line = due(cases[i].unit);
        const char *text = shown(&line, cases[i].done, cases[i].all);
        ck_assert_msg(strstr(text, cases[i].text) != NULL, "'%s' lacks '%s'", text, cases[i].text);
    }
}

TEST(is_silent_where_it_is_not_asked_for)
{
    struct ndtd_progress_line line;
    ndtd_progress_line_begin(&line, "work", NULL);
    line.next_us = 0;
    ck_assert_str_eq(shown(&line, 1, 4), "");
    ndtd_progress_line_end(&(struct ndtd_progress_line){.what = NULL});
}

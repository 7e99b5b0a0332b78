/** @file
 * @brief Tests of the log: levels, journal prefixes, one line per message, throttling. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndtd/log.h"
#include "run_tests.h"
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

FIXTURE(setup, teardown)

TEST(levels_are_kept)
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

TEST(journal_lines_have_priority_prefixes)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    ndtd_log(NDTD_LOG_INFO, "a");
    ndtd_log(NDTD_LOG_ERROR, "b");
    char *text = written();
    ck_assert_str_eq(text, "<6>a\n<3>b\n");
    free(text);
}

static void tell(int number)
{
    ndtd_log(NDTD_LOG_WARNING, "number %d", number);
}

TEST(repeated_lines_are_throttled)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    for (int i = 0; i < 5; i++)
        tell(i);
    ndtd_log(NDTD_LOG_WARNING, "another kind");
    char *text = written();
    ck_assert_str_eq(text, "<4>number 0\n<4>another kind\n");
    free(text);
}

TEST(next_line_has_the_repeat_count)
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

TEST(replies_to_requests_are_not_throttled)
{
    for (int i = 0; i < 3; i++)
        ndtd_log_always(NDTD_LOG_INFO, "read again");
    char *text = written();
    ck_assert_uint_eq(lines(text), 3);
    free(text);
}

TEST(line_breaks_are_removed)
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

/* Fills a pipe that replaces standard error; returns the end to read from. */
static int unread_pipe(void)
{
    int ends[2];
    char byte = 'x';
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], &byte, 1) == 1)
        ;
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    close(ends[1]);
    return ends[0];
}

/* Reads until the pipe is empty for a while; counts the lines with a text. */
static unsigned read_lines(int fd, const char *text)
{
    unsigned count = 0;
    char line[2000];
    size_t used = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 100;) {
        if (read(fd, &line[used], 1) != 1) {
            usleep(2000);
            idle++;
            continue;
        }
        idle = 0;
        if (line[used] == '\n' || used + 2 == sizeof(line)) {
            line[used] = '\0';
            count += strstr(line, text) != NULL;
            used = 0;
        } else if (line[used] != 'x')
            used++;
    }
    return count;
}

/* Without a reader no call waits, the ring keeps the oldest lines, and their loss is said as soon as somebody
 * reads.
 */
TEST(no_call_waits_for_a_reader)
{
    const int reader = unread_pipe();
    ndtd_log_start();
    for (int i = 0; i < 2 * NDTD_LOG_LINES; i++)
        ndtd_log_always(NDTD_LOG_INFO, "line %d", i);
    const unsigned long long lost = ndtd_log_lost();
    ck_assert_uint_ge(lost, NDTD_LOG_LINES - 1);
    ck_assert_uint_le(lost, NDTD_LOG_LINES);
    ck_assert_uint_eq(read_lines(reader, "line "), 2 * NDTD_LOG_LINES - lost);
    ndtd_log_stop();
    close(reader);
}

TEST(the_loss_is_said)
{
    const int reader = unread_pipe();
    ndtd_log_start();
    for (int i = 0; i < 2 * NDTD_LOG_LINES; i++)
        ndtd_log_always(NDTD_LOG_INFO, "line %d", i);
    ck_assert_uint_eq(read_lines(reader, "lines of the log are lost: they were not read"), 1);
    ndtd_log_stop();
    close(reader);
}

/* The end waits a second for a reader, not for ever. */
TEST(the_end_does_not_wait_for_a_reader)
{
    const int reader = unread_pipe();
    ndtd_log_start();
    ndtd_log_always(NDTD_LOG_INFO, "never read");
    ndtd_log_stop();
    ck_assert(!ndtd_log_is_read(0));
    close(reader);
}

TEST(a_reader_that_goes_is_no_error)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    close(ends[1]);
    close(ends[0]);
    ndtd_log_start();
    for (int i = 0; i < 10; i++)
        ndtd_log_always(NDTD_LOG_INFO, "to no reader");
    ndtd_log_stop();
    ck_assert_uint_eq(ndtd_log_lost(), 10);
}

/* Lines are in order, and the last ones are written at the end. */
TEST(the_thread_writes_every_line)
{
    setenv("JOURNAL_STREAM", "8:1234", 1);
    ndtd_log_start();
    for (int i = 0; i < 100; i++)
        ndtd_log_always(NDTD_LOG_INFO, "%d", i);
    ndtd_log_stop();
    ndtd_log_always(NDTD_LOG_INFO, "100");
    char *text = written(), *at = text;
    for (int i = 0; i <= 100; i++) {
        ck_assert_ptr_nonnull(at = strstr(at, "<6>"));
        ck_assert_int_eq(atoi(at += 3), i);
    }
    free(text);
}

/* The watchdog is fed while every thread makes progress; reloads are throttled. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ndtd/log.h"
#include "ndtd/throttle.h"
#include "ndtd/watchdog.h"
#include "run_tests.h"
#include "temp_dir.h"

static int manager = -1;
static struct ndtd_watchdog watchdog;

/* An interval of 3 ms: it is time after each millisecond. */
static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    temp_dir_make();
    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/manager", temp_dir);
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "3000", 1);
    unsetenv("WATCHDOG_PID");
    ndtd_watchdog_init(&watchdog);
}

static void tear_down(void)
{
    close(manager);
    temp_dir_remove();
}

/* Calls it until it is time; returns whether it fed. */
static int turn(uint64_t receiver, uint64_t matcher)
{
    char text[100] = "";
    const struct ndtd_beats beats[] = {{"receiver", receiver}, {"matcher", matcher}};
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    const int fed = ndtd_watchdog_turn(&watchdog, beats, 2);
    const ssize_t size = recv(manager, text, sizeof(text) - 1, MSG_DONTWAIT);
    ck_assert_int_eq(fed, size > 0);
    ck_assert(!fed || strstr(text, "WATCHDOG=1"));
    return fed;
}

FIXTURE(set_up, tear_down)

TEST(all_threads_have_to_make_progress)
{
    ck_assert(!turn(0, 0)); /* not begun */
    ck_assert(turn(1, 1));
    ck_assert(turn(2, 9));
    ck_assert(!turn(3, 9));
    ck_assert(!turn(4, 9));
    ck_assert(turn(4, 10)); /* both have since the last time */
    ck_assert(!turn(4, 11));
    ck_assert(turn(5, 11));
}

TEST(it_is_fed_when_it_is_time)
{
    const struct ndtd_beats beats[] = {{"receiver", 1}};
    setenv("WATCHDOG_USEC", "3000000000", 1);
    ndtd_watchdog_init(&watchdog);
    ck_assert_int_eq(ndtd_watchdog_round_ms(&watchdog, 200), 200);
    setenv("WATCHDOG_USEC", "300000", 1);
    ndtd_watchdog_init(&watchdog);
    ck_assert_int_le(ndtd_watchdog_round_ms(&watchdog, 200), 51);
    unsetenv("WATCHDOG_USEC");
    ndtd_watchdog_init(&watchdog);
    ck_assert_int_eq(ndtd_watchdog_round_ms(&watchdog, 200), 200);
    ck_assert(!ndtd_watchdog_turn(&watchdog, beats, 1));
}

TEST(a_throttle_lets_a_burst_through_and_then_a_rate)
{
    struct ndtd_throttle throttle = {0};
    int taken = 0;
    double now_us = 1e12;
    for (int i = 0; i < 100; i++)
        taken += ndtd_throttle_take(&throttle, 5, 1, now_us);
    ck_assert_int_eq(taken, 5);
    for (int i = 0; i < 1000; i++) /* ten seconds */
        taken += ndtd_throttle_take(&throttle, 5, 1, now_us += 1e4);
    ck_assert_int_ge(taken, 14);
    ck_assert_int_le(taken, 15);
    now_us += 3600e6;
    for (int i = 0; i < 100; i++)
        taken += ndtd_throttle_take(&throttle, 5, 1, now_us);
    ck_assert_int_le(taken, 20);
    ck_assert_int_ge(taken, 19);
}

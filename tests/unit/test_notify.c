/** @file
 * @brief Tests of the sd_notify protocol; the test is the service manager. */
#include "ndtd/notify.h"

#include <check.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "run_tests.h"
#include "temp_dir.h"

static int manager = -1;

/* `name` as in NOTIFY_SOCKET. */
static void listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_uint_lt(strlen(name), sizeof(address.sun_path));
    strcpy(address.sun_path, name);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else
        size++;
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_ge(manager, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
}

static void expect(const char *text)
{
    char got[1024] = "";
    const ssize_t size = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT);
    ck_assert_int_eq(size, (ssize_t)strlen(text));
    ck_assert_str_eq(got, text);
    ck_assert_int_lt(recv(manager, got, sizeof(got), MSG_DONTWAIT), 0);
}

static void tell_everything(void)
{
    ck_assert_int_eq(ndtd_notify_ready(), 1);
    expect("READY=1");
    ck_assert_int_eq(ndtd_notify_status("town.pcd: 12 tiles"), 1);
    expect("STATUS=town.pcd: 12 tiles");
    ck_assert_int_eq(ndtd_notify_status("a\nMAINPID=1\tb"), 1);
    expect("STATUS=a MAINPID=1 b");
    ck_assert_int_eq(ndtd_notify_watchdog(), 1);
    expect("WATCHDOG=1");
    ck_assert_int_eq(ndtd_notify_stopping(), 1);
    expect("STOPPING=1");
}

FIXTURE(temp_dir_make, temp_dir_remove)

TEST(test_path)
{
    listen_at(temp_path("notify"));
    tell_everything();
    close(manager);
    ck_assert_int_eq(ndtd_notify_ready(), 0); /* the manager is gone */
}

TEST(test_abstract)
{
    char name[64];
    snprintf(name, sizeof(name), "@ndt-test-notify-%ld", (long)getpid());
    listen_at(name);
    tell_everything();
    close(manager);
}

TEST(test_long_status)
{
    char text[2001], wanted[512];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    snprintf(wanted, sizeof(wanted), "STATUS=%.400s", text);
    listen_at(temp_path("notify"));
    ck_assert_int_eq(ndtd_notify_status(text), 1);
    expect(wanted);
    close(manager);
}

/* A manager that does not read must not block the matching thread. */
TEST(test_full)
{
    int taken = 0;
    listen_at(temp_path("notify"));
    while (taken < 100000 && ndtd_notify_watchdog())
        taken++;
    ck_assert_int_gt(taken, 0);
    ck_assert_int_lt(taken, 100000);
    ck_assert_int_eq(ndtd_notify_status("full"), 0);
    close(manager);
}

TEST(test_no_manager)
{
    static const char *const names[] = {"", "@", "/", "vsock:2:1234", "relative", "/no/such/socket"};
    char long_name[200];
    unsetenv("NOTIFY_SOCKET");
    ck_assert_int_eq(ndtd_notify_ready() + ndtd_notify_watchdog() + ndtd_notify_stopping(), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        ck_assert_int_eq(ndtd_notify_ready(), 0);
    }
    memset(long_name, '/', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    setenv("NOTIFY_SOCKET", long_name, 1);
    ck_assert_int_eq(ndtd_notify_status("?"), 0);
}

TEST(test_interval)
{
    char pid[32];
    static const char *const bad[] = {"", "x", "-5", " 5", "5s", "99999999999999999999999"};
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    ck_assert_double_eq(ndtd_notify_watchdog_interval_s(), 0);
    setenv("WATCHDOG_USEC", "2500000", 1);
    ck_assert_double_eq(ndtd_notify_watchdog_interval_s(), 2.5);
    setenv("WATCHDOG_PID", pid, 1);
    ck_assert_double_eq(ndtd_notify_watchdog_interval_s(), 2.5);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_double_eq(ndtd_notify_watchdog_interval_s(), 0);
    unsetenv("WATCHDOG_PID");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("WATCHDOG_USEC", bad[i], 1);
        ck_assert_double_eq(ndtd_notify_watchdog_interval_s(), 0);
    }
}

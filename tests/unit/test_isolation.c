/** @file
 * @brief Tests of what the isolation forbids: in processes of their own, since nothing gives it back. */
#define _GNU_SOURCE /* execve and others by number */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ndtd/isolation.h"
#include "ndtd/log.h"
#include "run_tests.h"
#include "temp_dir.h"

static struct ndt_error err;
static struct ndtd_settings settings;
static struct ndtd_isolation isolation;

static void setup(void)
{
    temp_dir_make();
    ndtd_log_set_level(NDTD_LOG_ERROR);
    ndtd_settings_default(&settings);
    settings.isolation = NDTD_ISOLATION_ON;
}

/* The value of a line of /proc/self/status. */
static int status_of(const char *key)
{
    char line[256];
    int value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = atoi(line + strlen(key));
    if (file)
        fclose(file);
    return value;
}

/* Runs `test` in an isolated process that may write to `written`; returns its status as of wait. */
static int isolated(int (*test)(void), const char *written)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const struct ndtd_isolation_paths paths = {.written = {written}};
        if (ndtd_isolation_restrict_files(&isolation, &settings, &paths, &err) != NDT_OK)
            _exit(99);
        ndtd_isolation_restrict_calls(&isolation);
        _exit(status_of("Seccomp:") == 2 ? test() : 77);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Each returns 0, or the number of what is not as expected. */
static int denied_with_eperm(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || page == MAP_FAILED)
        return 1;
    if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 || errno != EPERM)
        return 2;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
        return 3;
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 || errno != EPERM)
        return 4;
    if (mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
        errno != EPERM)
        return 5;
    if (kill(getppid(), 0) == 0 || errno != EPERM)
        return 6;
    return fork() != -1 ? 7 : 0;
}

static int runs_a_program(void)
{
    char *const arguments[] = {(char[]){"true"}, NULL};
    execve("/bin/true", arguments, NULL);
    return 1;
}

static int traces_a_process(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 1 : 2;
}

static void *opens_a_tcp_socket(void *argument)
{
    const int *ready = argument;
    char byte;
    while (ready && read(*ready, &byte, 1) < 0)
        ;
    return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM ? NULL : argument;
}

static int starts_a_thread(void)
{
    pthread_t thread;
    void *failed = &thread;
    if (pthread_create(&thread, NULL, opens_a_tcp_socket, NULL) != 0)
        return 1;
    pthread_join(thread, &failed);
    return failed ? 2 : 0;
}

static int uses_files(void)
{
    char path[600];
    if (isolation.landlock_version == 0)
        return 77; /* a kernel without Landlock */
    const char *const forbidden[] = {"/etc/hostname", "/etc/shadow", "/root", "/proc/1/status"};
    for (int i = 0; i < 4; i++)
        if (open(forbidden[i], O_RDONLY) >= 0 || (errno != EACCES && errno != ENOENT))
            return 10 + i;
    snprintf(path, sizeof(path), "%s/written/new", temp_dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || unlink(path) != 0)
        return 1;
    snprintf(path, sizeof(path), "%s/new", temp_dir);
    if (open(path, O_RDWR | O_CREAT | O_EXCL, 0600) >= 0 || errno != EACCES)
        return 2;
    return open("/dev/null", O_RDWR) < 0 ? 3 : 0;
}

/* Names its thread by /proc as libcuda does, which refuses every device where it cannot. */
static void *names_itself(void *argument)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%ld/comm", (long)syscall(SYS_gettid));
    const int fd = open(path, O_RDWR);
    return fd >= 0 && write(fd, "cuda", 4) == 4 ? NULL : argument;
}

static int keeps_compiled_code(void)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/cache/a", temp_dir);
    if (mkdir(path, 0700) != 0)
        return 0;
    snprintf(path, sizeof(path), "%s/cache/a/kernel", temp_dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    return fd >= 0 && write(fd, "x", 1) == 1;
}

/* Files and calls of a GPU's driver are allowed; others stay forbidden. */
static int has_what_a_gpu_needs(void)
{
    pthread_t thread;
    void *failed = &thread;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char *const arguments[] = {(char[]){"true"}, NULL};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 1;
    if (ioctl(fd, 0xc0084601u, NULL) != -1 || errno == EPERM)
        return 2;
    if (bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)) != 0 || listen(fd, 1) != 0)
        return 3;
    if (isolation.landlock_version > 0 && open("/proc/devices", O_RDONLY) < 0)
        return 4;
    if (pthread_create(&thread, NULL, names_itself, &isolation) != 0 || pthread_join(thread, &failed) != 0 ||
        failed)
        return 8;
    if (!keeps_compiled_code())
        return 9;
    execve("/bin/true", arguments, NULL);
    if (errno != EPERM && errno != EACCES)
        return 5;
    if (fork() != -1 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
        return 6;
    return isolation.landlock_version > 0 && open("/etc/hostname", O_RDONLY) >= 0 ? 7 : 0;
}

/* 77: without libseccomp or Landlock, as isolation.sh says. */
static void expect_exit(int status)
{
    ck_assert_msg(WIFEXITED(status), "it ended by signal %d", WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77, "test %d", WEXITSTATUS(status));
}

FIXTURE(setup, temp_dir_remove)

TEST(calls_that_are_not_needed_fail)
{
    expect_exit(isolated(denied_with_eperm, NULL));
    expect_exit(isolated(starts_a_thread, NULL));
}

TEST(a_gpu_keeps_what_it_needs)
{
    settings.isolation = NDTD_ISOLATION_GPU;
    mkdir(temp_path("cache"), 0700);
    setenv("CUDA_CACHE_PATH", temp_path("cache"), 1);
    expect_exit(isolated(has_what_a_gpu_needs, NULL));
    const int status = isolated(traces_a_process, NULL);
    ck_assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) ||
              (WIFEXITED(status) && WEXITSTATUS(status) == 77));
}

TEST(calls_of_attackers_kill)
{
    int (*const tests[])(void) = {runs_a_program, traces_a_process};
    for (int i = 0; i < 2; i++) {
        const int status = isolated(tests[i], NULL);
        ck_assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) ||
                  (WIFEXITED(status) && WEXITSTATUS(status) == 77));
    }
}

TEST(threads_that_run_already_are_filtered)
{
    int pipes[2], status;
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *failed = &thread;
        pthread_create(&thread, NULL, opens_a_tcp_socket, &pipes[0]);
        isolation.is_on = 1;
        ndtd_isolation_restrict_calls(&isolation);
        if (status_of("Seccomp:") != 2)
            _exit(77);
        _exit(write(pipes[1], "x", 1) != 1 || pthread_join(thread, &failed) != 0 || failed);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    expect_exit(status);
}

TEST(files_that_are_not_needed_are_denied)
{
    mkdir(temp_path("written"), 0700);
    expect_exit(isolated(uses_files, temp_path("written")));
}

TEST(contradictions_are_named)
{
    strcpy(settings.backend, "cuda");
    ck_assert_int_eq(ndtd_isolation_check(&settings, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "backend.name: cuda"));
    strcpy(settings.backend, "auto");
    ck_assert_int_eq(ndtd_isolation_check(&settings, &err), NDT_OK);
    ck_assert(!ndtd_settings_allow_backend(&settings, "cuda"));
    ck_assert(ndtd_settings_allow_backend(&settings, "cpu"));
    snprintf(settings.map_paths, sizeof(settings.map_paths), "%s:/dev/null", temp_dir);
    ck_assert_int_eq(ndtd_isolation_check(&settings, &err), NDT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "'/dev/null': Not a directory"));
    settings.map_paths[0] = '\0';
    settings.isolation = NDTD_ISOLATION_GPU;
    strcpy(settings.backend, "cuda");
    ck_assert_int_eq(ndtd_isolation_check(&settings, &err), NDT_OK);
    settings.isolation = NDTD_ISOLATION_OFF;
    ck_assert_int_eq(ndtd_isolation_check(&settings, &err), NDT_OK);
    ck_assert(ndtd_settings_allow_backend(&settings, "cuda"));
}

/** @file
 * For LD_PRELOAD: a disk and threads that stand still, where the environment names a file as a gate.
 *   STALL_DISK=GATE    while GATE exists, writes to recordings (*.bag) and their fsync wait
 *   STALL_DISK_MS=N    each of them takes N ms
 *   STALL_MAP=GATE     while GATE exists, opening a map (*.pcd) waits
 *   STALL_THREAD=GATE  while GATE exists, the thread that it names stands still when it waits for something */
#define _GNU_SOURCE /* RTLD_NEXT, syscall, pthread_getname_np */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void nap_ms(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
}

static int ends_in(const char *text, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && memcmp(text + length - size, end, size) == 0;
}

static void use_disk(int fd)
{
    const char *gate = getenv("STALL_DISK"), *slow = getenv("STALL_DISK_MS");
    char link[64], path[4096];
    if (!gate && !slow)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof(path));
    if (length < 0 || !ends_in(path, (size_t)length, ".bag"))
        return;
    if (slow)
        nap_ms(strtol(slow, NULL, 10));
    while (gate && access(gate, F_OK) == 0)
        nap_ms(5);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    use_disk(fd);
    return syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd)
{
    use_disk(fd);
    return (int)syscall(SYS_fsync, fd);
}

static void use_map(const char *path)
{
    const char *gate = getenv("STALL_MAP");
    while (gate && ends_in(path, strlen(path), ".pcd") && access(gate, F_OK) == 0)
        nap_ms(5);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    use_map(path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Whether the gate names this thread. */
static int is_held(void)
{
    const char *gate = getenv("STALL_THREAD");
    char mine[32] = "", named[32] = "";
    FILE *file = gate ? fopen(gate, "r") : NULL;
    if (!file)
        return 0;
    const int has_name = fscanf(file, "%31s", named) == 1;
    fclose(file);
    (void)pthread_getname_np(pthread_self(), mine, sizeof(mine));
    return has_name && strcmp(mine, named) == 0;
}

static void hold(void)
{
    while (is_held())
        nap_ms(5);
}

struct zmq_pollitem_t;

int zmq_poll(struct zmq_pollitem_t *items, int count, long timeout_ms)
{
    static int (*library)(struct zmq_pollitem_t *, int, long);
    if (!library)
        *(void **)&library = dlsym(RTLD_NEXT, "zmq_poll");
    hold();
    return library(items, count, timeout_ms);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    static int (*library)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!library)
        *(void **)&library = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (is_held()) {
        pthread_mutex_unlock(mutex);
        hold();
        pthread_mutex_lock(mutex);
    }
    return library(condition, mutex, until);
}

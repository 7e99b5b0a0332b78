/** @file
 * A disk that stands still, for LD_PRELOAD: while the file $STALLED_DISK exists, writes to recordings (*.bag), their
 * fsync and their creation wait; with $STALLED_DISK_MS each takes that long. */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int is_bag(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof(path));
    return length > 4 && memcmp(path + length - 4, ".bag", 4) == 0;
}

static void nap_ms(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
}

static void use_disk(int fd)
{
    const char *gate = getenv("STALLED_DISK"), *slow = getenv("STALLED_DISK_MS");
    if (!is_bag(fd))
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

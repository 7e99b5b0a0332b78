#define _DEFAULT_SOURCE /* syscall */
#include "libzmq_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ndtd/log.h"

enum { GATES = 16, HIGHEST_LISTENER = 4096, PAUSE_NS = 1000000 };
/* Reserve of descriptors that connections do not get, and the rough number that the daemon uses without any. */
enum { RESERVED_FILES = 32, OWN_FILES = 64 };

struct connection {
    int fd;
    unsigned long number;
};

/* The connections of one listening socket. */
struct gate {
    int listener;
    unsigned long number; /* number of the listener; 0: unused */
    int limit, count;
    struct connection *connections; /* room for `limit`; ended ones are found when all are in use */
    char name[128];
};

static struct gate gates[GATES];
static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ullong refused;

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* The number of a socket, by direct system calls, as below. The descriptor may belong to another socket by now,
 * which the number detects; the functions of the library would be a race to the thread sanitizer, which knows them.
 */
unsigned long ndtd_guard_socket_number(int fd)
{
    struct stat info; /* on 64-bit Linux the kernel's own */
    const int is_socket = fd >= 0 && syscall(SYS_fstat, fd, &info) == 0 && S_ISSOCK(info.st_mode);
    return is_socket ? (unsigned long)info.st_ino : 0;
}

void ndtd_guard_end_connection(int fd)
{
    char rest[4096];
    if (shutdown(fd, SHUT_RDWR) != 0)
        return;
    while (syscall(SYS_recvfrom, fd, rest, sizeof(rest), MSG_DONTWAIT, NULL, NULL) > 0) {
        /* libzmq would process it */
    }
}

static int is_listening(int fd)
{
    int value = 0;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value;
}

static struct gate *find_gate(int listener)
{
    const unsigned long number = ndtd_guard_socket_number(listener);
    for (int i = 0; i < GATES; i++)
        if (number && gates[i].listener == listener && gates[i].number == number)
            return &gates[i];
    return NULL;
}

/* A gate that is unused, or whose listener is closed; NULL: there is none. */
static struct gate *free_gate(void)
{
    for (int i = 0; i < GATES; i++)
        if (!gates[i].number || ndtd_guard_socket_number(gates[i].listener) != gates[i].number)
            return &gates[i];
    return NULL;
}

static void open_gate(int listener, const char *name, int limit)
{
    struct gate *gate = free_gate();
    struct connection *connections = gate ? calloc((size_t)limit, sizeof(*connections)) : NULL;
    if (!connections) {
        ndtd_log(NDTD_LOG_WARNING, "%s: its connections are not limited", name);
        return;
    }
    free(gate->connections);
    *gate = (struct gate){.listener = listener,
                          .number = ndtd_guard_socket_number(listener),
                          .limit = limit,
                          .connections = connections};
    snprintf(gate->name, sizeof(gate->name), "%s", name);
}

static void check_file_limit(void)
{
    struct rlimit files;
    rlim_t wanted = RESERVED_FILES + OWN_FILES;
    for (int i = 0; i < GATES; i++)
        if (gates[i].number)
            wanted += (rlim_t)gates[i].limit;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < wanted)
        ndtd_log(NDTD_LOG_WARNING, "%llu open files are allowed (ulimit -n), %llu are needed for all connections",
                 (unsigned long long)files.rlim_cur, (unsigned long long)wanted);
}

void ndtd_guard_listeners(const char *name, int max_connections)
{
    pthread_mutex_lock(&gates_lock);
    for (int fd = 0; fd < HIGHEST_LISTENER; fd++)
        if (is_listening(fd) && !find_gate(fd))
            open_gate(fd, name, max_connections);
    check_file_limit();
    pthread_mutex_unlock(&gates_lock);
}

unsigned long long ndtd_guard_refused(void)
{
    return atomic_load(&refused);
}

static void forget_ended(struct gate *gate)
{
    int kept = 0;
    for (int i = 0; i < gate->count; i++)
        if (ndtd_guard_socket_number(gate->connections[i].fd) == gate->connections[i].number)
            gate->connections[kept++] = gate->connections[i];
    gate->count = kept;
}

/* Whether a descriptor is of the reserve: descriptors are given in order, so that a high one tells how many are in
 * use. */
static int is_of_reserve(int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    const rlim_t reserve = limit.rlim_cur / 4 < RESERVED_FILES ? limit.rlim_cur / 4 : RESERVED_FILES;
    return (rlim_t)fd >= limit.rlim_cur - reserve;
}

static int is_admitted(struct gate *gate, int fd)
{
    if (is_of_reserve(fd)) {
        ndtd_log(NDTD_LOG_WARNING, "%s: a connection is refused: too many open files (ulimit -n)", gate->name);
        return 0;
    }
    if (gate->count == gate->limit)
        forget_ended(gate);
    if (gate->count == gate->limit) {
        ndtd_log(NDTD_LOG_WARNING, "%s: a connection is refused: %d are open", gate->name, gate->limit);
        return 0;
    }
    gate->connections[gate->count++] = (struct connection){fd, ndtd_guard_socket_number(fd)};
    return 1;
}

/* The gate that a connection passes; NULL where the listener is not one of libzmq's. */
static const struct gate *pass_gate(int listener, int *fd)
{
    pthread_mutex_lock(&gates_lock);
    struct gate *gate = find_gate(listener);
    if (gate && *fd >= 0 && !is_admitted(gate, *fd)) {
        atomic_fetch_add(&refused, 1);
        close(*fd);
        *fd = -1;
        errno = ECONNABORTED;
    }
    pthread_mutex_unlock(&gates_lock);
    return gate;
}

/* A name for the linker only: libc's declaration has a parameter that is no type of ISO C. */
__attribute__((visibility("default"))) int guarded_accept4(int listener, struct sockaddr *address, socklen_t *size,
                                                           int flags) __asm__("accept4");
int guarded_accept4(int listener, struct sockaddr *address, socklen_t *size, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, address, size, flags);
    const int failure = fd < 0 ? errno : 0;
    const struct gate *gate = pass_gate(listener, &fd);
    if (!failure)
        return fd;
    if (gate && failure != EAGAIN && failure != EINTR && failure != ECONNABORTED) {
        ndtd_log(NDTD_LOG_WARNING, "%s: a connection cannot be accepted: errno %d", gate->name, failure);
        pause_shortly(); /* the connection still waits, and is reported again at once */
        errno = ECONNABORTED;
        return -1;
    }
    errno = failure;
    return -1;
}

__attribute__((visibility("default"))) int epoll_wait(int epoll, struct epoll_event *events, int capacity,
                                                      int timeout_ms)
{
    int used = 0;
    const int count = epoll_pwait(epoll, events, capacity, timeout_ms, NULL);
    for (int i = 0; i < count; i++) {
        events[i].events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
        used += events[i].events != 0;
    }
    if (count > 0 && !used)
        pause_shortly(); /* a client has left, and its messages wait for the reader: reported again at once */
    return count;
}

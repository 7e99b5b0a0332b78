#define _GNU_SOURCE /* pthread_setname_np */

#include "socket_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

/* Runs the thread, which names itself: names of others are files under /proc, which security.isolation does not let
 * write. */
static void *begin(void *argument)
{
    const struct ndtd_socket_thread *thread = argument;
    (void)pthread_setname_np(pthread_self(), thread->name);
    return thread->run(thread->argument);
}

enum ndt_status ndtd_socket_thread_start(struct ndtd_socket_thread *thread, const char *name, void *(*run)(void *),
                                         void *argument, struct ndt_error *err)
{
    sigset_t all, before;
    thread->run = run;
    thread->argument = argument;
    snprintf(thread->name, sizeof(thread->name), "%s", name);
    thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->wake_fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "thread %s: cannot create its eventfd: %s", name, strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&thread->thread, NULL, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        close(thread->wake_fd);
        return ndt_fail(err, NDT_ERR_MEMORY, "thread %s: cannot be started: %s", name, strerror(failure));
    }
    return NDT_OK;
}

void ndtd_socket_thread_stop(struct ndtd_socket_thread *thread)
{
    const uint64_t one = 1;
    while (write(thread->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    pthread_join(thread->thread, NULL);
    close(thread->wake_fd);
}

int ndtd_socket_thread_wait(const struct ndtd_socket_thread *thread, void *socket)
{
    return ndtd_socket_thread_wait_for(thread, socket, -1);
}

int ndtd_socket_thread_wait_for(const struct ndtd_socket_thread *thread, void *socket, long timeout_ms)
{
    zmq_pollitem_t items[] = {{.fd = thread->wake_fd, .events = ZMQ_POLLIN},
                              {.socket = socket, .events = ZMQ_POLLIN}};
    while (zmq_poll(items, 2, timeout_ms) < 0)
        if (errno != EINTR)
            return 0;
    return !(items[0].revents & ZMQ_POLLIN);
}

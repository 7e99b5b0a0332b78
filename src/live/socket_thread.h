/* A thread that serves one socket. Private to the daemon library.
 *
 * The loop waits for its socket and for wake_fd, which becomes and stays readable when the thread has to end. All
 * signals are blocked in it; the main thread handles them. */
#ifndef NDTD_SOCKET_THREAD_H
#define NDTD_SOCKET_THREAD_H

#include <pthread.h>

#include "ndt/status.h"

struct ndtd_socket_thread {
    pthread_t thread;
    int wake_fd;
    void *(*run)(void *);
    void *argument;
    char name[16];
};

/* Starts the thread. name: at most 15 bytes. *thread must not move until the thread has ended. Writes of the caller
 * before the call are visible to `run`. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_thread_start(struct ndtd_socket_thread *thread, const char *name,
                                                        void *(*run)(void *), void *argument,
                                                        struct ndt_error *err);
/* Wakes the thread and joins it. */
void ndtd_socket_thread_stop(struct ndtd_socket_thread *thread);
/* Waits in the loop until the socket is readable (1) or the thread has to end (0). */
int ndtd_socket_thread_wait(const struct ndtd_socket_thread *thread, void *socket);
/* Waits as ndtd_socket_thread_wait does, but also returns 1 after timeout_ms without a message. */
int ndtd_socket_thread_wait_for(const struct ndtd_socket_thread *thread, void *socket, long timeout_ms);

#endif

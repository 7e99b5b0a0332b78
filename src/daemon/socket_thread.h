/* A thread that serves one socket until it is told to stop. Private to the daemon library.
 *
 * The loop polls its socket and wake_fd; wake_fd becomes readable, and stays so, when it shall end. All signals are
 * blocked in it: they belong to the main thread. */
#ifndef NDTD_SOCKET_THREAD_H
#define NDTD_SOCKET_THREAD_H

#include <pthread.h>

#include "ndt/status.h"

struct ndtd_socket_thread {
    pthread_t thread;
    int wake_fd;
};

/* name: at most 15 bytes, as tools show it. What the caller did before is seen by `run`. */
NDT_MUST_CHECK enum ndt_status ndtd_socket_thread_start(struct ndtd_socket_thread *thread, const char *name,
                                                        void *(*run)(void *), void *argument,
                                                        struct ndt_error *err);
/* Wakes it, waits for its end. */
void ndtd_socket_thread_stop(struct ndtd_socket_thread *thread);
/* For the loop: waits until the socket has something to read (1) or the thread shall stop (0). */
int ndtd_socket_thread_wait(const struct ndtd_socket_thread *thread, void *socket);

#endif

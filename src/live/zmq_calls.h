/* Calls of libzmq that do not wait, and are repeated when a signal has interrupted them, so that a message of
 * several parts is received and sent whole. Private to the daemon library. */
#ifndef NDTD_ZMQ_CALLS_H
#define NDTD_ZMQ_CALLS_H

#include <errno.h>
#include <zmq.h>

static inline int ndtd_recv(zmq_msg_t *message, void *socket)
{
    int result;
    while ((result = zmq_msg_recv(message, socket, ZMQ_DONTWAIT)) < 0 && errno == EINTR) {
    }
    return result;
}

/* flags: 0 or ZMQ_SNDMORE */
static inline int ndtd_send(void *socket, const void *data, size_t size, int flags)
{
    int result;
    while ((result = zmq_send(socket, data, size, flags | ZMQ_DONTWAIT)) < 0 && errno == EINTR) {
    }
    return result;
}

static inline int ndtd_send_message(zmq_msg_t *message, void *socket, int flags)
{
    int result;
    while ((result = zmq_msg_send(message, socket, flags | ZMQ_DONTWAIT)) < 0 && errno == EINTR) {
    }
    return result;
}

#endif

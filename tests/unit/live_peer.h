/* Clients of the daemon's sockets, for tests: every wait is bounded, and sockets do not linger. */
#ifndef LIVE_PEER_H
#define LIVE_PEER_H

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "ndtd/socket.h"
#include "ndt/clock.h"

enum { LIVE_WAIT_MS = 5000 };

__attribute__((unused)) static void live_int(void *socket, int option, int value)
{
    ck_assert_int_eq(zmq_setsockopt(socket, option, &value, sizeof(value)), 0);
}

/* A socket that sends to connected peers only (ZMQ_IMMEDIATE). Not for subscribers: with that option they
 * subscribe only when messages are received. */
__attribute__((unused)) static void *live_socket(void *context, int type, int wait_ms)
{
    void *socket = zmq_socket(context, type);
    ck_assert_ptr_nonnull(socket);
    live_int(socket, ZMQ_LINGER, 0);
    live_int(socket, ZMQ_IMMEDIATE, type != ZMQ_SUB);
    live_int(socket, ZMQ_SNDTIMEO, wait_ms);
    live_int(socket, ZMQ_RCVTIMEO, wait_ms);
    if (type == ZMQ_SUB)
        ck_assert_int_eq(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0), 0);
    return socket;
}

__attribute__((unused)) static void *live_connect(void *context, int type, const char *address)
{
    void *socket = live_socket(context, type, LIVE_WAIT_MS);
    ck_assert_int_eq(zmq_connect(socket, address), 0);
    return socket;
}

__attribute__((unused)) static struct ndtd_endpoint live_endpoint(const char *format, const char *where)
{
    struct ndtd_endpoint endpoint = {.send_high_water_mark = 1000,
                                     .receive_high_water_mark = 1000,
                                     .max_message_bytes = 1000000,
                                     .max_connections = 64,
                                     .ipc_mode = 0600};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(endpoint.address, sizeof(endpoint.address), format, where);
#pragma GCC diagnostic pop
    return endpoint;
}

/* A free tcp address on the loopback. */
__attribute__((unused)) static struct ndtd_endpoint live_tcp(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(name);
    char port[16];
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, size), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&name, &size), 0);
    close(fd);
    snprintf(port, sizeof(port), "%d", ntohs(name.sin_port));
    return live_endpoint("tcp://127.0.0.1:%s", port);
}

__attribute__((unused)) static void live_pause(int milliseconds)
{
    const struct timespec pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* Waits until `condition` holds. */
#define live_until(condition)                                                                                      \
    do {                                                                                                           \
        const double start_us = ndt_clock_us();                                                                    \
        while (!(condition) && ndt_clock_us() - start_us < LIVE_WAIT_MS * 1e3)                                     \
            live_pause(1);                                                                                         \
        ck_assert_msg(condition, "did not become true: %s", #condition);                                           \
    } while (0)

#endif

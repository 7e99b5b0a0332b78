/** @file
 * @brief Replacements of two functions of libc for libzmq 4.3, which aborts the process after some of their valid
 * results.
 *
 * The linker resolves libzmq's calls of accept4 and epoll_wait to the definitions in libzmq_guard.c, because those
 * of the program come before those of libc.
 *
 * accept4: libzmq's ipc listener asserts on EMFILE, and both listeners on network errors that Linux reports here.
 * The definition returns ECONNABORTED instead, which libzmq ignores. The definition closes connections beyond the
 * limit of a listener at once, and those that would use the reserve of descriptors.
 *
 * epoll_wait: when a client leaves while its input waits for the reader (high-water mark reached), libzmq takes the
 * hang-up for an error and keeps a connection without a descriptor; a heartbeat, its own or a PING of the client,
 * then fails an assertion (stream_engine_base.cpp:331). The definition does not report hang-ups and errors by
 * themselves: reading and writing, which libzmq does next, reports them, too. */
#ifndef NDTD_LIBZMQ_GUARD_H
#define NDTD_LIBZMQ_GUARD_H

/** Limits the connections of the listening sockets of this process that have no limit yet. Call it after every
 * zmq_bind. `name` is for log lines and is copied. */
void ndtd_guard_listeners(const char *name, int max_connections);

/** Connections that these limits have refused since the start, in total; from any thread. */
unsigned long long ndtd_guard_refused(void);

/** Ends a connection of this process from any thread: libzmq finds it closed by the peer. */
void ndtd_guard_end_connection(int fd);

/** The number of a socket, which no other open socket has; 0: `fd` is not a socket. A descriptor is used again
 * after close, but this number is not. */
unsigned long ndtd_guard_socket_number(int fd);

#endif

/* The page that fault_shim.c shares with its driver (fault_page.py): which calls of the program fail, and how many
 * it has made. The driver may change it while the program runs. */
#ifndef FAULT_PAGE_H
#define FAULT_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

/* Kinds of calls; fault_page.py has the same order. */
enum fault_kind {
    FAULT_MEMORY, /* malloc, calloc, realloc, aligned_alloc, posix_memalign */
    FAULT_MAP,    /* mmap */
    FAULT_OPEN,   /* open, fopen, fdopen, opendir, open_memstream, eventfd, socket */
    FAULT_READ,   /* read, pread, fread, fgets, fgetc */
    FAULT_WRITE,  /* write, writev, fwrite, fflush */
    FAULT_SYNC,   /* fsync, fdatasync */
    FAULT_RENAME, /* rename, link */
    FAULT_FILE,   /* fstat, ftruncate, flock, unlink, mkdir, chmod, fchmod, realpath */
    FAULT_THREAD, /* pthread_create */
    FAULT_SOCKET, /* zmq_ctx_new, zmq_socket, zmq_bind, zmq_connect, zmq_setsockopt, zmq_msg_init_size, zmq_msg_copy
                   */
    FAULT_MESSAGE, /* zmq_msg_recv, zmq_msg_send, zmq_send */
    FAULT_WAIT,    /* zmq_poll, poll, nanosleep, sem_wait, sem_clockwait */
    FAULT_WALL,    /* clock_gettime(CLOCK_REALTIME), time, gettimeofday */
    FAULT_STEADY,  /* clock_gettime(CLOCK_MONOTONIC) */
    FAULT_KINDS,
};

enum fault_mode {
    FAULT_FAILS, /* fails with `error` */
    FAULT_SHORT, /* half of the bytes */
    FAULT_SLOW,  /* `amount` microseconds later */
    FAULT_SPACE, /* writes: room for `amount` more bytes, then `error` */
    FAULT_LEAKS, /* memory: `amount` bytes more are allocated and never freed; open: a descriptor stays open */
    FAULT_JUMPS, /* clocks: `amount` seconds are added */
    FAULT_CRAWLS /* clocks: run `amount` times as slowly */
};

/* Call number `first` (from 1; 0: none), then every `every`-th one (0: no further), `most` in total (0: any
 * number). */
struct fault_rule {
    _Atomic int64_t first, every, most, mode, error, amount, calls, injected;
};

enum { FAULT_TRACE = 16 };

struct fault_page {
    _Atomic int64_t armed; /* calls are counted and fail only while it is not 0 */
    _Atomic int64_t base;  /* load address of the program: trace - base is an address in its file */
    struct fault_rule rules[FAULT_KINDS];
    int64_t trace[FAULT_TRACE]; /* return addresses of the newest injected fault */
};

#endif

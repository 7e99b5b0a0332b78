#define _GNU_SOURCE /* pthread_setname_np */

#include "log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "ndtd/log.h"

/* Longest time for the lines that wait at the end. */
enum { PATIENCE_S = 1, ROUND_MS = 100 };

static struct {
    char text[NDTD_LOG_LINE_BYTES];
    size_t size;
} ring[NDTD_LOG_LINES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static size_t head, count;
static int has_thread, stopping;
static atomic_int has_ended, gives_up;
static unsigned long long lost, unsaid; /* unsaid: lost lines that were not reported yet */

int ndtd_log_is_read(int wait_ms)
{
    struct pollfd item = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&item, 1, wait_ms) > 0;
}

/* Writes a line in one write, so that lines of different threads do not mix. If another program has made the
 * descriptor non-blocking, the write waits. */
static int write_all(const char *line, size_t size)
{
    ssize_t done;
    while ((done = write(STDERR_FILENO, line, size)) < 0 && (errno == EINTR || errno == EAGAIN))
        if (errno == EAGAIN)
            (void)ndtd_log_is_read(-1);
    return done == (ssize_t)size;
}

/* Waits until the line fits, or ndtd_log_stop() gives up. Cancelling the thread would be simpler, but the address
 * sanitizer would not know that its stack is free. */
static int write_patiently(const char *line, size_t size)
{
    while (!ndtd_log_is_read(atomic_load(&gives_up) ? 0 : ROUND_MS))
        if (atomic_load(&gives_up))
            return 0;
    return write_all(line, size);
}

static void lose(unsigned long long lines)
{
    lost += lines;
    unsaid += lines;
}

/* Writes a line; called with the lock held, which it releases meanwhile. Returns whether the line was written. */
static int write_unlocked(const char *line, size_t size)
{
    pthread_mutex_unlock(&lock);
    const int good = write_patiently(line, size);
    pthread_mutex_lock(&lock);
    return good;
}

static void report_lost(void)
{
    char line[NDTD_LOG_LINE_BYTES];
    const unsigned long long lines = unsaid;
    const int size = snprintf(line, sizeof(line), "%s%llu lines of the log are lost: they were not read\n",
                              getenv("JOURNAL_STREAM") ? "<4>" : "ndtd: warning: ", lines);
    unsaid = 0;
    if (!write_unlocked(line, (size_t)size))
        unsaid += lines;
}

static void write_lines(void)
{
    char line[NDTD_LOG_LINE_BYTES];
    pthread_mutex_lock(&lock);
    while (count > 0 || !stopping) {
        if (count == 0) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        const size_t size = ring[head].size;
        memcpy(line, ring[head].text, size);
        head = (head + 1) % NDTD_LOG_LINES;
        count--;
        if (!write_unlocked(line, size))
            lose(1);
        else if (unsaid > 0 && count == 0)
            report_lost();
    }
    pthread_mutex_unlock(&lock);
}

static void *run(void *unused)
{
    (void)pthread_setname_np(pthread_self(), "ndt-log");
    write_lines();
    atomic_store(&has_ended, 1);
    return unused;
}

void ndtd_log_put(const char *line, size_t size)
{
    pthread_mutex_lock(&lock);
    const int is_direct = !has_thread;
    if (!is_direct && count < NDTD_LOG_LINES) {
        const size_t at = (head + count++) % NDTD_LOG_LINES;
        memcpy(ring[at].text, line, size);
        ring[at].size = size;
        pthread_cond_signal(&changed);
    } else if (!is_direct)
        lose(1);
    pthread_mutex_unlock(&lock);
    if (is_direct)
        (void)write_all(line, size); /* there is no other output */
}

void ndtd_log_start(void)
{
    pthread_mutex_lock(&lock);
    stopping = 0;
    if (!has_thread) {
        atomic_store(&has_ended, 0);
        atomic_store(&gives_up, 0);
    }
    has_thread = has_thread || pthread_create(&thread, NULL, run, NULL) == 0;
    pthread_mutex_unlock(&lock);
}

/* Whether the thread ends within PATIENCE_S. */
static int await_end(void)
{
    const struct timespec step = {.tv_nsec = 2000000};
    for (int i = 0; i < PATIENCE_S * 500 && !atomic_load(&has_ended); i++)
        nanosleep(&step, NULL);
    return atomic_load(&has_ended);
}

/* Stops the thread. Lines without a reader are lost; a write that hangs (a dead disk) is left behind. */
void ndtd_log_stop(void)
{
    pthread_mutex_lock(&lock);
    const int had_thread = has_thread;
    stopping = 1;
    if (had_thread)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    if (!had_thread)
        return;
    if (!await_end())
        atomic_store(&gives_up, 1);
    if (await_end())
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    pthread_mutex_lock(&lock);
    lose(count);
    head = count = 0;
    has_thread = 0;
    pthread_mutex_unlock(&lock);
}

unsigned long long ndtd_log_lost(void)
{
    pthread_mutex_lock(&lock);
    const unsigned long long lines = lost;
    pthread_mutex_unlock(&lock);
    return lines;
}

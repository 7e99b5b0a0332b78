#include "ndtd/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log_writer.h"
#include "ndt/clock.h"

enum { KINDS = 64 };

/* Kinds of lines, by format; when all entries are used, the least recently written one is replaced. */
struct kind {
    const char *format;
    double written_us;
    uint64_t held_back;
};

static atomic_int threshold = NDTD_LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind kinds[KINDS];
static double interval_us = 60e6;

void ndtd_log_set_level(enum ndtd_log_level level)
{
    atomic_store(&threshold, (int)level);
}

void ndtd_log_set_interval(double interval_s)
{
    pthread_mutex_lock(&lock);
    interval_us = interval_s * 1e6;
    pthread_mutex_unlock(&lock);
}

static struct kind *find_kind(const char *format)
{
    struct kind *oldest = &kinds[0];
    for (int i = 0; i < KINDS; i++) {
        if (kinds[i].format == format)
            return &kinds[i];
        if (kinds[i].written_us < oldest->written_us)
            oldest = &kinds[i];
    }
    *oldest = (struct kind){.format = format, .written_us = -1e18};
    return oldest;
}

/* Whether the line may be written; 0: it is throttled. *repeats: number of throttled lines before it. */
static int may_write(const char *format, uint64_t *repeats)
{
    const double now_us = ndt_clock_us();
    pthread_mutex_lock(&lock);
    struct kind *kind = find_kind(format);
    const int due = now_us - kind->written_us >= interval_us;
    *repeats = kind->held_back;
    if (due) {
        kind->written_us = now_us;
        kind->held_back = 0;
    } else {
        kind->held_back++;
    }
    pthread_mutex_unlock(&lock);
    return due;
}

static size_t put_prefix(char *line, size_t size, enum ndtd_log_level level)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    static const int journal[] = {3, 4, 6, 7};
    struct timespec now;
    struct tm utc;
    if (getenv("JOURNAL_STREAM")) /* the journal adds time and level */
        return (size_t)snprintf(line, size, "<%d>", journal[level]);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &utc);
    used += (size_t)snprintf(line + used, size - used, ".%03ldZ ndtd: %s", now.tv_nsec / 1000000, names[level]);
    return used;
}

/* Writes a line in one write, so that lines of different threads do not mix. */
static void write_line(enum ndtd_log_level level, uint64_t repeats, const char *format, va_list arguments)
{
    char line[NDTD_LOG_LINE_BYTES];
    const size_t room = sizeof(line) - 64;
    size_t used = put_prefix(line, sizeof(line), level);
    const int more = vsnprintf(line + used, room - used, format, arguments);
    used = strlen(line);
    if (more < 0)
        return;
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)line[i] < ' ') /* no line breaks and no terminal control */
            line[i] = ' ';
    if (repeats)
        used += (size_t)snprintf(line + used, sizeof(line) - used, " (repeated %llu more times)",
                                 (unsigned long long)repeats);
    line[used++] = '\n';
    ndtd_log_put(line, used);
}

void ndtd_log(enum ndtd_log_level level, const char *format, ...)
{
    va_list arguments;
    uint64_t repeats;
    if ((int)level > atomic_load(&threshold) || !may_write(format, &repeats))
        return;
    va_start(arguments, format);
    write_line(level, repeats, format, arguments);
    va_end(arguments);
}

void ndtd_log_always(enum ndtd_log_level level, const char *format, ...)
{
    va_list arguments;
    if ((int)level > atomic_load(&threshold))
        return;
    va_start(arguments, format);
    write_line(level, 0, format, arguments);
    va_end(arguments);
}

/** @file
 * @brief Log lines on standard error, with a level, and with the prefixes of sd-daemon(3) when the journal reads
 * them (JOURNAL_STREAM).
 *
 * In the daemon (between ndtd_log_start and ndtd_log_stop) a thread "ndt-log" writes the lines, so that a reader
 * that stops reading, or a slow disk, delays no caller: at most NDTD_LOG_LINES lines wait for the thread, further
 * ones are lost, and their number is written once lines are read again. Without the thread a line waits for its
 * reader. A reader that has gone is no error.
 *
 * Repeated lines (same format string) are throttled: the first is written, later ones within a minute are counted,
 * and the count is appended to the next. Thread-safe. The wall clock is used for the time stamps of the lines only.
 */
#ifndef NDTD_LOG_H
#define NDTD_LOG_H

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_LOG_LINES 256 /**< lines that may wait */

/** Severity of a line. */
enum ndtd_log_level { NDTD_LOG_ERROR, NDTD_LOG_WARNING, NDTD_LOG_INFO, NDTD_LOG_DEBUG };

/** Writes lines of this and higher severity only. */
void ndtd_log_set_level(enum ndtd_log_level level);
/** Writes one line; line breaks and control characters are replaced. */
void ndtd_log(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/** Writes a line as ndtd_log does, but never throttled: for the effects of user actions such as a reload or a map
 * request. */
void ndtd_log_always(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/** Starts the thread; without it (no memory) lines are written by their callers. The caller ignores SIGPIPE. */
void ndtd_log_start(void);
/** Writes the waiting lines, for at most a second, and ends the thread. */
void ndtd_log_stop(void);
/** Number of lines lost since the start. Any thread. */
unsigned long long ndtd_log_lost(void);
/** Whether standard error takes a line; waits at most wait_ms for that. */
int ndtd_log_is_read(int wait_ms);
/** Sets the throttling interval, for tests; default 60 s. */
void ndtd_log_set_interval(double interval_s);

#ifdef __cplusplus
}
#endif
#endif

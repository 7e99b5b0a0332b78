/** @file
 * @brief Log lines on standard error, with a level, and with the prefixes of sd-daemon(3) when the journal reads
 * them (JOURNAL_STREAM).
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

/** Severity of a line. */
enum ndtd_log_level { NDTD_LOG_ERROR, NDTD_LOG_WARNING, NDTD_LOG_INFO, NDTD_LOG_DEBUG };

/** Writes lines of this and higher severity only. */
void ndtd_log_set_level(enum ndtd_log_level level);
/** Writes one line; line breaks and control characters are replaced. */
void ndtd_log(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/** As ndtd_log, not throttled: for the effects of user actions such as a reload or a map request. */
void ndtd_log_always(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/** Throttling interval; default 60 s. For tests. */
void ndtd_log_set_interval(double interval_s);

#ifdef __cplusplus
}
#endif
#endif

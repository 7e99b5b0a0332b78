/* Lines for people: to standard error, with a level; with <N> prefixes for the journal when it listens
 * (JOURNAL_STREAM). Repeated lines (same format string) are throttled: the first is written, later ones within a
 * minute are counted and told with the next. Thread-safe; the wall clock appears in the lines and nowhere else. */
#ifndef NDTD_LOG_H
#define NDTD_LOG_H

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ndtd_log_level { NDTD_LOG_ERROR, NDTD_LOG_WARNING, NDTD_LOG_INFO, NDTD_LOG_DEBUG };

void ndtd_log_set_level(enum ndtd_log_level level);
void ndtd_log(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/* The same, never throttled: for what somebody asked for (a reload, a map) and waits to see. */
void ndtd_log_always(enum ndtd_log_level level, const char *format, ...) NDT_PRINTF(2, 3);
/* How long repetitions are held back; 60 s. Tests shorten it. */
void ndtd_log_set_interval(double interval_s);

#ifdef __cplusplus
}
#endif
#endif

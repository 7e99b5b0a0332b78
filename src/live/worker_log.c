#include "worker_log.h"

#include "ndt/clock.h"
#include "ndtd/log.h"

enum { LINE_BYTES = 2000, STATE_LINES = 20 };
/* Time in which at most STATE_LINES changes of the state are logged: a state that flickers does not fill the log.
 */
static const double STATE_LINES_US = 60e6;

void ndtd_worker_log_state(struct ndtd_worker_log *log, const struct ndtd_state_change *change)
{
    char line[LINE_BYTES];
    const double now_us = ndt_clock_us();
    const unsigned held_back = log->state_lines > STATE_LINES ? log->state_lines - STATE_LINES : 0;
    if (now_us - log->state_lines_us >= STATE_LINES_US) {
        if (held_back)
            ndtd_log_always(NDTD_LOG_WARNING, "state: %u more changes within a minute", held_back);
        log->state_lines_us = now_us;
        log->state_lines = 0;
    }
    if (log->state_lines++ < STATE_LINES)
        ndtd_log_always(ndtd_state_is_trusted(change->to) ? NDTD_LOG_INFO : NDTD_LOG_WARNING, "%s",
                        ndtd_state_change_line(change, line, sizeof(line)));
}

void ndtd_worker_log_times(struct ndtd_worker_log *log, const struct ndtd_settings *settings,
                           const struct ndt_scan_header *scan)
{
    if (log->has_told_times || scan->points.count == 0)
        return;
    log->has_told_times = 1; /* only the first scan counts */
    if (settings->preprocess.deskew == NDT_DESKEW_OFF &&
        scan->points.fields[NDT_POINT_TIME].datatype != NDT_DATATYPE_NONE)
        ndtd_log_always(NDTD_LOG_INFO,
                        "hint: the points have times, and preprocess.deskew is off: `auto` takes the "
                        "motion of the vehicle out of the scans");
}

void ndtd_worker_log_events(struct ndtd_worker_log *log, const struct ndtd_pipeline_events *now)
{
    char text[NDTD_EVENT_BYTES];
    const char *format;
    for (size_t kind = 0; (format = ndtd_pipeline_event(now, &log->told, &kind, text)) != NULL;)
        ndtd_log(NDTD_LOG_WARNING, format, text);
}

/* Private: log lines of the worker about answered scans. */
#ifndef NDTD_WORKER_LOG_H
#define NDTD_WORKER_LOG_H

#include "ndtd/pipeline_events.h"
#include "ndtd/settings.h"
#include "ndtd/scan_state.h"

/* Events that the log has already. All zero: none. */
struct ndtd_worker_log {
    double state_lines_us; /* begin of the time in which state_lines changes were logged */
    unsigned state_lines;
    struct ndtd_pipeline_events told;
    int has_told_times; /* said once since the start */
};

/* Logs one line for a change of the state, at most twenty a minute. */
void ndtd_worker_log_state(struct ndtd_worker_log *log, const struct ndtd_state_change *change);
/* Says once that the points have times which preprocess.deskew = off leaves unused. */
void ndtd_worker_log_times(struct ndtd_worker_log *log, const struct ndtd_settings *settings,
                           const struct ndt_scan_header *scan);
/* Logs one line for each kind of event that happened since the last call. */
void ndtd_worker_log_events(struct ndtd_worker_log *log, const struct ndtd_pipeline_events *now);

#endif

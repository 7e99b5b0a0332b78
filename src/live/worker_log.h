/* Private: what the worker says about the scans it has answered. */
#ifndef NDTD_WORKER_LOG_H
#define NDTD_WORKER_LOG_H

#include "ndtd/pipeline_events.h"
#include "ndtd/settings.h"
#include "ndtd/scan_state.h"

/* Events that are in the log already. All zero: none. */
struct ndtd_worker_log {
    double state_lines_us; /* since then state_lines changes of the state */
    unsigned state_lines;
    struct ndtd_pipeline_events told;
    int has_told_times; /* since the start */
};

/* One line for a change of the state, and at most twenty a minute. */
void ndtd_worker_log_state(struct ndtd_worker_log *log, const struct ndtd_state_change *change);
/* One line for each kind of event that happened since the last call. */
/* Says once that the points have times which preprocess.deskew = off leaves unused. */
void ndtd_worker_log_times(struct ndtd_worker_log *log, const struct ndtd_settings *settings,
                           const struct ndt_scan_header *scan);
void ndtd_worker_log_events(struct ndtd_worker_log *log, const struct ndtd_pipeline_events *now);

#endif

/** @file
 * @brief Replay: runs a bag through the pipeline (ndtd/bag_run.h) and writes the results to files and a table.
 * Source: replay.c, replay_sinks.c. */
#ifndef NDTD_REPLAY_H
#define NDTD_REPLAY_H

#include "ndtd/replay_sinks.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a replay. */
struct ndtd_replay_options {
    const char *bag; /**< a bag, or another recording, see ndtd/record_source.h */
    struct ndtd_sink_paths files;
    const char *output; /**< folder for all files (ndtd/replay_folder.h), without names in `files`; may be NULL */
    const char *report; /**< HTML file that ndt-report writes; may be NULL */
    uint64_t skip;      /**< scans left out at the start */
    uint64_t limit;     /**< largest number of scans replayed; 0 = all */
    /** Largest number of scans that may end without a trusted pose, see ndtd_scan_is_untrusted; UINT64_MAX = any
     * number. */
    uint64_t max_untrusted;
    /** File for the backend's intermediate values (CSV) of the scan with seq `dump_scan`, at row `dump_iteration`
     * of its trace (last pass). May be NULL (disabled). A scan or row that does not exist is NDT_ERR_ARGUMENT. */
    const char *dump;
    uint64_t dump_scan, dump_iteration;
    struct ndtd_run_inputs inputs;  /**< for the summary; its bag and map are those of this run */
    const char *const *import_args; /**< arguments for ndt-import */
    size_t import_arg_count;
};

/** Replays a bag and prints the table to stdout, progress and warnings to stderr. *failed becomes 1 when a check
 * failed, and one line each tells the reason: the trajectory is not that of files.expect, or more scans than
 * max_untrusted ended without a trusted pose; the files are written nevertheless. A damaged bag is replayed up to
 * the last complete record, with a warning. NDT_ERR_ARGUMENT: the settings do not fit (no map, no start for skip,
 * more scans skipped than the bag has). Any other error: the run failed and no file was written. */
NDT_MUST_CHECK enum ndt_status ndtd_replay(const struct ndtd_settings *settings,
                                           const struct ndtd_replay_options *options, int *failed,
                                           struct ndt_error *err);
/** Stops the running replay after the current scan; it then fails and writes nothing. Async-signal-safe. */
void ndtd_replay_stop(void);

#ifdef __cplusplus
}
#endif
#endif

/* A bag through the pipeline, and what came of it. The offline path: the same frames, decoder and pipeline
 * as the live daemon; a full queue cannot happen, and no clock steers a result.
 *
 * Start: the first initial pose in the bag. An initial_pose in the settings comes first: initial poses of
 * the bag before the first replayed scan are then left out. With skip > 0 and no initial_pose in the settings the
 * start is the truth of the bag at the first replayed scan, with the motion to the next truth.
 * Odometry is always passed on, skipped scans are not.
 *
 * Frames that cannot be decoded are counted by kind; a scan among them is answered `rejected`, with its
 * place among the scans of the bag as seq and the receive time as stamp. */
#ifndef NDTD_REPLAY_H
#define NDTD_REPLAY_H

#include "ndtd/replay_sinks.h"
#include "ndtd/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_replay_options {
    const char *bag;
    struct ndtd_sink_paths files;
    uint64_t skip;  /* scans left out at the start */
    uint64_t limit; /* scans replayed at most; 0 = all */
    /* Where to write, as CSV, what the backend computes between points and sums: for the scan with this seq, at
     * this row of its trace (last pass). NULL: nowhere. A scan that does not come or has no such row is
     * NDT_ERR_ARGUMENT. */
    const char *dump;
    uint64_t dump_scan, dump_iteration;
};

/* Prints the table to stdout, progress and warnings to stderr. *differs becomes 1, and one line says where,
 * when files.expect does not agree; the files are written all the same.
 * A damaged bag is replayed up to the last whole record, with a warning. NDT_ERR_ARGUMENT: the settings do
 * not fit (no map, no start for skip, more skipped than there are). Everything else: the run failed, and no file
 * was written. */
NDT_MUST_CHECK enum ndt_status ndtd_replay(const struct ndtd_settings *settings,
                                           const struct ndtd_replay_options *options, int *differs,
                                           struct ndt_error *err);
/* Asks the running replay to stop after the scan it is at; it then fails and writes nothing. Safe in a
 * signal handler. */
void ndtd_replay_stop(void);

#ifdef __cplusplus
}
#endif
#endif

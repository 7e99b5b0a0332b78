/* Where the results of a replay go: the trajectory, the timing dump, the summary, the expectation, the
 * evaluator and the hash. All files appear together at the end, or not at all. One owner, one thread. */
#ifndef NDTD_REPLAY_SINKS_H
#define NDTD_REPLAY_SINKS_H

#include "ndt_io/output_file.h"
#include "ndt_io/trajectory.h"
#include "ndtd/trajectory_error.h"
#include "ndtd/reference_trajectory.h"
#include "ndtd/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the files; NULL where none is wanted. `timing` ends in .csv or .jsonl. */
struct ndtd_sink_paths {
    const char *poses, *timing, *summary, *expect;
};

/* All zero is closed. */
struct ndtd_sinks {
    struct ndt_output poses, timing, json;
    enum ndt_trajectory_format poses_format; /* KITTI when the name ends in .kitti, else TUM */
    int timing_is_json;
    int expects;
    struct ndtd_reference_trajectory reference;
    struct ndtd_trajectory_error trajectory_error; /* truth goes straight in */
    struct ndtd_summary summary;
};

/* Whether the timing dump can have this name: 0 none of ours, 1 .csv, 2 .jsonl. */
int ndtd_timing_format(const char *path);

/* Opens every file, so that a wrong name is known before the work. Closed again on failure. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_open(struct ndtd_sinks *sinks, const struct ndtd_sink_paths *paths,
                                               struct ndt_error *err);
/* Takes one result; writes record->publish_us. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_emit(struct ndtd_sinks *sinks, struct ndtd_scan_record *record,
                                               struct ndt_error *err);
/* Compares with truth, writes the summary and commits all files. The summary's fields about map and backend
 * are filled by the caller before. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_finish(struct ndtd_sinks *sinks, struct ndt_error *err);
/* Frees everything; files that were not committed are removed. */
void ndtd_sinks_close(struct ndtd_sinks *sinks);

/* 1 when a scan with this outcome has a pose worth writing: found, or at least predicted. */
int ndtd_outcome_has_pose(enum ndt_outcome outcome);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief Outputs of a replay: trajectory, timing dump, results, summary, comparison with a reference trajectory and
 * ground truth, hash.
 *
 * All files appear together at the end, or none of them. One owner, one thread. */
#ifndef NDTD_REPLAY_SINKS_H
#define NDTD_REPLAY_SINKS_H

#include "ndt_io/output_file.h"
#include "ndt_io/trajectory.h"
#include "ndtd/trajectory_error.h"
#include "ndtd/reference_trajectory.h"
#include "ndtd/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Names of the files; each may be NULL (disabled). `timing` ends in .csv or .jsonl. */
struct ndtd_sink_paths {
    const char *poses, *timing, *results, *summary, *expect;
    int keeps_untrusted; /**< `poses` gets every pose, not only those of ndtd_scan_has_trusted_pose */
};

/** All zero: closed. */
struct ndtd_sinks {
    struct ndt_output poses, timing, results, json;
    struct ndt_buffer frame;      /**< Message in work. */
    uint64_t map_id, config_hash; /**< Identity in every result; set by the replay. */
    int keeps_untrusted;
    enum ndt_trajectory_format poses_format; /**< KITTI if the name ends in .kitti, else TUM. */
    int timing_is_json;
    int expects;
    struct ndtd_reference_trajectory reference;
    struct ndtd_trajectory_error trajectory_error; /**< The replay adds the ground truth. */
    struct ndtd_summary summary;
};

/** Format of a timing dump with this name: 1 .csv, 2 .jsonl, 0 another one. */
int ndtd_timing_format(const char *path);

/** Opens every file, so that a wrong name is reported before the replay. On failure everything is closed. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_open(struct ndtd_sinks *sinks, const struct ndtd_sink_paths *paths,
                                               struct ndt_error *err);
/** Writes one result; sets record->publish_us. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_emit(struct ndtd_sinks *sinks, struct ndtd_scan_record *record,
                                               struct ndt_error *err);
/** Computes the errors, writes the summary and commits all files. The caller has filled in the summary's fields
 * about map and backend. */
NDT_MUST_CHECK enum ndt_status ndtd_sinks_finish(struct ndtd_sinks *sinks, struct ndt_error *err);
/** Frees everything and removes files that were not committed. */
void ndtd_sinks_close(struct ndtd_sinks *sinks);

#ifdef __cplusplus
}
#endif
#endif

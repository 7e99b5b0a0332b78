/** @file
 * @brief A bag through the pipeline, one scan per call: what `ndtd --replay` and the Python package iterate over.
 *
 * Frames, decoders and pipeline are those of the live daemon; no queue can overflow, and no clock affects a
 * result. Payloads are read in the buffer of the bag reader.
 *
 * Start: the first initial pose in the bag. An initial_pose in the settings has priority: initial poses of the bag
 * before the first replayed scan are then ignored. With skip > 0 and no initial_pose in the settings the start is
 * the ground truth of the bag at the first replayed scan, with the velocity to the next ground-truth pose.
 * Odometry and GNSS of skipped scans are processed.
 *
 * Frames that cannot be decoded are counted by type; a scan among them is answered `rejected`, with its index
 * among the scans of the bag as seq and the receive time as stamp. One owner, one thread. Source: bag_run.c. */
#ifndef NDTD_BAG_RUN_H
#define NDTD_BAG_RUN_H

#include "ndtd/hints.h"
#include "ndtd/pipeline.h"
#include "ndtd/settings.h"
#include "ndtd/trajectory_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The error of a replay whose settings name no map. */
#define NDTD_NO_MAP_TEXT                                                                                           \
    "no map: give --map FILE|DIR, or map.path in the configuration; ndt-map build makes one of a drive, --map "    \
    "none "                                                                                                        \
    "is odometry without one"

/** The bag, the part of it that is replayed, and how. */
struct ndtd_bag_run_options {
    const char *bag;                /**< or another recording, see ndtd/record_source.h */
    uint64_t skip;                  /**< scans left out at the start */
    uint64_t limit;                 /**< scans replayed at most; 0 = all */
    const char *const *import_args; /**< for ndt-import; borrowed until close */
    size_t import_arg_count;
};

struct ndtd_bag_run;
/** Opens bag, map and backend. settings and the bag's name are copied; truth: receives the ground truth of
 * the bag, borrowed until close. NDT_ERR_ARGUMENT: the settings name no map. With the map
 * `none` there is none: the poses are those of odometry, and ndtd_bag_run_hints moves the ground truth into their
 * frame, by the first pose that has one. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_open(struct ndtd_bag_run **out, const struct ndtd_settings *settings,
                                                 const struct ndtd_bag_run_options *options,
                                                 struct ndtd_trajectory_error *truth, struct ndt_error *err);
/** `run` may be NULL. */
void ndtd_bag_run_close(struct ndtd_bag_run *run);

/** The result of the next scan. NDT_END: there is none, because the bag, or what is intact of it, or the limit is
 * at its end. Ground truth up to the next scan has then been added. NDT_ERR_CANCELLED: ndtd_bag_run_stop. Any other
 * status: the run failed. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_next(struct ndtd_bag_run *run, struct ndtd_scan_record *record,
                                                 struct ndt_error *err);
/** Makes ndtd_bag_run_next of every run return before the next record. Async-signal-safe. */
void ndtd_bag_run_stop(void);

/** Why the bag has no scan to replay; NDT_OK when there was one. At the end. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_check(const struct ndtd_bag_run *run, struct ndt_error *err);
/** One line for each thing that went wrong without ending the run: damage, frames that could not be used, events of
 * the pipeline. Calls line(context, text) for each. At the end. */
void ndtd_bag_run_warnings(const struct ndtd_bag_run *run, void (*line)(void *context, const char *text),
                           void *context);

/** Hints at settings that may be wrong (ndtd/hints.h); borrowed. At the end, when `truth` has the results. */
const struct ndtd_hints *ndtd_bag_run_hints(struct ndtd_bag_run *run);

double ndtd_bag_run_done(const struct ndtd_bag_run *run); /**< part of the work, 0 to 1; below 0: not known */
double ndtd_bag_run_map_load_ms(const struct ndtd_bag_run *run);
const struct ndt_map *ndtd_bag_run_map(const struct ndtd_bag_run *run);
uint64_t ndtd_bag_run_config_hash(const struct ndtd_bag_run *run);
struct ndtd_pipeline *ndtd_bag_run_pipeline(struct ndtd_bag_run *run); /**< borrowed */

#ifdef __cplusplus
}
#endif
#endif

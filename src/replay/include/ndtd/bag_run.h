/** @file
 * @brief Runs a bag through the pipeline, one scan per call, for `ndtd --replay` and the Python package.
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

/** Error of a replay whose settings name no map. */
#define NDTD_NO_MAP_TEXT                                                                                           \
    "no map: give --map FILE|DIR, or map.path in the configuration; ndt-map build makes one of a drive, --map "    \
    "none "                                                                                                        \
    "is odometry without one"

/** Options of a run: the bag, and the part of it that is replayed. */
struct ndtd_bag_run_options {
    const char *bag;                /**< a bag, or another recording, see ndtd/record_source.h */
    uint64_t skip;                  /**< scans left out at the start */
    uint64_t limit;                 /**< largest number of scans replayed; 0 = all */
    const char *const *import_args; /**< arguments for ndt-import; borrowed until close */
    size_t import_arg_count;
};

struct ndtd_bag_run;
/** Opens bag, map and backend. settings and the bag's name are copied; truth: receives the ground truth of the bag,
 * borrowed until close. NDT_ERR_ARGUMENT: the settings name no map. With the map `none` the poses are those of
 * odometry, and ndtd_bag_run_hints moves the ground truth into their frame, by the first pose that has a ground
 * truth. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_open(struct ndtd_bag_run **out, const struct ndtd_settings *settings,
                                                 const struct ndtd_bag_run_options *options,
                                                 struct ndtd_trajectory_error *truth, struct ndt_error *err);
/** `run` may be NULL. */
void ndtd_bag_run_close(struct ndtd_bag_run *run);

/** Writes the result of the next scan. NDT_END: the bag, the intact part of it, or the limit is at its end. Ground
 * truth up to the next scan has then been added. NDT_ERR_CANCELLED: ndtd_bag_run_stop. Any other status: the run
 * failed. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_next(struct ndtd_bag_run *run, struct ndtd_scan_record *record,
                                                 struct ndt_error *err);
/** Makes ndtd_bag_run_next of every run return before the next record. Async-signal-safe. */
void ndtd_bag_run_stop(void);

/** Called at the end: the error that the bag has no scan to replay; NDT_OK when there was one. */
NDT_MUST_CHECK enum ndt_status ndtd_bag_run_check(const struct ndtd_bag_run *run, struct ndt_error *err);
/** Calls line(context, text) at the end for each fault that did not end the run: damage, frames that could not be
 * used, events of the pipeline. */
void ndtd_bag_run_warnings(const struct ndtd_bag_run *run, void (*line)(void *context, const char *text),
                           void *context);

/** Messages of each kind (NDT_MESSAGE_END numbers) that were taken in so far, besides scans; borrowed. */
const uint64_t *ndtd_bag_run_messages(const struct ndtd_bag_run *run);
/** Hints at settings that may be wrong (ndtd/hints.h), at the end, when `truth` has the results; borrowed. */
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

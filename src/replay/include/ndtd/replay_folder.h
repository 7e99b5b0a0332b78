/** @file
 * @brief The folder of a replay (--output), with everything that a report or a viewer needs.
 *
 *     summary.json   as --summary
 *     results.jsonl  as --results
 *     poses.tum      as --out
 *     timing.csv     as --timing
 *     config.yaml    the settings in force, with the path of the map from the root
 *     truth.tum      the ground truth of the bag, as far as it was read; absent without
 *     points.bag     a `points` message per scan (proto/SCHEMA.md) of at most NDTD_REPLAY_FOLDER_POINTS points
 *     .ndtd-replay   marks the folder: ndtd writes only to folders that are new or empty, or have this file
 *
 * The files appear at the end. summary.json is the last one: a folder that has it is complete. Files of an earlier
 * replay are then replaced, and other files stay. One owner, one thread. Source: replay_folder.c. */
#ifndef NDTD_REPLAY_FOLDER_H
#define NDTD_REPLAY_FOLDER_H

#include "ndtd/pipeline.h"
#include "ndtd/replay_sinks.h"
#include "ndtd/settings.h"
#include "ndtd/trajectory_error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_REPLAY_FOLDER_POINTS = 4000 /**< points of a scan in points.bag */ };

struct ndtd_replay_folder;
/** Creates or takes the folder `path`; NULL: a temporary one, which ndtd_replay_folder_close removes. Sets the
 * names of the files in `files`, which are borrowed until close. NDT_ERR_ARGUMENT: the folder has other files and
 * no mark, or another replay is writing to it. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_folder_open(struct ndtd_replay_folder **out, const char *path,
                                                       struct ndtd_sink_paths *files, struct ndt_error *err);
/** Adds the points of a scan; called after each scan of a watched pipeline. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_folder_add(struct ndtd_replay_folder *folder,
                                                      struct ndtd_pipeline *pipeline, struct ndt_error *err);
/** Completes the files that are not those of the sinks; ndtd_sinks_finish has to follow. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_folder_finish(struct ndtd_replay_folder *folder,
                                                         const struct ndtd_settings *settings,
                                                         const struct ndtd_timed_poses *truth,
                                                         struct ndt_error *err);
/** The path of the folder. */
const char *ndtd_replay_folder_path(const struct ndtd_replay_folder *folder);
/** Closes the folder, after ndtd_sinks_close. is_complete = 0: removes the written files, and the folder if it was
 * created. NULL is allowed. */
void ndtd_replay_folder_close(struct ndtd_replay_folder *folder, int is_complete);

#ifdef __cplusplus
}
#endif
#endif

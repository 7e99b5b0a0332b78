/* Private: localising without a map (map.path none). The poses are those of ndt_odometry, in the frame `odom`.
 *
 * A scan is `converged` and the state `tracking` as long as all poses since the first scan follow from scans.
 * Outcome and state are `lost` for good where a scan hardly observes a direction and no other sensor does, where a
 * pose jumps farther than a vehicle can move, and where the local map began anew: later poses are right relative to
 * that place alone. An initial pose starts odometry anew: `odom` is then the base at the next scan. One owner, one
 * thread. */
#ifndef NDTD_ODOMETRY_MODE_H
#define NDTD_ODOMETRY_MODE_H

#include "ndt_odometry/odometry.h"
#include "ndt_proto/message.h"
#include "ndt_track/track.h"
#include "ndtd/pipeline.h"
#include "scan.h"

struct ndtd_odometry_mode;
/* Opens a backend on the CPU, with so many threads; 0: one per core, at most 4. The settings are borrowed until a
 * call passes others. */
NDT_MUST_CHECK enum ndt_status ndtd_odometry_mode_create(struct ndtd_odometry_mode **out,
                                                         const struct ndtd_settings *settings, int threads,
                                                         struct ndt_error *err);
/* `mode` may be NULL. */
void ndtd_odometry_mode_destroy(struct ndtd_odometry_mode *mode);
/* Starts anew with the next scan. */
void ndtd_odometry_mode_restart(struct ndtd_odometry_mode *mode);
/* Starts anew where the estimator is: `odom` is then the frame of the estimator's poses. preprocess: of the points;
 * NULL: that of the settings. NDT_ERR_MEMORY: odometry does not run. */
NDT_MUST_CHECK enum ndt_status ndtd_odometry_mode_begin_at(struct ndtd_odometry_mode *mode,
                                                           const struct ndtd_settings *settings,
                                                           const struct ndt_preprocess_params *preprocess,
                                                           const struct ndt_track *track, struct ndt_error *err);
/* The estimate after the last scan; only while odometry runs. */
const struct ndt_track_state *ndtd_odometry_mode_state(const struct ndtd_odometry_mode *mode);
/* The result of the last scan that odometry was given. */
const struct ndt_odometry_result *ndtd_odometry_mode_found(const struct ndtd_odometry_mode *mode);
/* Samples between scans, in the base frame. */
void ndtd_odometry_mode_imu(struct ndtd_odometry_mode *mode, const struct ndt_track_imu_sample *sample);
void ndtd_odometry_mode_wheels(struct ndtd_odometry_mode *mode, const struct ndt_track_odometry_sample *sample);
/* Writes the result of a scan, whose sweep is known, into the record. NDT_ERR_MEMORY: memory does not suffice for
 * this scan. */
NDT_MUST_CHECK enum ndt_status ndtd_odometry_mode_scan(struct ndtd_odometry_mode *mode,
                                                       const struct ndtd_settings *settings,
                                                       const struct ndtd_scan *scan, struct ndt_cloud *raw,
                                                       struct ndtd_scan_record *record, struct ndt_error *err);

#endif

/** @file
 * @brief The state of the localisation after a scan, and its changes as lines of text.
 *
 * Pure functions. Source: scan_state.c. */
#ifndef NDTD_SCAN_STATE_H
#define NDTD_SCAN_STATE_H

#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The facts of a scan that decide about the state. */
struct ndtd_scan_facts {
    int has_pose;      /**< the estimator has a pose */
    int is_recovering; /**< pose hypotheses are followed, and none is accepted yet */
    enum ndt_outcome outcome;
    double deviation_m;      /**< deviation of the estimated position, see ndt_track_position_deviation */
    double lost_deviation_m; /**< estimator.lost_deviation_m */
    double deviation_rad;    /**< deviation of the estimated attitude, see ndt_track_attitude_deviation */
    int is_extending;        /**< odometry has carried the pose beyond the edge of the map */
    int is_contradicted;     /**< the alignment failed, and the prediction alone is not certain enough */
    int has_left_track;      /**< see ndtd_relocalizer_has_left_track */
};
/** Largest standard deviation of a trusted attitude: 5 deg. */
#define NDTD_LOST_RAD 0.087266462599716474
/** The state after a scan. Without a pose it is initialising; a scan that converged makes it tracking. It is lost,
 * or recovering where a pose hypothesis may be right, after a scan that is off the map, that leaves the position
 * less certain than the limit, that leaves a trusted pose with an attitude less certain than NDTD_LOST_RAD, that
 * is contradicted, or that has left the track. Beyond the edge of the map it is extending instead, as long as
 * odometry's pose is within these limits. Any other scan turns tracking into coasting and changes nothing else. */
enum ndt_state ndtd_scan_state_next(enum ndt_state before, const struct ndtd_scan_facts *scan);

/** Whether a scan with this outcome has a pose: matched, or at least predicted. */
int ndtd_outcome_has_pose(enum ndt_outcome outcome);
/** Whether the pose in this state may be used: see ndt_state_is_trusted. */
int ndtd_state_is_trusted(enum ndt_state state);

/** Whether a scan ends without a trusted pose. A merged scan does not count: the scan that completes its sweep
 * does.
 */
int ndtd_scan_is_untrusted(const struct ndtd_scan_record *record);

/** Whether the pose of the result may be used: there is one, the state is trusted, and the pose is the estimate. */
int ndtd_scan_has_trusted_pose(const struct ndtd_scan_record *record);

enum { NDTD_STATE_REASON = 128 };

/** A change of the state. All zero: none so far, the state is initialising. */
struct ndtd_state_change {
    enum ndt_state from, to;
    uint64_t seq; /**< number of the scan that changed it */
    int64_t stamp_ns;
    int has_pose;
    struct ndt_pose T_map_base; /**< pose at the stamp */
    char reason[NDTD_STATE_REASON];
};
/** Replaces `last` when the state after this scan is not last->to; returns whether it did. */
int ndtd_state_change_update(struct ndtd_state_change *last, const struct ndtd_scan_record *record);
/** "state: tracking -> lost at scan 123, ...": stamp, pose and reason, without a line break. Returns `text`. */
const char *ndtd_state_change_line(const struct ndtd_state_change *change, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief Checks odometry and gyro against the motion that the scans find.
 *
 * The check compares two motions between confirmed scans, that of the scans' poses and that of the input's samples,
 * over intervals in which the vehicle, or the input, moved by a metre or turned by 0.1 rad. An input that is far
 * off in three of four intervals in a row has a fault that no noise, scale or bias of a working sensor explains:
 * another unit, sign or frame, or samples that stand still. Predictions then leave the input out (struct ndt_track,
 * `ignores`) until four intervals in a row agree.
 *
 * Faults along a direction that no scan observes, as along a tunnel, cannot be found: there the estimate follows
 * the input.
 *
 * Plain data, no allocation, no clock. */
#ifndef NDT_TRACK_INPUT_CHECK_H
#define NDT_TRACK_INPUT_CHECK_H

#include "ndt_track/track.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Faults of an input, those of the translation before those of the rotation. */
enum ndt_track_fault {
    NDT_TRACK_NO_FAULT,
    NDT_TRACK_STANDS_STILL,      /**< the input stands still while the scans move */
    NDT_TRACK_MOVES_ALONE,       /**< the input moves while the scans stand still */
    NDT_TRACK_WRONG_SCALE,       /**< `value`: motion of the input over that of the scans */
    NDT_TRACK_BACKWARDS,         /**< wrong scale along the opposite direction */
    NDT_TRACK_TURNED,            /**< `value`: the angle about z from the direction of the scans [rad] */
    NDT_TRACK_OTHER_MOTION,      /**< none of these */
    NDT_TRACK_TURN_STANDS_STILL, /**< faults of the rotation, as above */
    NDT_TRACK_TURNS_ALONE,
    NDT_TRACK_WRONG_TURN_SCALE,
    NDT_TRACK_OPPOSITE_TURN,
    NDT_TRACK_OTHER_TURN
};

enum { NDT_TRACK_COMPARED = 4 };

/** The last comparisons of one kind of motion, and the current interval. */
struct ndt_track_compared {
    int has_from;
    int64_t from_ns;
    struct ndt_pose T_map_base; /**< pose at the begin of the interval */
    /** Translation [m] or rotation [rad] in the base frame at the begin of an interval: [0] of the scans, [1] of
     * the input. Rings, with the newest at count - 1 modulo their size. */
    double motion[NDT_TRACK_COMPARED][2][3];
    int is_off[NDT_TRACK_COMPARED];
    uint32_t count;
};

/** State of the check of one input. */
struct ndt_track_input_check {
    struct ndt_track_compared moves, turns; /**< moves: of odometry only */
    enum ndt_track_fault fault;             /**< current fault */
    double value;                           /**< see the faults */
    uint64_t faults;                        /**< number of times that the input became faulty */
};

/** Ends the intervals, because the pose was set and not found by a scan. */
void ndt_track_input_check_break(struct ndt_track_input_check *check);
/** Compares `input` after a confirmed scan, with the state that the scan left, and sets track->ignores. seen: the
 * twist that the scans found since the previous one, with which the estimate goes on without the input; NULL: not
 * known. A check that is all zero has compared nothing. */
void ndt_track_input_check_scan(struct ndt_track_input_check *check, struct ndt_track *track,
                                enum ndt_track_input input, const struct ndt_track_state *confirmed,
                                const struct ndt_twist *seen);

#ifdef __cplusplus
}
#endif
#endif

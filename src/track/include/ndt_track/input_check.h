/** @file
 * @brief Whether odometry and gyro tell the motion that the scans find.
 *
 * Between scans that were confirmed, both tell a motion: the scans by their poses, an input by its samples. Over
 * intervals in which the vehicle, or the input, moved by a metre or turned by 0.1 rad, the two are compared. An
 * input that is far off in three of four intervals in a row has a fault that no noise, scale or bias of a working
 * sensor explains: another unit, sign or frame, or samples that stand still. Predictions then do without it
 * (struct ndt_track, `ignores`), and it is used again once four intervals in a row agree.
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

/** Fault of an input, the translation before the rotation. */
enum ndt_track_fault {
    NDT_TRACK_NO_FAULT,
    NDT_TRACK_STANDS_STILL,      /**< while the scans move */
    NDT_TRACK_MOVES_ALONE,       /**< while the scans stand still */
    NDT_TRACK_WRONG_SCALE,       /**< `value`: what it tells over what the scans find */
    NDT_TRACK_BACKWARDS,         /**< the same, along the opposite direction */
    NDT_TRACK_TURNED,            /**< `value`: the angle about z from the direction of the scans [rad] */
    NDT_TRACK_OTHER_MOTION,      /**< none of these */
    NDT_TRACK_TURN_STANDS_STILL, /**< of the rotation: as above */
    NDT_TRACK_TURNS_ALONE,
    NDT_TRACK_WRONG_TURN_SCALE,
    NDT_TRACK_OPPOSITE_TURN,
    NDT_TRACK_OTHER_TURN
};

enum { NDT_TRACK_COMPARED = 4 };

/** The last comparisons of one kind of motion; ends of the interval that has begun. */
struct ndt_track_compared {
    int has_from;
    int64_t from_ns;
    struct ndt_pose T_map_base; /**< there */
    /** Translation [m] or rotation [rad] in the base frame of the begin of an interval: [0] of the scans, [1] of
     * the input. Rings, the newest at count - 1 modulo their size. */
    double motion[NDT_TRACK_COMPARED][2][3];
    int is_off[NDT_TRACK_COMPARED];
    uint32_t count;
};

/** The state of the check of one input. */
struct ndt_track_input_check {
    struct ndt_track_compared moves, turns; /**< moves: of odometry only */
    enum ndt_track_fault fault;             /**< now */
    double value;                           /**< see the faults */
    uint64_t faults;                        /**< times that it began */
};

/** The intervals end: the pose was set, not found. */
void ndt_track_input_check_break(struct ndt_track_input_check *check);
/** After a scan that was confirmed, with the state that it left: compares `input`, and sets track->ignores. seen:
 * the twist that the scans found since the one before, which the estimate goes on with where the input is left out;
 * NULL: not known. A struct that is all zero has compared nothing. */
void ndt_track_input_check_scan(struct ndt_track_input_check *check, struct ndt_track *track,
                                enum ndt_track_input input, const struct ndt_track_state *confirmed,
                                const struct ndt_twist *seen);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief Checks odometry and gyro against the motion that the scans find.
 *
 * The check compares two motions between confirmed scans, that of the scans' poses and that of the input's samples,
 * over intervals in which the vehicle, or the input, moved by a metre or turned by 0.35 rad (20 deg). An input that
 * is far off in the last intervals has a fault that no noise, scale or bias of a working sensor explains: another
 * unit, sign or frame, or samples that stand still. Predictions then leave the input out (struct ndt_track,
 * `ignores`) until four intervals in a row agree.
 *
 * Moves: three of four intervals differ by 30 % and 0.15 m.
 *
 * Turns count by their size. All scans of a turn may be declined, because the input tells it wrong: then one large
 * turn is compared, from the confirmed scan before it to the one after it, up to 20 s later. Over the last four,
 * |d| is the root of the summed squares of the differences, |t| that of the turns, and s the deviation per axis of
 * the differences by noise, attitudes and bias. An input is off where |d| > 0.3 |t| + 4 s. The scale and the axis
 * of a working one may be wrong by 30 %: its |d| is at most 0.3 |t| and its noise, by the triangle inequality. At
 * that limit normal noise exceeds 4 s once in 900 turns or less (chi-square with 3 degrees of freedom); within 20 %
 * the least turn leaves it 4 deviations more, of an attitude with 0.4 deg.
 *
 * The bias is learnt, with its deviation, where the scans turn by less than 0.1 rad within 2 s; before that its
 * deviation is ndt_track_params.gyro_bias_radps.
 *
 * Faults along a direction that no scan observes, as along a tunnel, cannot be found: there the estimate follows
 * the input. Where no scan is confirmed after a turn, nothing is compared.
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
    int64_t told_ns;            /**< the input is followed up to here: */
    struct ndt_pose told;       /**< its motion since the begin */
    double told_rad[3];         /**< the sum of its turns, which may be more than half a turn */
    /** Bias of the input's turns, learnt while the scans do not turn, and its deviation; 0: not learnt. */
    double bias_radps[3], bias_deviation_radps;
    /** Translation [m] or rotation [rad] in the base frame at the begin of an interval: [0] of the scans, [1] of
     * the input. Rings, with the newest at count - 1 modulo their size. */
    double motion[NDT_TRACK_COMPARED][2][3];
    double off[NDT_TRACK_COMPARED];    /**< difference of the two motions [m] or [rad] */
    double noise2[NDT_TRACK_COMPARED]; /**< its variance by noise and bias; of turns only */
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
/** Follows `input` up to a scan that is not confirmed: until one is, its samples are gone, and it may have turned
 * by more than half a turn. */
void ndt_track_input_check_follow(struct ndt_track_input_check *check, const struct ndt_track *track,
                                  enum ndt_track_input input, int64_t stamp_ns);
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

/** @file
 * @brief The pose at any time: at the last scans, between them, and after them.
 *
 *     ndt_track_window_clear(&window);
 *     ndt_track_commit(&track, &updated);                              // after each scan
 *     ndt_track_window_add(&window, &track, &step, is_trusted);
 *     ndt_track_pose_at(&window, &track, stamp_ns, 0.2, &pose);        // pose.state.T_map_base
 *
 * The window keeps the state that each scan has left; the motion between them is in the samples of `track`.
 *
 * Between two scans the state is predicted from the earlier one with the motion that was measured (odometry, gyro,
 * else constant twist), and the error at the next scan is corrected in proportion to the growth of the covariance:
 * one step of Rauch, Tung and Striebel (1965) with the error state of track.h,
 *
 *     C = P F^T P'^-1    x = x^ + C (x_s - x')    P_s = P + C (P'_s - P') C^T
 *
 * x^, P at the stamp; x', P' predicted from there to the next scan; x_s, P'_s the smoothed state there, which the
 * scans after it have changed in the same way, up to NDT_TRACK_LATER_SCANS of them. Later scans know more: a
 * smoothed pose is more certain than a filtered one.
 *
 * **Late samples.** Odometry and gyro that came after a scan was answered count, too: a past pose is smoothed from
 * states that are computed again, scan by scan, with all samples that are there now and with the alignments as they
 * were found. Equal samples and alignments give equal bits in any order of arrival. A state is computed for the
 * last time NDT_TRACK_LATE_S after its scan, or before the samples that it needs leave their ring. A state that was
 * set, or that a search has found, stays as it is. Where late samples count in the estimate, too, the owner calls
 * ndt_track_window_renew.
 *
 * After the newest scan the state is predicted: `filtered` as far as samples of the motion reach, `predicted`
 * beyond them. Where a gyro ends, its last rate is carried on, and the covariance contains the mean square error
 * that this would have had in the last 2 s, where that is larger than turn_noise says.
 *
 * Pure functions of window, track and stamp: no clock, no allocation, equal inputs give equal bits. Plain data, one
 * owner. One thread at a time; readers may share a window that nobody changes. Source: track_window.c. */
#ifndef NDT_TRACK_TRACK_WINDOW_H
#define NDT_TRACK_TRACK_WINDOW_H

#include <stddef.h>

#include "ndt_track/track.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NDT_TRACK_WINDOW_SCANS = 128, /**< states that are kept: 2 s at up to 60 scans per second, 12 s at 10 */
    NDT_TRACK_LATER_SCANS = 16    /**< later scans that smooth a pose: more would change less than a per mille */
};

/** How a scan has led from one state to the next: with it the state can be computed again. */
struct ndt_track_step {
    int64_t before_ns;                        /**< stamp of the state that it began at */
    int is_measured;                          /**< 0: the state is the prediction */
    struct ndt_track_measurement measurement; /**< its own pointer to an observation is not read */
    int has_observation;                      /**< the measurement has this observation: */
    struct ndt_observation observation;
    int has_gnss; /**< the prediction was updated with `gnss` */
    struct ndt_track_gnss_sample gnss;
};

/** The states of the last scans, oldest first in a ring. All zero: empty. The members are internal. */
struct ndt_track_window {
    uint32_t head, count, starts;
    struct ndt_track_window_scan {
        struct ndt_track_state state; /**< state after the scan, at its reference moment */
        struct ndt_track_step step;
        int is_trusted;
        int is_joined;   /**< the motion from the previous state is known */
        int is_followed; /**< the state follows from the previous one by `step` */
        int is_fixed;    /**< it was computed again for the last time */
    } scans[NDT_TRACK_WINDOW_SCANS];
};
/** Empties the window, because the estimate starts anew and earlier states tell nothing about later ones. */
void ndt_track_window_clear(struct ndt_track_window *window);
/** Keeps the state of `track`, after each scan. is_trusted: the state may be used. step: how it followed from the
 * state that was kept before; NULL: it was set, or found otherwise, and is never computed again. A state with the
 * stamp of the last one replaces it, and an older one is ignored; one that is more than max_prediction_s older
 * means that time restarted, and empties the window first. */
void ndt_track_window_add(struct ndt_track_window *window, const struct ndt_track *track,
                          const struct ndt_track_step *step, int is_trusted);
/** Whether the state of `track` is the one that was kept last: a step from there follows it. */
int ndt_track_window_ends_at(const struct ndt_track_window *window, const struct ndt_track *track);
/** The step of the state that was kept last; NULL: it has none. */
const struct ndt_track_step *ndt_track_window_last_step(const struct ndt_track_window *window);
/** Computes the state after the newest scan again, after late samples, and makes it that of `track`. Changes
 * nothing where the state of `track` is another one, or follows from none. It takes about 23 us for each scan of
 * the last NDT_TRACK_LATE_S, of up to 62. */
void ndt_track_window_renew(struct ndt_track_window *window, struct ndt_track *track);
/** Whether two states are the same, bit for bit. */
int ndt_track_is_same_state(const struct ndt_track_state *a, const struct ndt_track_state *b);

/** Reasons why there is no pose. */
enum ndt_track_refusal {
    NDT_TRACK_NOT_REFUSED,
    NDT_TRACK_NO_POSE,       /**< no scan has left a pose */
    NDT_TRACK_BEFORE_WINDOW, /**< the stamp is older than the window */
    NDT_TRACK_TOO_FAR_AHEAD, /**< beyond ahead_s after all data, or max_prediction_s after the scan before it */
    NDT_TRACK_NOT_TRUSTED    /**< a scan next to it has left a state that may not be used */
};
/** Returns ``, `no_pose`, `before_window`, `too_far_ahead` or `not_trusted`. */
const char *ndt_track_refusal_name(enum ndt_track_refusal refusal);

/** The pose at a stamp. */
struct ndt_track_pose {
    enum ndt_pose_kind kind;
    /** Pose, twist and their covariance at the stamp; ndt_track_map_covariance gives that of the pose. */
    struct ndt_track_state state;
    int64_t scan_ns; /**< reference moment of the newest scan at or before it */
    double off_s;    /**< refused: seconds before the window, or beyond the limit of predictions */
};
/** Finds the pose at a stamp, predicted by up to ahead_s after all data. Refused: only off_s of `out` is set. It
 * takes about 3 us after the newest scan; before it, 12 us for each later scan that smooths the pose, and where
 * there are samples 23 us for each scan of the last NDT_TRACK_LATE_S. */
enum ndt_track_refusal ndt_track_pose_at(const struct ndt_track_window *window, const struct ndt_track *track,
                                         int64_t stamp_ns, double ahead_s, struct ndt_track_pose *out);
/** The newest stamp of all data, scans and samples, at which the pose is the filtered one. 0: there is no scan. */
int64_t ndt_track_newest_ns(const struct ndt_track_window *window, const struct ndt_track *track);
/** Writes the reason of a refusal as one line of text. */
void ndt_track_refusal_line(enum ndt_track_refusal refusal, const struct ndt_track_pose *pose, char *text,
                            size_t size);

#ifdef __cplusplus
}
#endif
#endif

/** @file
 * @brief Hints of a replay at settings that seem wrong by its data and errors, one line each.
 *
 * Hints change no result. They come from the first scan, the first initial pose and the first position, and at the
 * end from the errors, the trusted poses and the positions. A hint needs a clear sign, so that a correct run has
 * none. One owner, one thread. */
#ifndef NDTD_HINTS_H
#define NDTD_HINTS_H

#include "ndt/map.h"
#include "ndt_proto/message.h"
#include "ndtd/settings.h"
#include "ndtd/trajectory_error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_HINTS_MAX = 8, NDTD_HINT_BYTES = 400 };

/** Pairs of a GNSS position and the trusted pose of the next scan, as sums: how one track is turned against the
 * other. */
struct ndtd_gnss_track {
    int64_t stamp_ns; /* of the newest position */
    double position_m[2];
    int is_new; /* no pose has followed it */
    size_t pairs;
    double first_position_m[2], first_pose_m[2];
    /* From the first pair: sums of positions and poses, of their squares, dot and cross products. */
    double position_sum_m[2], pose_sum_m[2], position_m2, pose_m2, dot_m2, cross_m2;
};

/** Hints so far; all zero: none. */
struct ndtd_hints {
    size_t count;
    char text[NDTD_HINTS_MAX][NDTD_HINT_BYTES];
    /* Private. */
    int has_scan, has_start, has_position;
    int is_outside;        /* the first pose or position is outside of the map */
    int looks_upside_down; /* the first scan is upside down, in the base frame */
    int is_turned;         /* frames.T_base_sensor points the z axis of its sensor downward */
    struct ndtd_gnss_track gnss;
};

/** Checks the first scan; others are ignored. Hints: its points have times and preprocess.deskew is off; they are
 * so far from the sensor that they cannot be in its frame. T_base_sensor: as in use. */
void ndtd_hints_scan(struct ndtd_hints *hints, const uint8_t *data, size_t size,
                     const struct ndtd_settings *settings, const struct ndt_pose *T_base_sensor);
/** Checks the first pose or position from which the localisation starts, named `what` in the text; others are
 * ignored. Hint: it is far outside the map. */
void ndtd_hints_start(struct ndtd_hints *hints, const struct ndt_map *map, const char *what, const double t_m[3]);
/** Notes a GNSS position of the map frame. */
void ndtd_hints_gnss(struct ndtd_hints *hints, int64_t stamp_ns, const double position_m[3]);
/** Notes a trusted pose: the first one after a position makes a pair with it. */
void ndtd_hints_pose(struct ndtd_hints *hints, int64_t stamp_ns, const double t_m[3]);
/** Checks the errors and the pairs, at the end. Hints: results and ground truth differ by the same transform all
 * the way; GNSS positions are turned against the poses; most scans are untrusted, and the first is upside down;
 * none of them fits `map` (NULL: there is none, or a missing pose is the reason). */
void ndtd_hints_finish(struct ndtd_hints *hints, const struct ndt_map *map, struct ndtd_trajectory_error *error,
                       uint64_t scans, uint64_t untrusted);

#ifdef __cplusplus
}
#endif
#endif

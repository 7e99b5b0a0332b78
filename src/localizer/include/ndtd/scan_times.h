/** @file
 * @brief Times of the points of a scan, as the sensor tells them, checked and made plausible.
 *
 * A sweep lasts no longer than the time between two scans of its sensor, and the stamp of a scan lies within about
 * a sweep of it. Times that contradict this are not used as they are:
 *
 * - Times of another unit than seconds (or nanoseconds, for integers) are recognised by how much they span.
 * - Times that lie off the stamps, as those of another clock do, are moved: the sweep then lies about the stamp as
 * it did in the last scan whose times were right, otherwise as preprocess.sweep_stamp tells.
 * - Times that span too much in every unit are not used with preprocess.deskew `auto`.
 *
 * `auto` also decides whether the motion within a sweep is undone by the times of the points, by their azimuth
 * (where there are no times, and the order of the points has told the same sense of rotation NDTD_TURNS_NEEDED
 * times in a row), or not at all.
 *
 * Plain data; what is decided depends on the scans and their order only, so a replay decides as the live daemon
 * did. No allocation. One owner, one thread. */
#ifndef NDTD_SCAN_TIMES_H
#define NDTD_SCAN_TIMES_H

#include <stdint.h>

#include "ndt/preprocess.h"
#include "ndt_proto/message.h"
#include "ndtd/scan_turn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_TIMED_SENSORS = 16, NDTD_GAPS = 8, NDTD_TURNS_NEEDED = 5 };

/** Times of the points of one sensor so far; the sensor is known by the frame_id of its scans. */
struct ndtd_sensor_times {
    char frame_id[NDT_PROTO_MAX_NAME + 1];
    uint64_t scans;           /**< scans seen */
    int64_t stamp_ns;         /**< stamp of the last scan */
    double gaps_s[NDTD_GAPS]; /**< gaps between the stamps of the last scans, where stamps went forward */
    uint64_t gap_count;       /**< gaps seen */
    double unit_s;            /**< unit of the point times; 0: not known yet */
    int has_place;            /**< a scan had plausible times */
    double place_s;      /**< middle of the sweep relative to the stamp, in the last scan with plausible times */
    enum ndtd_turn turn; /**< sense of rotation of the last scan */
    int turns;           /**< scans in a row with this sense of rotation */
    int is_mended, is_moved, is_refused, has_strays; /**< about the times of the last scan */
    enum ndt_deskew_mode deskew;                     /**< mode decided for the last scan */
    double sweep_s;                                  /**< duration decided for the last scan */
};

/** Times of all sensors; all zero: none yet. */
struct ndtd_scan_times {
    struct ndtd_sensor_times sensors[NDTD_TIMED_SENSORS];
    uint64_t sensor_count; /**< sensors seen; of more than NDTD_TIMED_SENSORS the last are kept */
};

/** Assumptions about times: how often each was made, and the last one. */
struct ndtd_time_events {
    uint64_t units, moves, refusals, strays, turns;
    uint64_t stray_points;                 /**< stray points dropped so far */
    double unit_s;                         /**< unit that times were taken for */
    double moved_s;                        /**< shift of the times */
    enum ndt_sweep_stamp place;            /**< assumed place of the stamp in the sweep... */
    int is_known_place;                    /**< ...or 1: the place is that of earlier scans */
    double span_s, longest_s;              /**< span of the times, and longest duration of a sweep */
    enum ndtd_turn turn;                   /**< direction of the turn */
    double sweep_s;                        /**< duration of the turn */
    char frame_id[NDT_PROTO_MAX_NAME + 1]; /**< sensor of the last of these assumptions */
};

/** The next scan of a sensor, as ndtd_scan_times_find takes it. */
struct ndtd_timed_scan {
    const char *frame_id; /**< borrowed */
    int64_t stamp_ns;
    int is_part;              /**< the scan is part of a merged one: its azimuth tells no time */
    struct ndt_cloud *points; /**< implausible times are changed in place */
};

/** Finds the sweep as ndt_preprocess_sweep does. params->deskew: as configured; becomes the mode decided for this
 * scan, with params->sweep_s. */
NDT_MUST_CHECK enum ndt_status ndtd_scan_times_find(struct ndtd_scan_times *times,
                                                    const struct ndtd_timed_scan *scan,
                                                    struct ndt_preprocess_params *params, struct ndt_sweep *sweep,
                                                    struct ndtd_time_events *events, struct ndt_error *err);
/** Sets params->deskew and sweep_s to what is decided if the next scan of this sensor is like its last one. Returns
 * 0 where that is not known, or times have to be changed. */
int ndtd_scan_times_expect(const struct ndtd_scan_times *times, const char *frame_id,
                           struct ndt_preprocess_params *params);
/** Duration of a sweep whose points have no times: sweep_s, or the time between the scans of its sensor where that
 * is shorter. frame_id: NULL for merged sensors. */
double ndtd_scan_times_sweep_s(const struct ndtd_scan_times *times, const char *frame_id, double sweep_s);
/** Removes the times of the points. */
void ndtd_scan_times_drop(struct ndt_cloud *points);

#ifdef __cplusplus
}
#endif
#endif

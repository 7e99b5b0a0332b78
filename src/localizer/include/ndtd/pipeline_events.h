/** @file
 * @brief Faults of frames that do not stop the pipeline: counts, and one line of text for each. Plain data; pure
 * functions. */
#ifndef NDTD_PIPELINE_EVENTS_H
#define NDTD_PIPELINE_EVENTS_H

#include <stdint.h>
#include <stdio.h>

#include "ndt_track/input_check.h"
#include "ndtd/scan_times.h"
#include "ndtd/transforms.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Counts since the pipeline was created. */
struct ndtd_input_fault {
    uint64_t count;             /**< times that the input was found to be wrong */
    enum ndt_track_fault fault; /**< fault of the input now, see ndt_track/input_check.h */
    double value;
};

struct ndtd_pipeline_events {
    struct ndtd_input_fault inputs[NDT_TRACK_INPUT_COUNT]; /**< odometry and gyro, checked against the scans */
    struct ndt_track_restarts odometry_restarts;
    struct ndt_track_too_late too_late;    /**< samples of odometry and IMU that are dropped */
    uint64_t thinned;                      /**< scans of which only some of the points were read */
    uint64_t thinned_points, thinned_read; /**< points of the last thinned scan, and those of them that were read */
    uint64_t unsound;                      /**< results that were not finite: their scans are answered `rejected` */
    uint64_t reinitialised;                /**< estimates that were not finite: the estimator began anew */
    uint64_t refused_poses;    /**< initial poses that no scan confirmed, while the previous track went on to fit */
    double refused_m;          /**< distance of the last refused pose from that track */
    uint64_t repeated;         /**< scans with the stamp of the previous scan: they are answered `rejected` */
    uint64_t late;             /**< scans older than the estimate: they change nothing */
    double late_s;             /**< delay of the last late scan */
    uint64_t memory_released;  /**< scans that memory did not suffice for: buffers were given back */
    uint64_t memory_points;    /**< points of the last of those scans */
    uint64_t far;              /**< poses farther from the guess than validation.* allows */
    double far_m, far_limit_m; /**< distance and limit of the last far pose */
    uint64_t slow;             /**< scans that took longer than validation.* allows */
    double slow_us, slow_limit_us;       /**< time and limit of the last slow scan */
    uint64_t row;                        /**< length of the current row of scans that have not converged */
    uint64_t rows, longest_row;          /**< rows as long as validation.* says, and the longest row */
    uint64_t map_checks;                 /**< searches of the whole map while the pose was accepted */
    uint64_t fits_elsewhere;             /**< times that the scans fitted another place significantly better */
    double elsewhere_m;                  /**< distance of the last such place */
    uint64_t pointless;                  /**< scans without a usable point */
    char pointless_why[96];              /**< the reason of the last one */
    uint64_t poseless;                   /**< 1: a scan came before a pose, and none is searched for */
    const char *poseless_why;            /**< why no pose is searched for */
    int is_placed;                       /**< a scan was trusted */
    uint64_t unplaced, unplaced_row;     /**< 1: none of the first aligned scans was trusted; and their number */
    int64_t unplaced_ns;                 /**< stamp of the first of them */
    uint64_t distorted, distorted_scans; /**< 1: that many scans keep the motion of their sweep; and their number */
    double distorted_m;                  /**< the largest such motion */
    uint64_t tight, tight_row; /**< times that stamps were too near for a lidar; scans of the current row */
    double tight_s;            /**< time between the stamps */
    uint64_t leans;            /**< times that gravity contradicted the vertical of the poses for some seconds */
    double lean_rad;           /**< angle between the two */
    uint64_t weightless;       /**< times that the mean specific force was far from gravity */
    double force_mps2;         /**< that force */
    struct ndtd_transform_events transforms;
    struct ndtd_time_events times;
};

enum { NDTD_EVENT_BYTES = 200 };

/** The events that happened since `told`, one per call:
 *
 *     for (size_t kind = 0; (format = ndtd_pipeline_event(now, &told, &kind, text)) != NULL;)
 *         ndtd_log(NDTD_LOG_WARNING, format, text);
 *
 * Returns a format of its own for each kind, with one %s for `text`; NULL after the last, `told` is then `now`. */
const char *ndtd_pipeline_event(const struct ndtd_pipeline_events *now, struct ndtd_pipeline_events *told,
                                size_t *kind, char text[NDTD_EVENT_BYTES]);

#ifdef __cplusplus
}
#endif
#endif

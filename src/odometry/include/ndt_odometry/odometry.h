/** @file
 * @brief LiDAR odometry: scans in, a trajectory out, without a map.
 *
 *     ndt_odometry_params_default(&params);
 *     ndt_odometry_create(&odometry, &params, backend, &err);
 *     ndt_odometry_add_imu(odometry, &sample);                 // also ndt_odometry_add_wheels; both optional
 *     ndt_odometry_add_scan(odometry, stamp_ns, &raw, &result, &err);
 *     // result.T_odom_base at result.stamp_ns
 *
 * A scan is predicted by the estimator (ndt_track/track.h), deskewed with the predicted motion, thinned, and
 * aligned with a local map: the NDT map of the last keyframes, and of older ones nearby. The estimator fuses
 * alignment and prediction; where it finds another motion within the sweep, the points are deskewed and aligned
 * again. The usual fit is that of scans between which the base moved. A doubtful scan (not converged, a fit far
 * below the usual one, or far from the prediction) is aligned from several guesses. The best maximises 25 fit - 1/2
 * max(min(d^2, 3), min(m^2, 20)), with the Mahalanobis distance d from the prediction, and m that of the position
 * alone; a guess with m above 10 is refused, because where rooms are alike, the next one fits as well.
 *
 * A scan becomes a keyframe after a distance, an angle or a number of scans, and where it shows a new place (less
 * than 85 % of its points meet the local map). The local map keeps integer sums per
 * voxel (ndt/map.h): a keyframe is added to them and taken out again exactly; its Gaussians are then derived anew,
 * never from the points of the other keyframes.
 *
 * Frame `odom`: the base at the first scan, levelled where an IMU at rest tells the vertical. The trajectory
 * drifts; ndt_odometry_result tells how well a scan determined its pose. In a tunnel only wheels observe the motion
 * ahead; without them is_degenerate is 1, and the position is a guess. With wheels a scan counts only along the
 * directions that it tells well: the others, below 3 % of its information, follow the wheels.
 *
 * Threads: one thread at a time. Determinism: the same inputs in the same order on the same backend give the same
 * bits; no clock but in the timings. Memory: bounded by max_keyframes, and by the largest scan. Allocates at
 * keyframes, and when a scan is larger than any before. */
#ifndef NDT_ODOMETRY_H
#define NDT_ODOMETRY_H

#include <stdint.h>

#include "ndt/align.h"
#include "ndt/backend.h"
#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/preprocess.h"
#include "ndt_track/track.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of scans after which ndt_odometry_restart knows the velocity of the start. */
enum { NDT_ODOMETRY_START_SCANS = 7 };

/** Parameters; ndt_odometry_params_default gives the values in brackets. */
struct ndt_odometry_params {
    struct ndt_pose T_base_sensor; /**< [identity] */
    struct ndt_preprocess_params
        preprocess;     /**< parameters of the aligned points [deskew auto, else its defaults] */
    double map_voxel_m; /**< edge of the cells that keep one point of a keyframe [0.2] */
    /** local map; cells of at least 4 map_voxel_m, because smaller ones would hold too few points [4, 2, 1 m] */
    struct ndt_map_config map;
    struct ndt_align_params align; /**< its levels are levels of the map [no thresholds: the usual fit decides] */
    struct ndt_track_params track; /**< [its defaults] */
    /** @name A scan becomes a keyframe when one of these is reached since the last one
     * @{ */
    double keyframe_m;       /**< [1] */
    double keyframe_rad;     /**< [15 deg] */
    uint32_t keyframe_scans; /**< if the base has moved or turned by a tenth of the above at least; 0: never [10] */
    /** @} */
    uint32_t window;        /**< number of last keyframes in the local map, at least 1 [20] */
    double near_m;          /**< radius within which older keyframes are in it, too [15] */
    double near_path_m;     /**< path back to these at most: farther back, drift would blur [100] */
    uint32_t max_keyframes; /**< largest number of keyframes in memory, at least `window` [200] */
    uint32_t lost_scans; /**< scans in a row without a pose that make the local map begin anew; at least 1 [10] */
};
/** Sets the defaults. */
void ndt_odometry_params_default(struct ndt_odometry_params *params);

/** The pose of a scan, and its quality. */
struct ndt_odometry_result {
    enum ndt_outcome outcome; /**< NDT_CONVERGED and NDT_ITERATION_LIMIT: the pose follows from the scan; else it is
                                 the prediction, and for NDT_REJECTED the last pose */
    char reason[96];          /**< one line; empty for NDT_CONVERGED */
    int64_t stamp_ns;         /**< stamp of the scan */
    int64_t reference_ns;     /**< moment to which its points were moved */
    struct ndt_pose T_odom_base;      /**< base at stamp_ns */
    struct ndt_pose T_odom_reference; /**< base at reference_ns */
    struct ndt_twist twist;           /**< twist of the base in its own frame, at reference_ns */
    double covariance[36]; /**< T_odom_reference relative to the local map: map axes, row-major, x y z rx ry rz */
    /** Standard deviations along the least certain axis. They include the motion noise of the estimator: along a
     * direction that scans do not observe, they grow from scan to scan. */
    double deviation_m, deviation_rad;
    /** 1: the attitude is not determined within 5 deg; or no wheels tell the way, and the position is not
     * determined within 0.5 m or the scan hardly observes a direction (weakest below 0.002) */
    int is_degenerate;
    int is_weak;       /**< 1: the scan hardly observes a direction, even if wheels do */
    double weakest;    /**< smallest over largest eigenvalue of the scan's information about its pose; 0: none */
    double innovation; /**< squared Mahalanobis distance from the prediction */
    struct ndt_scores scores; /**< scores in the local map */
    double fit;               /**< scores.nvtl_normalized * scores.match_ratio; 0 without an alignment */
    int is_keyframe;
    int guesses;      /**< number of poses that the scan was aligned from */
    uint32_t segment; /**< counts from 0; it rises when the pose was lost and the local map began anew */
    size_t points;    /**< number of aligned points */
    double preprocess_us, align_us, map_us; /**< time of the stages */
};

/** The odometry of one vehicle. */
struct ndt_odometry;

/** Creates odometry. Borrows the backend, which has to outlive it, and sets its map. NDT_ERR_ARGUMENT: a parameter
 * out of range, named with its limit. */
NDT_MUST_CHECK enum ndt_status ndt_odometry_create(struct ndt_odometry **out,
                                                   const struct ndt_odometry_params *params,
                                                   struct ndt_backend *backend, struct ndt_error *err);
/** `odometry` may be NULL. */
void ndt_odometry_destroy(struct ndt_odometry *odometry);

/** Replaces sensor pose and deskewing mode of the parameters, before the first scan is added, which may be what
 * tells them. NDT_ERR_ARGUMENT: a scan was added already. */
NDT_MUST_CHECK enum ndt_status ndt_odometry_set_sensor(struct ndt_odometry *odometry,
                                                       const struct ndt_pose *T_base_sensor,
                                                       enum ndt_deskew_mode deskew, struct ndt_error *err);

/** @name Other sensors, see ndt_track_imu and ndt_track_odometry
 * In the base frame, in the order of their stamps, before the scans that they are needed for.
 * @{ */
void ndt_odometry_add_imu(struct ndt_odometry *odometry, const struct ndt_track_imu_sample *sample);
void ndt_odometry_add_wheels(struct ndt_odometry *odometry, const struct ndt_track_odometry_sample *sample);
/** @} */

/** Finds the pose of a scan.
 *
 * raw: the scan as the sensor measured it, in its own frame; points that are not finite are left out. A scan that
 * cannot be used ends as NDT_REJECTED with a reason, and changes nothing: no points within range, times that
 * deskewing needs and that are not there, a stamp that is not newer than the last one. Where the stamps of
 * three scans in a row are more than track.max_prediction_s older, time has restarted: a new segment begins. A
 * status other than NDT_OK means that memory ran out or the backend failed. */
NDT_MUST_CHECK enum ndt_status ndt_odometry_add_scan(struct ndt_odometry *odometry, int64_t stamp_ns,
                                                     const struct ndt_cloud *raw,
                                                     struct ndt_odometry_result *result, struct ndt_error *err);

/** The points of the last scan, deskewed to reference_ns and thinned to map_voxel_m, in the sensor frame; borrowed
 * until the next call. Empty after NDT_REJECTED. */
const struct ndt_cloud *ndt_odometry_points(const struct ndt_odometry *odometry);
/** The local map; NULL before the first scan. The caller who keeps it takes a reference (ndt_map_retain). */
struct ndt_map *ndt_odometry_map(const struct ndt_odometry *odometry);

/** Starts anew, with the velocity that was found for the first scan.
 *
 * A vehicle that moves when a recording begins deforms its first scans, because the velocity is unknown yet, and
 * all later scans are aligned with them. For a recording, add the first NDT_ODOMETRY_START_SCANS scans, call this,
 * add them again, call this, and then add all scans from the first. Samples of other sensors are forgotten. Returns
 * 1; 0: too few scans were aligned to know the velocity, and odometry starts without it. */
int ndt_odometry_restart(struct ndt_odometry *odometry);

/** Starts anew where another estimator is: the first scan lies where `track` predicts it, and the frame of `track`
 * is `odom` from then on. Its motion, its samples of other sensors, and the estimates of their errors are taken
 * over. */
void ndt_odometry_begin_at(struct ndt_odometry *odometry, const struct ndt_track *track);
/** The estimate after the last used scan, with its pose relative to the local map; borrowed until the next call. */
const struct ndt_track_state *ndt_odometry_state(const struct ndt_odometry *odometry);

#ifdef __cplusplus
}
#endif
#endif
